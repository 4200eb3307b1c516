//! Functions about sessions, and status by path.

use std::ffi::{OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use byname_client::{SessionOptions as Memory, Stat};
use byname_security::trust::UnknownKeys;
use byname_transfer::freshness::Freshness;

use crate::abi::{
    self, Attributes, Call, Completion, Counters, Error, Session, SessionOptions, Source,
};
use crate::attributes::Described;
use crate::call::Work;
use crate::fault::Fault;
use crate::file::{self, FILES, FileState};
use crate::guard;
use crate::listing::LISTINGS;
use crate::memory::{Place, TextRoom, c_text, fill_text, optional_text, read_struct};
use crate::session::{SESSIONS, SessionState, Wishes, add};
use crate::symbols::versioned;

/// Opens a session and connects it. Pass BYNAME_ABI_VERSION; a library of another major version, or
/// of an older minor one, answers ENOTSUP. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_session_open(
    options: *const SessionOptions,
    abi_version: u32,
    error: *mut Error,
) -> Session {
    let body = || {
        // SAFETY: as the contract of the interface says.
        open(abi_version, unsafe { wishes(options) }?)
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) }
}

/// Opens a session as `wishes` say, for a program that knows this interface.
pub(super) fn open(abi_version: u32, wishes: Wishes<'_>) -> Result<Session, Fault> {
    let own = abi::BYNAME_ABI_VERSION;
    if abi_version >> 16 != own >> 16 || abi_version > own {
        return Err(Fault::AbiVersion { given: abi_version });
    }
    guard::watch_forks();
    SESSIONS.insert(Arc::new(SessionState::open(wishes)?))
}

/// The wishes of a caller, checked.
///
/// # Safety
/// A pointer that is not NULL leads to options, whose texts are NULL or end with a NUL.
pub(super) unsafe fn wishes<'a>(options: *const SessionOptions) -> Result<Wishes<'a>, Fault> {
    if options.is_null() {
        return Ok(Wishes::default());
    }
    // SAFETY: as promised.
    let options = unsafe { read_struct(options) }?;
    let path = |pointer, argument| {
        let given = |pointer: *const c_char| !pointer.is_null();
        // SAFETY: as promised, and it is not NULL.
        let text = given(pointer).then(|| unsafe { c_text(pointer, argument) }).transpose()?;
        Ok::<_, Fault>(text.map(|text| Path::new(OsStr::from_bytes(text.to_bytes()))))
    };
    // SAFETY: as promised.
    let (link, connect) = unsafe {
        (optional_text(options.link, "link")?, optional_text(options.connect, "connect")?)
    };
    let default = Memory::default();
    Ok(Wishes {
        link,
        connect,
        config_file: path(options.config_file, "config_file")?,
        home: path(options.home, "home")?,
        unknown_keys: match options.unknown_keys {
            abi::BYNAME_UNKNOWN_KEYS_REFUSE => UnknownKeys::Refuse,
            abi::BYNAME_UNKNOWN_KEYS_FIRST_USE => UnknownKeys::TrustOnFirstUse,
            abi::BYNAME_UNKNOWN_KEYS_INSECURE => UnknownKeys::Insecure,
            given => return Err(unknown("unknown_keys", given)),
        },
        freshness: match options.freshness {
            abi::BYNAME_FRESHNESS_PREFERRED => Freshness::Preferred,
            abi::BYNAME_FRESHNESS_REQUIRED => Freshness::Required,
            abi::BYNAME_FRESHNESS_OFFLINE => Freshness::Offline,
            given => return Err(unknown("freshness", given)),
        },
        retries: (options.retries > 0).then_some(options.retries),
        timeout: (options.timeout_ms > 0).then(|| Duration::from_millis(options.timeout_ms)),
        memory: Memory {
            node_bytes_max: size(options.node_bytes_max, default.node_bytes_max),
            cache_bytes_max: size(options.cache_bytes_max, default.cache_bytes_max),
            prefetch_bytes_max: size(options.prefetch_bytes_max, default.prefetch_bytes_max),
        },
        is_bulk: match options.is_bulk {
            0 => false,
            1 => true,
            given => return Err(unknown("is_bulk", given)),
        },
        loan: None,
    })
}

fn unknown(argument: &'static str, given: u32) -> Fault {
    Fault::Unknown { argument, given: given.into() }
}

fn size(given: u64, default: usize) -> usize {
    match given {
        0 => default,
        abi::BYNAME_NONE => 0,
        given => usize::try_from(given).unwrap_or(usize::MAX),
    }
}

/// Closes a session with its files and listings. Its calls end, blocking ones of other threads and
/// started ones with ECANCELED if not otherwise; this returns when all have, call-backs included.
/// EDEADLK from a call-back of this session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_session_close(session: Session, error: *mut Error) -> i32 {
    let body = || {
        if SESSIONS.get(session)?.dispatcher.is_current() {
            return Err(Fault::CloseFromDone);
        }
        let state = SESSIONS.remove(session)?;
        state.close();
        drop(FILES.remove_all(|file| Arc::ptr_eq(&file.session, &state)));
        drop(LISTINGS.remove_all(|listing| Arc::ptr_eq(&listing.session, &state)));
        Ok(0)
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// Counts of all files of a session, open and closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_session_counters(
    session: Session,
    counters: *mut Counters,
    error: *mut Error,
) -> i32 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let place = unsafe { Place::of_struct(counters) }?;
        let active = SESSIONS.get(session)?.begin()?;
        let mut read = active.closed_counters();
        let is_its_own = |file: &FileState| Arc::ptr_eq(&file.session, &active);
        FILES.for_each(|file| {
            if is_its_own(file) {
                add(&mut read, file.file.counters());
            }
        });
        place.write(Counters {
            struct_size: place.read().struct_size,
            files_opened: active.totals.files_opened.load(Ordering::Relaxed),
            files_open: active.totals.files_open.load(Ordering::Relaxed),
            calls_in_flight: active.calls(),
            ..file::counters(read)
        });
        Ok(0)
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// The peer that a session asks at this moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_session_source(
    session: Session,
    source: *mut Source,
    error: *mut Error,
) -> i32 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let place = unsafe { Place::of_struct(source) }?;
        let path = SESSIONS.get(session)?.begin()?.session.path()?;
        let mut made = Source {
            struct_size: place.read().struct_size,
            reserved: 0,
            window: path.window as u64,
            rtt_ns: path.rtt_ns.unwrap_or(0),
            requests: path.request_count,
            losses: path.losses.overtaken + path.losses.timed_out + path.losses.refused,
            marks: path.marked_count,
            dropped_frames: path.dropped_count,
            endpoint: [0; 256],
        };
        fill_text(&mut made.endpoint, &path.endpoint);
        place.write(made);
        Ok(0)
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// Writes to disk which versions were seen, as closing does, so that no later session is given
/// older ones. A program that runs for long calls it now and then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_session_keep_versions(session: Session, error: *mut Error) -> i32 {
    let body = || {
        SESSIONS.get(session)?.begin()?.session.keep_versions()?;
        Ok(0)
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) as i32 }
}

/// The name that a path stands for, as a URI. Returns the octets that it needs with its NUL; if
/// `buffer_size` is less, nothing is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_session_name(
    session: Session,
    path: *const c_char,
    buffer: *mut c_char,
    buffer_size: u64,
    error: *mut Error,
) -> i64 {
    let body = || {
        // SAFETY: as the contract of the interface says.
        let path = unsafe { c_text(path, "path") }?;
        let uri = SESSIONS.get(session)?.begin()?.name(path)?.to_string();
        // SAFETY: as the contract of the interface says.
        let mut room = unsafe { TextRoom::new(buffer, buffer_size) };
        room.push(uri.as_bytes());
        Ok(room.needed().cast_signed())
    };
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, body) }
}

/// The call that asks for a status.
///
/// # Safety
/// As the contract of the interface says, for the time until the call has ended.
unsafe fn stat(
    session: Session,
    path: *const c_char,
    attributes: *mut Attributes,
) -> Result<Work<Stat>, Fault> {
    // SAFETY: as promised.
    let (path, place) = unsafe { (c_text(path, "path")?, Place::of_struct(attributes)?) };
    let active = SESSIONS.get(session)?.begin()?;
    let pending = active.session.stat_later(&active.name(path)?);
    Ok(Work::new(active, pending, move |stat| Described::of_stat(&stat).write_to(&place)))
}

/// Status of the current version of a file or directory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_stat(
    session: Session,
    path: *const c_char,
    attributes: *mut Attributes,
    error: *mut Error,
) -> i32 {
    // SAFETY: as the contract of the interface says.
    unsafe { guard::entry(error, || stat(session, path, attributes)?.wait()) as i32 }
}

/// Starts byname_stat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byname_stat_start(
    session: Session,
    path: *const c_char,
    attributes: *mut Attributes,
    completion: *const Completion,
    error: *mut Error,
) -> Call {
    // SAFETY: as the contract of the interface says.
    unsafe {
        guard::entry(error, || {
            let completion = read_struct(completion)?;
            stat(session, path, attributes)?.start(completion, |_| ())
        })
    }
}

versioned! { "BYNAME_1":
    byname_session_open byname_session_close byname_session_counters byname_session_source
    byname_session_keep_versions byname_session_name byname_stat byname_stat_start
}
