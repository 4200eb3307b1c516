//! A disk that is served somewhere, asked by name.
//!
//! Until the rows are known nobody can tell which key is the disk's, so its first answers count for
//! what they prove by themselves: a copy is signed by the site. Then the rows have its key, and
//! everything else that it says is asked again and verified.

use std::collections::BTreeMap;
use std::time::Duration;

use byname_catalog::id::ContentId;
use byname_face::{CommandClock, Exchange, FaceError, Reply, random_u64};
use byname_io::{Clock, Connection};
use byname_packet::{Data, DecodeError, SignError};
use byname_security::cert::Certificate;
use byname_security::trust::Validator;
use byname_site::{
    Authentic, COPY_PAGE_BYTES, Check, CopyAnswer, CopyState, DiskName, DiskRefusal, Identity,
    KeptRecord, List, ListAnswer, Listed, Recall, SiteName, Stamp, check_data,
};
use byname_transfer::server::SharedSigner;

use super::{DiskSource, SourceError};

/// Time that a disk has for an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Times that it is asked.
const TRIES: u32 = 5;
/// Pages of a copy that are asked for together.
const PAGES_AHEAD: u64 = 16;

/// Reason for which an answer does not count.
#[derive(Debug, thiserror::Error)]
enum RemoteError {
    #[error(transparent)]
    Face(#[from] FaceError),
    #[error("an order cannot be signed: {0}")]
    Sign(#[from] SignError),
    #[error("it does not answer: is it served, by a forwarder that is reached from here?")]
    Silent,
    #[error("its answer is malformed: {0}")]
    Malformed(#[from] DecodeError),
    #[error("its answer is not signed with the key that the rows have for it")]
    NotAuthentic,
    #[error("it refuses: {0}")]
    Refused(DiskRefusal),
    #[error("it answers something else than was asked")]
    Other,
}

impl From<RemoteError> for SourceError {
    fn from(error: RemoteError) -> Self {
        Self(Box::new(error))
    }
}

/// See the module.
pub struct RemoteDisk {
    site: SiteName,
    name: DiskName,
    signer: SharedSigner,
    exchange: Exchange,
    clock: Clock,
    command_clock: CommandClock,
    /// Its keys by the rows, once these are known.
    certificates: Option<Vec<Certificate>>,
    state: CopyState,
    /// Pages of the copy that is being read.
    pages: BTreeMap<u64, Vec<u8>>,
}

impl RemoteDisk {
    /// A disk that is reached by this connection. `signer` is the site's key.
    ///
    /// # Errors
    /// [`SourceError`] if the connection cannot be used.
    pub fn new(
        (site, name): (SiteName, DiskName),
        signer: SharedSigner,
        connection: Connection,
    ) -> Result<Self, SourceError> {
        Ok(Self {
            site,
            name,
            signer,
            exchange: Exchange::new(connection).map_err(RemoteError::from)?,
            clock: Clock::new(),
            command_clock: CommandClock::new(),
            certificates: None,
            state: CopyState::default(),
            pages: BTreeMap::new(),
        })
    }

    fn stamp(&self) -> Stamp {
        Stamp {
            time_ms: self.command_clock.next_ms(self.clock.unix_ns()),
            nonce: random_u64().to_be_bytes(),
        }
    }

    /// The answers to some orders, all of them.
    fn ask(&mut self, wires: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, RemoteError> {
        let mut answers: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for _ in 0..TRIES {
            let left: Vec<usize> =
                (0..wires.len()).filter(|index| !answers.contains_key(index)).collect();
            let asked: Vec<Vec<u8>> = left.iter().map(|index| wires[*index].clone()).collect();
            let replies = self.exchange.ask(&asked, PATIENCE)?;
            for (index, reply) in left.into_iter().zip(replies) {
                match reply {
                    Reply::Data { wire, .. } => drop(answers.insert(index, wire)),
                    Reply::Nack(_) => std::thread::sleep(PATIENCE / 10),
                    Reply::Silence => {}
                }
            }
            if answers.len() == wires.len() {
                return Ok(answers.into_values().collect());
            }
        }
        Err(RemoteError::Silent)
    }

    fn recall(&mut self, orders: &[Recall]) -> Result<Vec<CopyAnswer>, RemoteError> {
        let encode =
            |order: &Recall| order.encode(&self.site, &self.name, &*self.signer, self.stamp());
        let wires = orders.iter().map(encode).collect::<Result<Vec<_>, SignError>>()?;
        let answers = self.ask(&wires)?;
        let decode = |wire: &Vec<u8>| {
            let data = Data::decode(wire)?;
            self.check(&data)?;
            match CopyAnswer::decode(&data)? {
                CopyAnswer::Refused(why) => Err(RemoteError::Refused(why)),
                answer => Ok(answer),
            }
        };
        answers.iter().map(decode).collect()
    }

    /// An answer counts if a key of the disk signed it, once its keys are known.
    fn check(&self, data: &Data<'_>) -> Result<(), RemoteError> {
        let Some(certificates) = &self.certificates else { return Ok(()) };
        let mut validator = Validator::default();
        for certificate in certificates {
            let namespace = certificate.identity().to_name();
            validator.policy_mut().add_anchor(namespace, certificate.key_id());
            validator.give_certificate(certificate.clone());
        }
        let now_s = self.clock.unix_ns() / 1_000_000_000;
        match check_data(&self.site, data, &mut validator, now_s) {
            Check::Accepted(Authentic { identity: Identity::Disk(name), .. })
                if name == self.name =>
            {
                Ok(())
            }
            _ => Err(RemoteError::NotAuthentic),
        }
    }
}

impl DiskSource for RemoteDisk {
    fn name(&self) -> &DiskName {
        &self.name
    }

    fn set_certificates(&mut self, certificates: Vec<Certificate>) {
        self.certificates = Some(certificates);
    }

    fn state(&mut self) -> Result<CopyState, SourceError> {
        match self.recall(&[Recall::State])?.pop() {
            Some(CopyAnswer::State(state)) => {
                self.state = state;
                Ok(state)
            }
            _ => Err(RemoteError::Other.into()),
        }
    }

    fn read_copy(&mut self, edition: u64, offset: u64) -> Result<Vec<u8>, SourceError> {
        if let Some(page) = self.pages.remove(&offset) {
            return Ok(page);
        }
        let step = COPY_PAGE_BYTES as u64;
        let offsets: Vec<u64> = (0..PAGES_AHEAD).map(|page| offset + page * step).collect();
        let order = |offset: &u64| Recall::Copy { edition, offset: *offset };
        let answers = self.recall(&offsets.iter().map(order).collect::<Vec<_>>())?;
        self.pages.clear();
        for (offset, answer) in offsets.into_iter().zip(answers) {
            let CopyAnswer::Octets(octets) = answer else { return Err(RemoteError::Other.into()) };
            self.pages.insert(offset, octets);
        }
        Ok(self.pages.remove(&offset).unwrap_or_default())
    }

    fn contents(&mut self, after: Option<ContentId>) -> Result<(Vec<Listed>, bool), SourceError> {
        let CopyState { epoch, generation, .. } = self.state;
        let order = List { epoch, generation, is_reread: false, after };
        let wire = order.encode(&self.site, &self.name, &*self.signer, self.stamp());
        let answers = self.ask(&[wire.map_err(RemoteError::from)?])?;
        let data = Data::decode(&answers[0]).map_err(RemoteError::from)?;
        self.check(&data)?;
        match ListAnswer::decode(&data).map_err(RemoteError::from)? {
            ListAnswer::Refused(why) => Err(RemoteError::Refused(why).into()),
            ListAnswer::Page { contents, is_last, .. } => {
                let ascends = |listed: &&Listed| after.is_none_or(|after| after < listed.content);
                // What is not behind the place that was asked for is no answer to it.
                match contents.iter().all(|listed| ascends(&listed)) {
                    true => Ok((contents, is_last)),
                    false => Err(RemoteError::Other.into()),
                }
            }
        }
    }

    fn record(&mut self, content: ContentId) -> Result<KeptRecord, SourceError> {
        match self.recall(&[Recall::Record(content)])?.pop() {
            Some(CopyAnswer::Record(record)) => Ok(*record),
            _ => Err(RemoteError::Other.into()),
        }
    }
}
