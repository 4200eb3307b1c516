//! Assigned numbers of a site's protocol (docs/protocol.md §11 is the normative text).
//!
//! Numbers of the file protocol keep their meaning here; those from 0xF600 on are this crate's. All
//! are even and above 31.

use byname_transfer::numbers as file;

/// An element: its TYPE, and its name for errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) typ: u32,
    pub(crate) name: &'static str,
}

macro_rules! tags {
    ($($constant:ident $typ:expr, $name:literal;)*) => {
        $(pub(crate) const $constant: Tag = Tag { typ: $typ, name: $name };)*
    };
}

tags! {
    NAME byname_packet::types::NAME, "Name";
    DATA byname_packet::types::DATA, "Data";
    ENTRY_NAME 0x08, "GenericNameComponent";

    SIZE file::SIZE, "Size";
    MODE file::MODE, "Mode";
    BTIME file::BTIME, "Btime";
    CTIME file::CTIME, "Ctime";
    MTIME file::MTIME, "Mtime";
    CONTENT_ROOT file::CONTENT_ROOT, "ContentRoot";
    LINK_TARGET file::LINK_TARGET, "LinkTarget";
    OWNER file::OWNER, "Owner";
    GROUP file::GROUP, "Group";
    CHECKSUMS file::CHECKSUMS, "Checksums";
    BINDING file::BINDING, "Binding";
    HINT file::FORWARDING_HINT, "ForwardingHint";

    REQUEST_ID 0xF600, "RequestId";
    SESSION_ID 0xF602, "SessionId";
    SLOT 0xF604, "Slot";
    SEQUENCE 0xF606, "Sequence";
    COMMAND 0xF608, "Command";
    PLACE 0xF60A, "Place";
    INODE_ID 0xF60C, "InodeId";
    CONTENT_ID 0xF60E, "ContentId";
    VERSION_ID 0xF610, "VersionId";
    NO_REPLACE 0xF612, "NoReplace";
    EXCLUSIVE 0xF614, "Exclusive";
    AT_ONCE 0xF616, "AtOnce";
    SIZE_MAX 0xF618, "SizeMax";
    XATTR_NAME 0xF61A, "XattrName";
    XATTR_VALUE 0xF61C, "XattrValue";
    MUST_EXIST 0xF61E, "MustExist";
    MODIFIED_NOW 0xF620, "ModifiedNow";
    DISK_ID 0xF622, "DiskId";
    GENERATION 0xF624, "Generation";
    LIMIT 0xF626, "Limit";
    USER 0xF628, "User";
    OPERATOR 0xF62A, "Operator";
    SPACE 0xF62C, "Space";
    SERVER 0xF62E, "Server";
    LABEL 0xF630, "Label";
    CAPACITY 0xF632, "Capacity";
    DISK_STATE 0xF634, "DiskState";
    IS_UP 0xF636, "IsUp";
    NEW_GENERATION 0xF638, "NewGeneration";
    POLICY 0xF63A, "Policy";
    REPLICA_COUNT 0xF63C, "ReplicaCount";
    RECEIPT_COUNT 0xF63E, "ReceiptCount";
    INODES_MAX 0xF640, "InodesMax";
    BYTES_MAX 0xF642, "BytesMax";
    LOG_NUMBER 0xF644, "LogNumber";
    CATALOG_EPOCH 0xF646, "CatalogEpoch";

    LEASE_EPOCH 0xF648, "LeaseEpoch";
    DONE 0xF64A, "Done";
    REFUSED 0xF64C, "Refused";
    FAILED 0xF64E, "Failed";
    REASON 0xF650, "Reason";
    ENTRY 0xF652, "Entry";
    LINK_COUNT 0xF654, "LinkCount";
    TREE 0xF656, "Tree";
    FILE_CONTENT 0xF658, "FileContent";
    PARENT 0xF65A, "Parent";
    SESSION 0xF65C, "Session";
    EXPIRES 0xF65E, "Expires";
    RESOLUTION 0xF660, "Resolution";
    COUNT 0xF662, "Count";

    TERMS 0xF664, "TicketTerms";
    TERMS_DISK 0xF666, "TicketDisk";
    ORIGIN 0xF668, "Origin";

    PULLING 0xF66A, "Pulling";
    RECEIVED_BYTES 0xF66C, "ReceivedBytes";
    AGAIN_MS 0xF66E, "AgainMs";

    KEY_NAME 0xF670, "KeyName";

    LISTED 0xF672, "Listed";
    LAST 0xF674, "Last";
    REREAD 0xF676, "Reread";

    EDITION 0xF678, "Edition";
    OFFSET 0xF67A, "Offset";
    THROUGH 0xF67C, "Through";
    ROWS 0xF67E, "Rows";
    COPIES 0xF680, "Copies";
    HIGHEST 0xF682, "Highest";
    COMPLETE 0xF684, "CompleteCopy";
    BUILDING 0xF686, "BuildingCopy";
    LENGTH 0xF688, "Length";
    BASE 0xF68A, "Base";
    STORED 0xF68C, "Stored";
    OCTETS 0xF68E, "Octets";
    RECORD 0xF690, "Record";
    SETTLED 0xF692, "Settled";

    POLICY_CHANGES 0xF694, "PolicyChanges";
    PATTERN 0xF696, "Pattern";

    COPY_DIGEST 0xF698, "CopyDigest";

    KEY_SHARE 0xF6C0, "KeyShare";
    WHOLE 0xF6C2, "Whole";
    SINCE 0xF69A, "Since";
    LAST_ORDER 0xF69C, "LastOrder";

    LOAD 0xF69E, "Load";

    SOFT_INODES 0xF702, "SoftInodes";
    SOFT_BYTES 0xF704, "SoftBytes";
    GRACE 0xF706, "Grace";

    SCRUB 0xF708, "Scrub";
    PASS_DONE 0xF70A, "PassDone";
    PASS_TOTAL 0xF70C, "PassTotal";
    PASS_ENDED 0xF70E, "PassEnded";
    ROTTEN_COUNT 0xF710, "RottenCount";

    DRAIN_RATE 0xF712, "DrainRate";

    DEFAULT_ACL 0xF6E0, "DefaultAcl";
    ACL 0xF6E2, "Acl";
    // What becomes of what is removed.
    TRASH_TIME 0xF71A, "TrashTime";
    TRASH_OFF 0xF71C, "TrashOff";
    VERSION_COUNT 0xF714, "VersionCount";

    CHALLENGE 0xF730, "Challenge";
    PROOF 0xF732, "Proof";

    SPEAKS_FOR 0xF720, "SpeaksFor";
    DOOR 0xF722, "Door";
    FOR_ALL 0xF724, "ForAll";
    ASSERTED 0xF726, "AssertedGroup";
}
