//! One user's ways: opens links as that user would have them opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use byname_cache::{Cache, CacheConfig};
use byname_client::{Client, ClientConfig, Copies, SessionOptions, Stop};
use byname_io::Endpoint;
use byname_keychain::TrustStore;
use byname_packet::Name;
use byname_security::key::KeyId;
use byname_security::trust::{TrustPolicy, UnknownKeys};
use byname_transfer::congestion::Congestion;
use byname_transfer::freshness::Freshness;

use crate::endpoints;
use crate::environment::Environment;
use crate::error::ProfileError;
use crate::link::Link;
use crate::paths::Paths;
use crate::remotes::{self, Remotes};
use crate::seen::SeenVersions;
use crate::session::Session;
use crate::settings::{ConfigError, Settings};
use crate::trust;

/// Wishes of one caller. Each goes before the configuration; what is `None` is as configured.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The forwarder to ask, and no other.
    pub connect: Option<Endpoint>,
    /// Forwarders or servers to read from: the next is asked when one is gone, silent or lies.
    pub via: Vec<Endpoint>,
    /// Keys that nobody has said to trust.
    pub unknown_keys: UnknownKeys,
    /// Freshness that descriptions must have.
    pub freshness: Freshness,
    /// Silence that counts as failure.
    pub timeout: Option<Duration>,
    /// Retransmissions of one Interest.
    pub retries: Option<u32>,
    /// Files fetched side by side.
    pub transfers: Option<u64>,
    /// Octets per second at most; 0 for no limit.
    pub bytes_per_second: Option<u64>,
    /// Octets per second, over a minute, below which a transfer fails.
    pub min_bytes_per_second: u64,
    /// Congestion control, which decides how many requests are in flight.
    pub congestion: Congestion,
    /// Forwarders on the path are asked where answers come from.
    pub traces: bool,
    /// Keep the publisher's packets with what is fetched.
    pub keeps_packets: bool,
    /// Read through the site cache.
    pub cache: Option<bool>,
    /// Much may be read: shared memory is worth its setting up.
    pub is_bulk: bool,
    /// Ends every call early when requested.
    pub stop: Stop,
}

/// The endpoints of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// In order of preference.
    pub list: Vec<Endpoint>,
    /// All of them may be asked for the same, not only the first that answers.
    pub asks_all: bool,
}

/// Configuration, trust and state of one user.
#[derive(Debug, Clone)]
pub struct Profile {
    paths: Paths,
    environment: Environment,
    settings: Settings,
}

impl Profile {
    /// The profile of the user who runs this process, as its environment says now.
    ///
    /// # Errors
    /// [`ConfigError`] with file, line and option, or the variable.
    pub fn load() -> Result<Self, ConfigError> {
        let environment = Environment::of_process();
        Self::at(Paths::new(&environment), environment)
    }

    /// The profile with these paths and variables.
    ///
    /// # Errors
    /// As [`Profile::load`].
    pub fn at(paths: Paths, environment: Environment) -> Result<Self, ConfigError> {
        let settings = Settings::load(&paths, &environment)?;
        Ok(Self { paths, environment, settings })
    }

    /// The profile with these paths and variables, and the options of one file in place of the
    /// user's and the system's.
    ///
    /// # Errors
    /// As [`Profile::load`], and when the file is not there.
    pub fn with_file(
        mut paths: Paths,
        environment: Environment,
        file: &Path,
    ) -> Result<Self, ConfigError> {
        let settings = Settings::load_only(file, &environment)?;
        paths.config_file = file.to_owned();
        Ok(Self { paths, environment, settings })
    }

    /// A profile with everything below one directory, and nothing of the system's configuration or
    /// the environment.
    ///
    /// # Errors
    /// As [`Profile::load`].
    pub fn below(directory: &Path) -> Result<Self, ConfigError> {
        let (paths, environment) = (Paths::below(directory), Environment::default());
        let settings = Settings::load_files(&[&paths.config_file], &environment)?;
        Ok(Self { paths, environment, settings })
    }

    /// Files and directories.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Options with their values.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What a user means by a link, a name, or a bookmark with a path (`lab:run7/x`).
    ///
    /// # Errors
    /// [`ProfileError::Link`] if it is none of these, [`ProfileError::Remote`].
    pub fn link(&self, text: &str) -> Result<Link, ProfileError> {
        match remotes::split(text) {
            Some((name, path)) => Ok(self.remotes().resolve(name, path)??),
            None => Ok(Link::from_user(text)?),
        }
    }

    /// The user's bookmarks.
    pub fn remotes(&self) -> Remotes {
        Remotes::new(&self.paths.remotes)
    }

    /// The forwarders to try when neither caller nor link names one: the configured one, or the
    /// usual places. With `is_bulk` shared memory comes first where it is offered.
    ///
    /// # Errors
    /// [`ProfileError::Endpoint`] for a configured address that is none, [`ProfileError::Paths`].
    pub fn forwarders(&self, is_bulk: bool) -> Result<Vec<Endpoint>, ProfileError> {
        match self.settings.text("client.connect") {
            Some(uri) => Ok(vec![uri.parse()?]),
            None => Ok(endpoints::usual(&self.environment, &self.paths, is_bulk)?),
        }
    }

    /// The endpoints to read a link from: the caller's, else the link's, else the forwarders.
    ///
    /// # Errors
    /// As [`Profile::forwarders`], also for an address in the link.
    pub fn endpoints(&self, link: &Link, options: &OpenOptions) -> Result<Endpoints, ProfileError> {
        let asks_all = true;
        if let Some(endpoint) = &options.connect {
            return Ok(Endpoints { list: vec![endpoint.clone()], asks_all: false });
        }
        if !options.via.is_empty() {
            return Ok(Endpoints { list: options.via.clone(), asks_all });
        }
        if !link.via.is_empty() {
            let list = link.via.iter().map(|uri| uri.parse()).collect::<Result<_, _>>()?;
            return Ok(Endpoints { list, asks_all });
        }
        Ok(Endpoints { list: self.forwarders(options.is_bulk)?, asks_all: false })
    }

    /// Whose signatures count for this user.
    ///
    /// # Errors
    /// [`ProfileError::Keychain`] or [`ProfileError::TrustStore`] if they cannot be read.
    pub fn trust_policy(&self, unknown_keys: UnknownKeys) -> Result<TrustPolicy, ProfileError> {
        trust::policy(&self.paths, unknown_keys)
    }

    /// Trusts a key for the names under `identity` from now on.
    ///
    /// # Errors
    /// [`ProfileError::TrustStore`] if it cannot be stored.
    pub fn trust(&self, identity: &Name, key: KeyId) -> Result<(), ProfileError> {
        let mut store = TrustStore::open(&self.paths.trust)?;
        store.add_anchor(identity.clone(), key)?;
        Ok(())
    }

    /// Configuration of a client that reads `link`: the link's key counts for its name.
    ///
    /// # Errors
    /// As [`Profile::trust_policy`].
    pub fn client_config(
        &self,
        link: &Link,
        options: &OpenOptions,
    ) -> Result<ClientConfig, ProfileError> {
        let mut trust = self.trust_policy(options.unknown_keys)?;
        if let Some(key) = link.key {
            trust.add_anchor(link.name.clone(), key);
        }
        let number = |name| self.settings.number(name);
        let bytes_per_second = options.bytes_per_second.unwrap_or(number("client.bwlimit"));
        let transfers = options.transfers.unwrap_or(number("client.transfers"));
        let retries = u32::try_from(number("client.retries")).unwrap_or(u32::MAX);
        let timeout = Duration::from_secs(number("client.timeout_s").max(1));
        Ok(ClientConfig {
            trust,
            timeout: options.timeout.unwrap_or(timeout),
            retries: options.retries.unwrap_or(retries),
            transfers: usize::try_from(transfers).unwrap_or(usize::MAX).max(1),
            bytes_per_second: (bytes_per_second > 0).then_some(bytes_per_second),
            min_bytes_per_second: options.min_bytes_per_second,
            congestion: options.congestion,
            traces: options.traces,
            freshness: options.freshness,
            copies: options.keeps_packets.then(|| Arc::new(self.copies())),
            cache: self.wants_cache(options).then(|| self.cache_to_read()),
            stop: options.stop.clone(),
            ..ClientConfig::default()
        })
    }

    /// The place for publishers' packets that belong to copies.
    pub fn copies(&self) -> Copies {
        Copies::new(self.paths.copies.clone())
    }

    fn wants_cache(&self, options: &OpenOptions) -> bool {
        options.cache.unwrap_or(self.settings.switch("cache.enabled"))
    }

    /// The site cache that is read through: the machine's service, if there is one, or the user's.
    pub fn cache_to_read(&self) -> Cache {
        let own = self.cache();
        match self.settings.text("cache.service") {
            Some(socket) => {
                Cache::new(CacheConfig { service: Some(socket.into()), ..own.config().clone() })
            }
            None => own,
        }
    }

    /// The user's own site cache.
    pub fn cache(&self) -> Cache {
        let mib = |name| self.settings.number(name).saturating_mul(1 << 20);
        let configured = self.settings.text("cache.directory").map(PathBuf::from);
        let directory = configured.unwrap_or_else(|| self.paths.cache.clone());
        Cache::new(CacheConfig {
            copies: self.paths.copies.clone(),
            bytes_max: mib("cache.size_mib"),
            files_max: self.settings.number("cache.files"),
            free_bytes_min: mib("cache.free_mib"),
            ..CacheConfig::new(directory)
        })
    }

    /// The memory of versions seen.
    pub fn seen_versions(&self) -> SeenVersions {
        SeenVersions::new(&self.paths.state)
    }

    /// Opens a link for reading from any number of threads.
    ///
    /// # Errors
    /// [`ProfileError`]; it names the file, address or option at fault.
    pub fn open(&self, link: &Link) -> Result<Session, ProfileError> {
        self.open_with(link, &OpenOptions::default(), SessionOptions::default())
    }

    /// [`open`](Profile::open) as one caller wishes.
    ///
    /// # Errors
    /// As [`Profile::open`].
    pub fn open_with(
        &self,
        link: &Link,
        options: &OpenOptions,
        memory: SessionOptions,
    ) -> Result<Session, ProfileError> {
        let endpoints = self.endpoints(link, options)?;
        let config = self.client_config(link, options)?;
        let cache = config.cache.clone();
        let (client, seen) = self.connect(&endpoints, config)?;
        let client = byname_client::Session::start(client, memory)?;
        Ok(Session::new(link.name.clone(), client, seen, cache))
    }

    /// Connects to the first of `endpoints` that answers, knowing the versions seen; also returns
    /// their file, to [`save`](SeenVersions::save) what was learned.
    ///
    /// # Errors
    /// [`ProfileError::Client`] if nobody answers, [`ProfileError::Seen`].
    pub fn connect(
        &self,
        endpoints: &Endpoints,
        mut config: ClientConfig,
    ) -> Result<(Client, SeenVersions), ProfileError> {
        config.asks_all = endpoints.asks_all;
        let mut client = Client::connect(&endpoints.list, config)?;
        let mut seen = self.seen_versions();
        seen.load(client.versions_mut())?;
        Ok((client, seen))
    }
}
