//! The control messages of memif version 2: 128 octets each, in the machine's byte order.
//!
//! Layouts are those of libmemif, VPP and DPDK (packed structures behind a 16-bit type). Nothing
//! here trusts a length: a message is decoded from exactly [`MESSAGE_BYTES`] octets.

use super::error::MemifError;

/// Octets of every message.
pub(super) const MESSAGE_BYTES: usize = 128;

/// The version we speak, and the only one: major in the high octet.
pub(super) const VERSION: u16 = 0x0200;

/// Ethernet, which for NDN means: one bare packet in each buffer.
pub(super) const MODE_ETHERNET: u8 = 0;

/// In the flags of [`AddRing`]: packets travel from the client to the server.
pub(super) const RING_TO_SERVER: u16 = 1;

const NAME_BYTES: usize = 32;
const SECRET_BYTES: usize = 24;
const REASON_BYTES: usize = 96;

/// Name sent to peers, which show it in logs.
const NAME: &str = "byname";

const ACK: u16 = 1;
const HELLO: u16 = 2;
const INIT: u16 = 3;
const ADD_REGION: u16 = 4;
const ADD_RING: u16 = 5;
const CONNECT: u16 = 6;
const CONNECTED: u16 = 7;
const DISCONNECT: u16 = 8;

/// One control message. Names and secrets of clients are not kept: nothing depends on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    Ack,
    Hello(Hello),
    Init(Init),
    AddRegion(AddRegion),
    AddRing(AddRing),
    Connect,
    Connected,
    Disconnect { reason: String },
}

/// Capabilities of the server, its first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) version_min: u16,
    pub(super) version_max: u16,
    pub(super) region_index_max: u16,
    pub(super) to_client_index_max: u16,
    pub(super) to_server_index_max: u16,
    pub(super) ring_log2_max: u8,
    /// The server has our name. On sending it always has.
    pub(super) is_byname: bool,
}

/// Parameters requested by the client, its first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Init {
    pub(super) version: u16,
    pub(super) id: u32,
    pub(super) mode: u8,
}

/// Comes with the descriptor of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AddRegion {
    pub(super) index: u16,
    pub(super) bytes: u64,
}

/// Comes with the descriptor of the ring's eventfd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AddRing {
    pub(super) flags: u16,
    pub(super) index: u16,
    pub(super) region: u16,
    pub(super) offset: u32,
    pub(super) ring_log2: u8,
    pub(super) private_header_bytes: u16,
}

/// Writes packed fields one behind the other; what is not written is zero.
struct Writer {
    bytes: [u8; MESSAGE_BYTES],
    at: usize,
}

impl Writer {
    fn put(&mut self, field: &[u8]) -> &mut Self {
        self.bytes[self.at..self.at + field.len()].copy_from_slice(field);
        self.at += field.len();
        self
    }

    /// A text of at most `room - 1` octets and zeroes.
    fn put_text(&mut self, text: &str, room: usize) -> &mut Self {
        let mut length = text.len().min(room - 1);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        let end = self.at + room;
        self.put(&text.as_bytes()[..length]);
        self.at = end;
        self
    }
}

/// Reads packed fields one behind the other.
struct Reader<'a> {
    bytes: &'a [u8; MESSAGE_BYTES],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(self.slice(N));
        field
    }

    fn slice(&mut self, length: usize) -> &'a [u8] {
        let from = self.at;
        self.at += length;
        &self.bytes[from..self.at]
    }

    fn u8(&mut self) -> u8 {
        u8::from_ne_bytes(self.take())
    }

    fn u16(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }

    /// Up to the first zero, without what could garble a terminal.
    fn text(&mut self, room: usize) -> String {
        let field = self.slice(room);
        let end = field.iter().position(|octet| *octet == 0).unwrap_or(room);
        let text = String::from_utf8_lossy(&field[..end]);
        text.chars().filter(|c| !c.is_control()).collect()
    }
}

impl Message {
    pub(super) fn encode(&self) -> [u8; MESSAGE_BYTES] {
        let mut writer = Writer { bytes: [0; MESSAGE_BYTES], at: 0 };
        writer.put(&self.kind().to_ne_bytes());
        match self {
            Message::Ack => {}
            Message::Hello(hello) => {
                writer.put_text(NAME, NAME_BYTES);
                writer.put(&hello.version_min.to_ne_bytes());
                writer.put(&hello.version_max.to_ne_bytes());
                writer.put(&hello.region_index_max.to_ne_bytes());
                writer.put(&hello.to_client_index_max.to_ne_bytes());
                writer.put(&hello.to_server_index_max.to_ne_bytes());
                writer.put(&[hello.ring_log2_max]);
            }
            Message::Init(init) => {
                writer.put(&init.version.to_ne_bytes()).put(&init.id.to_ne_bytes());
                writer.put(&[init.mode]).put(&[0; SECRET_BYTES]).put_text(NAME, NAME_BYTES);
            }
            Message::AddRegion(region) => {
                writer.put(&region.index.to_ne_bytes()).put(&region.bytes.to_ne_bytes());
            }
            Message::AddRing(ring) => {
                writer.put(&ring.flags.to_ne_bytes()).put(&ring.index.to_ne_bytes());
                writer.put(&ring.region.to_ne_bytes()).put(&ring.offset.to_ne_bytes());
                writer.put(&[ring.ring_log2]).put(&ring.private_header_bytes.to_ne_bytes());
            }
            Message::Connect | Message::Connected => {
                writer.put_text(NAME, NAME_BYTES);
            }
            Message::Disconnect { reason } => {
                writer.put(&0u32.to_ne_bytes()).put_text(reason, REASON_BYTES);
            }
        }
        writer.bytes
    }

    pub(super) fn decode(bytes: &[u8; MESSAGE_BYTES]) -> Result<Self, MemifError> {
        let mut reader = Reader { bytes, at: 0 };
        let kind = reader.u16();
        Ok(match kind {
            ACK => Message::Ack,
            HELLO => {
                let is_byname = reader.text(NAME_BYTES) == NAME;
                Message::Hello(Hello {
                    is_byname,
                    version_min: reader.u16(),
                    version_max: reader.u16(),
                    region_index_max: reader.u16(),
                    to_client_index_max: reader.u16(),
                    to_server_index_max: reader.u16(),
                    ring_log2_max: reader.u8(),
                })
            }
            INIT => {
                Message::Init(Init { version: reader.u16(), id: reader.u32(), mode: reader.u8() })
            }
            ADD_REGION => {
                Message::AddRegion(AddRegion { index: reader.u16(), bytes: reader.u64() })
            }
            ADD_RING => Message::AddRing(AddRing {
                flags: reader.u16(),
                index: reader.u16(),
                region: reader.u16(),
                offset: reader.u32(),
                ring_log2: reader.u8(),
                private_header_bytes: reader.u16(),
            }),
            CONNECT => Message::Connect,
            CONNECTED => Message::Connected,
            DISCONNECT => {
                reader.u32();
                Message::Disconnect { reason: reader.text(REASON_BYTES) }
            }
            _ => return Err(MemifError::UnknownMessage { kind }),
        })
    }

    /// The type on the wire.
    fn kind(&self) -> u16 {
        match self {
            Message::Ack => ACK,
            Message::Hello(_) => HELLO,
            Message::Init(_) => INIT,
            Message::AddRegion(_) => ADD_REGION,
            Message::AddRing(_) => ADD_RING,
            Message::Connect => CONNECT,
            Message::Connected => CONNECTED,
            Message::Disconnect { .. } => DISCONNECT,
        }
    }

    /// For error messages.
    pub(super) fn label(&self) -> &'static str {
        match self {
            Message::Ack => "ACK",
            Message::Hello(_) => "HELLO",
            Message::Init(_) => "INIT",
            Message::AddRegion(_) => "ADD_REGION",
            Message::AddRing(_) => "ADD_RING",
            Message::Connect => "CONNECT",
            Message::Connected => "CONNECTED",
            Message::Disconnect { .. } => "DISCONNECT",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_a_round_trip() {
        let hello = Hello {
            version_min: 1,
            version_max: 2,
            region_index_max: 3,
            to_client_index_max: 4,
            to_server_index_max: 5,
            ring_log2_max: 6,
            is_byname: true,
        };
        let ring = AddRing {
            flags: 1,
            index: 2,
            region: 3,
            offset: 0x0405_0607,
            ring_log2: 8,
            private_header_bytes: 9,
        };
        for message in [
            Message::Ack,
            Message::Hello(hello),
            Message::Init(Init { version: VERSION, id: 0x0102_0304, mode: 1 }),
            Message::AddRegion(AddRegion { index: 7, bytes: 1 << 40 }),
            Message::AddRing(ring),
            Message::Connect,
            Message::Connected,
            Message::Disconnect { reason: "bye".to_owned() },
        ] {
            assert_eq!(Message::decode(&message.encode()).unwrap(), message);
        }
    }

    /// Offsets of the packed structures that every other implementation uses.
    #[test]
    #[cfg(target_endian = "little")]
    fn fields_are_where_others_look_for_them() {
        let bytes = Message::Init(Init { version: VERSION, id: 0x0403_0201, mode: 0 }).encode();
        assert_eq!(bytes[..9], [3, 0, 0, 2, 1, 2, 3, 4, 0]);
        assert_eq!(&bytes[33..40], b"byname\0");
        let bytes = Message::AddRegion(AddRegion { index: 5, bytes: 0x1122 }).encode();
        assert_eq!(bytes[..12], [4, 0, 5, 0, 0x22, 0x11, 0, 0, 0, 0, 0, 0]);
        let ring = AddRing {
            flags: RING_TO_SERVER,
            index: 0,
            region: 2,
            offset: 0x80,
            ring_log2: 10,
            private_header_bytes: 0,
        };
        let bytes = Message::AddRing(ring).encode();
        assert_eq!(bytes[..15], [5, 0, 1, 0, 0, 0, 2, 0, 0x80, 0, 0, 0, 10, 0, 0]);
    }

    #[test]
    fn long_and_strange_texts_do_no_harm() {
        let long = Message::Disconnect { reason: "ü".repeat(100) };
        let Message::Disconnect { reason } = Message::decode(&long.encode()).unwrap() else {
            panic!("another message")
        };
        assert_eq!(reason, "ü".repeat(47));
        let mut bytes = Message::Disconnect { reason: String::new() }.encode();
        bytes[6..].fill(0x07);
        bytes[6] = 0xff;
        let found = Message::decode(&bytes).unwrap();
        assert_eq!(found, Message::Disconnect { reason: "\u{fffd}".to_owned() });
        assert!(matches!(Message::decode(&[9; 128]), Err(MemifError::UnknownMessage { .. })));
    }
}
