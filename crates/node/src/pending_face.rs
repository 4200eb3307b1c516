//! A face that a command has asked for and whose link is being opened.

use byname_forwarder::Persistency;

/// See the module.
#[derive(Debug)]
pub(crate) struct PendingFace {
    pub(crate) local_uri: Option<String>,
    pub(crate) persistency: Persistency,
}
