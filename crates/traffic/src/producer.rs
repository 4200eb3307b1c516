//! Answers, with content that follows from the name. Sans-I/O.
//!
//! Interests are noted as they come in ([`Producer::handle_packet`]) and answered later
//! ([`Producer::poll_reply`]), because frames are borrowed from the connection that the answers are
//! written to. What is the same in all answers is encoded once.

use byname_packet::lp::{self, LpHeader};
use byname_packet::{DigestSigner, Interest, MAX_PACKET_BYTES, Name, NameRef, NullSigner, Signer};
use byname_packet::{tlv, types};

use crate::payload::{Payload, Sizes, key_of};

/// Octets of noted Interests, beyond which no more should be read.
const WAITING_BYTES_MAX: usize = 256 << 10;
/// Longest PIT token.
const TOKEN_BYTES_MAX: usize = 32;

/// Signature of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signature {
    /// Not at all; costs nothing.
    Null,
    /// A SHA-256 digest over every packet.
    Digest,
}

impl Signature {
    fn signer(self) -> &'static dyn Signer {
        match self {
            Signature::Null => &NullSigner,
            Signature::Digest => &DigestSigner,
        }
    }
}

/// Settings of a producer: prefixes and answers.
#[derive(Debug, Clone)]
pub struct ProducerConfig {
    /// Names that are answered begin with one of these.
    pub prefixes: Vec<Name>,
    /// Lengths of contents.
    pub sizes: Sizes,
    /// FreshnessPeriod; 0 leaves it out.
    pub freshness_ms: u64,
    /// Signature of answers.
    pub signature: Signature,
}

impl ProducerConfig {
    /// Answers nothing yet: no prefixes, no freshness, no signature.
    pub fn new(sizes: Sizes) -> Self {
        Self { prefixes: Vec::new(), sizes, freshness_ms: 0, signature: Signature::Null }
    }
}

/// Counters of a producer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProducerReport {
    /// Interests answered.
    pub data: u64,
    /// Octets of their content.
    pub content_bytes: u64,
    /// Interests for other names, and packets that are none.
    pub ignored: u64,
    /// Answers that would not have fitted a packet.
    pub too_large: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Producer {
    config: ProducerConfig,
    payload: Payload,
    /// Noted Interests, one after the other: length of the token, token, length of the name, name.
    waiting: Vec<u8>,
    next: usize,
    meta: Vec<u8>,
    /// SignatureInfo, and TYPE and LENGTH of SignatureValue.
    trailer: Vec<u8>,
    signature_len: usize,
    head: Vec<u8>,
    report: ProducerReport,
}

/// An answer that knows its length and writes itself.
#[derive(Debug)]
pub struct Reply<'a> {
    /// Everything before the content, the link header included.
    head: &'a [u8],
    /// Where the signed portion begins.
    signed_from: usize,
    /// Where the packet begins behind the link header.
    packet_from: usize,
    content: &'a [u8],
    trailer: &'a [u8],
    signature_len: usize,
    /// The link header's token, which a fragmented packet carries in its own way.
    token: &'a [u8],
}

impl Reply<'_> {
    /// Octets of the frame.
    pub fn frame_len(&self) -> usize {
        self.head.len() + self.content.len() + self.trailer.len() + self.signature_len
    }

    /// Writes the frame into a buffer of exactly [`Reply::frame_len`] octets.
    pub fn write(&self, frame: &mut [u8]) {
        let (head, rest) = frame.split_at_mut(self.head.len());
        let (content, rest) = rest.split_at_mut(self.content.len());
        head.copy_from_slice(self.head);
        content.copy_from_slice(self.content);
        rest[..self.trailer.len()].copy_from_slice(self.trailer);
        if self.signature_len > 0 {
            let value_at = frame.len() - self.signature_len;
            // TYPE and LENGTH of SignatureValue are two octets for every signature made here.
            let (signed, value) = frame.split_at_mut(value_at);
            let signed = &signed[self.signed_from..value_at - 2];
            let _ = DigestSigner.sign(&[signed], value);
        }
    }

    /// The header of the packet for a link service that adds its own.
    pub fn header(&self) -> LpHeader<'_> {
        let pit_token = (!self.token.is_empty()).then_some(self.token);
        LpHeader { pit_token, ..LpHeader::default() }
    }

    /// Where in the frame the packet begins.
    pub fn packet_at(&self) -> usize {
        self.packet_from
    }
}

impl Producer {
    /// A producer.
    pub fn new(config: ProducerConfig) -> Self {
        let signer = config.signature.signer();
        let mut meta = Vec::new();
        if config.freshness_ms > 0 {
            let len = tlv::nni_element_len(types::FRESHNESS_PERIOD, config.freshness_ms);
            tlv::write_tl(&mut meta, types::META_INFO, len);
            tlv::write_nni(&mut meta, types::FRESHNESS_PERIOD, config.freshness_ms);
        }
        let (mut info, mut trailer) = (Vec::new(), Vec::new());
        tlv::write_nni(&mut info, types::SIGNATURE_TYPE, signer.signature_type());
        tlv::write_element(&mut trailer, types::SIGNATURE_INFO, &info);
        let signature_len = signer.signature_len_max();
        tlv::write_tl(&mut trailer, types::SIGNATURE_VALUE, signature_len);
        Self {
            config,
            payload: Payload::default(),
            waiting: Vec::with_capacity(2 * WAITING_BYTES_MAX),
            next: 0,
            meta,
            trailer,
            signature_len,
            head: Vec::with_capacity(MAX_PACKET_BYTES),
            report: ProducerReport::default(),
        }
    }

    /// Notes an Interest; false if it is none that is answered here.
    pub fn handle_packet(&mut self, header: &LpHeader<'_>, packet: &[u8]) -> bool {
        let interest = match Interest::decode(packet) {
            Ok(interest) if header.nack.is_none() && self.answers(interest.name) => interest,
            _ => {
                self.report.ignored += 1;
                return false;
            }
        };
        let token = header.pit_token.unwrap_or_default();
        let name = interest.name.value();
        // Both lengths are bounded by the packet format: 32 and 8800 octets.
        self.waiting.push(token.len() as u8);
        self.waiting.extend_from_slice(token);
        self.waiting.extend_from_slice(&(name.len() as u16).to_be_bytes());
        self.waiting.extend_from_slice(name);
        true
    }

    fn answers(&self, name: NameRef<'_>) -> bool {
        self.config.prefixes.iter().any(|prefix| prefix.view().is_prefix_of(name))
    }

    /// True if so many Interests wait that no more should be read.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_BYTES_MAX
    }

    /// True if an Interest waits for its answer.
    pub fn is_waiting(&self) -> bool {
        self.next < self.waiting.len()
    }

    /// Hands out the next answer. If `send` says false, it stays the next one.
    pub fn poll_reply(&mut self, send: &mut dyn FnMut(&Reply<'_>) -> bool) -> bool {
        let Some((token, name, after)) = noted(&self.waiting, self.next) else {
            self.waiting.clear();
            self.next = 0;
            return false;
        };
        let key = key_of(name);
        let content = self.payload.content(key, self.config.sizes.of(key));
        let value_len = name.wire_len()
            + self.meta.len()
            + tlv::element_len(types::CONTENT, content.len())
            + self.trailer.len()
            + self.signature_len;
        let packet_len = tlv::element_len(types::DATA, value_len);
        if packet_len > MAX_PACKET_BYTES {
            self.report.too_large += 1;
            self.next = after;
            return true;
        }
        let head = &mut self.head;
        head.clear();
        let pit_token = (!token.is_empty()).then_some(token);
        let header = LpHeader { pit_token, ..LpHeader::default() };
        lp::encode_header(&header, None, packet_len, head);
        let packet_from = head.len();
        tlv::write_tl(head, types::DATA, value_len);
        let signed_from = head.len();
        name.encode(head);
        head.extend_from_slice(&self.meta);
        tlv::write_tl(head, types::CONTENT, content.len());
        let reply = Reply {
            head: &self.head,
            signed_from,
            packet_from,
            content,
            trailer: &self.trailer,
            signature_len: self.signature_len,
            token,
        };
        if !send(&reply) {
            return false;
        }
        self.report.data += 1;
        self.report.content_bytes += content.len() as u64;
        self.next = after;
        true
    }

    /// The report so far.
    pub fn report(&self) -> ProducerReport {
        self.report
    }
}

/// Token and name of the Interest noted at `at`, and where the next one is.
fn noted(waiting: &[u8], at: usize) -> Option<(&[u8], NameRef<'_>, usize)> {
    let (token_len, rest) = waiting.get(at..)?.split_first()?;
    let (token, rest) = rest.split_at_checked(usize::from(*token_len).min(TOKEN_BYTES_MAX))?;
    let (name_len, rest) = rest.split_first_chunk::<2>()?;
    let name = rest.get(..usize::from(u16::from_be_bytes(*name_len)))?;
    let after = at + 1 + token.len() + 2 + name.len();
    NameRef::from_value(name).ok().map(|name| (token, name, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_packet::lp::LpPacket;
    use byname_packet::{Data, InterestBuilder, signature_type};

    fn asked(producer: &mut Producer, name: &str, token: Option<&[u8]>) -> Option<Vec<u8>> {
        let name: Name = name.parse().unwrap();
        let mut wire = Vec::new();
        InterestBuilder::new(name.view()).nonce([1; 4]).encode(&mut wire);
        let header = LpHeader { pit_token: token, ..LpHeader::default() };
        if !producer.handle_packet(&header, &wire) {
            return None;
        }
        let mut frame = Vec::new();
        producer.poll_reply(&mut |reply| {
            frame.resize(reply.frame_len(), 0);
            reply.write(&mut frame);
            true
        });
        Some(frame)
    }

    fn producer(signature: Signature, freshness_ms: u64) -> Producer {
        Producer::new(ProducerConfig {
            prefixes: vec!["/a".parse().unwrap()],
            freshness_ms,
            signature,
            ..ProducerConfig::new(Sizes::fixed(1000).unwrap())
        })
    }

    #[test]
    fn answers_are_packets_with_the_content_of_their_name() {
        for (signature, typ) in
            [(Signature::Null, signature_type::NULL), (Signature::Digest, signature_type::SHA256)]
        {
            let mut producer = producer(signature, 500);
            for token in [None, Some(&[7; 32][..]), Some(&[9; 1][..])] {
                let frame = asked(&mut producer, "/a/x/y", token).unwrap();
                let lp = LpPacket::decode(&frame).unwrap();
                assert_eq!(lp.header.pit_token, token);
                let data = Data::decode(lp.fragment.unwrap()).unwrap();
                assert_eq!(data.name.to_user(), "/a/x/y");
                assert_eq!(data.meta.freshness_ms, 500);
                assert_eq!(data.signature_info.signature_type, typ);
                assert_eq!(data.content.len(), 1000);
                assert!(Payload::default().is_content(key_of(data.name), data.content));
                if signature == Signature::Digest {
                    let digest = byname_packet::sha256(&[data.signed_portion()]);
                    assert_eq!(data.signature_value, digest);
                }
            }
            assert_eq!(producer.report().data, 3);
        }
    }

    #[test]
    fn only_its_prefixes_are_answered() {
        let mut producer = producer(Signature::Null, 0);
        assert!(asked(&mut producer, "/b", None).is_none());
        assert!(!producer.handle_packet(&LpHeader::default(), &[6, 0]));
        let header = LpHeader { nack: Some(150), ..LpHeader::default() };
        let mut wire = Vec::new();
        let name: Name = "/a/1".parse().unwrap();
        InterestBuilder::new(name.view()).encode(&mut wire);
        assert!(!producer.handle_packet(&header, &wire));
        assert_eq!(producer.report(), ProducerReport { ignored: 3, ..ProducerReport::default() });
    }

    #[test]
    fn an_answer_that_finds_no_room_is_the_next_one() {
        let mut producer = producer(Signature::Null, 0);
        let frame = asked(&mut producer, "/a/1", None).unwrap();
        let name: Name = "/a/1".parse().unwrap();
        let mut wire = Vec::new();
        InterestBuilder::new(name.view()).encode(&mut wire);
        assert!(producer.handle_packet(&LpHeader::default(), &wire));
        assert!(!producer.poll_reply(&mut |_| false));
        assert!(producer.is_waiting());
        let mut again = Vec::new();
        producer.poll_reply(&mut |reply| {
            again.resize(reply.frame_len(), 0);
            reply.write(&mut again);
            true
        });
        assert_eq!(again, frame);
        assert!(!producer.is_waiting());
        assert_eq!(producer.report().data, 2);
    }

    #[test]
    fn what_fits_no_packet_is_counted() {
        let mut producer = producer(Signature::Null, 0);
        let long = format!("/a/{}", "x".repeat(7900));
        assert_eq!(asked(&mut producer, &long, None), Some(Vec::new()));
        assert_eq!(producer.report().too_large, 1);
        assert!(!producer.is_waiting());
    }
}
