//! A next hop that dies without a word, under the default strategy, and attempts to pass a healthy
//! one off as dead.

use byname_packet::lp::{LpHeader, nack_reason};

use crate::face::FaceId;
use crate::testing::{Bench, MS, Sent, data, faces};

/// A consumer and two ways to `/a`, the first cheaper; nothing chosen.
struct Site {
    bench: Bench,
    consumer: FaceId,
    cheap: FaceId,
    dear: FaceId,
    /// For names that were not asked for yet.
    next: u64,
}

impl Site {
    fn new() -> Self {
        let mut bench = Bench::new();
        let (consumer, cheap, dear) = (bench.local(), bench.remote(), bench.remote());
        bench.route("/a", cheap, 10);
        bench.route("/a", dear, 20);
        Self { bench, consumer, cheap, dear, next: 0 }
    }

    fn fresh_name(&mut self) -> String {
        self.next += 1;
        format!("/a/{}", self.next)
    }

    /// Asks for a new name, and `answers` answers after 20 ms. Who was asked.
    fn fetch(&mut self, answers: FaceId) -> Vec<FaceId> {
        let uri = self.fresh_name();
        let asked = faces(&self.bench.interest(self.consumer, &uri, 1));
        self.bench.wait_ms(20);
        assert_eq!(faces(&self.bench.data(answers, &uri, 0)), [self.consumer]);
        asked
    }

    /// `from` asks for a new name, the cheap next hop is silent; 300 ms later it asks again, and
    /// the dear one answers.
    fn fetch_at_second_try(&mut self, from: FaceId) {
        let uri = self.fresh_name();
        assert_eq!(faces(&self.bench.interest(from, &uri, 1)), [self.cheap]);
        self.bench.wait_ms(300);
        assert_eq!(faces(&self.bench.interest(from, &uri, 2)), [self.dear]);
        self.bench.wait_ms(20);
        assert_eq!(faces(&self.bench.data(self.dear, &uri, 0)), [from]);
    }

    fn kill_cheap(&mut self) {
        for _ in 0..3 {
            self.fetch_at_second_try(self.consumer);
        }
    }
}

#[test]
fn a_next_hop_that_dies_costs_three_repetitions_and_then_nothing() {
    let mut site = Site::new();
    for _ in 0..20 {
        assert_eq!(site.fetch(site.cheap), [site.cheap]);
    }
    site.kill_cheap();
    for _ in 0..40 {
        assert_eq!(site.fetch(site.dear), [site.dear]);
    }
}

/// One that answers whoever must know what is said now with what is old is of no use to him.
#[test]
fn a_next_hop_that_answers_with_what_is_not_fresh_is_not_kept_alive_by_that() {
    let mut site = Site::new();
    let not_fresh = LpHeader { not_fresh: true, ..LpHeader::default() };
    for _ in 0..3 {
        let uri = site.fresh_name();
        let ask = |bench: &mut Bench, from, nonce| {
            bench.interest_with(from, &uri, nonce, |i| i.must_be_fresh(true))
        };
        assert_eq!(faces(&ask(&mut site.bench, site.consumer, 1)), [site.cheap]);
        assert_eq!(site.bench.packet(site.cheap, &not_fresh, &data(&uri, 0)), []);
        site.bench.wait_ms(300);
        assert_eq!(faces(&ask(&mut site.bench, site.consumer, 2)), [site.dear]);
        site.bench.wait_ms(20);
        assert_eq!(faces(&site.bench.data(site.dear, &uri, 0)), [site.consumer]);
    }
    assert_eq!(site.fetch(site.dear), [site.dear], "it is suspended");
}

#[test]
fn a_whole_window_that_is_lost_costs_one_time_out() {
    let mut site = Site::new();
    assert_eq!(site.fetch(site.cheap), [site.cheap]);
    let window: Vec<String> = (0..64).map(|_| site.fresh_name()).collect();
    for uri in &window {
        assert_eq!(faces(&site.bench.interest(site.consumer, uri, 1)), [site.cheap]);
    }
    site.bench.wait_ms(250);
    for uri in &window {
        assert_eq!(faces(&site.bench.interest(site.consumer, uri, 2)), [site.dear]);
    }
    for uri in &window {
        site.bench.data(site.dear, uri, 0);
    }
    assert_eq!(site.fetch(site.dear), [site.dear]);
}

#[test]
fn a_suspended_next_hop_is_probed_beside_the_one_in_use_and_comes_back() {
    let mut site = Site::new();
    site.kill_cheap();
    let mut probes = Vec::new();
    let start_ns = site.bench.now_ns;
    while probes.len() < 4 {
        let uri = site.fresh_name();
        let sent = site.bench.interest(site.consumer, &uri, 1);
        assert_eq!(sent[0].face, site.dear, "readers do not wait for a probe");
        if let [used, probe] = &sent[..] {
            assert_eq!(probe.face, site.cheap);
            assert_ne!(used.interest().nonce, probe.interest().nonce);
            probes.push((site.bench.now_ns - start_ns) / (1000 * MS));
        }
        site.bench.wait_ms(20);
        site.bench.data(site.dear, &uri, 0);
    }
    assert_eq!(probes, [0, 2, 6, 14].map(|second| second + 1), "ever rarer");
    // It comes back, and is always slower than the other: only a late answer can tell.
    let (probed, used) = (format!("/a/{}", site.next), site.dear);
    assert_eq!(site.fetch(used), [used], "no answer yet");
    assert_eq!(site.bench.data(site.cheap, &probed, 0), [], "nobody waits any more");
    assert_eq!(site.fetch(site.cheap), [site.cheap]);
}

#[test]
fn a_probe_that_is_answered_first_restores_the_next_hop() {
    let mut site = Site::new();
    site.kill_cheap();
    site.bench.wait_ms(1000);
    assert_eq!(site.fetch(site.cheap), [site.dear, site.cheap]);
    assert_eq!(site.fetch(site.cheap), [site.cheap]);
}

#[test]
fn a_flood_of_names_nobody_answers_does_not_move_readers() {
    let mut site = Site::new();
    let attacker = site.bench.remote();
    assert_eq!(site.fetch(site.cheap), [site.cheap]);
    for round in 0..50 {
        for number in 0..20 {
            let uri = format!("/a/none/{round}/{number}");
            assert_eq!(faces(&site.bench.interest(attacker, &uri, 1)), [site.cheap]);
            site.bench.wait_ms(10);
            // Repeated, so that both next hops are silent about it.
            site.bench.now_ns += 10 * MS;
            assert_eq!(faces(&site.bench.interest(attacker, &uri, 2)), [site.dear]);
        }
    }
    // No reader has asked for as long as that, and still:
    assert_eq!(site.fetch(site.cheap), [site.cheap]);
}

#[test]
fn a_flood_that_only_the_other_next_hop_answers_does_not_move_readers() {
    let mut site = Site::new();
    let attacker = site.bench.remote();
    for _ in 0..20 {
        site.fetch_at_second_try(attacker);
        site.fetch_at_second_try(attacker);
        assert_eq!(site.fetch(site.cheap), [site.cheap], "it answers readers, so it is alive");
    }
}

#[test]
fn a_holder_that_only_answers_late_is_not_dead() {
    let mut site = Site::new();
    for _ in 0..20 {
        site.fetch_at_second_try(site.consumer);
        let uri = format!("/a/{}", site.next);
        assert_eq!(site.bench.data(site.cheap, &uri, 0), [], "too late for this one");
    }
}

#[test]
fn who_knows_no_route_is_left_if_another_answers() {
    let mut site = Site::new();
    let refused = |site: &mut Site, uri: &str, reason: u64| -> Vec<Sent> {
        let sent = site.bench.interest(site.consumer, uri, 1);
        assert_eq!(faces(&sent), [site.cheap]);
        site.bench.wait_ms(150);
        site.bench.nack(site.cheap, &sent[0].wire, reason)
    };
    // Congestion is no sign of death, and what the other refuses, too, is no evidence.
    for _ in 0..5 {
        let uri = site.fresh_name();
        let next = refused(&mut site, &uri, nack_reason::CONGESTION);
        assert_eq!(faces(&next), [site.dear]);
        assert_eq!(faces(&site.bench.data(site.dear, &uri, 0)), [site.consumer]);
        let uri = site.fresh_name();
        let next = refused(&mut site, &uri, nack_reason::NO_ROUTE);
        site.bench.nack(site.dear, &next[0].wire, nack_reason::NO_ROUTE);
    }
    for _ in 0..3 {
        let uri = site.fresh_name();
        let next = refused(&mut site, &uri, nack_reason::NO_ROUTE);
        assert_eq!(faces(&next), [site.dear]);
        assert_eq!(faces(&site.bench.data(site.dear, &uri, 0)), [site.consumer]);
    }
    assert_eq!(site.fetch(site.dear), [site.dear]);
}

#[test]
fn what_only_the_suspended_next_hop_has_is_still_found() {
    let mut site = Site::new();
    site.kill_cheap();
    let uri = site.fresh_name();
    assert_eq!(faces(&site.bench.interest(site.consumer, &uri, 1)), [site.dear]);
    site.bench.wait_ms(300);
    assert_eq!(faces(&site.bench.interest(site.consumer, &uri, 2)), [site.cheap]);
    assert_eq!(faces(&site.bench.data(site.cheap, &uri, 0)), [site.consumer]);
    assert_eq!(site.fetch(site.cheap), [site.cheap], "it has answered");
}

#[test]
fn where_there_is_no_choice_nothing_is_measured() {
    let mut bench = Bench::new();
    let (consumer, only) = (bench.local(), bench.remote());
    bench.route("/a", only, 10);
    for number in 0..20 {
        let uri = format!("/a/{number}");
        assert_eq!(faces(&bench.interest(consumer, &uri, 1)), [only]);
        bench.data(only, &uri, 0);
    }
    assert_eq!(bench.forwarder.occupancy().measured, 0);
}
