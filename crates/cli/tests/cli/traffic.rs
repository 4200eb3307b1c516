//! `bench traffic` against real forwarders.

use crate::harness::{Daemon, Finished, Home, free_port};
use serde_json::Value;

/// A forwarder on a Unix socket and on one TCP and UDP port.
struct Forwarder {
    home: Home,
    unix: String,
    port: u16,
    _daemon: Daemon,
}

impl Forwarder {
    fn start() -> Self {
        let home = Home::new();
        let unix = format!("unix://{}", home.path().join("sock").display());
        let port = free_port();
        let (tcp, udp) = (format!("tcp://127.0.0.1:{port}"), format!("udp://127.0.0.1:{port}"));
        let args = ["forward", "--listen", &unix, "--listen", &tcp, "--listen", &udp];
        let daemon = home.start(&args, &format!("listening on {udp}"));
        Self { home, unix, port, _daemon: daemon }
    }

    fn produce(&self, uri: &str, extra: &[&str]) -> Daemon {
        let mut args = vec!["bench", "traffic", "produce", "--json", "--connect", uri];
        args.extend_from_slice(extra);
        self.home.start(&args, "\"ready\"")
    }

    fn consume(&self, uri: &str, extra: &[&str]) -> Finished {
        let mut args = vec!["bench", "traffic", "consume", "--json", "--connect", uri];
        args.extend_from_slice(extra);
        self.home.run(&args)
    }
}

fn line(text: &str, kind: &str) -> Value {
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.into_iter().find(|line| line["kind"] == kind).unwrap_or_else(|| panic!("{kind}: {text}"))
}

#[test]
fn both_need_nothing_else() {
    let home = Home::new();
    let args = ["bench", "traffic", "both", "--count", "3000", "--size", "100-8000", "--json"];
    let out = home.run(&args).ok().stdout();
    let consumer = line(&out, "consumer");
    assert_eq!(consumer["schema"], 1);
    for (field, value) in [("interests", 3000), ("data", 3000), ("mismatches", 0), ("timeouts", 0)]
    {
        assert_eq!(consumer[field], value, "{field}: {out}");
    }
    let percentile = |name: &str| consumer["latency_us"][name].as_f64().unwrap();
    assert!(percentile("min") > 0.0 && percentile("p50") <= percentile("p99"));
    assert_eq!(line(&out, "producer")["data"], 3000);
    assert!(line(&out, "forwarder")["cpu_us_per_exchange"].as_f64().unwrap() > 0.0);
    let shown = home.run(&args[..7]).ok().stdout();
    assert!(shown.contains("exchanges/s") && shown.contains("99.9 %"), "{shown}");
}

#[test]
fn a_mix_goes_through_a_forwarder_over_every_link() {
    let forwarder = Forwarder::start();
    let tcp = format!("tcp://127.0.0.1:{}", forwarder.port);
    let udp = format!("udp://127.0.0.1:{}", forwarder.port);
    let common = ["--size", "500", "--prefix", "/a", "--prefix", "/b", "--spread", "20"];
    let mut producer = forwarder.produce(&forwarder.unix, &common);
    for uri in [&forwarder.unix, &tcp, &udp] {
        let asked = ["--mix", "/a=3,/b", "--count", "400", "--window", "16", "--spread", "20"];
        let found = line(&forwarder.consume(uri, &asked).ok().stdout(), "consumer");
        assert_eq!((&found["data"], &found["mismatches"]), (&400.into(), &0.into()), "{uri}");
        assert_eq!(found["content_bytes"], 400 * 500);
        let share = found["parts"][1]["data"].as_u64().unwrap();
        assert!((50..150).contains(&share), "{share}");
        assert_eq!(found["parts"][1]["name"], "/b");
    }
    assert_eq!(producer.interrupt(), Some(0));
    assert_eq!(line(&producer.log(), "ready")["routes"], 40);
    assert_eq!(line(&producer.log(), "producer")["data"], 1200);
}

#[test]
fn answers_can_come_over_udp() {
    let forwarder = Forwarder::start();
    let udp = format!("udp://127.0.0.1:{}", forwarder.port);
    let flags = ["--manage", &forwarder.unix, "--size", "8000", "--prefix", "/u"];
    let _producer = forwarder.produce(&udp, &flags);
    let asked = ["--mix", "/u", "--count", "100", "--window", "4", "--size", "8000"];
    let found = line(&forwarder.consume(&forwarder.unix, &asked).ok().stdout(), "consumer");
    assert_eq!(found["data"], 100);
}

#[test]
fn what_a_store_has_is_not_asked_of_the_producer() {
    let forwarder = Forwarder::start();
    let mut producer = forwarder.produce(&forwarder.unix, &["--prefix", "/s"]);
    let asked = ["--mix", "/s", "--range", "50", "--window", "10", "--count", "500"];
    let found = line(&forwarder.consume(&forwarder.unix, &asked).ok().stdout(), "consumer");
    assert_eq!(found["data"], 500);
    assert_eq!(producer.interrupt(), Some(0));
    assert_eq!(line(&producer.log(), "producer")["data"], 50);
}

#[test]
fn other_content_than_expected_is_refused_and_silence_is_no_success() {
    let forwarder = Forwarder::start();
    let _producer = forwarder.produce(&forwarder.unix, &["--prefix", "/a", "--size", "100"]);
    let asked = ["--mix", "/a", "--count", "20", "--size", "101"];
    let refused = forwarder.consume(&forwarder.unix, &asked).fails_with(5, "other content");
    assert_eq!(line(&refused.stdout(), "consumer")["mismatches"], 20);
    let asked = ["--mix", "/nobody", "--count", "20", "--lifetime", "500"];
    let unanswered = forwarder.consume(&forwarder.unix, &asked).fails_with(4, "nothing");
    assert_eq!(line(&unanswered.stdout(), "consumer")["nacks"]["150"], 20);
}

#[test]
fn wishes_that_make_no_sense_are_usage_errors() {
    let home = Home::new();
    for (args, words) in [
        (&["--mix", "a"][..], "name"),
        (&["--size", "9000"], "fit a packet"),
        (&["--zipf", "1"], "--range"),
        (&["--window", "0"], "at a time"),
        (&["--window", "64", "--range", "10"], "too small"),
        (&["--rate", "0"], "rate"),
        (&["--window", "5", "--rate", "5"], "cannot be used"),
    ] {
        let mut all = vec!["bench", "traffic", "both", "--count", "1"];
        all.extend_from_slice(args);
        home.run(&all).fails_with(2, words);
    }
}
