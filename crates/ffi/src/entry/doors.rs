//! Functions about doors.

use std::ffi::c_char;
use std::path::Path;
use std::sync::Arc;

use crate::abi::{Authenticated, Door, DoorOptions, Error, Session, Site};
use crate::door::{Client, DOORS, DoorState};
use crate::fault::Fault;
use crate::guard;
use crate::memory::{c_text, optional_text, read_struct};
use crate::session::SESSIONS;
use crate::site::SITES;
use crate::symbols::versioned;

/// Makes of a session a door of the site above a path: a program that acts for users whom it has
/// authenticated. Its key is here, and the table that says who is which user. Asks nobody. It ends
/// when the session is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_door_open(
    session: Session,
    path: *const c_char,
    options: *const DoorOptions,
    error: *mut Error,
) -> Door {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let (path, options) = unsafe { (c_text(path, "path")?, read_struct(options)?) };
        // SAFETY: as the contract of the interface says.
        let (door, table) = unsafe {
            (optional_text(options.door, "door")?, optional_text(options.table, "table")?)
        };
        let door = door.ok_or(Fault::Null { argument: "door" })?;
        let table = table.ok_or(Fault::Null { argument: "table" })?;
        let session = SESSIONS.get(session)?;
        let known = (door, Path::new(table));
        DOORS.insert(Arc::new(DoorState::open(&session, path, known, options.timeout_ms)?))
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) }
}

/// The user whom the door's table makes of somebody, at the site; it is closed by
/// byname_site_close. EACCES if the table makes nobody of him. Asks nobody: whether the door may
/// act for the user is told by what is done then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_door_user(
    door: Door,
    who: *const Authenticated,
    error: *mut Error,
) -> Site {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let who = unsafe { read_struct(who) }?;
        let text = |text: *const c_char, argument| {
            // SAFETY: as the contract of the interface says.
            unsafe { optional_text(text, argument) }.map(Option::unwrap_or_default)
        };
        let who = Client {
            method: text(who.method, "method")?,
            name: text(who.name, "name")?,
            host: text(who.host, "host")?,
            vos: text(who.vos, "vos")?,
            roles: text(who.roles, "roles")?,
            groups: text(who.groups, "groups")?,
        };
        SITES.insert(DOORS.get(door)?.user(&who)?)
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) }
}

/// Closes a door. Users that it gave out stay open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_door_close(door: Door, error: *mut Error) -> i32 {
    let body = || DOORS.remove(door).map(|_| 0);
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

versioned! { "BYNAME_1": byname_door_open byname_door_user byname_door_close }
