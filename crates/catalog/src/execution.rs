//! One command at work: rows as it sees them, the names it acts under, the numbers it takes.

use crate::attached::check_way;
use crate::engine::{EngineError, Table};
use crate::id::{InodeId, SessionId, TransactionNumber, following};
use crate::name::{EntryName, Place};
use crate::record::{COUNTERS_KEY, Counters, Dentry, Detail, Inode, dentry_key, inode_key};
use crate::refusal::{Failure, Refusal};
use crate::reserved::Ledger;
use crate::rights::{Credentials, SEARCH};
use crate::view::View;

/// What a head has decided, for all commands of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    /// Time that a version stays which nothing leads to any more.
    pub(crate) kept_ns: u64,
    /// Share of a space's room that one user may reserve, in percent.
    pub(crate) reserved_percent: u8,
    /// What users have reserved.
    pub(crate) ledger: &'a Ledger,
    /// What the commands before this one have changed.
    pub(crate) batch: &'a View<'a>,
}

/// One command at work. Dropped, it changes nothing.
pub(crate) struct Execution<'a> {
    pub(crate) view: View<'a>,
    pub(crate) caller: Credentials,
    /// The session that the command came in.
    pub(crate) session: Option<SessionId>,
    pub(crate) now_ns: u64,
    pub(crate) terms: Terms<'a>,
    /// Number that this transaction has if it changes anything.
    pub(crate) number: TransactionNumber,
    pub(crate) counters: Counters,
}

impl<'a> Execution<'a> {
    pub(crate) fn new(caller: Credentials, now_ns: u64, terms: Terms<'a>) -> Result<Self, Failure> {
        let view = View::new(terms.batch);
        let counters: Counters = view.record(COUNTERS_KEY)?.ok_or(MISSING_COUNTERS)?;
        let next = following(counters.transaction).ok_or(Refusal::CountersExhausted)?;
        let number = TransactionNumber(next);
        Ok(Self { view, caller, session: None, now_ns, terms, number, counters })
    }

    /// A number that nothing had before.
    pub(crate) fn issue(&mut self) -> Result<u64, Failure> {
        let next = following(self.counters.issued).ok_or(Refusal::CountersExhausted)?;
        self.counters.issued = next;
        Ok(next)
    }

    pub(crate) fn inode(&self, id: InodeId) -> Result<Inode, Failure> {
        Ok(self.view.record(&inode_key(id))?.ok_or(Refusal::NotFound)?)
    }

    pub(crate) fn set_inode(&mut self, id: InodeId, inode: &Inode) {
        self.view.set(inode_key(id), inode);
    }

    pub(crate) fn dentry(
        &self,
        directory: InodeId,
        name: &EntryName,
    ) -> Result<Option<Dentry>, EngineError> {
        self.view.record(&dentry_key(directory, name))
    }

    /// The inode at a place.
    pub(crate) fn object(&self, place: &Place) -> Result<(InodeId, Inode), Failure> {
        let Walked { id, inode, .. } = walk(&self.view, &self.caller, place.base, &place.names)?;
        if place.names.is_empty() && !inode.is_directory() {
            self.check_known(id, &inode)?;
        }
        Ok((id, inode))
    }

    /// Checks that the caller may name a file by its number. Numbers are no secret, and no file
    /// knows the directories it is in: so it has to be his own, or his session has come by its
    /// names before, when it took the lease.
    fn check_known(&self, id: InodeId, inode: &Inode) -> Result<(), Failure> {
        if self.caller.owns(inode) {
            return Ok(());
        }
        let lease = self.lease_of(id)?;
        let is_leased = lease.is_some_and(|lease| Some(lease.session) == self.session);
        if is_leased { Ok(()) } else { Err(Refusal::AccessDenied.into()) }
    }

    /// The directory that has or shall have the last name of a place. A place without names is an
    /// inode, which nothing can be done with that is done with entries.
    pub(crate) fn directory_of(&self, place: &Place) -> Result<EntryPlace, Failure> {
        let (name, way) = place.names.split_last().ok_or(Refusal::IsRoot)?;
        let Walked { id, inode, .. } = walk(&self.view, &self.caller, place.base, way)?;
        check_searchable(&self.caller, &inode)?;
        Ok(EntryPlace { id, inode, name: name.clone() })
    }

    /// Notes that attributes changed.
    pub(crate) fn touch(&self, inode: &mut Inode) {
        inode.times.changed_ns = self.now_ns;
        inode.binding = self.number;
    }

    /// Notes that the entries of a directory changed.
    pub(crate) fn touch_entries(&self, directory: &mut Inode) {
        directory.times.modified_ns = self.now_ns;
        self.touch(directory);
    }
}

/// A directory and a name in it, whether or not that leads to anything.
#[derive(Debug, Clone)]
pub(crate) struct EntryPlace {
    pub(crate) id: InodeId,
    pub(crate) inode: Inode,
    pub(crate) name: EntryName,
}

impl EntryPlace {
    pub(crate) fn key(&self) -> Vec<u8> {
        dentry_key(self.id, &self.name)
    }
}

/// An inode that names lead to.
pub(crate) struct Walked {
    pub(crate) id: InodeId,
    pub(crate) inode: Inode,
    /// The latest transaction that put one of the entries on the way there.
    pub(crate) placed: TransactionNumber,
}

/// The inode that names lead to. Whoever begins at a directory's number needs the rights that its
/// path takes.
pub(crate) fn walk(
    view: &View<'_>,
    caller: &Credentials,
    base: InodeId,
    names: &[EntryName],
) -> Result<Walked, Failure> {
    let read = |id: InodeId| view.record::<Inode>(&inode_key(id));
    let (mut id, mut inode) = (base, read(base)?.ok_or(Refusal::NotFound)?);
    if base != InodeId::ROOT && inode.is_directory() {
        check_way(view, caller, (base, &inode))?;
    }
    let mut placed = TransactionNumber::default();
    for name in names {
        check_searchable(caller, &inode)?;
        let entry: Dentry = view.record(&dentry_key(id, name))?.ok_or(Refusal::NotFound)?;
        id = entry.inode;
        placed = placed.max(entry.placed);
        inode = read(id)?.ok_or(DANGLING)?;
    }
    Ok(Walked { id, inode, placed })
}

fn check_searchable(caller: &Credentials, inode: &Inode) -> Result<(), Refusal> {
    match inode.detail {
        Detail::Directory { .. } => caller.check(inode, SEARCH),
        Detail::Symlink { .. } => Err(Refusal::SymbolicLink),
        Detail::File(_) => Err(Refusal::NotDirectory),
    }
}

const DANGLING: EngineError =
    EngineError::Corrupt { table: Table::Dentry, what: "an entry leads to nothing" };
pub(crate) const MISSING_COUNTERS: EngineError =
    EngineError::Corrupt { table: Table::Meta, what: "there are no counters" };
