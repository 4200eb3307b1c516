//! Sockets, packet memory and the real clock. Knows no protocol crate.
