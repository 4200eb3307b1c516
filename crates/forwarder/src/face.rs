//! Faces as types: number, facts, options, counters, and the requests to the driver.

mod info;
mod request;

pub use info::{FaceCounters, FaceId, FaceInfo, LinkType, Persistency};
pub use request::{FaceFailure, FaceOptions, FaceRequest, RequestId};
