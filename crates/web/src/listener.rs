//! A listener that serves a bounded number of connections, each for a bounded time.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

/// Pause when no connection can be taken, for example for want of descriptors.
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct Bounded {
    listener: TcpListener,
    room: Arc<Semaphore>,
    lifetime: Duration,
}

impl Bounded {
    pub(crate) fn new(listener: TcpListener, connections: usize, lifetime: Duration) -> Self {
        Self { listener, room: Arc::new(Semaphore::new(connections)), lifetime }
    }
}

impl axum::serve::Listener for Bounded {
    type Io = Bound;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Bound, SocketAddr) {
        loop {
            let Ok(permit) = Arc::clone(&self.room).acquire_owned().await else {
                sleep(PAUSE).await;
                continue;
            };
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    let end = Box::pin(sleep(self.lifetime));
                    return (Bound { stream, end, _permit: permit }, peer);
                }
                Err(error) => {
                    tracing::debug!(%error, "accepting a connection failed");
                    sleep(PAUSE).await;
                }
            }
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
    _permit: OwnedSemaphorePermit,
}

impl Bound {
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        self.end.as_mut().poll(context).is_ready()
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
        Pin::new(&mut self.stream).poll_read(context, buffer)
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
        Pin::new(&mut self.stream).poll_write(context, bytes)
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

    fn block_on<F: Future>(future: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(future)
    }

    #[test]
    fn connections_are_bounded_in_number_and_time() {
        block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("bound");
            let mut bounded = Bounded::new(listener, 1, Duration::from_millis(1));
            let _one = TcpStream::connect(address).await.expect("connected");
            let _two = TcpStream::connect(address).await.expect("connected");
            let (mut first, _) = bounded.accept().await;
            {
                let second = std::pin::pin!(bounded.accept());
                let none = tokio::time::timeout(Duration::from_millis(20), second).await;
                assert!(none.is_err(), "the second waits while the first is served");
            }
            // The first says nothing and is ended all the same.
            let mut octets = [0u8; 8];
            let read = std::future::poll_fn(|context| {
                Pin::new(&mut first).poll_read(context, &mut ReadBuf::new(&mut octets))
            });
            assert_eq!(read.await.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
            drop(first);
            bounded.accept().await;
        });
    }
}
