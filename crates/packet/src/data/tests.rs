//! Behaviour of Data packets.
use super::*;
use crate::signature::{SignError, Signer};
use crate::{DigestSigner, Name, NullSigner, NumberComponent};

struct Variable;
impl Signer for Variable {
    fn signature_type(&self) -> u64 {
        crate::signature_type::ECDSA
    }
    fn key_locator(&self) -> Option<NameRef<'_>> {
        None
    }
    fn signature_len_max(&self) -> usize {
        72
    }
    fn sign(&self, _: &[&[u8]], out: &mut [u8]) -> Result<usize, SignError> {
        out[..70].fill(1);
        Ok(70)
    }
}

#[test]
fn plan_equals_encode() {
    let name: Name = "/a/v=1/seg=0".parse().unwrap();
    let last = NumberComponent::segment(7);
    for len in [0usize, 1, 200, 252, 253, 8192] {
        let content = vec![5u8; len];
        let builder =
            DataBuilder::new(name.view()).freshness_ms(1000).final_block_id(last.as_component());
        for signer in [&NullSigner as &dyn Signer, &DigestSigner] {
            let mut whole = Vec::new();
            builder.encode(&content, signer, &mut whole).unwrap();
            let plan = builder.plan(len, signer).unwrap();
            let mut packet = [&plan.header[..], &content, &plan.trailer].concat();
            plan.sign(&mut packet, signer).unwrap();
            assert_eq!(packet, whole);
            let data = Data::decode(&whole).unwrap();
            assert_eq!(data.content, &content[..]);
            assert_eq!(data.meta.final_block_id.unwrap().segment(), Some(7));
            assert_eq!(data.meta.freshness_ms, 1000);
        }
    }
    assert_eq!(DataBuilder::new(name.view()).plan(1, &Variable), Err(SignError::VariableLength));
}

#[test]
fn shorter_signature_keeps_lengths_right_across_the_boundary() {
    let name: Name = "/a".parse().unwrap();
    for len in 0..400 {
        let mut wire = Vec::new();
        DataBuilder::new(name.view()).encode(&vec![0; len], &Variable, &mut wire).unwrap();
        let data = Data::decode(&wire).unwrap();
        assert_eq!((data.content.len(), data.signature_value.len()), (len, 70));
    }
}

#[test]
fn unknown_non_critical_elements_are_covered_by_the_signature() {
    let name: Name = "/a".parse().unwrap();
    let mut wire = Vec::new();
    DataBuilder::new(name.view()).encode(b"", &DigestSigner, &mut wire).unwrap();
    let plain = Data::decode(&wire).unwrap().signed_portion().to_vec();
    let mut value = wire[2..].to_vec();
    let at = 2 + 3;
    value.splice(at..at, [0xF0, 1, 0]);
    let mut odd = vec![6, value.len() as u8];
    odd.extend(value);
    assert_eq!(Data::decode(&odd).unwrap().signed_portion().len(), plain.len() + 3);
}
