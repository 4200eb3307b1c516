//! The site as a whole: its counters, the head's lease, users, disks, keys.

use crate::codec::{Decoder, Encoder, Malformed, key};
use crate::engine::Table;
use crate::id::{DiskId, LeaseEpoch, epoch_of};
use crate::view::Record;

pub(crate) const SITE_KEY: &[u8] = b"site";
pub(crate) const COUNTERS_KEY: &[u8] = b"counters";
pub(crate) const LEASE_KEY: &[u8] = b"lease";

/// The site whose catalog this is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Its name, as on the wire. Receipts name it.
    pub name: Vec<u8>,
}

impl Record for Site {
    const TABLE: Table = Table::Meta;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.octets(&self.name);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(Self { name: decoder.octets()?.to_vec() })
    }
}

/// The last numbers given out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Of transactions.
    pub(crate) transaction: u64,
    /// Of inodes, versions, sessions and disks: one count for all.
    pub(crate) issued: u64,
    /// The last issued of each former epoch: what lies above them is of a future that was lost.
    pub(crate) former: Vec<u64>,
}

impl Counters {
    /// True if this catalog gave out the number.
    pub(crate) fn has_issued(&self, number: u64) -> bool {
        let of_epoch = |last: &&u64| epoch_of(**last) == epoch_of(number);
        let last = self.former.iter().chain([&self.issued]).find(of_epoch);
        last.is_some_and(|last| number <= *last)
    }
}

impl Record for Counters {
    const TABLE: Table = Table::Meta;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.transaction);
        encoder.number(self.issued);
        encoder.number(self.former.len() as u64);
        self.former.iter().for_each(|last| encoder.number(*last));
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            transaction: decoder.number()?,
            issued: decoder.number()?,
            former: decoder.list(Decoder::number)?,
        })
    }
}

/// The head that executes commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Its term.
    pub epoch: LeaseEpoch,
    /// Its name.
    pub head: String,
    /// The end in nanoseconds of its clock, unless it is renewed.
    pub until_ns: u64,
}

impl Record for Lease {
    const TABLE: Table = Table::Meta;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.epoch);
        encoder.octets(self.head.as_bytes());
        encoder.number(self.until_ns);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let epoch = LeaseEpoch::decode(decoder)?;
        Ok(Self { epoch, head: decoder.text()?, until_ns: decoder.number()? })
    }
}

/// Somebody who may send commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Groups; the first is that of new files.
    pub groups: Vec<String>,
    /// True for those who run the site: modes do not bind them.
    pub is_operator: bool,
    /// Open sessions.
    pub session_count: u32,
    /// Open attempts.
    pub attempt_count: u32,
}

impl Record for User {
    const TABLE: Table = Table::User;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.groups.len() as u64);
        self.groups.iter().for_each(|group| encoder.octets(group.as_bytes()));
        encoder.octet(self.is_operator.into());
        encoder.number(self.session_count);
        encoder.number(self.attempt_count);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            groups: decoder.list(Decoder::text)?,
            is_operator: decoder.flag()?,
            session_count: decoder.narrow()?,
            attempt_count: decoder.narrow()?,
        })
    }
}

/// Most that a disk is said to be busy.
pub const DISK_LOAD_MAX: u8 = 4;

/// What people want of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskState {
    /// Takes new content.
    ReadWrite,
    /// Only serves.
    ReadOnly,
    /// Serves until its replicas are elsewhere.
    Drain,
    /// Is not asked for anything.
    Off,
}

/// One directory of a disk server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Space it belongs to.
    pub space: String,
    /// Disk server it is in. Replicas go to different ones while there are any.
    pub server: String,
    /// Rack, room or place; replicas go to different ones if servers leave a choice.
    pub label: String,
    /// Counts how often the directory was made anew. Older receipts do not count.
    pub generation: u64,
    /// What people want of it.
    pub state: DiskState,
    /// True while it answers.
    pub is_up: bool,
    /// Octets that content may take.
    pub capacity_bytes: u64,
    /// How busy it is, from 0 to [`DISK_LOAD_MAX`]: each step halves its chance to get new content.
    pub load: u8,
    /// Octets a second that leave it while it is drained, within what all may: 0 while that is
    /// paused, `u64::MAX` for no bound of its own.
    pub drain_bytes_per_s: u64,
}

impl Record for Disk {
    const TABLE: Table = Table::Disk;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.octets(self.space.as_bytes());
        encoder.octets(self.server.as_bytes());
        encoder.octets(self.label.as_bytes());
        encoder.number(self.generation);
        encoder.octet(match self.state {
            DiskState::ReadWrite => 1,
            DiskState::ReadOnly => 2,
            DiskState::Drain => 3,
            DiskState::Off => 4,
        });
        encoder.octet(self.is_up.into());
        encoder.number(self.capacity_bytes);
        encoder.octet(self.load);
        if self.drain_bytes_per_s != u64::MAX {
            encoder.number(self.drain_bytes_per_s);
        }
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            space: decoder.text()?,
            server: decoder.text()?,
            label: decoder.text()?,
            generation: decoder.number()?,
            state: match decoder.octet()? {
                1 => DiskState::ReadWrite,
                2 => DiskState::ReadOnly,
                3 => DiskState::Drain,
                4 => DiskState::Off,
                _ => return Err(Malformed),
            },
            is_up: decoder.flag()?,
            capacity_bytes: decoder.number()?,
            // Rows of before disks said so end here.
            load: if decoder.0.is_empty() { 0 } else { decoder.octet()? },
            // Those without a rate of their own do, too.
            drain_bytes_per_s: match decoder.0 {
                [] => u64::MAX,
                _ => decoder.number()?,
            },
        })
    }
}

pub(crate) fn disk_key(disk: DiskId) -> Vec<u8> {
    key([disk.0])
}

/// Whose signatures a key makes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyHolder {
    /// A user.
    User(String),
    /// A disk.
    Disk(DiskId),
    /// A door.
    Door(String),
}

/// A key that commands, orders and receipts may be signed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Whose it is.
    pub holder: KeyHolder,
    /// Its certificate, a whole packet. The catalog keeps it and looks at nothing in it.
    pub certificate: Vec<u8>,
    /// By which of his keys its holder lent it, and until when; `None` if operators added it.
    pub loan: Option<Loan>,
}

/// For how long a key signs that its holder has lent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loan {
    /// Name of the key that lent it. When that one goes, what it has lent goes, too.
    pub lender: Vec<u8>,
    /// When it ends.
    pub expires_ns: u64,
}

impl Key {
    /// True unless it was lent for a time that is over.
    pub fn counts_at(&self, now_ns: u64) -> bool {
        self.loan.as_ref().is_none_or(|loan| loan.expires_ns > now_ns)
    }
}

impl Record for Key {
    const TABLE: Table = Table::Key;

    fn encode(&self, encoder: &mut Encoder) {
        match &self.holder {
            KeyHolder::User(name) => {
                encoder.octet(1);
                encoder.octets(name.as_bytes());
            }
            KeyHolder::Disk(disk) => {
                encoder.octet(2);
                encoder.number(*disk);
            }
            KeyHolder::Door(name) => {
                encoder.octet(3);
                encoder.octets(name.as_bytes());
            }
        }
        encoder.octets(&self.certificate);
        if let Some(Loan { lender, expires_ns }) = &self.loan {
            encoder.octets(lender);
            encoder.number(*expires_ns);
        }
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let holder = match decoder.octet()? {
            1 => KeyHolder::User(decoder.text()?),
            2 => KeyHolder::Disk(DiskId::decode(decoder)?),
            3 => KeyHolder::Door(decoder.text()?),
            _ => return Err(Malformed),
        };
        let certificate = decoder.octets()?.to_vec();
        // Rows of keys that operators added end here.
        let loan = match decoder.0 {
            [] => None,
            _ => Some(Loan { lender: decoder.octets()?.to_vec(), expires_ns: decoder.number()? }),
        };
        Ok(Self { holder, certificate, loan })
    }
}

/// Octets on a disk, as the catalog counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskUsage {
    /// Of replicas.
    pub used_bytes: u64,
    /// Of open attempts.
    pub reserved_bytes: u64,
}

impl Record for DiskUsage {
    const TABLE: Table = Table::DiskUsage;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.used_bytes);
        encoder.number(self.reserved_bytes);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(Self { used_bytes: decoder.number()?, reserved_bytes: decoder.number()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_of_before_they_had_a_load_and_a_rate_are_read() {
        let mut row = b"\x04main\x01s\x01p\x01\x03\x01\x05".to_vec();
        let read = |row: &[u8]| Disk::decode(&mut Decoder(row)).unwrap();
        let disk = read(&row);
        assert_eq!((disk.capacity_bytes, disk.load, disk.drain_bytes_per_s), (5, 0, u64::MAX));
        row.push(2);
        assert_eq!(read(&row), Disk { load: 2, ..disk.clone() });
        for drain_bytes_per_s in [0, 7, u64::MAX - 1, u64::MAX] {
            let mut encoder = Encoder::default();
            let rated = Disk { load: 2, drain_bytes_per_s, ..disk.clone() };
            rated.encode(&mut encoder);
            assert_eq!(read(&encoder.0), rated);
        }
    }
}
