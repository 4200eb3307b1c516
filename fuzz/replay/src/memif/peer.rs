//! The peer's end of the shared memory, which it reads and writes as a file.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::io::{pread, pwrite};

use super::{BUFFER, SLOTS, TO_CLIENT, TO_SERVER, frame};

/// The other process, as it were.
pub(super) struct Peer {
    pub(super) memory: OwnedFd,
    pub(super) wakes_us: OwnedFd,
    /// Open as long as the peer lives.
    pub(super) _held: [OwnedFd; 2],
    pub(super) is_client: bool,
    /// The ring in which the peer sends: 0 to the server, 1 to the client.
    pub(super) own: u8,
    /// Where the ring to the client lies.
    pub(super) to_client: u64,
    /// Sent, and not received yet.
    pub(super) sent: VecDeque<Vec<u8>>,
    /// To be received by the peer.
    pub(super) wanted: VecDeque<Vec<u8>>,
    /// The next slots to fill and to empty.
    pub(super) next: u16,
    pub(super) emptied: u16,
}

impl Peer {
    pub(super) fn new(memory: OwnedFd, wakes_us: OwnedFd, held: [OwnedFd; 2]) -> Self {
        let (sent, wanted) = (VecDeque::new(), VecDeque::new());
        let (is_client, own, to_client) = (true, 0, TO_CLIENT);
        let (next, emptied, _held) = (0, 0, held);
        Peer { memory, wakes_us, _held, is_client, own, to_client, sent, wanted, next, emptied }
    }

    pub(super) fn put(&self, at: u64, bytes: &[u8]) {
        // Beyond the end nothing is written.
        let _ = pwrite(&self.memory, bytes, at);
    }

    pub(super) fn get<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut bytes = [0; N];
        let _ = pread(&self.memory, &mut bytes, at);
        bytes
    }

    pub(super) fn ring(&self, ring: u8) -> u64 {
        if ring == 0 { TO_SERVER } else { self.to_client }
    }

    /// Head or tail, whichever the client or the server moves.
    pub(super) fn index_at(&self, ring: u8, is_clients: bool) -> u64 {
        self.ring(ring) + if is_clients { 6 } else { 64 }
    }

    pub(super) fn index(&self, ring: u8) -> u16 {
        u16::from_le_bytes(self.get(self.index_at(ring, self.is_client)))
    }

    pub(super) fn our_index(&self, ring: u8) -> u16 {
        u16::from_le_bytes(self.get(self.index_at(ring, !self.is_client)))
    }

    pub(super) fn put_index(&self, ring: u8, index: u16) {
        self.put(self.index_at(ring, self.is_client), &index.to_le_bytes());
        self.wake_us();
    }

    pub(super) fn wake_us(&self) {
        let _ = rustix::io::write(&self.wakes_us, &1u64.to_ne_bytes());
    }

    pub(super) fn put_flags(&self, ring: u8, flags: u16) {
        self.put(self.ring(ring) + 4, &flags.to_le_bytes());
    }

    pub(super) fn descriptor_at(&self, ring: u8, index: u16) -> u64 {
        self.ring(ring) + 128 + u64::from(index % SLOTS) * 16
    }

    /// Writes one field of a descriptor: flags, region, length or offset.
    pub(super) fn put_field(&self, place: u8, field: u8, value: u32) {
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
    pub(super) fn buffer(&self, ring: u8, index: u16) -> u64 {
        u32::from_le_bytes(self.get(self.descriptor_at(ring, index) + 8)).into()
    }

    /// Sends a frame as a good peer does, if there is room.
    pub(super) fn send(&mut self, content_bytes: usize, mark: u8) {
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
    pub(super) fn take(&mut self, is_compared: bool) {
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
