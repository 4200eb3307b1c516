//! Who may command what, decided by the face a command came from.
//!
//! | face | may |
//! |---|---|
//! | Unix socket, peer is our user or root | everything |
//! | other local face (loopback TCP, another user) | register and unregister routes to itself |
//! | anything else | nothing |

use crate::face::FaceInfo;

/// What a face may command.
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
    pub(super) fn of(face: &FaceInfo, own_uid: u32) -> Self {
        match face.peer_uid {
            Some(uid) if face.local && (uid == own_uid || uid == 0) => Self::Full,
            _ if face.local => Self::OwnRoutes,
            _ => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authority_follows_the_face() {
        let face = |local, peer_uid| FaceInfo { local, peer_uid, ..FaceInfo::default() };
        assert_eq!(Authority::of(&face(true, Some(1000)), 1000), Authority::Full);
        assert_eq!(Authority::of(&face(true, Some(0)), 1000), Authority::Full);
        assert_eq!(Authority::of(&face(true, Some(1001)), 1000), Authority::OwnRoutes);
        assert_eq!(Authority::of(&face(true, None), 1000), Authority::OwnRoutes);
        assert_eq!(Authority::of(&face(false, None), 1000), Authority::Nothing);
        assert_eq!(Authority::of(&face(false, Some(0)), 1000), Authority::Nothing);
    }
}
