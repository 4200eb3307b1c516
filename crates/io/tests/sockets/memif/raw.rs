//! A peer that speaks memif octet by octet, shares no code with the library, and can do it wrong.
//! It reads and writes its memory as a file, so nothing here is unsafe.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::{pread, pwrite};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketType, accept, bind, connect, listen,
    recvmsg, sendmsg, socket,
};

pub(super) const ACK: u16 = 1;
pub(super) const HELLO: u16 = 2;
pub(super) const INIT: u16 = 3;
pub(super) const ADD_REGION: u16 = 4;
pub(super) const ADD_RING: u16 = 5;
pub(super) const CONNECT: u16 = 6;
pub(super) const CONNECTED: u16 = 7;
pub(super) const DISCONNECT: u16 = 8;

pub(super) const COOKIE: u32 = 0x3E3_1F20;

/// In the flags of a ring: its receiver is awake and looks by itself.
pub(super) const MASK_INTERRUPT: u16 = 1;

/// Slots of the rings of these tests.
pub(super) const LOG2: u8 = 3;
pub(super) const SLOTS: u64 = 1 << LOG2;
pub(super) const BUFFER: u64 = 2048;
/// Where the ring to the server and the one to the client are, and the buffers.
pub(super) const TO_SERVER: u64 = 0;
pub(super) const TO_CLIENT: u64 = 512;
pub(super) const BUFFERS: u64 = 4096;
pub(super) const REGION: u64 = BUFFERS + 2 * SLOTS * BUFFER;

/// A message: its type, then fields.
pub(super) fn message(kind: u16, fields: &[&[u8]]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(fields.concat());
    bytes.resize(128, 0);
    bytes
}

pub(super) fn init(version: u16, mode: u8) -> Vec<u8> {
    message(INIT, &[&version.to_le_bytes(), &5u32.to_le_bytes(), &[mode]])
}

pub(super) fn add_region(index: u16, bytes: u64) -> Vec<u8> {
    message(ADD_REGION, &[&index.to_le_bytes(), &bytes.to_le_bytes()])
}

/// An offer of a ring, as a good client makes it.
#[derive(Clone, Copy)]
pub(super) struct RingOffer {
    pub(super) flags: u16,
    pub(super) index: u16,
    pub(super) region: u16,
    pub(super) offset: u32,
    pub(super) log2: u8,
    pub(super) header: u16,
}

impl RingOffer {
    pub(super) const TO_SERVER: Self = RingOffer {
        flags: 1,
        index: 0,
        region: 0,
        offset: TO_SERVER as u32,
        log2: LOG2,
        header: 0,
    };
    pub(super) const TO_CLIENT: Self =
        RingOffer { flags: 0, offset: TO_CLIENT as u32, ..Self::TO_SERVER };

    pub(super) fn message(self) -> Vec<u8> {
        let (flags, index) = (self.flags.to_le_bytes(), self.index.to_le_bytes());
        let (region, offset) = (self.region.to_le_bytes(), self.offset.to_le_bytes());
        let header = self.header.to_le_bytes();
        message(ADD_RING, &[&flags, &index, &region, &offset, &[self.log2], &header])
    }
}

/// One end of a control socket.
pub(super) struct Control(pub(super) OwnedFd);

impl Control {
    pub(super) fn connect(path: &Path) -> Self {
        let fd = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        connect(&fd, &SocketAddrUnix::new(path).unwrap()).unwrap();
        Control(fd)
    }

    pub(super) fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
        }
        sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).unwrap();
    }

    /// The next message, of which only the type counts, and its descriptors; `None` at the end.
    pub(super) fn receive(&self) -> Option<(u16, Vec<u8>, Vec<OwnedFd>)> {
        let mut bytes = [0; 128];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let got = recvmsg(&self.0, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags);
        let Ok(got) = got else { return None };
        if got.bytes == 0 {
            return None;
        }
        assert_eq!(got.bytes, 128);
        let mut fds = Vec::new();
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(found) = part {
                fds.extend(found);
            }
        }
        Some((u16::from_le_bytes([bytes[0], bytes[1]]), bytes[2..].to_vec(), fds))
    }

    pub(super) fn expect(&self, kind: u16) -> (Vec<u8>, Vec<OwnedFd>) {
        let (found, fields, fds) = self.receive().expect("a message");
        let text = String::from_utf8_lossy(&fields).into_owned();
        assert_eq!(found, kind, "{text}");
        (fields, fds)
    }

    /// The words with which the other side ends the connection.
    pub(super) fn farewell(&self) -> String {
        loop {
            match self.receive() {
                Some((DISCONNECT, fields, _)) => {
                    let text = String::from_utf8_lossy(&fields[4..]).into_owned();
                    return text.trim_end_matches('\0').to_owned();
                }
                Some(_) => {}
                None => return String::from("(nothing)"),
            }
        }
    }
}

/// Listens as a server would.
pub(super) fn listen_at(path: &Path) -> OwnedFd {
    let fd = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    bind(&fd, &SocketAddrUnix::new(path).unwrap()).unwrap();
    listen(&fd, 4).unwrap();
    fd
}

pub(super) fn accept_at(listener: &OwnedFd) -> Control {
    Control(accept(listener).unwrap())
}

/// A slot of a ring: where its buffer lies, in octets, and whether the packet goes on in the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Descriptor {
    pub(super) flags: u16,
    pub(super) region: u16,
    pub(super) length: u32,
    pub(super) offset: u32,
}

impl Descriptor {
    /// A whole packet.
    pub(super) fn new(region: u16, length: u32, offset: u32) -> Self {
        Descriptor { flags: 0, region, length, offset }
    }
}

/// Memory, read and written as a file.
pub(super) struct Memory(pub(super) OwnedFd);

impl Memory {
    pub(super) fn new(bytes: u64) -> Self {
        let fd = memfd_create("raw", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, bytes).unwrap();
        fcntl_add_seals(&fd, SealFlags::SHRINK).unwrap();
        Memory(fd)
    }

    /// Two rings and their buffers, as a good client makes them.
    pub(super) fn with_rings() -> Self {
        let memory = Memory::new(REGION);
        for (ring, first) in [(TO_SERVER, BUFFERS), (TO_CLIENT, BUFFERS + SLOTS * BUFFER)] {
            memory.put(ring, &COOKIE.to_le_bytes());
            for slot in 0..SLOTS {
                let offset = (first + slot * BUFFER) as u32;
                memory.put_descriptor(ring, slot, Descriptor::new(0, BUFFER as u32, offset));
            }
        }
        memory.put_head(TO_CLIENT, SLOTS as u16);
        memory
    }

    pub(super) fn put(&self, offset: u64, bytes: &[u8]) {
        assert_eq!(pwrite(&self.0, bytes, offset).unwrap(), bytes.len());
    }

    pub(super) fn get<const N: usize>(&self, offset: u64) -> [u8; N] {
        let mut bytes = [0; N];
        assert_eq!(pread(&self.0, &mut bytes, offset).unwrap(), N);
        bytes
    }

    pub(super) fn put_head(&self, ring: u64, index: u16) {
        self.put(ring + 6, &index.to_le_bytes());
    }

    /// Sets the flags of a ring, by which its receiver asks to be woken or not.
    pub(super) fn put_flags(&self, ring: u64, flags: u16) {
        self.put(ring + 4, &flags.to_le_bytes());
    }

    pub(super) fn flags(&self, ring: u64) -> u16 {
        u16::from_le_bytes(self.get(ring + 4))
    }

    pub(super) fn put_tail(&self, ring: u64, index: u16) {
        self.put(ring + 64, &index.to_le_bytes());
    }

    pub(super) fn tail(&self, ring: u64) -> u16 {
        u16::from_le_bytes(self.get(ring + 64))
    }

    pub(super) fn put_descriptor(&self, ring: u64, slot: u64, fields: Descriptor) {
        let mut bytes = fields.flags.to_le_bytes().to_vec();
        bytes.extend(fields.region.to_le_bytes());
        bytes.extend(fields.length.to_le_bytes());
        bytes.extend(fields.offset.to_le_bytes());
        self.put(ring + 128 + slot * 16, &bytes);
    }

    pub(super) fn descriptor(&self, ring: u64, slot: u64) -> Descriptor {
        let b: [u8; 12] = self.get(ring + 128 + slot * 16);
        let word = |at: usize| u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        let half = |at: usize| u16::from_le_bytes([b[at], b[at + 1]]);
        Descriptor { flags: half(0), region: half(2), length: word(4), offset: word(8) }
    }
}

pub(super) fn new_eventfd() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()
}

/// A client in the hands of a test.
pub(super) struct RawClient {
    pub(super) control: Control,
    pub(super) memory: Memory,
    pub(super) wakes_server: OwnedFd,
    pub(super) wakes_us: OwnedFd,
}

impl RawClient {
    pub(super) fn new(path: &Path) -> Self {
        RawClient {
            control: Control::connect(path),
            memory: Memory::with_rings(),
            wakes_server: new_eventfd(),
            wakes_us: new_eventfd(),
        }
    }

    /// The steps of a good handshake, to be taken one by one.
    pub(super) fn steps(&self) -> [(Vec<u8>, Option<BorrowedFd<'_>>); 5] {
        [
            (init(0x0200, 0), None),
            (add_region(0, REGION), Some(self.memory.0.as_fd())),
            (RingOffer::TO_SERVER.message(), Some(self.wakes_server.as_fd())),
            (RingOffer::TO_CLIENT.message(), Some(self.wakes_us.as_fd())),
            (message(CONNECT, &[b"raw"]), None),
        ]
    }

    /// Sends all steps at once; the server answers when it is served.
    pub(super) fn send_all(&self) {
        for (bytes, fd) in self.steps() {
            self.control.send(&bytes, fd.as_slice());
        }
    }

    pub(super) fn wake_server(&self) {
        rustix::io::write(&self.wakes_server, &1u64.to_ne_bytes()).unwrap();
    }

    /// Fills a slot of the ring to the server, without showing it.
    pub(super) fn fill(&self, slot: u64, bytes: &[u8]) {
        let at = BUFFERS + slot * BUFFER;
        self.memory.put(at, bytes);
        self.memory.put_descriptor(
            TO_SERVER,
            slot,
            Descriptor::new(0, bytes.len() as u32, at as u32),
        );
    }

    /// The same as libmemif and gomemif do: who masks interrupts is not woken.
    pub(super) fn show_unless_masked(&self, index: u16) {
        self.memory.put_head(TO_SERVER, index);
        if self.memory.flags(TO_SERVER) & MASK_INTERRUPT == 0 {
            self.wake_server();
        }
    }

    /// Shows the server what lies before `index`.
    pub(super) fn show(&self, index: u16) {
        self.memory.put_head(TO_SERVER, index);
        self.wake_server();
    }
}
