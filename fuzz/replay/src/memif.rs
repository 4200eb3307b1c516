//! Target for memif in `io`: a peer that keeps to nothing, in the memory that both share.
//!
//! The input is a list of operations. The peer shares no code with the library: it speaks memif
//! octet by octet and writes the shared memory as a file, between and during our calls. What must
//! hold: as long as the peer kept to the rules, everything arrives in order and nothing fails;
//! afterwards no call panics or returns a frame that is none, and an error is the end.
//!
//! The peer is of our own user, so that our client looks at frames in place. [`handshake`] gets it
//! in touch with us, [`peer`] is its end of the memory.

mod handshake;
mod peer;

use byname_io::{Connection, FrameError};

use self::peer::Peer;

const LOG2: u8 = 3;
const SLOTS: u16 = 1 << LOG2;
const BUFFER: u64 = 9216;
const TO_SERVER: u64 = 0;
/// In the memory of a peer that is the client.
const TO_CLIENT: u64 = 512;
const BUFFERS: u64 = 4096;
/// Buffers of both rings, behind the rings.
const REGION: u64 = BUFFERS + 2 * SLOTS as u64 * BUFFER;

const OPERATION_BYTES: usize = 4;
const OPERATIONS_MAX: usize = 64;

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
