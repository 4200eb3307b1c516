//! Attempts: opened with everything reserved that they may need, then committed or given up.

use crate::command::{Answer, Commit, Create, Entry, Publish, Ticket, TicketDisk};
use crate::engine::{Rows, Span, Table};
use crate::execution::{EntryPlace, Execution, Terms};
use crate::id::{ContentId, DiskId, InodeId, SessionId, Version};
use crate::placement::{Candidate, choose, stay};
use crate::quota::{Account, charge, credit, judge};
use crate::record::{
    Attempt, Checksums, Content, Detail, Disk, DiskState, DiskUsage, EMPTY_ROOT, Expiry, Inode,
    Limited, Policy, Subject, Target, User, disk_key,
};
use crate::refusal::{Failure, Refusal};
use crate::reserved::{Room, Wish};
use crate::rights::WRITE;
use crate::view::decoded;

use super::admin::DISKS_MAX;
use super::content::DiskBooking;
use super::namespace::{ONE_INODE, check_mode};

/// Nanoseconds that an attempt stays open unless it is extended.
pub const ATTEMPT_NS: u64 = 3_600_000_000_000;
/// Most open attempts of one user.
const ATTEMPTS_PER_USER_MAX: u32 = 65_536;
/// Most octets of one file: what the hash tree can say.
const FILE_BYTES_MAX: u64 = 32 << 40;

impl Execution<'_> {
    pub(super) fn create(
        &mut self,
        session: SessionId,
        create: &Create,
    ) -> Result<Answer, Failure> {
        check_mode(create.mode)?;
        if create.size_max > FILE_BYTES_MAX {
            return Err(Refusal::TooLarge.into());
        }
        if create.publish == Publish::Whole && create.size_max > 0 {
            return Err(Refusal::TooLarge.into());
        }
        if create.place.names.is_empty() {
            if create.exclusive {
                return Err(Refusal::Exists.into());
            }
            let (id, inode) = self.object(&create.place)?;
            return self.rewrite((id, &inode), session, create);
        }
        let at = self.directory_of(&create.place)?;
        let Some(entry) = self.dentry(at.id, &at.name)? else {
            let at = self.free_entry(&create.place)?;
            return match create.publish {
                Publish::AtCommit => self.begin_new(at, create),
                Publish::AtOnce => self.begin_named(at, create),
                Publish::Whole => self.make_empty(at, create),
            };
        };
        if create.exclusive {
            return Err(Refusal::Exists.into());
        }
        let inode = self.inode(entry.inode)?;
        self.rewrite((entry.inode, &inode), session, create)
    }

    /// A file that gets its name with its content.
    fn begin_new(&mut self, at: EntryPlace, create: &Create) -> Result<Answer, Failure> {
        let inode = InodeId(self.issue()?);
        let detail = Detail::File(Content::empty(Version(0)));
        let mut model = self.new_inode(&at.inode, create.mode, detail);
        model.policy = self.policy_of_new(&at.name, &at.inode.policy, &create.policy)?;
        let target = Target::NewFile { directory: at.id, name: at.name, mode: model.mode };
        self.open((inode, &model), (target, None), create)
    }

    /// A file that gets its name at once, and its content later.
    fn begin_named(&mut self, at: EntryPlace, create: &Create) -> Result<Answer, Failure> {
        let (id, inode, base) = self.enter_empty(at, create)?;
        self.open((id, &inode), (Target::NextVersion { base }, None), create)
    }

    /// A file that stays without content.
    fn make_empty(&mut self, at: EntryPlace, create: &Create) -> Result<Answer, Failure> {
        let (id, inode, _) = self.enter_empty(at, create)?;
        Ok(Answer::Entry(Entry { id, inode }))
    }

    fn enter_empty(
        &mut self,
        at: EntryPlace,
        create: &Create,
    ) -> Result<(InodeId, Inode, Version), Failure> {
        let id = InodeId(self.issue()?);
        let base = Version(self.issue()?);
        let detail = Detail::File(Content::empty(base));
        let mut inode = self.new_inode(&at.inode, create.mode, detail);
        inode.policy = self.policy_of_new(&at.name, &at.inode.policy, &create.policy)?;
        charge(&mut self.view, &Account::of(&inode), ONE_INODE)?;
        self.enter(at, id, &inode);
        Ok((id, inode, base))
    }

    /// The next version of a file.
    fn rewrite(
        &mut self,
        (id, inode): (InodeId, &Inode),
        session: SessionId,
        create: &Create,
    ) -> Result<Answer, Failure> {
        let content = match &inode.detail {
            Detail::File(content) => content,
            Detail::Directory { .. } => return Err(Refusal::IsDirectory.into()),
            Detail::Symlink { .. } => return Err(Refusal::SymbolicLink.into()),
        };
        self.caller.check(inode, WRITE)?;
        create.policy.check()?;
        let lease = self.check_lease(session, id)?;
        let target = Target::NextVersion { base: content.version };
        let opened = self.open((id, inode), (target, lease), create)?;
        match opened {
            Answer::Ticket(ticket) if create.publish == Publish::Whole => self.commit(
                session,
                &Commit {
                    content: ticket.content,
                    size: 0,
                    root: EMPTY_ROOT,
                    checksums: Checksums::EMPTY,
                    modified_ns: None,
                    receipts: Vec::new(),
                },
            ),
            opened => Ok(opened),
        }
    }

    fn open(
        &mut self,
        (id, inode): (InodeId, &Inode),
        (target, lease): (Target, Option<u64>),
        create: &Create,
    ) -> Result<Answer, Failure> {
        self.count_attempt()?;
        let (size_max, policy) = (create.size_max, create.policy.of(&inode.policy));
        let content = ContentId { inode: id, version: Version(self.issue()?) };
        let present = match &inode.detail {
            Detail::File(content) => content.replicas.as_slice(),
            Detail::Directory { .. } | Detail::Symlink { .. } => &[],
        };
        let mut attempt = Attempt {
            user: self.caller.user.clone(),
            target,
            owner: inode.owner.clone(),
            group: inode.group.clone(),
            tree: inode.tree,
            reserved_bytes: inode.growth_bytes(size_max),
            size_max,
            policy,
            policy_is_own: !create.policy.is_empty(),
            disks: Vec::new(),
            replaced: Vec::new(),
            expires_ns: self.now_ns.saturating_add(ATTEMPT_NS),
            lease,
            access: inode.acls.access.clone(),
        };
        let account = Account::of_attempt(&attempt);
        charge(&mut self.view, &account, attempt.reserved())?;
        attempt.disks = self.place_or_make_room(&attempt, present, content)?;
        for disk in &attempt.disks {
            let change = DiskBooking { add_reserved: size_max, ..DiskBooking::default() };
            self.book_disk(*disk, change)?;
        }
        self.view.mark(Table::Expiry, Expiry::Attempt(content).key(attempt.expires_ns));
        self.view.set(content.key(), &attempt);
        self.ticket(content, &attempt)
    }

    /// Disks for what has been charged. Room is looked for only for who may have it.
    fn place_or_make_room(
        &mut self,
        attempt: &Attempt,
        present: &[DiskId],
        content: ContentId,
    ) -> Result<Vec<DiskId>, Failure> {
        let (policy, size, seed) = (&attempt.policy, attempt.size_max, content.version.0);
        let (chosen, room) = match self.place(policy, size, present, seed) {
            Err(Failure::Refused(Refusal::NoSpace)) => {
                judge(&mut self.view, self.now_ns)?;
                if !self.make_room(policy, size)? {
                    return Err(Refusal::NoSpace.into());
                }
                self.place(policy, size, present, seed)?
            }
            placed => placed?,
        };
        self.check_share(&policy.space, (size, chosen.len()), room)?;
        Ok(chosen.iter().map(|candidate| candidate.id).collect())
    }

    fn ticket(&self, content: ContentId, attempt: &Attempt) -> Result<Answer, Failure> {
        let mut disks = Vec::with_capacity(attempt.disks.len());
        for disk in &attempt.disks {
            disks.push(TicketDisk { disk: *disk, generation: self.disk(*disk)?.generation });
        }
        Ok(Answer::Ticket(Ticket {
            content,
            disks,
            receipt_count: receipts_needed(attempt, attempt.size_max),
            size_max: attempt.size_max,
            expires_ns: attempt.expires_ns,
        }))
    }

    /// Disks for content of a policy, first those on which an older version is: there only what
    /// changed has to be brought. Content without octets needs none.
    fn place(
        &self,
        policy: &Policy,
        size: u64,
        present: &[DiskId],
        seed: u64,
    ) -> Result<(Vec<Candidate>, Room), Failure> {
        if size == 0 {
            return Ok((Vec::new(), Room::of(&[])));
        }
        let count = usize::from(policy.replica_count);
        let mut candidates = self.takers(policy)?;
        let room = Room::of(&candidates);
        candidates.retain(|it| it.free_bytes >= size);
        let chosen = choose(candidates.clone(), stay(&candidates, present, count), count, seed);
        if chosen.len() < count { Err(Refusal::NoSpace.into()) } else { Ok((chosen, room)) }
    }

    /// Refuses what would give the caller more of a space's room than his share, so that nobody
    /// keeps all others from writing.
    fn check_share(
        &self,
        space: &str,
        (size, count): (u64, usize),
        room: Room,
    ) -> Result<(), Failure> {
        let Terms { reserved_percent, ledger, batch, .. } = self.terms;
        let wish = Wish { size, count, quota: None };
        if size == 0 || self.caller.is_operator || wish.is_modest(room, reserved_percent) {
            return Ok(());
        }
        let user = &self.caller.user;
        let limited: Option<Limited> = self.view.record(&Subject::User(user.clone()).key())?;
        let quota = limited.map(|row| row.limits.bytes).filter(|bytes| *bytes != u64::MAX);
        let reserved = ledger.reserved_by(batch, user, space)?;
        match (Wish { quota, ..wish }).is_granted(room, reserved, reserved_percent) {
            true => Ok(()),
            false => Err(Refusal::TooMuchReserved.into()),
        }
    }

    /// Disks of a policy's space that take new content and have room.
    fn candidates(
        &self,
        policy: &Policy,
        size: u64,
        without: &[DiskId],
    ) -> Result<Vec<Candidate>, Failure> {
        let mut candidates = self.takers(policy)?;
        candidates.retain(|it| it.free_bytes >= size && !without.contains(&it.id));
        Ok(candidates)
    }

    /// The same whether they have room or not.
    pub(super) fn takers(&self, policy: &Policy) -> Result<Vec<Candidate>, Failure> {
        let mut takers = Vec::new();
        for (key, value) in self.view.range(Table::Disk, Span::ALL, DISKS_MAX)? {
            let disk: Disk = decoded(&value)?;
            let id = DiskId(u64::from_be_bytes(key.try_into().unwrap_or_default()));
            let takes = disk.is_up && disk.state == DiskState::ReadWrite;
            if takes && disk.space == policy.space {
                takers.push(self.candidate(id, disk)?);
            }
        }
        Ok(takers)
    }

    fn candidate(&self, id: DiskId, disk: Disk) -> Result<Candidate, Failure> {
        let usage: DiskUsage = self.view.record(&disk_key(id))?.unwrap_or_default();
        let taken = usage.used_bytes.saturating_add(usage.reserved_bytes);
        let free_bytes = disk.capacity_bytes.saturating_sub(taken);
        Ok(Candidate { id, disk, free_bytes, reserved_bytes: usage.reserved_bytes })
    }

    pub(super) fn replace_disk(
        &mut self,
        content: ContentId,
        disk: DiskId,
    ) -> Result<Answer, Failure> {
        let mut attempt = self.own_attempt(content)?;
        let index = attempt.disks.iter().position(|one| *one == disk);
        attempt.disks.remove(index.ok_or(Refusal::UnknownDisk)?);
        attempt.replaced.push(disk);
        let mut chosen = Vec::new();
        for id in &attempt.disks {
            chosen.push(self.candidate(*id, self.disk(*id)?)?);
        }
        let count = chosen.len() + 1;
        let others = self.candidates(&attempt.policy, attempt.size_max, &attempt.replaced)?;
        let seed = content.version.0 ^ attempt.replaced.len() as u64;
        let chosen = choose(others, chosen, count, seed);
        let other = chosen.get(count - 1).ok_or(Refusal::NoSpace)?.id;
        let size = attempt.size_max;
        self.book_disk(disk, DiskBooking { less_reserved: size, ..DiskBooking::default() })?;
        self.book_disk(other, DiskBooking { add_reserved: size, ..DiskBooking::default() })?;
        attempt.disks.push(other);
        self.view.set(content.key(), &attempt);
        self.ticket(content, &attempt)
    }

    pub(super) fn extend(&mut self, content: ContentId) -> Result<Answer, Failure> {
        let mut attempt = self.own_attempt(content)?;
        // The row that is due first stays; whoever meets it looks here.
        attempt.expires_ns = attempt.expires_ns.max(self.now_ns.saturating_add(ATTEMPT_NS));
        self.view.set(content.key(), &attempt);
        self.ticket(content, &attempt)
    }

    pub(super) fn abort(&mut self, content: ContentId) -> Result<Answer, Failure> {
        let attempt = self.own_attempt(content)?;
        self.end_attempt(content, &attempt)?;
        let account = Account::of_attempt(&attempt);
        credit(&mut self.view, &account, attempt.reserved())?;
        Ok(Answer::Done)
    }

    /// An open attempt of the caller.
    pub(super) fn own_attempt(&self, content: ContentId) -> Result<Attempt, Failure> {
        let attempt: Attempt = self.view.record(&content.key())?.ok_or(Refusal::AttemptEnded)?;
        if attempt.user != self.caller.user && !self.caller.is_operator {
            return Err(Refusal::NotYourAttempt.into());
        }
        Ok(attempt)
    }

    /// Closes an attempt and gives back its room on disks; quota is settled by the caller.
    pub(super) fn end_attempt(
        &mut self,
        content: ContentId,
        attempt: &Attempt,
    ) -> Result<(), Failure> {
        self.view.delete(Table::Attempt, content.key());
        for disk in &attempt.disks {
            let change = DiskBooking { less_reserved: attempt.size_max, ..DiskBooking::default() };
            self.book_disk(*disk, change)?;
        }
        let key = attempt.user.as_bytes().to_vec();
        if let Some(mut user) = self.view.record::<User>(&key)? {
            user.attempt_count = user.attempt_count.saturating_sub(1);
            self.view.set(key, &user);
        }
        Ok(())
    }

    fn count_attempt(&mut self) -> Result<(), Failure> {
        let key = self.caller.user.as_bytes().to_vec();
        let mut user: User = self.view.record(&key)?.ok_or(Refusal::UnknownUser)?;
        if user.attempt_count >= ATTEMPTS_PER_USER_MAX {
            return Err(Refusal::TooManyAttempts.into());
        }
        user.attempt_count += 1;
        self.view.set(key, &user);
        Ok(())
    }
}

/// Receipts that content of a size needs: none if it has no octets.
pub(super) fn receipts_needed(attempt: &Attempt, size: u64) -> u8 {
    if size == 0 { 0 } else { attempt.policy.receipt_count }
}
