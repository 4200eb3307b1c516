//! Functions about the content of files of a site.

use std::ffi::{c_char, c_int};

use byname_access::{AccessError, PutOptions as Wishes};
use byname_catalog::PolicyChanges;

use crate::abi::{self, Error, File, PutOptions, Site};
use crate::fault::Fault;
use crate::guard;
use crate::memory::{TextRoom, c_text, descriptor, read_struct};
use crate::site::SiteCall;
use crate::symbols::versioned;

use super::sites::checked;

/// Mode of directories that are made above a file.
const PARENT_MODE: u16 = 0o755;
const PUT_FLAGS: u32 =
    abi::BYNAME_SITE_PARENTS | abi::BYNAME_SITE_EXCLUSIVE | abi::BYNAME_SITE_GROWN;

/// Opens a file in the version that the head has now. It is closed by byname_file_close.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_open_file(
    site: Site,
    path: *const c_char,
    error: *mut Error,
) -> File {
    let body = || {
        // SAFETY: as the contract of the interface says.
        SiteCall::begin(site, unsafe { c_text(path, "path") }?)?.open()
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) }
}

/// The same if the user may read it: the modes and lists of the file and of all directories above
/// it say so, which bind nobody else who opens a file. EACCES if not. No link on the way is
/// followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_open_to_read(
    site: Site,
    path: *const c_char,
    error: *mut Error,
) -> File {
    let body = || {
        // SAFETY: as the contract of the interface says.
        SiteCall::begin(site, unsafe { c_text(path, "path") }?)?.open_to_read()
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) }
}

/// Writes the octets of a regular file that is open for reading, all of them, wherever it stands.
/// The new version is there whole when as many disks have it as the site asks for, or not at all.
/// The descriptor stays the caller's; nobody may write to the file meanwhile. `options` may be
/// NULL: mode 644, and what is there is replaced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_put(
    site: Site,
    path: *const c_char,
    local_file: c_int,
    options: *const PutOptions,
    error: *mut Error,
) -> i32 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let (path, file) = unsafe { (c_text(path, "path")?, descriptor(local_file)?) };
        let (mut flags, mut wishes) = (0, Wishes { mode: 0o644, ..Wishes::default() });
        let mut version = std::ptr::null_mut();
        if !options.is_null() {
            // SAFETY: as the contract of the interface says.
            let options = unsafe { read_struct(options) }?;
            flags = checked(options.flags, PUT_FLAGS)?;
            wishes = wishes_of(&options)?;
            version = options.version;
        }
        let call = SiteCall::begin(site, path)?;
        if flags & abi::BYNAME_SITE_PARENTS != 0
            && let Some((above, _)) = call.name.view().split_last()
        {
            let above = above.to_name();
            call.run(|tree, _| tree.make_path(&above, PARENT_MODE))?;
        }
        let made = call.shared().put(&call.name, file, &wishes).map_err(Fault::from)?;
        if !version.is_null() {
            // SAFETY: as the contract of the interface says.
            unsafe { version.write(made) };
        }
        Ok(0)
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

fn wishes_of(options: &PutOptions) -> Result<Wishes, Fault> {
    let unknown = |argument, given: u32| Fault::Unknown { argument, given: u64::from(given) };
    let replicas = u8::try_from(options.replicas);
    let replicas = replicas.map_err(|_| unknown("replicas", options.replicas))?;
    let mode = u16::try_from(options.mode).map_err(|_| unknown("mode", options.mode))?;
    let is_exclusive = options.flags & abi::BYNAME_SITE_EXCLUSIVE != 0;
    let replica_count = (replicas > 0).then_some(replicas);
    let policy = PolicyChanges { replica_count, ..PolicyChanges::default() };
    let base = (options.base_version != 0).then_some(options.base_version);
    let is_grown = options.flags & abi::BYNAME_SITE_GROWN != 0;
    Ok(Wishes { mode, is_exclusive, policy, base, is_grown })
}

/// Makes a file shorter or longer; what is added are zeros. A size other than 0 is a new version,
/// for which what stays is read and written anew.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_truncate(
    site: Site,
    path: *const c_char,
    size: u64,
    error: *mut Error,
) -> i32 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let call = SiteCall::begin(site, unsafe { c_text(path, "path") }?)?;
        call.run(|tree, name| tree.resize(name, size))
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// The servers whose disks have the file and answer, each with a NUL. Returns the octets that they
/// need; what does not fit is not written. An empty file is on none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_servers(
    site: Site,
    path: *const c_char,
    buffer: *mut c_char,
    buffer_size: u64,
    error: *mut Error,
) -> i64 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let call = SiteCall::begin(site, unsafe { c_text(path, "path") }?)?;
        let servers = call.act(|tree, name| {
            let lines = tree.query("replicas", name)?;
            let up = lines.iter().filter(|line| line["up"] == true);
            let servers = up.map(|line| line["server"].as_str().map(str::to_owned));
            servers.collect::<Option<Vec<_>>>().ok_or(AccessError::OtherAnswer)
        })?;
        // SAFETY: as the contract of the interface says.
        let mut room = unsafe { TextRoom::new(buffer, buffer_size) };
        servers.iter().for_each(|server| {
            room.push(server.as_bytes());
        });
        Ok(room.needed().cast_signed())
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) }
}

versioned! { "BYNAME_1":
    byname_site_open_file byname_site_put byname_site_truncate byname_site_servers
    byname_site_open_to_read
}
