//! The last order of a copy, asked back from its disk: it proves what the copy has.
//!
//! A disk says how far its copy is, and may say anything. A head that went on from there would sign
//! orders by which the disk could leave out what it likes in between. The last order has the site's
//! signature, and the digest of all that is before it: a copy is gone on with from there, or is
//! begun anew.

use byname_packet::Interest;
use byname_security::cert::Certificate;
use byname_security::trust::Validator;
use byname_site::{CatalogCopy, Check, CopyPoint, FRAME_BYTES_MAX, Frame, Keep, Recall, SiteName};
use byname_transfer::server::SharedSigner;

/// The head's own signature, as others see it.
pub(crate) struct OwnWord {
    site: SiteName,
    validator: Validator,
}

/// See the module.
pub(super) struct Proof {
    copy: CatalogCopy,
    /// The highest edition that the disk has, complete or not.
    edition_max: u64,
    octets: Vec<u8>,
}

/// Outcome of an answer.
pub(super) enum Proved {
    /// The rest is still missing.
    NotYet,
    /// The site has signed that the copy is what it is said to be.
    Yes(CopyPoint),
    /// It has not.
    No,
}

impl OwnWord {
    /// Of the key that signs now: orders of keys before it prove nothing to whoever has only this.
    pub(crate) fn new(site: SiteName, signer: &SharedSigner, certificates: &[Vec<u8>]) -> Self {
        let mut validator = Validator::default();
        let own = certificates.iter().filter_map(|wire| Certificate::decode(wire).ok());
        for certificate in own.filter(|it| signer.key_locator() == Some(it.name())) {
            validator.policy_mut().add_anchor(site.view().to_name(), certificate.key_id());
            validator.give_certificate(certificate);
        }
        Self { site, validator }
    }

    /// An order that was signed so, whenever that was.
    fn order(&mut self, wire: &[u8], now_s: u64) -> Option<Keep> {
        let interest = Interest::decode(wire).ok()?;
        let (_, order) = Keep::decode(&self.site, &interest).ok()?;
        match Keep::check_kept(&self.site, &interest, (&mut self.validator, now_s)) {
            Check::Accepted(()) => Some(order),
            _ => None,
        }
    }
}

impl Proof {
    /// Asks for the last order of a copy; `None` if no order is where it is said to be.
    pub(super) fn begin(copy: CatalogCopy, edition_max: u64) -> Option<Self> {
        let frame_bytes = copy.stored.checked_sub(copy.last)?;
        let is_one = (1..=FRAME_BYTES_MAX as u64).contains(&frame_bytes);
        is_one.then_some(Self { copy, edition_max, octets: Vec::new() })
    }

    pub(super) fn edition(&self) -> u64 {
        self.copy.edition
    }

    pub(super) fn edition_max(&self) -> u64 {
        self.edition_max
    }

    /// What is asked for next.
    pub(super) fn recall(&self) -> Recall {
        let offset = self.copy.last.saturating_add(self.octets.len() as u64);
        Recall::Copy { edition: self.copy.edition, offset }
    }

    /// Takes an answer.
    pub(super) fn handle(&mut self, octets: &[u8], own: &mut OwnWord, now_s: u64) -> Proved {
        if octets.is_empty() {
            return Proved::No;
        }
        self.octets.extend_from_slice(octets);
        if (self.octets.len() as u64) < self.copy.stored - self.copy.last {
            return Proved::NotYet;
        }
        let Frame::Order(wire, _) = Frame::first(&self.octets) else { return Proved::No };
        match own.order(wire, now_s) {
            Some(order) if order.edition == self.copy.edition && order.end() == self.copy.end() => {
                Proved::Yes(order.end())
            }
            _ => Proved::No,
        }
    }
}
