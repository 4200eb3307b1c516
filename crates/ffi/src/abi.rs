//! Types and constants that cross the interface: `byname.h` is made from this file, those below it
//! and [`entry`](crate::entry).
//!
//! Invariants: a struct that may grow begins with its size, and grows at the end only; nothing here
//! owns memory; numbers have the same width on every machine.

mod doors;
mod sites;

use std::ffi::{c_char, c_void};

pub use doors::*;
pub use sites::*;

/// Major version in the upper half: other majors do not fit. Minors only add.
pub const BYNAME_ABI_VERSION: u32 = 0x0001_0000;

/// A bug of the library. The handles of the call may be unusable: close them.
pub const BYNAME_EINTERNAL: i32 = 10001;

/// No error.
pub const BYNAME_CLASS_NONE: u32 = 0;
/// The same call may succeed later.
pub const BYNAME_CLASS_RETRYABLE: u32 = 1;
/// The same call fails again until somebody changes something.
pub const BYNAME_CLASS_PERMANENT: u32 = 2;
/// The answer is not what was signed, or by nobody who counts.
pub const BYNAME_CLASS_CORRUPT: u32 = 3;
/// The program is wrong: a bad handle or argument.
pub const BYNAME_CLASS_MISUSE: u32 = 4;
/// The library is wrong.
pub const BYNAME_CLASS_INTERNAL: u32 = 5;

/// A file.
pub const BYNAME_KIND_FILE: u32 = 1;
/// A directory.
pub const BYNAME_KIND_DIRECTORY: u32 = 2;
/// A symbolic link.
pub const BYNAME_KIND_SYMLINK: u32 = 3;

/// The publisher's key is trusted for the name.
pub const BYNAME_TRUST_ANCHORED: u32 = 1;
/// The key was met for the first time, and the options of the session allow that.
pub const BYNAME_TRUST_FIRST_USE: u32 = 2;
/// Nothing was checked.
pub const BYNAME_TRUST_INSECURE: u32 = 3;

/// Bits of `byname_attributes.present`: the member of that name is known.
pub const BYNAME_HAS_VERSION: u32 = 0x0001;
/// See BYNAME_HAS_VERSION.
pub const BYNAME_HAS_SIZE: u32 = 0x0002;
/// See BYNAME_HAS_VERSION.
pub const BYNAME_HAS_MTIME: u32 = 0x0004;
/// See BYNAME_HAS_VERSION.
pub const BYNAME_HAS_MODE: u32 = 0x0008;
/// See BYNAME_HAS_VERSION.
pub const BYNAME_HAS_ROOT: u32 = 0x0010;
/// See BYNAME_HAS_VERSION.
pub const BYNAME_HAS_SEGMENT_BYTES: u32 = 0x0020;
/// See BYNAME_HAS_VERSION.
pub const BYNAME_HAS_PUBLISHER_KEY: u32 = 0x0040;
/// See BYNAME_HAS_VERSION.
pub const BYNAME_HAS_ADLER32: u32 = 0x0080;
/// See BYNAME_HAS_VERSION.
pub const BYNAME_HAS_CRC32: u32 = 0x0100;
/// See BYNAME_HAS_VERSION.
pub const BYNAME_HAS_CRC32C: u32 = 0x0200;
/// See BYNAME_HAS_VERSION.
pub const BYNAME_HAS_MD5: u32 = 0x0400;
/// See BYNAME_HAS_VERSION.
pub const BYNAME_HAS_SHA256: u32 = 0x0800;
/// The publisher still computes the root.
pub const BYNAME_ROOT_PENDING: u32 = 0x1000;
/// The publisher says so now, not a cache or mirror.
pub const BYNAME_IS_FRESH: u32 = 0x2000;

/// See BYNAME_HAS_VERSION.
pub const BYNAME_HAS_REPLICAS: u32 = 0x4000;

/// Keys that nobody has said to trust are refused.
pub const BYNAME_UNKNOWN_KEYS_REFUSE: u32 = 0;
/// They are taken for names that no trusted key covers; they are not kept.
pub const BYNAME_UNKNOWN_KEYS_FIRST_USE: u32 = 1;
/// Nothing is checked: whoever answers decides what is read.
pub const BYNAME_UNKNOWN_KEYS_INSECURE: u32 = 2;

/// Older descriptions count if the publisher does not answer.
pub const BYNAME_FRESHNESS_PREFERRED: u32 = 0;
/// Older descriptions never count.
pub const BYNAME_FRESHNESS_REQUIRED: u32 = 1;
/// The publisher is not asked: what caches and mirrors have counts.
pub const BYNAME_FRESHNESS_OFFLINE: u32 = 2;

/// For sizes in `byname_session_options` where 0 means the default: none at all.
pub const BYNAME_NONE: u64 = u64::MAX;

/// Ranges in one call (EINVAL).
pub const BYNAME_RANGES_MAX: u64 = 65_536;
/// Octets in a path (ENAMETOOLONG).
pub const BYNAME_PATH_BYTES_MAX: u64 = 4096;
/// Sessions of a process (EMFILE).
pub const BYNAME_SESSIONS_MAX: u64 = 1024;
/// Sites of a process (EMFILE).
pub const BYNAME_SITES_MAX: u64 = 1024;
/// Doors of a process (EMFILE).
pub const BYNAME_DOORS_MAX: u64 = 64;
/// Open files of a session (EMFILE).
pub const BYNAME_FILES_MAX: u64 = 4096;
/// Open listings of a session (EMFILE).
pub const BYNAME_LISTINGS_MAX: u64 = 1024;
/// Octets of the open listings of a session (ENOMEM).
pub const BYNAME_LISTINGS_BYTES_MAX: u64 = 536_870_912;
/// Started calls of a session that have not ended (EAGAIN).
pub const BYNAME_CALLS_MAX: u64 = 65_536;
/// Room for a loan as a text, with its NUL.
pub const BYNAME_LOAN_BYTES: u64 = 8192;
/// Room for the texts of almost every `byname_attributes`; `text_bytes` says if it was too small.
pub const BYNAME_TEXT_BYTES: u64 = 8192;

/// A connection to who has the files, with whom to trust, memory and a thread.
pub type Session = i64;
/// A user at a site: commands, questions that no cache answers, files that are written.
pub type Site = i64;
/// A program that acts for users whom it has authenticated, and who is who there.
pub type Door = i64;
/// One version of a file, open for reading.
pub type File = i64;
/// One version of a directory.
pub type Listing = i64;
/// A call that was started and has not ended.
pub type Call = i64;

/// An error, as a number and a text. It belongs to whoever passes it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Error {
    /// sizeof(byname_error), set by the caller.
    pub struct_size: u32,
    /// An errno, or BYNAME_EINTERNAL; 0 if there was no error.
    pub code: i32,
    /// BYNAME_CLASS_*: what a caller can do about it.
    pub error_class: u32,
    /// Octets of the whole text. If it did not fit, it was cut at a character.
    pub message_bytes: u32,
    /// UTF-8 with a NUL at its end.
    pub message: [c_char; 1024],
}

/// Hears that a started call has ended. `error` is never NULL, is valid during this call, and its
/// code is 0 if all went well. It must not throw.
pub type Done = Option<unsafe extern "C" fn(context: *mut c_void, error: *const Error)>;

/// Receiver of the end of a started call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// sizeof(byname_completion), set by the caller.
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// Called exactly once; not NULL.
    pub done: Done,
    /// Handed to `done`.
    pub context: *mut c_void,
}

/// Wishes for a session. What is 0 or NULL is as the configuration has it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SessionOptions {
    /// sizeof(byname_session_options), set by the caller.
    pub struct_size: u32,
    /// BYNAME_UNKNOWN_KEYS_*.
    pub unknown_keys: u32,
    /// BYNAME_FRESHNESS_*.
    pub freshness: u32,
    /// Retransmissions of one request.
    pub retries: u32,
    /// "byname:/lab,via=tcp://host:6363,key=SHA256:..." or a name. NULL: paths are whole names, and
    /// the forwarder of this machine is asked.
    pub link: *const c_char,
    /// File with options in place of the user's and the system's.
    pub config_file: *const c_char,
    /// Directory with configuration, keys and state in place of the user's, and of BYNAME_HOME; the
    /// environment does not count then.
    pub home: *const c_char,
    /// URI of the forwarder or server to ask, in place of the link's.
    pub connect: *const c_char,
    /// Silence that counts as failure.
    pub timeout_ms: u64,
    /// Verified content kept in memory; 16 MiB unless told, or BYNAME_NONE.
    pub cache_bytes_max: u64,
    /// Hash tree nodes of open files kept in memory; 16 MiB unless told, or BYNAME_NONE.
    pub node_bytes_max: u64,
    /// Readahead of each file; 4 MiB unless told, or BYNAME_NONE.
    pub prefetch_bytes_max: u64,
    /// 1 if much will be read: shared memory with a forwarder is worth its setting up.
    pub is_bulk: u32,
    /// 0.
    pub reserved: u32,
}

/// Status of one version of a file or directory, as its publisher has signed it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Attributes {
    /// sizeof(byname_attributes), set by the caller.
    pub struct_size: u32,
    /// BYNAME_KIND_*.
    pub kind: u32,
    /// BYNAME_HAS_*: which members are known; the others are 0.
    pub present: u32,
    /// BYNAME_TRUST_*.
    pub trust: u32,
    /// Newer versions have larger numbers.
    pub version: u64,
    /// Octets: of the file, or of the directory's listing.
    pub size: u64,
    /// Last change of the content, nanoseconds since the Unix epoch.
    pub mtime_ns: u64,
    /// Time since this was signed, by the clocks of the publisher and of this machine.
    pub age_ns: u64,
    /// Octets in every segment but the last.
    pub segment_bytes: u64,
    /// Type and permissions as in st_mode.
    pub mode: u32,
    /// Checksums: octets in the order in which they are printed.
    pub adler32: [u8; 4],
    /// CRC-32 as gzip has it.
    pub crc32: [u8; 4],
    /// CRC-32C (Castagnoli).
    pub crc32c: [u8; 4],
    /// MD5.
    pub md5: [u8; 16],
    /// SHA-256.
    pub sha256: [u8; 32],
    /// BLAKE3 of the content: what b3sum prints.
    pub root: [u8; 32],
    /// SHA-256 of the public key that has signed this.
    pub publisher_key: [u8; 32],
    /// Set by the caller: room for the texts; NULL if they are not wanted.
    pub text: *mut c_char,
    /// Set by the caller: octets of that room.
    pub text_size: u64,
    /// Octets that all texts need. Those that do not fit are left out.
    pub text_bytes: u64,
    /// In `text` with a NUL at its end, or NULL.
    pub owner: *const c_char,
    /// In `text` with a NUL at its end, or NULL.
    pub group: *const c_char,
    /// Target of a symbolic link, neither checked nor followed; in `text` with a NUL at its end, or
    /// NULL.
    pub link_target: *const c_char,
    /// URI of the name that the key speaks for; in `text` with a NUL at its end, or NULL. Entries
    /// of a listing have none: it is that of the listing.
    pub publisher: *const c_char,
    /// Replicas that a file of a site shall have; of a directory those of what is made in it.
    pub replicas: u32,
    /// 0.
    pub reserved: u32,
}

/// One entry of a directory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name, without path, in the text of the page with a NUL at its end.
    pub name: *const c_char,
    /// Octets of the name.
    pub name_bytes: u64,
    /// 1 if byname_open_entry asks nobody.
    pub is_resolved: u32,
    /// 0.
    pub reserved: u32,
    /// Its status, as far as the listing says; kind at least. Size and text are set by the library.
    pub attributes: Attributes,
}

/// A page of a listing, and room for it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// sizeof(byname_page), set by the caller.
    pub struct_size: u32,
    /// sizeof(byname_entry), set by the caller.
    pub entry_size: u32,
    /// Index of the first entry that is wanted. The library adds `count`.
    pub next: u64,
    /// Room for entries.
    pub entries: *mut Entry,
    /// Entries that fit there.
    pub entries_max: u64,
    /// Room for names and other texts.
    pub text: *mut c_char,
    /// Octets of that room.
    pub text_size: u64,
    /// Entries in this page; 0 at the end.
    pub count: u64,
}

/// Octets of a file, and where they go. This struct never changes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// The first octet that is wanted.
    pub offset: u64,
    /// Room for the octets; need not be initialised.
    pub buffer: *mut c_void,
    /// Octets that are wanted.
    pub buffer_bytes: u64,
    /// Set by the library: octets read. Fewer than wanted only where the file ends.
    pub filled_bytes: u64,
}

/// Counts since a file was opened, or of all files of a session.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    /// sizeof(byname_counters), set by the caller.
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// Octets that calls asked for and that exist.
    pub asked_bytes: u64,
    /// Octets of all Data packets that came, nodes of the hash tree included.
    pub received_bytes: u64,
    /// Interests sent.
    pub requests: u64,
    /// Octets served from memory.
    pub cached_bytes: u64,
    /// Octets read ahead.
    pub prefetched_bytes: u64,
    /// Of these, units of which something was read.
    pub prefetch_useful_bytes: u64,
    /// Of these, units that were dropped unread.
    pub prefetch_wasted_bytes: u64,
    /// Files opened so far; 1 of a file.
    pub files_opened: u64,
    /// Files open now; 1 of a file.
    pub files_open: u64,
    /// Calls that run in the session, this one included.
    pub calls_in_flight: u64,
}

/// The peer that a session asks at this moment, and the path to it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// sizeof(byname_source), set by the caller.
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// Requests that may be in flight.
    pub window: u64,
    /// Smoothed round-trip time; 0 if nothing was measured.
    pub rtt_ns: u64,
    /// Requests sent, repeated ones included.
    pub requests: u64,
    /// Requests that were not answered.
    pub losses: u64,
    /// Answers with a congestion mark.
    pub marks: u64,
    /// Frames that made no packet.
    pub dropped_frames: u64,
    /// Its URI, cut if it is longer, with a NUL at its end.
    pub endpoint: [c_char; 256],
}
