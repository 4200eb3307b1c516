//! The border that every entry point crosses: outcomes become numbers and texts, panics become
//! errors.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::abi;
use crate::fault::Fault;
use crate::memory::{Place, fill_text, zeroed};

/// Set in a process that has forked: it has the memory of its parent, but not the threads.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

/// From now on, children of this process do not work.
pub(crate) fn watch_forks() {
    extern "C" fn note() {
        IS_FORKED.store(true, Ordering::Relaxed);
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: `note` is a function without arguments that only stores to an atomic, which is
        // allowed in the child of a process with threads; the library is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(note)) };
    });
}

/// Runs the body of an entry point. Returns its number, or the negative number of its error, which
/// is also written to where the caller wants it.
///
/// # Safety
/// `error` is NULL or leads to a `byname_error` that was initialised and may be written to.
pub(crate) unsafe fn entry(
    error: *mut abi::Error,
    body: impl FnOnce() -> Result<i64, Fault>,
) -> i64 {
    let place = if error.is_null() {
        None
    } else {
        // SAFETY: as promised.
        match unsafe { Place::of_struct(error) } {
            Ok(place) => Some(place),
            Err(fault) => return -i64::from(fault.code()),
        }
    };
    let outcome = catch(|| if is_forked() { Err(Fault::Forked) } else { body() });
    if let Some(place) = place {
        let written = error_of(outcome.as_ref().err());
        place.write(abi::Error { struct_size: place.read().struct_size, ..written });
    }
    outcome.unwrap_or_else(|fault| -i64::from(fault.code()))
}

fn is_forked() -> bool {
    IS_FORKED.load(Ordering::Relaxed)
}

/// Turns a panic into an error.
pub(crate) fn catch<T>(act: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    // What a panic may leave half done is behind locks that ignore poisoning: tables of handles,
    // changed in one step, and the engine, which lives on another thread.
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|payload| Err(panic_of(payload)))
}

fn panic_of(payload: Box<dyn Any + Send>) -> Fault {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    // Dropping a stranger's payload could panic once more.
    std::mem::forget(payload);
    Fault::Panic { message: text.unwrap_or_else(|| "a panic without words".to_owned()) }
}

/// The struct for an outcome.
pub(crate) fn error_of(fault: Option<&Fault>) -> abi::Error {
    let struct_size = size_of::<abi::Error>() as u32;
    let mut error = abi::Error { struct_size, ..zeroed() };
    if let Some(fault) = fault {
        let message = fault.message();
        (error.code, error.error_class) = (fault.code(), fault.class());
        error.message_bytes = u32::try_from(message.len()).unwrap_or(u32::MAX);
        fill_text(&mut error.message, &message);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        let mut error = error_of(None);
        // SAFETY: `error` lives and is initialised.
        let code = unsafe { entry(&raw mut error, || panic!("on {}", "purpose")) };
        assert_eq!(code, -i64::from(abi::BYNAME_EINTERNAL));
        assert_eq!((error.code, error.error_class), (abi::BYNAME_EINTERNAL, 5));
        let text: Vec<u8> = error.message.iter().map(|octet| *octet as u8).collect();
        assert!(text.starts_with(b"a bug of byname: on purpose\0"));
        assert_eq!(error.message_bytes, 27);
    }

    #[test]
    fn success_clears_the_error_and_keeps_its_size() {
        let mut error = error_of(Some(&Fault::Cancelled));
        error.struct_size += 100;
        // SAFETY: `error` lives and is initialised.
        assert_eq!(unsafe { entry(&raw mut error, || Ok(7)) }, 7);
        assert_eq!((error.code, error.message[0]), (0, 0));
        assert_eq!(error.struct_size as usize, size_of::<abi::Error>() + 100);
    }

    #[test]
    fn an_error_without_its_size_is_refused_before_anything_is_done() {
        let mut error = abi::Error { struct_size: 0, ..error_of(None) };
        // SAFETY: `error` lives and is initialised.
        let code = unsafe { entry(&raw mut error, || unreachable!("not called")) };
        assert_eq!(code, -i64::from(libc::EINVAL));
    }
}
