//! Keys of sessions at this head, and who speaks under them.
//!
//! Keys live in memory alone and for one term: a head that was started again knows none, says so,
//! and the user signs and agrees anew. What they stand for is looked up for every packet: they
//! count as long as the row of the user's key is there and is the one under which they were agreed,
//! and as long as its certificate does. Whether a command was executed already the request id says,
//! here as for signatures; the window of numbers keeps packets from being answered for ever.

use std::collections::BTreeMap;
use std::sync::Arc;

use byname_catalog::id::SessionId;
use byname_catalog::{Failure, KeyHolder, Reader};
use byname_packet::{Interest, NameRef, signature_type};
use byname_security::cert::Certificate;
use byname_site::{SessionKeys, SiteName};

use crate::commands::CommandAnswer;
use crate::keys::{Sender, Who, key_name};

/// Keys at a time, at most; of one user; of one door, which has some for each of its users.
const KEYS_MAX: usize = 4096;
const KEYS_PER_USER_MAX: usize = 256;
const KEYS_PER_DOOR_MAX: usize = 1024;
/// Time without a packet after which keys are forgotten.
const IDLE_NS: u64 = 600_000_000_000;
/// Time after which they are, whatever came.
pub(crate) const LIFE_NS: u64 = 3_600_000_000_000;
/// Numbers behind the highest that count.
const WINDOW: u64 = 1024;
/// How far a number may be above the highest.
const AHEAD_MAX: u64 = 1 << 16;

/// Who agreed upon keys, and under which row.
#[derive(Debug, Clone)]
pub(crate) struct Holder {
    pub(crate) who: Who,
    pub(crate) certificate: Certificate,
    pub(crate) is_lent: bool,
}

/// An agreement.
pub(crate) struct Agreement {
    pub(crate) keys: SessionKeys,
    pub(crate) holder: Holder,
    /// When the user signed it, by his clock.
    pub(crate) signed_ms: u64,
    /// Name of its Interest, and its answer: the same Interest gets it again.
    pub(crate) name: Vec<u8>,
    pub(crate) answer: CommandAnswer,
}

struct Entry {
    agreement: Agreement,
    keys: Arc<SessionKeys>,
    window: Window,
    expires_ns: u64,
    used_ns: u64,
}

fn keys_max(who: &Who) -> usize {
    if matches!(who, Who::Door(_)) { KEYS_PER_DOOR_MAX } else { KEYS_PER_USER_MAX }
}

/// See the module.
#[derive(Default)]
pub(crate) struct SessionTable {
    entries: BTreeMap<SessionId, Entry>,
}

/// Reason for which a packet under keys does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotOpened {
    /// There are no such keys, or the code is not theirs.
    #[error("there are no such keys of a session")]
    Unknown,
    /// The user's key is not what it was, or its certificate has ended.
    #[error("the user's key does not count any more")]
    Revoked,
    /// Its number is too old, too high, or was used for another question.
    #[error("its number is not next")]
    Number,
}

/// A packet under keys of a session.
pub(crate) struct Opened {
    pub(crate) sender: Sender,
    pub(crate) session: SessionId,
    pub(crate) keys: Arc<SessionKeys>,
    /// It came before.
    pub(crate) is_repeated: bool,
}

/// True for a packet that is under keys of a session, as it says.
pub(crate) fn is_sealed(interest: &Interest<'_>) -> bool {
    let info = interest.signature_info.as_ref();
    info.is_some_and(|info| info.signature_type == signature_type::HMAC)
}

impl SessionTable {
    /// The answer to an agreement that was made by this very Interest.
    pub(crate) fn repeated(&self, session: SessionId, name: NameRef<'_>) -> Option<CommandAnswer> {
        let agreement = &self.entries.get(&session)?.agreement;
        (agreement.name == name.value()).then(|| agreement.answer.clone())
    }

    /// True if an agreement that was signed then is the latest: an older one, sent again by
    /// somebody, would end the keys in use.
    pub(crate) fn is_latest(&self, session: SessionId, signed_ms: u64) -> bool {
        let entry = self.entries.get(&session);
        entry.is_none_or(|entry| entry.agreement.signed_ms < signed_ms)
    }

    /// Takes the keys of a session in place of those it had.
    pub(crate) fn insert(&mut self, session: SessionId, agreement: Agreement, unix_ns: u64) {
        self.entries.remove(&session);
        self.entries.retain(|_, entry| entry.is_alive(unix_ns));
        self.make_room(&agreement.holder.who);
        let keys = Arc::new(agreement.keys.clone());
        let expires_ns = unix_ns.saturating_add(LIFE_NS);
        let window = Window::default();
        let entry = Entry { agreement, keys, window, expires_ns, used_ns: unix_ns };
        self.entries.insert(session, entry);
    }

    /// The session is over.
    pub(crate) fn forget(&mut self, session: SessionId) {
        self.entries.remove(&session);
    }

    /// Whoever has the most loses what he has not used for the longest: who opens many sessions
    /// ends his own.
    fn make_room(&mut self, who: &Who) {
        let mut counts: BTreeMap<&Who, usize> = BTreeMap::new();
        for entry in self.entries.values() {
            *counts.entry(&entry.agreement.holder.who).or_default() += 1;
        }
        let own = counts.get(who).copied().unwrap_or_default();
        let most = counts.iter().max_by_key(|(_, count)| **count).map(|(who, _)| *who);
        let loser = match own >= keys_max(who) {
            true => who,
            false if self.entries.len() < KEYS_MAX => return,
            false => most.unwrap_or(who),
        };
        let of_loser = self.entries.iter().filter(|(_, it)| it.agreement.holder.who == *loser);
        let oldest = of_loser.min_by_key(|(_, entry)| entry.used_ns).map(|(session, _)| *session);
        oldest.and_then(|session| self.entries.remove(&session));
    }

    /// Who sent a packet under keys of a session.
    ///
    /// # Errors
    /// [`NotOpened`]; the inner one is of the catalog.
    pub(crate) fn open(
        &mut self,
        site: &SiteName,
        interest: &Interest<'_>,
        (reader, unix_ns): (&Reader<'_>, u64),
    ) -> Result<Result<Opened, NotOpened>, Failure> {
        let locator = interest.signature_info.as_ref().and_then(|info| info.key_name());
        let session = locator.and_then(|locator| site.parse_session_keys(locator));
        let entry = session.and_then(|session| Some((session, self.entries.get_mut(&session)?)));
        let Some((session, entry)) = entry.filter(|(_, entry)| entry.is_alive(unix_ns)) else {
            return Ok(Err(NotOpened::Unknown));
        };
        let Some(number) = entry.keys.opened(interest) else {
            return Ok(Err(NotOpened::Unknown));
        };
        let holder = &entry.agreement.holder;
        if !holder.counts(reader, unix_ns)? {
            self.entries.remove(&session);
            return Ok(Err(NotOpened::Revoked));
        }
        let is_repeated = match entry.window.note(number) {
            Seen::Never => false,
            Seen::Before => true,
            Seen::Outside => return Ok(Err(NotOpened::Number)),
        };
        entry.used_ns = entry.used_ns.max(unix_ns);
        let who = holder.who.clone();
        let key_name = key_name(holder.certificate.name()).map(|name| name.value().to_vec());
        let sender = Sender {
            who,
            key: holder.certificate.public_key().clone(),
            key_name: key_name.unwrap_or_default(),
            is_lent: holder.is_lent,
        };
        Ok(Ok(Opened { sender, session, keys: Arc::clone(&entry.keys), is_repeated }))
    }
}

impl Entry {
    fn is_alive(&self, unix_ns: u64) -> bool {
        self.expires_ns > unix_ns && self.used_ns.saturating_add(IDLE_NS) > unix_ns
    }
}

impl Holder {
    /// True while the key may sign for the user, and its certificate lasts.
    fn counts(&self, reader: &Reader<'_>, unix_ns: u64) -> Result<bool, Failure> {
        let Some(name) = key_name(self.certificate.name()) else { return Ok(false) };
        let row = reader.key(name.value())?;
        let is_same = row.is_some_and(|row| {
            row.counts_at(unix_ns)
                && row.certificate == self.certificate.wire()
                && match (&row.holder, &self.who) {
                    (KeyHolder::User(user), Who::User(own)) => user == own,
                    (KeyHolder::Door(door), Who::Door(own)) => door == own,
                    _ => false,
                }
        });
        Ok(is_same && self.certificate.check_validity(unix_ns / 1_000_000_000).is_ok())
    }
}

/// Numbers that were seen, of the last [`WINDOW`].
#[derive(Debug, Default)]
struct Window {
    highest: u64,
    seen: [u64; (WINDOW / 64) as usize],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Never,
    Before,
    /// It is behind the window, or far ahead.
    Outside,
}

impl Window {
    fn note(&mut self, number: u64) -> Seen {
        let is_behind = number <= self.highest.saturating_sub(WINDOW) || number == 0;
        if is_behind || number > self.highest.saturating_add(AHEAD_MAX) {
            return Seen::Outside;
        }
        let behind = self.highest.max(number.saturating_sub(WINDOW));
        for skipped in (behind..number).map(|below| below + 1) {
            let (word, bit) = place_of(skipped);
            self.seen[word] &= !bit;
        }
        self.highest = self.highest.max(number);
        let (word, bit) = place_of(number);
        let seen = if self.seen[word] & bit == 0 { Seen::Never } else { Seen::Before };
        self.seen[word] |= bit;
        seen
    }
}

fn place_of(number: u64) -> (usize, u64) {
    let bit = number % WINDOW;
    ((bit / 64) as usize, 1 << (bit % 64))
}

#[cfg(test)]
mod tests;
