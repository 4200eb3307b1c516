//! The side of a program: what its cache's threads ask of the service.
//!
//! The threads wait for answers a bounded time, and readers do not wait for the threads. A service
//! that is gone, stopped or full is an error like that of a disk: it is passed by for a while
//! ([`health`](crate::health)), and reading goes on from the network.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use byname_security::tree::{Hash, NodeId, Shape, UNIT_BYTES};
use byname_transfer::verify::{UNITS_PER_CHUNK, UnitSet};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, recvmsg, sendmsg,
    socket_with, sockopt,
};

use super::proofs::{Proofs, nodes_above};
use super::wire::{self, ANSWER_HERE, Ask, Piece};
use crate::layout::ContentKey;
use crate::map;

/// Time that a call waits for the service: less than readers' patience.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Descriptors of an answer.
const DESCRIPTORS: usize = 2;

/// What is heard of a service about missing nodes before something is brought.
const NEEDS_MAX: usize = 64;
/// Pieces of 32 MiB of a content of which it is known what a service has: so much memory a false
/// answer can take.
const PIECES_MAX: u64 = 1 << 16;

/// A connection that is made when it is needed.
#[derive(Debug, Default)]
struct Line {
    open: Option<OwnedFd>,
    /// Number of the open one, or of the last that was.
    number: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct ServiceLink {
    socket: PathBuf,
    /// Questions and answers, and apart from them what is brought: it may wait for room.
    questions: Mutex<Line>,
    gifts: Mutex<Line>,
    proofs: Mutex<Proofs>,
}

/// An entry's files, to be read.
#[derive(Debug)]
pub(crate) struct Lent {
    pub(crate) data: File,
    pub(crate) tree: File,
}

impl ServiceLink {
    pub(crate) fn new(socket: &Path) -> Self {
        let (questions, gifts, proofs) = Default::default();
        ServiceLink { socket: socket.to_owned(), questions, gifts, proofs }
    }

    /// The files of an entry; `None` if there is none.
    pub(crate) fn open(&self, key: &ContentKey) -> io::Result<Option<Lent>> {
        let (answer, mut files) = self.ask(&wire::head(key, Ask::Open))?;
        if answer.first() != Some(&ANSWER_HERE) {
            return Ok(None);
        }
        let (Some(tree), Some(data)) = (files.pop(), files.pop()) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let is_file = |file: &File| file.metadata().is_ok_and(|status| status.is_file());
        // Whatever answers there: nobody shall wait for a pipe.
        let is_sound = is_file(&data) && is_file(&tree);
        if is_sound {
            Ok(Some(Lent { data, tree }))
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }

    /// Asks for nothing.
    pub(crate) fn probe(&self) -> io::Result<()> {
        let nothing = ContentKey { root: Hash([0; 32]), size: 1 };
        self.open(&nothing).map(drop)
    }

    /// The units that an entry has.
    pub(crate) fn units(&self, key: &ContentKey) -> io::Result<UnitSet> {
        let (mut units, unit_count) = (UnitSet::default(), Shape::new(key.size).unit_count());
        let (mut next, mut pieces) = (0, 0);
        while next < unit_count && pieces < PIECES_MAX {
            let (answer, _) = self.ask(&wire::head(key, Ask::Map { first: next }))?;
            let Some(piece) = wire::decode_piece(&answer) else { break };
            let Piece { first, run_units, octets } = piece;
            let end = piece.end().filter(|end| first >= next && *end > first);
            next = end.ok_or(io::ErrorKind::InvalidData)?;
            let run_end = first.saturating_add(run_units.min(PIECES_MAX * UNITS_PER_CHUNK));
            units.insert_run(first.min(unit_count)..run_end.min(unit_count));
            map::add_bits(&mut units, octets, first.saturating_add(run_units), unit_count);
            pieces += (next - first) / UNITS_PER_CHUNK + 1;
        }
        Ok(units)
    }

    /// Keeps a node that will prove units.
    pub(crate) fn keep_proof(&self, key: &ContentKey, node: NodeId, bytes: &[u8]) {
        lock(&self.proofs).keep(key, node, bytes);
    }

    /// True if all that proves these neighbouring units is kept here.
    pub(crate) fn can_prove(&self, key: &ContentKey, first: u64, unit_count: u64) -> bool {
        let proofs = lock(&self.proofs);
        nodes_above(key, first, unit_count).into_iter().all(|node| proofs.has(key, node))
    }

    /// Brings the service units that it may keep, and before them what proves them, as far as it
    /// was not brought on this connection.
    pub(crate) fn bring_units(&self, key: &ContentKey, first: u64, bytes: &[u8]) -> io::Result<()> {
        for (at, piece) in bytes.chunks(wire::UNITS_MAX * UNIT_BYTES).enumerate() {
            let first = first + (at * wire::UNITS_MAX) as u64;
            let nodes = nodes_above(key, first, piece.len().div_ceil(UNIT_BYTES) as u64);
            let head = wire::head(key, Ask::Units { first });
            self.with_line(&self.gifts, &mut |line, number| {
                self.hear(line);
                for node in &nodes {
                    self.send_node(line, number, key, *node)?;
                }
                send(line, &head, piece)
            })?;
        }
        Ok(())
    }

    fn send_node(
        &self,
        line: &OwnedFd,
        number: u64,
        key: &ContentKey,
        node: NodeId,
    ) -> io::Result<()> {
        let missing = lock(&self.proofs).take_missing(key, node, number);
        match missing {
            Some(bytes) => send(line, &wire::head(key, Ask::Node(node)), &bytes),
            None => Ok(()),
        }
    }

    /// Takes note of nodes that the service says it lacks.
    fn hear(&self, line: &OwnedFd) {
        let mut need = [0; wire::NEED_BYTES];
        for _ in 0..NEEDS_MAX {
            let Ok((_, length)) = recv(line, &mut need[..], RecvFlags::DONTWAIT) else { return };
            let Some((key, node)) = need.get(..length).and_then(wire::decode_need) else { return };
            lock(&self.proofs).note_lost(&key, node);
        }
    }

    fn ask(&self, head: &[u8]) -> io::Result<(Vec<u8>, Vec<File>)> {
        self.with_line(&self.questions, &mut |line, _| {
            send(line, head, &[])?;
            receive(line)
        })
    }

    /// Uses a connection; one that broke since it was used before is made anew, once.
    fn with_line<T>(
        &self,
        line: &Mutex<Line>,
        act: &mut dyn FnMut(&OwnedFd, u64) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut line = lock(line);
        if let Some(open) = line.open.take() {
            match act(&open, line.number) {
                Ok(done) => {
                    line.open = Some(open);
                    return Ok(done);
                }
                Err(error) if !is_broken(&error) => return Err(error),
                Err(_) => {}
            }
        }
        let open = self.connect()?;
        line.number += 1;
        let done = act(&open, line.number)?;
        line.open = Some(open);
        Ok(done)
    }

    fn connect(&self) -> io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC;
        let line = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        for direction in [sockopt::Timeout::Send, sockopt::Timeout::Recv] {
            sockopt::set_socket_timeout(&line, direction, Some(PATIENCE))?;
        }
        connect(&line, &SocketAddrUnix::new(&self.socket)?)?;
        Ok(line)
    }
}

/// Takes a lock also after a thread that held it has panicked: what it protects can be made anew.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if the other side is gone, and may be back.
fn is_broken(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected | UnexpectedEof)
}

fn send(line: &OwnedFd, head: &[u8], bytes: &[u8]) -> io::Result<()> {
    let parts = [IoSlice::new(head), IoSlice::new(bytes)];
    sendmsg(line, &parts, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive(line: &OwnedFd) -> io::Result<(Vec<u8>, Vec<File>)> {
    let mut answer = vec![0; wire::ANSWER_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut answer)];
    let received = recvmsg(line, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut files = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            files.extend(descriptors.map(File::from));
        }
    }
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    answer.truncate(received.bytes);
    Ok((answer, files))
}
