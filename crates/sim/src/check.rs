//! Packets that a forwarder may send, tracked without its help.
//!
//! Every Interest is given to the forwarder under a PIT token of the ledger's own, whatever token
//! its sender chose; when a packet leaves, the token says which Interest it answers, and the
//! sender's own token is put back. So the ledger knows of each answer whether somebody asked for
//! it, on that face, under that name, and is still waiting; that it comes only once; and how many
//! different Interests can be pending at all.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use byname_packet::lp::{LpHeader, nack_reason};
use byname_packet::{Data, Interest, Name, types};

/// Timers of forwarders fire late by up to 1.05 ms; what has expired may be there so long.
const LATE_NS: u64 = 5_000_000;
/// Interests of one name that the programs of a host may send without an answer: one a second, for
/// as long as they bear an outage, and the first few faster.
const TRANSMISSIONS_MAX: u32 = 128;
/// The same, where each was refused: programs may be told to come again a little later.
const REFUSALS_MAX: u32 = 1000;
/// Time that a program may go on asking for one name without an answer: what has begun bears an
/// outage of 60 s, and the last pause and Interest come on top.
const ASKING_NS_MAX: u64 = 70_000_000_000;
/// After such a pause it is asked for anew.
const PAUSE_NS: u64 = 8_000_000_000;
/// Answered Interests that are remembered, to tell whose token comes a second time.
const ANSWERED_MAX: usize = 256;
/// Names that programs of one host ask for at a time; more are not watched.
const WATCHED_MAX: usize = 1 << 16;

/// A [`Broken`] as `format!` makes text.
macro_rules! broken {
    ($($part:tt)*) => {
        Broken(format!($($part)*))
    };
}

/// A promise that was broken, in words.
#[derive(Debug)]
struct Broken(String);

/// A PIT token, wherever it comes from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Token {
    octets: [u8; 32],
    len: usize,
}

impl Token {
    /// These octets, of which there are at most 32.
    pub(crate) fn new(octets: &[u8]) -> Self {
        let mut token = Token { octets: [0; 32], len: octets.len().min(32) };
        token.octets[..token.len].copy_from_slice(&octets[..token.len]);
        token
    }

    /// The octets, if there are any.
    pub(crate) fn get(&self) -> Option<&[u8]> {
        (self.len > 0).then(|| &self.octets[..self.len])
    }
}

/// Identity of an Interest: face, name with selectors.
type Key = (usize, Name, Selectors);

/// What makes different Interests of one name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Selectors {
    can_be_prefix: bool,
    must_be_fresh: bool,
    past_caches: bool,
    hint: Vec<Name>,
}

impl Selectors {
    fn of(interest: &Interest<'_>) -> Self {
        let hint = interest.forwarding_hint.iter().flat_map(|hint| hint.names());
        Self {
            can_be_prefix: interest.can_be_prefix,
            must_be_fresh: interest.must_be_fresh,
            past_caches: interest.past_caches,
            hint: hint.map(|name| name.to_name()).collect(),
        }
    }
}

#[derive(Debug)]
struct Asked {
    key: Key,
    nonce: Option<[u8; 4]>,
    expires_ns: u64,
    /// The token that its sender wants back.
    own: Token,
}

/// A name that a program asks for.
#[derive(Debug)]
struct Watched {
    count: u32,
    refused: u32,
    first_ns: u64,
    last_ns: u64,
}

/// See the module. One for each forwarder that runs.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    asked: BTreeMap<u64, Asked>,
    /// The numbers under which the same was asked, ascending.
    same: BTreeMap<Key, Vec<u64>>,
    /// Number of ports that wait for a name.
    names: BTreeMap<Name, usize>,
    expiries: BTreeSet<(u64, u64)>,
    watched: BTreeMap<(usize, Name), Watched>,
    /// The last that were answered, with their ports.
    answered: VecDeque<(u64, usize)>,
    count: u64,
    /// The first promise that was broken.
    pub(crate) fault: Option<String>,
}

impl Ledger {
    /// Takes note of a packet that the forwarder is about to see; the token under which it shall
    /// see it.
    pub(crate) fn arrives(
        &mut self,
        (port, is_program): (usize, bool),
        header: &LpHeader<'_>,
        packet: &[u8],
        now_ns: u64,
    ) -> Token {
        let own = header.pit_token.map(Token::new).unwrap_or_default();
        if header.nack.is_some() || packet.first() != Some(&(types::INTEREST as u8)) {
            return own;
        }
        let Ok(interest) = Interest::decode(packet) else { return own };
        self.expire(now_ns);
        let name = interest.name.to_name();
        if is_program {
            self.watch(port, &name, now_ns);
        }
        self.count += 1;
        let number = self.count;
        let lifetime_ns = interest.lifetime_ms_or_default().saturating_mul(1_000_000);
        let expires_ns = now_ns.saturating_add(lifetime_ns);
        let key = (port, name, Selectors::of(&interest));
        let same = self.same.entry(key.clone()).or_default();
        same.push(number);
        if same.len() == 1 {
            *self.names.entry(key.1.clone()).or_default() += 1;
        }
        self.expiries.insert((expires_ns, number));
        self.asked.insert(number, Asked { key, nonce: interest.nonce, expires_ns, own });
        Token::new(&number.to_be_bytes())
    }

    /// Takes note of a packet that leaves; the token with which it shall leave.
    pub(crate) fn leaves(
        &mut self,
        (port, is_program): (usize, bool),
        header: &LpHeader<'_>,
        packet: &[u8],
        now_ns: u64,
    ) -> Token {
        let own = header.pit_token.map(Token::new).unwrap_or_default();
        let is_interest = packet.first() == Some(&(types::INTEREST as u8));
        let checked = match (is_interest, header.nack) {
            (true, None) => self.check_interest(packet).map(|()| own),
            (true, Some(reason)) => self.check_nack(port, header, reason, packet, now_ns),
            (false, _) => self.check_data((port, is_program), header, packet, now_ns),
        };
        checked.unwrap_or_else(|Broken(what)| {
            self.fault.get_or_insert(what);
            own
        })
    }

    /// Different Interests that may be pending.
    pub(crate) fn pending_max(&mut self, now_ns: u64) -> usize {
        self.expire(now_ns);
        self.same.len()
    }

    /// Nothing is known any more, because the forwarder knows nothing any more.
    pub(crate) fn forget(&mut self) {
        let (fault, count) = (self.fault.take(), self.count);
        *self = Ledger { fault, count, ..Ledger::default() };
    }

    fn check_interest(&self, packet: &[u8]) -> Result<(), Broken> {
        let interest = Interest::decode(packet).map_err(|error| {
            broken!("nothing malformed leaves a forwarder: an Interest, {error}")
        })?;
        let name = interest.name.to_name();
        // A forwarder may ask for routes and certificates itself; nobody here makes it do so.
        if self.names.contains_key(&name) {
            return Ok(());
        }
        Err(broken!("nothing unsolicited: nobody waits for {name}, which is asked for"))
    }

    fn check_nack(
        &mut self,
        port: usize,
        header: &LpHeader<'_>,
        reason: u64,
        packet: &[u8],
        now_ns: u64,
    ) -> Result<Token, Broken> {
        let interest = Interest::decode(packet)
            .map_err(|error| broken!("nothing malformed leaves a forwarder: a Nack, {error}"))?;
        let number = self.solicited(port, header, now_ns)?;
        let Some(asked) = self.asked.get(&number) else { return Ok(Token::default()) };
        let own = asked.own;
        // An Interest without a nonce gets one from the forwarder, and comes back with it. Programs
        // here send none, but a flipped bit makes an element that is ignored of a nonce.
        let is_same_nonce = match asked.nonce {
            Some(_) => asked.nonce == interest.nonce,
            None => interest.nonce.is_some(),
        };
        if asked.key.1.view() != interest.name || !is_same_nonce {
            return Err(broken!(
                "nothing unsolicited: a Nack for {} answers an Interest for {}",
                interest.name.to_name(),
                asked.key.1
            ));
        }
        if let Some(watched) = self.watched.get_mut(&(port, asked.key.1.clone())) {
            watched.count = watched.count.saturating_sub(1);
            watched.refused += 1;
        }
        if reason == nack_reason::DUPLICATE {
            // The same may be pending under another nonce.
            self.settle(number, false);
        } else {
            self.settle(number, true);
        }
        Ok(own)
    }

    fn check_data(
        &mut self,
        (port, is_program): (usize, bool),
        header: &LpHeader<'_>,
        packet: &[u8],
        now_ns: u64,
    ) -> Result<Token, Broken> {
        let data = Data::decode(packet)
            .map_err(|error| broken!("nothing malformed leaves a forwarder: Data, {error}"))?;
        let number = self.solicited(port, header, now_ns)?;
        let Some(asked) = self.asked.get(&number) else { return Ok(Token::default()) };
        let (own, name, can_be_prefix) = (asked.own, &asked.key.1, asked.key.2.can_be_prefix);
        let answers = if can_be_prefix {
            name.view().is_prefix_of(data.name)
        } else {
            name.view() == data.name
        };
        if !answers {
            let data = data.name.to_name();
            return Err(broken!("nothing unsolicited: {data} answers an Interest for {name}"));
        }
        if is_program {
            self.watched.remove(&(port, name.clone()));
        }
        self.settle(number, true);
        Ok(own)
    }

    /// The number of the Interest that a packet answers.
    fn solicited(&self, port: usize, header: &LpHeader<'_>, now_ns: u64) -> Result<u64, Broken> {
        let token = header.pit_token.and_then(|token| token.try_into().ok());
        let number = token.map(u64::from_be_bytes).unwrap_or_default();
        let Some(asked) = self.asked.get(&number) else {
            if let Some((_, owner)) = self.answered.iter().find(|it| it.0 == number && it.1 != port)
            {
                return Err(broken!(
                    "tokens go back where they came from: the token of port {owner} leaves over \
                     port {port}"
                ));
            }
            return Err(broken!(
                "nothing unsolicited: an answer leaves over port {port}, and nobody there asked, \
                 or was answered before"
            ));
        };
        if asked.key.0 != port {
            return Err(broken!(
                "tokens go back where they came from: the token of port {} leaves over port \
                 {port}, on an answer to {}",
                asked.key.0,
                asked.key.1
            ));
        }
        if asked.expires_ns <= now_ns {
            let name = &asked.key.1;
            return Err(broken!("nothing unsolicited: {name} is answered after its lifetime"));
        }
        Ok(number)
    }

    /// An Interest is answered, and perhaps with it those that asked the same before.
    fn settle(&mut self, number: u64, with_earlier: bool) {
        let Some(key) = self.asked.get(&number).map(|asked| asked.key.clone()) else { return };
        let Some(same) = self.same.get_mut(&key) else { return };
        let is_done = |it: u64| if with_earlier { it <= number } else { it == number };
        for done in same.iter().copied().filter(|it| is_done(*it)) {
            if let Some(asked) = self.asked.remove(&done) {
                self.answered.push_back((done, asked.key.0));
                self.expiries.remove(&(asked.expires_ns, done));
            }
        }
        same.retain(|it| !is_done(*it));
        while self.answered.len() > ANSWERED_MAX {
            self.answered.pop_front();
        }
        if same.is_empty() {
            self.same.remove(&key);
            self.leave_name(&key.1);
        }
    }

    fn leave_name(&mut self, name: &Name) {
        if let Some(count) = self.names.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                self.names.remove(name);
            }
        }
    }

    fn expire(&mut self, now_ns: u64) {
        while let Some((expires_ns, number)) = self.expiries.first().copied()
            && expires_ns + LATE_NS < now_ns
        {
            self.settle(number, false);
            self.expiries.remove(&(expires_ns, number));
        }
    }

    /// A program asks for a name, perhaps again.
    fn watch(&mut self, port: usize, name: &Name, now_ns: u64) {
        let key = (port, name.clone());
        if self.watched.len() >= WATCHED_MAX && !self.watched.contains_key(&key) {
            self.watched.retain(|_, watched| watched.last_ns + PAUSE_NS > now_ns);
            return;
        }
        let fresh = Watched { count: 0, refused: 0, first_ns: now_ns, last_ns: now_ns };
        let watched = self.watched.entry(key).or_insert(fresh);
        if watched.last_ns + PAUSE_NS < now_ns {
            (watched.count, watched.refused, watched.first_ns) = (0, 0, now_ns);
        }
        watched.count += 1;
        watched.last_ns = now_ns;
        let took_ns = now_ns - watched.first_ns;
        let is_too_often = watched.count > TRANSMISSIONS_MAX || watched.refused > REFUSALS_MAX;
        if is_too_often || took_ns > ASKING_NS_MAX {
            let (Watched { count, refused, .. }, seconds) = (watched, took_ns / 1_000_000_000);
            let what = format!(
                "retransmission ends: {name} was asked for {count} times in {seconds} s without \
                 an answer, and {refused} times with a refusal"
            );
            self.fault.get_or_insert(what);
        }
    }
}

#[cfg(test)]
mod tests {
    use byname_packet::InterestBuilder;

    use super::*;

    const NONCE: [u8; 4] = [1, 2, 3, 4];

    fn interest(nonce: Option<[u8; 4]>) -> Vec<u8> {
        let name: Name = "/site/file".parse().expect("a name");
        let (builder, mut wire) = (InterestBuilder::new(name.view()), Vec::new());
        match nonce {
            Some(nonce) => builder.nonce(nonce).encode(&mut wire),
            None => builder.encode(&mut wire),
        };
        wire
    }

    /// The fault in a Nack that carries `carried`, to an Interest with `sent`.
    fn fault_of_nack(sent: Option<[u8; 4]>, carried: Option<[u8; 4]>) -> Option<String> {
        let mut ledger = Ledger::default();
        let token = ledger.arrives((1, false), &LpHeader::default(), &interest(sent), 0);
        let nack = Some(nack_reason::NO_ROUTE);
        let header = LpHeader { nack, pit_token: token.get(), ..LpHeader::default() };
        ledger.leaves((1, false), &header, &interest(carried), 1);
        ledger.fault
    }

    #[test]
    fn a_nack_carries_the_nonce_of_its_interest_or_one_that_the_forwarder_had_to_make() {
        assert_eq!(fault_of_nack(Some(NONCE), Some(NONCE)), None);
        assert_eq!(fault_of_nack(None, Some(NONCE)), None);
        for (sent, carried) in [(Some(NONCE), Some([9; 4])), (Some(NONCE), None), (None, None)] {
            let fault = fault_of_nack(sent, carried);
            assert!(fault.is_some_and(|it| it.contains("nothing unsolicited")), "{sent:?}");
        }
    }
}
