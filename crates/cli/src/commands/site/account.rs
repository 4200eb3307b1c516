//! A user at a site: whose key signs, which key of the site counts, and who is asked.

use super::defaults::own_user;
use crate::exit::{Code, Failure, Outcome};
use crate::target::{Pace, ReadArgs, Session};
use crate::{forwarders, output, settings, typed};
use byname_io::{Connection, Endpoint};
use byname_keychain::{Identity, Keychain};
use byname_packet::Name;
use byname_profile::{Link, Paths, Profile};
use byname_security::trust::{TrustPolicy, UnknownKeys};
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
    /// Forwarder to ask.
    #[arg(long, value_name = "URI")]
    connect: Option<String>,
    /// Give up after so many seconds without an answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 15)]
    timeout: u64,
}

/// A user at a site.
pub(crate) struct Account {
    pub(crate) site: SiteName,
    pub(crate) user: String,
    pub(crate) identity: Identity,
    pub(crate) trust: TrustPolicy,
    pub(crate) patience: Duration,
    endpoints: Vec<Endpoint>,
    profile: Profile,
    /// The link by which the site was named.
    link: Link,
    read: ReadArgs,
}

impl SiteArgs {
    /// The user whose key is here, at a site that is reached through one forwarder.
    pub(super) fn of(site: &str, endpoint: &Endpoint) -> Self {
        let (site, connect) = (Some(site.to_owned()), Some(endpoint.to_string()));
        Self { site, user: None, connect, timeout: 15 }
    }

    /// The site, and the link that says how to reach it.
    fn link(&self, profile: &Profile, keychain: &Keychain) -> Outcome<(SiteName, Link)> {
        let link = match &self.site {
            Some(text) => profile.link(text)?,
            None => Link::of_name(only_site(keychain)?.view().to_name()),
        };
        Ok((site_of(&link)?, link))
    }

    /// The site alone.
    pub(super) fn site(&self, paths: &Paths) -> Outcome<SiteName> {
        let profile = settings::profile(paths)?;
        Ok(self.link(&profile, &Keychain::open(&paths.keys)?)?.0)
    }

    /// The user's name, as far as it is given or can be told from the keys.
    pub(super) fn user(&self, site: &SiteName, keychain: &Keychain) -> Outcome<String> {
        if let Some(user) = &self.user {
            return Ok(user.clone());
        }
        let mut users = Vec::new();
        for info in keychain.list()? {
            match site.identity(info.identity.view()) {
                Some(byname_site::Identity::User(user)) if !users.contains(&user) => {
                    users.push(user);
                }
                _ => {}
            }
        }
        match users.as_slice() {
            [user] => Ok(user.clone()),
            [] => Ok(own_user()),
            _ => own_of(&users),
        }
    }

    /// The user at the site that is named, or at the only one there is a key for.
    pub(super) fn account(&self, paths: &Paths) -> Outcome<Account> {
        let profile = settings::profile(paths)?;
        let keychain = Keychain::open(&paths.keys)?;
        let (site, link) = self.link(&profile, &keychain)?;
        self.open((site, link), profile, &keychain)
    }

    /// The user at the site above names or links, and these names.
    pub(crate) fn account_above(
        &self,
        targets: &[String],
        paths: &Paths,
    ) -> Outcome<(Account, Vec<Name>)> {
        let profile = settings::profile(paths)?;
        let keychain = Keychain::open(&paths.keys)?;
        let links = targets.iter().map(|text| profile.link(text)).collect::<Result<Vec<_>, _>>()?;
        let first = links.first().ok_or_else(|| Failure::usage("which name?"))?;
        let (site, link) = match &self.site {
            Some(_) => self.link(&profile, &keychain)?,
            None => (site_above(&first.name, &keychain)?, first.clone()),
        };
        for link in &links {
            if !site.view().is_prefix_of(link.name.view()) {
                let (name, site) = (output::name(link.name.view()), output::name(site.view()));
                return Err(Failure::usage(format!("{name} is not in the site {site}")));
            }
        }
        let account = self.open((site, link), profile, &keychain)?;
        Ok((account, links.into_iter().map(|link| link.name).collect()))
    }

    fn open(
        &self,
        (site, link): (SiteName, Link),
        profile: Profile,
        keychain: &Keychain,
    ) -> Outcome<Account> {
        let user = self.user(&site, keychain)?;
        let identity = keychain.identity(site.user(&user).view())?.ok_or_else(|| {
            let shown = output::name(site.view());
            Failure::new(Code::UnknownKey, format!("there is no key of {user} at {shown} here"))
                .hint(format!(
                    "make one: byname site user key --site {shown} --user {user}, and have an \
                     operator add it"
                ))
        })?;
        let mut trust = profile.trust_policy(UnknownKeys::Refuse)?;
        if let Some(key) = link.key {
            trust.add_anchor(site.view().to_name(), key);
        }
        let endpoints = match &self.connect {
            Some(uri) => vec![typed::endpoint(uri)?],
            None if !link.via.is_empty() => typed::endpoints(&link.via)?,
            None => profile.forwarders(false)?,
        };
        let read = ReadArgs::of_writer(self.connect.clone(), self.timeout);
        let patience = Duration::from_secs(self.timeout.max(1));
        Ok(Account { site, user, identity, trust, patience, endpoints, profile, link, read })
    }
}

/// The one of several users of a site who has the name of the user of this machine.
fn own_of(users: &[String]) -> Outcome<String> {
    let (own, all) = (own_user(), users.join(" or --user "));
    if !users.contains(&own) {
        return Err(Failure::usage(format!("which user? --user {all}")));
    }
    if tracing::enabled!(tracing::Level::WARN) {
        output::err_line(&format!("as {own}; there are several keys here: --user {all}"));
    }
    Ok(own)
}

impl Account {
    /// A connection to a forwarder.
    pub(crate) fn connect(&self) -> Outcome<Connection> {
        let connected = forwarders::connect_first(&self.endpoints);
        Ok(connected.map_err(forwarders::failure)?.0)
    }

    /// A reader of a name of the site, who takes nothing older than what the site says now.
    pub(crate) fn reader(&self, name: &Name) -> Outcome<Session> {
        let link = Link { name: name.clone(), ..self.link.clone() };
        Session::open_link(link, self.profile.clone(), &self.read, Pace::default())
    }
}

fn site_of(link: &Link) -> Outcome<SiteName> {
    let shown = output::name(link.name.view());
    SiteName::new(link.name.clone())
        .ok_or_else(|| Failure::usage(format!("{shown} is no name of a site")))
}

/// Sites that one's keys as a user are for.
fn own_sites(keychain: &Keychain) -> Outcome<Vec<SiteName>> {
    let mut sites: Vec<SiteName> = Vec::new();
    for info in keychain.list()? {
        let of_user = info.identity.view();
        let site = SiteName::new(of_user.without_last(2).to_name());
        let site = site
            .filter(|site| matches!(site.identity(of_user), Some(byname_site::Identity::User(_))));
        sites.extend(site.filter(|site| !sites.contains(site)));
    }
    Ok(sites)
}

/// The site that one's keys as a user are for.
fn only_site(keychain: &Keychain) -> Outcome<SiteName> {
    match own_sites(keychain)?.as_slice() {
        [site] => Ok(site.clone()),
        [] => Err(Failure::usage("which site? --site NAME, or --site LINK")),
        _ => Err(Failure::usage("which site? There are keys for several: --site NAME")),
    }
}

/// The site above a name that there is a key for: the nearest, if there are several.
fn site_above(name: &Name, keychain: &Keychain) -> Outcome<SiteName> {
    let sites = own_sites(keychain)?.into_iter();
    let above = sites.filter(|site| site.view().is_prefix_of(name.view()));
    above.max_by_key(|site| site.view().count()).ok_or_else(|| {
        let shown = output::name(name.view());
        let text = format!("there is no key here for a site above {shown}");
        Failure::new(Code::UnknownKey, text)
            .hint("make one: byname site user key --site SITE, and have an operator add it")
    })
}
