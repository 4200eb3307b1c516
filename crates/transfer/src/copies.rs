//! Packets kept with a copy so that it can be served: the publisher's own signed packets.
//!
//! A sequence of TLV elements: the metadata packet, the certificates that lead from it to an
//! anchor, and for a directory the payload that the packet describes (as a Content element).
//! Whoever serves the copy sends these packets as they are, and needs no key for it. Nothing in
//! here is believed by readers; it proves itself to them. It is also the reader's own memory of
//! the version that it has: [`learn`].

use byname_packet::{Data, DecodeError, NameRef, tlv, types};

use crate::discovery::Discovered;
use crate::metadata::{Answer, ContentRoot};
use crate::numbers::{LISTING_KEYWORD, METADATA_KEYWORD};
use crate::request::Context;
use crate::versions::{Announced, Lesson};
use byname_security::trust::{Decision, Signed, Trusted};

/// Attached to a file: its metadata.
pub const FILE_SLOT: &str = "metadata";
/// Attached to a directory: its listing.
pub const LISTING_SLOT: &str = "ls";
/// Attached to a directory: its manifest.
pub const MANIFEST_SLOT: &str = "manifest";

/// Certificates kept with one packet.
const CERTIFICATES_MAX: usize = 8;

/// The kept packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept<'a> {
    /// The signed metadata packet.
    pub packet: &'a [u8],
    /// Listing or manifest of a directory.
    pub payload: Option<&'a [u8]>,
    certificates: [Option<&'a [u8]>; CERTIFICATES_MAX],
}

impl<'a> Kept<'a> {
    /// Reads what [`encode`] wrote.
    ///
    /// # Errors
    /// [`DecodeError`] for broken elements, or if there is no packet.
    pub fn decode(octets: &'a [u8]) -> Result<Self, DecodeError> {
        let (mut packet, mut payload) = (None, None);
        let (mut certificates, mut count) = ([None; CERTIFICATES_MAX], 0);
        let mut reader = tlv::Reader::new(octets);
        let mut start = 0;
        while let Some(element) = reader.read()? {
            let wire = &octets[start..reader.position()];
            start = reader.position();
            match element.typ {
                types::DATA if packet.is_none() => packet = Some(wire),
                types::DATA if count < CERTIFICATES_MAX => {
                    certificates[count] = Some(wire);
                    count += 1;
                }
                types::CONTENT => payload = payload.or(Some(element.value)),
                _ => {}
            }
        }
        let packet =
            packet.ok_or(DecodeError::Missing { element: "Data", within: "what is kept" })?;
        Data::decode(packet)?;
        Ok(Self { packet, payload, certificates })
    }

    /// The certificates, that of the signer first.
    pub fn certificates(&self) -> impl Iterator<Item = &'a [u8]> {
        self.certificates.into_iter().flatten()
    }
}

/// Packets to keep of a version: none if it proves nothing to others.
pub fn encode(discovered: &Discovered, payload: Option<&[u8]>) -> Option<Vec<u8>> {
    let is_proof = discovered.trust != Trusted::Insecure && !discovered.packet.is_empty();
    if !is_proof || !matches!(discovered.metadata.root, ContentRoot::Known(_)) {
        return None;
    }
    let packet = Data::decode(&discovered.packet).ok()?;
    if !describes(packet.name, discovered.metadata.name.view()) {
        return None;
    }
    let mut out = discovered.packet.clone();
    for certificate in discovered.certificates.iter().take(CERTIFICATES_MAX) {
        out.extend_from_slice(certificate);
    }
    if let Some(payload) = payload {
        tlv::write_element(&mut out, types::CONTENT, payload);
    }
    Some(out)
}

/// Teaches the memory which version of the object `name` the kept packets describe: this reader
/// has had it. Certificates are those that were kept too; nobody is asked. Packets of another name,
/// and such as do not count today, teach nothing.
pub fn learn(octets: &[u8], name: NameRef<'_>, context: &mut Context<'_>) {
    let Ok(kept) = Kept::decode(octets) else { return };
    let Ok(data) = Data::decode(kept.packet) else { return };
    let Ok(Answer::Metadata(metadata)) = Answer::decode(&data) else { return };
    let object = metadata.name.view().without_last(1);
    let Some(version) = metadata.version().filter(|_| object == name) else { return };
    if !describes(data.name, metadata.name.view()) {
        return;
    }
    for certificate in kept.certificates() {
        // One that is none, or not trusted, proves nothing.
        let _ = context.validator.add_certificate(certificate);
    }
    let decision = context.validator.check(&Signed::from(&data), context.unix_s());
    let is_proved =
        matches!(decision, Decision::Trusted(Trusted::Anchored { .. } | Trusted::FirstUse { .. }));
    if is_proved {
        let binding = metadata.attributes().binding;
        let announced = Announced { path: name, object: name, version, binding };
        // The memory may know a newer one.
        let _ = context.versions.admit(&announced, Lesson::Numbers);
    }
}

/// True if a packet of this name (`<asked>/32=metadata/v=T/seg=0`) describes the object with this
/// versioned name, rather than a directory that proves it.
pub fn describes(packet: NameRef<'_>, versioned: NameRef<'_>) -> bool {
    let asked = packet.without_last(2);
    let object = versioned.without_last(1);
    let is_metadata = asked.last().is_some_and(|last| last.is_keyword(METADATA_KEYWORD));
    let asked = asked.without_last(1);
    let is_listing = object.last().is_some_and(|last| last.is_keyword(LISTING_KEYWORD));
    is_metadata && (asked == object || is_listing && asked == object.without_last(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_packet::{DataBuilder, DigestSigner, Name};

    fn packet(uri: &str) -> Vec<u8> {
        let name: Name = uri.parse().unwrap();
        let mut wire = Vec::new();
        DataBuilder::new(name.view()).encode(b"x", &DigestSigner, &mut wire).unwrap();
        wire
    }

    #[test]
    fn packets_and_payload_come_back_as_they_are() {
        let (first, second) = (packet("/a"), packet("/b"));
        let mut octets = [first.clone(), second.clone()].concat();
        let kept = Kept::decode(&octets).unwrap();
        assert_eq!((kept.packet, kept.payload), (&first[..], None));
        assert_eq!(kept.certificates().collect::<Vec<_>>(), [&second[..]]);
        tlv::write_element(&mut octets, types::CONTENT, b"entries");
        assert_eq!(Kept::decode(&octets).unwrap().payload, Some(&b"entries"[..]));
    }

    #[test]
    fn anything_else_is_refused_and_never_panics() {
        let whole = [packet("/a"), packet("/b")].concat();
        assert!(Kept::decode(&[]).is_err());
        for end in 0..whole.len() {
            let _ = Kept::decode(&whole[..end]);
        }
        for at in 0..whole.len() {
            let mut broken = whole.clone();
            broken[at] ^= 0x41;
            let _ = Kept::decode(&broken);
        }
        let many = packet("/a").repeat(100);
        assert_eq!(Kept::decode(&many).unwrap().certificates().count(), CERTIFICATES_MAX);
    }
}
