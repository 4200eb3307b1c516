//! A user at a site: whose key signs, which key of the site counts, and who is asked.

use std::time::Duration;

use byname_client::Refusals;
use byname_face::{FaceError, RegisterError};
use byname_io::{Connection, Endpoint};
use byname_keychain::{Identity, Keychain};
use byname_packet::Name;
use byname_profile::{Endpoints, Link, Profile, ProfileError};
use byname_security::trust::{TrustPolicy, UnknownKeys};
use byname_site::{Identity as Who, SiteName, SpeaksFor};
use byname_writer::{Writer, WriterConfig, WriterError};

use crate::error::AccessError;
use crate::loan::{Loan, LoanError};

/// Time to connect to a forwarder.
const CONNECT: Duration = Duration::from_secs(5);
/// Time without an answer after which it is given up, unless more or less is asked for.
const PATIENCE: Duration = Duration::from_secs(15);

/// Who acts at which site, as far as it is said; the rest follows from the keys that are here.
#[derive(Debug, Clone)]
pub struct AccountOptions {
    /// Name or link of the site.
    pub site: Option<String>,
    /// User of the site.
    pub user: Option<String>,
    /// The user that is taken if no key says one, or several do.
    pub usual_user: Option<String>,
    /// The door that acts for the user: its key signs.
    pub door: Option<String>,
    /// Groups that the door says the user is in; those of the catalog, if there are none.
    pub said_groups: Vec<String>,
    /// A lent key, which signs in place of those that are here.
    pub loan: Option<Loan>,
    /// Forwarder to ask, in place of the link's or the usual one.
    pub connect: Option<Endpoint>,
    /// Time without an answer after which it is given up.
    pub patience: Duration,
}

impl Default for AccountOptions {
    fn default() -> Self {
        let (site, user, usual_user, door, connect) = (None, None, None, None, None);
        let (said_groups, loan) = (Vec::new(), None);
        Self { site, user, usual_user, door, said_groups, loan, connect, patience: PATIENCE }
    }
}

/// A user at a site.
#[derive(Debug, Clone)]
pub struct Account {
    /// The site.
    pub site: SiteName,
    /// The user's name.
    pub user: String,
    /// All users whose keys for this site are here, if it was not said who acts.
    pub candidates: Vec<String>,
    /// The key that signs and its certificate: the user's, or that of the door that acts for him.
    pub identity: Identity,
    /// The key is a lent one, and not of those that are here.
    pub is_lent: bool,
    /// The namespace of that key.
    pub namespace: Name,
    /// The user for whom a door acts.
    pub speaks_for: Option<SpeaksFor>,
    /// Whose signatures count.
    pub trust: TrustPolicy,
    /// Time without an answer after which it is given up.
    pub patience: Duration,
    /// Configuration of the user of this machine.
    pub profile: Profile,
    /// The link by which the site was named.
    pub link: Link,
    endpoints: Vec<Endpoint>,
}

type Acting = (String, Vec<String>, Identity);

impl AccountOptions {
    /// The site, and the link that says how to reach it.
    fn link(&self, profile: &Profile) -> Result<(SiteName, Link), AccessError> {
        let link = match &self.site {
            Some(text) => profile.link(text)?,
            None => Link::of_name(only_site(&keychain(profile)?)?.view().to_name()),
        };
        Ok((site_of(&link)?, link))
    }

    /// The site alone.
    ///
    /// # Errors
    /// [`AccessError`] if none is named and the keys do not say which.
    pub fn site(&self, profile: &Profile) -> Result<SiteName, AccessError> {
        Ok(self.link(profile)?.0)
    }

    /// The user's name, as far as it is given or can be told from the keys; then all whose keys are
    /// here.
    ///
    /// # Errors
    /// [`AccessError::WhichUser`] if there are several, [`AccessError::NoSiteAbove`] if nobody has
    /// a key.
    pub fn user(
        &self,
        site: &SiteName,
        keychain: &Keychain,
    ) -> Result<(String, Vec<String>), AccessError> {
        if let Some(user) = &self.user {
            return Ok((user.clone(), Vec::new()));
        }
        let mut users: Vec<String> = Vec::new();
        for info in keychain.list()? {
            match site.identity(info.identity.view()) {
                Some(Who::User(user)) if !users.contains(&user) => users.push(user),
                _ => {}
            }
        }
        match (users.as_slice(), &self.usual_user) {
            ([user], _) => Ok((user.clone(), users)),
            ([], Some(usual)) => Ok((usual.clone(), users)),
            ([], None) => Err(AccessError::NoSiteAbove { name: site.view().to_name() }),
            (_, Some(usual)) if users.contains(usual) => Ok((usual.clone(), users)),
            _ => Err(AccessError::WhichUser { site: site.clone(), users }),
        }
    }

    /// The user at the site that is named, or at the only one there is a key for.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn account(&self, profile: &Profile) -> Result<Account, AccessError> {
        let (site, link) = self.link(profile)?;
        self.open((site, link), profile)
    }

    /// The user at the site above names or links, and these names.
    ///
    /// # Errors
    /// [`AccessError`]; [`AccessError::NotInSite`] if they are in different ones.
    pub fn account_above(
        &self,
        targets: &[String],
        profile: &Profile,
    ) -> Result<(Account, Vec<Name>), AccessError> {
        let links: Result<Vec<_>, ProfileError> =
            targets.iter().map(|text| profile.link(text)).collect();
        let links = links?;
        let (site, link) = match (&self.site, links.first()) {
            (None, Some(first)) => (site_above(&first.name, &keychain(profile)?)?, first.clone()),
            _ => self.link(profile)?,
        };
        for Link { name, .. } in &links {
            if !site.view().is_prefix_of(name.view()) {
                return Err(AccessError::NotInSite { name: name.clone(), site });
            }
        }
        let account = self.open((site, link), profile)?;
        Ok((account, links.into_iter().map(|link| link.name).collect()))
    }

    /// The user at the site above a name that is reached by a link.
    ///
    /// # Errors
    /// [`AccessError`]; [`AccessError::NoSiteAbove`] if there is no key for one.
    pub fn account_of(
        &self,
        name: &Name,
        link: &Link,
        profile: &Profile,
    ) -> Result<Account, AccessError> {
        let site = match &self.loan {
            Some(loan) if loan.site.view().is_prefix_of(name.view()) => loan.site.clone(),
            Some(Loan { site, .. }) => {
                return Err(AccessError::NotInSite { name: name.clone(), site: site.clone() });
            }
            None => site_above(name, &keychain(profile)?)?,
        };
        self.open((site, link.clone()), profile)
    }

    fn namespace(&self, site: &SiteName, user: &str) -> Name {
        match &self.door {
            Some(door) => site.door(door),
            None => site.user(user),
        }
    }

    /// The user whose key is here, all whose keys are, and the key that signs.
    fn own(&self, site: &SiteName, keychain: &Keychain) -> Result<Acting, AccessError> {
        let (user, candidates) = match (&self.door, &self.user) {
            (Some(door), None) => return Err(AccessError::ForWhom { door: door.clone() }),
            _ => self.user(site, keychain)?,
        };
        let Some(identity) = keychain.identity(self.namespace(site, &user).view())? else {
            let site = site.clone();
            return Err(match self.door.clone() {
                Some(door) => AccessError::NoDoorKey { site, door },
                None => AccessError::NoKey { site, user },
            });
        };
        Ok((user, candidates, identity))
    }

    /// The same of a lent key: no other is looked for.
    fn lent(&self, loan: &Loan) -> Result<Acting, AccessError> {
        loan.check_time()?;
        let user = loan.user.clone();
        if let Some(door) = &self.door {
            return Err(AccessError::NoDoorKey { site: loan.site.clone(), door: door.clone() });
        }
        match &self.user {
            Some(wanted) if *wanted != user => {
                Err(LoanError::OfAnother { user, wanted: wanted.clone() }.into())
            }
            _ => Ok((user, Vec::new(), loan.identity.clone())),
        }
    }

    fn open(
        &self,
        (site, link): (SiteName, Link),
        profile: &Profile,
    ) -> Result<Account, AccessError> {
        let (user, candidates, identity) = match &self.loan {
            Some(loan) => {
                if let Some(said) = link.key.filter(|key| *key != loan.site_key) {
                    let lent = loan.site_key;
                    return Err(LoanError::OtherKey { site, lent, said }.into());
                }
                self.lent(loan)?
            }
            None => self.own(&site, &keychain(profile)?)?,
        };
        let namespace = self.namespace(&site, &user);
        let groups = self.said_groups.clone();
        let speaks_for = self.door.is_some().then(|| SpeaksFor { user: user.clone(), groups });
        let mut trust = profile.trust_policy(UnknownKeys::Refuse)?;
        if let Some(key) = link.key {
            trust.add_anchor(site.view().to_name(), key);
        }
        if let Some(loan) = &self.loan {
            let name = site.view().to_name();
            let mut known = trust.anchors.iter().filter(|anchor| anchor.prefix == name).peekable();
            if let Some(said) = known.peek().map(|anchor| anchor.key)
                && !known.any(|anchor| anchor.key == loan.site_key)
            {
                return Err(LoanError::OtherKey { site, lent: loan.site_key, said }.into());
            }
            trust.add_anchor(name, loan.site_key);
        }
        let endpoints = match &self.connect {
            Some(endpoint) => vec![endpoint.clone()],
            None if !link.via.is_empty() => {
                let parsed = link.via.iter().map(|uri| uri.parse()).collect::<Result<_, _>>();
                parsed.map_err(ProfileError::Endpoint)?
            }
            None => profile.forwarders(false)?,
        };
        Ok(Account {
            site,
            user,
            candidates,
            identity,
            is_lent: self.loan.is_some(),
            namespace,
            speaks_for,
            trust,
            patience: self.patience,
            profile: profile.clone(),
            link,
            endpoints,
        })
    }
}

impl Account {
    /// A connection to a forwarder.
    ///
    /// # Errors
    /// [`AccessError::NoForwarder`].
    pub fn connect(&self) -> Result<Connection, AccessError> {
        let mut refused = Vec::new();
        for endpoint in &self.endpoints {
            match Connection::connect(endpoint, CONNECT) {
                Ok(connection) => return Ok(connection),
                Err(error) => refused.push(error),
            }
        }
        Err(AccessError::NoForwarder { tried: Refusals::new(refused) })
    }

    /// The forwarders that are asked, for whoever reads.
    pub fn endpoints(&self) -> Endpoints {
        Endpoints { list: self.endpoints.clone(), asks_all: false }
    }

    /// The link by which a name of the site is read.
    pub fn link_to(&self, name: &Name) -> Link {
        Link { name: name.clone(), ..self.link.clone() }
    }

    /// A writer of files, which is about to write under a name.
    ///
    /// # Errors
    /// [`AccessError`]; [`AccessError::NotAdmitted`] if the forwarder has to be told of the user.
    pub fn writer(
        &self,
        name: &Name,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Writer, AccessError> {
        let config = WriterConfig {
            site: self.site.clone(),
            namespace: self.namespace.clone(),
            speaks_for: self.speaks_for.clone(),
            signer: self.identity.signer.clone(),
            trust: self.trust.clone(),
            waits_for_head: self.patience > PATIENCE,
        };
        let connected = Writer::connect(self.connect()?, config, is_stopped);
        connected.map_err(|source| match source {
            WriterError::Face(FaceError::Register(RegisterError::Refused {
                is_local: false,
                code: 401 | 403,
                text,
                ..
            })) => self.not_admitted(name, &text),
            WriterError::Face(FaceError::Register(RegisterError::Silent {
                is_local: false,
                ..
            })) => self.not_admitted(name, "it does not answer"),
            source => AccessError::write(name, source),
        })
    }

    fn not_admitted(&self, name: &Name, said: &str) -> AccessError {
        AccessError::NotAdmitted {
            name: name.clone(),
            user: self.user.as_str().into(),
            prefix: self.namespace.clone(),
            key: (!self.is_lent).then(|| self.identity.certificate.key_id()),
            // What it advises is for one writer, and not for the next.
            said: said.split(';').next().unwrap_or_default().into(),
        }
    }
}

fn keychain(profile: &Profile) -> Result<Keychain, AccessError> {
    Ok(Keychain::open(&profile.paths().keys)?)
}

fn site_of(link: &Link) -> Result<SiteName, AccessError> {
    SiteName::new(link.name.clone())
        .ok_or_else(|| AccessError::NoSiteName { name: link.name.clone() })
}

/// Sites that one's keys as a user, or those of doors, are for.
fn own_sites(keychain: &Keychain) -> Result<Vec<SiteName>, AccessError> {
    let mut sites: Vec<SiteName> = Vec::new();
    for info in keychain.list()? {
        let of_user = info.identity.view();
        let site = SiteName::new(of_user.without_last(2).to_name());
        let site =
            site.filter(|site| matches!(site.identity(of_user), Some(Who::User(_) | Who::Door(_))));
        sites.extend(site.filter(|site| !sites.contains(site)));
    }
    Ok(sites)
}

/// The site that one's keys as a user are for.
fn only_site(keychain: &Keychain) -> Result<SiteName, AccessError> {
    match own_sites(keychain)?.as_slice() {
        [site] => Ok(site.clone()),
        sites => Err(AccessError::WhichSite { count: sites.len() }),
    }
}

/// The site above a name that there is a key for: the nearest, if there are several.
fn site_above(name: &Name, keychain: &Keychain) -> Result<SiteName, AccessError> {
    let sites = own_sites(keychain)?.into_iter();
    let above = sites.filter(|site| site.view().is_prefix_of(name.view()));
    let nearest = above.max_by_key(|site| site.view().count());
    nearest.ok_or_else(|| AccessError::NoSiteAbove { name: name.clone() })
}
