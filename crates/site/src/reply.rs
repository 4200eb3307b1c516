//! Answers of the head, as signed Data under the name of the command's Interest.
//!
//! ```text
//! content = LeaseEpoch (Done | Refused | Failed)
//! ```
//! *Done* and *Refused* are outcomes of the command, kept for those who repeat it. *Failed* is no
//! outcome: nothing is known to have happened, and the same command may be sent again.

use byname_catalog::id::{DiskId, LeaseEpoch, SessionId};
use byname_catalog::{Answer, Refusal};
use byname_packet::{Data, DataBuilder, DecodeError, NameRef, SignError, Signer};
use byname_security::exchange::SHARE_BYTES;

use crate::codec::{Fields, Writer, bad_value};
use crate::names::SiteName;
use crate::numbers as tag;
use crate::parts::{read_entry, resolution_number, resolution_of, write_entry};
use crate::ticket::Ticket;

/// Time for which caches may repeat an outcome, in milliseconds: one Interest has one outcome.
const OUTCOME_FRESHNESS_MS: u64 = 10_000;
/// Longest explanation, in octets.
const REASON_BYTES_MAX: usize = 255;

const WITHIN: &str = "reply";

/// An answer of the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The head's term.
    pub epoch: LeaseEpoch,
    /// The outcome, if there is one.
    pub outcome: Outcome,
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was executed.
    Done(Box<SiteAnswer>),
    /// It changed nothing, and never will.
    Refused(Refusal),
    /// It was not executed, or nobody knows.
    Failed {
        /// The kind of failure.
        failure: HeadFailure,
        /// For people; no more than 255 octets, may be empty.
        reason: String,
    },
}

/// Answer to a command that was executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SiteAnswer {
    /// Any but a ticket.
    Plain(Answer),
    /// Leave to write content.
    Ticket(Ticket),
    /// The head's share of a session's keys.
    Agreed {
        /// The share.
        share: [u8; SHARE_BYTES],
        /// When the keys end, in nanoseconds of the head's clock.
        expires_ns: u64,
    },
}

macro_rules! failures {
    ($($number:literal $name:ident $retry:literal $text:literal;)*) => {
        /// Reason for which a head executed nothing.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
        #[repr(u8)]
        pub enum HeadFailure {
            $(#[doc = concat!($text, ".")] #[error($text)] $name = $number,)*
        }

        impl HeadFailure {
            /// True if the same command may succeed in a while.
            pub fn is_retryable(self) -> bool {
                match self { $(Self::$name => $retry,)* }
            }

            fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

failures! {
    1 NotLeading true "this head does not lead the catalog";
    2 Busy true "the head has too much to do";
    3 Engine true "the catalog's storage failed";
    4 Malformed false "the command is malformed";
    5 NotAuthentic false "the signature does not count";
    6 Clock false "the command was signed too long ago, or ahead of time";
    7 Replayed false "a command without a request id came twice";
    8 NoKeys false "the head does not have these keys of the session";
}

impl Reply {
    /// The packet, signed by the head.
    ///
    /// # Errors
    /// [`SignError`] of the signer.
    pub fn encode(&self, name: NameRef<'_>, signer: &dyn Signer) -> Result<Vec<u8>, SignError> {
        let is_failure = matches!(self.outcome, Outcome::Failed { .. });
        let freshness_ms = if is_failure { 0 } else { OUTCOME_FRESHNESS_MS };
        let mut wire = Vec::new();
        let builder = DataBuilder::new(name).freshness_ms(freshness_ms);
        builder.encode(&self.content(), signer, &mut wire)?;
        Ok(wire)
    }

    /// The content of the packet.
    pub fn content(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.number(tag::LEASE_EPOCH, self.epoch);
        match &self.outcome {
            Outcome::Done(answer) => {
                writer.nested(tag::DONE, |writer| write_answer(writer, answer));
            }
            Outcome::Refused(refusal) => writer.number(tag::REFUSED, *refusal as u8),
            Outcome::Failed { failure, reason } => {
                writer.number(tag::FAILED, *failure as u8);
                writer.octets(tag::REASON, shortened(reason).as_bytes());
            }
        }
        writer.0
    }

    /// Takes a reply apart. Nothing is verified.
    ///
    /// # Errors
    /// [`DecodeError`] for anything that is no reply.
    pub fn decode(site: &SiteName, data: &Data<'_>) -> Result<Self, DecodeError> {
        let mut fields = Fields::new(data.content, WITHIN);
        let epoch = LeaseEpoch(fields.number(tag::LEASE_EPOCH)?);
        let outcome = if let Some(done) = fields.optional_nested(tag::DONE)? {
            Outcome::Done(Box::new(read_answer(site, done)?))
        } else if let Some(refusal) = fields.optional_number(tag::REFUSED)? {
            Outcome::Refused(Refusal::from_number(refusal).ok_or(bad_value(tag::REFUSED))?)
        } else {
            let failure = HeadFailure::from_number(fields.number(tag::FAILED)?);
            let failure = failure.ok_or(bad_value(tag::FAILED))?;
            let reason = fields.octets(tag::REASON)?;
            let reason = (reason.len() <= REASON_BYTES_MAX).then_some(reason);
            let reason = reason.and_then(|reason| std::str::from_utf8(reason).ok());
            let reason = reason.ok_or(bad_value(tag::REASON))?.to_owned();
            Outcome::Failed { failure, reason }
        };
        fields.end_of_known()?;
        Ok(Self { epoch, outcome })
    }
}

/// As much of a text as may be sent.
fn shortened(text: &str) -> &str {
    let mut end = text.len().min(REASON_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn write_answer(writer: &mut Writer, answer: &SiteAnswer) {
    match answer {
        SiteAnswer::Ticket(ticket) => writer.0.extend_from_slice(ticket.wire()),
        SiteAnswer::Agreed { share, expires_ns } => {
            writer.octets(tag::KEY_SHARE, share);
            writer.number(tag::EXPIRES, *expires_ns);
        }
        // The ticket that travels is the certificate.
        SiteAnswer::Plain(Answer::Done | Answer::Ticket(_)) => {}
        SiteAnswer::Plain(Answer::Entry(entry)) => write_entry(writer, entry),
        SiteAnswer::Plain(Answer::Session { session, expires_ns }) => {
            writer.nested(tag::SESSION, |writer| {
                writer.number(tag::SESSION_ID, *session);
                writer.number(tag::EXPIRES, *expires_ns);
            });
        }
        SiteAnswer::Plain(Answer::Disk(disk)) => writer.number(tag::DISK_ID, *disk),
        SiteAnswer::Plain(Answer::Resolved(resolution)) => {
            writer.number(tag::RESOLUTION, resolution_number(*resolution));
        }
        SiteAnswer::Plain(Answer::Count(count)) => writer.number(tag::COUNT, *count as u64),
    }
}

fn read_answer(site: &SiteName, mut fields: Fields<'_>) -> Result<SiteAnswer, DecodeError> {
    let answer = match fields.peek()? {
        Some(typ) if typ == tag::DATA.typ => {
            let ticket = Ticket::decode(site, fields.wire(tag::DATA)?);
            let ticket = ticket.map_err(|_| bad_value(tag::DATA))?;
            fields.end_of_known()?;
            return Ok(SiteAnswer::Ticket(ticket));
        }
        Some(typ) if typ == tag::KEY_SHARE.typ => {
            let share = fields.array(tag::KEY_SHARE)?;
            let expires_ns = fields.number(tag::EXPIRES)?;
            fields.end_of_known()?;
            return Ok(SiteAnswer::Agreed { share, expires_ns });
        }
        Some(typ) if typ == tag::ENTRY.typ => {
            Answer::Entry(read_entry(fields.octets(tag::ENTRY)?)?)
        }
        Some(typ) if typ == tag::SESSION.typ => {
            let mut inner = fields.nested(tag::SESSION)?;
            let session = SessionId(inner.number(tag::SESSION_ID)?);
            let expires_ns = inner.number(tag::EXPIRES)?;
            inner.end_of_known()?;
            Answer::Session { session, expires_ns }
        }
        Some(typ) if typ == tag::DISK_ID.typ => Answer::Disk(DiskId(fields.number(tag::DISK_ID)?)),
        Some(typ) if typ == tag::RESOLUTION.typ => {
            Answer::Resolved(resolution_of(fields.number(tag::RESOLUTION)?)?)
        }
        Some(typ) if typ == tag::COUNT.typ => Answer::Count(fields.number(tag::COUNT)?),
        _ => Answer::Done,
    };
    fields.end_of_known()?;
    Ok(SiteAnswer::Plain(answer))
}
