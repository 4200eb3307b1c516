//! Lends a caller's buffers to another thread for as long as the caller waits.
//!
//! A thread that calls a blocking read has buffers of its own, and another thread has the bytes.
//! Without a loan they would travel through memory that both own, one copy more. [`lend`] is to
//! buffers what a scoped thread is to borrowed data: it does not return, not even by unwinding,
//! before the [`Loan`] is dropped, wherever that happens. A caller that does not wait promises the
//! same and hears when the loan was dropped ([`Loan::until_returned`]).
//!
//! A loan is only written to: no reference to a caller's memory is made, which may be
//! uninitialised or lent twice.

#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

#[derive(Debug, Default)]
struct Latch {
    is_returned: Mutex<bool>,
    changed: Condvar,
}

/// Hears that a loan was returned.
pub type OnReturn = Box<dyn FnOnce() + Send>;

/// Buffers of a caller that leaves them alone until the loan is dropped.
pub struct Loan {
    buffers: Box<[(NonNull<u8>, usize)]>,
    on_return: Option<OnReturn>,
}

// SAFETY: the pointers are to memory that its owner leaves to this value until it is dropped: by
// the exclusive borrows of `lend`, by the promise made to `until_returned`. So whichever thread has
// the value is the only one that reaches the bytes, `u8` may be written by any thread, and
// `on_return`, which may be sent, runs after all writes.
unsafe impl Send for Loan {}

impl Loan {
    /// The loan of buffers that nobody waits for; `on_return` is called when it was dropped, on
    /// whichever thread that happens. It must neither block nor panic.
    ///
    /// # Safety
    /// Each buffer is valid for writes of so many bytes, and nobody else reaches them, until
    /// `on_return` is called.
    pub unsafe fn until_returned(
        buffers: Box<[(NonNull<u8>, usize)]>,
        on_return: OnReturn,
    ) -> Self {
        Loan { buffers, on_return: Some(on_return) }
    }

    /// Number of buffers.
    pub fn buffer_count(&self) -> usize {
        self.buffers.len()
    }

    /// Copies to one of the buffers, from its byte `at` on; what does not fit is left out.
    pub fn put(&mut self, index: usize, at: usize, bytes: &[u8]) {
        let Some((start, length)) = self.buffers.get(index).copied() else { return };
        let Some(room) = length.checked_sub(at) else { return };
        // SAFETY: `at` is at most `length`, so the target and `min` bytes behind it lie in the
        // buffer, which is valid for writes until this value is dropped. `bytes` is a borrow, and
        // nobody else reaches the buffer, so they do not overlap.
        unsafe {
            let target = start.as_ptr().add(at);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len().min(room));
        }
    }
}

impl std::fmt::Debug for Loan {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Loan").field("buffers", &self.buffers).finish_non_exhaustive()
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if let Some(on_return) = self.on_return.take() {
            on_return();
        }
    }
}

impl Latch {
    fn open(&self) {
        *self.is_returned.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

/// Waits when dropped, so that unwinding waits too.
struct WaitForReturn(Arc<Latch>);

impl Drop for WaitForReturn {
    fn drop(&mut self) {
        let mut is_returned = self.0.is_returned.lock().unwrap_or_else(PoisonError::into_inner);
        while !*is_returned {
            is_returned = self.0.changed.wait(is_returned).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Gives `begin` the loan of `buffers`, and returns what it returned once the loan was dropped.
pub fn lend<T>(buffers: &mut [&mut [u8]], begin: impl FnOnce(Loan) -> T) -> T {
    let latch = Arc::new(Latch::default());
    let pointers = buffers.iter_mut().map(|buffer| {
        let length = buffer.len();
        (NonNull::from(&mut **buffer).cast::<u8>(), length)
    });
    let buffers = pointers.collect();
    let returned = WaitForReturn(Arc::clone(&latch));
    // SAFETY: the buffers are borrowed exclusively for this call, which does not return, and does
    // not unwind, before the latch is open: `returned` waits for it when dropped.
    let loan = unsafe { Loan::until_returned(buffers, Box::new(move || latch.open())) };
    let result = begin(loan);
    drop(returned);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_thread_fills_the_buffers_before_the_call_returns() {
        let (mut first, mut second) = ([0u8; 4], vec![0u8; 1000]);
        let (sender, receiver) = std::sync::mpsc::channel::<Loan>();
        let thread = std::thread::spawn(move || {
            let mut loan = receiver.recv().expect("it is sent");
            for index in 0..loan.buffer_count() {
                loan.put(index, 0, &[index as u8 + 1; 1000]);
            }
            loan.put(1, 999, &[9; 5]);
            loan.put(1, 1001, &[7]);
            loan.put(2, 0, &[7]);
        });
        lend(&mut [&mut first, &mut second], |loan| sender.send(loan).expect("it waits"));
        assert_eq!(first, [1; 4]);
        assert!(second[..999].iter().all(|byte| *byte == 2));
        assert_eq!(second[999], 9, "no more than there is room for");
        thread.join().expect("no panic");
    }

    #[test]
    fn a_panic_of_the_borrower_ends_the_loan() {
        let mut buffer = [0u8; 4];
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            lend(&mut [&mut buffer], |_loan| panic!("on purpose"));
        }));
        assert!(result.is_err());
    }

    #[test]
    fn a_lender_that_does_not_wait_hears_of_the_return() {
        let mut buffer = [0u8; 4];
        let (sender, receiver) = std::sync::mpsc::channel();
        let on_return = Box::new(move || sender.send(()).expect("somebody listens"));
        let pointer = NonNull::from(&mut buffer).cast::<u8>();
        // SAFETY: `buffer` lives, untouched, until `on_return` was called.
        let mut loan = unsafe { Loan::until_returned(Box::new([(pointer, 4)]), on_return) };
        let thread = std::thread::spawn(move || loan.put(0, 1, &[1, 2, 3, 4]));
        receiver.recv().expect("it is returned");
        assert_eq!(buffer, [0, 1, 2, 3]);
        thread.join().expect("no panic");
    }
}
