//! Encoding of Data packets.
//!
//! Everything before the signature value has a length known ahead, so the packet is written front
//! to back once. A signer whose signatures vary in length (ECDSA) gets its longest size first and
//! the few octets saved are taken out afterwards.

use crate::component::Component;
use crate::name::NameRef;
use crate::signature::{self, InfoExtra, SignError, Signer, ValidityPeriod};
use crate::{tlv, types};

/// Collects the fields of a Data and encodes it.
#[derive(Debug, Clone)]
pub struct DataBuilder<'a> {
    name: NameRef<'a>,
    content_type: u64,
    freshness_ms: u64,
    final_block_id: Option<Component<'a>>,
    extra: InfoExtra<'a>,
}

/// A packet laid out around content that is not there yet.
///
/// `header ++ content ++ trailer` is the packet. For a Null signature it is complete; for another
/// signature of fixed length the trailer ends in zeros until [`DataPlan::sign`] fills them in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataPlan {
    /// Everything before the content.
    pub header: Vec<u8>,
    /// Everything after the content.
    pub trailer: Vec<u8>,
    content_len: usize,
    signed_from: usize,
    signature_len: usize,
}

impl DataPlan {
    /// Octets of the whole packet.
    pub fn packet_len(&self) -> usize {
        self.header.len() + self.content_len + self.trailer.len()
    }

    /// Where the Name begins in the header; the signature covers the packet from there on.
    pub fn name_at(&self) -> usize {
        self.signed_from
    }

    /// Signs `packet`, which is `header ++ content ++ trailer`, in place.
    ///
    /// # Errors
    /// [`SignError::Failed`] when `packet` has another length or the key cannot sign.
    pub fn sign(&self, packet: &mut [u8], signer: &dyn Signer) -> Result<(), SignError> {
        if packet.len() != self.packet_len() {
            return Err(SignError::Failed);
        }
        if self.signature_len == 0 {
            return Ok(());
        }
        let value_at = packet.len() - self.signature_len;
        let tl_len = tlv::element_len(types::SIGNATURE_VALUE, self.signature_len);
        let signed_to = packet.len() - tl_len;
        let (signed, value) = packet.split_at_mut(value_at);
        match signer.sign(&[&signed[self.signed_from..signed_to]], value)? {
            len if len == self.signature_len => Ok(()),
            _ => Err(SignError::Failed),
        }
    }
}

impl<'a> DataBuilder<'a> {
    /// A Data named `name` and nothing else.
    pub fn new(name: NameRef<'a>) -> Self {
        Self {
            name,
            content_type: 0,
            freshness_ms: 0,
            final_block_id: None,
            extra: InfoExtra::default(),
        }
    }

    /// Sets the content type; 0 (Blob) is not written.
    pub fn content_type(mut self, content_type: u64) -> Self {
        self.content_type = content_type;
        self
    }

    /// Sets the freshness period in milliseconds; 0 is not written.
    pub fn freshness_ms(mut self, ms: u64) -> Self {
        self.freshness_ms = ms;
        self
    }

    /// Sets the component of the last packet of the sequence.
    pub fn final_block_id(mut self, component: Component<'a>) -> Self {
        self.final_block_id = Some(component);
        self
    }

    /// Sets the validity period of a certificate.
    pub fn validity(mut self, validity: ValidityPeriod) -> Self {
        self.extra.validity = Some(validity);
        self
    }

    /// Sets SignatureTime in milliseconds since the Unix epoch.
    pub fn signature_time_ms(mut self, ms: u64) -> Self {
        self.extra.time_ms = Some(ms);
        self
    }

    /// Adds whole elements at the end of SignatureInfo; their TYPEs are even and above 31, so that
    /// software which does not know them passes over them.
    pub fn signature_extension(mut self, elements: &'a [u8]) -> Self {
        self.extra.extension = elements;
        self
    }

    /// Appends the packet.
    ///
    /// # Errors
    /// [`SignError`] of the signer; `out` is then as before.
    pub fn encode(
        &self,
        content: &[u8],
        signer: &dyn Signer,
        out: &mut Vec<u8>,
    ) -> Result<(), SignError> {
        let start = out.len();
        let signature_max = signer.signature_len_max();
        let value_len = self.value_len(content.len(), signer, signature_max);
        tlv::write_tl(out, types::DATA, value_len);
        let value_at = out.len();
        self.write_front(content.len(), out);
        out.extend_from_slice(content);
        self.write_info(signer, out);
        let signed_to = out.len();
        let mut signature = SignatureBuffer::new(signature_max);
        let signed = signer.sign(&[&out[value_at..signed_to]], signature.as_mut());
        let len = match signed {
            Ok(len) if len <= signature_max => len,
            other => {
                out.truncate(start);
                return Err(other.err().unwrap_or(SignError::Failed));
            }
        };
        tlv::write_element(out, types::SIGNATURE_VALUE, &signature.as_mut()[..len]);
        if len != signature_max {
            let mut outer = Vec::with_capacity(10);
            tlv::write_tl(&mut outer, types::DATA, out.len() - value_at);
            out.splice(start..value_at, outer);
        }
        Ok(())
    }

    /// Lays the packet out around content of `content_len` octets.
    ///
    /// # Errors
    /// [`SignError::VariableLength`] for signers without a fixed length.
    pub fn plan(&self, content_len: usize, signer: &dyn Signer) -> Result<DataPlan, SignError> {
        if !signer.has_fixed_len() {
            return Err(SignError::VariableLength);
        }
        let signature_len = signer.signature_len_max();
        let value_len = self.value_len(content_len, signer, signature_len);
        let mut header = Vec::with_capacity(self.name.wire_len() + 40);
        tlv::write_tl(&mut header, types::DATA, value_len);
        let signed_from = header.len();
        self.write_front(content_len, &mut header);
        let mut trailer = Vec::with_capacity(16 + signature_len);
        self.write_info(signer, &mut trailer);
        tlv::write_tl(&mut trailer, types::SIGNATURE_VALUE, signature_len);
        trailer.resize(trailer.len() + signature_len, 0);
        Ok(DataPlan { header, trailer, content_len, signed_from, signature_len })
    }

    fn meta_len(&self) -> usize {
        let mut len = 0;
        if self.content_type != 0 {
            len += tlv::nni_element_len(types::CONTENT_TYPE, self.content_type);
        }
        if self.freshness_ms != 0 {
            len += tlv::nni_element_len(types::FRESHNESS_PERIOD, self.freshness_ms);
        }
        if let Some(last) = self.final_block_id {
            len += tlv::element_len(types::FINAL_BLOCK_ID, last.wire_len());
        }
        len
    }

    fn value_len(&self, content_len: usize, signer: &dyn Signer, signature_len: usize) -> usize {
        let meta = match self.meta_len() {
            0 => 0,
            len => tlv::element_len(types::META_INFO, len),
        };
        let info_len = signature::info_value_len(signer, &self.extra);
        self.name.wire_len()
            + meta
            + tlv::element_len(types::CONTENT, content_len)
            + tlv::element_len(types::SIGNATURE_INFO, info_len)
            + tlv::element_len(types::SIGNATURE_VALUE, signature_len)
    }

    /// Name, MetaInfo and the head of Content.
    fn write_front(&self, content_len: usize, out: &mut Vec<u8>) {
        self.name.encode(out);
        let meta_len = self.meta_len();
        if meta_len > 0 {
            tlv::write_tl(out, types::META_INFO, meta_len);
        }
        if self.content_type != 0 {
            tlv::write_nni(out, types::CONTENT_TYPE, self.content_type);
        }
        if self.freshness_ms != 0 {
            tlv::write_nni(out, types::FRESHNESS_PERIOD, self.freshness_ms);
        }
        if let Some(last) = self.final_block_id {
            tlv::write_tl(out, types::FINAL_BLOCK_ID, last.wire_len());
            last.encode(out);
        }
        tlv::write_tl(out, types::CONTENT, content_len);
    }

    fn write_info(&self, signer: &dyn Signer, out: &mut Vec<u8>) {
        let len = signature::info_value_len(signer, &self.extra);
        tlv::write_tl(out, types::SIGNATURE_INFO, len);
        signature::write_info_value(out, signer, &self.extra);
    }
}

/// Room for a signature: on the stack for all but large RSA keys.
struct SignatureBuffer {
    stack: [u8; 128],
    heap: Vec<u8>,
    len: usize,
}

impl SignatureBuffer {
    fn new(len: usize) -> Self {
        let heap = if len > 128 { vec![0; len] } else { Vec::new() };
        Self { stack: [0; 128], heap, len }
    }

    fn as_mut(&mut self) -> &mut [u8] {
        if self.heap.is_empty() { &mut self.stack[..self.len] } else { &mut self.heap }
    }
}
