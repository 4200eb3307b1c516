//! Handles: what other threads and tasks hold of an engine.
//!
//! Every call exists twice, blocking and as a [`Pending`] answer, which is a future that needs no
//! particular executor and also can be waited for. Dropping a `Pending` takes the call back.
//! Blocking reads lend their buffers to the engine, which copies proved bytes from the packet
//! straight into them.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use byname_io::loan::lend;
use byname_packet::Name;
use byname_transfer::discovery::Discovered;

use crate::download::context::DownloadOptions;
use crate::download::progress::FileReport;
use crate::engine::completion::{Completion, Reply};
use crate::error::ClientError;
use crate::lookup::list_job::Wanted;
use crate::lookup::listing::Listing;
use crate::read::counters::Counters;
use crate::read::operation::{RangesRead, ReadRequest, check_count};
use crate::session::client::Client;
use crate::session::command::{Command, CommandQueue, EngineHandle, FileGuard, Opened};
use crate::session::executor::{self, SessionOptions, Source};

/// A client that any number of threads and tasks use at once. Clones are the same session.
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
        let weak = Arc::downgrade(&engine);
        let thread = std::thread::Builder::new().name("byname-client".to_owned());
        thread
            .spawn(move || executor::run(driver, Source::new(queue, weak, config, options)))
            .map_err(ClientError::Thread)?;
        Ok(Session { engine })
    }

    /// The proved description of the current version of a file or directory.
    ///
    /// # Errors
    /// As [`Client::stat`].
    pub fn stat(&self, name: &Name) -> Result<Discovered, ClientError> {
        self.stat_later(name).wait()
    }

    /// [`stat`](Session::stat) without waiting.
    pub fn stat_later(&self, name: &Name) -> Pending<Discovered> {
        let name = name.clone();
        self.call(|reply| Command::Stat { name, reply })
    }

    /// The proved listing of a directory.
    ///
    /// # Errors
    /// As [`Client::list`].
    pub fn list(&self, name: &Name) -> Result<Listing, ClientError> {
        self.list_later(name).wait()
    }

    /// [`list`](Session::list) without waiting.
    pub fn list_later(&self, name: &Name) -> Pending<Listing> {
        let (name, wanted) = (name.clone(), Wanted::Plain);
        self.call(move |reply| Command::List { name, wanted, reply })
    }

    /// The proved content of a directory with all that a manifest says of its entries, or the plain
    /// listing of a publisher that has no manifests.
    ///
    /// # Errors
    /// As [`Client::list_described`].
    pub fn list_described(&self, name: &Name) -> Result<Listing, ClientError> {
        self.list_described_later(name).wait()
    }

    /// [`list_described`](Session::list_described) without waiting.
    pub fn list_described_later(&self, name: &Name) -> Pending<Listing> {
        let (name, wanted) = (name.clone(), Wanted::Either);
        self.call(move |reply| Command::List { name, wanted, reply })
    }

    /// Fetches a file to `target`, resuming what an earlier run has left. Reads that somebody
    /// waits for pass it. The thread of the session writes it, so a slow disk holds up the others.
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
        self.call(move |reply| Command::Download { name, target, options, reply })
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
        let name = name.clone();
        let make = |reply| Command::Open { name, reply };
        Pending::new(Arc::clone(&self.engine), make, RemoteFile::new)
    }

    fn call<T: Send + 'static>(
        &self,
        make: impl FnOnce(Reply<T>) -> Command + Send + 'static,
    ) -> Pending<T> {
        Pending::new(Arc::clone(&self.engine), make, |it| it)
    }
}

/// One version of a file, open for reading by any number of threads. Clones are the same file.
#[derive(Clone, Debug)]
pub struct RemoteFile {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    discovered: Discovered,
    size: Option<u64>,
    counters: Arc<Counters>,
    guard: FileGuard,
}

impl RemoteFile {
    fn new(opened: Opened) -> Self {
        let Opened { discovered, size, guard, counters } = opened;
        RemoteFile { inner: Arc::new(Inner { discovered, size, counters, guard }) }
    }

    /// Its proved description.
    pub fn discovered(&self) -> &Discovered {
        &self.inner.discovered
    }

    /// Its size, if announced.
    pub fn size(&self) -> Option<u64> {
        self.inner.size
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
    /// once, and all requests are under way together. Ranges may be in any order and may overlap.
    /// Returns the number of bytes in each.
    ///
    /// # Errors
    /// As [`RemoteFile::read_at`], and [`ClientError::TooMany`] above [`RANGES_MAX`].
    pub fn read_ranges(&self, ranges: &mut [(u64, &mut [u8])]) -> Result<Vec<usize>, ClientError> {
        let wanted: Vec<(u64, usize)> =
            ranges.iter().map(|(offset, buffer)| (*offset, buffer.len())).collect();
        check_count(wanted.len())?;
        let mut buffers: Vec<&mut [u8]> =
            ranges.iter_mut().map(|(_, buffer)| &mut **buffer).collect();
        let (file, queue) = (self.inner.guard.id, self.inner.guard.engine.queue());
        let completion = Completion::new();
        let sent = lend(&mut buffers, |loan| {
            let request = ReadRequest::lent(loan, &wanted);
            queue.send(Arc::clone(&completion), |reply| Command::Read { file, request, reply })
        });
        sent?;
        Ok(completion.wait().unwrap_or_else(|| Err(queue.lost()))?.filled)
    }

    /// [`read_at`](RemoteFile::read_at) without waiting, into a buffer that comes back.
    pub fn read_at_later(&self, buffer: Vec<u8>, offset: u64) -> Pending<RangesRead> {
        self.read_later(ReadRequest::filling(buffer, offset))
    }

    /// [`read_ranges`](RemoteFile::read_ranges) without waiting, one range behind the other into
    /// one buffer, which is made as large as the ranges together.
    ///
    /// # Errors
    /// [`ClientError::TooMany`] above [`RANGES_MAX`].
    pub fn read_ranges_later(
        &self,
        buffer: Vec<u8>,
        ranges: &[(u64, usize)],
    ) -> Result<Pending<RangesRead>, ClientError> {
        Ok(self.read_later(ReadRequest::owned(buffer, ranges)?))
    }

    /// What was read so far, and what it took.
    pub fn counters(&self) -> ReadCounters {
        let counters = &self.inner.counters;
        let get = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        ReadCounters {
            asked_bytes: get(&counters.asked_bytes),
            received_bytes: get(&counters.received_bytes),
            requests: get(&counters.requests),
            cached_bytes: get(&counters.cached_bytes),
            prefetched_bytes: get(&counters.prefetched_bytes),
            prefetch_useful_bytes: get(&counters.prefetch_useful_bytes),
            prefetch_wasted_bytes: get(&counters.prefetch_wasted_bytes),
        }
    }

    fn read_later(&self, request: ReadRequest) -> Pending<RangesRead> {
        // The file stays open for as long as somebody waits for its bytes.
        let inner = Arc::clone(&self.inner);
        let engine = Arc::clone(&inner.guard.engine);
        let file = inner.guard.id;
        let make = move |reply| Command::Read { file, request, reply };
        Pending::new(engine, make, move |read: RangesRead| {
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
    /// Bytes fetched ahead.
    pub prefetched_bytes: u64,
    /// Of these, units of which something was read.
    pub prefetch_useful_bytes: u64,
    /// Of these, units that were dropped unread.
    pub prefetch_wasted_bytes: u64,
}

/// An answer that is on its way: a future, or something to [`wait`](Pending::wait) for. The call
/// begins when it is first polled or waited for, and is taken back when this is dropped.
#[must_use = "the call begins when it is awaited"]
pub struct Pending<T> {
    call: Box<dyn Call<T> + Send>,
}

/// What a `Pending` hides: the type that the engine answers with.
trait Call<T> {
    fn wait(&mut self) -> Result<T, ClientError>;
    fn poll(&mut self, context: &Context<'_>) -> Poll<Result<T, ClientError>>;
}

struct Typed<A, F, M> {
    completion: Arc<Completion<A>>,
    make: Option<F>,
    map: Option<M>,
    engine: Arc<EngineHandle>,
    is_sent: bool,
}

impl<T> Pending<T> {
    fn new<A, F, M>(engine: Arc<EngineHandle>, make: F, map: M) -> Self
    where
        A: Send + 'static,
        F: FnOnce(Reply<A>) -> Command + Send + 'static,
        M: FnOnce(A) -> T + Send + 'static,
    {
        let (make, map) = (Some(make), Some(map));
        Pending {
            call: Box::new(Typed {
                completion: Completion::new(),
                make,
                map,
                engine,
                is_sent: false,
            }),
        }
    }

    /// Blocks until the answer is there.
    ///
    /// # Errors
    /// Those of the call.
    pub fn wait(mut self) -> Result<T, ClientError> {
        self.call.wait()
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, ClientError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.call.poll(context)
    }
}

impl<T> std::fmt::Debug for Pending<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Pending").finish_non_exhaustive()
    }
}

impl<A, F, M, T> Call<T> for Typed<A, F, M>
where
    F: FnOnce(Reply<A>) -> Command,
    M: FnOnce(A) -> T,
{
    fn wait(&mut self) -> Result<T, ClientError> {
        if let Some(make) = self.make.take() {
            self.engine.queue().send(Arc::clone(&self.completion), make)?;
            self.is_sent = true;
        }
        let answer = self.completion.wait();
        self.finish(answer)
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<Result<T, ClientError>> {
        let queue = self.engine.queue();
        if !self.is_sent {
            let completion = Arc::clone(&self.completion);
            match queue.poll_send(context, completion, &mut self.make) {
                None => return Poll::Pending,
                Some(sent) => sent?,
            }
            self.is_sent = true;
        }
        match self.completion.poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(answer) => Poll::Ready(self.finish(answer)),
        }
    }
}

impl<A, F, M> Typed<A, F, M> {
    fn finish<T>(&mut self, answer: Option<Result<A, ClientError>>) -> Result<T, ClientError>
    where
        M: FnOnce(A) -> T,
    {
        self.is_sent = false;
        let map = self.map.take().ok_or_else(|| self.engine.queue().lost())?;
        answer.unwrap_or_else(|| Err(self.engine.queue().lost())).map(map)
    }
}

impl<A, F, M> Drop for Typed<A, F, M> {
    fn drop(&mut self) {
        if self.is_sent && self.completion.cancel() {
            self.engine.queue().note_cancelled();
        }
    }
}
