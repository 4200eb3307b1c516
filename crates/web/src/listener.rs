//! A listener that serves a bounded number of connections, each for a bounded time.
//!
//! Whoever has not asked yet gives way: when a connection comes and there is no room, the idle one
//! that was answered longest ago (or never) is ended. So half-open connections keep nobody out.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use byname_retry::jittered;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// Longest pause when no connection can be taken, for example for want of descriptors.
const PAUSE: Duration = Duration::from_secs(1);

fn pause() -> Duration {
    // Keys of a hasher are as good as a random number.
    let random = RandomState::new().hash_one(PAUSE);
    Duration::from_nanos(jittered(PAUSE.as_nanos() as u64, random))
}

/// The empty line after which a request without content is whole.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// Limits on connections: their number and duration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) connections: usize,
    /// Of a connection, whatever it does.
    pub(crate) lifetime: Duration,
    /// From the beginning, or an answer, until the next request is answered.
    pub(crate) request: Duration,
}

pub(crate) struct Bounded {
    listener: TcpListener,
    bounds: Bounds,
    room: Arc<Semaphore>,
    idle: Arc<Mutex<Idle>>,
}

/// Connections that have not asked anything, the one that has waited longest first.
#[derive(Default)]
struct Idle {
    waiting: BTreeMap<u64, Arc<Mutex<Notice>>>,
    next: u64,
}

/// Tells a connection to give way.
#[derive(Default)]
struct Notice {
    is_given: bool,
    waker: Option<Waker>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds one of these.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Idle {
    fn enter(&mut self, notice: &Arc<Mutex<Notice>>) -> u64 {
        self.next += 1;
        self.waiting.insert(self.next, Arc::clone(notice));
        self.next
    }

    /// Ends the connection that has waited longest, if any is waiting.
    fn end_oldest(&mut self) {
        let Some((_, notice)) = self.waiting.pop_first() else { return };
        let mut notice = lock(&notice);
        notice.is_given = true;
        if let Some(waker) = notice.waker.take() {
            waker.wake();
        }
    }
}

impl Bounded {
    pub(crate) fn new(listener: TcpListener, bounds: Bounds) -> Self {
        let room = Arc::new(Semaphore::new(bounds.connections));
        Self { listener, bounds, room, idle: Arc::default() }
    }

    /// A place for one more connection.
    async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() {
            return Some(permit);
        }
        lock(&self.idle).end_oldest();
        Arc::clone(&self.room).acquire_owned().await.ok()
    }

    fn bound(&self, stream: TcpStream, permit: OwnedSemaphorePermit) -> Bound {
        let notice = Arc::default();
        let place = Some(lock(&self.idle).enter(&notice));
        Bound {
            stream,
            end: Box::pin(sleep(self.bounds.lifetime)),
            request_end: Box::pin(sleep(self.bounds.request)),
            request: self.bounds.request,
            idle: Arc::clone(&self.idle),
            notice,
            place,
            _permit: permit,
        }
    }
}

impl axum::serve::Listener for Bounded {
    type Io = Bound;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Bound, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    if let Some(permit) = self.permit().await {
                        return (self.bound(stream, permit), peer);
                    }
                }
                Err(error) => tracing::debug!(%error, "accepting a connection failed"),
            }
            sleep(pause()).await;
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection with its place among those that may be, and its end.
pub(crate) struct Bound {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    request_end: Pin<Box<Sleep>>,
    request: Duration,
    idle: Arc<Mutex<Idle>>,
    notice: Arc<Mutex<Notice>>,
    /// Among those that have not asked, while it has not.
    place: Option<u64>,
    _permit: OwnedSemaphorePermit,
}

impl Bound {
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        let mut notice = lock(&self.notice);
        if notice.is_given {
            return true;
        }
        notice.waker = Some(context.waker().clone());
        drop(notice);
        self.end.as_mut().poll(context).is_ready()
            || self.request_end.as_mut().poll(context).is_ready()
    }

    /// A whole request has come: it is answered before anybody else is served in its place.
    fn on_request(&mut self) {
        if let Some(place) = self.place.take() {
            lock(&self.idle).waiting.remove(&place);
        }
    }

    /// It was answered, and may ask again.
    fn on_answer(&mut self) {
        self.on_request();
        self.place = Some(lock(&self.idle).enter(&self.notice));
        self.request_end.as_mut().reset(Instant::now() + self.request);
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.on_request();
    }
}

fn over() -> io::Error {
    io::ErrorKind::TimedOut.into()
}

impl AsyncRead for Bound {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_over(context) {
            return Poll::Ready(Err(over()));
        }
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled()[before..].ends_with(HEAD_END) {
            self.on_request();
        }
        result
    }
}

impl AsyncWrite for Bound {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_over(context) {
            return Poll::Ready(Err(over()));
        }
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        if result.is_ready() {
            self.on_answer();
        }
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::serve::Listener;

    const LONG: Duration = Duration::from_secs(3600);
    const SHORT: Duration = Duration::from_millis(1);

    fn block_on<F: Future>(future: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(future)
    }

    async fn bounded(lifetime: Duration, request: Duration) -> (Bounded, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        (Bounded::new(listener, Bounds { connections: 1, lifetime, request }), address)
    }

    /// Reads once; how many octets came.
    async fn read(bound: &mut Bound) -> Result<usize, io::ErrorKind> {
        let mut octets = [0; 64];
        let mut buffer = ReadBuf::new(&mut octets);
        let read =
            std::future::poll_fn(|context| Pin::new(&mut *bound).poll_read(context, &mut buffer));
        read.await.map_err(|error| error.kind())?;
        Ok(buffer.filled().len())
    }

    async fn answer(bound: &mut Bound) {
        let bytes = b"HTTP/1.1 200 OK\r\n\r\n";
        let write =
            std::future::poll_fn(|context| Pin::new(&mut *bound).poll_write(context, bytes));
        assert_eq!(write.await.expect("sent"), bytes.len());
    }

    async fn send(peer: &TcpStream, bytes: &[u8]) {
        peer.writable().await.expect("connected");
        assert_eq!(peer.try_write(bytes).expect("sent"), bytes.len());
    }

    #[test]
    fn connections_are_bounded_in_time_whatever_they_do() {
        for (lifetime, request) in [(SHORT, LONG), (LONG, SHORT)] {
            block_on(async {
                let (mut bounded, address) = bounded(lifetime, request).await;
                let peer = TcpStream::connect(address).await.expect("connected");
                let (mut first, _) = bounded.accept().await;
                // A head that comes in drops gains no time.
                send(&peer, b"GET /metrics HT").await;
                sleep(10 * SHORT).await;
                assert_eq!(read(&mut first).await, Err(io::ErrorKind::TimedOut));
            });
        }
    }

    #[test]
    fn who_has_not_asked_gives_way_and_who_has_does_not() {
        block_on(async {
            let (mut bounded, address) = bounded(LONG, LONG).await;
            let _silent = TcpStream::connect(address).await.expect("connected");
            let (mut first, _) = bounded.accept().await;
            let asking = TcpStream::connect(address).await.expect("connected");
            // The first is woken and ended, which makes room.
            let ended = tokio::spawn(async move { read(&mut first).await });
            let (mut second, _) = bounded.accept().await;
            assert_eq!(ended.await.expect("no panic"), Err(io::ErrorKind::TimedOut));
            send(&asking, b"GET / HTTP/1.1\r\n\r\n").await;
            assert_eq!(read(&mut second).await, Ok(18));
            let _third = TcpStream::connect(address).await.expect("connected");
            {
                let third = std::pin::pin!(bounded.accept());
                let none = tokio::time::timeout(Duration::from_millis(20), third).await;
                assert!(none.is_err(), "the third waits while the second is served");
            }
            assert!(!lock(&second.notice).is_given);
            // Once it is answered it is idle again.
            answer(&mut second).await;
            let ended = tokio::spawn(async move { read(&mut second).await });
            let _fourth = TcpStream::connect(address).await.expect("connected");
            bounded.accept().await;
            assert_eq!(ended.await.expect("no panic"), Err(io::ErrorKind::TimedOut));
        });
    }

    #[test]
    fn listeners_without_descriptors_do_not_come_back_in_step() {
        let pauses: Vec<Duration> = (0..100).map(|_| pause()).collect();
        assert!(pauses.iter().all(|pause| (PAUSE / 2..=PAUSE).contains(pause)), "{pauses:?}");
        assert!(pauses.iter().any(|pause| *pause != pauses[0]), "{pauses:?}");
    }
}
