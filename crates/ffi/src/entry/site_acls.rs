//! Functions about access control lists in sites.

use std::ffi::{CStr, c_char};

use byname_access::AclChanges;
use byname_catalog::AclEntry;

use super::sites::checked;
use crate::abi::{self, Error, Site, SiteAcl};
use crate::fault::Fault;
use crate::guard;
use crate::memory::{TextRoom, c_text, optional_text, read_struct};
use crate::site::SiteCall;
use crate::symbols::versioned;

/// The access control lists of a file or directory as texts, each with a NUL: its own, then that of
/// what is made in it, which is empty if there is none. Returns the octets that both need; what
/// does not fit is not written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_get_acl(
    site: Site,
    path: *const c_char,
    buffer: *mut c_char,
    buffer_size: u64,
    error: *mut Error,
) -> i64 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let call = SiteCall::begin(site, unsafe { c_text(path, "path") }?)?;
        let lists = call.act(|tree, name| tree.access_lists(name))?;
        // SAFETY: as the contract of the interface says.
        let mut room = unsafe { TextRoom::new(buffer, buffer_size) };
        room.push(lists.access.to_string().as_bytes());
        room.push(lists.default.map(|acl| acl.to_string()).unwrap_or_default().as_bytes());
        Ok(room.needed().cast_signed())
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) }
}

/// Changes an access control list. What it was is asked for first: of two who change one at the
/// same time the later one may undo what the earlier one did.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_change_acl(
    site: Site,
    path: *const c_char,
    acl: *const SiteAcl,
    error: *mut Error,
) -> i32 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let (path, given, set, remove) = unsafe {
            let given = read_struct(acl)?;
            let (set, remove) =
                (optional_text(given.set, "acl.set")?, optional_text(given.remove, "acl.remove")?);
            (c_text(path, "path")?, given, set, remove)
        };
        change(site, path, given.flags, (set, remove))
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

fn change(
    site: Site,
    path: &CStr,
    flags: u32,
    (set, remove): (Option<&str>, Option<&str>),
) -> Result<i64, Fault> {
    let (is_default, clear, keep) =
        (abi::BYNAME_ACL_DEFAULT, abi::BYNAME_ACL_CLEAR, abi::BYNAME_ACL_KEEP_MASK);
    let flags = checked(flags, is_default | clear | keep)?;
    let changes = AclChanges {
        clear: flags & clear != 0,
        set: entries(set, "acl.set")?,
        remove: entries(remove, "acl.remove")?.into_iter().map(|entry| entry.who).collect(),
        keep_mask: flags & keep != 0,
    };
    let call = SiteCall::begin(site, path)?;
    call.run(|tree, name| tree.change_access_list(name, flags & is_default != 0, &changes))
}

fn entries(text: Option<&str>, argument: &'static str) -> Result<Vec<AclEntry>, Fault> {
    let given = text.unwrap_or_default().split(',').filter(|entry| !entry.is_empty());
    let parsed: Result<_, _> = given.map(str::parse).collect();
    parsed.map_err(|_| Fault::NotAcl { argument })
}

versioned! { "BYNAME_1": byname_site_get_acl byname_site_change_acl }
