//! One connection of the service, on a thread of its own. What it says is believed of nobody.

use std::fs::File;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use byname_security::tree::{NodeId, NodeRejected, SpanCheck, UNIT_BYTES, Verifier};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, sendmsg};

use super::server::{Inner, Peer};
use crate::content::Content;
use crate::known::lock;
use crate::layout::{ContentKey, DATA, TREE};
use crate::lending::wire::{self, ANSWER_HERE, ANSWER_NONE, Ask};

/// Contents that a connection may bring units of in turn.
const RECENT_MAX: usize = 4;
/// Nodes kept for each of them, of 8 KiB.
const NODES_MAX: usize = 8;
/// Nodes that one message may need: a path to the top of the largest tree for each of its ends.
const NODES_PER_MESSAGE_MAX: usize = 16;
/// Largest content that is kept: the longest file that a system knows.
const SIZE_MAX: u64 = i64::MAX as u64;
/// Time that a message waits for room.
const ROOM_PATIENCE: Duration = Duration::from_millis(500);

/// A content that units are brought of.
struct Recent {
    content: Content,
    verifier: Verifier,
    /// What the content said of nodes that were lost when the verifier had none.
    lost: u64,
}

impl Recent {
    fn new(content: Content) -> Self {
        let ContentKey { root, size } = content.key();
        let (lost, verifier) = (content.lost(), Verifier::new(root, size, NODES_MAX));
        Recent { content, verifier, lost }
    }
}

/// See the module.
pub(super) struct Connection<'a> {
    service: &'a Inner,
    peer: &'a Peer,
    recent: Vec<Recent>,
}

impl<'a> Connection<'a> {
    pub(super) fn new(service: &'a Inner, peer: &'a Peer) -> Self {
        Connection { service, peer, recent: Vec::new() }
    }

    /// Answers until the other side goes, breaks the rules, or is sent away.
    pub(super) fn run(&mut self) {
        let mut request = vec![0; wire::REQUEST_BYTES_MAX];
        loop {
            // One octet less than what comes would be cut off unseen.
            let received = recv(&self.peer.line, &mut request[..], RecvFlags::TRUNC);
            let length = match received {
                Ok((_, 0)) => return,
                Ok((_, length)) if length <= wire::REQUEST_BYTES_MAX => length,
                Err(rustix::io::Errno::INTR) => continue,
                Ok(_) | Err(_) => return,
            };
            self.peer.note_use();
            let Some((key, ask, rest)) = wire::decode(&request[..length]) else { return };
            if key.size == 0 || key.size > SIZE_MAX {
                if matches!(ask, Ask::Open | Ask::Map { .. })
                    && self.send(ANSWER_NONE, &[], &[]).is_err()
                {
                    return;
                }
                continue;
            }
            if let Err(error) = self.carry_out(key, ask, rest) {
                tracing::debug!(%error, uid = self.peer.uid, "a connection to the cache ends");
                return;
            }
        }
    }

    fn carry_out(&mut self, key: ContentKey, ask: Ask, rest: &[u8]) -> io::Result<()> {
        match ask {
            Ask::Open => self.open(key),
            Ask::Map { first } => self.map(key, first),
            Ask::Units { first } => {
                let turn = self.peer.turn.clone();
                let _turn = lock(&turn);
                self.take_units(key, first, rest);
                Ok(())
            }
            Ask::Node(node) => {
                let turn = self.peer.turn.clone();
                let _turn = lock(&turn);
                self.take_node(key, node, rest);
                Ok(())
            }
        }
    }

    fn content(&self, key: ContentKey) -> Content {
        self.service.cache.content(key.root, key.size)
    }

    fn open(&self, key: ContentKey) -> io::Result<()> {
        let path = self.service.entry_path(&key);
        // Of their own: with a description that others share they could change how it reads.
        match (File::open(path.join(DATA)), File::open(path.join(TREE))) {
            (Ok(data), Ok(tree)) => {
                self.content(key).touch();
                self.send(ANSWER_HERE, &[], &[data.as_fd(), tree.as_fd()])
            }
            _ => self.send(ANSWER_NONE, &[], &[]),
        }
    }

    fn map(&self, key: ContentKey, first: u64) -> io::Result<()> {
        let content = self.content(key);
        // A disk that fails has nothing for anybody.
        if !first.is_multiple_of(8) || !content.look().unwrap_or(false) {
            return self.send(ANSWER_NONE, &[], &[]);
        }
        let Some(run) = content.next_run(first) else { return self.send(ANSWER_NONE, &[], &[]) };
        let first = run.start / 8 * 8;
        let run_units = if run.start == first { (run.end - first) / 8 * 8 } else { 0 };
        let bits = first + run_units;
        let end = key.size.div_ceil(UNIT_BYTES as u64).min(bits + 8 * wire::MAP_BYTES_MAX as u64);
        let mut octets = vec![0; (end - bits).div_ceil(8) as usize];
        for unit in content.present(bits..end).iter() {
            let at = unit - bits;
            octets[(at / 8) as usize] |= 1 << (at % 8);
        }
        let length = octets.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
        let piece = wire::Piece { first, run_units, octets: &octets[..length] };
        self.send(ANSWER_HERE, &piece.encode(), &[])
    }

    /// Keeps units if they prove to be what they are said to be.
    fn take_units(&mut self, key: ContentKey, first: u64, bytes: &[u8]) {
        let Inner { cache, counts, .. } = self.service;
        let Recent { content, verifier, .. } = self.recent(key);
        let mut has_waited = false;
        for _ in 0..=NODES_PER_MESSAGE_MAX + 1 {
            match verifier.check_span(first, bytes) {
                SpanCheck::Verified => {
                    cache.wait_for_room(ROOM_PATIENCE);
                    content.insert(first * UNIT_BYTES as u64, bytes);
                    counts.taken_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                    return;
                }
                SpanCheck::Need(node) if fetch_node(content, verifier, node) => {}
                SpanCheck::Need(_) if !has_waited => {
                    // It may have come and left memory before it was written.
                    has_waited = true;
                    cache.flush(ROOM_PATIENCE);
                }
                SpanCheck::Need(node) => {
                    self.ask_for(&key, node);
                    break;
                }
                SpanCheck::Bad { .. } => break,
            }
        }
        counts.refused_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }

    fn take_node(&mut self, key: ContentKey, node: NodeId, bytes: &[u8]) {
        let Recent { content, verifier, .. } = self.recent(key);
        for _ in 0..=NODES_PER_MESSAGE_MAX {
            match verifier.add_node(node, bytes) {
                Ok(()) => return content.insert_node(node, bytes),
                Err(NodeRejected::Need(above)) if fetch_node(content, verifier, above) => {}
                Err(NodeRejected::Need(above)) => return self.ask_for(&key, above),
                Err(_) => return,
            }
        }
    }

    fn recent(&mut self, key: ContentKey) -> &mut Recent {
        let place = self.recent.iter().position(|recent| recent.content.key() == key);
        let recent = match place {
            Some(place) => {
                let Recent { content, verifier, lost } = self.recent.remove(place);
                // What it knows and the cache has not would never be brought again.
                match content.lost() == lost {
                    true => Recent { content, verifier, lost },
                    false => Recent::new(content),
                }
            }
            None => {
                self.recent.truncate(RECENT_MAX - 1);
                Recent::new(self.content(key).brought_by(self.peer.uid))
            }
        };
        self.recent.insert(0, recent);
        &mut self.recent[0]
    }

    /// Says that a node is missing. Whoever brings units may not listen, and is not waited for.
    fn ask_for(&self, key: &ContentKey, node: NodeId) {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _ = rustix::net::send(&self.peer.line, &wire::need(key, node), flags);
    }

    /// Sends an answer. Who does not read it holds up this thread for a bounded time.
    fn send(&self, kind: u8, octets: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let parts = [IoSlice::new(std::slice::from_ref(&kind)), IoSlice::new(octets)];
        let line: &OwnedFd = &self.peer.line;
        sendmsg(line, &parts, &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

/// Gives the verifier a node that the cache has.
fn fetch_node(content: &Content, verifier: &mut Verifier, node: NodeId) -> bool {
    let found = content.read_node(node).ok().flatten();
    found.is_some_and(|bytes| verifier.add_node(node, &bytes).is_ok())
}
