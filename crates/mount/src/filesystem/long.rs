//! Requests with more arguments than a function of ours takes: here they lose what is not needed.

/// Methods of [`fuser::Filesystem`] that call a short one.
macro_rules! delegations {
    () => {
        fn read(
            &self,
            _: &Request,
            _: INodeNo,
            handle: FileHandle,
            offset: u64,
            size: u32,
            _: OpenFlags,
            _: Option<LockOwner>,
            reply: ReplyData,
        ) {
            self.read_at(handle, offset, size, reply);
        }

        fn release(
            &self,
            _: &Request,
            _: INodeNo,
            handle: FileHandle,
            _: OpenFlags,
            _: Option<LockOwner>,
            _: bool,
            reply: ReplyEmpty,
        ) {
            self.close(handle, reply);
        }
    };
}

pub(super) use delegations;
