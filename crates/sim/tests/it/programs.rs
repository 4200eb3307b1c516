//! Programs as they run in production, killed and started again over what their disks have.

mod crashes;
mod disks;
mod scene;
mod trees;
