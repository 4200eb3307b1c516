//! Functions about keys that a user lends for a while, for jobs elsewhere.

use std::ffi::c_char;
use std::time::Duration;

use byname_access::{AccessError, LOAN_TEXT_BYTES_MAX, Loan, lent_until, recall};

use super::sessions::{open, wishes};
use crate::abi::{self, Error, Session, SessionOptions, Site};
use crate::fault::Fault;
use crate::guard;
use crate::memory::{Place, TextRoom, c_text, optional_text};
use crate::session::Wishes;
use crate::site::SITES;
use crate::symbols::versioned;

const _: () = assert!(LOAN_TEXT_BYTES_MAX as u64 + 1 == abi::BYNAME_LOAN_BYTES);

/// Opens a session as byname_session_open does. Its sites act with the key of the loan, for the
/// user who has lent it, and with none that is here; what is no loan, is over, or is for another
/// site than the link's is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_session_open_lent(
    options: *const SessionOptions,
    abi_version: u32,
    loan: *const c_char,
    error: *mut Error,
) -> Session {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let (wishes, loan) = unsafe { (wishes(options)?, loan_of(loan)?) };
        open(abi_version, Wishes { loan: Some(loan), ..wishes })
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) }
}

/// Makes a key that signs for the user for so many seconds, a week at most, and writes it to a
/// buffer of at least BYNAME_LOAN_BYTES as a text with a NUL. Who has the text acts as the user.
/// Returns its octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_lend(
    site: Site,
    time_s: u64,
    buffer: *mut c_char,
    buffer_size: u64,
    error: *mut Error,
) -> i64 {
    let body = || {
        if buffer.is_null() {
            return Err(Fault::Null { argument: "buffer" });
        }
        if buffer_size < abi::BYNAME_LOAN_BYTES {
            return Err(Fault::TextRoom { given: buffer_size, needed: abi::BYNAME_LOAN_BYTES });
        }
        let text = SITES
            .get(site)?
            .lend(Duration::from_secs(time_s))?
            .encode()
            .map_err(AccessError::from)?;
        // SAFETY: as the contract of the interface says.
        let mut room = unsafe { TextRoom::new(buffer, buffer_size) };
        room.push(text.as_bytes());
        Ok(room.needed().cast_signed())
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) }
}

/// What a loan says, without its secret: user, URI of the site, digest of the key, and the end in
/// nanoseconds since the Unix epoch, each with a NUL. Returns the octets that they need; what does
/// not fit is not written. Asks nobody.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_loan_texts(
    loan: *const c_char,
    buffer: *mut c_char,
    buffer_size: u64,
    error: *mut Error,
) -> i64 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let loan = unsafe { loan_of(loan) }?;
        let (site, key) = (loan.site.view().to_string(), loan.key_id().to_string());
        // SAFETY: as the contract of the interface says.
        let mut room = unsafe { TextRoom::new(buffer, buffer_size) };
        for text in [&loan.user, &site, &key, &loan.until_ns.to_string()] {
            room.push(text.as_bytes());
        }
        Ok(room.needed().cast_signed())
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) }
}

/// Until when a key of the user's is lent, as the head has it now, in nanoseconds since the Unix
/// epoch; 0 if it is not. `key` is its digest; NULL for the one that signs here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_lent_until(
    site: Site,
    key: *const c_char,
    until_ns: *mut u64,
    error: *mut Error,
) -> i32 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let (key, place) =
            unsafe { (optional_text(key, "key")?, Place::new(until_ns, "until_ns")?) };
        let until = SITES.get(site)?.of_loan(key, lent_until)?;
        place.write(until.unwrap_or(0));
        Ok(0)
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// Ends a loan of the user's now. `key` is its digest; NULL for the one that signs here. Returns 1,
/// or 0 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_site_recall(
    site: Site,
    key: *const c_char,
    error: *mut Error,
) -> i32 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let key = unsafe { optional_text(key, "key") }?;
        Ok(SITES.get(site)?.of_loan(key, recall)?.into())
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// # Safety
/// A pointer that is not NULL leads to a text with a NUL at its end.
unsafe fn loan_of(loan: *const c_char) -> Result<Loan, Fault> {
    // SAFETY: as promised.
    let text = unsafe { c_text(loan, "loan") }?;
    // What is not UTF-8 is no loan.
    let text = text.to_str().unwrap_or_default();
    Ok(Loan::decode(text).map_err(AccessError::from)?)
}

versioned! { "BYNAME_1":
    byname_session_open_lent byname_site_lend byname_loan_texts byname_site_lent_until
    byname_site_recall
}
