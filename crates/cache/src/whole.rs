//! Whole contents that the kernel may read by itself: verified as a whole since this machine
//! started, and not changed since.
//!
//! A record beside the data says in which state they were verified: the boot, and device, inode,
//! size and time of the last inode change of the file. It counts as long as the file is in that
//! state, belongs to this user and nobody else may write to it. What no record covers is hashed by
//! a thread of its own (`checker`).
//!
//! A reader that goes by itself has no verifier, so this is the one place where the cache vouches
//! for something: that the disk gave the right bytes once, and that nobody wrote to the file since.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{Mode, OFlags};

use crate::disk::Step;
use crate::files;
use crate::known::{ContentState, Place};
use crate::layout::{ContentKey, DATA, WHOLE};

/// Octets that are hashed at once.
const PIECE_BYTES: usize = 1 << 20;
/// Age of a change after which another one has another time.
const SETTLED_AGE: Duration = Duration::from_millis(100);
/// The same where file systems keep whole seconds.
const SETTLED_AGE_COARSE: Duration = Duration::from_secs(2);
/// Permission of the group, or of everybody, to write.
const OTHERS_WRITE: u32 = 0o022;

/// Magic numbers of file systems that only this machine writes to and that note every change.
const LOCAL: [u64; 7] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // Btrfs
    0xF2F5_2010, // F2FS
    0x2FC1_2FC1, // ZFS
    0xCA45_1A4E, // bcachefs
    0x0102_1994, // tmpfs
];

/// State of a data file: equal ones have the same bytes, as far as the file system knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataState {
    boot: String,
    device: u64,
    inode: u64,
    size: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl DataState {
    /// `None` if it is not a file that this user alone may write to, or its file system does not
    /// note who else writes to it.
    pub(crate) fn of(file: &File) -> io::Result<Option<Self>> {
        let status = file.metadata()?;
        let own = rustix::process::geteuid().as_raw();
        let is_own = status.uid() == own && status.mode() & OTHERS_WRITE == 0;
        let magic = rustix::fs::fstatfs(file)?.f_type as u64;
        if !status.is_file() || !is_own || !LOCAL.contains(&magic) {
            return Ok(None);
        }
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        let (device, inode, size) = (status.dev(), status.ino(), status.len());
        let (changed_s, changed_ns) = (status.ctime(), status.ctime_nsec());
        Ok(Some(DataState { boot, device, inode, size, changed_s, changed_ns }))
    }

    /// Time after which a change would show; zero if it would by now.
    pub(crate) fn unsettled(&self, now: SystemTime) -> Duration {
        let age = if self.changed_ns == 0 { SETTLED_AGE_COARSE } else { SETTLED_AGE };
        let since = u64::try_from(self.changed_s).unwrap_or(0);
        let changed = Duration::new(since, u32::try_from(self.changed_ns).unwrap_or(0));
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // A change in the future is one of a clock that was set; nothing is said about it.
        (changed + age).saturating_sub(now).min(SETTLED_AGE_COARSE)
    }

    fn encode(&self) -> String {
        let DataState { boot, device, inode, size, changed_s, changed_ns } = self;
        format!("{boot} {device} {inode} {size} {changed_s} {changed_ns}\n")
    }

    /// Notes that the data of an entry were verified in this state.
    pub(crate) fn save(&self, entry: &Path) -> io::Result<()> {
        files::replace(&entry.join(WHOLE), self.encode().as_bytes())
    }

    fn is_noted(&self, entry: &Path) -> bool {
        fs::read(entry.join(WHOLE)).is_ok_and(|noted| noted == self.encode().as_bytes())
    }
}

/// Opens the data of an entry to be read.
pub(crate) fn open_data(entry: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::open(entry.join(DATA), flags, Mode::empty())?.into())
}

/// The data of an entry that has all of its content.
#[derive(Debug)]
pub(crate) enum Data {
    /// Verified in this state.
    Verified(File),
    /// To be hashed first.
    Unverified,
    /// Some of it is missing, or there is no such entry.
    Partial,
}

/// Looks for the data of a content. One that is removed meanwhile is not there, which is no fault
/// of the disk.
pub(crate) fn find(content: &ContentState, place: &Place) -> io::Result<Data> {
    look(content, place).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(Data::Partial),
        _ => Err(error),
    })
}

fn look(content: &ContentState, place: &Place) -> io::Result<Data> {
    // Who reads files of a service has only its word for who wrote to them.
    if place.service.is_some() {
        return Ok(Data::Partial);
    }
    let Some(entry) = content.refresh(place)? else { return Ok(Data::Partial) };
    if !content.is_whole() {
        return Ok(Data::Partial);
    }
    place.disk.announce(Step::Open, &entry.path)?;
    let file = open_data(&entry.path)?;
    let Some(state) = DataState::of(&file)? else { return Ok(Data::Partial) };
    match state.size == content.key.size && state.is_noted(&entry.path) {
        true => Ok(Data::Verified(file)),
        false => Ok(Data::Unverified),
    }
}

/// True if the octets are those of a content. `read` fills a buffer as far as it gets; `None` of
/// it ends the reading, and then nothing is known.
pub(crate) fn is_genuine(
    key: &ContentKey,
    read: &mut dyn FnMut(&mut [u8]) -> io::Result<Option<usize>>,
) -> io::Result<Option<bool>> {
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match read(&mut piece) {
            Ok(None) => return Ok(None),
            Ok(Some(0)) => break,
            Ok(Some(count)) => drop(hasher.update(&piece[..count])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let is_root = hasher.finalize().as_bytes() == key.root.as_bytes();
    Ok(Some(is_root && hasher.count() == key.size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_noted_as_long_as_nothing_has_changed() {
        let directory = tempfile::tempdir_in(".").expect("a directory");
        let data = directory.path().join(DATA);
        fs::write(&data, b"content").expect("written");
        let open = || DataState::of(&open_data(directory.path()).expect("open")).expect("a state");
        let Some(state) = open() else {
            return eprintln!("SKIPPED: this file system does not note who writes");
        };
        assert!(!state.is_noted(directory.path()));
        state.save(directory.path()).expect("noted");
        assert!(open().expect("ours").is_noted(directory.path()));
        std::thread::sleep(state.unsettled(SystemTime::now()));
        // Another content of the same size, and the time of last change put back.
        let before = fs::metadata(&data).expect("there").modified().expect("a time");
        fs::write(&data, b"CONTENT").expect("written");
        let file = File::options().write(true).open(&data).expect("open");
        file.set_modified(before).expect("put back");
        assert!(!open().expect("ours").is_noted(directory.path()));
        let rebooted = DataState { boot: "another".to_owned(), ..open().expect("ours") };
        rebooted.save(directory.path()).expect("noted");
        assert!(!open().expect("ours").is_noted(directory.path()));
        let mode = Mode::from_raw_mode(0o620);
        rustix::fs::chmod(&data, mode).expect("changed");
        assert_eq!(open(), None, "another may write to it");
    }
}
