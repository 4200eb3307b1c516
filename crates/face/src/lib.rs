//! Faces: the link layer of `link` over the connections of `io`, and what every program does with
//! them: frame, fragment, mark, register.
//!
//! `link` knows no socket and `io` no protocol; this crate alone joins them. A [`Face`] is one
//! connection with its link. Programs with hot loops of their own (the forwarder, the file server)
//! keep their connections and use the parts: [`frame_len`], [`link_over`], [`mtu`], [`Fragmenter`],
//! [`move_marked`]. [`register`] asks a forwarder for Interests: [`Registrar`] is its sans-I/O
//! state machine.
//!
//! Invariants: nothing here allocates per packet, except where packets are fragmented or marked;
//! every queue is that of the connection, with its bound; there is no global state.

pub mod command;
pub mod error;
pub mod exchange;
pub mod mtu;
pub mod register;

mod face;
mod fragmenter;
mod frame;
mod marking;
mod random;

pub use command::{CommandClock, ControlCommand};
pub use error::{FaceError, RegisterError};
pub use exchange::{Exchange, Reply};
pub use face::{Face, link_over};
pub use fragmenter::{Fragmenter, PeerQueue};
pub use frame::frame_len;
pub use marking::move_marked;
pub use random::random_u64;
pub use register::{RegisterOptions, Registrar, Route, SharedSigner, register};
