//! The façade for many threads and tasks: handles of an engine on a thread of its own.
//!
//! Every call exists twice, blocking and as a [`Pending`] answer, which is a future that needs no
//! particular executor and also can be waited for. Dropping a `Pending` takes the call back.
//! Blocking reads lend their buffers to the engine, which copies verified bytes from the packet
//! straight into them.

use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use byname_io::loan::{Loan, lend};
use byname_packet::Name;
use byname_security::cert::CertificateError;
use byname_transfer::discovery::Discovered;
use byname_transfer::versions::VersionMemory;

use crate::download::context::DownloadOptions;
use crate::download::progress::FileReport;
use crate::download::tree::TreeEntry;
use crate::download::tree_report::TreeReport;
use crate::engine::completion::{Completion, Reply};
use crate::engine::path::PathReport;
use crate::engine::shared::Shared;
use crate::error::ClientError;
use crate::lookup::listing::Listing;
use crate::lookup::resolved::ResolvedEntry;
use crate::lookup::stat::Stat;
use crate::read::nowait::CachedRead;
use crate::read::operation::{RangesRead, ReadRequest, check_count};
use crate::read::site_cache::SiteCache;
use crate::session::client::Client;
use crate::session::command::{
    Call, Command, CommandQueue, EngineHandle, FileCloser, ListDetail, OpenTarget, Opened,
    SentCommand, StreamRequest,
};
use crate::session::disk_threads::DiskThreads;
use crate::session::executor::{Executor, ExecutorState, Threads};
use crate::session::files::{OpenFiles, SessionOptions};
use crate::session::pending::Pending;
use crate::session::stripes::StripeThreads;
use crate::session::thread::QueuedExecutor;

/// A client that any number of threads and tasks use at once. Clones are the same session.
///
/// Calls with `_later` give a [`Pending`], which can be watched and stopped alone.
#[derive(Clone, Debug)]
pub struct Session {
    engine: Arc<EngineHandle>,
}

impl Session {
    /// Moves a client to a thread of its own, which ends with the last handle.
    ///
    /// # Errors
    /// [`ClientError::Io`] if the thread or its wake-up cannot be made.
    pub fn start(client: Client, options: SessionOptions) -> Result<Self, ClientError> {
        let (mut driver, config) = client.into_parts();
        let waker = driver.net.waker()?;
        let endpoint = driver.net.label().to_owned();
        let queue = Arc::new(CommandQueue::new(waker, endpoint, config.stop.clone()));
        let engine = Arc::new(EngineHandle::new(Arc::clone(&queue)));
        let closer = FileCloser::Engine(Arc::downgrade(&engine));
        let thread = std::thread::Builder::new().name("byname-client".to_owned());
        let stripes = StripeThreads::waking(&mut driver)?;
        let (disk_waker, cache_waker) = (driver.net.waker()?, driver.net.waker()?);
        let work = move || {
            let mut files = OpenFiles::new(options, config.fetch_begun(), closer);
            files.set_site_cache(SiteCache::of(&config, cache_waker));
            let names = driver.net.source_names();
            let stripes = stripes.map(StripeThreads::into_runner);
            let threads = Threads { stripes, disk: Some(Rc::new(DiskThreads::new(disk_waker))) };
            let state = ExecutorState::new(config, files, names, threads);
            QueuedExecutor::new(Executor::new(state), queue).run(driver);
        };
        thread.spawn(work).map_err(ClientError::Thread)?;
        Ok(Session { engine })
    }

    /// Status of the current version of a file or directory.
    ///
    /// # Errors
    /// As [`Client::stat`].
    pub fn stat(&self, name: &Name) -> Result<Stat, ClientError> {
        self.stat_later(name).wait()
    }

    /// [`stat`](Session::stat) without waiting.
    pub fn stat_later(&self, name: &Name) -> Pending<Stat> {
        self.stat_as(name, false)
    }

    /// [`stat`](Session::stat) without waiting, also not for the publisher to compute the root of a
    /// large file: then [`Stat::is_root_pending`] is set.
    pub fn stat_unhashed_later(&self, name: &Name) -> Pending<Stat> {
        self.stat_as(name, true)
    }

    fn stat_as(&self, name: &Name, takes_pending: bool) -> Pending<Stat> {
        let (name, shown) = (name.clone(), name.clone());
        let make = move |call| Command::Lookup { name, takes_pending, call };
        self.call(make, move |found| Stat::new(shown, &found))
    }

    /// The same with the signed packet that proves it to others.
    ///
    /// # Errors
    /// As [`Client::stat`].
    pub fn lookup(&self, name: &Name) -> Result<Discovered, ClientError> {
        self.lookup_later(name).wait()
    }

    /// [`lookup`](Session::lookup) without waiting.
    pub fn lookup_later(&self, name: &Name) -> Pending<Discovered> {
        let name = name.clone();
        let make = move |call| Command::Lookup { name, takes_pending: false, call };
        self.call(make, |found| found)
    }

    /// The verified listing of a directory.
    ///
    /// # Errors
    /// As [`Client::list`].
    pub fn list(&self, name: &Name) -> Result<Listing, ClientError> {
        self.list_later(name).wait()
    }

    /// [`list`](Session::list) without waiting.
    pub fn list_later(&self, name: &Name) -> Pending<Listing> {
        self.list_as(name, ListDetail::Names)
    }

    /// The verified content of a directory with all that a manifest says of its entries, or the
    /// plain listing of a publisher that has no manifests.
    ///
    /// # Errors
    /// As [`Client::list_resolved`].
    pub fn list_resolved(&self, name: &Name) -> Result<Listing, ClientError> {
        self.list_resolved_later(name).wait()
    }

    /// [`list_resolved`](Session::list_resolved) without waiting.
    pub fn list_resolved_later(&self, name: &Name) -> Pending<Listing> {
        self.list_as(name, ListDetail::Resolved)
    }

    fn list_as(&self, name: &Name, detail: ListDetail) -> Pending<Listing> {
        let name = name.clone();
        self.call(move |call| Command::List { name, detail, call }, |listing| listing)
    }

    /// Fetches a file to `target`, resuming what an earlier run has left. Reads that somebody waits
    /// for pass it.
    ///
    /// # Errors
    /// As [`Client::download`]. Nothing that looks whole is left.
    pub fn download(
        &self,
        name: &Name,
        target: &Path,
        options: DownloadOptions,
    ) -> Result<FileReport, ClientError> {
        self.download_later(name, target, options).wait()
    }

    /// [`download`](Session::download) without waiting. What has come when it is dropped is left
    /// for the next run.
    pub fn download_later(
        &self,
        name: &Name,
        target: &Path,
        options: DownloadOptions,
    ) -> Pending<FileReport> {
        let (name, target) = (name.clone(), target.to_owned());
        let make = move |call| Command::Download { name, target, options, call };
        self.call(make, |report| report)
    }

    /// Fetches a directory with everything below it that `filter` accepts, as
    /// [`Client::download_tree`] does. The filter is asked on the thread of the session.
    pub fn download_tree_later(
        &self,
        name: &Name,
        target: &Path,
        options: DownloadOptions,
        filter: impl FnMut(&TreeEntry<'_>) -> bool + Send + 'static,
    ) -> Pending<TreeReport> {
        let (name, target) = (name.clone(), target.to_owned());
        let make = move |call| {
            let filter = Box::new(filter);
            Command::DownloadTree { name, target, options, filter, call }
        };
        self.call(make, |report| report)
    }

    /// Opens the current version of a file. It stays that version, however long it is open.
    ///
    /// # Errors
    /// As [`Client::open`], and [`ClientError::TooMany`].
    pub fn open(&self, name: &Name) -> Result<RemoteFile, ClientError> {
        self.open_later(name).wait()
    }

    /// [`open`](Session::open) without waiting.
    pub fn open_later(&self, name: &Name) -> Pending<RemoteFile> {
        self.open_target(OpenTarget::Name(name.clone()))
    }

    /// Opens the version that a listing has resolved, without asking for it.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn open_entry(&self, entry: &ResolvedEntry) -> Result<RemoteFile, ClientError> {
        self.open_entry_later(entry).wait()
    }

    /// [`open_entry`](Session::open_entry) without waiting.
    pub fn open_entry_later(&self, entry: &ResolvedEntry) -> Pending<RemoteFile> {
        self.open_target(OpenTarget::Entry(Box::new(entry.clone())))
    }

    fn open_target(&self, target: OpenTarget) -> Pending<RemoteFile> {
        let engine = Arc::clone(&self.engine);
        let make = move |call| Command::Open { target, call };
        self.call(make, move |opened| RemoteFile::new(opened, engine))
    }

    /// Transport statistics of the current path.
    ///
    /// # Errors
    /// [`ClientError::Interrupted`] or [`ClientError::Disconnected`] if the engine has ended.
    pub fn path(&self) -> Result<PathReport, ClientError> {
        self.inspect(|shared, endpoint| shared.path(endpoint))
    }

    /// Reads or fills the memory of the newest versions seen.
    ///
    /// # Errors
    /// As [`Session::path`].
    pub fn with_versions<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut VersionMemory) -> T + Send + 'static,
    ) -> Result<T, ClientError> {
        self.inspect(|shared, _| act(&mut shared.versions))
    }

    /// Gives the session a certificate it would otherwise fetch. It is not trusted by that.
    ///
    /// # Errors
    /// As [`Session::path`]; the inner one is [`Client::add_certificate`]'s.
    pub fn add_certificate(
        &self,
        wire: Vec<u8>,
    ) -> Result<Result<Name, CertificateError>, ClientError> {
        self.inspect(move |shared, _| shared.validator.add_certificate(&wire))
    }

    fn inspect<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Shared, &str) -> T + Send + 'static,
    ) -> Result<T, ClientError> {
        let make = |Call { reply, .. }: Call<'static, T>| {
            Command::Inspect(Box::new(move |shared, endpoint| {
                reply.send(Ok(act(shared, endpoint)));
            }))
        };
        self.call(make, |answer| answer).wait()
    }

    fn call<A: Send + 'static, T>(
        &self,
        make: impl FnOnce(Call<'static, A>) -> Command<'static> + Send + 'static,
        map: impl FnOnce(A) -> T + Send + 'static,
    ) -> Pending<T> {
        Pending::new(Arc::clone(&self.engine), make, map)
    }
}

/// One version of a file, open for reading by any number of threads. Clones are the same file.
#[derive(Clone, Debug)]
pub struct RemoteFile {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    stat: Stat,
    opened: Opened,
    engine: Arc<EngineHandle>,
}

impl RemoteFile {
    fn new(opened: Opened, engine: Arc<EngineHandle>) -> Self {
        let stat = Stat::new(opened.name.clone(), &opened.discovered);
        RemoteFile { inner: Arc::new(Inner { stat, opened, engine }) }
    }

    /// Its status.
    pub fn stat(&self) -> &Stat {
        &self.inner.stat
    }

    /// Its size, if announced.
    pub fn size(&self) -> Option<u64> {
        self.inner.opened.size
    }

    /// Fills `buffer` with the bytes from `offset` on. Returns how many there were: fewer than
    /// fit only at the end of the file.
    ///
    /// # Errors
    /// As [`Client::read_range`]; what is in the buffer then is undefined.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, ClientError> {
        let filled = self.read_ranges(&mut [(offset, buffer)])?;
        Ok(filled.first().copied().unwrap_or(0))
    }

    /// Fills many buffers, each from its offset on, in one go: every unit of the file travels
    /// once, and all requests are in flight together. Ranges may be in any order and may overlap.
    /// Returns the number of bytes in each.
    ///
    /// # Errors
    /// As [`RemoteFile::read_at`], and [`ClientError::TooMany`] above [`crate::RANGES_MAX`].
    pub fn read_ranges(&self, ranges: &mut [(u64, &mut [u8])]) -> Result<Vec<usize>, ClientError> {
        let wanted: Vec<(u64, usize)> =
            ranges.iter().map(|(offset, buffer)| (*offset, buffer.len())).collect();
        check_count(wanted.len())?;
        let mut buffers: Vec<&mut [u8]> =
            ranges.iter_mut().map(|(_, buffer)| &mut **buffer).collect();
        let (file, queue) = (self.id(), self.inner.engine.queue());
        let completion = Completion::new();
        let sent = lend(&mut buffers, |loan| {
            let request = ReadRequest::lent(loan, &wanted);
            queue.send(Arc::clone(&completion), |reply: Reply<RangesRead>| {
                Box::new(move || Command::Read { file, request, reply }) as SentCommand
            })
        });
        sent?;
        Ok(completion.wait().unwrap_or_else(|| Err(queue.lost()))?.filled)
    }

    /// Reads from the site cache, and waits for nothing: what the kernel has in memory is read into
    /// `scratch` and hashed on the caller's thread, what is on the disk is on its way.
    pub fn read_nowait(&self, scratch: &mut Vec<u8>, offset: u64, length: usize) -> CachedRead {
        match &self.inner.opened.nowait {
            Some(reads) => reads.read(scratch, offset, length),
            None => CachedRead::Elsewhere,
        }
    }

    /// [`read_at`](RemoteFile::read_at) without waiting, into a buffer that comes back.
    pub fn read_at_later(&self, buffer: Vec<u8>, offset: u64) -> Pending<RangesRead> {
        self.read_later(ReadRequest::filling(buffer, offset))
    }

    /// [`read_ranges`](RemoteFile::read_ranges) without waiting, one range behind the other into
    /// one buffer, which is made as large as the ranges together.
    ///
    /// # Errors
    /// [`ClientError::TooMany`] above [`crate::RANGES_MAX`].
    pub fn read_ranges_later(
        &self,
        buffer: Vec<u8>,
        ranges: &[(u64, usize)],
    ) -> Result<Pending<RangesRead>, ClientError> {
        Ok(self.read_later(ReadRequest::owned(buffer, ranges)?))
    }

    /// [`read_ranges`](RemoteFile::read_ranges) without waiting, each `(offset, length)` into the
    /// buffer of the loan that has this length. The loan is dropped when nothing more is written to
    /// it, which may be after the answer came or was taken back.
    ///
    /// # Errors
    /// [`ClientError::TooMany`] above [`crate::RANGES_MAX`].
    pub fn read_lent_later(
        &self,
        loan: Loan,
        ranges: &[(u64, usize)],
    ) -> Result<Pending<RangesRead>, ClientError> {
        check_count(ranges.len())?;
        Ok(self.read_later(ReadRequest::lent(loan, ranges)))
    }

    /// Hands the verified bytes of `range` to `sink` on the thread of the session, ascending and
    /// without gaps. The sink must not block: it would hold up all other calls.
    pub fn stream_later(
        &self,
        range: Range<u64>,
        sink: impl FnMut(u64, &[u8]) -> std::io::Result<()> + Send + 'static,
    ) -> Pending<u64> {
        let (inner, file) = (Arc::clone(&self.inner), self.id());
        let make = move |call| {
            let (is_ordered, sink) = (true, Box::new(sink));
            let request = StreamRequest { file, range, is_ordered, sink };
            Command::Stream { request, call }
        };
        let engine = Arc::clone(&self.inner.engine);
        Pending::new(engine, make, move |bytes| {
            let _open = &inner;
            bytes
        })
    }

    /// Counts of what was read so far, and what it took.
    pub fn counters(&self) -> ReadCounters {
        let counters = &self.inner.opened.counters;
        let get = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        ReadCounters {
            asked_bytes: get(&counters.asked_bytes),
            received_bytes: get(&counters.received_bytes),
            requests: get(&counters.requests),
            cached_bytes: get(&counters.cached_bytes),
            site_cache_bytes: get(&counters.site_cache_bytes),
            prefetched_bytes: get(&counters.prefetched_bytes),
            prefetch_useful_bytes: get(&counters.prefetch_useful_bytes),
            prefetch_wasted_bytes: get(&counters.prefetch_wasted_bytes),
        }
    }

    fn id(&self) -> u64 {
        self.inner.opened.guard.id
    }

    fn read_later(&self, request: ReadRequest) -> Pending<RangesRead> {
        // The file stays open for as long as somebody waits for its bytes.
        let (inner, file) = (Arc::clone(&self.inner), self.id());
        let make = move |Call { reply, .. }: Call<'static, RangesRead>| Command::Read {
            file,
            request,
            reply,
        };
        Pending::new(Arc::clone(&self.inner.engine), make, move |read| {
            let _open = &inner;
            read
        })
    }
}

/// Counts of one open file. Bytes received are whole packets, tree nodes included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadCounters {
    /// Bytes that calls asked for and that exist.
    pub asked_bytes: u64,
    /// Octets of all Data packets that came.
    pub received_bytes: u64,
    /// Interests sent.
    pub requests: u64,
    /// Bytes served from memory.
    pub cached_bytes: u64,
    /// Bytes of units that came from the site cache.
    pub site_cache_bytes: u64,
    /// Bytes read ahead.
    pub prefetched_bytes: u64,
    /// Of these, units of which something was read.
    pub prefetch_useful_bytes: u64,
    /// Of these, units that were dropped unread.
    pub prefetch_wasted_bytes: u64,
}
