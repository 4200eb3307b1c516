//! Downloads: files and trees from the network to the local disk.
//!
//! [`download_job`] is what a caller asks for: [`file_job`] fetches one file into a [`part_file`],
//! with [`reading`] for one version of it and [`identical`] for what is there already, [`striped`]
//! fetches it from several sources before, [`late`] its packet afterwards. [`tree`] fetches a
//! directory with a [`directory_job`] for each, [`small_files`] many files of one segment,
//! [`placing`] gives names after one sync.
//!
//! [`local_dir`] and [`disk`] are the only ways to the file system, and jobs take them through a
//! [`disk_queue`]: content by a [`part_writer`].

pub(crate) mod context;
pub(crate) mod copies;
pub(crate) mod directory_job;
pub mod disk;
mod disk_job;
pub(crate) mod disk_queue;
pub(crate) mod download_job;
pub(crate) mod file_job;
pub(crate) mod identical;
pub(crate) mod late;
pub(crate) mod local_dir;
pub(crate) mod part_file;
pub(crate) mod part_writer;
pub(crate) mod placing;
pub(crate) mod progress;
pub(crate) mod reading;
pub(crate) mod small_files;
pub(crate) mod striped;
pub(crate) mod tree;
pub(crate) mod tree_job;
pub(crate) mod tree_report;
