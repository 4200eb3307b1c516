//! Links under loss, in virtual time.

mod network;
mod reliability;
