//! The blocking interface.

use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use byname_io::{Connection, Endpoint};
use byname_packet::Name;
use byname_security::tree::UNIT_BYTES;
use byname_security::trust::Trusted;
use byname_transfer::discovery::{Discovered, DiscoveryConfig};
use byname_transfer::error::{ProtocolProblem, ReadError};
use byname_transfer::reader::ObjectPlan;
use byname_transfer::versions::VersionMemory;

use crate::config::ClientConfig;
use crate::download::context::{DownloadOptions, FileContext};
use crate::download::file_job::FileJob;
use crate::download::part_file::Target;
use crate::download::progress::{FileReport, Named, Progress};
use crate::download::striped::{self, Rest, SourceReport};
use crate::download::tree::{Filter, TreeReport, TreeSource};
use crate::engine::path::PathReport;
use crate::error::ClientError;
use crate::lookup::list_job::{ListJob, Wanted};
use crate::lookup::listing::Listing;
use crate::lookup::name::LookupJob;
use crate::read::open_file::FileReads;
use crate::read::operation::{RangesRead, ReadRequest};
use crate::read::stream::{ReadJob, Sink};
use crate::session::driver::Driver;

/// A connection to a forwarder, and what is remembered between calls.
pub struct Client {
    driver: Driver,
    config: ClientConfig,
    /// What is asked for to have a directory described.
    wanted: Wanted,
    /// What each source has brought, of the last file that came from several.
    sources: Vec<SourceReport>,
}

impl Client {
    /// Connects to the first of `endpoints` that answers.
    ///
    /// # Errors
    /// [`ClientError::NoForwarder`] with what the last one said, [`ClientError::NoEndpoint`] if the
    /// list is empty.
    pub fn connect(endpoints: &[Endpoint], config: ClientConfig) -> Result<Self, ClientError> {
        Ok(Client::new(Driver::connect(endpoints, &config)?, config))
    }

    /// Uses a connection that exists. If it breaks, calls fail: there is nowhere to reconnect to.
    ///
    /// # Errors
    /// [`ClientError::Io`] if it cannot be watched.
    pub fn with_connection(
        connection: Connection,
        config: ClientConfig,
    ) -> Result<Self, ClientError> {
        Ok(Client::new(Driver::with_connection(connection, &config)?, config))
    }

    fn new(driver: Driver, config: ClientConfig) -> Self {
        Client { driver, config, wanted: Wanted::Either, sources: Vec::new() }
    }

    /// The forwarder, for messages.
    pub fn endpoint(&self) -> &str {
        self.driver.net.label()
    }

    /// What the calls so far have shown about the way to whoever is asked.
    pub fn path(&self) -> PathReport {
        self.driver.path()
    }

    /// The newest versions seen; fill it before the first call to keep it across runs.
    pub fn versions_mut(&mut self) -> &mut VersionMemory {
        &mut self.driver.shared().versions
    }

    /// Gives the client a certificate it would otherwise fetch. It is not trusted by that.
    ///
    /// # Errors
    /// [`CertificateError`](byname_security::cert::CertificateError) if it is none.
    pub fn add_certificate(
        &mut self,
        wire: &[u8],
    ) -> Result<Name, byname_security::cert::CertificateError> {
        self.driver.shared().validator.add_certificate(wire)
    }

    /// The proved description of the current version of a file or directory.
    ///
    /// # Errors
    /// [`ClientError::Read`] in all its variants, [`ClientError::Disconnected`],
    /// [`ClientError::Interrupted`].
    pub fn stat(&mut self, name: &Name) -> Result<Discovered, ClientError> {
        let now_ns = self.driver.clock.now_ns();
        let job = LookupJob::new(name.clone(), self.config.discovery(), now_ns);
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
        let target = Target::at(target, &self.config.disk)?;
        let resolved = self.stripe(name, &target, progress)?;
        let striped_bytes = self.sources.iter().map(|source| source.bytes).sum::<u64>();
        // The last unit counts as a whole one where units are found again.
        let striped_bytes = striped_bytes.next_multiple_of(UNIT_BYTES as u64);
        let mut progress = Rest::new(progress, striped_bytes);
        let progress = Named::new(&mut progress, self.driver.net.asked());
        let context = Rc::new(FileContext::new(&self.config, options, Box::new(progress)));
        let now_ns = self.driver.clock.now_ns();
        let mut job = FileJob::new(context, name.clone(), target, now_ns);
        if let Some(resolved) = resolved {
            job = job.with_resolved(resolved);
        }
        let outcome = self.driver.run_one(job)?.into_outcome();
        self.keep_late();
        outcome.map(|mut report| {
            let found_bytes = report.reused_bytes.min(striped_bytes);
            report.reused_bytes -= found_bytes;
            report.fetched_bytes += found_bytes;
            report
        })
    }

    /// What each source has brought of the last file that came from several at once.
    pub fn sources(&self) -> &[SourceReport] {
        &self.sources
    }

    /// If several sources may be asked, fetches a large new file from all of them to its part
    /// file; the description found on the way.
    fn stripe(
        &mut self,
        name: &Name,
        target: &Target,
        progress: &mut dyn Progress,
    ) -> Result<Option<Discovered>, ClientError> {
        self.sources.clear();
        let endpoints = self.driver.net.endpoints().to_vec();
        let is_limited = self.config.bytes_per_second.is_some();
        if endpoints.len() < 2 || is_limited || target.stat()?.is_some() {
            return Ok(None);
        }
        // Whatever has to be waited for is told by the download itself.
        let config = DiscoveryConfig { being_written_ns: 0, ..self.config.discovery_to_read() };
        let job = LookupJob::new(name.clone(), config, self.driver.clock.now_ns());
        let found = match self.driver.run_one(job)?.into_outcome() {
            Err(ClientError::Read(ReadError::BeingWritten { .. })) => return Ok(None),
            other => other?,
        };
        let Ok(plan) = ObjectPlan::new(&found.metadata, found.trust == Trusted::Insecure) else {
            return Ok(None);
        };
        if found.metadata.is_directory() || !striped::is_worth_it(&plan) {
            return Ok(None);
        }
        self.sources = striped::fetch(&plan, target, &endpoints, &self.config, progress)?;
        Ok(Some(found))
    }

    /// Fetches the packets of files that were whole before their publisher knew the root.
    fn keep_late(&mut self) {
        const PATIENCE_NS: u64 = 10_000_000_000;
        let Some(copies) = self.config.copies.clone() else { return };
        let config = DiscoveryConfig { root_pending_ns: PATIENCE_NS, ..self.config.discovery() };
        for late in copies.take_late() {
            let now_ns = self.driver.clock.now_ns();
            let job = LookupJob::new(late.name.clone(), config, now_ns);
            let found = self.driver.run_one(job).and_then(LookupJob::into_outcome);
            copies.keep_late(&late, found.as_ref().ok());
        }
    }

    /// Fetches a directory with everything below it that `filter` accepts into `target`, which is
    /// made if it is missing. Goes on after failures; the report lists them.
    ///
    /// # Errors
    /// If the directory itself cannot be listed, the disk is full, the connection is lost, or the
    /// caller asked to stop. Files that are in place by then stay there.
    pub fn download_tree<'a>(
        &mut self,
        name: &Name,
        target: &Path,
        options: TreeOptions<'a>,
        progress: &'a mut dyn Progress,
    ) -> Result<TreeReport, ClientError> {
        let mut context = FileContext::new(&self.config, options.files, Box::new(progress));
        context.is_batched = options.files.sync;
        let root = (name.clone(), target.to_owned());
        let filter = options.filter;
        let filter = Box::new(|path: &Path, is_directory: bool| filter(path, is_directory));
        let mut source = TreeSource::new(Rc::new(context), root, filter);
        let at_once = source.at_once();
        let ran = self.driver.run(&mut source, at_once);
        source.place_batch();
        ran?;
        self.keep_late();
        source.into_outcome()
    }

    /// The proved listing of a directory.
    ///
    /// # Errors
    /// As [`Client::stat`], and [`ClientError::ListingTooLarge`].
    pub fn list(&mut self, name: &Name) -> Result<Listing, ClientError> {
        let now_ns = self.driver.clock.now_ns();
        let job = ListJob::new(name.clone(), Wanted::Plain, self.config.discovery(), now_ns);
        match self.driver.run_one(job)?.into_outcome() {
            // A mirror of what was fetched by manifest has no plain listing.
            Err(ClientError::Read(ReadError::NoRoute { .. })) => self.list_described(name),
            outcome => outcome,
        }
    }

    /// The proved content of a directory with everything its publisher says of the entries: a
    /// manifest, or the plain listing of a publisher that has none.
    ///
    /// # Errors
    /// As [`Client::list`].
    pub fn list_described(&mut self, name: &Name) -> Result<Listing, ClientError> {
        let now_ns = self.driver.clock.now_ns();
        let config = self.config.discovery();
        let job = ListJob::new(name.clone(), self.wanted, config, now_ns);
        let listing = self.driver.run_one(job)?.into_outcome()?;
        // What the one publisher has, the next one asked most likely has too.
        let is_manifest = listing.is_manifest();
        self.wanted = if is_manifest { Wanted::Manifest } else { Wanted::Either };
        Ok(listing)
    }

    /// Finds the current version of a file, for [`Client::read_range`].
    ///
    /// # Errors
    /// As [`Client::stat`], and [`ReadError::Protocol`] if it is a directory.
    pub fn open(&mut self, name: &Name) -> Result<FoundFile, ClientError> {
        let now_ns = self.driver.clock.now_ns();
        let config = self.config.discovery_to_read();
        let job = LookupJob::new(name.clone(), config, now_ns);
        let discovered = self.driver.run_one(job)?.into_outcome()?;
        if discovered.metadata.is_directory() {
            let problem = ProtocolProblem::Kind { is_directory: true };
            return Err(ReadError::Protocol { name: name.clone(), problem }.into());
        }
        let plan = ObjectPlan::new(&discovered.metadata, discovered.trust == Trusted::Insecure)?;
        Ok(FoundFile { discovered, plan })
    }

    /// Hands the proved bytes of `range` to `sink`, ascending and without gaps; bytes beyond the
    /// end do not exist and are no error. Returns how many there were.
    ///
    /// # Errors
    /// As [`Client::stat`], [`ReadError::VersionGone`] if the file changed since
    /// [`Client::open`], and [`ClientError::Output`] if the sink fails.
    pub fn read_range<'a>(
        &mut self,
        file: &FoundFile,
        range: Range<u64>,
        sink: &'a mut Sink<'a>,
    ) -> Result<u64, ClientError> {
        self.read(file, range, true, sink)
    }

    /// The same in whatever order the network allows, which needs less memory.
    ///
    /// # Errors
    /// As [`Client::read_range`].
    pub fn read_range_unordered<'a>(
        &mut self,
        file: &FoundFile,
        range: Range<u64>,
        sink: &'a mut Sink<'a>,
    ) -> Result<u64, ClientError> {
        self.read(file, range, false, sink)
    }

    /// Reads many ranges in one go, as [`RemoteFile::read_ranges`](crate::RemoteFile::read_ranges)
    /// does, one behind the other into one buffer.
    ///
    /// # Errors
    /// As [`Client::read_range`], and [`ClientError::TooMany`] above
    /// [`RANGES_MAX`](crate::RANGES_MAX).
    pub fn read_ranges(
        &mut self,
        file: &FoundFile,
        ranges: &[(u64, usize)],
    ) -> Result<RangesRead, ClientError> {
        let request = ReadRequest::owned(Vec::new(), ranges)?;
        let (job, completion) = FileReads::once(file.plan.clone(), self.config.fetch(), request);
        self.driver.run_one(job)?;
        completion.take().expect("the driver hands out jobs that are done")
    }

    /// What a session's thread needs.
    pub(crate) fn into_parts(self) -> (Driver, ClientConfig) {
        (self.driver, self.config)
    }

    fn read<'a>(
        &mut self,
        file: &FoundFile,
        range: Range<u64>,
        is_ordered: bool,
        sink: &'a mut Sink<'a>,
    ) -> Result<u64, ClientError> {
        let job = ReadJob::new(file.plan.clone(), range, is_ordered, self.config.fetch(), sink);
        self.driver.run_one(job)?.into_outcome()
    }
}

/// One version of a file, found and proved, to be read with the client that found it.
#[derive(Clone, Debug)]
pub struct FoundFile {
    /// Its proved description.
    pub discovered: Discovered,
    plan: ObjectPlan,
}

impl FoundFile {
    /// Its size, if announced.
    pub fn size(&self) -> Option<u64> {
        self.plan.size
    }
}

/// How a directory is fetched.
pub struct TreeOptions<'a> {
    /// For each file.
    pub files: DownloadOptions,
    /// Which entries to fetch.
    pub filter: &'a mut Filter<'a>,
}
