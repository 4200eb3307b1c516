//! Packets whose signatures are verified together are judged as if each came alone.

use byname_packet::{Data, Name};
use byname_security::key::{Algorithm, KeyPair, KeySigner};
use byname_security::trust::{Decision, Signed, TrustError, Validator};

use crate::identity::{NOW_S, Publisher, data, name};
use crate::trust::{anchored, check, refusal, trusting};

/// Decisions about packets that came together.
fn judged(validator: &mut Validator, wires: &[Vec<u8>]) -> Vec<Decision> {
    let packets: Vec<_> = wires.iter().map(|wire| Data::decode(wire).unwrap()).collect();
    let signed: Vec<_> = packets.iter().map(Signed::from).collect();
    validator.verify_together(&signed);
    signed.iter().map(|signed| validator.check(signed, NOW_S)).collect()
}

/// A validator that knows the publisher's certificate, and packets of the publisher.
fn scene(count: usize) -> (Publisher, Validator, Vec<Vec<u8>>) {
    let lab = Publisher::new("/lab", 1);
    let mut validator = trusting("/lab", &lab);
    check(&mut validator, &lab.data("/lab"), &[&lab]);
    let wires = (0..count).map(|number| lab.data(&format!("/lab/f{number}"))).collect();
    (lab, validator, wires)
}

fn flip(wire: &mut [u8], from_end: usize) {
    let at = wire.len() - from_end;
    wire[at] ^= 1;
}

#[test]
fn packets_that_came_together_are_trusted_as_if_each_came_alone() {
    let (lab, mut validator, wires) = scene(20);
    let expected = anchored("/lab", &lab, &lab);
    assert!(judged(&mut validator, &wires).iter().all(|decision| *decision == expected));
}

#[test]
fn one_that_is_altered_is_refused_and_the_others_are_not() {
    for from_end in [1, 33, 64] {
        let (lab, mut validator, mut wires) = scene(8);
        flip(&mut wires[5], from_end);
        let expected = anchored("/lab", &lab, &lab);
        for (number, decision) in judged(&mut validator, &wires).into_iter().enumerate() {
            match number {
                5 => assert!(matches!(refusal(decision), TrustError::BadSignature { .. })),
                // A refusal has the certificate forgotten: it may be what was forged.
                6.. => assert!(matches!(decision, Decision::NeedCertificate(_)), "{decision:?}"),
                _ => assert_eq!(decision, expected),
            }
        }
    }
}

/// What was good once says nothing of what looks like it.
#[test]
fn what_was_good_vouches_for_nothing_else() {
    let (lab, mut validator, wires) = scene(4);
    judged(&mut validator, &wires);
    let mut altered = wires[0].clone();
    flip(&mut altered, 1);
    assert!(matches!(
        refusal(check(&mut validator, &altered, &[&lab])),
        TrustError::BadSignature { .. }
    ));
    // The octets of the signature moved into what is signed, and back.
    let packet = Data::decode(&wires[1]).unwrap();
    let signed = Signed::from(&packet);
    let (value, longer) = signed.value.split_at(63);
    let parts = vec![longer, signed.parts[0]];
    let shifted = Signed { parts, value, ..signed.clone() };
    check(&mut validator, &wires[2], &[&lab]);
    assert!(matches!(refusal(validator.check(&shifted, NOW_S)), TrustError::BadSignature { .. }));
}

/// Only the signature is taken as verified: who may sign what is decided for each.
#[test]
fn a_good_signature_outside_its_namespace_is_refused() {
    let (lab, mut validator, mut wires) = scene(6);
    wires.push(lab.data("/other/f"));
    let last = judged(&mut validator, &wires).pop().unwrap();
    assert!(matches!(refusal(last), TrustError::NotUnder { .. }));
}

#[test]
fn packets_of_several_keys_come_together() {
    let lab = Publisher::new("/lab", 1);
    let bert = Publisher::issued_by(&lab, "/lab/bert", 2);
    let mut validator = trusting("/lab", &lab);
    let all = [&lab, &bert];
    check(&mut validator, &bert.data("/lab/bert"), &all);
    let mut wires = Vec::new();
    for number in 0..5 {
        wires.push(lab.data(&format!("/lab/f{number}")));
        wires.push(bert.data(&format!("/lab/bert/f{number}")));
    }
    let key = KeyPair::generate(Algorithm::EcdsaP256).unwrap();
    let stranger = KeySigner::new(key.into(), "/lab/KEY/x".parse::<Name>().unwrap());
    wires.push(data(name("/lab/y").view(), b"", &stranger));
    let mut decisions = judged(&mut validator, &wires);
    assert!(matches!(decisions.pop(), Some(Decision::NeedCertificate(_) | Decision::Refused(_))));
    for pair in decisions.chunks(2) {
        let expected = [anchored("/lab", &lab, &lab), anchored("/lab", &bert, &lab)];
        assert_eq!(pair, expected);
    }
}

#[test]
fn what_is_not_known_yet_is_asked_for() {
    let lab = Publisher::new("/lab", 1);
    let mut validator = trusting("/lab", &lab);
    let wires: Vec<_> = (0..4).map(|number| lab.data(&format!("/lab/f{number}"))).collect();
    let wanted = Decision::NeedCertificate(lab.certificate_name());
    assert!(judged(&mut validator, &wires).iter().all(|decision| *decision == wanted));
}
