//! Functions about started calls, and about the library itself.

use std::ffi::c_char;

use crate::abi::{BYNAME_ABI_VERSION, Call, Error};
use crate::call::CALLS;
use crate::guard;
use crate::symbols::versioned;

/// Version of this interface that the library has.
#[unsafe(no_mangle)]
pub extern "C" fn byname_abi_version() -> u32 {
    BYNAME_ABI_VERSION
}

/// Version of the release, for people. Valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn byname_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Asks a started call to end. Does not wait: its call-back comes as ever, with ECANCELED or, if
/// the call was faster, with its outcome. EBADF if it has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_cancel(call: Call, error: *mut Error) -> i32 {
    let body = || {
        CALLS.get(call)?.cancel();
        Ok(0)
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

versioned! { "BYNAME_1":
    byname_abi_version byname_version byname_cancel
}
