//! The hash tree of a file: one BLAKE3 root, checked 8 KiB at a time and in any order.
//!
//! The root is what `b3sum FILE` prints. BLAKE3 is already a binary tree over 1 KiB chunks; this
//! module cuts it at two kinds of height. A *unit* is 8 chunks (8192 bytes). Level 1 holds one
//! 32-octet chaining value per unit, level k+1 one per 256 values of level k. The top level is
//! the first with at most 256 values; folding it with the root flag gives the root. A *node* is
//! an aligned slice of 256 values of a level, so a node is 8192 octets: one default segment.
//!
//! Invariants: the number of units, levels and values follows from the file size alone, so any
//! other length is an error and nothing is allocated by a length that a peer chose. Lengths and
//! offsets are checked before `blake3::hazmat` is called, because it panics on bad ones. A file
//! of at most one unit has no levels and is checked by the ordinary hash.

mod build;
mod frontier;
mod hash;
mod proof;
mod shape;
mod verify;

pub use build::{BuildError, Folder, Tree, TreeBuilder};
pub use frontier::Frontier;
pub use hash::{Hash, ParseHashError};
pub use proof::{PROOF_BYTES_MAX, ReadAt, is_proof, prove};
pub use shape::{LEVELS_MAX, NodeId, Shape, SpanError};
pub use verify::{Check, NodeRejected, RUN_UNITS_MAX, SpanCheck, Verifier};

/// Octets that are verified together: eight BLAKE3 chunks.
pub const UNIT_BYTES: usize = 8192;

/// Chaining values in a complete node.
pub const FANOUT: usize = 256;

/// Octets of a chaining value or root.
pub const HASH_BYTES: usize = 32;

/// Octets of a complete node.
pub const NODE_BYTES: usize = FANOUT * HASH_BYTES;

/// Octets of file content under a complete level-1 node (2 MiB).
pub const GROUP_BYTES: usize = FANOUT * UNIT_BYTES;
