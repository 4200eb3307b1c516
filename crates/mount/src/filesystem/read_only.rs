//! Requests that would change something, and those that the kernel does without.

/// Methods of [`fuser::Filesystem`] that refuse: `EROFS` for each that would change something,
/// `ENOTTY` for the one that means something to devices only, and `ENOSYS`, after which the kernel
/// does the same by itself and asks no more.
macro_rules! refusals {
    // First, because no method at all would fit the other pattern, too.
    () => {
        read_only::refusals! {
            setattr(
                INodeNo, Option<u32>, Option<u32>, Option<u32>, Option<u64>,
                Option<fuser::TimeOrNow>, Option<fuser::TimeOrNow>, Option<SystemTime>,
                Option<FileHandle>, Option<SystemTime>, Option<SystemTime>, Option<SystemTime>,
                Option<fuser::BsdFileFlags>
            ) -> ReplyAttr;
            mknod(INodeNo, &OsStr, u32, u32, u32) -> ReplyEntry;
            mkdir(INodeNo, &OsStr, u32, u32) -> ReplyEntry;
            unlink(INodeNo, &OsStr) -> ReplyEmpty;
            rmdir(INodeNo, &OsStr) -> ReplyEmpty;
            symlink(INodeNo, &OsStr, &std::path::Path) -> ReplyEntry;
            rename(INodeNo, &OsStr, INodeNo, &OsStr, fuser::RenameFlags) -> ReplyEmpty;
            link(INodeNo, INodeNo, &OsStr) -> ReplyEntry;
            write(
                INodeNo, FileHandle, u64, &[u8], fuser::WriteFlags, OpenFlags, Option<LockOwner>
            ) -> fuser::ReplyWrite;
            create(INodeNo, &OsStr, u32, u32, i32) -> fuser::ReplyCreate;
            fallocate(INodeNo, FileHandle, u64, u64, i32) -> ReplyEmpty;
            setxattr(INodeNo, &OsStr, &[u8], i32, u32) -> ReplyEmpty;
            removexattr(INodeNo, &OsStr) -> ReplyEmpty;
            copy_file_range(
                INodeNo, FileHandle, u64, INodeNo, FileHandle, u64, u64, fuser::CopyFileRangeFlags
            ) -> fuser::ReplyWrite;
        }

        fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
            reply.error(Errno::ENOSYS);
        }

        fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
            reply.error(Errno::ENOSYS);
        }

        fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
            reply.error(Errno::ENOSYS);
        }

        fn access(&self, _: &Request, _: INodeNo, _: fuser::AccessFlags, reply: ReplyEmpty) {
            reply.error(Errno::ENOSYS);
        }

        fn poll(
            &self,
            _: &Request,
            _: INodeNo,
            _: FileHandle,
            _: fuser::PollNotifier,
            _: fuser::PollEvents,
            _: fuser::PollFlags,
            reply: fuser::ReplyPoll,
        ) {
            reply.error(Errno::ENOSYS);
        }

        fn lseek(
            &self,
            _: &Request,
            _: INodeNo,
            _: FileHandle,
            _: i64,
            _: i32,
            reply: fuser::ReplyLseek,
        ) {
            reply.error(Errno::ENOSYS);
        }

        fn ioctl(
            &self,
            _: &Request,
            _: INodeNo,
            _: FileHandle,
            _: fuser::IoctlFlags,
            _: u32,
            _: &[u8],
            _: u32,
            reply: fuser::ReplyIoctl,
        ) {
            reply.error(Errno::ENOTTY);
        }
    };
    ($($method:ident($($argument:ty),*) -> $reply:ty;)*) => {
        $(
            fn $method(&self, _: &Request $(, _: $argument)*, reply: $reply) {
                reply.error(Errno::EROFS);
            }
        )*
    };
}

pub(super) use refusals;
