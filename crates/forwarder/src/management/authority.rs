//! Authority to command, decided by the face a command came from.
//!
//! | face | may |
//! |---|---|
//! | Unix socket or memif; peer is our user, root, or of the authorized group | everything |
//! | Unix socket or memif; peer is another user | register and unregister routes to itself |
//! | loopback TCP, if `allow_loopback` | register and unregister routes to itself |
//! | anything else | nothing, unless a key of its own allows it (see `remote`) |
//!
//! The kernel vouches for the peer of a Unix socket (memif's control socket is one); of a TCP
//! connection nobody knows the user. What a face that is not local says of its peer counts for
//! nothing.

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

/// Rules by which local faces may command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) own_uid: u32,
    pub(super) authorized_gid: Option<u32>,
    pub(super) allow_loopback: bool,
}

impl Authority {
    pub(super) fn of(face: &FaceInfo, rules: &Rules) -> Self {
        let is_member = rules.authorized_gid.is_some() && face.peer_gid == rules.authorized_gid;
        match face.peer_uid {
            _ if !face.local => Self::Nothing,
            Some(uid) if uid == rules.own_uid || uid == 0 || is_member => Self::Full,
            Some(_) => Self::OwnRoutes,
            None if rules.allow_loopback => Self::OwnRoutes,
            None => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authority_follows_the_face() {
        let rules = Rules { own_uid: 1000, authorized_gid: None, allow_loopback: false };
        let of = |local, peer_uid, peer_gid, authorized_gid| {
            let face = FaceInfo { local, peer_uid, peer_gid, ..FaceInfo::default() };
            Authority::of(&face, &Rules { authorized_gid, ..rules })
        };
        assert_eq!(of(true, Some(1000), Some(7), None), Authority::Full);
        assert_eq!(of(true, Some(0), Some(0), None), Authority::Full);
        assert_eq!(of(true, Some(1001), Some(7), None), Authority::OwnRoutes);
        assert_eq!(of(true, Some(1001), Some(7), Some(7)), Authority::Full);
        assert_eq!(of(true, Some(1001), Some(8), Some(7)), Authority::OwnRoutes);
        assert_eq!(of(true, Some(1001), Some(0), Some(7)), Authority::OwnRoutes);
        assert_eq!(of(true, None, None, Some(7)), Authority::Nothing);
        assert_eq!(of(true, None, None, None), Authority::Nothing);
        assert_eq!(of(false, None, None, None), Authority::Nothing);
        assert_eq!(of(false, Some(0), Some(7), Some(7)), Authority::Nothing);
        let open = Rules { allow_loopback: true, ..rules };
        let face = |local| FaceInfo { local, ..FaceInfo::default() };
        assert_eq!(Authority::of(&face(true), &open), Authority::OwnRoutes);
        assert_eq!(Authority::of(&face(false), &open), Authority::Nothing);
    }
}
