//! A file system of one file of zeros that does nothing else: what FUSE itself takes.
//!
//! `fuse_floor DIR MIB` mounts it in the foreground, with the settings of `byname mount`, until it
//! is unmounted. `bench/mount` reads DIR/big as it reads the others.

use std::ffi::OsStr;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEntry,
    ReplyOpen, Request,
};

const READ_BYTES_MAX: u32 = 1 << 20;
const FOR_EVER: Duration = Duration::from_secs(1 << 20);
const BIG: INodeNo = INodeNo(2);

struct Zeros {
    bytes: Vec<u8>,
    size: u64,
}

impl Zeros {
    fn bytes_at(&self, offset: u64, size: u32) -> &[u8] {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        &self.bytes[..left.min(size as usize).min(self.bytes.len())]
    }

    fn attr(&self, inode: INodeNo) -> FileAttr {
        let (kind, perm, size) = match inode {
            BIG => (FileType::RegularFile, 0o444, self.size),
            _ => (FileType::Directory, 0o555, 4096),
        };
        let time = UNIX_EPOCH;
        FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 128 << 10,
            flags: 0,
        }
    }
}

/// The method with more arguments than a function of ours takes.
macro_rules! reading {
    () => {
        fn read(
            &self,
            _: &Request,
            _: INodeNo,
            _: FileHandle,
            offset: u64,
            size: u32,
            _: OpenFlags,
            _: Option<LockOwner>,
            reply: ReplyData,
        ) {
            reply.data(self.bytes_at(offset, size));
        }
    };
}

impl Filesystem for Zeros {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let _ = config.set_max_readahead(READ_BYTES_MAX);
        let _ = config.set_max_write(READ_BYTES_MAX);
        let _ = config.set_max_background(64);
        let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
        Ok(())
    }

    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name == "big" {
            true => reply.entry(&FOR_EVER, &self.attr(BIG), Generation(0)),
            false => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOR_EVER, &self.attr(inode));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(1), FopenFlags::FOPEN_KEEP_CACHE);
    }

    reading!();
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, directory, mib] = arguments.as_slice() else {
        return Err("usage: fuse_floor DIR MIB".into());
    };
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("floor".to_owned()),
        MountOption::RO,
        MountOption::DefaultPermissions,
    ];
    config.n_threads = Some(2);
    config.clone_fd = true;
    let size = mib.parse::<u64>()? << 20;
    let zeros = Zeros { bytes: vec![0; READ_BYTES_MAX as usize], size };
    fuser::Session::new(zeros, directory, &config)?.spawn()?.join()?;
    Ok(())
}
