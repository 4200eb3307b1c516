//! Answers of disks, as signed Data under the name of the order's Interest.

use byname_catalog::id::{ContentId, LeaseEpoch};
use byname_packet::{Data, DataBuilder, DecodeError, NameRef, NullSigner, SignError, Signer};

use crate::codec::{Fields, Writer, bad_value};
use crate::numbers as tag;
use crate::parts::{read_content_id, write_content_id};

/// Time for which caches may repeat a final answer, in milliseconds.
const FINAL_FRESHNESS_MS: u64 = 1000;
/// Longest pause that a disk may ask for, in milliseconds.
const AGAIN_MS_MAX: u64 = 60_000;

/// Answer to an insert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InsertAnswer {
    /// It is being done.
    Pulling {
        /// Octets that are there and verified.
        received_bytes: u64,
        /// Pause after which to ask again, in milliseconds.
        again_ms: u64,
    },
    /// It is done: the receipt, as signed.
    Stored(Vec<u8>),
    /// It is not done.
    Refused(DiskRefusal),
}

/// Rotten contents that one answer names, at most.
pub const ROTTEN_MAX: usize = 32;

/// How far a disk is in reading all of its contents anew, and what it has found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScrubState {
    /// Octets that this pass has read.
    pub done_bytes: u64,
    /// Octets that there were when it began; 0 if there is none.
    pub total_bytes: u64,
    /// When the last whole pass ended, in seconds since 1970.
    pub ended_s: Option<u64>,
    /// Contents that are not what their writers signed.
    pub rotten_count: u64,
    /// Some of them, [`ROTTEN_MAX`] at most.
    pub rotten: Vec<ContentId>,
}

/// Answer to a drop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DropAnswer {
    /// It is done, and durable.
    Done {
        /// The epoch that the disk obeys from now on.
        epoch: LeaseEpoch,
        /// Threads of the disk that wait for its file system at a time, on average, in hundredths.
        load: u64,
        /// How far it is in reading what it has, if it does.
        scrub: Option<ScrubState>,
    },
    /// It is not done.
    Refused(DiskRefusal),
}

macro_rules! refusals {
    ($($number:literal $name:ident $retry:literal $text:literal;)*) => {
        /// Reason for which a disk does not do what it is asked.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
        #[repr(u8)]
        pub enum DiskRefusal {
            $(#[doc = concat!($text, ".")] #[error($text)] $name = $number,)*
        }

        impl DiskRefusal {
            /// True if the same order may succeed in a while.
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

refusals! {
    1 Malformed false "the order is malformed";
    2 NotAuthentic false "a signature of the order does not count";
    3 NotAsked false "the ticket is not for this disk";
    4 OldGeneration false "the disk was made anew since";
    5 OldEpoch false "the order is of a head that has lost the lease";
    6 TooLarge false "the content is larger than the ticket allows";
    7 OtherClaim false "the disk has another claim for this content";
    8 Dropped false "the attempt has ended: the disk has dropped the content";
    9 Full false "the disk is full";
    10 ReadOnly false "the disk cannot be written to";
    11 Failing false "the disk fails";
    12 Unreachable true "the disk cannot reach the writer";
    13 Mismatch false "the content is not what the writer signed";
    14 Busy true "the disk has too much to do";
    15 Slow false "the writer sends too slowly";
    16 Missing false "the disk does not have the content";
}

impl InsertAnswer {
    /// The packet, signed by the disk; a receipt proves itself, and needs no signature around it.
    ///
    /// # Errors
    /// [`SignError`] of the signer.
    pub fn encode(&self, name: NameRef<'_>, signer: &dyn Signer) -> Result<Vec<u8>, SignError> {
        let mut writer = Writer::default();
        match self {
            Self::Pulling { received_bytes, again_ms } => {
                writer.nested(tag::PULLING, |writer| {
                    writer.number(tag::RECEIVED_BYTES, *received_bytes);
                    writer.number(tag::AGAIN_MS, *again_ms);
                });
            }
            Self::Stored(receipt) => writer.0.extend_from_slice(receipt),
            Self::Refused(refusal) => writer.number(tag::REFUSED, *refusal as u8),
        }
        let is_final = match self {
            // Whoever asks again gets the receipt again: no cache needs to keep it.
            Self::Pulling { .. } | Self::Stored(_) => false,
            Self::Refused(refusal) => !refusal.is_retryable(),
        };
        let signer = match self {
            Self::Stored(_) => &NullSigner,
            Self::Pulling { .. } | Self::Refused(_) => signer,
        };
        sign(name, is_final, &writer, signer)
    }

    /// Takes an answer apart. Nothing is verified.
    ///
    /// # Errors
    /// [`DecodeError`] for anything that is no answer.
    pub fn decode(data: &Data<'_>) -> Result<Self, DecodeError> {
        let mut fields = Fields::new(data.content, "answer to an insert");
        let answer = if let Some(mut pulling) = fields.optional_nested(tag::PULLING)? {
            let received_bytes = pulling.number(tag::RECEIVED_BYTES)?;
            let again_ms = pulling.number(tag::AGAIN_MS)?;
            pulling.end_of_known()?;
            if again_ms > AGAIN_MS_MAX {
                return Err(bad_value(tag::AGAIN_MS));
            }
            Self::Pulling { received_bytes, again_ms }
        } else if let Some(refusal) = decode_refusal(&mut fields)? {
            Self::Refused(refusal)
        } else {
            Self::Stored(fields.wire(tag::DATA)?.to_vec())
        };
        fields.end_of_known()?;
        Ok(answer)
    }
}

impl DropAnswer {
    /// The packet, signed by the disk.
    ///
    /// # Errors
    /// [`SignError`] of the signer.
    pub fn encode(&self, name: NameRef<'_>, signer: &dyn Signer) -> Result<Vec<u8>, SignError> {
        let mut writer = Writer::default();
        match self {
            Self::Done { epoch, load, scrub } => {
                writer.number(tag::LEASE_EPOCH, *epoch);
                if *load > 0 {
                    writer.number(tag::LOAD, *load);
                }
                if let Some(scrub) = scrub {
                    writer.nested(tag::SCRUB, |writer| scrub.write(writer));
                }
            }
            Self::Refused(refusal) => writer.number(tag::REFUSED, *refusal as u8),
        }
        sign(name, true, &writer, signer)
    }

    /// Takes an answer apart. Nothing is verified.
    ///
    /// # Errors
    /// [`DecodeError`] for anything that is no answer.
    pub fn decode(data: &Data<'_>) -> Result<Self, DecodeError> {
        let mut fields = Fields::new(data.content, "answer to a drop");
        let answer = if let Some(refusal) = decode_refusal(&mut fields)? {
            Self::Refused(refusal)
        } else {
            let epoch = LeaseEpoch(fields.number(tag::LEASE_EPOCH)?);
            let load = fields.optional_number(tag::LOAD)?.unwrap_or(0);
            let scrub = fields.optional_nested(tag::SCRUB)?.map(ScrubState::read).transpose()?;
            Self::Done { epoch, load, scrub }
        };
        fields.end_of_known()?;
        Ok(answer)
    }
}

impl ScrubState {
    fn write(&self, writer: &mut Writer) {
        writer.number(tag::PASS_DONE, self.done_bytes);
        writer.number(tag::PASS_TOTAL, self.total_bytes);
        if let Some(ended_s) = self.ended_s {
            writer.number(tag::PASS_ENDED, ended_s);
        }
        writer.number(tag::ROTTEN_COUNT, self.rotten_count);
        self.rotten.iter().for_each(|content| write_content_id(writer, *content));
    }

    fn read(mut fields: Fields<'_>) -> Result<Self, DecodeError> {
        let mut state = Self {
            done_bytes: fields.number(tag::PASS_DONE)?,
            total_bytes: fields.number(tag::PASS_TOTAL)?,
            ended_s: fields.optional_number(tag::PASS_ENDED)?,
            rotten_count: fields.number(tag::ROTTEN_COUNT)?,
            rotten: Vec::new(),
        };
        while fields.peek()? == Some(tag::CONTENT_ID.typ) {
            if state.rotten.len() >= ROTTEN_MAX {
                return Err(bad_value(tag::CONTENT_ID));
            }
            state.rotten.push(read_content_id(&mut fields)?);
        }
        fields.end_of_known()?;
        Ok(state)
    }
}

/// The reason for which something is not done, if that is what comes next.
pub(super) fn decode_refusal(fields: &mut Fields<'_>) -> Result<Option<DiskRefusal>, DecodeError> {
    let number = fields.optional_number(tag::REFUSED)?;
    let refusal = |number| DiskRefusal::from_number(number).ok_or(bad_value(tag::REFUSED));
    number.map(refusal).transpose()
}

pub(super) fn sign(
    name: NameRef<'_>,
    is_final: bool,
    content: &Writer,
    signer: &dyn Signer,
) -> Result<Vec<u8>, SignError> {
    let mut wire = Vec::new();
    let freshness_ms = if is_final { FINAL_FRESHNESS_MS } else { 0 };
    DataBuilder::new(name).freshness_ms(freshness_ms).encode(&content.0, signer, &mut wire)?;
    Ok(wire)
}
