//! A site with its keys: the site's own, users', disks'.

use std::sync::Arc;

use byname_catalog::id::{ContentId, DiskId, InodeId, LeaseEpoch, Version};
use byname_packet::{Data, Interest, Name, ValidityPeriod};
use byname_security::cert::{Certificate, CertificateRequest, SELF_ISSUER};
use byname_security::key::{KeyPair, KeySigner};
use byname_security::trust::{TrustPolicy, Validator};
use byname_site::{DiskName, SiteName, Stamp, Terms, TermsDisk, Ticket};

pub(crate) const NOW_S: u64 = 1_800_000_000;
pub(crate) const CONTENT: ContentId = ContentId { inode: InodeId(300), version: Version(7) };
const DAY_S: u64 = 86_400;

/// A key with its certificate.
pub(crate) struct Holder {
    pub(crate) key: Arc<KeyPair>,
    pub(crate) certificate: Certificate,
    pub(crate) signer: KeySigner,
}

pub(crate) struct TestSite {
    pub(crate) name: SiteName,
    pub(crate) head: Holder,
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn disk(id: u64) -> DiskName {
    DiskName { place: "rack1".to_owned(), id: DiskId(id) }
}

pub(crate) fn stamp(number: u8) -> Stamp {
    Stamp { time_ms: NOW_S * 1000 + u64::from(number), nonce: [number; 8] }
}

pub(crate) fn interest(wire: &[u8]) -> Interest<'_> {
    Interest::decode(wire).unwrap()
}

pub(crate) fn data(wire: &[u8]) -> Data<'_> {
    Data::decode(wire).unwrap()
}

fn holder(seed: u8, namespace: Name, issuer: Option<&Holder>) -> Holder {
    let key = Arc::new(KeyPair::ed25519_from_seed(&[seed; 32]));
    let key_name = namespace.with_generic(b"KEY").with_generic(&[seed; 8]);
    let public_key = key.public_key();
    let request = CertificateRequest {
        key_name: key_name.view(),
        public_key: &public_key,
        issuer_id: if issuer.is_some() { b"site" } else { SELF_ISSUER },
        version: 1,
        validity: ValidityPeriod { not_before_s: NOW_S - DAY_S, not_after_s: NOW_S + 9 * DAY_S },
    };
    let signer = KeySigner::new(Arc::clone(&key), request.certificate_name());
    let certificate = request.issue(issuer.map_or(&signer, |issuer| &issuer.signer)).unwrap();
    Holder { key, certificate, signer }
}

impl TestSite {
    pub(crate) fn new(seed: u8, prefix: &str) -> Self {
        let head = holder(seed, name(prefix), None);
        Self { name: SiteName::new(name(prefix)).unwrap(), head }
    }

    pub(crate) fn user(&self, seed: u8, user: &str) -> Holder {
        holder(seed, self.name.user(user), Some(&self.head))
    }

    pub(crate) fn disk_key(&self, seed: u8, disk: &DiskName) -> Holder {
        holder(seed, self.name.disk(disk), Some(&self.head))
    }

    /// A key that another key of the site vouches for.
    pub(crate) fn issued_by(&self, seed: u8, namespace: Name, issuer: &Holder) -> Holder {
        holder(seed, namespace, Some(issuer))
    }

    /// What disks and heads trust: the site's key for its prefix.
    pub(crate) fn validator(&self, holders: &[&Holder]) -> Validator {
        let mut policy = TrustPolicy::default();
        policy.add_anchor(self.name.view().to_name(), self.head.key.key_id());
        let mut validator = Validator::new(policy);
        validator.add_certificate(self.head.certificate.wire()).unwrap();
        for holder in holders {
            validator.add_certificate(holder.certificate.wire()).unwrap();
        }
        validator
    }

    pub(crate) fn terms(&self, content: ContentId) -> Terms {
        let disks = [1, 2].map(|id| TermsDisk { name: disk(id), generation: 4 });
        Terms {
            content,
            epoch: LeaseEpoch(5),
            size_max: 10_000,
            receipt_count: 2,
            expires_ns: (NOW_S + 3600) * 1_000_000_000,
            disks: disks.to_vec(),
            origin: None,
        }
    }

    pub(crate) fn ticket(&self, terms: Terms, writer: &Holder) -> Ticket {
        let key = writer.key.public_key();
        Ticket::issue(&self.name, terms, &key, NOW_S, &self.head.signer).unwrap()
    }
}

/// Signs as the holder of a ticket.
pub(crate) fn with_ticket(holder: &Holder, ticket: &Ticket) -> KeySigner {
    KeySigner::new(Arc::clone(&holder.key), ticket.certificate().name().to_name())
}
