//! Lines in the log about calls that failed, few of each kind.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use byname_client::ClientError;
use byname_packet::Name;
use rustix::io::Errno;

/// Pause between two lines about errors with the same number.
const PAUSE_NS: u64 = 10_000_000_000;

/// Time of the last line, and errors since, by errno.
#[derive(Debug, Default)]
pub(crate) struct Complaints(Mutex<HashMap<i32, (u64, u64)>>);

impl Complaints {
    /// The errno for the kernel; says in the log what happened, unless it is an ordinary answer.
    pub(crate) fn errno(&self, name: &Name, error: &ClientError, now_ns: u64) -> i32 {
        let errno = for_kernel(error.errno());
        if errno == Errno::NOENT.raw_os_error() {
            return errno;
        }
        if let Some(count) = self.is_due(errno, now_ns) {
            tracing::warn!(name = %name.view().to_user(), %error, unsaid = count, "a call failed");
        }
        errno
    }

    /// `Some` if a line may be written now, with the number of errors that got none.
    fn is_due(&self, errno: i32, now_ns: u64) -> Option<u64> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((last_ns, unsaid)) = seen.get_mut(&errno) else {
            seen.insert(errno, (now_ns, 0));
            return Some(0);
        };
        if now_ns.saturating_sub(*last_ns) < PAUSE_NS {
            *unsaid += 1;
            return None;
        }
        *last_ns = now_ns;
        Some(std::mem::take(unsaid))
    }
}

/// Numbers that mean something else to programs that read files.
fn for_kernel(errno: i32) -> i32 {
    match Errno::from_raw_os_error(errno) {
        // It is this process that has too many open, not the caller.
        Errno::MFILE => Errno::NFILE.raw_os_error(),
        // The mount ends; the caller must not try again for ever.
        Errno::INTR => Errno::IO.raw_os_error(),
        _ => errno,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_in_ten_seconds_counts_the_others() {
        let complaints = Complaints::default();
        assert_eq!(complaints.is_due(5, 0), Some(0));
        assert_eq!(complaints.is_due(5, 1), None);
        assert_eq!(complaints.is_due(110, 1), Some(0), "another number has lines of its own");
        assert_eq!(complaints.is_due(5, PAUSE_NS), Some(1));
        assert_eq!(complaints.is_due(5, 2 * PAUSE_NS), Some(0));
    }
}
