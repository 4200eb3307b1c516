//! Writes a decoded packet again through byname's own encoders, from its fields alone.
//!
//! Shared by the fuzz targets and the tests of the `packet` crate. `None` means that the packet has
//! something that our encoders never write (a key digest, a description, a parameters digest that
//! is not last); everything else must survive the round trip.

use byname_packet::lp::{self, FragmentFields, LinkFields, LpPacket};
use byname_packet::{
    Data, DataBuilder, Interest, InterestBuilder, KeyLocator, Name, NameRef, SignError,
    SignatureExtra, SignatureInfo, Signer, types,
};

/// Gives out a signature that was read.
struct RecordedSigner<'a> {
    info: SignatureInfo<'a>,
    value: &'a [u8],
}

impl Signer for RecordedSigner<'_> {
    fn signature_type(&self) -> u64 {
        self.info.signature_type
    }

    fn key_locator(&self) -> Option<NameRef<'_>> {
        self.info.key_name()
    }

    fn signature_len_max(&self) -> usize {
        self.value.len()
    }

    fn sign(&self, _parts: &[&[u8]], out: &mut [u8]) -> Result<usize, SignError> {
        out.get_mut(..self.value.len()).ok_or(SignError::Failed)?.copy_from_slice(self.value);
        Ok(self.value.len())
    }
}

fn recorded<'a>(info: SignatureInfo<'a>, value: &'a [u8]) -> Option<RecordedSigner<'a>> {
    let is_plain = info.additional_description.is_none()
        && !matches!(info.key_locator, Some(KeyLocator::Digest(_)));
    is_plain.then_some(RecordedSigner { info, value })
}

/// The Interest again.
pub(crate) fn interest(interest: &Interest<'_>) -> Option<Vec<u8>> {
    let hint: Vec<Name> = interest
        .forwarding_hint
        .map(|hint| hint.names().map(|name| name.to_name()).collect())
        .unwrap_or_default();
    let mut name = interest.name;
    if interest.application_parameters.is_some() {
        if name.last()?.typ != types::PARAMETERS_SHA256_DIGEST {
            return None;
        }
        name = name.without_last(1);
    }
    let mut builder = InterestBuilder::new(name)
        .can_be_prefix(interest.can_be_prefix)
        .must_be_fresh(interest.must_be_fresh)
        .forwarding_hint(&hint);
    if let Some(nonce) = interest.nonce {
        builder = builder.nonce(nonce);
    }
    if let Some(ms) = interest.lifetime_ms {
        builder = builder.lifetime_ms(ms);
    }
    if let Some(hops) = interest.hop_limit {
        builder = builder.hop_limit(hops);
    }
    if let Some(parameters) = interest.application_parameters {
        builder = builder.application_parameters(parameters);
    }
    let mut out = Vec::new();
    let Some((info, value)) = interest.signature_info.zip(interest.signature_value) else {
        builder.encode(&mut out);
        return Some(out);
    };
    if info.validity.is_some() {
        return None;
    }
    let extra = SignatureExtra { nonce: info.nonce, time_ms: info.time_ms, seq_num: info.seq_num };
    builder.encode_signed(&recorded(info, value)?, extra, &mut out).ok()?;
    Some(out)
}

/// The Data again.
pub(crate) fn data(data: &Data<'_>) -> Option<Vec<u8>> {
    let info = data.signature_info;
    if info.nonce.is_some() || info.seq_num.is_some() {
        return None;
    }
    let mut builder = DataBuilder::new(data.name)
        .content_type(data.meta.content_type)
        .freshness_ms(data.meta.freshness_ms);
    if let Some(last) = data.meta.final_block_id {
        builder = builder.final_block_id(last);
    }
    if let Some(validity) = info.validity {
        builder = builder.validity(validity);
    }
    if let Some(ms) = info.time_ms {
        builder = builder.signature_time_ms(ms);
    }
    let mut out = Vec::new();
    builder.encode(data.content, &recorded(info, data.signature_value)?, &mut out).ok()?;
    Some(out)
}

/// The LpPacket again; a packet without any field comes out bare.
pub(crate) fn lp_packet(packet: &LpPacket<'_>) -> Vec<u8> {
    let acks: Vec<u64> = packet.acks().collect();
    let fragment = packet.sequence.map(|sequence| FragmentFields {
        sequence,
        index: packet.frag_index,
        count: packet.frag_count,
    });
    let acks = &acks[..];
    let link = LinkFields { fragment, tx_sequence: packet.tx_sequence, acks, padding_bytes: 0 };
    let content = packet.fragment.unwrap_or_default();
    let mut out = Vec::new();
    lp::encode_link_header(&packet.header, &link, content.len(), &mut out);
    out.extend_from_slice(content);
    out
}
