//! The caller's memory: where pointers of the interface are read and written.
//!
//! Each function here is `unsafe` for one reason: it believes the caller that a pointer which is
//! not NULL leads to what `byname.h` says, for as long as `byname.h` says. Everything that can be
//! checked is checked: NULL, sizes, UTF-8.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use crate::abi;
use crate::fault::Fault;

/// Structs that begin with their size.
///
/// # Safety
/// The type is `repr(C)`, begins with a `u32` that is its size, and any bits are a value of it, but
/// that a function in it exists or is NULL.
pub(crate) unsafe trait Sized32: Copy {
    /// The argument's name, for errors.
    const NAME: &'static str;
}

// SAFETY: `abi` has it `repr(C)`, beginning with `struct_size: u32`, of numbers and arrays of them.
unsafe impl Sized32 for abi::Error {
    const NAME: &'static str = "error";
}
// SAFETY: as `abi::Error`, with raw pointers and an optional function, for which NULL is `None`.
unsafe impl Sized32 for abi::Completion {
    const NAME: &'static str = "completion";
}
// SAFETY: as `abi::Error`, with raw pointers.
unsafe impl Sized32 for abi::SessionOptions {
    const NAME: &'static str = "options";
}
// SAFETY: as `abi::Error`, with raw pointers.
unsafe impl Sized32 for abi::Attributes {
    const NAME: &'static str = "attributes";
}
// SAFETY: as `abi::Error`, with raw pointers.
unsafe impl Sized32 for abi::Page {
    const NAME: &'static str = "page";
}
// SAFETY: as `abi::Error`.
unsafe impl Sized32 for abi::Counters {
    const NAME: &'static str = "counters";
}
// SAFETY: as `abi::Error`.
unsafe impl Sized32 for abi::Source {
    const NAME: &'static str = "source";
}

// SAFETY: as `abi::Error`, with raw pointers.
unsafe impl Sized32 for abi::SiteOptions {
    const NAME: &'static str = "options";
}
// SAFETY: as `abi::Error`, with raw pointers.
unsafe impl Sized32 for abi::DoorOptions {
    const NAME: &'static str = "options";
}
// SAFETY: as `abi::Error`, with raw pointers.
unsafe impl Sized32 for abi::Authenticated {
    const NAME: &'static str = "who";
}
// SAFETY: as `abi::Error`, with raw pointers.
unsafe impl Sized32 for abi::PutOptions {
    const NAME: &'static str = "options";
}
// SAFETY: as `abi::Error`, with raw pointers.
unsafe impl Sized32 for abi::SiteChanges {
    const NAME: &'static str = "changes";
}
// SAFETY: as `abi::Error`, with raw pointers.
unsafe impl Sized32 for abi::SiteXattr {
    const NAME: &'static str = "xattr";
}
// SAFETY: as `abi::Error`, with raw pointers.
unsafe impl Sized32 for abi::SiteAcl {
    const NAME: &'static str = "acl";
}
// SAFETY: as `abi::Error`.
unsafe impl Sized32 for abi::SiteRoom {
    const NAME: &'static str = "room";
}

/// A struct of zeros and NULL.
pub(crate) fn zeroed<T: Sized32>() -> T {
    // SAFETY: zeros are a value of every such type.
    unsafe { std::mem::zeroed() }
}

/// A place of the caller's that is written to later, perhaps by another thread.
pub(crate) struct Place<T>(NonNull<T>);

// SAFETY: the caller leaves the place alone until the call has ended, so whichever thread has this
// value is the only one that reaches it.
unsafe impl<T> Send for Place<T> {}

impl<T> Place<T> {
    /// The place that a pointer leads to.
    ///
    /// # Safety
    /// A pointer that is not NULL is valid for writes until the call has ended.
    pub(crate) unsafe fn new(pointer: *mut T, argument: &'static str) -> Result<Self, Fault> {
        NonNull::new(pointer).map(Place).ok_or(Fault::Null { argument })
    }

    /// Writes there.
    pub(crate) fn write(&self, value: T) {
        // SAFETY: `new` was promised that the place is valid for writes until the call has ended,
        // and the call holds this value. The caller may have it at any address.
        unsafe { self.0.as_ptr().write_unaligned(value) }
    }
}

impl<T: Sized32> Place<T> {
    /// The place of a struct that has room for what this version knows.
    ///
    /// # Safety
    /// A pointer that is not NULL leads to a `T` that was initialised and may be read and written
    /// until the call has ended.
    pub(crate) unsafe fn of_struct(pointer: *mut T) -> Result<Self, Fault> {
        // SAFETY: as promised.
        unsafe {
            read_struct(pointer.cast_const())?;
            Self::new(pointer, T::NAME)
        }
    }

    /// The struct as the caller has set it.
    pub(crate) fn read(&self) -> T {
        // SAFETY: `of_struct` was promised that it is initialised and may be read.
        unsafe { self.0.as_ptr().read_unaligned() }
    }
}

/// A struct of the caller's.
///
/// # Safety
/// A pointer that is not NULL leads to an initialised `T`, or to a `u32` that is less than its
/// size.
pub(crate) unsafe fn read_struct<T: Sized32>(pointer: *const T) -> Result<T, Fault> {
    if pointer.is_null() {
        return Err(Fault::Null { argument: T::NAME });
    }
    // SAFETY: the struct begins with this number, whatever its size.
    let given = unsafe { pointer.cast::<u32>().read_unaligned() };
    let least = size_of::<T>();
    if (given as usize) < least {
        return Err(Fault::StructSize { argument: T::NAME, given, least });
    }
    // SAFETY: as promised, and it is large enough.
    Ok(unsafe { pointer.read_unaligned() })
}

/// A text of the caller's.
///
/// # Safety
/// A pointer that is not NULL leads to octets that end with a NUL and do not change during `'a`.
pub(crate) unsafe fn c_text<'a>(
    pointer: *const c_char,
    argument: &'static str,
) -> Result<&'a CStr, Fault> {
    if pointer.is_null() {
        return Err(Fault::Null { argument });
    }
    // SAFETY: as promised.
    Ok(unsafe { CStr::from_ptr(pointer) })
}

/// A text of the caller's that may be missing.
///
/// # Safety
/// As [`c_text`].
pub(crate) unsafe fn optional_text<'a>(
    pointer: *const c_char,
    argument: &'static str,
) -> Result<Option<&'a str>, Fault> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: as promised.
    let text = unsafe { c_text(pointer, argument) }?;
    text.to_str().map(Some).map_err(|_| Fault::NotText { argument })
}

/// Octets of the caller's.
///
/// # Safety
/// A pointer that is not NULL leads to so many octets, which do not change during `'a`.
pub(crate) unsafe fn octets<'a>(
    pointer: *const c_void,
    bytes: u64,
    argument: &'static str,
) -> Result<&'a [u8], Fault> {
    if bytes > isize::MAX as u64 {
        return Err(Fault::Buffer { bytes });
    }
    match (pointer.is_null(), bytes) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Fault::Null { argument }),
        // SAFETY: as promised; any octets are a value of `u8`.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(pointer.cast(), bytes as usize) }),
    }
}

/// A descriptor of our own for a file that the caller has open.
///
/// # Safety
/// The caller does not close the descriptor before this returns.
pub(crate) unsafe fn descriptor(number: c_int) -> Result<File, Fault> {
    if number < 0 {
        return Err(Fault::Descriptor { error: std::io::Error::from_raw_os_error(libc::EBADF) });
    }
    // SAFETY: as promised; the system refuses numbers that are none.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let owned = borrowed.try_clone_to_owned();
    owned.map(File::from).map_err(|error| Fault::Descriptor { error })
}

/// Room for texts, one behind the other, each with a NUL at its end.
pub(crate) struct TextRoom {
    start: *mut c_char,
    size: u64,
    used: u64,
    needed: u64,
}

impl TextRoom {
    /// The room that a caller gives; none if the pointer is NULL.
    ///
    /// # Safety
    /// A pointer that is not NULL is valid for writes of `size` octets for as long as this value is
    /// used, and nobody else reaches them.
    pub(crate) unsafe fn new(start: *mut c_char, size: u64) -> Self {
        let size = if start.is_null() { 0 } else { size.min(isize::MAX as u64) };
        TextRoom { start, size, used: 0, needed: 0 }
    }

    /// Octets that all texts so far need.
    pub(crate) fn needed(&self) -> u64 {
        self.needed
    }

    /// Octets that were used.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Gives back what was used since then.
    pub(crate) fn rewind(&mut self, used: u64) {
        self.used = used;
        self.needed = used;
    }

    /// Copies octets without a NUL, if there is room for them.
    pub(crate) fn push_octets(&mut self, octets: &[u8]) {
        let bytes = octets.len() as u64;
        self.needed += bytes;
        if bytes > self.size - self.used {
            return;
        }
        // SAFETY: as in `push`.
        unsafe {
            let place = self.start.add(self.used as usize);
            std::ptr::copy_nonoverlapping(octets.as_ptr().cast(), place, octets.len());
        }
        self.used += bytes;
    }

    /// Copies a text; NULL if there is no room for it.
    pub(crate) fn push(&mut self, text: &[u8]) -> *const c_char {
        let bytes = text.len() as u64 + 1;
        self.needed += bytes;
        if bytes > self.size - self.used {
            return std::ptr::null();
        }
        // SAFETY: `used + bytes` octets are at most `size`, which fits an isize, and are valid for
        // writes, as `new` was promised; `text` is a borrow, and the room is nobody else's.
        let place = unsafe {
            let place = self.start.add(self.used as usize);
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), place, text.len());
            place.add(text.len()).write(0);
            place
        };
        self.used += bytes;
        place.cast_const()
    }

    /// [`push`](TextRoom::push), if there is a text.
    pub(crate) fn push_if(&mut self, text: Option<&[u8]>) -> *const c_char {
        text.map_or(std::ptr::null(), |text| self.push(text))
    }
}

/// Copies a text to an array, cut at a character if it does not fit, with a NUL at its end.
pub(crate) fn fill_text(array: &mut [c_char], text: &str) {
    let Some(room) = array.len().checked_sub(1) else { return };
    let cut = text.floor_char_boundary(room);
    let octets = text.as_bytes()[..cut].iter().map(|octet| *octet as c_char);
    let end = octets.chain([0]);
    array.iter_mut().zip(end).for_each(|(place, octet)| *place = octet);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_lie_behind_each_other_while_there_is_room() {
        let mut room = [7 as c_char; 8];
        // SAFETY: `room` lives and is not touched while `texts` is used.
        let mut texts = unsafe { TextRoom::new(room.as_mut_ptr(), 7) };
        let first = texts.push(b"abc");
        assert!(texts.push(b"wide").is_null());
        let second = texts.push(b"no");
        assert!(texts.push(b"").is_null());
        assert_eq!((texts.needed(), texts.used()), (13, 7));
        // SAFETY: both lie in `room` and end with a NUL.
        let (first, second) = unsafe { (CStr::from_ptr(first), CStr::from_ptr(second)) };
        assert_eq!((first, second), (c"abc", c"no"));
        assert_eq!(room[7], 7, "what is behind the room is untouched");
        // SAFETY: there is no room.
        let mut none = unsafe { TextRoom::new(std::ptr::null_mut(), 100) };
        assert!(none.push(b"").is_null());
        assert_eq!(none.needed(), 1);
    }

    #[test]
    fn a_long_text_is_cut_between_two_characters() {
        let mut array = [7 as c_char; 4];
        fill_text(&mut array, "aéé");
        assert_eq!(array.map(|octet| octet as u8), [b'a', 0xc3, 0xa9, 0]);
        fill_text(&mut array, "é");
        assert_eq!(array[2], 0);
        fill_text(&mut [], "é");
    }

    #[test]
    fn structs_that_are_too_small_are_refused() {
        let mut counters: abi::Counters = zeroed();
        let place = &raw mut counters;
        // SAFETY: `counters` lives and is initialised.
        unsafe {
            assert!(matches!(Place::of_struct(place), Err(Fault::StructSize { given: 0, .. })));
            let null = std::ptr::null_mut::<abi::Counters>();
            assert!(matches!(Place::of_struct(null), Err(Fault::Null { argument: "counters" })));
        }
    }
}
