//! Consumer and producer over a real connection, nothing in between.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like tests")]

use std::time::Duration;

use byname_io::{Connection, Endpoint, Listener};
use byname_traffic::{
    Consumer, ConsumerConfig, ConsumerReport, Load, Pattern, PatternCounters, Producer,
    ProducerConfig, Signature, Sizes, Stop, run_consumer, run_producer,
};

fn exchange(
    ends: (Connection, Connection),
    sizes: &Sizes,
    signature: Signature,
    config: ConsumerConfig,
) -> ConsumerReport {
    let producing = ProducerConfig {
        prefixes: vec!["/a".parse().unwrap()],
        signature,
        ..ProducerConfig::new(sizes.clone())
    };
    let stop = Stop::new();
    let (one, other) = ends;
    std::thread::scope(|scope| {
        let until = stop.clone();
        let answering = scope.spawn(move || {
            let mut producer = Producer::new(producing);
            run_producer(one, &mut producer, None, &until, &mut || {}).unwrap()
        });
        let mut consumer = Consumer::new(config, 1).unwrap();
        let report = run_consumer(other, &mut consumer, &stop).unwrap();
        stop.stop();
        assert_eq!(answering.join().unwrap().data, report.total().data);
        report
    })
}

fn config(sizes: &Sizes, load: Load, count: u64) -> ConsumerConfig {
    ConsumerConfig {
        patterns: vec![Pattern::new("/a".parse().unwrap())],
        load,
        duration_ns: None,
        count: Some(count),
        sizes: Some(sizes.clone()),
        checks_content: true,
    }
}

fn all_answered(count: u64) -> PatternCounters {
    PatternCounters { interests: count, data: count, ..PatternCounters::default() }
}

/// Two connected ends over TCP.
fn tcp() -> (Connection, Connection) {
    let listener = Listener::bind(&"tcp://127.0.0.1:0".parse().unwrap()).unwrap();
    let endpoint: Endpoint = listener.local_endpoint().to_string().parse().unwrap();
    let one = Connection::connect(&endpoint, Duration::from_secs(5)).unwrap();
    let other = loop {
        match listener.accept().unwrap() {
            Some(accepted) => break accepted,
            None => std::thread::yield_now(),
        }
    };
    (one, other)
}

#[test]
fn every_interest_is_answered_whatever_window_size_and_signature() {
    let mixed = Sizes::weighted(&[(0, 100, 1), (8000, 8192, 1)]).unwrap();
    let rounds = [
        (Connection::pair().unwrap(), Signature::Null, 256),
        (Connection::pair().unwrap(), Signature::Digest, 1),
        (tcp(), Signature::Null, 5000),
    ];
    for (ends, signature, window) in rounds {
        let config = config(&mixed, Load::Window(window), 20_000);
        let report = exchange(ends, &mixed, signature, config);
        assert_eq!(report.total(), all_answered(20_000), "window {window}");
        assert_eq!((report.unexpected, report.latency.count()), (0, 20_000));
        let mean = report.content_bytes / 20_000;
        assert!((3700..4500).contains(&mean), "{mean}");
    }
}

#[test]
fn a_rate_takes_the_time_it_says() {
    let sizes = Sizes::fixed(10).unwrap();
    let load = Load::Rate { per_second: 2000.0, outstanding_max: 1000 };
    let ends = Connection::pair().unwrap();
    let report = exchange(ends, &sizes, Signature::Null, config(&sizes, load, 400));
    assert_eq!(report.total(), all_answered(400));
    assert!(report.elapsed_ns >= 199_000_000, "{}", report.elapsed_ns);
}

#[test]
fn answers_of_somebody_else_are_found_out() {
    let sizes = Sizes::fixed(500).unwrap();
    let config = config(&Sizes::fixed(501).unwrap(), Load::Window(8), 100);
    let (one, other) = Connection::pair().unwrap();
    let producing =
        ProducerConfig { prefixes: vec!["/a".parse().unwrap()], ..ProducerConfig::new(sizes) };
    let stop = Stop::new();
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut producer = Producer::new(producing);
            run_producer(one, &mut producer, None, &stop, &mut || {}).unwrap()
        });
        let mut consumer = Consumer::new(config, 1).unwrap();
        let report = run_consumer(other, &mut consumer, &stop).unwrap();
        stop.stop();
        report
    });
    assert_eq!((report.total().mismatches, report.total().data), (100, 0));
}
