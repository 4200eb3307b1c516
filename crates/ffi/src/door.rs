//! Doors behind the handles: a program that acts for users whom it has authenticated.
//!
//! A door has a table that says who is which user of the site, and an account for each user who
//! came lately; whoever comes again uses the connections that are there.

use std::ffi::CStr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use byname_access::{Mapped, MappingTable, Method, Presented};
use byname_packet::Name;

use crate::abi;
use crate::fault::Fault;
use crate::handles::{Kind, Table};
use crate::session::SessionState;
use crate::site::{Acting, SiteState};

/// The doors of this process.
pub(crate) static DOORS: Table<DoorState> = Table::new(Kind::Door, abi::BYNAME_DOORS_MAX as usize);

/// Users whose accounts are kept, at most: those who came last.
const USERS_MAX: usize = 64;

/// A door.
pub(crate) struct DoorState {
    session: Arc<SessionState>,
    door: String,
    table: MappingTable,
    /// A name in the site.
    within: Name,
    timeout_ms: u64,
    /// Users and their groups, who came last at the end.
    users: Mutex<Vec<(Who, Arc<SiteState>)>>,
}

type Who = (String, Vec<String>);

impl DoorState {
    /// A door of the site above a path, whose key is here.
    pub(crate) fn open(
        session: &Arc<SessionState>,
        path: &CStr,
        (door, table): (&str, &Path),
        timeout_ms: u64,
    ) -> Result<Self, Fault> {
        let table = MappingTable::read(table).map_err(Fault::Table)?;
        let within = session.begin()?.name(path)?;
        let (session, door) = (Arc::clone(session), door.to_owned());
        let users = Mutex::default();
        let state = DoorState { session, door, table, within, timeout_ms, users };
        // That there is no key is told now, not to the first who comes.
        state.account(("nobody".to_owned(), Vec::new()))?;
        Ok(state)
    }

    fn account(&self, (user, groups): Who) -> Result<SiteState, Fault> {
        let acting =
            Acting { user: Some(user), door: Some(self.door.clone()), said_groups: groups };
        SiteState::at(&self.session, &self.within, (acting, self.timeout_ms))
    }

    /// The user whom the table makes of somebody.
    pub(crate) fn user(&self, who: &Client<'_>) -> Result<Arc<SiteState>, Fault> {
        let Mapped { user, groups, .. } = self.mapped(who)?;
        let who = (user, groups);
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = users.iter().position(|(known, _)| *known == who) {
            let known = users.remove(at);
            let state = Arc::clone(&known.1);
            users.push(known);
            return Ok(state);
        }
        let state = Arc::new(self.account(who.clone())?);
        if users.len() >= USERS_MAX {
            users.remove(0);
        }
        users.push((who, Arc::clone(&state)));
        Ok(state)
    }

    fn mapped(&self, who: &Client<'_>) -> Result<Mapped, Fault> {
        let denied = |reason: String| Fault::Nobody {
            method: who.method.to_owned(),
            name: who.name.to_owned(),
            reason,
        };
        let method = Method::of(who.method);
        let method = method.ok_or_else(|| denied("no table has this method".to_owned()))?;
        // Of a machine its name is all there is.
        let name = if method == Method::Host { who.host } else { who.name };
        let [vos, roles, groups] = [who.vos, who.roles, who.groups].map(words);
        let presented = Presented::with_columns((method, name.to_owned()), &vos, &roles, &groups);
        self.table.map(&presented).map_err(|denial| denied(denial.to_string()))
    }
}

/// Somebody as XRootD has him; lists have spaces between their words.
pub(crate) struct Client<'a> {
    pub(crate) method: &'a str,
    pub(crate) name: &'a str,
    pub(crate) host: &'a str,
    pub(crate) vos: &'a str,
    pub(crate) roles: &'a str,
    pub(crate) groups: &'a str,
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
