//! The kernel's requests as calls of the tree, and the tree's answers as replies.
//!
//! Everything that would change something is `EROFS`. The mount is read-only, so the kernel says it
//! first; this is for whoever remounts it.

mod extended;
mod long;
mod read_only;
mod statfs;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use byname_client::{CachedRead, ComingRead, RemoteFile};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyXattr, Request,
};

use crate::attributes::{Attributes, Kind};
use crate::files::OpenFile;
use crate::inodes::ROOT;
use crate::snapshot::Snapshot;
use crate::tasks::Tasks;
use crate::tree::{Found, Tree};

/// Octets that the kernel asks for at once, and reads ahead where it is allowed to.
pub(crate) const READ_BYTES_MAX: u32 = 1 << 20;
/// Requests of readahead that the kernel may have waiting.
const BACKGROUND_MAX: u16 = 64;
/// A file that is passed through lies on the cache's file system, which must lie on no other such.
const STACK_DEPTH: u32 = 1;
/// A version never changes.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const GENERATION: Generation = Generation(0);
/// Entries that the kernel is told to let go of for each time that it reads a directory: more than
/// one answer has.
const TRIMMED_PER_PAGE: usize = 512;
/// Positions of `.` and `..`, before all entries.
const DOTS: usize = 2;

/// Hears that a mount is over.
pub type OnEnd = Box<dyn FnOnce() + Send + Sync>;

/// The file system that fuser drives.
pub(crate) struct Mounted {
    pub(crate) tree: Arc<Tree>,
    pub(crate) tasks: Tasks,
    pub(crate) passes_through: bool,
    pub(crate) on_end: Option<OnEnd>,
}

impl Mounted {
    /// Runs a call with a tree of its own.
    fn run<F>(&self, call: impl FnOnce(Arc<Tree>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.run(call(Arc::clone(&self.tree)));
    }
}

impl Mounted {
    fn read_at(&self, handle: FileHandle, offset: u64, size: u32, reply: ReplyData) {
        let Some(file) = self.tree.files().get(handle.0) else {
            return reply.error(Errno::EBADF);
        };
        let size = size.min(READ_BYTES_MAX) as usize;
        let (coming, reply) = match answer_nowait(&file, offset, size, reply) {
            Answered::Now => return,
            Answered::Coming(coming, reply) => (Some(coming), reply),
            Answered::Not(reply) => (None, reply),
        };
        let timers = self.tasks.timers();
        self.run(|tree| async move {
            if let Some(coming) = coming
                && let Some(Some(read)) = timers.within(coming.patience(), coming.verified()).await
            {
                return SCRATCH.with_borrow_mut(|scratch| reply.data(read.bytes(scratch)));
            }
            let buffer = vec![0; size];
            match file.read_at_later(buffer, offset).await {
                Ok(read) => {
                    let filled = read.filled.first().copied().unwrap_or(0);
                    reply.data(read.buffer.get(..filled).unwrap_or(&[]));
                }
                Err(error) => reply.error(number(tree.errno(&file.stat().name, &error))),
            }
        });
    }

    fn close(&self, handle: FileHandle, reply: ReplyEmpty) {
        let last = self.tree.files().release(handle.0);
        // Outside of the lock: it is told to the session's thread, and to the kernel.
        drop(last);
        reply.ok();
    }
}

thread_local! {
    /// Of each thread that answers; as long as the longest read and two units.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What the site cache made of a read.
enum Answered {
    Now,
    Coming(ComingRead, ReplyData),
    Not(ReplyData),
}

/// Answers a read with what is in memory.
fn answer_nowait(file: &RemoteFile, offset: u64, size: usize, reply: ReplyData) -> Answered {
    SCRATCH.with_borrow_mut(|scratch| match file.read_nowait(scratch, offset, size) {
        CachedRead::Here(range) => {
            reply.data(&scratch[range]);
            Answered::Now
        }
        CachedRead::Coming(coming) => Answered::Coming(coming, reply),
        CachedRead::Elsewhere => Answered::Not(reply),
    })
}

fn number(errno: i32) -> Errno {
    Errno::from_i32(errno)
}

fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::Link => FileType::Symlink,
    }
}

fn file_attr(tree: &Tree, inode: u64, attributes: &Attributes) -> FileAttr {
    let owner = (attributes.owner.as_deref(), attributes.group.as_deref());
    let (uid, gid) = tree.owners.numbers(owner.0, owner.1, tree.now_ns());
    let time = UNIX_EPOCH + Duration::from_nanos(attributes.mtime_ns);
    FileAttr {
        ino: INodeNo(inode),
        size: attributes.size,
        blocks: attributes.size.div_ceil(512),
        atime: time,
        mtime: time,
        ctime: time,
        crtime: SystemTime::UNIX_EPOCH,
        kind: file_type(attributes.kind),
        perm: attributes.permissions,
        nlink: 1,
        uid,
        gid,
        rdev: 0,
        // The size of a read that is worth its trip.
        blksize: 128 << 10,
        flags: 0,
    }
}

/// Time for which the kernel may keep the attributes of an inode.
fn keep_attributes(tree: &Tree, found: &Found) -> Duration {
    match found.attributes.kind {
        // The target of a link is its identity, but not its owner or time.
        Kind::Directory | Kind::Link => tree.keep(found.seen_ns),
        Kind::File => FOR_EVER,
    }
}

/// What the kernel is told of a name that does not exist.
fn no_entry(tree: &Tree) -> FileAttr {
    let time = UNIX_EPOCH;
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind: FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: tree.owners.numbers(None, None, 0).0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    }
}

impl Filesystem for Mounted {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Whatever this kernel does not have it does without.
        let wanted = [
            // Not FUSE_READDIRPLUS_AUTO: with that only the first entries of a directory come with
            // attributes for programs that read all of it before they look at any (find, tar), and
            // each of the others costs a lookup.
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_CACHE_SYMLINKS,
        ];
        for flag in wanted {
            let _ = config.add_capabilities(flag);
        }
        if let Err(nearest) = config.set_max_readahead(READ_BYTES_MAX) {
            let _ = config.set_max_readahead(nearest);
        }
        // It also bounds reads: the kernel makes no request of more pages.
        let _ = config.set_max_write(READ_BYTES_MAX);
        let _ = config.set_max_background(BACKGROUND_MAX);
        let can_pass = self.passes_through
            && config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok()
            && config.set_max_stack_depth(STACK_DEPTH).is_ok();
        if can_pass {
            self.tree.passing.begin();
        }
        Ok(())
    }

    fn destroy(&mut self) {
        if let Some(on_end) = self.on_end.take() {
            on_end();
        }
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (caller, name) = (request.pid(), name.as_bytes().to_vec());
        self.run(|tree| async move {
            let asked_ns = tree.now_ns();
            match tree.interrupts.watch(caller, tree.lookup(parent.0, &name)).await {
                Ok(Some(found)) => {
                    let attr = file_attr(&tree, found.inode, &found.attributes);
                    let attributes = keep_attributes(&tree, &found);
                    let entry = tree.keep(found.seen_ns);
                    reply.entry_with_ttls(&attributes, &entry, &attr, GENERATION);
                }
                Ok(None) => {
                    let entry = tree.keep(asked_ns);
                    reply.entry_with_ttls(&entry, &entry, &no_entry(&tree), GENERATION);
                }
                Err(errno) => reply.error(number(errno)),
            }
        });
    }

    fn forget(&self, _: &Request, inode: INodeNo, count: u64) {
        self.tree.forget(inode.0, count);
    }

    fn getattr(&self, request: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let caller = request.pid();
        self.run(|tree| async move {
            match tree.interrupts.watch(caller, tree.attributes(inode.0)).await {
                Ok(found) => {
                    let attr = file_attr(&tree, found.inode, &found.attributes);
                    reply.attr(&keep_attributes(&tree, &found), &attr);
                }
                Err(errno) => reply.error(number(errno)),
            }
        });
        if inode.0 == ROOT && self.tree.is_root_old() {
            self.run(|tree| async move {
                // Said in the log; the next question gets the answer, or what was known.
                let _ = tree.renewed(ROOT).await;
            });
        }
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        match self.tree.inode(inode.0).map(|inode| inode.attributes) {
            Ok(attributes) => match &attributes.link_target {
                Some(target) => reply.data(target),
                None => reply.error(Errno::EINVAL),
            },
            Err(errno) => reply.error(number(errno)),
        }
    }

    fn open(&self, request: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if flags.acc_mode() != fuser::OpenAccMode::O_RDONLY {
            return reply.error(Errno::EROFS);
        }
        let caller = request.pid();
        self.run(|tree| async move {
            let register = |file| reply.open_backing(file);
            match tree.interrupts.watch(caller, tree.open(inode.0, &register)).await {
                Ok((handle, OpenFile { backing: Some(backing), .. })) => {
                    tree.passing.count_open();
                    reply.opened_passthrough(FileHandle(handle), FopenFlags::empty(), &backing);
                }
                Ok((handle, OpenFile { file, backing: None })) => {
                    // Whoever does not say how long a file is has it read until it ends.
                    let flags = match file.size() {
                        Some(_) => FopenFlags::FOPEN_KEEP_CACHE,
                        None => FopenFlags::FOPEN_DIRECT_IO,
                    };
                    reply.opened(FileHandle(handle), flags);
                }
                Err(errno) => reply.error(number(errno)),
            }
        });
    }

    /// Its content is asked for when it is read: `df` opens the mount point, and must not wait.
    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.tree.files().insert_directory() {
            Some(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            None => reply.error(Errno::ENFILE),
        }
    }

    fn readdir(
        &self,
        request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let caller = request.pid();
        self.run(|tree| async move {
            let listed = listed(&tree, inode.0, handle.0, offset);
            match tree.interrupts.watch(caller, listed).await {
                Ok(snapshot) => {
                    fill(&tree, inode.0, &snapshot, offset, &mut reply);
                    reply.ok();
                }
                Err(errno) => reply.error(number(errno)),
            }
        });
    }

    fn readdirplus(
        &self,
        request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let caller = request.pid();
        self.run(|tree| async move {
            let listed = listed(&tree, inode.0, handle.0, offset);
            match tree.interrupts.watch(caller, listed).await {
                Ok(snapshot) => {
                    fill_plus(&tree, inode.0, &snapshot, offset, &mut reply);
                    reply.ok();
                    tree.trim(TRIMMED_PER_PAGE);
                }
                Err(errno) => reply.error(number(errno)),
            }
        });
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.tree.files().release_directory(handle.0);
        reply.ok();
    }

    fn statfs(&self, _: &Request, inode: INodeNo, reply: ReplyStatfs) {
        statfs::answer(self, inode.0, reply);
    }

    fn getxattr(&self, _: &Request, inode: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        extended::get(&self.tree, (inode.0, name.as_bytes()), size, reply);
    }

    fn listxattr(&self, _: &Request, inode: INodeNo, size: u32, reply: ReplyXattr) {
        extended::list(&self.tree, inode.0, size, reply);
    }

    long::delegations!();
    read_only::refusals!();
}

/// What an open directory shows at an offset: what it is now if it is read from its beginning, and
/// otherwise what it showed before.
async fn listed(tree: &Tree, inode: u64, handle: u64, offset: u64) -> Result<Arc<Snapshot>, i32> {
    let shown = tree.files().directory(handle).filter(|_| offset > 0);
    if let Some(snapshot) = shown {
        return Ok(snapshot);
    }
    let (snapshot, _) = tree.snapshot(inode).await?;
    tree.files().set_directory(handle, Arc::clone(&snapshot));
    Ok(snapshot)
}

/// Numbers of `.` and `..`.
fn dots(tree: &Tree, inode: u64) -> [(u64, &'static str); DOTS] {
    let parent = tree.inode(inode).map_or(ROOT, |inode| inode.parent);
    [(inode, "."), (parent, "..")]
}

fn position(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

fn fill(tree: &Tree, inode: u64, snapshot: &Snapshot, offset: u64, reply: &mut ReplyDirectory) {
    let mut at = position(offset);
    for (number, name) in dots(tree, inode).into_iter().skip(at) {
        at += 1;
        if reply.add(INodeNo(number), at as u64, FileType::Directory, name) {
            return;
        }
    }
    let Ok(directory) = tree.inode(inode) else { return };
    let inodes = tree.inodes();
    while let Some(entry) = snapshot.entry(at - DOTS) {
        at += 1;
        let name = tree.name_of(inode, &directory, entry.name);
        let number = inodes.number_of(&name, entry.attributes.as_ref());
        let shown = OsStr::from_bytes(entry.name);
        if reply.add(INodeNo(number), at as u64, file_type(entry.kind), shown) {
            return;
        }
    }
}

/// The same with attributes; the kernel holds a reference to each entry from then on.
fn fill_plus(
    tree: &Tree,
    inode: u64,
    snapshot: &Arc<Snapshot>,
    offset: u64,
    reply: &mut ReplyDirectoryPlus,
) {
    let mut at = position(offset);
    let zero = Duration::ZERO;
    for (number, name) in dots(tree, inode).into_iter().skip(at) {
        at += 1;
        let ino = INodeNo(number);
        let attr = FileAttr { ino, kind: FileType::Directory, ..no_entry(tree) };
        if reply.add(INodeNo(number), at as u64, name, &zero, &attr, GENERATION) {
            return;
        }
    }
    let Ok(directory) = tree.inode(inode) else { return };
    let seen_ns = tree.seen_ns(inode, snapshot);
    let keep = tree.keep(seen_ns);
    let mut inodes = tree.inodes();
    while let Some(entry) = snapshot.entry(at - DOTS) {
        at += 1;
        let name = tree.name_of(inode, &directory, entry.name);
        let number = inodes.number_of(&name, entry.attributes.as_ref());
        // An entry with the number 0 would not be shown at all.
        let (attributes, keep) = match entry.attributes {
            Some(attributes) => (attributes, keep),
            None => (Attributes::undescribed(entry.kind), zero),
        };
        let attr = file_attr(tree, number, &attributes);
        let shown = OsStr::from_bytes(entry.name);
        if reply.add(INodeNo(number), at as u64, shown, &keep, &attr, GENERATION) {
            return;
        }
        let _ = inodes.refer(&name, inode, &Arc::new(attributes), seen_ns);
    }
}
