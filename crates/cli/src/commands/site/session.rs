//! A user's session at a site, opened by the flags of a command.

use super::account::SiteArgs;
use crate::exit::Outcome;
pub(crate) use byname_access::HeadSession as SiteSession;
use byname_profile::Paths;

impl SiteArgs {
    /// Connects to a forwarder. Nothing is sent yet.
    pub(crate) fn session(&self, paths: &Paths) -> Outcome<SiteSession> {
        Ok(SiteSession::open(&self.account(paths)?)?)
    }
}
