//! Making a site's directory, and opening the head of one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;

use byname_catalog::engine::{Engine, EngineError};
use byname_catalog::{
    Caller, CatalogError, Failure, Inconsistency, Policy, Reader, Setup, check, initialise, mend,
    site_of,
};
use byname_io::Clock;
use byname_packet::{DecodeError, Name, NameRef};
use byname_site::SiteName;
use byname_store::{FileServer, FileServerConfig, MountConfig, MountSource, StoreError};
use byname_transfer::server::SharedSigner;

use crate::audit::AuditFiles;
use crate::contents::Contents;
use crate::counters::HeadCounters;
use crate::engine::{AddressError, ENGINE_FILE, EngineAddress};
use crate::losses::Losses;
use crate::pulse::Pulses;
use crate::reading::CatalogBackend;
use crate::repair::RepairConfig;
use crate::service::{Handover, HeadService, leave};
use crate::succession::Succession;
use crate::term::{Candidate, Clocks, FOREVER_NS, OnRole};
use crate::traffic::Rates;
use crate::watch::DiskWatch;

/// Mark of a catalog that was made to be looked at.
pub(crate) const LOOK_FILE: &str = "for-a-look-only";
/// Directory of the file server's records.
const SERVER_DIRECTORY: &str = "server";
/// Name of the head of an embedded engine: there is one, and whoever opens the file is it.
const EMBEDDED_HEAD: &str = "embedded";
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
    /// It was made of a backup without a look at the disks.
    #[error("the catalog in {} is for a look only: no disk was asked", directory.display())]
    LookOnly {
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

/// What a head leads with.
pub struct LeadConfig {
    /// Now, since 1970.
    pub unix_ns: u64,
    /// Time for which versions stay that were replaced.
    pub kept_ns: u64,
    /// Share of a space's room that one user may reserve, in percent.
    pub reserved_percent: u8,
    /// Time after which another head takes a lease that is not renewed.
    pub lease_ns: u64,
    /// How replicas are made elsewhere.
    pub repair: RepairConfig,
    /// Commands and questions that may be sent a second.
    pub rates: Rates,
    /// Called at each change, if there may be other heads.
    pub on_role: OnRole,
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

/// A site's directory, and its engine: for this process alone, or beside other heads.
pub struct Head {
    directory: PathBuf,
    engine: Arc<dyn Engine>,
    has_others: bool,
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
    /// The catalog, for when the server has ended.
    pub rest: CatalogRest,
    /// Hands the lease over before that, if there may be other heads.
    pub handover: Option<Handover>,
}

/// A catalog that is not asked any more.
pub struct CatalogRest(Arc<dyn Engine>);

impl CatalogRest {
    /// Leaves it so that the next start need not read all of it.
    pub fn begin(&self) {
        leave(&*self.0);
    }
}

impl Head {
    /// Opens a site's directory, with an engine that nobody else has.
    ///
    /// # Errors
    /// [`HeadError`]; `Engine` if another process has it open.
    pub fn open(directory: &Path) -> Result<Self, HeadError> {
        let no_site = || HeadError::NoSite { directory: directory.to_owned() };
        let address = EngineAddress::of(directory)?.ok_or_else(no_site)?;
        Self::of(directory, (address.open(directory)?.alone()?, false))
    }

    /// Opens a site to serve it, if its engine allows that beside other heads. The engine is that
    /// of the directory, unless another is given.
    ///
    /// # Errors
    /// [`HeadError`]; `Engine` if another process has it for itself.
    pub fn open_to_serve(
        directory: &Path,
        address: Option<&EngineAddress>,
    ) -> Result<Self, HeadError> {
        let no_site = || HeadError::NoSite { directory: directory.to_owned() };
        let address = match address {
            Some(address) => address.clone(),
            None => EngineAddress::of(directory)?.ok_or_else(no_site)?,
        };
        make_directory(directory)?;
        if directory.join(LOOK_FILE).exists() {
            return Err(HeadError::LookOnly { directory: directory.to_owned() });
        }
        Self::of(directory, address.open(directory)?.for_heads()?)
    }

    fn of(
        directory: &Path,
        (engine, has_others): (Arc<dyn Engine>, bool),
    ) -> Result<Self, HeadError> {
        let no_site = || HeadError::NoSite { directory: directory.to_owned() };
        let reader = Reader::new(&*engine, &Caller::Head)?;
        let octets = reader.site().map_err(|_| no_site())?;
        drop(reader);
        let site = site_name(NameRef::from_value(&octets)?.to_name())?;
        Ok(Self { directory: directory.to_owned(), engine, has_others, site })
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

    /// Mends what contradicts itself in the catalog, or says what that would be if `is_dry`.
    ///
    /// # Errors
    /// [`HeadError`] if rows cannot be read from which others follow.
    pub fn mend(&self, now_ns: u64, is_dry: bool) -> Result<Vec<Inconsistency>, HeadError> {
        Ok(mend(&*self.engine, now_ns, is_dry)?)
    }

    /// Makes the server, and takes the lease unless another head has it; then it answers what is
    /// read, and leads when the lease is not renewed. `signer` is the site's key, `certificates`
    /// those that lead from it to what readers trust.
    ///
    /// # Errors
    /// [`HeadError`].
    pub fn lead(
        self,
        signer: SharedSigner,
        certificates: Vec<Vec<u8>>,
        config: LeadConfig,
    ) -> Result<HeadServer, HeadError> {
        let Self { directory, engine, has_others, site } = self;
        let (name, lease_ns) = match has_others {
            true => (format!("{:016x}", byname_face::random_u64()), config.lease_ns),
            // The lock on the file says who has it.
            false => (EMBEDDED_HEAD.to_owned(), FOREVER_NS),
        };
        let (terms, to_watch) = channel();
        let counters = HeadCounters::default();
        let mut candidate = Candidate {
            engine: engine.clone(),
            site: site.clone(),
            signer: signer.clone(),
            certificates: certificates.clone(),
            name,
            kept_ns: config.kept_ns,
            reserved_percent: config.reserved_percent,
            repair: config.repair,
            rates: config.rates,
            audit: Arc::new(AuditFiles::new(&directory)),
            counters: counters.clone(),
            lease_ns,
            succession: Succession::new(lease_ns),
            losses: Losses::default(),
            clock: Clock::new(),
            on_role: if has_others { config.on_role } else { Box::new(|_| {}) },
            pulses: has_others.then(|| Arc::new(Pulses::new(lease_ns))),
            terms,
        };
        let now_ns = candidate.clock.now_ns();
        let term = match candidate.try_lead(Clocks { unix_ns: config.unix_ns, now_ns }) {
            // Another head came first.
            Err(_) if has_others => None,
            term => term?,
        };
        let backend = CatalogBackend::new(site.clone(), engine.clone()).shared(has_others);
        let mount = MountConfig {
            prefix: site.view().to_name(),
            source: MountSource::Backend(Arc::new(backend)),
            signer: signer.clone(),
        };
        let mut serving = FileServerConfig::new(vec![mount], directory.join(SERVER_DIRECTORY));
        serving.certificates = certificates;
        // A head that was stopped is asked nothing any more when another one leads.
        serving.registered_ns = has_others.then_some(lease_ns);
        serving.engine.answers_max = ANSWERS_MAX;
        serving.engine.signatures_per_s = SIGNATURES_PER_S;
        let mut server = FileServer::new(serving)?;
        let rest = CatalogRest(engine.clone());
        let contents = Contents::new(site, engine);
        let started = HeadService::start(candidate, term, contents, server.handle());
        let (service, handover) = started.map_err(HeadError::Thread)?;
        server.add_service(Box::new(service));
        let (watch, handover) = (DiskWatch { terms: to_watch }, has_others.then_some(handover));
        Ok(HeadServer { server, counters, watch, rest, handover })
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
