//! Answers, and their octets as a slot keeps them for a repeated command.

use crate::codec::{Decoder, Encoder, Malformed};
use crate::id::{ContentId, DiskId, InodeId, SessionId, Version};
use crate::record::Inode;
use crate::refusal::Refusal;
use crate::view::Record;

/// Answer to a command that was not refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// An inode as it is now.
    Entry(Entry),
    /// Leave to write a version.
    Ticket(Ticket),
    /// A session, and its end unless it is renewed.
    Session {
        /// The session.
        session: SessionId,
        /// Its end in nanoseconds of the head's clock.
        expires_ns: u64,
    },
    /// A new disk.
    Disk(DiskId),
    /// What a disk does with content.
    Resolved(Resolution),
    /// Rows that were looked at: fewer than asked for if nothing more is due.
    Count(usize),
}

/// An inode with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub id: InodeId,
    /// Its attributes.
    pub inode: Inode,
}

/// Leave to write a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// What is written.
    pub content: ContentId,
    /// Disks to ask.
    pub disks: Vec<TicketDisk>,
    /// Receipts that the commit needs.
    pub receipt_count: u8,
    /// Most octets.
    pub size_max: u64,
    /// When the attempt may be aborted, in nanoseconds of the head's clock.
    pub expires_ns: u64,
}

/// A disk in a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TicketDisk {
    /// The disk.
    pub disk: DiskId,
    /// Its generation.
    pub generation: u64,
}

/// What a disk does with content it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// Keep and serve it.
    Keep,
    /// Ask again: the attempt is open.
    Wait,
    /// Drop it: it never becomes part of the site, or is none any more.
    Drop,
    /// Keep it, and tell people: this catalog never heard of it.
    Unknown,
}

impl Resolution {
    fn number(self) -> u8 {
        match self {
            Self::Keep => 0,
            Self::Wait => 1,
            Self::Drop => 2,
            Self::Unknown => 3,
        }
    }
}

/// Encodes an outcome.
pub(crate) fn encode_outcome(outcome: &Result<Answer, Refusal>) -> Vec<u8> {
    let mut encoder = Encoder::default();
    match outcome {
        Err(refusal) => {
            encoder.octet(0);
            encoder.octet(*refusal as u8);
        }
        Ok(answer) => answer.encode(&mut encoder),
    }
    encoder.0
}

/// Decodes an outcome.
pub(crate) fn decode_outcome(octets: &[u8]) -> Result<Result<Answer, Refusal>, Malformed> {
    let mut decoder = Decoder(octets);
    let outcome = match decoder.octet()? {
        0 => Err(Refusal::from_number(decoder.octet()?).ok_or(Malformed)?),
        kind => Ok(Answer::decode(kind, &mut decoder)?),
    };
    if decoder.0.is_empty() { Ok(outcome) } else { Err(Malformed) }
}

impl Answer {
    fn encode(&self, encoder: &mut Encoder) {
        match self {
            Self::Done => encoder.octet(1),
            Self::Entry(entry) => {
                encoder.octet(2);
                encoder.number(entry.id);
                entry.inode.encode(encoder);
            }
            Self::Ticket(ticket) => {
                encoder.octet(3);
                ticket.encode(encoder);
            }
            Self::Session { session, expires_ns } => {
                encoder.octet(4);
                encoder.number(*session);
                encoder.number(*expires_ns);
            }
            Self::Disk(disk) => {
                encoder.octet(5);
                encoder.number(*disk);
            }
            Self::Resolved(resolution) => {
                encoder.octet(6);
                encoder.octet(resolution.number());
            }
            Self::Count(count) => {
                encoder.octet(7);
                encoder.number(*count as u64);
            }
        }
    }

    fn decode(kind: u8, decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(match kind {
            1 => Self::Done,
            2 => {
                let id = InodeId::decode(decoder)?;
                Self::Entry(Entry { id, inode: Inode::decode(decoder)? })
            }
            3 => Self::Ticket(Ticket::decode(decoder)?),
            4 => {
                let session = SessionId::decode(decoder)?;
                Self::Session { session, expires_ns: decoder.number()? }
            }
            5 => Self::Disk(DiskId::decode(decoder)?),
            6 => Self::Resolved(match decoder.octet()? {
                0 => Resolution::Keep,
                1 => Resolution::Wait,
                2 => Resolution::Drop,
                3 => Resolution::Unknown,
                _ => return Err(Malformed),
            }),
            7 => Self::Count(decoder.narrow()?),
            _ => return Err(Malformed),
        })
    }
}

impl Ticket {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.content.inode);
        encoder.number(self.content.version);
        encoder.number(self.disks.len() as u64);
        for disk in &self.disks {
            encoder.number(disk.disk);
            encoder.number(disk.generation);
        }
        encoder.octet(self.receipt_count);
        encoder.number(self.size_max);
        encoder.number(self.expires_ns);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let inode = InodeId::decode(decoder)?;
        let content = ContentId { inode, version: Version::decode(decoder)? };
        let disks = decoder.list(|decoder| {
            let disk = DiskId::decode(decoder)?;
            Ok(TicketDisk { disk, generation: decoder.number()? })
        })?;
        Ok(Self {
            content,
            disks,
            receipt_count: decoder.octet()?,
            size_max: decoder.number()?,
            expires_ns: decoder.number()?,
        })
    }
}
