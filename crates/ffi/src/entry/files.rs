//! Functions about files.

use std::ffi::{c_char, c_void};

use byname_client::{RangesRead, RemoteFile};

use crate::abi::{Attributes, Call, Completion, Counters, Error, File, Listing, Range, Session};
use crate::attributes::Described;
use crate::call::Work;
use crate::fault::Fault;
use crate::file::{self, FILES, Ranges};
use crate::guard;
use crate::listing::LISTINGS;
use crate::memory::{Place, c_text, read_struct};
use crate::session::SESSIONS;
use crate::symbols::versioned;

/// The call that opens a path.
///
/// # Safety
/// As the contract of the interface says.
unsafe fn open(session: Session, path: *const c_char) -> Result<Work<RemoteFile>, Fault> {
    // SAFETY: as promised.
    let path = unsafe { c_text(path, "path") }?;
    let active = SESSIONS.get(session)?.begin()?;
    let pending = active.session.open_later(&active.name(path)?);
    Ok(file::open(active, pending))
}

/// The call that opens an entry of a listing.
///
/// # Safety
/// As the contract of the interface says.
unsafe fn open_entry(listing: Listing, name: *const c_char) -> Result<Work<RemoteFile>, Fault> {
    // SAFETY: as promised.
    let name = unsafe { c_text(name, "name") }?;
    let listing = LISTINGS.get(listing)?;
    let active = listing.session.begin()?;
    Ok(file::open(active, listing.open(name.to_bytes())?))
}

/// Opens the current version of a file. It stays that version, however long it is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_open(
    session: Session,
    path: *const c_char,
    error: *mut Error,
) -> File {
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, || open(session, path)?.wait()) }
}

/// Starts byname_open; the handle goes to `file`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_open_start(
    session: Session,
    path: *const c_char,
    file: *mut File,
    completion: *const Completion,
    error: *mut Error,
) -> Call {
    // SAFETY: as the contract of the interface says.
    unsafe {
        guard::entry(error, || {
            let (completion, place) = (read_struct(completion)?, Place::new(file, "file")?);
            open(session, path)?.start(completion, move |handle| place.write(handle))
        })
    }
}

/// Opens the entry of that name, in the version that the listing has. The publisher is asked only
/// if the listing has no root for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_open_entry(
    listing: Listing,
    name: *const c_char,
    error: *mut Error,
) -> File {
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, || open_entry(listing, name)?.wait()) }
}

/// Starts byname_open_entry; the handle goes to `file`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_open_entry_start(
    listing: Listing,
    name: *const c_char,
    file: *mut File,
    completion: *const Completion,
    error: *mut Error,
) -> Call {
    // SAFETY: as the contract of the interface says.
    unsafe {
        guard::entry(error, || {
            let (completion, place) = (read_struct(completion)?, Place::new(file, "file")?);
            open_entry(listing, name)?.start(completion, move |handle| place.write(handle))
        })
    }
}

/// Closes a file. Reads that have begun come to their end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_file_close(file: File, error: *mut Error) -> i32 {
    let body = || FILES.remove(file).map(|_| 0);
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// Status of the version that is open. Asks nobody.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_file_attributes(
    file: File,
    attributes: *mut Attributes,
    error: *mut Error,
) -> i32 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let place = unsafe { Place::of_struct(attributes) }?;
        Described::of_stat(FILES.get(file)?.file.stat()).write_to(&place)
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// Counts since the file was opened.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_file_counters(
    file: File,
    counters: *mut Counters,
    error: *mut Error,
) -> i32 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let place = unsafe { Place::of_struct(counters) }?;
        let read = FILES.get(file)?.file.counters();
        let (struct_size, one) = (place.read().struct_size, 1);
        let made = file::counters(read);
        place.write(Counters { struct_size, files_opened: one, files_open: one, ..made });
        Ok(0)
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

fn read(file: File, ranges: Ranges) -> Result<Work<RangesRead>, Fault> {
    let state = FILES.get(file)?;
    ranges.read(state.session.begin()?, &state.file)
}

/// Reads from `offset` on. Returns the octets read: fewer than `buffer_bytes` only where the file
/// ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_read(
    file: File,
    buffer: *mut c_void,
    buffer_bytes: u64,
    offset: u64,
    error: *mut Error,
) -> i64 {
    // SAFETY: as the contract of the interface says.
    unsafe {
        guard::entry(error, || read(file, Ranges::one(offset, (buffer, buffer_bytes))?)?.wait())
    }
}

/// Reads many ranges in one go, in any order, overlapping or not: every unit of the file travels
/// once, and all requests are in flight together. Returns the octets of all ranges. After an error
/// the content of the buffers is undefined.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_read_ranges(
    file: File,
    ranges: *mut Range,
    count: u64,
    error: *mut Error,
) -> i64 {
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, || read(file, Ranges::new(ranges, count)?)?.wait()) }
}

/// Starts byname_read_ranges.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_read_ranges_start(
    file: File,
    ranges: *mut Range,
    count: u64,
    completion: *const Completion,
    error: *mut Error,
) -> Call {
    // SAFETY: as the contract of the interface says.
    unsafe {
        guard::entry(error, || {
            let completion = read_struct(completion)?;
            read(file, Ranges::new(ranges, count)?)?.start(completion, |_| ())
        })
    }
}

versioned! { "BYNAME_1":
    byname_open byname_open_start byname_open_entry byname_open_entry_start byname_file_close
    byname_file_attributes byname_file_counters byname_read byname_read_ranges
    byname_read_ranges_start
}
