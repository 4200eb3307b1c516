//! Functions about sites: who acts, names, attributes.

use std::ffi::c_char;
use std::sync::Arc;

use byname_access::AccessError;
use byname_catalog::{AttributeChanges, PolicyChanges, Refusal, TimeChange};

use crate::abi::{
    self, Attributes, Error, Page, Session, Site, SiteChanges, SiteOptions, SiteRoom, SiteXattr,
};
use crate::fault::Fault;
use crate::guard;
use crate::memory::{Place, TextRoom, c_text, octets, optional_text, read_struct};
use crate::session::SESSIONS;
use crate::site::{SITES, SiteCall, SiteState, flat};
use crate::symbols::versioned;

/// All rights there are.
const RIGHTS: u32 = abi::BYNAME_MAY_READ | abi::BYNAME_MAY_WRITE | abi::BYNAME_MAY_SEARCH;

/// Makes of a session a user at the site above a path, whose key is here. `options` may be NULL.
/// Asks nobody. Its calls end when the session is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_open(
    session: Session,
    path: *const c_char,
    options: *const SiteOptions,
    error: *mut Error,
) -> Site {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let path = unsafe { c_text(path, "path") }?;
        let (mut user, mut timeout_ms) = (None, 0);
        if !options.is_null() {
            // SAFETY: as the contract of the interface says.
            unsafe {
                let options = read_struct(options)?;
                user = optional_text(options.user, "user")?;
                timeout_ms = options.timeout_ms;
            }
        }
        let session = SESSIONS.get(session)?;
        SITES.insert(Arc::new(SiteState::open(&session, path, (user, timeout_ms))?))
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) }
}

/// Closes a site. Calls that have begun come to their end, files that were opened stay open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_close(site: Site, error: *mut Error) -> i32 {
    let body = || SITES.remove(site).map(|_| 0);
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// The user's name and then the site's as a URI, each with a NUL. Returns the octets that both
/// need; what does not fit is not written. Asks nobody.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_names(
    site: Site,
    buffer: *mut c_char,
    buffer_size: u64,
    error: *mut Error,
) -> i64 {
    let body = || {
        let (user, site) = SITES.get(site)?.names();
        // SAFETY: as the contract of the interface says.
        let mut room = unsafe { TextRoom::new(buffer, buffer_size) };
        room.push(user.as_bytes());
        room.push(site.as_bytes());
        Ok(room.needed().cast_signed())
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) }
}

/// Status of a file or directory as the head has it now. A symbolic link is not followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_stat(
    site: Site,
    path: *const c_char,
    attributes: *mut Attributes,
    error: *mut Error,
) -> i32 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let (path, place) = unsafe { (c_text(path, "path")?, Place::of_struct(attributes)?) };
        let call = SiteCall::begin(site, path)?;
        flat(&call.act(|tree, name| tree.describe(name))?).write_to(&place)
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// The same if the user may use it as `wanted` says (BYNAME_MAY_*; 0 needs only what is above it):
/// the modes and lists of it and of all directories above it say so. EACCES if not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_access(
    site: Site,
    path: *const c_char,
    wanted: u32,
    attributes: *mut Attributes,
    error: *mut Error,
) -> i32 {
    let body = || {
        let wanted = checked(wanted, RIGHTS)? as u16;
        // SAFETY: as the contract of the interface says.
        let (path, place) = unsafe { (c_text(path, "path")?, Place::of_struct(attributes)?) };
        let call = SiteCall::begin(site, path)?;
        flat(&call.act(|tree, name| tree.describe_for(name, wanted))?).write_to(&place)
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// Fills a page with the entries of a directory as the head has them now, ascending by name, behind
/// the entry `after`; from the beginning if that is NULL or empty. Returns 1 if there may be more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_entries(
    site: Site,
    path: *const c_char,
    after: *const c_char,
    page: *mut Page,
    error: *mut Error,
) -> i32 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let (path, place) = unsafe { (c_text(path, "path")?, Place::of_struct(page)?) };
        let after = match after.is_null() {
            true => c"",
            // SAFETY: as the contract of the interface says.
            false => unsafe { c_text(after, "after") }?,
        };
        SiteCall::begin(site, path)?.fill(after.to_bytes(), &place)
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// Makes a directory. With BYNAME_SITE_PARENTS what is missing above it, too, and one that is there
/// already is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_mkdir(
    site: Site,
    path: *const c_char,
    mode: u32,
    flags: u32,
    error: *mut Error,
) -> i32 {
    let body = || {
        let flags = checked(flags, abi::BYNAME_SITE_PARENTS)?;
        let mode = mode_of(mode)?;
        // SAFETY: as the contract of the interface says.
        let call = SiteCall::begin(site, unsafe { c_text(path, "path") }?)?;
        call.run(|tree, name| match flags & abi::BYNAME_SITE_PARENTS != 0 {
            true => tree.make_path(name, mode),
            false => tree.make_directory(name, mode),
        })
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// Gives a file or directory another name, in one step. What has that name is replaced, a directory
/// only if it is empty; with BYNAME_SITE_EXCLUSIVE nothing is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_rename(
    site: Site,
    from: *const c_char,
    to: *const c_char,
    flags: u32,
    error: *mut Error,
) -> i32 {
    let body = || {
        let flags = checked(flags, abi::BYNAME_SITE_EXCLUSIVE)?;
        // SAFETY: as the contract of the interface says.
        let (from, to) = unsafe { (c_text(from, "from")?, c_text(to, "to")?) };
        let call = SiteCall::begin(site, from)?;
        let to = call.other(to)?;
        let is_exclusive = flags & abi::BYNAME_SITE_EXCLUSIVE != 0;
        call.run(|tree, name| {
            let renamed = tree.rename(name, &to, is_exclusive)?;
            renamed.map_err(|refusal| AccessError::at(name.view(), refusal))
        })
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// Removes a file, a symbolic link or an empty directory; with BYNAME_SITE_RECURSIVE a directory
/// with all that is in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_remove(
    site: Site,
    path: *const c_char,
    flags: u32,
    error: *mut Error,
) -> i32 {
    let body = || {
        let flags = checked(flags, abi::BYNAME_SITE_RECURSIVE)?;
        // SAFETY: as the contract of the interface says.
        let call = SiteCall::begin(site, unsafe { c_text(path, "path") }?)?;
        call.run(|tree, name| {
            let at = |refusal| AccessError::at(name.view(), refusal);
            let removed = match flags & abi::BYNAME_SITE_RECURSIVE != 0 {
                true => tree.remove_all(name)?,
                false => match tree.unlink(name)? {
                    Err(Refusal::IsDirectory) => tree.remove_empty(name)?,
                    removed => removed,
                },
            };
            removed.map_err(at)
        })
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// Changes attributes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_change(
    site: Site,
    path: *const c_char,
    changes: *const SiteChanges,
    error: *mut Error,
) -> i32 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let (path, given, owner, group) = unsafe {
            let given = read_struct(changes)?;
            let (owner, group) =
                (optional_text(given.owner, "owner")?, optional_text(given.group, "group")?);
            (c_text(path, "path")?, given, owner, group)
        };
        let wanted = checked(given.wanted, abi::BYNAME_CHANGE_MODE | abi::BYNAME_CHANGE_MTIME)?;
        let has_mode = wanted & abi::BYNAME_CHANGE_MODE != 0;
        let has_time = wanted & abi::BYNAME_CHANGE_MTIME != 0;
        let changes = AttributeChanges {
            mode: has_mode.then(|| mode_of(given.mode)).transpose()?,
            owner: owner.map(str::to_owned),
            group: group.map(str::to_owned),
            modified: has_time.then_some(TimeChange::At(given.mtime_ns)),
            size: None,
        };
        SiteCall::begin(site, path)?.run(|tree, name| tree.set_attributes(name, changes))
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// Says how many replicas a file gets when it is written again, or what is made in a directory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_set_replicas(
    site: Site,
    path: *const c_char,
    replicas: u32,
    error: *mut Error,
) -> i32 {
    let body = || {
        let unknown = || Fault::Unknown { argument: "replicas", given: u64::from(replicas) };
        let count = u8::try_from(replicas).map_err(|_| unknown())?;
        // SAFETY: as the contract of the interface says.
        let call = SiteCall::begin(site, unsafe { c_text(path, "path") }?)?;
        let changes = PolicyChanges { replica_count: Some(count), ..PolicyChanges::default() };
        call.run(|tree, name| tree.set_policy(name, &changes))
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// Sets an extended attribute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_set_xattr(
    site: Site,
    path: *const c_char,
    xattr: *const SiteXattr,
    error: *mut Error,
) -> i32 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let (path, given, key, value) = unsafe {
            let given = read_struct(xattr)?;
            let value = octets(given.value.cast_const(), given.value_bytes, "xattr.value")?;
            (c_text(path, "path")?, given, c_text(given.name, "xattr.name")?, value)
        };
        let (only_new, only_old) = (abi::BYNAME_SITE_EXCLUSIVE, abi::BYNAME_SITE_REPLACE);
        let must_exist = match checked(given.flags, only_new | only_old)? {
            0 => None,
            one if one == only_new => Some(false),
            one if one == only_old => Some(true),
            given => return Err(Fault::Unknown { argument: "flags", given: u64::from(given) }),
        };
        let call = SiteCall::begin(site, path)?;
        call.run(|tree, name| tree.set_xattr(name, (key.to_bytes(), value), must_exist))
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// Writes the value of an extended attribute to the room in `xattr`; ENODATA if there is none.
/// Returns its octets; if there is less room, nothing is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_get_xattr(
    site: Site,
    path: *const c_char,
    xattr: *const SiteXattr,
    error: *mut Error,
) -> i64 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let (path, given, key) = unsafe {
            let given = read_struct(xattr)?;
            (c_text(path, "path")?, given, c_text(given.name, "xattr.name")?)
        };
        checked(given.flags, 0)?;
        let call = SiteCall::begin(site, path)?;
        let value = call.act(|tree, name| tree.xattr(name, key.to_bytes()))?;
        // SAFETY: as the contract of the interface says.
        let mut room = unsafe { TextRoom::new(given.value.cast(), given.value_bytes) };
        room.push_octets(&value);
        Ok(room.needed().cast_signed())
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) }
}

/// Names of all extended attributes, each with a NUL. Returns the octets that they need; what does
/// not fit is not written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_list_xattrs(
    site: Site,
    path: *const c_char,
    buffer: *mut c_char,
    buffer_size: u64,
    error: *mut Error,
) -> i64 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let call = SiteCall::begin(site, unsafe { c_text(path, "path") }?)?;
        let xattrs = call.act(|tree, name| tree.xattrs(name))?;
        // SAFETY: as the contract of the interface says.
        let mut room = unsafe { TextRoom::new(buffer, buffer_size) };
        xattrs.iter().for_each(|(name, _)| {
            room.push(name);
        });
        Ok(room.needed().cast_signed())
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) }
}

/// Removes an extended attribute; ENODATA if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_remove_xattr(
    site: Site,
    path: *const c_char,
    name: *const c_char,
    error: *mut Error,
) -> i32 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let (path, key) = unsafe { (c_text(path, "path")?, c_text(name, "name")?) };
        SiteCall::begin(site, path)?.run(|tree, name| tree.remove_xattr(name, key.to_bytes()))
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// The room that is left below a path, by the quota of its tree and the disks of its space.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_room_below(
    site: Site,
    path: *const c_char,
    room: *mut SiteRoom,
    error: *mut Error,
) -> i32 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let (path, place) = unsafe { (c_text(path, "path")?, Place::of_struct(room)?) };
        let found = SiteCall::begin(site, path)?.act(|tree, name| tree.room(name))?;
        place.write(SiteRoom {
            struct_size: place.read().struct_size,
            replicas: u32::try_from(found.replicas).unwrap_or(u32::MAX),
            size_bytes: found.size_bytes,
            used_bytes: found.used_bytes,
            free_bytes: found.free_bytes,
            entries: found.inodes,
            quota_bytes: found.bytes_max,
            quota_entries: found.inodes_max,
        });
        Ok(0)
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

fn mode_of(mode: u32) -> Result<u16, Fault> {
    let unknown = Fault::Unknown { argument: "mode", given: u64::from(mode) };
    u16::try_from(mode).map_err(|_| unknown)
}

/// Flags that mean something to a function.
pub(super) fn checked(flags: u32, known: u32) -> Result<u32, Fault> {
    match flags & !known {
        0 => Ok(flags),
        given => Err(Fault::Unknown { argument: "flags", given: u64::from(given) }),
    }
}

versioned! { "BYNAME_1":
    byname_site_open byname_site_close byname_site_names byname_site_stat byname_site_entries
    byname_site_mkdir byname_site_rename byname_site_remove byname_site_change
    byname_site_set_replicas byname_site_set_xattr byname_site_get_xattr byname_site_list_xattrs
    byname_site_remove_xattr byname_site_room_below byname_site_access
}
