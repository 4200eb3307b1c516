//! The commands as NFD expects them, and what becomes of each kind of answer.

use std::sync::Arc;

use byname_packet::{DataBuilder, Interest, NullSigner};

use super::*;

fn registrar(is_local: bool) -> Registrar {
    let signer: SharedSigner = Arc::new(DigestSigner);
    Registrar::new(&[("/lab".parse().unwrap(), signer)], is_local)
}

fn at(s: u64) -> Now {
    Now { now_ns: s * SECOND_NS, unix_ns: s * SECOND_NS }
}

fn answer(command: &[u8], response: &ControlResponse) -> Vec<u8> {
    let name = Interest::decode(command).unwrap().name;
    let (mut content, mut wire) = (Vec::new(), Vec::new());
    response.encode(&mut content);
    DataBuilder::new(name).encode(&content, &NullSigner, &mut wire).unwrap();
    wire
}

#[test]
fn the_command_is_what_nfd_expects() {
    for (is_local, scope) in [(true, "/localhost"), (false, "/localhop")] {
        let wire = registrar(is_local).poll_command(at(1), &mut || 7).unwrap();
        let interest = Interest::decode(&wire).unwrap();
        assert!(interest.check_parameters_digest());
        assert_eq!(interest.name.count(), 6);
        let prefix: Name = format!("{scope}/nfd/rib/register").parse().unwrap();
        assert!(prefix.view().is_prefix_of(interest.name));
        let parameters = interest.name.get(4).unwrap().value;
        let parameters = ControlParameters::decode(parameters).unwrap();
        assert_eq!(parameters.name, Some("/lab".parse().unwrap()));
        assert_eq!(parameters.flags, Some(1));
    }
}

#[test]
fn success_ends_it_and_other_data_does_not() {
    let mut registrar = registrar(true);
    let wire = registrar.poll_command(at(1), &mut || 7).unwrap();
    assert!(registrar.poll_command(at(1), &mut || 7).is_none());
    let other = answer(&wire, &ControlResponse::new(200, "OK"));
    let stranger = {
        let mut wire = Vec::new();
        let name: Name = "/other".parse().unwrap();
        DataBuilder::new(name.view()).encode(b"", &NullSigner, &mut wire).unwrap();
        wire
    };
    registrar.handle_data(&Data::decode(&stranger).unwrap()).unwrap();
    assert!(!registrar.is_done());
    registrar.handle_data(&Data::decode(&other).unwrap()).unwrap();
    assert!(registrar.is_done());
    assert_eq!(registrar.poll_timeout(), None);
}

#[test]
fn refusal_silence_and_a_missing_management_are_told_apart() {
    let mut refused = registrar(false);
    let wire = refused.poll_command(at(1), &mut || 7).unwrap();
    let answer = answer(&wire, &ControlResponse::new(403, "no"));
    let error = refused.handle_data(&Data::decode(&answer).unwrap()).unwrap_err();
    assert!(matches!(error, RegisterError::Refused { code: 403, .. }));
    assert!(error.to_string().contains("--allow-register"), "{error}");

    let mut silent = registrar(true);
    for attempt in 0..ATTEMPTS_MAX {
        assert!(silent.poll_command(at(1 + u64::from(attempt)), &mut || 7).is_some());
        let due_ns = silent.poll_timeout().unwrap();
        let result = silent.handle_timeout(Now { now_ns: due_ns, unix_ns: due_ns });
        assert_eq!(result.is_err(), attempt + 1 == ATTEMPTS_MAX);
    }

    let mut bare = registrar(true);
    let wire = bare.poll_command(at(1), &mut || 7).unwrap();
    let name = Interest::decode(&wire).unwrap().name;
    let error = bare.handle_nack(name, 150).unwrap_err();
    assert!(matches!(error, RegisterError::NoManagement { reason: 150, .. }));
}

#[test]
fn commands_to_another_machine_go_one_by_one_with_increasing_times() {
    let signer: SharedSigner = Arc::new(DigestSigner);
    let prefixes = ["/lab", "/lab/KEY"].map(|uri| (uri.parse().unwrap(), signer.clone()));
    let mut registrar = Registrar::new(&prefixes, false);
    let time = |wire: &[u8]| Interest::decode(wire).unwrap().signature_info.unwrap().time_ms;
    let first = registrar.poll_command(at(1), &mut || 7).unwrap();
    assert!(registrar.poll_command(at(1), &mut || 7).is_none());
    let ok = answer(&first, &ControlResponse::new(200, "OK"));
    assert_ne!(registrar.poll_timeout(), Some(0));
    registrar.handle_data(&Data::decode(&ok).unwrap()).unwrap();
    assert_eq!(registrar.poll_timeout(), Some(0), "the next may go");
    let second = registrar.poll_command(at(1), &mut || 7).unwrap();
    assert!(time(&second) > time(&first), "in the same millisecond");
}
