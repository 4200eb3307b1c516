//! Commands to the catalog, as signed Interests.
//!
//! ```text
//! Interest  P/32=catalog/<op>/<digest>, MustBeFresh, signed by a user or a disk
//! parameters = [SpeaksFor] [RequestId] Command Data*
//! ```
//! `Data*` are the receipts of a commit. The digest that identifies a command to the catalog is
//! over all but the RequestId: a command that is signed anew is the same command.

mod decode;
mod encode;

use byname_catalog::id::SessionId;
use byname_catalog::{Command, Request};
use byname_packet::{DecodeError, Interest, InterestBuilder, SignError, Signer, sha256};

use crate::agreement::SessionKeys;
use crate::codec::{Fields, Writer, bad_value};
use crate::names::SiteName;
use crate::numbers as tag;
use crate::parts::DISKS_MAX;
use crate::speaks_for::{self, SpeaksFor};
use crate::stamp::Stamp;

const WITHIN: &str = "command";

/// Identity of a command: repeated with the same, it gets the first answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestId {
    /// The session.
    pub session: SessionId,
    /// One of its slots.
    pub slot: u16,
    /// The commands of a slot count from 1.
    pub sequence: u64,
}

/// A command as it travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPacket {
    /// For whom a door sends it; nobody else says so.
    pub speaks_for: Option<SpeaksFor>,
    /// Its identity.
    pub request: Option<RequestId>,
    /// The command. A commit has no receipts here: those of the packet have to be verified first.
    pub command: Command,
    /// Receipts of a commit: Data packets, as the disks signed them.
    pub receipts: Vec<Vec<u8>>,
}

impl CommandPacket {
    /// A command without receipts.
    pub fn new(request: Option<RequestId>, command: Command) -> Self {
        Self { speaks_for: None, request, command, receipts: Vec::new() }
    }

    /// The same for a user, from a door.
    #[must_use]
    pub fn spoken_for(self, speaks_for: Option<SpeaksFor>) -> Self {
        Self { speaks_for, ..self }
    }

    /// The identity as the catalog has it.
    pub fn catalog_request(&self) -> Option<Request> {
        let RequestId { session, slot, sequence } = self.request?;
        Some(Request { session, slot, sequence, digest: self.digest() })
    }

    /// Digest of what is asked: operation, for whom, command and receipts.
    pub fn digest(&self) -> [u8; 32] {
        let mut speaks_for = Writer::default();
        speaks_for::write(&mut speaks_for, self.speaks_for.as_ref());
        sha256(&[self.command.name().as_bytes(), &[0], &speaks_for.0, &self.body()])
    }

    fn body(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.nested(tag::COMMAND, |writer| encode::write(writer, &self.command));
        self.receipts.iter().for_each(|receipt| writer.0.extend_from_slice(receipt));
        writer.0
    }

    /// The signed Interest, without Nonce.
    ///
    /// # Errors
    /// [`SignError`]; `TooLarge` for what fits no packet.
    pub fn encode(
        &self,
        site: &SiteName,
        signer: &dyn Signer,
        stamp: Stamp,
    ) -> Result<Vec<u8>, SignError> {
        let (name, parameters) = (site.command(self.command.name()), self.parameters());
        let builder = InterestBuilder::new(name.view()).application_parameters(&parameters);
        stamp.sign(&builder, signer)
    }

    /// The Interest under the keys of a session, without Nonce; each has a number of its own.
    ///
    /// # Errors
    /// [`SignError`]; `TooLarge` for what fits no packet.
    pub fn encode_sealed(
        &self,
        site: &SiteName,
        keys: &SessionKeys,
        number: u64,
    ) -> Result<Vec<u8>, SignError> {
        let (name, parameters) = (site.command(self.command.name()), self.parameters());
        let builder = InterestBuilder::new(name.view()).application_parameters(&parameters);
        keys.seal(&builder, number)
    }

    fn parameters(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        speaks_for::write(&mut writer, self.speaks_for.as_ref());
        if let Some(RequestId { session, slot, sequence }) = self.request {
            writer.nested(tag::REQUEST_ID, |writer| {
                writer.number(tag::SESSION_ID, session);
                writer.number(tag::SLOT, slot);
                writer.number(tag::SEQUENCE, sequence);
            });
        }
        writer.0.extend_from_slice(&self.body());
        writer.0
    }

    /// Takes a command's Interest apart. Nothing is verified.
    ///
    /// # Errors
    /// [`DecodeError`] for anything that is no command of this site.
    pub fn decode(site: &SiteName, interest: &Interest<'_>) -> Result<Self, DecodeError> {
        let operation = site.operation(interest.name).ok_or(bad_value(tag::NAME))?;
        let parameters = interest.application_parameters.unwrap_or_default();
        let mut fields = Fields::new(parameters, WITHIN);
        let speaks_for = speaks_for::read(&mut fields)?;
        let request = fields.optional_nested(tag::REQUEST_ID)?.map(read_request).transpose()?;
        let mut body = fields.nested(tag::COMMAND)?;
        let command = decode::read(operation, &mut body)?;
        body.end()?;
        let mut receipts = Vec::new();
        while fields.peek()? == Some(tag::DATA.typ) {
            if receipts.len() >= DISKS_MAX || !matches!(command, Command::Commit(_)) {
                return Err(bad_value(tag::DATA));
            }
            receipts.push(fields.wire(tag::DATA)?.to_vec());
        }
        fields.end()?;
        Ok(Self { speaks_for, request, command, receipts })
    }
}

fn read_request(mut fields: Fields<'_>) -> Result<RequestId, DecodeError> {
    let session = SessionId(fields.number(tag::SESSION_ID)?);
    let slot = fields.number(tag::SLOT)?;
    let sequence = fields.number(tag::SEQUENCE)?;
    fields.end()?;
    Ok(RequestId { session, slot, sequence })
}
