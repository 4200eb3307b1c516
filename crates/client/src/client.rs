//! The blocking interface.

use std::cell::RefCell;
use std::path::Path;

use byname_io::{Clock, Connection, Endpoint};
use byname_packet::Name;
use byname_security::trust::Validator;
use byname_transfer::discovery::Discovered;
use byname_transfer::flow::Flow;
use byname_transfer::versions::VersionMemory;

use crate::config::ClientConfig;
use crate::driver::{Driver, Shared};
use crate::error::ClientError;
use crate::file_job::{DownloadOptions, FileContext, FileJob};
use crate::job::DiscoveryJob;
use crate::net::{ConnectFailed, Net};
use crate::part_file::Target;
use crate::progress::{FileReport, Progress};

/// A connection to a forwarder, and what is remembered between calls.
pub struct Client {
    driver: Driver,
    config: ClientConfig,
}

impl Client {
    /// Connects to the first of `endpoints` that answers.
    ///
    /// # Errors
    /// [`ClientError::NoForwarder`] with what the last one said, [`ClientError::NoEndpoint`] if the
    /// list is empty.
    pub fn connect(endpoints: &[Endpoint], config: ClientConfig) -> Result<Self, ClientError> {
        let mut tried = Vec::new();
        let mut last = None;
        for endpoint in endpoints {
            tried.push(endpoint.to_string());
            match Net::connect(endpoint, config.connect_timeout) {
                Ok(net) => return Ok(Client::new(net, config)),
                Err(ConnectFailed::Io(error)) => return Err(error.into()),
                Err(ConnectFailed::Connect(error)) => last = Some(error),
            }
        }
        match last {
            Some(source) => Err(ClientError::NoForwarder { tried, source }),
            None => Err(ClientError::NoEndpoint { tried }),
        }
    }

    /// Uses a connection that exists. If it breaks, calls fail: there is nowhere to reconnect to.
    ///
    /// # Errors
    /// [`ClientError::Io`] if it cannot be watched.
    pub fn with_connection(
        connection: Connection,
        config: ClientConfig,
    ) -> Result<Self, ClientError> {
        Ok(Client::new(Net::new(connection)?, config))
    }

    fn new(net: Net, config: ClientConfig) -> Self {
        let clock = Clock::new();
        let mut flow = Flow::default();
        if let Some(bytes_per_second) = config.bytes_per_second {
            flow.limit_rate(bytes_per_second, clock.now_ns());
        }
        let validator = Validator::new(config.trust.clone());
        let shared = Shared { clock, flow, validator, versions: VersionMemory::default() };
        let driver = Driver::new(net, shared, config.stop.clone(), config.timeout);
        Client { driver, config }
    }

    /// The forwarder, for messages.
    pub fn endpoint(&self) -> &str {
        self.driver.net.label()
    }

    /// The newest versions seen; fill it before the first call to keep it across runs.
    pub fn versions_mut(&mut self) -> &mut VersionMemory {
        &mut self.driver.shared.versions
    }

    /// Gives the client a certificate it would otherwise fetch. It is not trusted by that.
    ///
    /// # Errors
    /// [`CertificateError`](byname_security::cert::CertificateError) if it is none.
    pub fn add_certificate(
        &mut self,
        wire: &[u8],
    ) -> Result<Name, byname_security::cert::CertificateError> {
        self.driver.shared.validator.add_certificate(wire)
    }

    /// The proved description of the current version of a file or directory.
    ///
    /// # Errors
    /// [`ClientError::Read`] in all its variants, [`ClientError::Disconnected`],
    /// [`ClientError::Interrupted`].
    pub fn stat(&mut self, name: &Name) -> Result<Discovered, ClientError> {
        let now_ns = self.driver.shared.clock.now_ns();
        let job = DiscoveryJob::new(name.clone(), self.config.discovery(), now_ns);
        self.driver.run_one(job)?.into_outcome()
    }

    /// Fetches a file to `target`, resuming what an earlier run has left.
    ///
    /// # Errors
    /// As [`Client::stat`], and what the local disk says. Nothing that looks whole is left.
    pub fn download(
        &mut self,
        name: &Name,
        target: &Path,
        options: DownloadOptions,
        progress: &mut dyn Progress,
    ) -> Result<FileReport, ClientError> {
        let target = Target::at(target)?;
        let context =
            FileContext { config: &self.config, options, progress: RefCell::new(progress) };
        let now_ns = self.driver.shared.clock.now_ns();
        let job = FileJob::new(&context, name.clone(), target, now_ns);
        self.driver.run_one(job)?.into_outcome()
    }
}
