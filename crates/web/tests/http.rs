//! Requests over a real socket.
#![allow(clippy::unwrap_used, reason = "a test ends where something is missing")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn request(address: SocketAddr, line: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    // Much longer than an answer takes, and shorter than any connection lives.
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "{line} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn metrics_and_health_and_nothing_else() {
    static IS_UP: AtomicBool = AtomicBool::new(true);
    let render = || IS_UP.load(Ordering::Relaxed).then(|| String::from("byname_up 1\n"));
    let address = byname_web::serve("127.0.0.1:0".parse().unwrap(), Box::new(render)).unwrap();
    let answer = request(address, "GET /metrics");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("text/plain; version=0.0.4"), "{answer}");
    assert!(answer.ends_with("byname_up 1\n"), "{answer}");
    assert!(request(address, "GET /healthz").starts_with("HTTP/1.1 200 "));
    assert!(request(address, "GET /").starts_with("HTTP/1.1 404 "));
    assert!(request(address, "GET /metrics/../etc").starts_with("HTTP/1.1 404 "));
    assert!(request(address, "POST /metrics").starts_with("HTTP/1.1 405 "));
    IS_UP.store(false, Ordering::Relaxed);
    assert!(request(address, "GET /healthz").starts_with("HTTP/1.1 503 "));
    assert!(request(address, "GET /metrics").starts_with("HTTP/1.1 503 "));
}

#[test]
fn a_taken_address_is_an_error() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let error = byname_web::serve(address, Box::new(|| None)).unwrap_err();
    assert!(error.to_string().contains(&address.to_string()));
}

/// They kept everybody out for half a minute.
#[test]
fn half_open_connections_keep_nobody_out() {
    let render = || Some(String::from("byname_up 1\n"));
    let address = byname_web::serve("127.0.0.1:0".parse().unwrap(), Box::new(render)).unwrap();
    let half_open: Vec<TcpStream> = (0..2 * byname_web::CONNECTIONS_MAX)
        .map(|index| {
            let mut stream = TcpStream::connect(address).unwrap();
            // Some say nothing at all, some begin a request.
            if index % 2 == 0 {
                write!(stream, "GET /metrics HTTP/1.1\r\nHost: here\r\n").unwrap();
            }
            stream
        })
        .collect();
    for _ in 0..3 {
        assert!(request(address, "GET /metrics").ends_with("byname_up 1\n"));
    }
    // The oldest had to go.
    let mut first = &half_open[0];
    first.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(first.read_to_string(&mut String::new()).unwrap_or(0), 0);
}
