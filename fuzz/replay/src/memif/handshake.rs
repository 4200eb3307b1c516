//! How the peer gets in touch: the handshake, octet by octet, and memory as a good client makes it.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use byname_io::{Connection, Endpoint, Limits, Listener};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::pwrite;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketType, accept, bind, connect, listen,
    recvmsg, sendmsg, socket,
};

use super::peer::Peer;
use super::{BUFFER, BUFFERS, LOG2, REGION, SLOTS, TO_CLIENT, TO_SERVER};

const ACK: u16 = 1;
const HELLO: u16 = 2;
const INIT: u16 = 3;
const ADD_REGION: u16 = 4;
const ADD_RING: u16 = 5;
const CONNECT: u16 = 6;
const CONNECTED: u16 = 7;
const COOKIE: u32 = 0x03E3_1F20;
/// Longer than a handshake takes.
const PATIENCE: Duration = Duration::from_secs(20);

impl Peer {
    /// Connects to a server of ours.
    pub(super) fn as_client() -> (Connection, Self) {
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
    pub(super) fn as_server() -> (Connection, Self) {
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
