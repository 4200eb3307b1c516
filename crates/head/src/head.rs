//! Making a site's directory, and opening the head of one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use byname_catalog::engine::{Engine, EngineError};
use byname_catalog::{
    Caller, Catalog, CatalogError, Failure, Inconsistency, Policy, Reader, Setup, check,
    initialise, site_of,
};
use byname_packet::{DecodeError, Name, NameRef};
use byname_site::SiteName;
use byname_store::{FileServer, FileServerConfig, MountConfig, MountSource, StoreError};
use byname_transfer::server::SharedSigner;

use crate::contents::Contents;
use crate::engine::{AddressError, ENGINE_FILE, EngineAddress};
use crate::execute::Executor;
use crate::reading::CatalogBackend;
use crate::service::{HeadCounters, HeadService};
use crate::watch::{DiskWatch, Watch};

/// Directory of the file server's records.
const SERVER_DIRECTORY: &str = "server";
/// Name of the head of an embedded engine: there is one, and whoever opens the file is it.
const EMBEDDED_HEAD: &str = "embedded";
/// The lease of that head never ends: the lock on the file says who has it.
const FOREVER_NS: u64 = u64::MAX;
/// Signed packets kept for reuse.
const ANSWERS_MAX: usize = 16_384;
/// Signatures made in a second. The paths of a site need no other work.
const SIGNATURES_PER_S: u64 = 40_000;

/// Reason why a site's directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HeadError {
    /// There is no site in it.
    #[error("there is no site in {}", directory.display())]
    NoSite {
        /// The directory.
        directory: PathBuf,
    },
    /// There is one already.
    #[error("there is a site in {} already", directory.display())]
    SiteExists {
        /// The directory.
        directory: PathBuf,
    },
    /// The directory cannot be made or read.
    #[error("{}: {source}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A name that no site can have.
    #[error("a site cannot be called {name}: it takes 1 to 256 octets of plain components")]
    Name {
        /// The name.
        name: String,
    },
    /// What the engine has for a name is none.
    #[error("the site's name in the catalog is malformed: {0}")]
    StoredName(#[from] DecodeError),
    /// The engine cannot be used.
    #[error(transparent)]
    Engine(#[from] AddressError),
    /// The catalog cannot be read.
    #[error("the catalog in {} cannot be read: {source}", directory.display())]
    Unreadable {
        /// The directory.
        directory: PathBuf,
        /// Why.
        source: EngineError,
    },
    /// The catalog refused.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A row could not be read.
    #[error(transparent)]
    Reading(#[from] Failure),
    /// The file server could not be made.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No thread could be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
}

/// What a new site begins with.
#[derive(Debug, Clone)]
pub struct NewSite {
    /// Its name.
    pub name: Name,
    /// The first operator and his group.
    pub operator: (String, String),
    /// His key: its name, and its certificate.
    pub operator_key: (Name, Vec<u8>),
    /// Where content goes unless a directory says otherwise.
    pub policy: Policy,
}

/// Makes a site in a directory, which is made if it is missing.
///
/// # Errors
/// [`HeadError`]; a site that is there already stays as it is.
pub fn init(
    (directory, address): (&Path, &EngineAddress),
    site: &NewSite,
    unix_ns: u64,
) -> Result<(), HeadError> {
    let name = site_name(site.name.clone())?;
    make_directory(directory)?;
    let engine = address.open(directory)?.alone()?;
    // Interrupted after this there is no site there yet, and whoever makes it goes on.
    address.note(directory)?;
    let (operator, group) = site.operator.clone();
    let (key, certificate) = &site.operator_key;
    let setup = Setup {
        site: name.octets().to_vec(),
        operator,
        group,
        key: Some((key.view().value().to_vec(), certificate.clone())),
        policy: site.policy.clone(),
    };
    initialise(&*engine, &setup, unix_ns).map_err(|error| match error {
        CatalogError::SiteExists => HeadError::SiteExists { directory: directory.to_owned() },
        other => other.into(),
    })
}

/// Refuses an engine that has a site already, before anything is made for a new one.
///
/// # Errors
/// [`HeadError::SiteExists`], or what kept it from being looked at.
pub fn refuse_site((directory, address): (&Path, &EngineAddress)) -> Result<(), HeadError> {
    if *address == EngineAddress::Embedded && !directory.join(ENGINE_FILE).is_file() {
        return Ok(());
    }
    let engine = address.open(directory)?.alone()?;
    let failed = |source| HeadError::Unreadable { directory: directory.to_owned(), source };
    match site_of(&*engine).map_err(failed)? {
        Some(_) => Err(HeadError::SiteExists { directory: directory.to_owned() }),
        None => Ok(()),
    }
}

/// A site's directory, locked by this process.
pub struct Head {
    directory: PathBuf,
    engine: Arc<dyn Engine>,
    site: SiteName,
}

/// A head's server, ready to be attached to a forwarder, and what it counts.
pub struct HeadServer {
    /// The server.
    pub server: FileServer,
    /// Counters of commands.
    pub counters: HeadCounters,
    /// Looks after the disks, once it is started.
    pub watch: DiskWatch,
}

impl Head {
    /// Opens a site's directory.
    ///
    /// # Errors
    /// [`HeadError`]; `Engine` if another process has it open.
    pub fn open(directory: &Path) -> Result<Self, HeadError> {
        let no_site = || HeadError::NoSite { directory: directory.to_owned() };
        Self::open_in(directory, &EngineAddress::of(directory)?.ok_or_else(no_site)?)
    }

    /// Opens a site in an engine, with a directory for what its server keeps.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn open_in(directory: &Path, address: &EngineAddress) -> Result<Self, HeadError> {
        let no_site = || HeadError::NoSite { directory: directory.to_owned() };
        make_directory(directory)?;
        let engine = address.open(directory)?.alone()?;
        let reader = Reader::new(&*engine, &Caller::Head)?;
        let octets = reader.site().map_err(|_| no_site())?;
        drop(reader);
        let site = site_name(NameRef::from_value(&octets)?.to_name())?;
        Ok(Self { directory: directory.to_owned(), engine, site })
    }

    /// The site.
    pub fn site(&self) -> &SiteName {
        &self.site
    }

    /// Compares everything in the catalog with everything else, from one committed state.
    ///
    /// # Errors
    /// [`HeadError`] if it cannot be read.
    pub fn check(&self) -> Result<Vec<Inconsistency>, HeadError> {
        let failed = |source| HeadError::Unreadable { directory: self.directory.clone(), source };
        let rows = self.engine.snapshot().map_err(failed)?;
        check(&*rows).map_err(failed)
    }

    /// Takes the lease and makes the server. `signer` is the site's key, `certificates` those that
    /// lead from it to what readers trust; versions that were replaced stay for `kept_ns`.
    ///
    /// # Errors
    /// [`HeadError`].
    pub fn lead(
        self,
        signer: SharedSigner,
        certificates: Vec<Vec<u8>>,
        (unix_ns, kept_ns): (u64, u64),
    ) -> Result<HeadServer, HeadError> {
        let Self { directory, engine, site } = self;
        let mut catalog = Catalog::lead(engine.clone(), EMBEDDED_HEAD, (unix_ns, FOREVER_NS))?;
        catalog.keep_versions(kept_ns);
        let backend = CatalogBackend::new(site.clone(), engine.clone());
        let mount = MountConfig {
            prefix: site.view().to_name(),
            source: MountSource::Backend(Arc::new(backend)),
            signer: signer.clone(),
        };
        let mut config = FileServerConfig::new(vec![mount], directory.join(SERVER_DIRECTORY));
        config.certificates.clone_from(&certificates);
        config.engine.answers_max = ANSWERS_MAX;
        config.engine.signatures_per_s = SIGNATURES_PER_S;
        let mut server = FileServer::new(config)?;
        let executor = Executor::new(catalog, site.clone(), signer.clone());
        let contents = Contents::new(site.clone(), engine.clone());
        let watch = Watch::new(site, engine, (signer, &certificates), &executor);
        let started = HeadService::start(executor, contents, server.handle());
        let (service, counters, own) = started.map_err(HeadError::Thread)?;
        server.add_service(Box::new(service));
        Ok(HeadServer { server, counters, watch: DiskWatch { watch, own } })
    }
}

fn site_name(name: Name) -> Result<SiteName, HeadError> {
    let text = name.to_string();
    SiteName::new(name).ok_or(HeadError::Name { name: text })
}

/// For its owner alone: the catalog has everybody's names.
pub(crate) fn make_directory(directory: &Path) -> Result<(), HeadError> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|source| HeadError::Directory { directory: directory.to_owned(), source })
}
