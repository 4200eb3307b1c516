//! Reading the catalog: from one committed state, by whoever has the engine, the head or not.

mod homes;
mod inventory;
mod limits;
mod trash;
mod versions;

pub use inventory::NamedEntry;
pub use limits::Quota;
pub use trash::{TrashPage, TrashWalk};

use crate::catalog::credentials;
use crate::codec::{Malformed, key, key_parts};
use crate::command::{Caller, Entry, ListedEntry};
use crate::engine::{Engine, EngineError, Row, Rows, Span, Table};
use crate::execution::{MISSING_COUNTERS, Walked, walk};
use crate::id::{ContentId, DiskId, InodeId, SessionId, TransactionNumber, Version};
use crate::log::LogRecord;
use crate::name::{EntryName, Place};
use crate::record::{
    Attempt, COUNTERS_KEY, Content, Counters, Dentry, Disk, DiskUsage, Door, Inode, KeptVersion,
    Key, LEASE_KEY, Lease, Limits, SITE_KEY, Session, Site, Subject, Usage, User, WriteLease,
    dentry_key, disk_key, inode_key, session_key, xattr_key,
};
use crate::refusal::{Failure, Refusal};
use crate::rights::{Credentials, READ};
use crate::view::{View, after_prefix, decoded, prefixed, read};

/// Most rows in one page.
pub const PAGE_ROWS_MAX: usize = 1024;

const BAD_DISK_KEY: EngineError =
    EngineError::Corrupt { table: Table::Disk, what: "a malformed key" };
const BAD_DROP_KEY: EngineError =
    EngineError::Corrupt { table: Table::Drop, what: "a malformed key" };
const NO_SITE: EngineError = EngineError::Corrupt { table: Table::Meta, what: "there is no site" };

/// An inode at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Its number.
    pub id: InodeId,
    /// Its attributes.
    pub inode: Inode,
    /// The latest transaction that put one of the entries on the way there.
    pub placed: TransactionNumber,
}

impl Resolved {
    /// Number of the transaction that last changed what the place leads to, or its attributes.
    /// It never goes back for a place, though its inode, or a directory above, may be exchanged
    /// for an older one.
    pub fn binding(&self) -> TransactionNumber {
        self.placed.max(self.inode.binding)
    }
}

/// One committed state, as one user may see it.
pub struct Reader<'a> {
    rows: Box<dyn Rows + 'a>,
    caller: Credentials,
}

impl<'a> Reader<'a> {
    /// The last committed state.
    pub fn new(engine: &'a dyn Engine, caller: &Caller) -> Result<Self, Failure> {
        let rows = engine.snapshot()?;
        let caller = credentials(&*rows, caller)?;
        Ok(Self { rows, caller })
    }

    /// Whether this state lets somebody act.
    ///
    /// # Errors
    /// The refusal that a command of his would meet.
    pub fn knows(&self, caller: &Caller) -> Result<(), Failure> {
        credentials(&*self.rows, caller).map(drop)
    }

    /// Who leads, or has led last; none if nobody has yet.
    pub fn head_lease(&self) -> Result<Option<Lease>, Failure> {
        Ok(read(&*self.rows, LEASE_KEY)?)
    }

    /// An inode by its place.
    pub fn entry(&self, place: &Place) -> Result<Entry, Failure> {
        let view = View::new(&*self.rows);
        let Walked { id, inode, .. } = walk(&view, &self.caller, place.base, &place.names)?;
        Ok(Entry { id, inode })
    }

    /// An inode by its place, with the binding of that place.
    pub fn resolve(&self, place: &Place) -> Result<Resolved, Failure> {
        let view = View::new(&*self.rows);
        let Walked { id, inode, placed } = walk(&view, &self.caller, place.base, &place.names)?;
        Ok(Resolved { id, inode, placed })
    }

    /// The same for who wants to use it: read 4, write 2, execute or search 1.
    ///
    /// # Errors
    /// [`Refusal::AccessDenied`] if the mode or the list grants less.
    pub fn resolve_for(&self, place: &Place, wanted: u16) -> Result<Resolved, Failure> {
        let found = self.resolve(place)?;
        self.caller.check(&found.inode, wanted)?;
        Ok(found)
    }

    /// Entries of a directory in the order of their names, after one of them. A page that is
    /// shorter than `limit` and [`PAGE_ROWS_MAX`] is the last.
    pub fn list(
        &self,
        place: &Place,
        after: Option<&EntryName>,
        limit: usize,
    ) -> Result<Vec<ListedEntry>, Failure> {
        let Entry { id, inode } = self.entry(place)?;
        if !inode.is_directory() {
            return Err(Refusal::NotDirectory.into());
        }
        self.caller.check(&inode, READ)?;
        let start = inode_key(id);
        let from = match after {
            Some(name) => [dentry_key(id, name).as_slice(), &[0]].concat(),
            None => start.clone(),
        };
        let until = after_prefix(&start);
        let span = Span { from: &from, until: until.as_deref() };
        let rows = self.rows.range(Table::Dentry, span, limit.min(PAGE_ROWS_MAX))?;
        rows.into_iter().map(|row| self.listed(&start, row)).collect()
    }

    fn listed(&self, start: &[u8], (key, value): Row) -> Result<ListedEntry, Failure> {
        let corrupt = |what| EngineError::Corrupt { table: Table::Dentry, what };
        let name = EntryName::new(&key[start.len()..]).map_err(|_| corrupt("a malformed name"))?;
        let entry: Dentry = decoded(&value)?;
        let inode: Option<Inode> = read(&*self.rows, &inode_key(entry.inode))?;
        let inode = inode.ok_or_else(|| corrupt("an entry leads to nothing"))?;
        Ok(ListedEntry { name, id: entry.inode, inode, placed: entry.placed })
    }

    /// An extended attribute.
    pub fn xattr(&self, place: &Place, name: &[u8]) -> Result<Vec<u8>, Failure> {
        let Entry { id, inode } = self.entry(place)?;
        self.caller.check(&inode, READ)?;
        Ok(self.rows.get(Table::Xattr, &xattr_key(id, name))?.ok_or(Refusal::NoAttribute)?)
    }

    /// Names of all extended attributes, in order.
    pub fn xattrs(&self, place: &Place) -> Result<Vec<Vec<u8>>, Failure> {
        let start = xattr_key(self.entry(place)?.id, b"");
        let rows = prefixed(&*self.rows, Table::Xattr, &start, usize::MAX)?;
        Ok(rows.into_iter().map(|(key, _)| key[start.len()..].to_vec()).collect())
    }

    /// Content by id and version: current, or kept for its readers.
    pub fn content(&self, content: ContentId) -> Result<Content, Failure> {
        let inode: Option<Inode> = read(&*self.rows, &inode_key(content.inode))?;
        let current = inode.as_ref().and_then(Inode::content);
        if let Some(current) = current.filter(|current| current.version == content.version) {
            return Ok(current.clone());
        }
        let kept: Option<KeptVersion> = read(&*self.rows, &content.key())?;
        Ok(kept.ok_or(Refusal::NoContent)?.content)
    }

    /// An open attempt.
    pub fn attempt(&self, content: ContentId) -> Result<Attempt, Failure> {
        Ok(read(&*self.rows, &content.key())?.ok_or(Refusal::AttemptEnded)?)
    }

    /// Who alone may write a file, and when the session ends unless it is renewed.
    pub fn lease(&self, file: InodeId) -> Result<Option<(WriteLease, u64)>, Failure> {
        let Some(lease) = read::<WriteLease>(&*self.rows, &inode_key(file))? else {
            return Ok(None);
        };
        let session: Option<Session> = read(&*self.rows, &session_key(lease.session))?;
        let until_ns = session.map_or(0, |session| session.expires_ns);
        Ok(Some((lease, until_ns)))
    }

    /// What somebody uses, and may use.
    pub fn usage(&self, subject: &Subject) -> Result<(Usage, Limits), Failure> {
        let Quota { usage, limits, .. } = self.quota(subject.clone())?;
        Ok((usage, limits))
    }

    /// A disk.
    pub fn disk(&self, disk: DiskId) -> Result<Disk, Failure> {
        Ok(read(&*self.rows, &disk_key(disk))?.ok_or(Refusal::NoSuchDisk)?)
    }

    /// Octets used and reserved on a disk.
    pub fn disk_usage(&self, disk: DiskId) -> Result<DiskUsage, Failure> {
        Ok(read(&*self.rows, &disk_key(disk))?.unwrap_or_default())
    }

    /// All disks, in the order of their numbers.
    pub fn disks(&self) -> Result<Vec<(DiskId, Disk)>, Failure> {
        let rows = self.rows.range(Table::Disk, Span::ALL, PAGE_ROWS_MAX)?;
        rows.into_iter()
            .map(|(key, value)| {
                let [id] = key_parts(&key).map_err(|Malformed| BAD_DISK_KEY)?;
                Ok((DiskId(id), decoded(&value)?))
            })
            .collect()
    }

    /// Contents that a disk has still to drop, the first of them.
    pub fn drops(&self, disk: DiskId, limit: usize) -> Result<Vec<ContentId>, Failure> {
        let rows = prefixed(&*self.rows, Table::Drop, &disk_key(disk), limit)?;
        let content = |(key, _): Row| {
            let [_, inode, version] = key_parts(&key).map_err(|Malformed| BAD_DROP_KEY)?;
            Ok(ContentId { inode: InodeId(inode), version: Version(version) })
        };
        rows.into_iter().map(content).collect()
    }

    /// Users after a name, in the order of their names.
    pub fn users(&self, after: Option<&str>, limit: usize) -> Result<Vec<(String, User)>, Failure> {
        let from = after.map_or_else(Vec::new, |name| [name.as_bytes(), &[0]].concat());
        let span = Span { from: &from, until: None };
        let rows = self.rows.range(Table::User, span, limit.min(PAGE_ROWS_MAX))?;
        let user =
            |(key, value): Row| Ok((String::from_utf8_lossy(&key).into_owned(), decoded(&value)?));
        rows.into_iter().map(user).collect()
    }

    /// Doors after a name, in the order of their names.
    pub fn doors(&self, after: &str, limit: usize) -> Result<Vec<(String, Door)>, Failure> {
        let from = [after.as_bytes(), &[0]].concat();
        let span = Span { from: &from, until: None };
        let rows = self.rows.range(Table::Door, span, limit.min(PAGE_ROWS_MAX))?;
        let door =
            |(key, value): Row| Ok((String::from_utf8_lossy(&key).into_owned(), decoded(&value)?));
        rows.into_iter().map(door).collect()
    }

    /// A key by its name.
    pub fn key(&self, name: &[u8]) -> Result<Option<Key>, Failure> {
        Ok(read(&*self.rows, name)?)
    }

    /// A session, if it is open.
    pub fn session(&self, session: SessionId) -> Result<Option<Session>, Failure> {
        Ok(read(&*self.rows, &session_key(session))?)
    }

    /// Keys after a name, in the order of their names.
    pub fn keys(&self, after: &[u8], limit: usize) -> Result<Vec<(Vec<u8>, Key)>, Failure> {
        let from = [after, &[0]].concat();
        let span = Span { from: &from, until: None };
        let rows = self.rows.range(Table::Key, span, limit.min(PAGE_ROWS_MAX))?;
        rows.into_iter().map(|(name, value)| Ok((name, decoded(&value)?))).collect()
    }

    /// The site's name, as on the wire.
    pub fn site(&self) -> Result<Vec<u8>, Failure> {
        let site: Option<Site> = read(&*self.rows, SITE_KEY)?;
        Ok(site.ok_or(NO_SITE)?.name)
    }

    /// The last transaction of this state.
    pub fn last_transaction(&self) -> Result<TransactionNumber, Failure> {
        let counters: Option<Counters> = read(&*self.rows, COUNTERS_KEY)?;
        Ok(TransactionNumber(counters.ok_or(MISSING_COUNTERS)?.transaction))
    }

    /// Transactions after a number, in order, for operators and the head.
    pub fn log_after(
        &self,
        number: TransactionNumber,
        limit: usize,
    ) -> Result<Vec<LogRecord>, Failure> {
        if !self.caller.is_operator {
            return Err(Refusal::NotOperator.into());
        }
        let from = key([number.0.saturating_add(1)]);
        let span = Span { from: &from, until: None };
        let malformed =
            |Malformed| EngineError::Corrupt { table: Table::Log, what: "a malformed key" };
        let rows = self.rows.range(Table::Log, span, limit.min(PAGE_ROWS_MAX))?;
        rows.into_iter()
            .map(|(key, value)| {
                let [number] = key_parts(&key).map_err(malformed)?;
                let record: LogRecord = decoded(&value)?;
                Ok(LogRecord { number: TransactionNumber(number), ..record })
            })
            .collect()
    }
}
