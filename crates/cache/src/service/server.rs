//! The service: its socket, who may ask, and how many at a time.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect,
    listen, shutdown, socket_with, sockopt,
};

use super::connection::Connection;
use crate::cache::Cache;
use crate::known::lock;
use crate::layout::{ContentKey, Layout};

/// Connections of one user. A program has two.
const CONNECTIONS_PER_USER_MAX: usize = 32;
/// Connections of all; beyond that the one that was silent longest goes.
const CONNECTIONS_MAX: usize = 256;
/// Connections that wait to be taken.
const BACKLOG: i32 = 128;
/// Memory of the kernel for answers that were not read; a descriptor in it counts as open.
const ANSWERS_BYTES: usize = 16 << 10;
/// Time that an answer waits for its reader.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);
/// Pause after the system could not give a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What was brought, since the service was started.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) taken_bytes: AtomicU64,
    pub(super) refused_bytes: AtomicU64,
}

/// State shared with the connections.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) cache: Cache,
    pub(super) counts: Counts,
    layout: Layout,
    peers: Mutex<HashMap<u64, Arc<Peer>>>,
    turns: Mutex<HashMap<u32, Weak<Mutex<()>>>>,
    begun: Instant,
    is_over: AtomicBool,
}

/// The other side of a connection.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) line: OwnedFd,
    pub(super) uid: u32,
    /// Held while something of this user is checked and queued.
    pub(super) turn: Arc<Mutex<()>>,
    begun: Instant,
    /// Milliseconds since `begun` of the last request.
    used_ms: AtomicU64,
}

impl Peer {
    pub(super) fn note_use(&self) {
        let ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.used_ms.store(ms, Ordering::Relaxed);
    }
}

impl Inner {
    pub(super) fn entry_path(&self, key: &ContentKey) -> PathBuf {
        self.layout.entry(key)
    }

    fn admit(self: &Arc<Self>, number: u64, line: OwnedFd) -> io::Result<()> {
        let uid = sockopt::socket_peercred(&line)?.uid.as_raw();
        sockopt::set_socket_timeout(&line, sockopt::Timeout::Send, Some(ANSWER_PATIENCE))?;
        sockopt::set_socket_send_buffer_size(&line, ANSWERS_BYTES)?;
        let mut peers = lock(&self.peers);
        if peers.values().filter(|peer| peer.uid == uid).count() >= CONNECTIONS_PER_USER_MAX {
            tracing::debug!(uid, "a user has too many connections to the cache");
            return Ok(());
        }
        if peers.len() >= CONNECTIONS_MAX {
            let silent = peers.iter().min_by_key(|(_, peer)| peer.used_ms.load(Ordering::Relaxed));
            if let Some((&silent, peer)) = silent {
                let _ = shutdown(&peer.line, Shutdown::Both);
                peers.remove(&silent);
            }
        }
        let (turn, begun) = (self.turn(uid), self.begun);
        let peer = Arc::new(Peer { line, uid, turn, begun, used_ms: AtomicU64::new(0) });
        peer.note_use();
        let (service, own) = (Arc::clone(self), Arc::clone(&peer));
        let thread = Builder::new().name("byname-cached-c".to_owned());
        thread.spawn(move || {
            Connection::new(&service, &own).run();
            lock(&service.peers).remove(&number);
        })?;
        peers.insert(number, peer);
        Ok(())
    }

    fn turn(&self, uid: u32) -> Arc<Mutex<()>> {
        let mut turns = lock(&self.turns);
        if let Some(turn) = turns.get(&uid).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::<Mutex<()>>::default();
        turns.insert(uid, Arc::downgrade(&turn));
        turn
    }

    fn accept(self: &Arc<Self>, listening: &OwnedFd) {
        let mut number = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            number += 1;
            let admitted = accept_with(listening, SocketFlags::CLOEXEC)
                .map_err(io::Error::from)
                .and_then(|line| self.admit(number, line));
            if let Err(error) = admitted
                && !self.is_over.load(Ordering::Relaxed)
            {
                tracing::debug!(%error, "no connection to the cache");
                std::thread::sleep(ACCEPT_PAUSE);
            }
        }
    }
}

/// A running service. Dropping ends it.
#[derive(Debug)]
pub struct Service {
    inner: Arc<Inner>,
    listening: Arc<OwnedFd>,
    socket: PathBuf,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Serves a cache at a Unix socket to every user who may connect. Its configuration should say
    /// what each user may have ([`user_bytes_max`](crate::CacheConfig::user_bytes_max)).
    ///
    /// # Errors
    /// As from the system; `AddrInUse` if another service answers there, `AlreadyExists` if the
    /// path is that of something else, `PermissionDenied` if others could put something else there.
    pub fn start(cache: Cache, socket: &Path) -> io::Result<Self> {
        let layout = Layout::new(&cache.config().directory);
        crate::files::make_directory(&layout.root)?;
        layout.check_own()?;
        let listening = Arc::new(listen_at(socket)?);
        let (counts, peers, turns, is_over) = Default::default();
        let begun = Instant::now();
        let inner = Arc::new(Inner { cache, counts, layout, peers, turns, begun, is_over });
        let (own, line) = (Arc::clone(&inner), Arc::clone(&listening));
        let thread = Builder::new().name("byname-cached".to_owned());
        let thread = Some(thread.spawn(move || own.accept(&line))?);
        Ok(Service { inner, listening, socket: socket.to_owned(), thread })
    }

    /// Bytes that users brought and that proved to be true, and those that did not, or whose proof
    /// was missing.
    pub fn brought_bytes(&self) -> (u64, u64) {
        let Counts { taken_bytes, refused_bytes } = &self.inner.counts;
        (taken_bytes.load(Ordering::Relaxed), refused_bytes.load(Ordering::Relaxed))
    }

    /// Connections at the moment.
    pub fn connection_count(&self) -> usize {
        lock(&self.inner.peers).len()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.inner.is_over.store(true, Ordering::Relaxed);
        let _ = fs::remove_file(&self.socket);
        let _ = shutdown(&*self.listening, Shutdown::Both);
        for peer in lock(&self.inner.peers).values() {
            let _ = shutdown(&peer.line, Shutdown::Both);
        }
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn seqpacket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

fn listen_at(socket: &Path) -> io::Result<OwnedFd> {
    let directory = socket.parent().filter(|parent| !parent.as_os_str().is_empty());
    crate::files::check_keeps(directory.unwrap_or(Path::new(".")))?;
    let address = SocketAddrUnix::new(socket)?;
    match connect(seqpacket()?, &address) {
        Ok(()) => return Err(io::ErrorKind::AddrInUse.into()),
        // Of a service that was killed. The system says the same of a file that is no socket.
        Err(rustix::io::Errno::CONNREFUSED) => remove_dead(socket)?,
        Err(_) => {}
    }
    let listening = seqpacket()?;
    bind(&listening, &address)?;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o666))?;
    listen(&listening, BACKLOG)?;
    Ok(listening)
}

fn remove_dead(socket: &Path) -> io::Result<()> {
    if fs::symlink_metadata(socket)?.file_type().is_socket() {
        return fs::remove_file(socket);
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "something else than a socket is there"))
}
