//! Packets that leave: link header, Nacks, signed answers and their reuse.
//!
//! A signed packet is sent again as long as its content is what would be signed now and it is
//! younger than the configured age; comparing the content is the whole invalidation. The version
//! component of an answer is the time of signing and never repeats, even when the wall clock is
//! set back.

use byname_packet::lp::{self, LpHeader};
use byname_packet::{ContentType, DataBuilder, Interest, NameRef, NumberComponent};

use super::arrival::{Arrival, Asker, Now};
use super::cache::Cache;
use super::config::{ServerConfig, SharedSigner};
use super::ops::{FaceId, Outgoing};
use crate::numbers::{ABSENCE_FRESHNESS_MS, LINK_RESERVE_BYTES, PENDING_FRESHNESS_MS};

/// Link header fields of an Interest that go back with its answer.
#[derive(Debug, Clone, Copy)]
pub struct Echo {
    token: [u8; 32],
    token_len: usize,
    mark: Option<u64>,
    path_trace: Option<&'static [u8]>,
    asker: Asker,
}

impl Echo {
    /// The fields of an arrival.
    pub fn of(arrival: &Arrival<'_>) -> Self {
        let given = arrival.pit_token.unwrap_or_default();
        let token_len = given.len().min(32);
        let mut token = [0; 32];
        token[..token_len].copy_from_slice(&given[..token_len]);
        let asker = Asker { face: arrival.face, behind: arrival.incoming_face_id };
        let (mark, path_trace) = (arrival.congestion_mark, arrival.path_trace);
        Self { token, token_len, mark, path_trace, asker }
    }

    pub(super) fn face(&self) -> FaceId {
        self.asker.face
    }

    /// Who asked.
    pub fn asker(&self) -> Asker {
        self.asker
    }

    fn header(&self, nack: Option<u64>) -> LpHeader<'_> {
        let token = &self.token[..self.token_len];
        LpHeader {
            pit_token: (!token.is_empty()).then_some(token),
            congestion_mark: self.mark,
            nack,
            path_trace: self.path_trace.filter(|_| nack.is_none()),
            ..LpHeader::default()
        }
    }

    /// Appends what stands before a packet of `len` octets.
    pub(super) fn write(&self, len: usize, out: &mut Vec<u8>) {
        lp::encode_header(&self.header(None), None, len, out);
    }

    /// `packet` as it goes on the link.
    pub fn wrap(&self, packet: &[u8]) -> Outgoing {
        let mut out = Vec::with_capacity(packet.len() + LINK_RESERVE_BYTES);
        self.write(packet.len(), &mut out);
        out.extend_from_slice(packet);
        Outgoing { face: self.asker.face, wire: out }
    }

    /// The same, asking caches not to keep it, and saying whether it is one for those who want what
    /// is said now.
    pub(super) fn wrap_uncached(&self, packet: &[u8], not_fresh: bool) -> Outgoing {
        let cache_policy = Some(lp::CACHE_POLICY_NO_CACHE);
        let header = LpHeader { cache_policy, not_fresh, ..self.header(None) };
        let mut out = Vec::with_capacity(packet.len() + LINK_RESERVE_BYTES);
        lp::encode_header(&header, None, packet.len(), &mut out);
        out.extend_from_slice(packet);
        Outgoing { face: self.asker.face, wire: out }
    }

    /// A Nack of the Interest `wire`.
    pub fn nack(&self, wire: &[u8], reason: u64) -> Outgoing {
        let mut out = Vec::with_capacity(wire.len() + LINK_RESERVE_BYTES);
        lp::encode_header(&self.header(Some(reason)), None, wire.len(), &mut out);
        out.extend_from_slice(wire);
        Outgoing { face: self.asker.face, wire: out }
    }
}

/// Content of a metadata packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Statement<'a> {
    pub(super) content: &'a [u8],
    pub(super) is_absence: bool,
    /// Soon more will be known.
    pub(super) is_pending: bool,
}

/// Why a packet could not be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignRefused {
    /// The key failed.
    Failed,
    /// The packet would be larger than NDN software accepts.
    TooLarge,
}

struct SignedAnswer {
    content: Vec<u8>,
    is_absence: bool,
    wire: Vec<u8>,
    made_ns: u64,
}

/// Signed packets by the name of the Interest they answer.
pub(super) struct Answers {
    kept: Cache<SignedAnswer>,
    budget: Budget,
    reuse_ns: u64,
    freshness_ms: u64,
    last_version: u64,
}

/// A packet and whether it was signed for this occasion.
pub(super) struct Answered<'a> {
    pub(super) wire: &'a [u8],
    pub(super) is_new: bool,
}

impl Answers {
    pub(super) fn new(config: &ServerConfig) -> Self {
        Self {
            kept: Cache::new(config.answers_max),
            budget: Budget::new(config.signatures_per_s),
            reuse_ns: config.reuse_ns,
            freshness_ms: config.metadata_freshness_ms,
            last_version: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// True if there is a signature left in the budget.
    pub(super) fn can_sign(&mut self, now_ns: u64) -> bool {
        self.budget.has_one(now_ns)
    }

    /// When the budget has a signature again.
    pub(super) fn next_signature_ns(&self) -> u64 {
        self.budget.next_ns()
    }

    /// Takes a signature from the budget ahead of signing.
    pub(super) fn pay(&mut self) {
        self.budget.overdraw();
    }

    /// Puts one back.
    pub(super) fn give_back(&mut self) {
        self.budget.put_back();
    }

    /// True if an answer to this Interest was signed so lately that it can be sent again, should it
    /// still be right.
    pub(super) fn is_at_hand(&self, interest: &[u8], now_ns: u64) -> bool {
        let kept = interest_name(interest).and_then(|name| self.kept.peek(name.value()));
        kept.is_some_and(|kept| now_ns.saturating_sub(kept.made_ns) < self.reuse_ns)
    }

    /// The packet that says `statement` under `name`, signed now or lately.
    pub(super) fn get(
        &mut self,
        name: NameRef<'_>,
        statement: Statement<'_>,
        signer: &SharedSigner,
        now: Now,
    ) -> Result<Answered<'_>, SignRefused> {
        let reusable = self.kept.peek(name.value()).is_some_and(|kept| {
            kept.content == statement.content
                && kept.is_absence == statement.is_absence
                && now.now_ns.saturating_sub(kept.made_ns) < self.reuse_ns
        });
        if !reusable {
            let wire = self.sign(name, statement, signer, now)?;
            let (content, is_absence) = (statement.content.to_vec(), statement.is_absence);
            let answer = SignedAnswer { content, is_absence, wire, made_ns: now.now_ns };
            self.kept.insert(name.value().to_vec(), answer, 1);
        }
        let kept = self.kept.get(name.value()).ok_or(SignRefused::Failed)?;
        Ok(Answered { wire: &kept.wire, is_new: !reusable })
    }

    fn sign(
        &mut self,
        name: NameRef<'_>,
        statement: Statement<'_>,
        signer: &SharedSigner,
        now: Now,
    ) -> Result<Vec<u8>, SignRefused> {
        // Who was paid for has given it back before; the others are few, and paid for later.
        self.budget.overdraw();
        self.last_version = now.unix_ns.max(self.last_version + 1);
        let mut full = name.with(NumberComponent::version(self.last_version).as_component());
        full.push_segment(0);
        let (content_type, freshness_ms) = match statement.is_absence {
            true => (ContentType::NACK, ABSENCE_FRESHNESS_MS.min(self.freshness_ms)),
            false if statement.is_pending => {
                (ContentType::BLOB, PENDING_FRESHNESS_MS.min(self.freshness_ms))
            }
            false => (ContentType::BLOB, self.freshness_ms),
        };
        let first = NumberComponent::segment(0);
        let mut wire = Vec::new();
        DataBuilder::new(full.view())
            .content_type(content_type)
            .freshness_ms(freshness_ms)
            .final_block_id(first.as_component())
            .encode(statement.content, &**signer, &mut wire)
            .map_err(|_| SignRefused::Failed)?;
        if wire.len() > byname_packet::MAX_PACKET_BYTES - LINK_RESERVE_BYTES {
            return Err(SignRefused::TooLarge);
        }
        Ok(wire)
    }
}

/// So many per second, and at most a second's worth at once.
pub(super) struct Budget {
    per_s: u64,
    /// Billionths of one; negative if more was taken than there was.
    left: i128,
    last_ns: u64,
}

impl Budget {
    const ONE: i128 = 1_000_000_000;

    pub(super) fn new(per_s: u64) -> Self {
        Self { per_s, left: i128::from(per_s) * Self::ONE, last_ns: 0 }
    }

    fn refill(&mut self, now_ns: u64) {
        let passed = i128::from(now_ns.saturating_sub(self.last_ns));
        self.last_ns = now_ns;
        let full = i128::from(self.per_s) * Self::ONE;
        self.left = full.min(self.left + passed * i128::from(self.per_s));
    }

    pub(super) fn has_one(&mut self, now_ns: u64) -> bool {
        self.refill(now_ns);
        self.left >= Self::ONE
    }

    /// Takes one if there is one.
    pub(super) fn take(&mut self, now_ns: u64) -> bool {
        let granted = self.has_one(now_ns);
        if granted {
            self.overdraw();
        }
        granted
    }

    /// Takes one, though there may be none: the next ones come later for it.
    pub(super) fn overdraw(&mut self) {
        self.left -= Self::ONE;
    }

    pub(super) fn put_back(&mut self) {
        self.left += Self::ONE;
    }

    /// When there is one, if none is taken before.
    pub(super) fn next_ns(&self) -> u64 {
        let missing = (Self::ONE - self.left).max(0) as u128;
        let wait_ns = missing.div_ceil(u128::from(self.per_s.max(1)));
        self.last_ns.saturating_add(u64::try_from(wait_ns).unwrap_or(u64::MAX))
    }
}

/// The name of an Interest that was decoded once already.
pub(super) fn interest_name(wire: &[u8]) -> Option<NameRef<'_>> {
    Interest::decode(wire).ok().map(|interest| interest.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_grants_a_second_at_once_and_then_its_rate() {
        let mut budget = Budget::new(10);
        assert_eq!((0..20).filter(|_| budget.take(5)).count(), 10);
        assert!(!budget.take(5 + 99_999_999));
        assert!(budget.take(5 + 100_000_000));
        assert!(!budget.take(5 + 100_000_001));
        assert_eq!(budget.next_ns(), 5 + 200_000_000);
        let later = 5 + 60_000_000_000;
        assert_eq!((0..20).filter(|_| budget.take(later)).count(), 10);
    }

    #[test]
    fn what_was_overdrawn_is_paid_for_later_and_what_was_put_back_is_there() {
        let mut budget = Budget::new(10);
        (0..12).for_each(|_| budget.overdraw());
        assert!(!budget.has_one(299_999_999));
        assert_eq!(budget.next_ns(), 300_000_000);
        assert!(budget.has_one(300_000_000));
        budget.overdraw();
        budget.put_back();
        assert!(budget.take(300_000_000));
        assert!(!budget.take(300_000_000));
    }
}
