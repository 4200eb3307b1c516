//! A catalog of one file, somebody who answers anything, and somebody who asks for it.

use std::collections::VecDeque;
use std::sync::Arc;

use byname_packet::lp::{LpHeader, LpPacket, encode_header};
use byname_packet::{
    Data, DataBuilder, Interest, InterestBuilder, Name, NullSigner, NumberComponent, Packet,
    ValidityPeriod,
};
use byname_security::cert::CertificateRequest;
use byname_security::key::{KeyId, KeyPair, KeySigner};
use byname_sim::{Now, Program};
use byname_transfer::metadata::{ContentRoot, Extras, Metadata};

/// The Interest in a frame, with what has to come back with its answer.
fn interest_in<'a>(link: &LpPacket<'a>) -> Option<Interest<'a>> {
    let packet = link.fragment.filter(|_| link.header.nack.is_none())?;
    Interest::decode(packet).ok()
}

fn answer(link: &LpPacket<'_>, packet: &[u8]) -> Vec<u8> {
    let header = LpHeader { pit_token: link.header.pit_token, ..LpHeader::default() };
    let mut frame = Vec::new();
    encode_header(&header, None, packet.len(), &mut frame);
    frame.extend_from_slice(packet);
    frame
}

/// Answers for `P/file`: metadata with the name of a content.
pub(super) struct Catalog {
    signer: KeySigner,
    key_id: KeyId,
    certificate: Vec<u8>,
    metadata: Metadata,
    out: VecDeque<Vec<u8>>,
}

impl Catalog {
    pub(super) fn new(prefix: &Name, (size, root): (u64, [u8; 32]), hints: Vec<Name>) -> Self {
        let key = Arc::new(KeyPair::ed25519_from_seed(&[3; 32]));
        let key_name = prefix.with_generic(b"KEY").with_generic(&[3; 8]);
        let public_key = key.public_key();
        let request = CertificateRequest {
            key_name: key_name.view(),
            public_key: &public_key,
            issuer_id: b"self",
            version: 1,
            validity: ValidityPeriod { not_before_s: 0, not_after_s: 4_000_000_000 },
        };
        let signer = KeySigner::new(key.clone(), request.certificate_name());
        let certificate = request.issue(&signer).expect("a certificate").wire().to_vec();
        let versioned: Name = "/site/32=file/seq=5/v=1".parse().expect("a name");
        let extras = Extras { binding: Some(1), forwarding_hint: hints, ..Extras::default() };
        let metadata = Metadata {
            size: Some(size),
            segment_size: Some(8192),
            last_segment: Some(size.div_ceil(8192) - 1),
            mode: Some(0o100_644),
            root: ContentRoot::Known(root),
            extras: Some(Box::new(extras)),
            ..Metadata::new(versioned)
        };
        Catalog { signer, key_id: key.key_id(), certificate, metadata, out: VecDeque::new() }
    }

    pub(super) fn key_id(&self) -> KeyId {
        self.key_id
    }

    fn packet(&self, interest: &Interest<'_>, now: Now) -> Option<Vec<u8>> {
        let certificate = Data::decode(&self.certificate).expect("a certificate");
        if interest.matches(&certificate) {
            return Some(self.certificate.clone());
        }
        interest.name.last()?.is_keyword(b"metadata").then_some(())?;
        let (mut content, mut wire) = (Vec::new(), Vec::new());
        self.metadata.encode(&mut content);
        let name = interest.name.to_name().with_version(now.unix_ns).with_segment(0);
        let last = NumberComponent::segment(0);
        let builder = DataBuilder::new(name.view()).freshness_ms(1000);
        let builder = builder.final_block_id(last.as_component());
        builder.encode(&content, &self.signer, &mut wire).expect("a packet");
        Some(wire)
    }
}

impl Program for Catalog {
    fn handle_frame(&mut self, frame: &[u8], now: Now) {
        let Ok(link) = LpPacket::decode(frame) else { return };
        let Some(interest) = interest_in(&link) else { return };
        if let Some(packet) = self.packet(&interest, now) {
            self.out.push_back(answer(&link, &packet));
        }
    }

    fn handle_timeout(&mut self, _now: Now) {}

    fn poll_frame(&mut self, _now: Now) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<u64> {
        None
    }

    fn fault(&self) -> Option<String> {
        None
    }
}

/// Answers every Interest with octets of its own.
#[derive(Default)]
pub(super) struct Liar {
    out: VecDeque<Vec<u8>>,
}

impl Program for Liar {
    fn handle_frame(&mut self, frame: &[u8], _now: Now) {
        let Ok(link) = LpPacket::decode(frame) else { return };
        let Some(interest) = interest_in(&link) else { return };
        let mut wire = Vec::new();
        let builder = DataBuilder::new(interest.name).freshness_ms(3_600_000);
        builder.encode(&[0xBA; 8192], &NullSigner, &mut wire).expect("a packet");
        self.out.push_back(answer(&link, &wire));
    }

    fn handle_timeout(&mut self, _now: Now) {}

    fn poll_frame(&mut self, _now: Now) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<u64> {
        None
    }

    fn fault(&self) -> Option<String> {
        None
    }
}

/// Asks once for every segment of a content by one delegation.
pub(super) struct Asker {
    versioned: Name,
    segments: u64,
    hint: [Name; 1],
    start_ns: Option<u64>,
    out: VecDeque<Vec<u8>>,
    answers: u64,
}

impl Asker {
    pub(super) fn new(versioned: Name, segments: u64, delegation: Name, start_ns: u64) -> Self {
        Asker {
            versioned,
            segments,
            hint: [delegation],
            start_ns: Some(start_ns),
            out: VecDeque::new(),
            answers: 0,
        }
    }

    pub(super) fn answers(&self) -> u64 {
        self.answers
    }
}

impl Program for Asker {
    fn handle_frame(&mut self, frame: &[u8], _now: Now) {
        let Ok(link) = LpPacket::decode(frame) else { return };
        let packet = link.fragment.map(Packet::decode);
        self.answers += u64::from(matches!(packet, Some(Ok(Packet::Data(_)))));
    }

    fn handle_timeout(&mut self, now: Now) {
        if self.start_ns.is_none_or(|start_ns| now.now_ns < start_ns) {
            return;
        }
        self.start_ns = None;
        for segment in 0..self.segments {
            let (name, mut wire) = (self.versioned.with_segment(segment), Vec::new());
            let builder = InterestBuilder::new(name.view()).nonce((segment as u32).to_be_bytes());
            builder.forwarding_hint(&self.hint).lifetime_ms(4000).encode(&mut wire);
            self.out.push_back(wire);
        }
    }

    fn poll_frame(&mut self, _now: Now) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<u64> {
        self.start_ns
    }

    fn fault(&self) -> Option<String> {
        None
    }
}
