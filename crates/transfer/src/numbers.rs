//! Assigned numbers, keywords and limits of the file protocol (docs/protocol.md is the normative
//! text).
//!
//! The 0xF500 range is that of the ndn6 file-server protocol; from 0xF540 on the numbers are ours.
//! All are even and above 31, so software that does not know them ignores them.

/// Keyword of the discovery Interest, `32=metadata`.
pub const METADATA_KEYWORD: &[u8] = b"metadata";
/// Keyword of a directory listing, `32=ls`.
pub const LISTING_KEYWORD: &[u8] = b"ls";
/// Keyword of a directory manifest, `32=manifest`.
pub const MANIFEST_KEYWORD: &[u8] = b"manifest";
/// Keyword before the id of a content name, `32=file`.
pub const CONTENT_KEYWORD: &[u8] = b"file";
/// Prefix of a tree level's keyword: level 2 is `32=tree-2`.
pub const TREE_KEYWORD_PREFIX: &[u8] = b"tree-";

/// Octets in every segment but the last. Fixed 2-octet number (ndn6).
pub const SEGMENT_SIZE: u32 = 0xF500;
/// Octets of the file. Fixed 8-octet number (ndn6).
pub const SIZE: u32 = 0xF502;
/// `st_mode`, type bits included. Fixed 2-octet number (ndn6).
pub const MODE: u32 = 0xF504;
/// Last access, nanoseconds since the Unix epoch. Fixed 8-octet number (ndn6).
pub const ATIME: u32 = 0xF506;
/// Birth, nanoseconds since the Unix epoch. Fixed 8-octet number (ndn6).
pub const BTIME: u32 = 0xF508;
/// Last change of the inode, nanoseconds since the Unix epoch. Fixed 8-octet number (ndn6).
pub const CTIME: u32 = 0xF50A;
/// Last change of the content, nanoseconds since the Unix epoch. Fixed 8-octet number (ndn6).
pub const MTIME: u32 = 0xF50C;

/// BLAKE3 root of the object's bytes, 32 octets.
pub const CONTENT_ROOT: u32 = 0xF540;
/// Empty element in place of the root while it is being computed.
pub const ROOT_PENDING: u32 = 0xF542;
/// Empty element: the content is stored encrypted, and what is fetched is the ciphertext. Reserved;
/// nobody writes it yet. Who cannot decrypt may still copy and verify the octets.
pub const ENCRYPTED: u32 = 0xF54C;
/// Octets of a directory's listing.
pub const LISTING_SIZE: u32 = 0xF544;
/// Octets in every segment of a directory's listing but the last.
pub const LISTING_SEGMENT_SIZE: u32 = 0xF546;
/// In an absence: the file is being written, ask again after so many milliseconds.
pub const BEING_WRITTEN: u32 = 0xF548;
/// Empty element before [`BEING_WRITTEN`] in an absence: nobody writes, the list of the directory
/// is being made.
pub const BEING_LISTED: u32 = 0xF5C0;
/// In an absence: why the object exists but is not served, one of the `ERROR_` numbers.
pub const ERROR_CODE: u32 = 0xF54A;

/// In a manifest: one entry.
pub const MANIFEST_ENTRY: u32 = 0xF550;
/// In a manifest: what stands before the entries.
pub const MANIFEST_HEADER: u32 = 0xF552;
/// In a manifest's header: how many entries follow.
pub const ENTRY_COUNT: u32 = 0xF554;
/// In a manifest's entry: the version that the entry describes.
pub const ENTRY_VERSION: u32 = 0xF556;

/// Target of a symbolic link. In metadata and manifest entries, as all down to
/// [`FORWARDING_HINT`].
pub const LINK_TARGET: u32 = 0xF558;
/// Name of the owner.
pub const OWNER: u32 = 0xF55A;
/// Name of the group.
pub const GROUP: u32 = 0xF55C;
/// Checksums of the content, a list.
pub const CHECKSUMS: u32 = 0xF55E;
/// Number of the transaction that last changed the path or its attributes.
pub const BINDING: u32 = 0xF560;
/// Media type of the content.
pub const MEDIA_TYPE: u32 = 0xF572;
/// In a manifest's entry: where the content is, if not under the entry's own name.
pub const CONTENT_NAME: u32 = 0xF562;
/// In metadata: delegations towards replicas.
pub const FORWARDING_HINT: u32 = 0xF564;
/// In a list of checksums: Adler-32.
pub const ADLER32: u32 = 0xF566;
/// In a list of checksums: CRC-32.
pub const CRC32: u32 = 0xF568;
/// In a list of checksums: CRC-32C.
pub const CRC32C: u32 = 0xF56A;
/// In a list of checksums: MD5.
pub const MD5: u32 = 0xF56C;
/// In a list of checksums: SHA-256.
pub const SHA256: u32 = 0xF56E;

/// The server's user may not read the object.
pub const ERROR_NO_PERMISSION: u64 = 1;
/// The directory's listing is larger than the server's bound.
pub const ERROR_LISTING_TOO_LARGE: u64 = 2;
/// The name leaves no room for content in a packet.
pub const ERROR_NAME_TOO_LONG: u64 = 3;
/// The server cannot read the object for another reason (a failing disk, for instance).
pub const ERROR_UNREADABLE: u64 = 4;

/// Octets of a segment unless the name is too long for it; also the unit of verification.
pub const SEGMENT_BYTES_MAX: usize = 8192;
/// The smallest segment a server of ours uses; a name that leaves less room is refused.
pub const SEGMENT_BYTES_MIN: usize = 1024;
/// Room kept in a packet for the link header (PIT token, congestion mark, local fields).
pub const LINK_RESERVE_BYTES: usize = 96;
/// FreshnessPeriod of segments: their content never changes.
pub const SEGMENT_FRESHNESS_MS: u64 = 3_600_000;
/// FreshnessPeriod of metadata unless configured otherwise.
pub const METADATA_FRESHNESS_MS: u64 = 1_000;
/// The same of a publisher that watches its directories. A file has a version when it has been
/// quiet for 100 ms, so a cache answers with what was before for at most 150 ms after that.
pub const WATCHED_FRESHNESS_MS: u64 = 250;
/// FreshnessPeriod of metadata without the root that is being computed.
pub const PENDING_FRESHNESS_MS: u64 = 50;
/// FreshnessPeriod of absences.
pub const ABSENCE_FRESHNESS_MS: u64 = 100;
/// Levels a tree can have with sizes below 2^64 octets.
pub const TREE_LEVELS_MAX: u8 = 7;
