//! Passing through: the kernel reads large files of the site cache by itself.
//!
//! Which version may be read so is the cache's affair (`Content::whole`); here is asked for it, for
//! a bounded time, and the kernel is told. It takes the privilege to mount (CAP_SYS_ADMIN), which a
//! system service has; without it nothing is passed through.

use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use byname_cache::Content;
use fuser::BackingId;
use rustix::io::Errno;

use crate::tasks::Timers;

/// Size from which a file is passed through. Of smaller ones the kernel has all pages after one
/// read.
const BYTES_MIN: u64 = 1 << 20;
/// Time that an open waits for the disk; after that the file is read as without this.
const PATIENCE: Duration = Duration::from_millis(500);

/// Answer of the cache, awaited by a task.
#[derive(Default)]
struct Slot {
    answer: Option<Option<File>>,
    waker: Option<Waker>,
}

/// Gives the answer, at the latest when it is dropped.
struct Giver(Arc<Mutex<Slot>>);

impl Giver {
    fn give(&self, file: Option<File>) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.answer.get_or_insert(file);
        let waker = slot.waker.take();
        drop(slot);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Giver {
    fn drop(&mut self) {
        self.give(None);
    }
}

/// See the module.
pub(crate) struct Passing {
    is_on: AtomicBool,
    opens: AtomicU64,
    timers: Timers,
}

impl Passing {
    pub(crate) fn new(timers: Timers) -> Self {
        Passing { is_on: AtomicBool::new(false), opens: AtomicU64::new(0), timers }
    }

    /// The kernel can do it.
    pub(crate) fn begin(&self) {
        self.is_on.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Opens that let the kernel read by itself.
    pub(crate) fn opens(&self) -> u64 {
        self.opens.load(Ordering::Relaxed)
    }

    /// One more of them.
    pub(crate) fn count_open(&self) {
        self.opens.fetch_add(1, Ordering::Relaxed);
    }

    /// The file that the kernel may read in place of a content, if there is one.
    pub(crate) async fn file(&self, content: &Content) -> Option<File> {
        if !self.is_on() || content.key().size < BYTES_MIN {
            return None;
        }
        let slot = Arc::<Mutex<Slot>>::default();
        let giver = Giver(Arc::clone(&slot));
        if !content.whole(move |file| giver.give(file)) {
            return None;
        }
        let answer = poll_fn(|context| {
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(answer) = slot.answer.take() {
                return Poll::Ready(answer);
            }
            slot.waker = Some(context.waker().clone());
            Poll::Pending
        });
        self.timers.within(PATIENCE, answer).await.flatten()
    }

    /// Takes what the kernel said about a file. One that it cannot read so is read as ever.
    pub(crate) fn registered(&self, answer: io::Result<BackingId>) -> Option<Arc<BackingId>> {
        match answer {
            Ok(backing) => Some(Arc::new(backing)),
            Err(error) => {
                let is_refused = error.raw_os_error() == Some(Errno::PERM.raw_os_error());
                if is_refused && self.is_on.swap(false, Ordering::Relaxed) {
                    tracing::info!("without CAP_SYS_ADMIN nothing is passed through");
                }
                tracing::debug!(%error, "a file of the cache is not passed through");
                None
            }
        }
    }
}
