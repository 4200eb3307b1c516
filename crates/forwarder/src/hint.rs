//! Forwarding hints: which of them have arrived, which are refused, and what they may leave in the
//! content store.
//!
//! spec: NFD, `Forwarder::onIncomingInterest` and `NetworkRegionTable`: a hint is removed where one
//! of its delegations is a prefix of a region of ours, and leads to its first delegation that has a
//! route until then.

use byname_packet::{ForwardingHint, Name, NameRef, types};

use crate::scope;

/// Returns whether the Interest has arrived: the name leads on from here.
pub(crate) fn has_arrived(hint: &ForwardingHint<'_>, regions: &[Name]) -> bool {
    hint.names().any(|name| regions.iter().any(|region| name.is_prefix_of(region.view())))
}

/// Returns whether a delegation names something of one machine. Of another machine it would lead
/// past the rules for such names.
pub(crate) fn is_localhost(hint: &ForwardingHint<'_>) -> bool {
    hint.names().any(scope::is_localhost)
}

/// Returns whether a delegation names something of one link. NDNd's routers ask so for what their
/// neighbours signed with.
pub(crate) fn is_localhop(hint: &ForwardingHint<'_>) -> bool {
    hint.names().any(scope::is_localhop)
}

/// Returns whether Data `name` that such an Interest brought may be kept for others.
///
/// Whoever asks chooses the hint, so it may lead to whoever answers anything. Kept is what came
/// from below the prefix that the owner of the name decides about: its components before the first
/// keyword, or before its first component that is not generic.
pub(crate) fn may_be_cached(name: NameRef<'_>, hint: Option<&ForwardingHint<'_>>) -> bool {
    let Some(hint) = hint else { return true };
    let own = name.components().take_while(|component| component.typ == types::GENERIC).count();
    let owner = name.prefix(own);
    own > 0 && hint.names().all(|delegation| owner.is_prefix_of(delegation))
}
