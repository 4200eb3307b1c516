//! Files as named objects: the file-server engine and the client engine. Sans-I/O.

pub mod listing;
pub mod metadata;
pub mod naming;
pub mod numbers;
