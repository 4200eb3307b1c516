//! Encoding of Interests, plain, with parameters, and signed.

use super::with_parameters_digest;
use crate::digest::sha256;
use crate::name::{Name, NameRef};
use crate::signature::{self, InfoExtra, SignError, Signer};
use crate::{tlv, types};

/// Elements of a signed Interest against replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SignatureExtra<'a> {
    /// SignatureNonce, usually 8 random octets.
    pub nonce: Option<&'a [u8]>,
    /// SignatureTime in milliseconds since the Unix epoch.
    pub time_ms: Option<u64>,
    /// SignatureSeqNum.
    pub seq_num: Option<u64>,
}

/// Collects the fields of an Interest and encodes it.
#[derive(Debug, Clone)]
pub struct InterestBuilder<'a> {
    name: NameRef<'a>,
    can_be_prefix: bool,
    must_be_fresh: bool,
    forwarding_hint: &'a [Name],
    nonce: Option<[u8; 4]>,
    lifetime_ms: Option<u64>,
    hop_limit: Option<u8>,
    past_caches: bool,
    application_parameters: Option<&'a [u8]>,
}

impl<'a> InterestBuilder<'a> {
    /// An Interest for `name` and nothing else.
    pub fn new(name: NameRef<'a>) -> Self {
        Self {
            name,
            can_be_prefix: false,
            must_be_fresh: false,
            forwarding_hint: &[],
            nonce: None,
            lifetime_ms: None,
            hop_limit: None,
            past_caches: false,
            application_parameters: None,
        }
    }

    /// Sets CanBePrefix.
    pub fn can_be_prefix(mut self, on: bool) -> Self {
        self.can_be_prefix = on;
        self
    }

    /// Sets MustBeFresh.
    pub fn must_be_fresh(mut self, on: bool) -> Self {
        self.must_be_fresh = on;
        self
    }

    /// Sets the delegations.
    pub fn forwarding_hint(mut self, names: &'a [Name]) -> Self {
        self.forwarding_hint = names;
        self
    }

    /// Sets the nonce.
    pub fn nonce(mut self, nonce: [u8; 4]) -> Self {
        self.nonce = Some(nonce);
        self
    }

    /// Sets the lifetime in milliseconds.
    pub fn lifetime_ms(mut self, ms: u64) -> Self {
        self.lifetime_ms = Some(ms);
        self
    }

    /// Sets the hop limit.
    pub fn hop_limit(mut self, hops: u8) -> Self {
        self.hop_limit = Some(hops);
        self
    }

    /// Says whether an answer of a cache will not do.
    pub fn past_caches(mut self, on: bool) -> Self {
        self.past_caches = on;
        self
    }

    /// Sets application parameters; the digest component is appended to the name when encoding.
    pub fn application_parameters(mut self, parameters: &'a [u8]) -> Self {
        self.application_parameters = Some(parameters);
        self
    }

    /// Appends the Interest.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self.application_parameters {
            None => self.write(self.name, &[], out),
            Some(parameters) => {
                let mut tail = Vec::with_capacity(parameters.len() + 4);
                tlv::write_element(&mut tail, types::APPLICATION_PARAMETERS, parameters);
                let name = with_parameters_digest(self.name, &sha256(&[&tail]));
                self.write(name.view(), &tail, out);
            }
        }
    }

    /// Appends the Interest with a signature; absent parameters are written empty, as the format
    /// demands.
    ///
    /// # Errors
    /// [`SignError`] of the signer.
    pub fn encode_signed(
        &self,
        signer: &dyn Signer,
        extra: SignatureExtra<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), SignError> {
        let parameters = self.application_parameters.unwrap_or_default();
        let extra = InfoExtra {
            nonce: extra.nonce,
            time_ms: extra.time_ms,
            seq_num: extra.seq_num,
            validity: None,
            extension: &[],
        };
        let mut tail = Vec::new();
        tlv::write_element(&mut tail, types::APPLICATION_PARAMETERS, parameters);
        let info_len = signature::info_value_len(signer, &extra);
        tlv::write_tl(&mut tail, types::INTEREST_SIGNATURE_INFO, info_len);
        signature::write_info_value(&mut tail, signer, &extra);
        let mut value = vec![0; signer.signature_len_max()];
        let len = signer.sign(&[self.name.value(), &tail], &mut value)?;
        let value = value.get(..len).ok_or(SignError::Failed)?;
        tlv::write_element(&mut tail, types::INTEREST_SIGNATURE_VALUE, value);
        let name = with_parameters_digest(self.name, &sha256(&[&tail]));
        self.write(name.view(), &tail, out);
        Ok(())
    }

    fn write(&self, name: NameRef<'_>, tail: &[u8], out: &mut Vec<u8>) {
        tlv::write_tl(out, types::INTEREST, self.value_len(name, tail));
        name.encode(out);
        if self.can_be_prefix {
            tlv::write_tl(out, types::CAN_BE_PREFIX, 0);
        }
        if self.must_be_fresh {
            tlv::write_tl(out, types::MUST_BE_FRESH, 0);
        }
        if !self.forwarding_hint.is_empty() {
            tlv::write_tl(out, types::FORWARDING_HINT, self.hint_len());
            for name in self.forwarding_hint {
                name.view().encode(out);
            }
        }
        if let Some(nonce) = self.nonce {
            tlv::write_element(out, types::NONCE, &nonce);
        }
        if let Some(ms) = self.lifetime_ms {
            tlv::write_nni(out, types::INTEREST_LIFETIME, ms);
        }
        if let Some(hops) = self.hop_limit {
            tlv::write_element(out, types::HOP_LIMIT, &[hops]);
        }
        if self.past_caches {
            tlv::write_tl(out, types::PAST_CACHES, 0);
        }
        out.extend_from_slice(tail);
    }

    fn hint_len(&self) -> usize {
        self.forwarding_hint.iter().map(|name| name.view().wire_len()).sum()
    }

    fn value_len(&self, name: NameRef<'_>, tail: &[u8]) -> usize {
        let flags = usize::from(self.can_be_prefix) + usize::from(self.must_be_fresh);
        let hint = match self.hint_len() {
            0 => 0,
            len => tlv::element_len(types::FORWARDING_HINT, len),
        };
        let nonce = self.nonce.map_or(0, |_| 6);
        let lifetime =
            self.lifetime_ms.map_or(0, |ms| tlv::nni_element_len(types::INTEREST_LIFETIME, ms));
        let hops = self.hop_limit.map_or(0, |_| 3);
        let past_caches = match self.past_caches {
            true => tlv::element_len(types::PAST_CACHES, 0),
            false => 0,
        };
        let options = 2 * flags + hint + nonce + lifetime + hops + past_caches;
        name.wire_len() + options + tail.len()
    }
}
