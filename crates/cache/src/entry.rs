//! An open entry: its sparse file, its map and its tree, read and written at any place.
//!
//! Several processes have the same entry open. All of them write the same verified bytes to the
//! same places, so they need no agreement but for the map. One that removes an entry leaves the
//! others with files that have no name; they notice ([`Entry::is_gone`]) and begin anew.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use byname_io::files;
use byname_security::tree::{NODE_BYTES, NodeId, Shape, UNIT_BYTES};
use byname_transfer::verify::UnitSet;
use rustix::fs::{FallocateFlags, Mode, OFlags};

use crate::disk::{Disk, Step};
use crate::layout::{ContentKey, DATA, MAP, TREE};
use crate::lending::link::{Lent, ServiceLink};
use crate::map;

/// Octets of which direct reads are whole numbers.
pub(crate) const BLOCK_BYTES: usize = 4096;
/// Octets from which on a place is reserved before it is written: the file system then looks for
/// room once, and not for each block (decision 87).
const RESERVED_BYTES_MIN: usize = 64 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) path: PathBuf,
    key: ContentKey,
    shape: Shape,
    pub(crate) data: File,
    map: Map,
    pub(crate) tree: File,
    /// The data once more, past the kernel's memory; `None` inside if that cannot be.
    direct: OnceLock<Option<File>>,
    /// Found out here, where the disk is watched: nobody who must not wait may ask.
    pub(crate) is_in_memory: bool,
    disk: Disk,
}

/// Where it is said which units are there.
#[derive(Debug)]
enum Map {
    File(File),
    /// With a service, which also writes: the files here can only be read.
    Service(Arc<ServiceLink>),
}

impl Entry {
    /// Opens an entry that is there; `None` if there is none, or its map is damaged.
    pub(crate) fn open(path: &Path, key: ContentKey, disk: &Disk) -> io::Result<Option<Self>> {
        match Self::open_files(path, key, disk, OFlags::empty()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok(entry) => Ok(map::is_of(entry.map()?, &key).then_some(entry)),
        }
    }

    /// Opens the files of an entry that a service has; `None` if it has none.
    pub(crate) fn borrow(
        service: &Arc<ServiceLink>,
        key: ContentKey,
        disk: &Disk,
    ) -> io::Result<Option<Self>> {
        let Some(Lent { data, tree }) = service.open(&key)? else { return Ok(None) };
        let (path, shape, disk) = (PathBuf::new(), Shape::new(key.size), disk.clone());
        let (map, direct) = (Map::Service(Arc::clone(service)), OnceLock::new());
        let is_in_memory = files::is_in_memory(&data);
        Ok(Some(Entry { path, key, shape, data, map, tree, direct, is_in_memory, disk }))
    }

    /// The file of the map; an entry that is lent has none.
    fn map(&self) -> io::Result<&File> {
        match &self.map {
            Map::File(file) => Ok(file),
            Map::Service(_) => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
        }
    }

    /// Opens an entry, which is made if it is missing.
    pub(crate) fn create(path: &Path, key: ContentKey, disk: &Disk) -> io::Result<Self> {
        crate::files::make_directory(path)?;
        let entry = Self::open_files(path, key, disk, OFlags::CREATE)?;
        if entry.data.metadata()?.len() != key.size
            && let Err(error) = entry.data.set_len(key.size)
        {
            // Too large for this file system: no empty files are left, which nobody would count.
            let _ = std::fs::remove_dir_all(path);
            return Err(error);
        }
        map::begin(entry.map()?, &key)?;
        Ok(entry)
    }

    /// All files are those of one directory, whatever is put in its place meanwhile.
    fn open_files(path: &Path, key: ContentKey, disk: &Disk, flags: OFlags) -> io::Result<Self> {
        disk.announce(Step::Open, path)?;
        let by_path = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, by_path, Mode::empty())?;
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | flags;
        let mode = Mode::RUSR | Mode::WUSR;
        let open = |name: &str| match rustix::fs::openat(&directory, name, flags, mode) {
            // A disk that became read-only is read all the same.
            Err(rustix::io::Errno::ROFS) => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                rustix::fs::openat(&directory, name, flags, mode)
            }
            opened => opened,
        };
        let (data, tree): (File, _) = (open(DATA)?.into(), open(TREE)?.into());
        let is_in_memory = files::is_in_memory(&data);
        let (map, direct) = (Map::File(open(MAP)?.into()), OnceLock::new());
        let (path, shape, disk) = (path.to_owned(), Shape::new(key.size), disk.clone());
        Ok(Entry { path, key, shape, data, map, tree, direct, is_in_memory, disk })
    }

    /// True if somebody has removed it.
    pub(crate) fn is_gone(&self) -> io::Result<bool> {
        let file = match &self.map {
            Map::File(file) => file,
            Map::Service(_) => &self.data,
        };
        Ok(rustix::fs::fstat(file)?.st_nlink == 0)
    }

    /// The units that are there, by the map.
    pub(crate) fn units(&self) -> io::Result<UnitSet> {
        self.disk.announce(Step::Read, &self.path)?;
        match &self.map {
            Map::File(file) => map::load(file, &self.key),
            Map::Service(service) => service.units(&self.key),
        }
    }

    /// Bytes of neighbouring units; fewer if the file is shorter than it should be.
    pub(crate) fn read_units(&self, units: Range<u64>) -> io::Result<Vec<u8>> {
        self.disk.announce(Step::Read, &self.path)?;
        let start = units.start * UNIT_BYTES as u64;
        let end = (units.end * UNIT_BYTES as u64).min(self.key.size);
        let mut bytes = vec![0; usize::try_from(end.saturating_sub(start)).unwrap_or(0)];
        let count = read_full(&self.data, &mut bytes, start)?;
        bytes.truncate(count);
        Ok(bytes)
    }

    /// Fills a place with the bytes from a unit on, past the kernel's memory if that is asked for
    /// and possible. Says how many came before the file ended.
    pub(crate) fn read_into(
        &self,
        place: &mut [u8],
        first: u64,
        is_direct: bool,
    ) -> io::Result<usize> {
        self.disk.announce(Step::Read, &self.path)?;
        let start = first * UNIT_BYTES as u64;
        let direct = if is_direct { self.direct.get_or_init(|| reopen(&self.data)) } else { &None };
        match direct {
            Some(file) => match read_blocks(file, place, start) {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    read_full(&self.data, place, start)
                }
                read => read,
            },
            None => read_full(&self.data, place, start),
        }
    }

    /// Has the nodes that prove neighbouring units in the kernel's memory.
    pub(crate) fn bring_nodes(&self, units: &Range<u64>) -> io::Result<()> {
        for unit in [units.start, units.end - 1] {
            let mut next = self.shape.node_of_unit(unit);
            while let Some(node) = next {
                self.read_node(node)?;
                next = self.shape.parent(node);
            }
        }
        Ok(())
    }

    pub(crate) fn write_units(&self, first: u64, bytes: &[u8]) -> io::Result<()> {
        self.disk.announce(Step::Write, &self.path)?;
        let offset = first * UNIT_BYTES as u64;
        if bytes.len() >= RESERVED_BYTES_MIN {
            // Where nothing can be reserved, it is written all the same, or that says why not.
            let (flags, length) = (FallocateFlags::KEEP_SIZE, bytes.len() as u64);
            let _ = rustix::fs::fallocate(&self.data, flags, offset, length);
        }
        self.data.write_all_at(bytes, offset)
    }

    /// A node; `None` if the tree has no such node or the file ends before it.
    pub(crate) fn read_node(&self, node: NodeId) -> io::Result<Option<Vec<u8>>> {
        let Some((offset, length)) = self.place(node) else { return Ok(None) };
        self.disk.announce(Step::Read, &self.path)?;
        let mut bytes = vec![0; length];
        let count = read_full(&self.tree, &mut bytes, offset)?;
        Ok((count == length).then_some(bytes))
    }

    pub(crate) fn write_node(&self, node: NodeId, bytes: &[u8]) -> io::Result<()> {
        let Some((offset, length)) = self.place(node) else { return Ok(()) };
        self.disk.announce(Step::Write, &self.path)?;
        if bytes.len() == length { self.tree.write_all_at(bytes, offset) } else { Ok(()) }
    }

    /// Notes which units are there, or not any more.
    pub(crate) fn mark(&self, runs: &[Range<u64>], is_present: bool) -> io::Result<()> {
        self.disk.announce(Step::Write, &self.path)?;
        map::change(self.map()?, runs, is_present)
    }

    /// Notes of those units that are still wrong that they are not there.
    pub(crate) fn unmark_wrong(
        &self,
        units: &UnitSet,
        is_wrong: impl FnMut(u64) -> io::Result<bool>,
    ) -> io::Result<()> {
        self.disk.announce(Step::Write, &self.path)?;
        map::clear_wrong(self.map()?, units, is_wrong)
    }

    /// Place and length of a node in the file of nodes.
    pub(crate) fn place(&self, node: NodeId) -> Option<(u64, usize)> {
        let length = self.shape.node_len(node)?;
        let below: u64 = (1..node.level).map(|level| self.shape.level_bytes(level)).sum();
        Some((below + node.index * NODE_BYTES as u64, length))
    }
}

/// The same file once more, to be read past the kernel's memory; `None` if it cannot.
fn reopen(file: &File) -> Option<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok().map(File::from)
}

/// Reads whole blocks until the place is full or the file ends.
fn read_blocks(file: &File, place: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < place.len() && filled.is_multiple_of(BLOCK_BYTES) {
        match file.read_at(&mut place[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Reads until the buffer is full or the file ends.
fn read_full(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
