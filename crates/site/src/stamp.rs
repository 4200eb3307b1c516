//! Signing Interests to heads and disks, so that each is like no other.

use byname_packet::{InterestBuilder, SignError, SignatureExtra, Signer};

/// Elements of a signed Interest that make it like no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// SignatureTime: milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// SignatureNonce: random.
    pub nonce: [u8; 8],
}

impl Stamp {
    /// Signs an Interest with parameters. It has no Nonce: whoever sends it puts in another one
    /// each time ([`Interest::encode_forwarded`]), which changes neither name nor signature.
    pub(crate) fn sign(
        &self,
        builder: &InterestBuilder<'_>,
        signer: &dyn Signer,
    ) -> Result<Vec<u8>, SignError> {
        let (nonce, time_ms) = (Some(&self.nonce[..]), Some(self.time_ms));
        sign_with(builder, signer, SignatureExtra { nonce, time_ms, seq_num: None })
    }
}

/// A signed Interest to a head or a disk. It lives as long as one that does not say, 4 s; whoever
/// answers may take half of it.
pub(crate) fn sign_with(
    builder: &InterestBuilder<'_>,
    signer: &dyn Signer,
    extra: SignatureExtra<'_>,
) -> Result<Vec<u8>, SignError> {
    let mut wire = Vec::new();
    let builder = builder.clone().must_be_fresh(true);
    builder.encode_signed(signer, extra, &mut wire)?;
    let (len, max) = (wire.len(), byname_packet::MAX_PACKET_BYTES);
    if len > max { Err(SignError::TooLarge { len, max }) } else { Ok(wire) }
}
