//! A disk that is served: its contents by a file server, its orders beside it.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;

use byname_io::{Clock, Endpoint};
use byname_security::cert::{Certificate, CertificateError};
use byname_security::trust::{TrustPolicy, Validator};
use byname_site::{DiskName, SiteName};
use byname_store::backend::Backend;
use byname_store::backend::posix::Posix;
use byname_store::{Exposure, FileServer, FileServerConfig, MountConfig, MountSource, StoreError};
use byname_transfer::server::SharedSigner;

use crate::directory::DiskDirectory;
use crate::error::DiskError;
use crate::load::LoadMeter;
use crate::machine::{Limits, Machine};
use crate::orders::Orders;
use crate::scan::{Quarantined, Removed, Scan};
use crate::scrub::{Scrub, ScrubConfig, Standing};
use crate::service::{DiskReports, DiskService};
use crate::shown::Shown;
use crate::workers::{Shared, Workers};

/// Reason for which a disk cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum DiskServerError {
    /// The directory.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Its site has a name that none can have.
    #[error("{name} is no name of a site")]
    SiteName {
        /// The name.
        name: String,
    },
    /// The certificate of the site's key that lies in it.
    #[error("{}: the certificate of the site's key is malformed: {source}", path.display())]
    SiteCertificate {
        /// The directory.
        path: PathBuf,
        /// The fault.
        source: CertificateError,
    },
    /// The file server could not be made.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No thread could be started, or the contents not be opened.
    #[error("{}: {source}", path.display())]
    System {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
}

/// A disk's directory, locked by this process, and what was found in it.
pub struct OpenDisk {
    root: PathBuf,
    directory: DiskDirectory,
    scan: Scan,
    site: SiteName,
    name: DiskName,
}

/// Its keys, and the way to its writers and the head.
pub struct DiskServerConfig {
    /// The disk's key.
    pub signer: SharedSigner,
    /// Certificates that are served: those of the disk's key.
    pub certificates: Vec<Vec<u8>>,
    /// The forwarder: the first of these that answers.
    pub endpoints: Vec<Endpoint>,
    /// Where the file server keeps its state if it cannot be on the disk, which is read-only or
    /// full.
    pub other_state: PathBuf,
    /// How fast its contents are read anew.
    pub scrub: ScrubConfig,
}

/// A disk's server, ready to be attached to a forwarder.
pub struct DiskServer {
    /// The server.
    pub server: FileServer,
    /// What the disk does.
    pub reports: DiskReports,
}

impl OpenDisk {
    /// Opens a disk and looks at all that is in it.
    ///
    /// # Errors
    /// [`DiskServerError`].
    pub fn open(root: PathBuf) -> Result<Self, DiskServerError> {
        let (directory, scan) = DiskDirectory::open(&root)?;
        let label = directory.label();
        let text = label.site.to_string();
        let site = SiteName::new(label.site.clone());
        let site = site.ok_or(DiskServerError::SiteName { name: text })?;
        let name = DiskName { place: label.place.clone(), id: label.disk };
        Ok(Self { root, directory, scan, site, name })
    }

    /// The site.
    pub fn site(&self) -> &SiteName {
        &self.site
    }

    /// The disk.
    pub fn name(&self) -> &DiskName {
        &self.name
    }

    /// Contents that are stored.
    pub fn stored(&self) -> usize {
        self.scan.replicas.len()
    }

    /// What was put into quarantine now, or would be if that could be done.
    pub fn quarantined(&self) -> &[Quarantined] {
        &self.scan.quarantined
    }

    /// What was of no use to anybody, and was removed now.
    pub fn removed(&self) -> &Removed {
        &self.scan.removed
    }

    /// True if nothing on the disk can be changed: it serves what it has, and takes nothing.
    pub fn is_read_only(&self) -> bool {
        self.scan.is_read_only
    }

    /// Makes the server, and starts the threads of the disk.
    ///
    /// # Errors
    /// [`DiskServerError`].
    pub fn serve(self, config: DiskServerConfig) -> Result<DiskServer, DiskServerError> {
        let Self { root, directory, scan, site, name } = self;
        let validator = validator(&site, &directory, &root)?;
        let objects = contents((&root, &directory), &scan)?;
        let serve = |state| file_server((objects.clone(), state), (&site, &name), &config);
        let served = match scan.is_read_only {
            true => serve(config.other_state.clone()),
            false => match serve(directory.state()) {
                Err(DiskServerError::Store(error)) if error.is_no_room() => {
                    serve(config.other_state.clone())
                }
                served => served,
            },
        };
        let mut server = served?;
        let (events, told) = channel();
        let orders = Orders {
            site: site.clone(),
            disk: name,
            generation: directory.label().generation,
            signer: config.signer.clone(),
            validator,
        };
        let limits = Limits::default();
        let scrub = Scrub::new(config.scrub, Standing::of_text(&directory.scrub()));
        let machine = Machine::new(limits, &scan, Clock::new().now_ns());
        let shared = Shared {
            load: LoadMeter::default(),
            directory: Arc::new(directory),
            site,
            signer: config.signer,
            endpoints: config.endpoints,
            server: server.handle(),
            new_contents: server.new_contents(0),
            events,
        };
        let workers = Workers::start(&shared, limits.pulls_max);
        let workers = workers.map_err(|source| DiskServerError::System { path: root, source })?;
        let service = DiskService::new(orders, machine, workers, told).scrubbing(scrub);
        let reports = service.reports();
        server.add_service(Box::new(service));
        Ok(DiskServer { server, reports })
    }
}

/// Believes the key that the disk was made with, and what it leads to.
fn validator(
    site: &SiteName,
    directory: &DiskDirectory,
    root: &std::path::Path,
) -> Result<Validator, DiskServerError> {
    let malformed = |source| DiskServerError::SiteCertificate { path: root.to_owned(), source };
    let certificate = Certificate::decode(&directory.site_certificate()?).map_err(malformed)?;
    let mut policy = TrustPolicy::default();
    policy.add_anchor(site.view().to_name(), certificate.key_id());
    let mut validator = Validator::new(policy);
    validator.give_certificate(certificate);
    Ok(validator)
}

/// The contents, but for those that do not fit and could not be moved.
fn contents(
    (root, directory): (&std::path::Path, &DiskDirectory),
    scan: &Scan,
) -> Result<Arc<dyn Backend>, DiskServerError> {
    let failed = |source| DiskServerError::System { path: root.to_owned(), source };
    let state = directory.state().metadata().map_err(failed)?;
    // Contents are as private as whoever serves the disk has made them; all of them are served.
    let exposure = Exposure { private: true, ..Exposure::default() };
    let objects = Posix::new(&directory.objects(), exposure, (state.dev(), state.ino()));
    let objects = objects.map_err(failed)?;
    Ok(match scan.hidden().next() {
        None => Arc::new(objects),
        Some(_) => Arc::new(Shown { objects, hidden: directory.hidden().clone() }),
    })
}

fn file_server(
    (objects, state): (Arc<dyn Backend>, PathBuf),
    (site, name): (&SiteName, &DiskName),
    config: &DiskServerConfig,
) -> Result<FileServer, DiskServerError> {
    let mount = MountConfig {
        prefix: site.view().to_name(),
        source: MountSource::Contents(objects),
        signer: config.signer.clone(),
    };
    let mut server = FileServerConfig::new(vec![mount], state);
    server.also_register = vec![(site.disk(name), config.signer.clone())];
    server.certificates = config.certificates.clone();
    server.hashes_ahead = true;
    Ok(FileServer::new(server)?)
}
