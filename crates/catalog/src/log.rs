//! The change log: what each transaction changed, row by row.
//!
//! A record has the transaction's writes themselves, but for kept answers. Applied in order to an
//! older state they give the newer one exactly, and a disk's part of the log is what happened to
//! the rows of its replicas.

use crate::codec::{Decoder, Encoder, Malformed};
use crate::engine::{Table, Writes};
use crate::id::{LeaseEpoch, TransactionNumber};
use crate::view::Record;

/// A transaction in the change log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    /// Its number; 0 while it is read from its row, whose key has it.
    pub number: TransactionNumber,
    /// Term of the head that executed it.
    pub epoch: LeaseEpoch,
    /// Time of the head's clock, in nanoseconds since 1970.
    pub at_ns: u64,
    /// The user it was for; nobody for what the head did by itself.
    pub user: String,
    /// Short name of the command.
    pub command: String,
    /// The changes.
    pub writes: Writes,
}

impl LogRecord {
    /// True if changes of a table are part of the log.
    pub(crate) fn covers(table: Table) -> bool {
        !matches!(table, Table::Log | Table::Slot)
    }
}

impl Record for LogRecord {
    const TABLE: Table = Table::Log;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.epoch);
        encoder.number(self.at_ns);
        encoder.octets(self.user.as_bytes());
        encoder.octets(self.command.as_bytes());
        let covered = || self.writes.iter().filter(|(table, _, _)| Self::covers(*table));
        encoder.number(covered().count() as u64);
        for (table, key, value) in covered() {
            encoder.octet(table as u8);
            encoder.octets(key);
            encoder.octet(value.is_some().into());
            encoder.octets(value.unwrap_or_default());
        }
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let epoch = LeaseEpoch::decode(decoder)?;
        let at_ns = decoder.number()?;
        let (user, command) = (decoder.text()?, decoder.text()?);
        let mut writes = Writes::default();
        for _ in 0..decoder.number()? {
            let table = Table::from_number(decoder.octet()?).ok_or(Malformed)?;
            let key = decoder.octets()?.to_vec();
            let (is_put, value) = (decoder.flag()?, decoder.octets()?.to_vec());
            if is_put {
                writes.put(table, key, value);
            } else {
                writes.delete(table, key);
            }
        }
        Ok(Self { number: TransactionNumber::default(), epoch, at_ns, user, command, writes })
    }
}
