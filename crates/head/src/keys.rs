//! Whose signature a packet has: the keys that the catalog has rows for, and no others.
//!
//! The row is the authority: operators added it, and when they remove it the key counts no more,
//! whatever certificates say. Rows are read for every packet, so nothing has to be told to forget.
//! What is kept is the work on a certificate: it is taken apart and verified once, and again if the
//! row has another one.

use std::cell::RefCell;
use std::collections::BTreeMap;

use byname_catalog::id::DiskId;
use byname_catalog::{Caller, Command, Failure, Key, KeyHolder, Reader, Refusal, Session};
use byname_packet::{Data, Interest, KeyLocator, NameRef};
use byname_security::cert::{Certificate, KEY_COMPONENT};
use byname_security::key::PublicKey;
use byname_security::trust::Validator;
use byname_site::{
    Authentic, Check, CopyAnswer, DiskName, DropAnswer, Identity, InsertAnswer, ListAnswer,
    ProveAnswer, SignedReceipt, SiteName, SpeaksFor, Untrusted, check_data, check_interest,
};

/// Components of a certificate's name behind `KEY`, at most.
const BEHIND_KEY_MAX: usize = 3;
const SECOND_NS: u64 = 1_000_000_000;
/// Certificates that are kept verified, at most.
const KNOWN_MAX: usize = 512;

/// Certificates of rows, verified, by the names of their keys.
#[derive(Debug, Default)]
pub(crate) struct KnownKeys(RefCell<BTreeMap<Vec<u8>, KnownKey>>);

/// A certificate as its row has it, and what trusts it.
#[derive(Debug)]
struct KnownKey {
    certificate: Vec<u8>,
    validator: Validator,
}

/// Reason for which a signature does not count.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotAuthentic {
    /// The packet names no key.
    #[error("the packet names no key")]
    Unsigned,
    /// There is no row for the key.
    #[error("the site does not know the key {key}")]
    UnknownKey {
        /// Its name.
        key: String,
    },
    /// What an operator added is no certificate.
    #[error("the certificate that was added for {key} is none")]
    BadCertificate {
        /// Name of the key.
        key: String,
    },
    /// The row is about somebody else than the key's name says.
    #[error("the key {key} was added for somebody else")]
    OtherHolder {
        /// Its name.
        key: String,
    },
    /// It was lent for a time that is over.
    #[error("the key {key} was lent for a time that is over")]
    LoanOver {
        /// Its name.
        key: String,
    },
    /// It does not verify.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// It is not about what it is given for.
    #[error("a receipt is not what a disk of this site signs")]
    BadReceipt,
    /// It is no answer that a disk gives.
    #[error("a disk's answer is malformed")]
    BadAnswer,
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] Failure),
}

/// Whose key a packet is signed with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    User(String),
    Disk(DiskId),
    Door(String),
}

impl Who {
    /// Under whose rights a packet is judged. A door has none of its own, and nobody else speaks
    /// for others.
    pub(crate) fn caller(&self, speaks_for: Option<SpeaksFor>) -> Result<Caller, Refusal> {
        match (self, speaks_for) {
            (Self::User(user), None) => Ok(Caller::User(user.clone())),
            (Self::Disk(disk), None) => Ok(Caller::Disk(*disk)),
            (Self::Door(door), Some(speaks_for)) => Ok(Caller::Door(speaks_for.by(door.clone()))),
            (Self::Door(_), None) => Err(Refusal::NotSpokenFor),
            (Self::User(_) | Self::Disk(_), Some(_)) => Err(Refusal::MayNotSpeakFor),
        }
    }

    /// True for the one who opened a session, be it for somebody else.
    pub(crate) fn has_opened(&self, session: &Session) -> bool {
        match self {
            Self::User(user) => session.door.is_none() && session.user == *user,
            Self::Door(door) => session.door.as_ref() == Some(door),
            Self::Disk(_) => false,
        }
    }
}

/// A sender of commands, verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sender {
    /// Who it is.
    pub(crate) who: Who,
    /// The key it signs with.
    pub(crate) key: PublicKey,
    /// Name of that key.
    pub(crate) key_name: Vec<u8>,
    /// The user has lent it: it acts for him, and for no longer than that.
    pub(crate) is_lent: bool,
}

impl Sender {
    /// True if the key may have this done, whoever it is of. What a lent one does must end with it,
    /// so it makes no keys and no users; and of loans it ends its own alone.
    pub(crate) fn may(&self, command: &Command) -> bool {
        let is_bound = match command {
            Command::RecallKey { name } => *name != self.key_name,
            other => other.is_administration(),
        };
        !(self.is_lent && is_bound)
    }
}

/// Verifies packets against the keys of one committed state.
pub(crate) struct Keys<'a> {
    site: &'a SiteName,
    reader: &'a Reader<'a>,
    now_s: u64,
    known: Option<&'a KnownKeys>,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(site: &'a SiteName, reader: &'a Reader<'a>, now_s: u64) -> Self {
        Self { site, reader, now_s, known: None }
    }

    /// Uses what was found out about certificates before.
    pub(crate) fn with_known(self, known: &'a KnownKeys) -> Self {
        Self { known: Some(known), ..self }
    }

    /// Who sent an Interest.
    pub(crate) fn sender(&self, interest: &Interest<'_>) -> Result<Sender, NotAuthentic> {
        let locator = interest.signature_info.as_ref().and_then(|info| info.key_name());
        let locator_name = locator.ok_or(NotAuthentic::Unsigned)?;
        let (checked, row) = self.with_validator(locator_name, |validator| {
            check_interest(self.site, interest, validator, self.now_s)
        })?;
        let Authentic { identity, key, .. } = accepted(checked)?;
        let who = match (&row.holder, identity) {
            (KeyHolder::User(user), Identity::User(name)) if *user == name => Who::User(name),
            (KeyHolder::Disk(disk), Identity::Disk(name)) if *disk == name.id => Who::Disk(*disk),
            (KeyHolder::Door(door), Identity::Door(name)) if *door == name => Who::Door(name),
            _ => return Err(other_holder(locator)),
        };
        let key_name = key_name(locator_name).map(|name| name.value().to_vec());
        let is_lent = row.loan.is_some();
        Ok(Sender { who, key, key_name: key_name.unwrap_or_default(), is_lent })
    }

    /// The certificate of the key that an Interest names.
    pub(crate) fn certificate(&self, interest: &Interest<'_>) -> Result<Certificate, NotAuthentic> {
        let locator = interest.signature_info.as_ref().and_then(|info| info.key_name());
        let name = locator.and_then(key_name).ok_or(NotAuthentic::Unsigned)?;
        let row = self.reader.key(name.value())?;
        let row = row.ok_or_else(|| NotAuthentic::UnknownKey { key: name.to_string() })?;
        let certificate = Certificate::decode(&row.certificate);
        certificate.map_err(|_| NotAuthentic::BadCertificate { key: name.to_string() })
    }

    /// The receipt in a packet, if the disk that it names signed it.
    pub(crate) fn receipt(&self, wire: &[u8]) -> Result<byname_catalog::Receipt, NotAuthentic> {
        let data = Data::decode(wire).map_err(|_| NotAuthentic::BadReceipt)?;
        let signed = SignedReceipt::decode(self.site, &data);
        let SignedReceipt { disk, receipt } = signed.map_err(|_| NotAuthentic::BadReceipt)?;
        self.check_disk(&disk, &data)?;
        Ok(receipt)
    }

    /// A disk's answer to an order to drop, if that disk signed it.
    pub(crate) fn drop_answer(
        &self,
        disk: &DiskName,
        wire: &[u8],
    ) -> Result<DropAnswer, NotAuthentic> {
        let data = Data::decode(wire).map_err(|_| NotAuthentic::BadAnswer)?;
        self.check_disk(disk, &data)?;
        DropAnswer::decode(&data).map_err(|_| NotAuthentic::BadAnswer)
    }

    /// A disk's answer to an order to pull, if that disk signed it. A receipt proves itself, and is
    /// for [`Keys::receipt`] to check.
    pub(crate) fn insert_answer(
        &self,
        disk: &DiskName,
        wire: &[u8],
    ) -> Result<InsertAnswer, NotAuthentic> {
        let data = Data::decode(wire).map_err(|_| NotAuthentic::BadAnswer)?;
        let answer = InsertAnswer::decode(&data).map_err(|_| NotAuthentic::BadAnswer)?;
        match answer {
            InsertAnswer::Stored(_) => {}
            InsertAnswer::Pulling { .. } | InsertAnswer::Refused(_) => {
                self.check_disk(disk, &data)?;
            }
        }
        Ok(answer)
    }

    /// A disk's answer to an order to list, if that disk signed it.
    pub(crate) fn list_answer(
        &self,
        disk: &DiskName,
        wire: &[u8],
    ) -> Result<ListAnswer, NotAuthentic> {
        let data = Data::decode(wire).map_err(|_| NotAuthentic::BadAnswer)?;
        self.check_disk(disk, &data)?;
        ListAnswer::decode(&data).map_err(|_| NotAuthentic::BadAnswer)
    }

    /// A disk's answer to a challenge, if that disk signed it.
    pub(crate) fn prove_answer(
        &self,
        disk: &DiskName,
        wire: &[u8],
    ) -> Result<ProveAnswer, NotAuthentic> {
        let data = Data::decode(wire).map_err(|_| NotAuthentic::BadAnswer)?;
        self.check_disk(disk, &data)?;
        ProveAnswer::decode(&data).map_err(|_| NotAuthentic::BadAnswer)
    }

    /// A disk's answer about its copies or a record, if that disk signed it.
    pub(crate) fn copy_answer(
        &self,
        disk: &DiskName,
        wire: &[u8],
    ) -> Result<CopyAnswer, NotAuthentic> {
        let data = Data::decode(wire).map_err(|_| NotAuthentic::BadAnswer)?;
        self.check_disk(disk, &data)?;
        CopyAnswer::decode(&data).map_err(|_| NotAuthentic::BadAnswer)
    }

    /// A packet counts if the key of this disk signed it.
    fn check_disk(&self, disk: &DiskName, data: &Data<'_>) -> Result<(), NotAuthentic> {
        let locator = match data.signature_info.key_locator {
            Some(KeyLocator::Name(locator)) => locator,
            _ => return Err(NotAuthentic::Unsigned),
        };
        let (checked, row) = self.with_validator(locator, |validator| {
            check_data(self.site, data, validator, self.now_s)
        })?;
        let Authentic { identity, .. } = accepted(checked)?;
        let is_of_disk = row.holder == KeyHolder::Disk(disk.id);
        match identity {
            Identity::Disk(name) if is_of_disk && name == *disk => Ok(()),
            _ => Err(other_holder(Some(locator))),
        }
    }

    /// What a validator for one key says, and the row of that key.
    fn with_validator<T>(
        &self,
        locator: NameRef<'_>,
        check: impl FnOnce(&mut Validator) -> T,
    ) -> Result<(T, Key), NotAuthentic> {
        let name = key_name(locator).ok_or(NotAuthentic::Unsigned)?;
        let row = self.reader.key(name.value())?;
        let row = row.ok_or_else(|| NotAuthentic::UnknownKey { key: name.to_string() })?;
        if !row.counts_at(self.now_s.saturating_mul(SECOND_NS)) {
            return Err(NotAuthentic::LoanOver { key: name.to_string() });
        }
        let Some(KnownKeys(known)) = self.known else {
            return Ok((check(&mut validator(name, &row)?), row));
        };
        let mut known = known.borrow_mut();
        let is_kept = |known: &KnownKey| known.certificate == row.certificate;
        if !known.get(name.value()).is_some_and(is_kept) {
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
            let (certificate, validator) = (row.certificate.clone(), validator(name, &row)?);
            known.insert(name.value().to_vec(), KnownKey { certificate, validator });
        }
        let kept = known.get_mut(name.value()).ok_or(NotAuthentic::Unsigned)?;
        Ok((check(&mut kept.validator), row))
    }
}

/// A validator that trusts the certificate of a row.
fn validator(name: NameRef<'_>, row: &Key) -> Result<Validator, NotAuthentic> {
    let certificate = Certificate::decode(&row.certificate)
        .map_err(|_| NotAuthentic::BadCertificate { key: name.to_string() })?;
    let mut validator = Validator::default();
    let (namespace, key) = (certificate.identity().to_name(), certificate.key_id());
    validator.policy_mut().add_anchor(namespace, key);
    validator.give_certificate(certificate);
    Ok(validator)
}

fn accepted(checked: Check<Authentic>) -> Result<Authentic, NotAuthentic> {
    match checked {
        Check::Accepted(authentic) => Ok(authentic),
        // The row's certificate has another name than the packet says: another one of the key.
        Check::NeedCertificate(name) => Err(NotAuthentic::UnknownKey { key: name.to_string() }),
        Check::Refused(reason) => Err(reason.into()),
    }
}

fn other_holder(locator: Option<NameRef<'_>>) -> NotAuthentic {
    NotAuthentic::OtherHolder { key: locator.map(|name| name.to_string()).unwrap_or_default() }
}

/// `…/KEY/<id>` of the name of a key or of one of its certificates.
pub(crate) fn key_name(name: NameRef<'_>) -> Option<NameRef<'_>> {
    let count = name.count();
    let is_key = |at: usize| {
        let component = name.get(at);
        component.is_some_and(|it| it == byname_packet::Component::generic(KEY_COMPONENT))
    };
    let at = (count.saturating_sub(BEHIND_KEY_MAX + 1)..count).find(|at| is_key(*at))?;
    (at + 1 < count).then(|| name.prefix(at + 2))
}
