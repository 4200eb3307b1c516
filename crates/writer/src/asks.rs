//! Interests in flight: each is sent again, with another Nonce, until it is answered or its time is
//! over. A repeated command gets the first answer, so nothing is done twice.

use std::collections::BTreeMap;

use byname_packet::lp::nack_reason;
use byname_packet::{Interest, Name, NameRef};
use byname_retry::BackOff;
use byname_site::HeadFailure;

const MS_NS: u64 = 1_000_000;
/// Pauses before an Interest that nobody answers is sent again. Disks may take a second.
const SILENCE: BackOff = BackOff { min_ns: 2500 * MS_NS, max_ns: 8000 * MS_NS };
/// The same for a command: another head may have come. One that is at work on it takes the
/// repetition for what it is.
const HEAD_SILENCE: BackOff = BackOff { min_ns: 1000 * MS_NS, max_ns: 1500 * MS_NS };
/// Pauses after a Nack.
const NACK: BackOff = BackOff { min_ns: 100 * MS_NS, max_ns: 1000 * MS_NS };
/// Time after which nobody is expected to answer any more.
pub(crate) const PATIENCE_NS: u64 = 60_000 * MS_NS;
/// The same if there is no route to somebody who has never answered, or who can be replaced.
const NO_ROUTE_NS: u64 = 3000 * MS_NS;

/// Lateness from which on whoever drives this was stopped: the process, or the machine.
const STOPPED_NS: u64 = 2000 * MS_NS;

/// Why an Interest is given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GivenUp {
    Silence(Heard),
    NoRoute,
}

/// What came last to an Interest that has no outcome yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Heard {
    /// Nothing.
    #[default]
    Nothing,
    /// Nobody takes it; the reason of the Nack.
    Nack(u64),
    /// A head could not do it then.
    Failure(HeadFailure, String),
    /// An answer under keys that are not those that it was asked under.
    OtherKeys,
    /// An answer whose certificate is not there yet.
    NoCertificate,
}

impl std::fmt::Display for Heard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing came"),
            Self::Nack(reason) => write!(f, "nobody took it at last, Nack {reason}"),
            Self::Failure(failure, reason) => write!(f, "the head at last: {failure}: {reason}"),
            Self::OtherKeys => f.write_str("what came last was under other keys"),
            Self::NoCertificate => f.write_str("the certificate of who answers did not come"),
        }
    }
}

/// Interests in flight, each with what it is about.
#[derive(Debug)]
pub(crate) struct Asks<T> {
    asks: BTreeMap<Name, Ask<T>>,
}

#[derive(Debug)]
struct Ask<T> {
    about: T,
    wire: Vec<u8>,
    failures: u32,
    silence: BackOff,
    since_ns: u64,
    due_ns: u64,
    /// Since when there has been no route.
    no_route_ns: Option<u64>,
    /// Time without a route after which it is given up.
    no_route_max_ns: u64,
    heard: Heard,
}

impl<T: Clone> Asks<T> {
    pub(crate) fn new() -> Self {
        Self { asks: BTreeMap::new() }
    }

    /// Sends an Interest, which has no Nonce.
    pub(crate) fn ask(&mut self, about: T, wire: Vec<u8>, now_ns: u64) {
        let Ok(interest) = Interest::decode(&wire) else { return };
        let name = interest.name.to_name();
        let (since_ns, due_ns) = (now_ns, now_ns);
        let (no_route_ns, no_route_max_ns) = (None, NO_ROUTE_NS);
        let (failures, silence, heard) = (0, SILENCE, Heard::Nothing);
        let ask = Ask {
            about,
            wire,
            failures,
            silence,
            since_ns,
            due_ns,
            no_route_ns,
            no_route_max_ns,
            heard,
        };
        self.asks.insert(name, ask);
    }

    /// Sends an Interest to somebody who has answered before: he is waited for as long as anybody
    /// who is silent, though there is no route meanwhile.
    pub(crate) fn ask_known(&mut self, about: T, wire: Vec<u8>, now_ns: u64) {
        let Ok(interest) = Interest::decode(&wire) else { return };
        let name = interest.name.to_name();
        self.ask(about, wire, now_ns);
        if let Some(ask) = self.asks.get_mut(&name) {
            ask.no_route_max_ns = PATIENCE_NS;
        }
    }

    /// Sends a command. A head that has answered before is waited for as long as anybody who is
    /// silent, though there is no route meanwhile.
    pub(crate) fn ask_head(&mut self, about: T, wire: Vec<u8>, (now_ns, is_known): (u64, bool)) {
        let Ok(interest) = Interest::decode(&wire) else { return };
        let name = interest.name.to_name();
        self.ask(about, wire, now_ns);
        if let Some(ask) = self.asks.get_mut(&name) {
            ask.silence = HEAD_SILENCE;
            if is_known {
                ask.no_route_max_ns = PATIENCE_NS;
            }
        }
    }

    /// Sends an Interest again later, as if for the first time.
    pub(crate) fn ask_again(&mut self, about: T, wire: Vec<u8>, (now_ns, pause_ns): (u64, u64)) {
        let Ok(interest) = Interest::decode(&wire) else { return };
        let name = interest.name.to_name();
        self.ask(about, wire, now_ns);
        if let Some(ask) = self.asks.get_mut(&name) {
            ask.due_ns = now_ns + pause_ns;
        }
    }

    /// The subject of an Interest that Data of this name answers.
    pub(crate) fn about(&self, name: NameRef<'_>) -> Option<&T> {
        self.asks.get(name.value()).map(|ask| &ask.about)
    }

    /// True if there is one such.
    pub(crate) fn any(&self, is_such: impl Fn(NameRef<'_>, &T) -> bool) -> bool {
        self.asks.iter().any(|(name, ask)| is_such(name.view(), &ask.about))
    }

    /// Ends an Interest.
    pub(crate) fn finish(&mut self, name: NameRef<'_>) {
        self.asks.remove(name.value());
    }

    /// Ends Interests about something.
    pub(crate) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.asks.retain(|_, ask| keep(&ask.about));
    }

    /// A Nack came.
    pub(crate) fn handle_nack(&mut self, name: NameRef<'_>, reason: u64, clock: (u64, u64)) {
        let (now_ns, random) = clock;
        let Some(ask) = self.asks.get_mut(name.value()) else { return };
        match reason {
            nack_reason::NO_ROUTE => {
                ask.no_route_ns.get_or_insert(now_ns);
            }
            _ => ask.no_route_ns = None,
        }
        ask.heard = Heard::Nack(reason);
        let pause_ns = NACK.pause_ns(ask.failures.max(1), random);
        ask.due_ns = ask.due_ns.min(now_ns + pause_ns);
    }

    /// Notes what came that is no outcome.
    pub(crate) fn note_heard(&mut self, name: NameRef<'_>, heard: Heard) {
        if let Some(ask) = self.asks.get_mut(name.value()) {
            ask.heard = heard;
        }
    }

    /// Everything is sent again now: what kept answers from being understood is there.
    pub(crate) fn hasten(&mut self, now_ns: u64) {
        self.asks.values_mut().for_each(|ask| ask.due_ns = now_ns);
    }

    /// The next packet to send.
    pub(crate) fn poll_send(&mut self, now_ns: u64, random: u64) -> Option<Vec<u8>> {
        let ask = self.asks.values_mut().find(|ask| ask.due_ns <= now_ns)?;
        ask.failures += 1;
        ask.due_ns = now_ns + ask.silence.pause_ns(ask.failures, random);
        let mut out = Vec::with_capacity(ask.wire.len() + 8);
        let nonce = (random as u32).to_be_bytes();
        Interest::decode(&ask.wire).ok()?.encode_forwarded(nonce, None, &mut out);
        Some(out)
    }

    /// Time in which this program was stopped counts for nobody's patience: who was not asked
    /// cannot have answered.
    pub(crate) fn handle_time(&mut self, now_ns: u64) {
        let Some(due_ns) = self.poll_deadline() else { return };
        let late_ns = now_ns.saturating_sub(due_ns);
        if late_ns < STOPPED_NS {
            return;
        }
        for ask in self.asks.values_mut() {
            ask.since_ns += late_ns;
            ask.no_route_ns = ask.no_route_ns.map(|since_ns| since_ns + late_ns);
        }
    }

    /// The next one whose time is over.
    pub(crate) fn poll_given_up(&mut self, now_ns: u64) -> Option<(T, GivenUp)> {
        let over = |since_ns: u64, bound_ns| now_ns.saturating_sub(since_ns) >= bound_ns;
        let (name, why) = self.asks.iter().find_map(|(name, ask)| {
            if ask.no_route_ns.is_some_and(|since_ns| over(since_ns, ask.no_route_max_ns)) {
                return Some((name.clone(), GivenUp::NoRoute));
            }
            let silence = || GivenUp::Silence(ask.heard.clone());
            over(ask.since_ns, PATIENCE_NS).then(|| (name.clone(), silence()))
        })?;
        self.asks.remove(&name).map(|ask| (ask.about, why))
    }

    /// When there is something to do.
    pub(crate) fn poll_deadline(&self) -> Option<u64> {
        let deadline = |ask: &Ask<T>| {
            let no_route_ns =
                ask.no_route_ns.map_or(u64::MAX, |since_ns| since_ns + ask.no_route_max_ns);
            ask.due_ns.min(ask.since_ns + PATIENCE_NS).min(no_route_ns)
        };
        self.asks.values().map(deadline).min()
    }
}

#[cfg(test)]
mod tests {
    use super::{Asks, GivenUp, Heard, MS_NS, PATIENCE_NS};
    use byname_packet::InterestBuilder;

    fn asked(now_ns: u64) -> Asks<u8> {
        let name: byname_packet::Name = "/lab/32=catalog/create".parse().unwrap();
        let (mut asks, mut wire) = (Asks::new(), Vec::new());
        InterestBuilder::new(name.view()).encode(&mut wire);
        asks.ask_head(1, wire, (now_ns, true));
        asks
    }

    /// Runs it as a driver does until a moment; how often it was sent, and what was given up.
    fn run(asks: &mut Asks<u8>, until_ns: u64) -> (usize, Option<(u8, GivenUp)>) {
        let mut sent = 0;
        while let Some(now_ns) = asks.poll_deadline().filter(|due_ns| *due_ns <= until_ns) {
            asks.handle_time(now_ns);
            let given_up = asks.poll_given_up(now_ns);
            if given_up.is_some() {
                return (sent, given_up);
            }
            sent += usize::from(asks.poll_send(now_ns, 0).is_some());
        }
        (sent, None)
    }

    #[test]
    fn who_is_silent_for_the_time_is_given_up() {
        let (sent, given_up) = run(&mut asked(0), 2 * PATIENCE_NS);
        assert!(sent > 30, "{sent}");
        assert_eq!(given_up, Some((1, GivenUp::Silence(Heard::Nothing))));
    }

    /// A program that was stopped (SIGSTOP, a frozen machine) asks again before it says that nobody
    /// answers.
    #[test]
    fn time_in_which_the_program_was_stopped_counts_for_nobodys_patience() {
        let mut asks = asked(0);
        assert!(run(&mut asks, 5000 * MS_NS).0 >= 4);
        let woken_ns = 5000 * MS_NS + 10 * PATIENCE_NS;
        asks.handle_time(woken_ns);
        assert_eq!(asks.poll_given_up(woken_ns), None);
        assert!(asks.poll_send(woken_ns, 0).is_some(), "it is asked again");
        let (sent, given_up) = run(&mut asks, woken_ns + 2 * PATIENCE_NS);
        assert!(sent > 25, "{sent}");
        assert_eq!(
            given_up,
            Some((1, GivenUp::Silence(Heard::Nothing))),
            "who stays silent is given up"
        );
    }
}
