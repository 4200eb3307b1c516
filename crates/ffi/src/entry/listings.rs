//! Functions about directories.

use std::ffi::c_char;

use crate::abi::{Attributes, Call, Completion, Error, Listing, Page, Session};
use crate::attributes::Described;
use crate::call::Work;
use crate::fault::Fault;
use crate::guard;
use crate::listing::{self, LISTINGS};
use crate::memory::{Place, c_text, read_struct};
use crate::session::SESSIONS;
use crate::symbols::versioned;

/// The call that lists a directory.
///
/// # Safety
/// As the contract of the interface says.
unsafe fn list(
    session: Session,
    path: *const c_char,
) -> Result<Work<byname_client::Listing>, Fault> {
    // SAFETY: as promised.
    let path = unsafe { c_text(path, "path") }?;
    let active = SESSIONS.get(session)?.begin()?;
    let pending = active.session.list_resolved_later(&active.name(path)?);
    Ok(listing::list(active, pending))
}

/// The verified content of a directory, as it is now. It is kept until it is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_list(
    session: Session,
    path: *const c_char,
    error: *mut Error,
) -> Listing {
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, || list(session, path)?.wait()) }
}

/// Starts byname_list; the handle goes to `listing`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_list_start(
    session: Session,
    path: *const c_char,
    listing: *mut Listing,
    completion: *const Completion,
    error: *mut Error,
) -> Call {
    // SAFETY: as the contract of the interface says.
    unsafe {
        guard::entry(error, || {
            let (completion, place) = (read_struct(completion)?, Place::new(listing, "listing")?);
            list(session, path)?.start(completion, move |handle| place.write(handle))
        })
    }
}

/// Number of entries. Those whose names cannot be names of files are left out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_listing_count(listing: Listing, error: *mut Error) -> i64 {
    let body = || Ok(LISTINGS.get(listing)?.count().cast_signed());
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) }
}

/// Status of the directory itself, as it was listed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_listing_attributes(
    listing: Listing,
    attributes: *mut Attributes,
    error: *mut Error,
) -> i32 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let place = unsafe { Place::of_struct(attributes) }?;
        Described::of_stat(&LISTINGS.get(listing)?.stat()).write_to(&place)
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// Fills a page with the entries from `page->next` on, ascending by name, as many as there is room
/// for. ERANGE if the text has no room for a single one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_listing_page(
    listing: Listing,
    page: *mut Page,
    error: *mut Error,
) -> i32 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let place = unsafe { Place::of_struct(page) }?;
        LISTINGS.get(listing)?.fill(&place)
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// Closes a listing. Files opened from it stay open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_listing_close(listing: Listing, error: *mut Error) -> i32 {
    let body = || LISTINGS.remove(listing).map(|_| 0);
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

versioned! { "BYNAME_1":
    byname_list byname_list_start byname_listing_count byname_listing_attributes byname_listing_page
    byname_listing_close
}
