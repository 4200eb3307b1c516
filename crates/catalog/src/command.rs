//! Commands, which change the catalog, and their answers.

mod acl;
mod answer;
mod disk;
mod door;
mod replica;
mod trash;
mod write;

pub use acl::SetAcl;
pub use answer::{Answer, Entry, Resolution, Ticket, TicketDisk};
pub(crate) use answer::{decode_outcome, encode_outcome};
pub use disk::{AddDisk, DiskChanges};
pub use door::SetDoor;
pub use replica::{MoveReplica, Receipt};
pub use trash::{MeasuredTrash, RestoreTrash};
pub use write::{Commit, Create, Publish};

use crate::id::{ContentId, DiskId, InodeId, SessionId};
use crate::name::{EntryName, Place};
use crate::record::{KeyHolder, Limits, Policy, PolicyChanges, SpokenFor, Subject, TrashPolicy};

/// Who sends a command, as whoever carries it has verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// A user who signed it.
    User(String),
    /// A user for whom a door signed it; each command is judged by what the door may say then.
    Door(SpokenFor),
    /// A disk.
    Disk(DiskId),
    /// The head itself, about its duties.
    Head,
}

/// Identity of a command: repeated, it gets the first answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The session.
    pub session: SessionId,
    /// One of its slots. A slot has one command in flight: the next one takes the answer's place.
    pub slot: u16,
    /// The commands of a slot count from 1.
    pub sequence: u64,
    /// Digest of the command as it was sent.
    pub digest: [u8; 32],
}

/// A command with all that comes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// The sender.
    pub caller: Caller,
    /// Its identity. Users need one, except to open a session.
    pub request: Option<Request>,
    /// What is asked.
    pub command: Command,
}

/// A change of the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Makes a directory.
    MakeDirectory {
        /// Its place.
        place: Place,
        /// Permission bits and the sticky bit.
        mode: u16,
    },
    /// Removes an empty directory.
    RemoveDirectory {
        /// Its place.
        place: Place,
    },
    /// Removes a name of a file or symbolic link.
    Unlink {
        /// The name.
        place: Place,
    },
    /// Removes whatever has this name, a directory with all that is in it.
    RemoveAll {
        /// The name.
        place: Place,
    },
    /// Brings something back from the trash.
    RestoreTrash(RestoreTrash),
    /// Removes something from the trash for good.
    PurgeTrash {
        /// Number of its inode.
        item: InodeId,
    },
    /// Moves an entry.
    Rename(Rename),
    /// Gives a file another name.
    Link {
        /// The file.
        existing: Place,
        /// The other name.
        place: Place,
    },
    /// Makes a symbolic link.
    MakeSymlink {
        /// Its place.
        place: Place,
        /// Where it points; it is not looked at.
        target: Vec<u8>,
    },
    /// Changes attributes.
    SetAttributes {
        /// Whose.
        place: Place,
        /// Which.
        changes: AttributeChanges,
    },
    /// Sets an extended attribute.
    SetXattr(SetXattr),
    /// Removes an extended attribute.
    RemoveXattr {
        /// Whose.
        place: Place,
        /// Its name.
        name: Vec<u8>,
    },
    /// Sets or removes an access control list.
    SetAcl(SetAcl),
    /// Opens an attempt to write a version.
    Create(Create),
    /// Keeps an attempt open for longer.
    Extend {
        /// The attempt.
        content: ContentId,
    },
    /// Makes an attempt the current version.
    Commit(Commit),
    /// Gives an attempt up.
    Abort {
        /// The attempt.
        content: ContentId,
    },
    /// Asks another disk in place of one.
    ReplaceDisk {
        /// The attempt.
        content: ContentId,
        /// The disk that failed or is full.
        disk: DiskId,
    },
    /// Says what a disk does with content it has.
    Resolve {
        /// Its generation.
        generation: u64,
        /// The content.
        content: ContentId,
    },
    /// Keeps a version for the session's readers.
    Hold {
        /// The version.
        content: ContentId,
    },
    /// Ends a hold.
    Release {
        /// The version.
        content: ContentId,
    },
    /// Lets the session alone write a file.
    Lease {
        /// The file.
        place: Place,
    },
    /// Ends that.
    EndLease {
        /// The file.
        place: Place,
    },
    /// Opens a session.
    OpenSession,
    /// Keeps the request's session open for longer.
    RenewSession,
    /// Ends the request's session with all it holds.
    EndSession,
    /// Ends what is due.
    Expire {
        /// Most rows to look at.
        limit: usize,
    },
    /// Takes away what is in removed directories. The head alone does.
    Collect {
        /// Most entries to take away.
        limit: usize,
    },
    /// Ends what is in the trash for too long, or is too much. The head alone does.
    ExpireTrash {
        /// Most things to end.
        limit: usize,
    },
    /// Notes how much is in a directory in the trash. The head alone does.
    MeasuredTrash(MeasuredTrash),
    /// Notes that a disk has dropped contents. The head alone does.
    Dropped {
        /// Which.
        disk: DiskId,
        /// What it was told to drop.
        contents: Vec<ContentId>,
    },
    /// Notes that a disk has a replica more, in place of another one. The head alone does.
    MoveReplica(MoveReplica),
    /// Lets a replica go; another disk that answers has to have the content.
    DropReplica {
        /// The content.
        content: ContentId,
        /// The disk.
        disk: DiskId,
    },
    /// Has a disk drop what it has and nothing leads to. The head alone does.
    Discard {
        /// Which.
        disk: DiskId,
        /// What it was seen to have. What is a replica by now, or may become one, stays.
        contents: Vec<ContentId>,
    },
    /// Adds a user or changes one.
    SetUser {
        /// The name.
        user: String,
        /// Groups; the first is that of new files.
        groups: Vec<String>,
        /// True for those who run the site.
        is_operator: bool,
    },
    /// Lets a key sign for somebody.
    AddKey(AddKey),
    /// Takes that back.
    RemoveKey {
        /// Name of the key.
        name: Vec<u8>,
    },
    /// Adds a door, or says anew for whom one may speak.
    SetDoor(SetDoor),
    /// Removes a door and its keys.
    RemoveDoor {
        /// Its name.
        door: String,
    },
    /// Lets another key sign for the caller for a while.
    LendKey(LendKey),
    /// Takes that back.
    RecallKey {
        /// Name of the key that was lent.
        name: Vec<u8>,
    },
    /// Adds a disk.
    AddDisk(AddDisk),
    /// Changes a disk.
    SetDisk {
        /// Which.
        disk: DiskId,
        /// What.
        changes: DiskChanges,
    },
    /// Removes a disk that is off and has nothing.
    RemoveDisk {
        /// Which.
        disk: DiskId,
    },
    /// Says where content goes that is made in a directory, or the next versions of a file.
    SetPolicy {
        /// The directory or file.
        place: Place,
        /// The policy.
        policy: Policy,
    },
    /// Says how many replaced versions a file keeps, or what is made in a directory.
    SetVersions {
        /// The file or directory.
        place: Place,
        /// How many.
        wanted: u8,
    },
    /// Says what becomes of what is removed from a tree.
    SetTrash {
        /// Its top; that of the site for all that have no such policy.
        place: Place,
        /// The policy.
        policy: TrashPolicy,
    },
    /// Says where the content of new files goes whose names fit a pattern.
    SetPattern {
        /// The pattern of a name: `*` is anything, `?` one octet.
        pattern: String,
        /// How it differs from the directory's policy; none takes the pattern back.
        changes: Option<PolicyChanges>,
    },
    /// Limits what somebody may use.
    SetLimits {
        /// Who.
        subject: Subject,
        /// How much.
        limits: Limits,
    },
    /// Gives an empty directory a quota of its own.
    MakeTree {
        /// The directory.
        place: Place,
    },
    /// Drops the beginning of the change log.
    TrimLog {
        /// The first number that stays.
        below: u64,
        /// Most records to drop.
        limit: usize,
    },
    /// Starts a new epoch of numbers, after an older state was restored.
    RaiseEpoch {
        /// An epoch above all that any disk has seen.
        epoch: u16,
    },
}

/// Moves an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// The entry.
    pub from: Place,
    /// Its new place.
    pub to: Place,
    /// Refuse if there is something.
    pub no_replace: bool,
}

/// New attributes; what is absent stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AttributeChanges {
    /// Permission bits.
    pub mode: Option<u16>,
    /// Owner.
    pub owner: Option<String>,
    /// Group.
    pub group: Option<String>,
    /// Time of last modification.
    pub modified: Option<TimeChange>,
    /// Size: 0, or what it is.
    pub size: Option<u64>,
}

/// A new time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeChange {
    /// The head's time.
    Now,
    /// This, in nanoseconds since 1970.
    At(u64),
}

/// Sets an extended attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetXattr {
    /// Whose.
    pub place: Place,
    /// Its name, with `user.`.
    pub name: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
    /// `Some(true)` only if it is there, `Some(false)` only if not.
    pub must_exist: Option<bool>,
}

/// Lets a key sign for somebody. The operator has verified whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddKey {
    /// Whose it is.
    pub holder: KeyHolder,
    /// Name of the key, as on the wire.
    pub name: Vec<u8>,
    /// Its certificate, a whole packet.
    pub certificate: Vec<u8>,
}

/// Lets another key sign for the caller for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LendKey {
    /// Name of the caller's key that the command is signed with. Whoever carries commands in has
    /// verified it; it is no part of what is sent.
    pub lender: Vec<u8>,
    /// Name of the key that is lent, as on the wire.
    pub name: Vec<u8>,
    /// Its certificate, a whole packet.
    pub certificate: Vec<u8>,
    /// Until when.
    pub expires_ns: u64,
}

impl Command {
    /// A short name, for the change log and for names of commands on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::MakeDirectory { .. } => "mkdir",
            Self::RemoveDirectory { .. } => "rmdir",
            Self::Unlink { .. } => "unlink",
            Self::RemoveAll { .. } => "remove-all",
            Self::RestoreTrash(_) => "restore-trash",
            Self::PurgeTrash { .. } => "purge-trash",
            Self::Rename(_) => "rename",
            Self::Link { .. } => "link",
            Self::MakeSymlink { .. } => "symlink",
            Self::SetAttributes { .. } => "setattr",
            Self::SetXattr(_) => "setxattr",
            Self::RemoveXattr { .. } => "removexattr",
            Self::SetAcl(_) => "set-acl",
            Self::Create(_) => "create",
            Self::Extend { .. } => "extend",
            Self::Commit(_) => "commit",
            Self::Abort { .. } => "abort",
            Self::ReplaceDisk { .. } => "replace-disk",
            Self::Resolve { .. } => "resolve",
            Self::Hold { .. } => "hold",
            Self::Release { .. } => "release",
            Self::Lease { .. } => "lease",
            Self::EndLease { .. } => "end-lease",
            Self::OpenSession => "open-session",
            Self::RenewSession => "renew-session",
            Self::EndSession => "end-session",
            Self::Expire { .. } => "expire",
            Self::Collect { .. } => "collect",
            Self::ExpireTrash { .. } => "expire-trash",
            Self::MeasuredTrash(_) => "measured-trash",
            Self::Dropped { .. } => "dropped",
            Self::MoveReplica(_) => "move-replica",
            Self::DropReplica { .. } => "drop-replica",
            Self::Discard { .. } => "discard",
            Self::SetUser { .. } => "set-user",
            Self::AddKey(_) => "add-key",
            Self::RemoveKey { .. } => "remove-key",
            Self::SetDoor(_) => "set-door",
            Self::RemoveDoor { .. } => "remove-door",
            Self::LendKey(_) => "lend-key",
            Self::RecallKey { .. } => "recall-key",
            Self::AddDisk(_) => "add-disk",
            Self::SetDisk { .. } => "set-disk",
            Self::RemoveDisk { .. } => "remove-disk",
            Self::SetPolicy { .. } => "set-policy",
            Self::SetVersions { .. } => "set-versions",
            Self::SetTrash { .. } => "set-trash",
            Self::SetPattern { .. } => "set-pattern",
            Self::SetLimits { .. } => "set-limits",
            Self::MakeTree { .. } => "make-tree",
            Self::TrimLog { .. } => "trim-log",
            Self::RaiseEpoch { .. } => "raise-epoch",
        }
    }
}

/// An entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedEntry {
    /// Its name.
    pub name: EntryName,
    /// What it leads to.
    pub id: InodeId,
    /// Its attributes.
    pub inode: crate::record::Inode,
    /// Transaction that put the entry there.
    pub placed: crate::id::TransactionNumber,
}
