//! Lends a caller's buffers to another thread for as long as the caller waits.
//!
//! A thread that calls a blocking read has buffers of its own, and another thread has the bytes.
//! Without a loan they would travel through memory that both own, one copy more. [`lend`] is to
//! buffers what a scoped thread is to borrowed data: it does not return, not even by unwinding,
//! before the [`Loan`] is dropped, wherever that happens.

#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

#[derive(Debug, Default)]
struct Latch {
    is_returned: Mutex<bool>,
    changed: Condvar,
}

/// Buffers of a thread that waits in [`lend`].
#[derive(Debug)]
pub struct Loan {
    buffers: Box<[(NonNull<u8>, usize)]>,
    latch: Arc<Latch>,
}

// SAFETY: the pointers come from exclusive borrows that `lend` holds until this value is dropped,
// so whichever thread has the value is the only one that reaches the bytes; `u8` may be written
// by any thread, and the latch's mutex orders those writes before the owner goes on.
unsafe impl Send for Loan {}

impl Loan {
    /// Number of buffers.
    pub fn buffer_count(&self) -> usize {
        self.buffers.len()
    }

    /// One of the buffers; `None` if there are not so many.
    pub fn buffer(&mut self, index: usize) -> Option<&mut [u8]> {
        let (start, length) = *self.buffers.get(index)?;
        // SAFETY: `start` and `length` are those of a slice that `lend` borrows exclusively until
        // this value is dropped; the result borrows this value, so no two of them exist at once.
        Some(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), length) })
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let mut is_returned = self.latch.is_returned.lock().unwrap_or_else(PoisonError::into_inner);
        *is_returned = true;
        self.latch.changed.notify_all();
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
    let loan = Loan { buffers: pointers.collect(), latch: Arc::clone(&latch) };
    let returned = WaitForReturn(latch);
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
                loan.buffer(index).expect("it exists").fill(index as u8 + 1);
            }
            assert!(loan.buffer(2).is_none());
        });
        lend(&mut [&mut first, &mut second], |loan| sender.send(loan).expect("it waits"));
        assert_eq!(first, [1; 4]);
        assert!(second.iter().all(|byte| *byte == 2));
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
}
