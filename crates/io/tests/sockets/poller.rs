//! Waiting, and being woken.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use byname_io::{Connection, Event, Interest, Poller, Token};

use crate::*;

fn wait(poller: &mut Poller, timeout: Duration) -> Vec<Event> {
    let mut events = Vec::new();
    poller.wait(&mut events, Some(timeout)).unwrap();
    events
}

fn tokens(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.token.0).collect()
}

#[test]
fn a_waker_ends_the_wait_of_another_thread_every_time() {
    let mut poller = Poller::new().unwrap();
    let waker = poller.waker(Token(7)).unwrap();
    let (woken, next) = mpsc::channel();
    let thread = thread::spawn(move || {
        for _ in 0..1000 {
            next.recv().unwrap();
            waker.clone().wake();
        }
    });
    for round in 0..1000 {
        woken.send(()).unwrap();
        assert_eq!(tokens(&wait(&mut poller, PATIENCE)), [7], "round {round}");
    }
    thread.join().unwrap();
}

#[test]
fn the_last_word_of_a_thread_that_ends_is_heard() {
    let mut poller = Poller::new().unwrap();
    let waker = poller.waker(Token(9)).unwrap();
    thread::spawn(move || waker.wake()).join().unwrap();
    assert_eq!(tokens(&wait(&mut poller, PATIENCE)), [9]);
}

#[test]
fn wakes_before_the_wait_are_kept_and_seen_once() {
    let mut poller = Poller::new().unwrap();
    let waker = poller.waker(Token(1)).unwrap();
    waker.wake();
    waker.wake();
    assert_eq!(tokens(&wait(&mut poller, PATIENCE)), [1]);
    assert!(wait(&mut poller, Duration::ZERO).is_empty());
    waker.wake();
    assert_eq!(tokens(&wait(&mut poller, PATIENCE)), [1]);
}

#[test]
fn events_follow_the_interest() {
    let mut poller = Poller::new().unwrap();
    let (mut one, mut other) = Connection::pair().unwrap();
    poller.add(&one, Token(3), Interest::READ).unwrap();
    assert!(wait(&mut poller, Duration::from_millis(1)).is_empty());

    poller.modify(&one, Token(4), Interest::READ_WRITE).unwrap();
    let event = wait(&mut poller, PATIENCE)[0];
    assert_eq!((event.token, event.readable, event.writable), (Token(4), false, true));

    poller.modify(&one, Token(5), Interest::READ).unwrap();
    send(&mut other, &frame(b"x"));
    for _ in 0..2 {
        let event = wait(&mut poller, PATIENCE)[0];
        assert_eq!((event.token, event.readable, event.writable), (Token(5), true, false));
    }
    one.recv_burst(framer, &mut |_| {}).unwrap();
    assert!(wait(&mut poller, Duration::ZERO).is_empty(), "all has been read");

    poller.remove(&one).unwrap();
    send(&mut other, &frame(b"y"));
    assert!(wait(&mut poller, Duration::ZERO).is_empty(), "no longer watched");
}

#[test]
fn a_peer_that_leaves_is_told_even_without_interest() {
    let mut poller = Poller::new().unwrap();
    let (one, other) = Connection::pair().unwrap();
    poller.add(&one, Token(1), Interest { read: false, write: false }).unwrap();
    drop(other);
    let event = wait(&mut poller, PATIENCE)[0];
    assert!(event.hangup && event.readable);
}

#[test]
fn more_descriptors_than_one_wait_returns_all_get_their_turn() {
    let mut poller = Poller::new().unwrap();
    let count = byname_io::poller::EVENTS_MAX + 44;
    let mut pairs: Vec<_> = (0..count).map(|_| Connection::pair().unwrap()).collect();
    for (i, (one, other)) in pairs.iter_mut().enumerate() {
        poller.add(one, Token(i as u64), Interest::READ).unwrap();
        send(other, &frame(b"x"));
    }
    let mut seen = vec![false; count];
    while !seen.iter().all(|s| *s) {
        let events = wait(&mut poller, PATIENCE);
        assert!(!events.is_empty(), "some were forgotten");
        for event in events {
            let i = event.token.0 as usize;
            pairs[i].0.recv_burst(framer, &mut |_| {}).unwrap();
            seen[i] = true;
        }
    }
}
