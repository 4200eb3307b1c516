//! Requests of management to the driver, which alone can open and close links.
//!
//! A command such as `faces/create` ends in a [`FaceRequest`] that the driver takes with
//! [`Forwarder::poll_request`](crate::Forwarder::poll_request) and, if it has to answer, reports
//! with [`Forwarder::complete_request`](crate::Forwarder::complete_request). The Interest that
//! asked waits meanwhile.

use thiserror::Error;

use super::info::{FaceId, Persistency};

/// Tells requests apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub(crate) u64);

/// Something that the driver should do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaceRequest {
    /// Make a face to a peer, with [`Forwarder::add_face`](crate::Forwarder::add_face), and report
    /// with [`Forwarder::complete_request`](crate::Forwarder::complete_request). Management sets
    /// the options of the face that is reported.
    Create {
        /// FaceUri of the peer as the client wrote it: host names and absent ports are allowed.
        uri: String,
        /// FaceUri of our end, if the client wants a certain one.
        local_uri: Option<String>,
        /// Time for which the face shall live.
        persistency: Persistency,
        /// The options it starts with.
        options: FaceOptions,
    },
    /// Close the link, then call [`Forwarder::remove_face`](crate::Forwarder::remove_face). The
    /// client has its answer already.
    Destroy {
        /// The face.
        face: FaceId,
    },
    /// Options or persistency have changed: see
    /// [`Forwarder::face_options`](crate::Forwarder::face_options) and
    /// [`Forwarder::face_info`](crate::Forwarder::face_info). The client has its answer already.
    Changed {
        /// The face.
        face: FaceId,
    },
}

/// Options that management may set on a face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaceOptions {
    /// The application learns where packets came from, and may choose where they go.
    pub local_fields: bool,
    /// Lost frames are sent again (NDNLPv2 reliability).
    pub reliability: bool,
    /// A long queue marks packets.
    pub congestion_marking: bool,
    /// First interval between marks; `None` is the link's default.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Octets of a long queue; `None` is the link's default.
    pub default_congestion_threshold_bytes: Option<u64>,
    /// Largest frame; `None` is the transport's default.
    pub mtu_bytes: Option<u64>,
}

impl Default for FaceOptions {
    fn default() -> Self {
        Self {
            local_fields: false,
            reliability: false,
            congestion_marking: true,
            base_congestion_marking_interval_ns: None,
            default_congestion_threshold_bytes: None,
            mtu_bytes: None,
        }
    }
}

/// Reason why the driver could not make a face.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FaceFailure {
    /// There is one to this peer already.
    #[error("face {} leads to this peer already", .0.0)]
    Exists(FaceId),
    /// The FaceUri means nothing, or its host name is unknown.
    #[error("{0}")]
    NotCanonical(String),
    /// The FaceUri's transport, or what was asked of it, is not available.
    #[error("{0}")]
    Unsupported(String),
    /// The link could not be opened.
    #[error("{0}")]
    Failed(String),
}
