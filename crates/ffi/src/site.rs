//! Sites behind the handles: a user at a site, and the session whose paths she uses.

use std::ffi::CStr;
use std::sync::Arc;
use std::time::Duration;

use byname_access::{
    AccessError, AccountOptions, Described, HeadSession, Loan, SharedSite, Tree, lend_new,
};
use byname_packet::Name;

use crate::abi;
use crate::attributes::Described as Flat;
use crate::fault::Fault;
use crate::file::{self};
use crate::handles::{Kind, Table};
use crate::memory::{Place, TextRoom};
use crate::page::PageRoom;
use crate::session::{ActiveCall, SessionState};

/// The sites of this process.
pub(crate) static SITES: Table<SiteState> = Table::new(Kind::Site, abi::BYNAME_SITES_MAX as usize);

/// The right to read.
const READ: u16 = 4;

/// A user at a site.
pub(crate) struct SiteState {
    session: Arc<SessionState>,
    shared: SharedSite,
}

/// Who acts at a site.
#[derive(Debug, Default)]
pub(crate) struct Acting {
    pub(crate) user: Option<String>,
    /// The door that acts for the user, and the groups that it says the user is in.
    pub(crate) door: Option<String>,
    pub(crate) said_groups: Vec<String>,
}

/// A call at a site, and the name that it is about.
pub(crate) struct SiteCall {
    site: Arc<SiteState>,
    active: ActiveCall,
    pub(crate) name: Name,
}

impl SiteState {
    /// The user at the site above a path.
    pub(crate) fn open(
        session: &Arc<SessionState>,
        path: &CStr,
        (user, timeout_ms): (Option<&str>, u64),
    ) -> Result<Self, Fault> {
        let name = session.begin()?.name(path)?;
        let acting = Acting { user: user.map(str::to_owned), ..Acting::default() };
        Self::at(session, &name, (acting, timeout_ms))
    }

    /// The same at the site above a name, be it through a door.
    pub(crate) fn at(
        session: &Arc<SessionState>,
        name: &Name,
        (acting, timeout_ms): (Acting, u64),
    ) -> Result<Self, Fault> {
        let active = session.begin()?;
        let Acting { user, door, said_groups } = acting;
        let mut options = AccountOptions {
            user,
            door,
            said_groups,
            loan: session.loan.clone(),
            connect: session.connect.clone(),
            ..AccountOptions::default()
        };
        let wanted = (timeout_ms > 0).then(|| Duration::from_millis(timeout_ms));
        options.patience = wanted.or(session.timeout).unwrap_or(options.patience);
        let account = options.account_of(name, &session.link, &session.profile)?;
        let shared = SharedSite::new(account, session.stop.clone());
        drop(active);
        Ok(SiteState { session: Arc::clone(session), shared })
    }

    /// The user and the site, as texts.
    pub(crate) fn names(&self) -> (String, String) {
        let account = self.shared.account();
        (account.user.clone(), account.site.view().to_string())
    }
}

impl SiteState {
    /// Lends a new key of the user's.
    pub(crate) fn lend(&self, time: Duration) -> Result<Loan, Fault> {
        let active = self.session.begin()?;
        Ok(lend_new(self.shared.account(), time, active.stop.clone())?)
    }

    /// Asks the head about a lent key of the user's: the one that signs, unless it is said.
    pub(crate) fn of_loan<T>(
        &self,
        key: Option<&str>,
        ask: impl FnOnce(&mut HeadSession, &str, &str) -> Result<T, AccessError>,
    ) -> Result<T, Fault> {
        let active = self.session.begin()?;
        let account = self.shared.account();
        let key = match key {
            Some(key) => key.to_owned(),
            None => account.identity.certificate.key_id().to_string(),
        };
        let mut session = HeadSession::open(account)?.stopped_by(active.stop.clone());
        Ok(ask(&mut session, &account.user, &key)?)
    }
}

impl SiteCall {
    /// Begins a call about a path.
    pub(crate) fn begin(site: i64, path: &CStr) -> Result<Self, Fault> {
        let site = SITES.get(site)?;
        let active = site.session.begin()?;
        let name = active.name(path)?;
        Ok(SiteCall { site, active, name })
    }

    /// The name of another path.
    pub(crate) fn other(&self, path: &CStr) -> Result<Name, Fault> {
        self.active.name(path)
    }

    pub(crate) fn shared(&self) -> &SharedSite {
        &self.site.shared
    }

    /// Does something with the name.
    pub(crate) fn act<T>(
        &self,
        act: impl FnOnce(&mut Tree, &Name) -> Result<T, AccessError>,
    ) -> Result<T, Fault> {
        Ok(self.site.shared.with(|tree| act(tree, &self.name))?)
    }

    /// The same for what has no result.
    pub(crate) fn run(
        &self,
        act: impl FnOnce(&mut Tree, &Name) -> Result<(), AccessError>,
    ) -> Result<i64, Fault> {
        self.act(act).map(|()| 0)
    }

    /// Opens the file in the version that the head has now.
    pub(crate) fn open(self) -> Result<i64, Fault> {
        let described = self.act(Tree::describe)?;
        let pending = self.active.session.open_entry_later(&described.entry());
        file::open(self.active, pending).wait()
    }

    /// The same as somebody who has to have the right to read it.
    pub(crate) fn open_to_read(self) -> Result<i64, Fault> {
        let described = self.act(|tree, name| tree.describe_for(name, READ))?;
        let pending = self.active.session.open_entry_later(&described.entry());
        file::open(self.active, pending).wait()
    }

    /// Fills a page with the entries of the directory behind one of them.
    pub(crate) fn fill(&self, after: &[u8], place: &Place<abi::Page>) -> Result<i64, Fault> {
        let mut page = PageRoom::new(place)?;
        let mut after = after.to_vec();
        let has_more = 'page: loop {
            let answer = self.act(|tree, name| tree.entries(name, &after))?;
            for (name, described) in answer.entries {
                if page.is_full() || !page.push(|room| entry(&name, &described, room))? {
                    break 'page true;
                }
                after = name;
            }
            if answer.is_last {
                break false;
            }
        };
        let first = page.next();
        page.finish(first, place);
        Ok(has_more.into())
    }
}

/// The status that the head gives.
pub(crate) fn flat(described: &Described) -> Flat {
    Flat::of_stat(&described.stat()).with_replicas(described.replica_count)
}

fn entry(name: &[u8], described: &Described, room: &mut TextRoom) -> abi::Entry {
    abi::Entry {
        name: room.push(name),
        name_bytes: name.len() as u64,
        is_resolved: 0,
        reserved: 0,
        attributes: flat(described).with_texts(room),
    }
}
