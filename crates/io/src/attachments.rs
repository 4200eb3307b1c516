//! Octets that belong to a file and travel with it: in an extended attribute if the file system
//! takes it, else in a directory of ours.
//!
//! Which bytes they are is none of this module's business. What lies in the directory is found by
//! device and inode; for files it counts only while size and time of last change are what they
//! were, so that another file that got the inode later is not taken for the first. Setting an
//! attribute changes the file's ctime, never its content or mtime.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat, XattrFlags};
use rustix::io::Errno;

/// Prefix of the names of attributes.
const ATTRIBUTE_PREFIX: &str = "user.byname.";
/// No Linux file system takes larger attributes.
const ATTRIBUTE_BYTES_MAX: usize = 64 << 10;
/// Device, inode, size, seconds and nanoseconds of the last change.
const HEADER_BYTES: usize = 40;

/// Where octets are attached.
#[derive(Debug, Clone)]
pub struct Attachments {
    directory: PathBuf,
}

impl Attachments {
    /// `directory` takes what file systems do not; it is made when it is needed.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Attaches octets to an open file or directory, in place of those that are there.
    ///
    /// # Errors
    /// The disk's error when neither place takes them.
    pub fn set(&self, file: impl AsFd, slot: &str, octets: &[u8]) -> io::Result<()> {
        let file = file.as_fd();
        let attribute = format!("{ATTRIBUTE_PREFIX}{slot}");
        if octets.len() <= ATTRIBUTE_BYTES_MAX
            && rustix::fs::fsetxattr(file, &attribute, octets, XattrFlags::empty()).is_ok()
        {
            return Ok(());
        }
        self.write(&rustix::fs::fstat(file)?, slot, octets)?;
        match rustix::fs::fremovexattr(file, &attribute) {
            // It would be found first, and is outdated.
            Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The octets attached to an open file or directory, also one opened with `O_PATH`; nothing
    /// if there are none, or more than `bytes_max`.
    ///
    /// # Errors
    /// The disk's error.
    pub fn get(
        &self,
        file: impl AsFd,
        slot: &str,
        bytes_max: usize,
    ) -> io::Result<Option<Vec<u8>>> {
        let file = file.as_fd();
        let attribute = format!("{ATTRIBUTE_PREFIX}{slot}");
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let mut octets = vec![0; bytes_max.min(4096)];
        loop {
            let read = match rustix::fs::fgetxattr(file, &attribute, &mut octets[..]) {
                Err(Errno::BADF) => rustix::fs::getxattr(&path, &attribute, &mut octets[..]),
                read => read,
            };
            match read {
                Ok(len) => {
                    octets.truncate(len);
                    return Ok(Some(octets));
                }
                Err(Errno::RANGE) if octets.len() < bytes_max.min(ATTRIBUTE_BYTES_MAX) => {
                    octets.resize(bytes_max.min(ATTRIBUTE_BYTES_MAX), 0);
                }
                Err(Errno::RANGE) => return Ok(None),
                Err(_) => return self.read(&rustix::fs::fstat(file)?, slot, bytes_max),
            }
        }
    }

    fn place(&self, stat: &Stat, slot: &str) -> PathBuf {
        self.directory.join(format!("{:x}-{:x}-{slot}", stat.st_dev, stat.st_ino))
    }

    fn write(&self, stat: &Stat, slot: &str, octets: &[u8]) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let place = self.place(stat, slot);
        let temporary = place.with_extension(format!("new-{}", std::process::id()));
        let options =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).clone();
        let mut out = options.open(&temporary)?;
        out.write_all(&header(stat)).and_then(|()| out.write_all(octets))?;
        fs::rename(&temporary, &place)
    }

    fn read(&self, stat: &Stat, slot: &str, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
        let file = match File::open(self.place(stat, slot)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let limit = bytes_max as u64 + HEADER_BYTES as u64 + 1;
        let mut found = Vec::new();
        file.take(limit).read_to_end(&mut found)?;
        if found.len() as u64 == limit || found.get(..HEADER_BYTES) != Some(&header(stat)) {
            return Ok(None);
        }
        found.drain(..HEADER_BYTES);
        Ok(Some(found))
    }
}

/// Marks that have to be the same for the octets to belong to the file. A directory changes with
/// each entry that is put into it and stays the same directory.
fn header(stat: &Stat) -> [u8; HEADER_BYTES] {
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let changing = |number: u64| if is_directory { 0 } else { number };
    let numbers = [
        stat.st_dev,
        stat.st_ino,
        changing(stat.st_size.cast_unsigned()),
        changing(stat.st_mtime.cast_unsigned()),
        changing(stat.st_mtime_nsec),
    ];
    let mut header = [0; HEADER_BYTES];
    for (place, number) in header.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_be_bytes());
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::OpenOptionsExt;

    fn scene() -> (tempfile::TempDir, Attachments, PathBuf) {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("file");
        fs::write(&file, b"content").unwrap();
        let attachments = Attachments::new(temporary.path().join("attached"));
        (temporary, attachments, file)
    }

    #[test]
    fn what_was_set_is_found_until_it_is_replaced() {
        let (_temporary, attachments, path) = scene();
        let file = File::open(&path).unwrap();
        assert_eq!(attachments.get(&file, "a", 100).unwrap(), None);
        attachments.set(&file, "a", b"one").unwrap();
        attachments.set(&file, "b", b"other").unwrap();
        attachments.set(&file, "a", b"two").unwrap();
        assert_eq!(attachments.get(&file, "a", 100).unwrap().unwrap(), b"two");
        assert_eq!(attachments.get(&file, "b", 100).unwrap().unwrap(), b"other");
        assert_eq!(attachments.get(&file, "b", 4).unwrap(), None, "larger than wanted");
        assert_eq!(fs::read(&path).unwrap(), b"content");
    }

    #[test]
    fn what_no_attribute_holds_goes_to_the_directory_and_back() {
        let (_temporary, attachments, path) = scene();
        let file = File::open(&path).unwrap();
        let large = vec![7; 300_000];
        attachments.set(&file, "a", b"small").unwrap();
        attachments.set(&file, "a", &large).unwrap();
        assert_eq!(attachments.get(&file, "a", 1 << 20).unwrap().unwrap(), large);
        assert_eq!(attachments.get(&file, "a", 299_999).unwrap(), None);
        fs::write(&path, b"another content").unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(attachments.get(&file, "a", 1 << 20).unwrap(), None, "not of this content");
    }

    #[test]
    fn directories_keep_theirs_while_entries_come_and_go() {
        let (temporary, attachments, _) = scene();
        let path = temporary.path().join("directory");
        fs::create_dir(&path).unwrap();
        let large = vec![7; 300_000];
        attachments.set(File::open(&path).unwrap(), "ls", &large).unwrap();
        fs::write(path.join("entry"), b"").unwrap();
        let options = OpenOptions::new().read(true).custom_flags(libc::O_PATH).clone();
        let only_path = options.open(&path).unwrap();
        assert_eq!(attachments.get(&only_path, "ls", 1 << 20).unwrap().unwrap(), large);
    }
}
