//! Reads: bytes of one version of a file, to whoever asks for them.
//!
//! [`open_file`] is the job of an open file; [`operation`] is one call on it, [`scheduler`] decides
//! what to ask for next, [`cache`] keeps units for the next read of any file, [`prefetch`] runs
//! ahead of a pattern and [`unread`] counts what of that is not read yet. [`stream`] hands a long
//! range to a sink. [`site_cache`] is how both find units on a local disk, [`nowait`] how a caller
//! finds them by itself in memory, [`older`] how a stream finds those that an older version has.

pub(crate) mod cache;
pub(crate) mod counters;
pub(crate) mod nowait;
pub(crate) mod older;
pub(crate) mod open_file;
pub(crate) mod operation;
pub(crate) mod prefetch;
pub(crate) mod scheduler;
pub(crate) mod site_cache;
pub(crate) mod stream;
pub(crate) mod stream_cache;
pub(crate) mod unread;
