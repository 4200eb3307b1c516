//! The head's own commands, from those who look after the disks.

use std::sync::Weak;
use std::sync::mpsc::Sender;

use byname_catalog::Command;

/// Commands of the head's own during a term, for its catalog's thread; each is executed within a
/// second.
pub(crate) struct OwnCommands {
    pub(crate) commands: Sender<Command>,
    /// Gone when the term is over.
    pub(crate) term: Weak<()>,
}
