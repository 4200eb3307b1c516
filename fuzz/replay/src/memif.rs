//! Target for memif in `io`: a peer that keeps to nothing, in the memory that both share.
//!
//! The input is a list of operations. The peer shares no code with the library: it speaks memif
//! octet by octet and writes the shared memory as a file, between and during our calls. What must
//! hold: as long as the peer kept to the rules, everything arrives in order and nothing fails;
//! afterwards no call panics or returns a frame that is none, and an error is the end.
//!
//! The peer is of our own user, so that our client looks at frames in place.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use byname_io::{Connection, Endpoint, FrameError, Limits, Listener};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::{pread, pwrite};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketType, accept, bind, connect, listen,
    recvmsg, sendmsg, socket,
};

const LOG2: u8 = 3;
const SLOTS: u16 = 1 << LOG2;
const BUFFER: u64 = 9216;
const TO_SERVER: u64 = 0;
/// In the memory of a peer that is the client.
const TO_CLIENT: u64 = 512;
const BUFFERS: u64 = 4096;
/// Buffers of both rings, behind the rings.
const REGION: u64 = BUFFERS + 2 * SLOTS as u64 * BUFFER;

const ACK: u16 = 1;
const HELLO: u16 = 2;
const INIT: u16 = 3;
const ADD_REGION: u16 = 4;
const ADD_RING: u16 = 5;
const CONNECT: u16 = 6;
const CONNECTED: u16 = 7;
const COOKIE: u32 = 0x03E3_1F20;

const OPERATION_BYTES: usize = 4;
const OPERATIONS_MAX: usize = 64;
/// Longer than a handshake takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Values at which checks decide, for indices, offsets and lengths alike.
const EDGES: [u32; 16] = [
    0,
    1,
    2,
    SLOTS as u32 - 1,
    SLOTS as u32,
    SLOTS as u32 + 1,
    0x7FFF,
    0x8000,
    0xFFFF,
    BUFFER as u32 - 1,
    BUFFER as u32,
    BUFFER as u32 + 1,
    REGION as u32 - 1,
    REGION as u32,
    u32::MAX - 1,
    u32::MAX,
];

/// The first octet says who we are; then come operations of four octets.
pub(crate) fn memif(input: &[u8]) {
    let Some((role, operations)) = input.split_first() else { return };
    let (connection, peer) = if role & 1 == 0 { Peer::as_client() } else { Peer::as_server() };
    let mut play = Play { connection, peer, is_honest: true, is_over: false, round: 0 };
    for operation in operations.chunks_exact(OPERATION_BYTES).take(OPERATIONS_MAX) {
        play.operate([operation[0], operation[1], operation[2], operation[3]]);
    }
}

/// Two octets of length and that many more, as in the tests of `io`.
fn framer(bytes: &[u8]) -> Result<Option<usize>, FrameError> {
    match bytes {
        [high, low, ..] => Ok(Some(2 + usize::from(u16::from_be_bytes([*high, *low])))),
        _ => Ok(None),
    }
}

fn frame(content_bytes: usize, mark: u8) -> Vec<u8> {
    let mut bytes = u16::try_from(content_bytes).unwrap_or(0).to_be_bytes().to_vec();
    bytes.resize(2 + content_bytes, mark);
    bytes
}

/// Our end, the peer, and what is known of both.
struct Play {
    connection: Connection,
    peer: Peer,
    /// The peer has kept to the rules so far.
    is_honest: bool,
    /// One of our calls has failed.
    is_over: bool,
    round: u8,
}

impl Play {
    fn operate(&mut self, [kind, a, b, c]: [u8; OPERATION_BYTES]) {
        self.round = self.round.wrapping_add(1);
        let value = EDGES[usize::from(b) % EDGES.len()].wrapping_add(u32::from(c % 4));
        match kind % 12 {
            0 | 1 => self.peer.send(usize::from(a), self.round),
            2 => self.peer.take(self.is_honest),
            3 | 4 => self.receive(a),
            5 => self.send(usize::from(u16::from_be_bytes([a % 36, b])), c),
            6 => self.draft(a, b),
            7 => {
                let moved = self.peer.index(a & 1).wrapping_add(u16::from(b).wrapping_sub(128));
                self.break_rules(|peer| peer.put_index(a & 1, moved));
            }
            8 => self.break_rules(|peer| peer.put_index(a & 1, value as u16)),
            9 => self.break_rules(|peer| peer.put_field(a, c, value)),
            10 => self.peer.put_flags(a & 1, u16::from(b)),
            _ => {
                let at = u64::from(u16::from_be_bytes([a, b])) % REGION;
                self.break_rules(|peer| peer.put(at, &[c]));
            }
        }
    }

    fn break_rules(&mut self, act: impl FnOnce(&Peer)) {
        self.is_honest = false;
        act(&self.peer);
    }

    /// One of our calls has ended so; an error is the end, and needs a reason.
    fn note<E: std::fmt::Debug>(&mut self, result: Result<(), E>) {
        match result {
            Ok(()) => assert!(!self.is_over, "a connection that had ended goes on"),
            Err(error) => {
                assert!(!self.is_honest, "{error:?} with a peer that kept to the rules");
                self.is_over = true;
            }
        }
    }

    fn receive(&mut self, a: u8) {
        let (peer, honest) = (&self.peer, self.is_honest);
        let mut wanted = peer.sent.iter();
        let mut count = 0;
        // A server looks at copies: what the peer does meanwhile changes nothing.
        let is_changed = a & 1 == 1 && peer.is_client;
        let result = self.connection.recv_burst(framer, &mut |bytes| {
            assert!(bytes.len() <= byname_io::limits::FRAME_BYTES_MAX);
            assert!(matches!(framer(bytes), Ok(Some(length)) if length == bytes.len()));
            let before = bytes.to_vec();
            if is_changed {
                for slot in 0..SLOTS {
                    peer.put(peer.buffer(peer.own, slot), &[0xFF; 8]);
                }
            }
            assert_eq!(bytes, before, "a frame changed while it was looked at");
            if honest && !is_changed {
                assert_eq!(Some(&before), wanted.next(), "frames come as they were sent");
            }
            count += 1;
        });
        assert!(count <= 64, "{count} frames in one burst");
        if is_changed {
            self.is_honest = false;
        }
        match &result {
            Ok(status) => {
                assert_eq!(status.frames, count);
                if self.is_honest {
                    assert_eq!(status.dropped, 0);
                    assert!(!status.closed);
                    drop(self.peer.sent.drain(..count));
                    assert!(!status.drained || self.peer.sent.is_empty(), "something was missed");
                }
            }
            Err(_) => self.peer.sent.clear(),
        }
        self.note(result.map(|_| ()));
    }

    fn send(&mut self, content_bytes: usize, mark: u8) {
        let bytes = frame(content_bytes.min(9000), mark);
        let queued = self.connection.queue(&[&bytes]).is_ok();
        let result = self.connection.flush();
        if queued && result.is_ok() {
            self.peer.wanted.push_back(bytes);
        }
        self.note(result);
    }

    /// Frames written in place, of which some or all are taken back.
    fn draft(&mut self, count: u8, is_kept: u8) {
        let bytes = frame(usize::from(count) * 8, is_kept);
        let mut draft = self.connection.draft();
        let mut written = 0;
        for _ in 0..=count % 12 {
            let fill = |room: &mut [u8]| {
                room.copy_from_slice(&bytes);
                true
            };
            written += usize::from(draft.frame(bytes.len(), fill).is_ok());
        }
        if is_kept & 1 == 1 {
            draft.commit();
        } else {
            drop(draft);
            written = 0;
        }
        let result = self.connection.flush();
        if result.is_ok() {
            self.peer.wanted.extend(std::iter::repeat_n(bytes, written));
        }
        self.note(result);
    }
}

/// The other process, as it were.
struct Peer {
    memory: OwnedFd,
    wakes_us: OwnedFd,
    /// Open as long as the peer lives.
    _held: [OwnedFd; 2],
    is_client: bool,
    /// The ring in which the peer sends: 0 to the server, 1 to the client.
    own: u8,
    /// Where the ring to the client lies.
    to_client: u64,
    /// Sent, and not received yet.
    sent: VecDeque<Vec<u8>>,
    /// To be received by the peer.
    wanted: VecDeque<Vec<u8>>,
    /// The next slots to fill and to empty.
    next: u16,
    emptied: u16,
}

impl Peer {
    /// Connects to a server of ours.
    fn as_client() -> (Connection, Self) {
        thread_local!(static PLACE: OnceLock<Listener> = const { OnceLock::new() });
        let memory = rings();
        let [wakes_server, wakes_client] = [new_eventfd(), new_eventfd()];
        PLACE.with(|place| {
            let bind = || Listener::bind(&endpoint(&new_path())).expect("a free path");
            let listener = place.get_or_init(bind);
            let Endpoint::Memif { path, .. } = listener.local_endpoint() else {
                unreachable!("it was bound as memif")
            };
            let control = new_socket();
            connect(&control, &SocketAddrUnix::new(path).expect("short")).expect("it listens");
            let ring = |flags: u8, offset: u64| {
                let offset = u32::try_from(offset).expect("small").to_le_bytes();
                let fields = [&[flags, 0, 0, 0, 0, 0][..], &offset, &[LOG2, 0, 0]].concat();
                message(ADD_RING, &fields)
            };
            let region = [&[0, 0][..], &REGION.to_le_bytes()].concat();
            put_message(&control, &message(INIT, &[0, 2, 5, 0, 0, 0, 0]), None);
            put_message(&control, &message(ADD_REGION, &region), Some(&memory));
            put_message(&control, &ring(1, TO_SERVER), Some(&wakes_server));
            put_message(&control, &ring(0, TO_CLIENT), Some(&wakes_client));
            put_message(&control, &message(CONNECT, &[]), None);
            let accepted = (0..10).find_map(|_| listener.accept().expect("a listener"));
            let peer = Peer::new(memory, wakes_server, [control, wakes_client]);
            (accepted.expect("a good handshake"), Peer { is_client: true, own: 0, ..peer })
        })
    }

    /// Serves a client of ours.
    fn as_server() -> (Connection, Self) {
        thread_local!(static PLACE: Place = Place::new());
        let (listener, path) =
            PLACE.with(|place| (place.0.try_clone().expect("a descriptor"), place.1.clone()));
        let serving = std::thread::spawn(move || {
            let control = accept(listener).expect("a client");
            let hello = [&[0; 32][..], &[0, 2, 0, 2, 0, 0, 0, 0, 0, 0, LOG2]].concat();
            put_message(&control, &message(HELLO, &hello), None);
            for _ in 0..4 {
                put_message(&control, &message(ACK, &[]), None);
            }
            put_message(&control, &message(CONNECTED, &[]), None);
            let mut came: VecDeque<_> = (0..5).map(|_| get_message(&control)).collect();
            let mut descriptors = came.iter_mut().filter_map(|(_, fd)| fd.take());
            let [memory, wakes_server, wakes_client] =
                std::array::from_fn(|_| descriptors.next().expect("three descriptors"));
            drop(descriptors);
            let ring = came.remove(3).expect("the ring to the client").0;
            let to_client = u32::from_le_bytes([ring[8], ring[9], ring[10], ring[11]]);
            let peer = Peer::new(memory, wakes_client, [control, wakes_server]);
            Peer { is_client: false, own: 1, to_client: to_client.into(), ..peer }
        });
        let connected = Connection::connect_with(&endpoint(&path), PATIENCE, Limits::default());
        (connected.expect("a good handshake"), serving.join().expect("a good handshake"))
    }

    fn new(memory: OwnedFd, wakes_us: OwnedFd, held: [OwnedFd; 2]) -> Self {
        let (sent, wanted) = (VecDeque::new(), VecDeque::new());
        let (is_client, own, to_client) = (true, 0, TO_CLIENT);
        let (next, emptied, _held) = (0, 0, held);
        Peer { memory, wakes_us, _held, is_client, own, to_client, sent, wanted, next, emptied }
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        // Beyond the end nothing is written.
        let _ = pwrite(&self.memory, bytes, at);
    }

    fn get<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut bytes = [0; N];
        let _ = pread(&self.memory, &mut bytes, at);
        bytes
    }

    fn ring(&self, ring: u8) -> u64 {
        if ring == 0 { TO_SERVER } else { self.to_client }
    }

    /// Head or tail, whichever the client or the server moves.
    fn index_at(&self, ring: u8, is_clients: bool) -> u64 {
        self.ring(ring) + if is_clients { 6 } else { 64 }
    }

    fn index(&self, ring: u8) -> u16 {
        u16::from_le_bytes(self.get(self.index_at(ring, self.is_client)))
    }

    fn our_index(&self, ring: u8) -> u16 {
        u16::from_le_bytes(self.get(self.index_at(ring, !self.is_client)))
    }

    fn put_index(&self, ring: u8, index: u16) {
        self.put(self.index_at(ring, self.is_client), &index.to_le_bytes());
        self.wake_us();
    }

    fn wake_us(&self) {
        let _ = rustix::io::write(&self.wakes_us, &1u64.to_ne_bytes());
    }

    fn put_flags(&self, ring: u8, flags: u16) {
        self.put(self.ring(ring) + 4, &flags.to_le_bytes());
    }

    fn descriptor_at(&self, ring: u8, index: u16) -> u64 {
        self.ring(ring) + 128 + u64::from(index % SLOTS) * 16
    }

    /// Writes one field of a descriptor: flags, region, length or offset.
    fn put_field(&self, place: u8, field: u8, value: u32) {
        let at = self.descriptor_at(place & 1, u16::from(place >> 1));
        let bytes = value.to_le_bytes();
        match field % 4 {
            0 => self.put(at, &bytes[..2]),
            1 => self.put(at + 2, &bytes[..2]),
            2 => self.put(at + 4, &bytes),
            _ => self.put(at + 8, &bytes),
        }
    }

    /// Where the buffer of a slot is, as its descriptor says.
    fn buffer(&self, ring: u8, index: u16) -> u64 {
        u32::from_le_bytes(self.get(self.descriptor_at(ring, index) + 8)).into()
    }

    /// Sends a frame as a good peer does, if there is room.
    fn send(&mut self, content_bytes: usize, mark: u8) {
        let ours = self.our_index(self.own);
        let room = if self.is_client {
            SLOTS.wrapping_sub(self.next.wrapping_sub(ours))
        } else {
            ours.wrapping_sub(self.next)
        };
        if room == 0 {
            return;
        }
        let bytes = frame(content_bytes, mark);
        self.put(self.buffer(self.own, self.next), &bytes);
        let length = u32::try_from(bytes.len()).expect("short").to_le_bytes();
        let at = self.descriptor_at(self.own, self.next);
        self.put(at, &[0, 0, 0, 0]);
        self.put(at + 4, &length);
        self.next = self.next.wrapping_add(1);
        self.put_index(self.own, self.next);
        self.sent.push_back(bytes);
    }

    /// Takes what we have sent, and gives the slots back.
    fn take(&mut self, is_compared: bool) {
        let ring = 1 - self.own;
        for _ in 0..SLOTS {
            if self.emptied == self.our_index(ring) {
                break;
            }
            let at = self.descriptor_at(ring, self.emptied);
            if is_compared {
                let length = u32::from_le_bytes(self.get(at + 4)) as usize;
                let mut bytes = vec![0; length.min(BUFFER as usize)];
                let _ = pread(&self.memory, &mut bytes, self.buffer(ring, self.emptied));
                assert_eq!(Some(bytes), self.wanted.pop_front(), "frames come as we sent them");
            }
            if self.is_client {
                self.put(at + 4, &(BUFFER as u32).to_le_bytes());
            }
            self.emptied = self.emptied.wrapping_add(1);
        }
        let given = if self.is_client { SLOTS } else { 0 };
        self.put_index(ring, self.emptied.wrapping_add(given));
    }
}

/// A socket that clients of ours connect to; its file goes with it.
struct Place(OwnedFd, PathBuf);

impl Place {
    fn new() -> Self {
        let (listener, path) = (new_socket(), new_path());
        bind(&listener, &SocketAddrUnix::new(&path).expect("short")).expect("a free path");
        listen(&listener, 4).expect("bound");
        Place(listener, path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.1);
    }
}

fn new_path() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("byname-fuzz-{}-{count}", std::process::id()))
}

fn endpoint(path: &Path) -> Endpoint {
    format!("memif://{}", path.display()).parse().expect("an endpoint")
}

fn new_socket() -> OwnedFd {
    socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).expect("a socket")
}

fn new_eventfd() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd")
}

/// Memory with two rings and their buffers, as a good client makes it.
fn rings() -> OwnedFd {
    let sealable = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = memfd_create("fuzz", sealable).expect("memory");
    ftruncate(&memory, REGION).expect("memory");
    fcntl_add_seals(&memory, SealFlags::SHRINK).expect("sealable");
    for (ring, first) in [(TO_SERVER, 0), (TO_CLIENT, SLOTS)] {
        let put = |at: u64, bytes: &[u8]| {
            assert_eq!(pwrite(&memory, bytes, ring + at), Ok(bytes.len()));
        };
        put(0, &COOKIE.to_le_bytes());
        for slot in 0..SLOTS {
            let offset = BUFFERS + u64::from(first + slot) * BUFFER;
            let at = 128 + u64::from(slot) * 16;
            put(at + 4, &(BUFFER as u32).to_le_bytes());
            put(at + 8, &u32::try_from(offset).expect("small").to_le_bytes());
        }
    }
    assert_eq!(pwrite(&memory, &SLOTS.to_le_bytes(), TO_CLIENT + 6), Ok(2));
    memory
}

fn message(kind: u16, fields: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(fields);
    bytes.resize(128, 0);
    bytes
}

fn put_message(socket: &OwnedFd, bytes: &[u8], descriptor: Option<&OwnedFd>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<BorrowedFd<'_>> = descriptor.iter().map(|fd| fd.as_fd()).collect();
    if !descriptors.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).expect("sent");
}

/// A message and its descriptor.
fn get_message(socket: &OwnedFd) -> ([u8; 128], Option<OwnedFd>) {
    let mut bytes = [0; 128];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags).expect("a message");
    let mut found = None;
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = part {
            found = descriptors.last();
        }
    }
    (bytes, found)
}
