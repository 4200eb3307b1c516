//! Flags that say who acts at which site.

use super::defaults::own_user;
use crate::exit::Outcome;
use crate::target::{Pace, ReadArgs, Session};
use crate::{output, settings, typed};
pub(crate) use byname_access::Account;
use byname_access::AccountOptions;
use byname_io::Endpoint;
use byname_keychain::Keychain;
use byname_packet::Name;
use byname_profile::Paths;
use byname_profile::units;
use byname_site::SiteName;
use std::time::Duration;

/// Whose command, and to which site.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SiteArgs {
    /// Name or link of the site. Default: the one that one's keys are for.
    #[arg(long, value_name = "NAME|LINK", env = "BYNAME_SITE")]
    site: Option<String>,
    /// User of the site to act as. Default: the one whose key is here.
    #[arg(long, value_name = "USER", env = "BYNAME_USER")]
    user: Option<String>,
    /// Act through a door whose key is here, for the user of --user.
    #[arg(long, value_name = "NAME")]
    door: Option<String>,
    /// A group that the door says the user is in; the first is that of new files (repeatable).
    /// Default: the groups that the site has the user in.
    #[arg(long, value_name = "GROUP", requires = "door")]
    said_group: Vec<String>,
    /// Forwarder to ask.
    #[arg(long, value_name = "URI")]
    connect: Option<String>,
    /// Give up after so long without an answer.
    #[arg(long, value_name = "DURATION", default_value = "15s",
        value_parser = units::whole_seconds)]
    timeout: u64,
}

impl SiteArgs {
    /// The user whose key is here, at a site that is reached through one forwarder.
    pub(super) fn of(site: &str, endpoint: &Endpoint) -> Self {
        let (site, connect) = (Some(site.to_owned()), Some(endpoint.to_string()));
        let (user, door, said_group) = (None, None, Vec::new());
        Self { site, user, door, said_group, connect, timeout: 15 }
    }

    fn options(&self) -> Outcome<AccountOptions> {
        Ok(AccountOptions {
            site: self.site.clone(),
            user: self.user.clone(),
            usual_user: Some(own_user()),
            door: self.door.clone(),
            said_groups: self.said_group.clone(),
            loan: None,
            connect: self.connect.as_deref().map(typed::endpoint).transpose()?,
            patience: Duration::from_secs(self.timeout.max(1)),
        })
    }

    /// The site alone.
    pub(super) fn site(&self, paths: &Paths) -> Outcome<SiteName> {
        Ok(self.options()?.site(&settings::profile(paths)?)?)
    }

    /// The user's name, as far as it is given or can be told from the keys.
    pub(super) fn user(&self, site: &SiteName, keychain: &Keychain) -> Outcome<String> {
        let (user, candidates) = self.options()?.user(site, keychain)?;
        tell_choice(&user, &candidates);
        Ok(user)
    }

    /// The user at the site that is named, or at the only one there is a key for.
    pub(super) fn account(&self, paths: &Paths) -> Outcome<Account> {
        let account = self.options()?.account(&settings::profile(paths)?)?;
        tell_choice(&account.user, &account.candidates);
        Ok(account)
    }

    /// The user at the site above names or links, and these names.
    pub(crate) fn account_above(
        &self,
        targets: &[String],
        paths: &Paths,
    ) -> Outcome<(Account, Vec<Name>)> {
        let options = self.options()?;
        let (account, names) = options.account_above(targets, &settings::profile(paths)?)?;
        tell_choice(&account.user, &account.candidates);
        Ok((account, names))
    }

    /// A reader of a name of the site, who takes nothing older than what the site says now.
    pub(crate) fn reader(&self, account: &Account, name: &Name) -> Outcome<Session> {
        let read = ReadArgs::of_writer(self.connect.clone(), self.timeout);
        let link = account.link_to(name);
        Session::open_link(link, account.profile.clone(), &read, Pace::default())
    }
}

/// Says as whom a command runs where several users' keys are here.
fn tell_choice(user: &str, candidates: &[String]) {
    if candidates.len() > 1 && tracing::enabled!(tracing::Level::WARN) {
        let all = candidates.join(" or --user ");
        output::err_line(&format!("as {user}; there are several keys here: --user {all}"));
    }
}
