//! Programs as they run in production, killed and started again over what their disks have.

#[path = "programs/crashes.rs"]
mod crashes;
#[path = "programs/disks.rs"]
mod disks;
#[path = "programs/scene.rs"]
mod scene;
#[path = "programs/trees.rs"]
mod trees;
