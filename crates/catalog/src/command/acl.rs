//! The command about access control lists.

use crate::name::Place;
use crate::record::Acl;

/// Sets or removes an access control list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAcl {
    /// Whose.
    pub place: Place,
    /// True for that of what is made in a directory, false for that of itself.
    pub is_default: bool,
    /// The list. Without one there is no default any more, or only the mode counts.
    pub acl: Option<Acl>,
}
