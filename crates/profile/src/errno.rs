//! Numbers for callers that know nothing else: the C ABI, FUSE, XRootD.
//!
//! Each error has a method `errno`; README.md has the table. What is common to all is here.

use rustix::io::Errno;

/// The system's own number, or EIO for an error that no system call made.
pub(crate) fn of_io(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::IO.raw_os_error())
}
