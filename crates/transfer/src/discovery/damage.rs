//! A description or certificate that came damaged is asked for again, a few times.
//!
//! Damage and forgery look alike. What the network spoiled is whole the next time; what somebody
//! forged is forged again, and refused a moment later than it could have been.

use byname_packet::NameRef;
use byname_retry::BackOff;
use byname_security::trust::{TrustError, Trusted};

use super::{Discovery, MS};
use crate::error::{ProtocolProblem, ReadError};
use crate::metadata::{ContentRoot, Metadata};
use crate::numbers::LISTING_KEYWORD;
use crate::request::Context;

/// Times that are asked again.
const DAMAGED_ASKS_MAX: u32 = 4;
/// Pauses before them. A cache may hold what is damaged for as long as it is fresh, but a user
/// should not wait a second to hear of a forgery.
const PAUSES: BackOff = BackOff { min_ns: 25 * MS, max_ns: 200 * MS };
/// Afterwards nothing is asked again: what took so long was not damage.
const WITHIN_NS: u64 = 5_000 * MS;

/// True if a flipped bit could look like this.
fn is_damage(error: &TrustError) -> bool {
    matches!(
        error,
        TrustError::BadSignature { .. }
            | TrustError::BadDigest { .. }
            | TrustError::MalformedCertificate { .. }
            | TrustError::NoCertificate { .. }
            | TrustError::NoKeyLocator { .. }
            | TrustError::NotUnder { .. }
    )
}

impl Discovery {
    /// The answer does not count: ask again if that may help.
    pub(super) fn on_distrust(&mut self, error: TrustError, context: &mut Context<'_>) {
        let waited_ns = context.now_ns.saturating_sub(self.started_ns);
        let is_enough = self.damaged_asks >= DAMAGED_ASKS_MAX || waited_ns >= WITHIN_NS;
        if is_enough || !is_damage(&error) {
            return self.fail(error.into());
        }
        self.authenticator.abandon(context.flow);
        self.damaged_asks += 1;
        let pause_ns = PAUSES.pause_ns(self.damaged_asks, context.flow.jitter().next_u64());
        self.stage = super::Stage::Pausing(context.now_ns.saturating_add(pause_ns));
    }

    pub(super) fn problem(&self, problem: ProtocolProblem) -> ReadError {
        ReadError::Protocol { name: self.name.clone(), problem }
    }

    /// True if a name is that of what was asked for.
    pub(super) fn is_own(&self, object: NameRef<'_>) -> bool {
        let own = self.name.view();
        object == own || object == self.name.with_keyword(LISTING_KEYWORD).view()
    }

    /// True if the description may be about another name than the one asked for. A publisher
    /// without roots may keep the content elsewhere: then each of its packets has to prove itself.
    pub(super) fn may_lie_elsewhere(metadata: &Metadata, trust: &Trusted) -> bool {
        *trust == Trusted::Insecure || metadata.root == ContentRoot::Absent
    }
}
