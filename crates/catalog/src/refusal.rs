//! Reasons for which a command changes nothing. Each has the number that POSIX programs expect.

use rustix::io::Errno;

use crate::engine::EngineError;

macro_rules! refusals {
    ($($number:literal $name:ident $errno:ident $text:literal;)*) => {
        /// Reason why a command changed nothing. The numbers are part of the stored format.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
        #[repr(u8)]
        pub enum Refusal {
            $(#[doc = concat!($text, ".")] #[error($text)] $name = $number,)*
        }

        impl Refusal {
            /// The number of `errno.h`.
            pub fn errno(self) -> i32 {
                match self {
                    $(Self::$name => Errno::$errno.raw_os_error(),)*
                }
            }

            /// The reason with this number.
            pub fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

refusals! {
    1 NotFound NOENT "no such file or directory";
    2 Exists EXIST "there is something of this name";
    3 NotDirectory NOTDIR "not a directory";
    4 IsDirectory ISDIR "it is a directory";
    5 NotEmpty NOTEMPTY "the directory is not empty";
    6 SymbolicLink LOOP "a symbolic link is in the way";
    7 IntoItself INVAL "a directory cannot move below itself";
    8 IsRoot BUSY "the top directory stays where it is";
    9 AccessDenied ACCESS "the modes do not allow it";
    10 NotOwner PERM "only the owner may do this";
    11 NotOperator PERM "only an operator of the site may do this";
    12 LinkToDirectory PERM "a directory has one name";
    13 TooManyLinks MLINK "too many names for one file";
    14 OtherTree XDEV "the other place has a quota of its own";
    15 NameTooLong NAMETOOLONG "a name is too long";
    16 BadName INVAL "an entry cannot have this name";
    17 BadLabel INVAL "this is no name for a user, group, space, server or label";
    18 BadMode INVAL "the mode has bits that are none of a mode's";
    19 NoAttribute NODATA "no such extended attribute";
    20 AttributeExists EXIST "there is such an extended attribute";
    21 BadAttribute OPNOTSUPP "extended attributes are named user.something";
    22 AttributesFull NOSPC "no room for more extended attributes on this inode";
    23 AttributeOnLink PERM "a symbolic link has no extended attributes";
    24 NotFile INVAL "not a regular file";
    25 NotLink INVAL "not a symbolic link";
    26 SizeNeedsContent INVAL "a size other than 0 needs content: open an attempt";
    27 UserQuota DQUOT "the quota of the user is used up";
    28 GroupQuota DQUOT "the quota of the group is used up";
    29 TreeQuota DQUOT "the quota of the tree is used up";
    30 NoSpace NOSPC "not enough disks with room";
    31 AttemptEnded STALE "the attempt is not open any more";
    32 BaseChanged STALE "the file was rewritten meanwhile";
    33 NameTaken STALE "the name was taken meanwhile";
    34 DirectoryGone STALE "the directory was removed meanwhile";
    35 NotYourAttempt ACCESS "the attempt is another user's";
    36 TooLarge FBIG "the content is larger than was reserved";
    37 ForeignReceipt BADMSG "a receipt is of another site, attempt or content";
    38 UnknownDisk BADMSG "a receipt is of a disk that was not asked, or was made anew since";
    39 TooFewReceipts IO "fewer receipts than the policy asks for";
    40 BadPolicy INVAL "the policy contradicts itself";
    41 UnknownUser ACCESS "the site does not know this user";
    42 UnknownSession KEYEXPIRED "the session has ended or never was";
    43 NotYourSession ACCESS "the session is another user's";
    44 BadSlot INVAL "the session has no such slot";
    45 OldRequest STALE "the slot has seen a later request";
    46 SkippedRequest INVAL "the slot waits for an earlier request";
    47 RequestReused INVAL "another command had this request id";
    48 TooManySessions AGAIN "the user has too many sessions";
    49 TooManyAttempts AGAIN "the user has too many open attempts";
    50 TooManyHolds AGAIN "the session holds too many versions";
    51 NeedsSession INVAL "only a session can do this";
    52 NoSuchDisk NODEV "the site has no such disk";
    53 DiskInUse BUSY "the disk is not off, or still has replicas";
    54 OldEpoch STALE "the epoch must be above all that were";
    55 CountersExhausted OVERFLOW "the epoch has no numbers left";
    56 TooManyDisks INVAL "the site has as many disks as it can";
    57 TargetTooLong NAMETOOLONG "the target of a symbolic link is too long";
    58 NoContent NODATA "no such version";
    59 TooManyGroups INVAL "the user is in too many groups";
    60 ModeOfLink OPNOTSUPP "a symbolic link has no mode of its own";
    61 BadKey INVAL "the name or the certificate of the key is too long, or empty";
    62 KeyOfAnother EXIST "the key is somebody else's";
    63 UnknownKey NOENT "the site does not know this key";
    64 BadPattern INVAL "a pattern has 1 to 255 octets, no slash and no control character";
    65 TooManyPatterns INVAL "the site has as many patterns as it can";
    66 TreeTooLarge TOOBIG "more is in the directory than one command looks at";
    67 Leased BUSY "somebody else has the file for writing";
    68 LeaseLost STALE "the lease of the file has ended or is somebody else's by now";
    69 TooManyLeases AGAIN "the session has too many files for writing";
    70 TooDeep NAMETOOLONG "more directories are above it than anybody may go through";
    71 BadAcl INVAL "this is no access control list, or it names too many";
    72 DefaultOfFile ACCESS "only a directory has a default access control list";
    73 AclOfLink OPNOTSUPP "a symbolic link has no access control list";
    74 LastReplica BUSY "no other disk that answers has the content";
    75 NotInTrash NOENT "there is nothing of yours with this number in the trash";
    76 TrashInUse BUSY "there is something of this tree in the trash: purge it first";
    77 NotTree INVAL "the directory has no quota of its own";
    80 SpaceQuota DQUOT "the quota of the space is used up";
    81 UserGrace DQUOT "the user is above its soft limit, and the grace time is over";
    82 GroupGrace DQUOT "the group is above its soft limit, and the grace time is over";
    83 TreeGrace DQUOT "the tree is above its soft limit, and the grace time is over";
    84 SpaceGrace DQUOT "the space is above its soft limit, and the grace time is over";
    90 MayNotSpeakFor ACCESS "the door may not speak for this user";
    91 MayNotSpeakForOperator ACCESS "the door may speak for an operator only if that is granted";
    92 MayNotAssertGroup ACCESS "the door may not say that the user is in this group";
    93 UnknownDoor ACCESS "the site does not know this door";
    94 NotSpokenFor ACCESS "a door does nothing for itself: it has to say for which user it speaks";
    95 TooMuchGranted INVAL "the site has as many doors, or the door as many grants, as it can";
    96 NotLendable PERM "only a key that operators added lends, and only to a key of its user";
    97 BadLoan INVAL "a key is lent for a time to come, of 7 days at most";
    98 TooManyLoans AGAIN "too many of the user's keys are lent";
    99 TooMuchReserved DQUOT "the user would reserve more than a fair share of the space's room";
}

/// A command that did not come through: refused, or the engine failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Nothing was changed, for this reason.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
