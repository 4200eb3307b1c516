//! The façade that runs every call on its caller's thread.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use byname_io::{Connection, Endpoint};
use byname_packet::Name;
use byname_transfer::discovery::Discovered;
use byname_transfer::reader::ObjectPlan;
use byname_transfer::versions::VersionMemory;

use crate::config::{ClientConfig, Stop};
use crate::download::context::DownloadOptions;
use crate::download::progress::{FileReport, NoProgress, Progress, SourceReport};
use crate::download::tree::{Filter, TreeEntry};
use crate::download::tree_report::TreeReport;
use crate::engine::completion::{Completion, Reply};
use crate::engine::path::PathReport;
use crate::error::ClientError;
use crate::lookup::listing::Listing;
use crate::lookup::resolved::ResolvedEntry;
use crate::lookup::stat::Stat;
use crate::read::operation::{RangesRead, ReadRequest};
use crate::read::site_cache::SiteCache;
use crate::read::stream::{Extent, NodeSink, Sink};
use crate::session::command::{
    Call, ClosedFiles, Command, FileCloser, FileId, ListDetail, OpenTarget, Opened, StreamRequest,
};
use crate::session::driver::Driver;
use crate::session::executor::{Executor, ExecutorState, Threads};
use crate::session::files::{OpenFiles, SessionOptions};
use crate::session::stripes::StripeThreads;

/// A connection to a forwarder, and what is remembered between calls. Every call blocks its caller,
/// and runs the same commands as a [`Session`](crate::Session).
pub struct Client {
    driver: Driver,
    config: ClientConfig,
    /// `None` before the first call.
    state: Option<ExecutorState>,
    closed: ClosedFiles,
    /// Ends the calls from now on.
    stop: Stop,
    /// Reports of the sources of the last file that came from several.
    sources: Vec<SourceReport>,
}

impl Client {
    /// Connects to the first of `endpoints` that answers.
    ///
    /// # Errors
    /// [`ClientError::NoForwarder`] with what each of them said, [`ClientError::NoEndpoint`] if the
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
        let (closed, stop) = Default::default();
        Client { driver, config, state: None, closed, stop, sources: Vec::new() }
    }

    /// The forwarder, for messages.
    pub fn endpoint(&self) -> &str {
        self.driver.net.label()
    }

    /// Transport statistics of the current path.
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

    /// From now on calls end with [`ClientError::Interrupted`] when this is requested, too. The
    /// [`stop`](ClientConfig::stop) of the configuration ends them for good.
    pub fn set_stop(&mut self, stop: Stop) {
        self.stop = stop;
    }

    /// Status of the current version of a file or directory.
    ///
    /// # Errors
    /// [`ClientError::Read`] in all its variants, [`ClientError::Disconnected`],
    /// [`ClientError::Interrupted`].
    pub fn stat(&mut self, name: &Name) -> Result<Stat, ClientError> {
        let found = self.lookup(name)?;
        Ok(Stat::new(name.clone(), &found))
    }

    /// The same with the signed packet that proves it to others.
    ///
    /// # Errors
    /// As [`Client::stat`].
    pub fn lookup(&mut self, name: &Name) -> Result<Discovered, ClientError> {
        let name = name.clone();
        self.call(|call| Command::Lookup { name, takes_pending: false, call })
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
        self.sources.clear();
        let (name, target) = (name.clone(), target.to_owned());
        let report = self.watched_call(Box::new(progress), |call| Command::Download {
            name,
            target,
            options,
            call,
        })?;
        self.sources.clone_from(&report.sources);
        Ok(report)
    }

    /// Reports of the sources of the last file that came from several at once.
    pub fn sources(&self) -> &[SourceReport] {
        &self.sources
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
        let (name, target) = (name.clone(), target.to_owned());
        let TreeOptions { files: options, filter } = options;
        let filter = Box::new(|entry: &TreeEntry<'_>| filter(entry));
        self.watched_call(Box::new(progress), |call| Command::DownloadTree {
            name,
            target,
            options,
            filter,
            call,
        })
    }

    /// The verified listing of a directory. Names are enough: where its publisher does not answer,
    /// a mirror's manifest will do.
    ///
    /// # Errors
    /// As [`Client::stat`], and [`ClientError::ListingTooLarge`].
    pub fn list(&mut self, name: &Name) -> Result<Listing, ClientError> {
        self.list_watched(name, &mut NoProgress)
    }

    /// The same, watched.
    ///
    /// # Errors
    /// As [`Client::list`].
    pub fn list_watched(
        &mut self,
        name: &Name,
        progress: &mut dyn Progress,
    ) -> Result<Listing, ClientError> {
        let (name, detail) = (name.clone(), ListDetail::Names);
        self.watched_call(Box::new(progress), |call| Command::List { name, detail, call })
    }

    /// The verified content of a directory with everything its publisher says of the entries: a
    /// manifest, or the plain listing of a publisher that has none.
    ///
    /// # Errors
    /// As [`Client::list`].
    pub fn list_resolved(&mut self, name: &Name) -> Result<Listing, ClientError> {
        self.list_resolved_watched(name, &mut NoProgress)
    }

    /// The same, watched.
    ///
    /// # Errors
    /// As [`Client::list`].
    pub fn list_resolved_watched(
        &mut self,
        name: &Name,
        progress: &mut dyn Progress,
    ) -> Result<Listing, ClientError> {
        let (name, detail) = (name.clone(), ListDetail::Resolved);
        self.watched_call(Box::new(progress), |call| Command::List { name, detail, call })
    }

    /// Opens the current version of a file. It stays that version, however long it is open.
    ///
    /// # Errors
    /// As [`Client::stat`], [`ReadError::Protocol`](byname_transfer::error::ReadError::Protocol) if
    /// it is a directory, and [`ClientError::TooMany`].
    pub fn open(&mut self, name: &Name) -> Result<LocalFile, ClientError> {
        self.open_target(OpenTarget::Name(name.clone()))
    }

    /// Opens the version that a listing has resolved, without asking for it.
    ///
    /// # Errors
    /// As [`Client::open`].
    pub fn open_entry(&mut self, entry: &ResolvedEntry) -> Result<LocalFile, ClientError> {
        self.open_target(OpenTarget::Entry(Box::new(entry.clone())))
    }

    fn open_target(&mut self, target: OpenTarget) -> Result<LocalFile, ClientError> {
        let opened = self.call(|call| Command::Open { target, call })?;
        Ok(LocalFile { stat: Stat::new(opened.name.clone(), &opened.discovered), opened })
    }

    /// Hands the verified bytes of `range` to `sink`, ascending and without gaps; bytes beyond the
    /// end do not exist and are no error. Returns how many there were.
    ///
    /// # Errors
    /// As [`Client::stat`], [`VersionGone`](byname_transfer::error::ReadError::VersionGone) if the
    /// file changed since [`Client::open`], and [`ClientError::Output`] if the sink fails.
    pub fn read_range<'a>(
        &mut self,
        file: &LocalFile,
        range: Range<u64>,
        sink: &'a mut Sink<'a>,
    ) -> Result<u64, ClientError> {
        self.stream(file, (range, true), sink)
    }

    /// The same in whatever order the network allows, which needs less memory.
    ///
    /// # Errors
    /// As [`Client::read_range`].
    pub fn read_range_unordered<'a>(
        &mut self,
        file: &LocalFile,
        range: Range<u64>,
        sink: &'a mut Sink<'a>,
    ) -> Result<u64, ClientError> {
        self.stream(file, (range, false), sink)
    }

    /// Reads a version whose plan is known without discovery, to `sink`, in ascending order:
    /// verified by the root of the plan, from the replicas that it names. A small one that is read
    /// whole, without an older one, is handed out as a whole, and its tree asked for only if it is
    /// not what was signed. Nodes of the tree that came go to `nodes`, each before the bytes that
    /// it proves; one that came after all of those is left out. Returns the number of bytes.
    ///
    /// # Errors
    /// As [`Client::read_range`].
    pub fn fetch<'a>(
        &mut self,
        plan: ObjectPlan,
        extent: Extent,
        (sink, nodes): (&'a mut Sink<'a>, &'a mut NodeSink<'a>),
    ) -> Result<u64, ClientError> {
        let (sink, nodes) = (Box::new(sink), Box::new(nodes));
        self.call(|call| Command::Fetch { plan, extent, sink, nodes, call })
    }

    fn stream<'a>(
        &mut self,
        file: &LocalFile,
        (range, is_ordered): (Range<u64>, bool),
        sink: &'a mut Sink<'a>,
    ) -> Result<u64, ClientError> {
        let file = self.id_of(file)?;
        let request = StreamRequest { file, range, is_ordered, sink: Box::new(sink) };
        self.call(|call| Command::Stream { request, call })
    }

    /// Reads many ranges in one go, as [`RemoteFile::read_ranges`](crate::RemoteFile::read_ranges)
    /// does, one behind the other into one buffer.
    ///
    /// # Errors
    /// As [`Client::read_range`], and [`ClientError::TooMany`] above
    /// [`RANGES_MAX`](crate::RANGES_MAX).
    pub fn read_ranges(
        &mut self,
        file: &LocalFile,
        ranges: &[(u64, usize)],
    ) -> Result<RangesRead, ClientError> {
        let request = ReadRequest::owned(Vec::new(), ranges)?;
        let file = self.id_of(file)?;
        self.call(|Call { reply, .. }| Command::Read { file, request, reply })
    }

    /// Parts for a session's thread.
    pub(crate) fn into_parts(self) -> (Driver, ClientConfig) {
        (self.driver, self.config)
    }

    fn call<'a, T>(
        &mut self,
        make: impl FnOnce(Call<'a, T>) -> Command<'a>,
    ) -> Result<T, ClientError> {
        self.watched_call(Box::new(NoProgress), make)
    }

    /// Runs one command to its end.
    fn watched_call<'a, T>(
        &mut self,
        events: Box<dyn Progress + 'a>,
        make: impl FnOnce(Call<'a, T>) -> Command<'a>,
    ) -> Result<T, ClientError> {
        let mut state = match self.state.take() {
            Some(state) => state,
            None => self.begin_state()?,
        };
        state.files.close_returned();
        let mut executor = Executor::new(state);
        let completion = Completion::new();
        let (reply, stop) = (Reply::new(Arc::clone(&completion)), self.stop.clone());
        executor.push(make(Call { reply, stop, events }));
        let ran = self.driver.run(&mut executor, usize::MAX);
        if ran.is_err() {
            executor.give_up();
        }
        self.state = Some(executor.into_state());
        match (completion.take(), ran) {
            (Some(answer), _) => answer,
            (None, Err(error)) => Err(error),
            (None, Ok(())) => Err(ClientError::Interrupted),
        }
    }

    fn begin_state(&mut self) -> Result<ExecutorState, ClientError> {
        let (config, options) = (self.config.clone(), SessionOptions::CALLERS_THREAD);
        let closer = FileCloser::Caller(Arc::clone(&self.closed));
        let mut files = OpenFiles::new(options, config.fetch_begun(), closer);
        files.set_site_cache(SiteCache::of(&config, self.driver.net.waker()?));
        let stripes = StripeThreads::waking(&mut self.driver)?;
        let stripes = stripes.map(StripeThreads::into_runner);
        // Its caller waits for the disk in any case, so the disk gets no thread and no copy.
        let threads = Threads { stripes, disk: None };
        Ok(ExecutorState::new(config, files, self.driver.net.source_names(), threads))
    }

    /// The number of a file that this client has opened.
    fn id_of(&self, file: &LocalFile) -> Result<FileId, ClientError> {
        let guard = &file.opened.guard;
        guard.is_of(&self.closed).then_some(guard.id).ok_or(ClientError::OtherClient)
    }
}

/// One version of a file, to be read with the client that opened it. It is closed when dropped.
pub struct LocalFile {
    stat: Stat,
    opened: Opened,
}

impl LocalFile {
    /// Its status.
    pub fn stat(&self) -> &Stat {
        &self.stat
    }

    /// Its size, if announced.
    pub fn size(&self) -> Option<u64> {
        self.opened.size
    }
}

/// Options of the download of a directory.
pub struct TreeOptions<'a> {
    /// For each file.
    pub files: DownloadOptions,
    /// Decides which entries to fetch.
    pub filter: &'a mut Filter<'a>,
}
