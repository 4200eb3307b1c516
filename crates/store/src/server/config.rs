//! Configuration of a file server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use byname_io::UnvalidatedRates;
use byname_io::files::ReaderKind;
use byname_packet::{Name, types};
use byname_transfer::checksums::Algorithm;
use byname_transfer::server::{ServerConfig, SharedSigner};

use crate::backend::Backend;
use crate::backend::posix::{Exposure, Posix};
use crate::error::StoreError;
use crate::mirror::MirrorConfig;
use crate::state::TREE_BYTES_MAX;
use crate::watch::ahead::NewFiles;

/// Most threads that hash and read directories unless configured otherwise.
const WORKER_THREADS_MAX: usize = 8;

/// Silence after which a peer may give way, unless configured otherwise.
const SILENT_PEER_NS: u64 = 10_000_000_000;

/// Most threads that read and frame segments, the serving one included.
pub(crate) const DATA_WORKERS_MAX: usize = 16;

/// One tree to publish.
#[derive(Clone)]
pub struct MountConfig {
    /// Its name.
    pub prefix: Name,
    /// Its files.
    pub source: MountSource,
    /// Signs its metadata.
    pub signer: SharedSigner,
}

/// Origin of the files of a mount.
#[derive(Debug, Clone)]
pub enum MountSource {
    /// A directory of this system.
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The published part of it.
        exposure: Exposure,
    },
    /// Whatever implements the seam.
    Backend(Arc<dyn Backend>),
    /// Contents of a site under their ids ([`byname_transfer::naming::content_path`]). Nothing is
    /// registered for them: Interests come by a forwarding hint, see
    /// [`FileServerConfig::also_register`].
    Contents(Arc<dyn Backend>),
}

/// Configuration of a file server.
#[derive(Clone)]
pub struct FileServerConfig {
    /// The published part.
    pub mounts: Vec<MountConfig>,
    /// Where roots, trees and versions are kept.
    pub state_dir: PathBuf,
    /// Whole Data packets to be served under their names.
    pub certificates: Vec<Vec<u8>>,
    /// Prefixes registered besides those of the mounts, with the keys that may.
    pub also_register: Vec<(Name, SharedSigner)>,
    /// Time for which forwarders keep the routes of the prefixes, which are registered again in
    /// time while the service says so ([`Service::is_able`](super::Service::is_able)): so nothing
    /// is sent any more to a server that was stopped. Without it they last as long as the
    /// connection.
    pub registered_ns: Option<u64>,
    /// Times and bounds of the engine.
    pub engine: ServerConfig,
    /// Threads that hash and read directories.
    pub worker_threads: usize,
    /// Threads that read and frame segments for readers, at most 16; the first is the serving
    /// thread, which also talks to the peers.
    pub data_workers: usize,
    /// Octets of hash trees kept on disk.
    pub tree_bytes_max: u64,
    /// Watch the directories that are published, and hash new files before anybody asks. Not of
    /// copies ([`FileServerConfig::mirror`]).
    pub watch: bool,
    /// Hash contents that are handed over ([`crate::FileServer::new_contents`]) before anybody
    /// asks. They do not change; for files that do there is [`FileServerConfig::watch`].
    pub hashes_ahead: bool,
    /// Take roots from the files' attribute `user.byname.root`, and write them there.
    pub attributes: bool,
    /// Checksums that are computed in the background of each file that is asked for, and announced
    /// from then on. Not of copies ([`FileServerConfig::mirror`]).
    pub checksums: Vec<Algorithm>,
    /// Signs segments and listings for readers who check packets and know no roots. Costs a
    /// signature a segment; our own readers do not look at it.
    pub segment_signer: Option<SharedSigner>,
    /// Serve copies with the packets that were kept with them, and sign nothing.
    pub mirror: Option<MirrorConfig>,
    /// Octets that the buffers of all connections may take together; see
    /// [`byname_io::MemoryBudget`].
    pub connection_bytes_max: usize,
    /// Silence after which a peer gives way to a new one when there are too many.
    pub silent_peer_ns: u64,
    /// Octets a second that UDP peers get which have not shown that they receive.
    pub udp_unvalidated: UnvalidatedRates,
    /// Who reads what is not in memory.
    pub reader: ReaderKind,
}

impl FileServerConfig {
    /// A server for `mounts` with default bounds.
    pub fn new(mounts: Vec<MountConfig>, state_dir: PathBuf) -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            mounts,
            state_dir,
            certificates: Vec::new(),
            also_register: Vec::new(),
            registered_ns: None,
            engine: ServerConfig::default(),
            worker_threads: cpus.min(WORKER_THREADS_MAX),
            data_workers: 1,
            tree_bytes_max: TREE_BYTES_MAX,
            watch: false,
            hashes_ahead: false,
            attributes: false,
            checksums: Vec::new(),
            segment_signer: None,
            mirror: None,
            connection_bytes_max: byname_io::budget::MEMORY_BYTES_MAX,
            silent_peer_ns: SILENT_PEER_NS,
            udp_unvalidated: UnvalidatedRates::default(),
            reader: ReaderKind::default(),
        }
    }
}

/// What back-ends need besides their own configuration.
pub(super) struct ForBackend<'a> {
    /// Number of the mount.
    pub(super) number: usize,
    /// Device and inode of the state directory, which is never published.
    pub(super) state: (u64, u64),
    /// Where packets of copies lie, for a mirror.
    pub(super) copies: Option<&'a Path>,
    /// Takes new files, if directories are to be watched.
    pub(super) new_files: Option<&'a Arc<NewFiles>>,
}

impl MountConfig {
    /// Checks the name and opens the source.
    pub(super) fn backend(&self, given: &ForBackend<'_>) -> Result<Arc<dyn Backend>, StoreError> {
        if self.prefix.view().components().any(|component| component.typ != types::GENERIC) {
            return Err(StoreError::Prefix { prefix: self.prefix.to_string() });
        }
        let (directory, exposure) = match &self.source {
            MountSource::Directory { directory, exposure } => (directory, *exposure),
            MountSource::Backend(backend) | MountSource::Contents(backend) => {
                return Ok(backend.clone());
            }
        };
        let failed = |source| StoreError::Mount { directory: directory.clone(), source };
        if !std::fs::metadata(directory).map_err(failed)?.is_dir() {
            return Err(failed(std::io::ErrorKind::NotADirectory.into()));
        }
        let mut posix = Posix::new(directory, exposure, given.state).map_err(failed)?;
        if let Some(copies) = given.copies {
            posix = posix.with_attachments(copies.to_owned());
        }
        if let Some(new_files) = given.new_files
            && let Err(error) = posix.watch(given.number, new_files.clone())
        {
            let directory = directory.display().to_string();
            tracing::warn!(
                directory, %error,
                "not watched: directories are read again when they are asked for; a greater \
                 fs.inotify.max_user_instances may help"
            );
        }
        Ok(Arc::new(posix))
    }
}
