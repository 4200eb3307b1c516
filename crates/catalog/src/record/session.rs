//! Sessions, the slots that make a repeated command come true once, and holds.

use crate::codec::{Decoder, Encoder, Malformed, key};
use crate::engine::Table;
use crate::id::{ContentId, InodeId, SessionId};
use crate::view::Record;

/// A session of a user, door or disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Whose it is.
    pub user: String,
    /// Its end, unless it is renewed, in nanoseconds of the head's clock.
    pub expires_ns: u64,
    /// Versions it holds.
    pub hold_count: u32,
    /// Files that it alone may write.
    pub lease_count: u32,
    /// The door that opened it for the user: nobody else sends commands in it.
    pub door: Option<String>,
}

impl Record for Session {
    const TABLE: Table = Table::Session;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.octets(self.user.as_bytes());
        encoder.number(self.expires_ns);
        encoder.number(self.hold_count);
        encoder.number(self.lease_count);
        self.door.iter().for_each(|door| encoder.octets(door.as_bytes()));
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            user: decoder.text()?,
            expires_ns: decoder.number()?,
            hold_count: decoder.narrow()?,
            // Rows of before there were leases end here.
            lease_count: if decoder.0.is_empty() { 0 } else { decoder.narrow()? },
            door: if decoder.0.is_empty() { None } else { Some(decoder.text()?) },
        })
    }
}

pub(crate) fn session_key(session: SessionId) -> Vec<u8> {
    key([session.0])
}

/// Sessions of a user, those first that were renewed the longest ago. No name of a user has a zero.
pub(crate) fn user_session_key(id: SessionId, session: &Session) -> Vec<u8> {
    [user_sessions_prefix(&session.user), key([session.expires_ns, id.0])].concat()
}

pub(crate) fn user_sessions_prefix(user: &str) -> Vec<u8> {
    [user.as_bytes(), &[0]].concat()
}

/// The last command of a slot, and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) sequence: u64,
    /// Digest of the command, so that another one cannot pass for it.
    pub(crate) digest: [u8; 32],
    /// The encoded answer.
    pub(crate) answer: Vec<u8>,
}

impl Record for Slot {
    const TABLE: Table = Table::Slot;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.sequence);
        encoder.array(&self.digest);
        encoder.octets(&self.answer);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let sequence = decoder.number()?;
        Ok(Self { sequence, digest: decoder.array()?, answer: decoder.octets()?.to_vec() })
    }
}

pub(crate) fn slot_key(session: SessionId, slot: u16) -> Vec<u8> {
    key([session.0, slot.into()])
}

/// Who alone may write a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteLease {
    /// The session.
    pub session: SessionId,
    /// Whose it is.
    pub user: String,
    /// Tells this lease from those before and after it.
    pub number: u64,
}

impl Record for WriteLease {
    const TABLE: Table = Table::WriteLease;

    fn encode(&self, encoder: &mut Encoder) {
        encoder.number(self.session);
        encoder.octets(self.user.as_bytes());
        encoder.number(self.number);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let session = SessionId::decode(decoder)?;
        Ok(Self { session, user: decoder.text()?, number: decoder.number()? })
    }
}

pub(crate) fn session_lease_key(session: SessionId, file: InodeId) -> Vec<u8> {
    key([session.0, file.0])
}

pub(crate) fn hold_key(content: ContentId, session: SessionId) -> Vec<u8> {
    key([content.inode.0, content.version.0, session.0])
}

pub(crate) fn session_hold_key(session: SessionId, content: ContentId) -> Vec<u8> {
    key([session.0, content.inode.0, content.version.0])
}
