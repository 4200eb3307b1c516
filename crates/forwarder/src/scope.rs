//! Scopes: names that may not leave the machine, or go no further than the next one.
//!
//! spec: NFD developer's guide, "Name scope"; `/localhost` and `/localhop` are reserved.

use byname_packet::{Component, NameRef};

/// Returns whether `name` is below `/localhost`: it never crosses a face that is not local.
pub(crate) fn is_localhost(name: NameRef<'_>) -> bool {
    name.value().starts_with(b"\x08\x09localhost")
}

/// Returns whether `name` is below `/localhop`: what came from another machine goes to no third
/// one.
pub(crate) fn is_localhop(name: NameRef<'_>) -> bool {
    name.value().starts_with(b"\x08\x08localhop")
}

/// Returns whether `name` is answered by the forwarder's own management: `/localhost/nfd` and
/// `/localhop/nfd`.
pub(crate) fn is_management(name: NameRef<'_>) -> bool {
    (is_localhost(name) || is_localhop(name)) && name.get(1) == Some(Component::generic(b"nfd"))
}
