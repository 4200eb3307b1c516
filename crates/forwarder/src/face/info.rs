//! Facts about a face as the driver reports them, and the counters kept for it.

/// Number of a face, never reused while the forwarder lives. 0 is no face.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FaceId(pub u64);

/// Kind of link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkType {
    /// One peer.
    #[default]
    PointToPoint,
    /// Many peers that hear each other.
    MultiAccess,
    /// Many peers that may not hear each other.
    AdHoc,
}

/// Time for which a face lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Persistency {
    /// Until it fails or is destroyed.
    Persistent,
    /// Until it fails or is idle: made by a peer's packet or connection.
    #[default]
    OnDemand,
    /// Until it is destroyed; failures are repaired.
    Permanent,
}

/// Facts that the driver reports about a face.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaceInfo {
    /// Both ends are on this machine: `/localhost` is allowed.
    pub local: bool,
    /// Kind of link.
    pub link_type: LinkType,
    /// Time for which the face lives.
    pub persistency: Persistency,
    /// FaceUri of the peer.
    pub remote_uri: String,
    /// FaceUri of our end.
    pub local_uri: String,
    /// User on the other end, where the kernel vouches for it (Unix sockets).
    pub peer_uid: Option<u32>,
    /// Their group, from the same source.
    pub peer_gid: Option<u32>,
    /// Largest frame; `None` on stream links.
    pub mtu_bytes: Option<usize>,
}

/// Packets and octets (network layer) that passed a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "each name says it all")]
pub struct FaceCounters {
    pub in_interests: u64,
    pub in_data: u64,
    pub in_nacks: u64,
    pub out_interests: u64,
    pub out_data: u64,
    pub out_nacks: u64,
    pub in_bytes: u64,
    pub out_bytes: u64,
}

impl FaceCounters {
    /// Adds what another shard has counted.
    pub fn add(&mut self, other: &Self) {
        self.in_interests += other.in_interests;
        self.in_data += other.in_data;
        self.in_nacks += other.in_nacks;
        self.out_interests += other.out_interests;
        self.out_data += other.out_data;
        self.out_nacks += other.out_nacks;
        self.in_bytes += other.in_bytes;
        self.out_bytes += other.out_bytes;
    }
}
