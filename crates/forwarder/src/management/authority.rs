//! Authority to command, decided by the face a command came from.
//!
//! | face | may |
//! |---|---|
//! | Unix socket or memif; peer is our user, root, or of the authorized group | everything |
//! | other local face (loopback TCP, another user) | register and unregister routes to itself |
//! | anything else | nothing, unless a key of its own allows it (see `remote`) |
//!
//! The kernel vouches for the peer of a Unix socket (memif's control socket is one). What a face
//! that is not local says of its peer counts for nothing.

use crate::face::FaceInfo;

/// Commands that a face may give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Authority {
    /// Everything.
    Full,
    /// Routes to itself.
    OwnRoutes,
    /// Nothing.
    Nothing,
}

impl Authority {
    pub(super) fn of(face: &FaceInfo, own_uid: u32, authorized_gid: Option<u32>) -> Self {
        if !face.local {
            return Self::Nothing;
        }
        let is_ours = face.peer_uid.is_some_and(|uid| uid == own_uid || uid == 0);
        let is_member = authorized_gid.is_some() && face.peer_gid == authorized_gid;
        if is_ours || is_member { Self::Full } else { Self::OwnRoutes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authority_follows_the_face() {
        let of = |local, peer_uid, peer_gid, gid| {
            let face = FaceInfo { local, peer_uid, peer_gid, ..FaceInfo::default() };
            Authority::of(&face, 1000, gid)
        };
        assert_eq!(of(true, Some(1000), Some(7), None), Authority::Full);
        assert_eq!(of(true, Some(0), Some(0), None), Authority::Full);
        assert_eq!(of(true, Some(1001), Some(7), None), Authority::OwnRoutes);
        assert_eq!(of(true, Some(1001), Some(7), Some(7)), Authority::Full);
        assert_eq!(of(true, Some(1001), Some(8), Some(7)), Authority::OwnRoutes);
        assert_eq!(of(true, Some(1001), Some(0), Some(7)), Authority::OwnRoutes);
        assert_eq!(of(true, None, None, Some(7)), Authority::OwnRoutes);
        assert_eq!(of(true, None, None, None), Authority::OwnRoutes);
        assert_eq!(of(false, None, None, None), Authority::Nothing);
        assert_eq!(of(false, Some(0), Some(7), Some(7)), Authority::Nothing);
    }
}
