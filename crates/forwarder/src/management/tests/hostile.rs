//! Malformed and excessive management requests.

use proptest::prelude::*;

use super::*;
use crate::management::fields::Command;

#[test]
fn malformed_parameters_are_answered_and_change_nothing() {
    for (module, verb, ..) in Command::ALL {
        let mut bench = Bench::new();
        let app = bench.local();
        let uri = [b"/localhost/nfd/", module, b"/", verb].concat();
        let uri = String::from_utf8(uri).unwrap();
        let whole = component(&named("/a"));
        for bad in [&b""[..], &[104], &[104, 5, 7], &[7, 0], &whole[1..], b"\xFF\xFF\xFF\xFF"] {
            let name = name(&uri).with_generic(bad);
            let mut wire = Vec::new();
            InterestBuilder::new(name.view())
                .encode_signed(&DigestSigner, SignatureExtra::default(), &mut wire)
                .unwrap();
            let sent = bench.packet(app, &LpHeader::default(), &wire);
            let response = ControlResponse::decode(sent[0].data().content).unwrap();
            assert_eq!(response.status_code, status_code::BAD_REQUEST, "{uri} {bad:?}");
        }
        // No parameters at all.
        let sent = bench.interest(app, &uri, 1);
        let response = ControlResponse::decode(sent[0].data().content).unwrap();
        assert_eq!(response.status_code, status_code::UNAUTHORIZED, "not even signed");
    }
}

#[test]
fn a_wrong_digest_is_no_command() {
    let mut bench = Bench::new();
    let app = bench.local();
    let mut wire = command_wire(REGISTER, &named("/a"));
    let last = wire.len() - 1;
    wire[last] ^= 1;
    assert_eq!(bench.packet(app, &LpHeader::default(), &wire), []);
    assert_eq!(bench.last_drop, Some(DropReason::Malformed));
    assert_eq!(bench.forwarder.occupancy().rib_entries, 0);
}

#[test]
fn a_guest_has_a_share_of_the_table_only() {
    let mut bench = Bench::new();
    let ours = bench.local();
    let other_user = FaceInfo { local: true, peer_uid: Some(1001), ..FaceInfo::default() };
    let guest = bench.forwarder.add_face(other_user);
    let mut refused = 0;
    for index in 0..5000 {
        let response = command(&mut bench, guest, REGISTER, &named(&format!("/g/{index}")));
        refused += u32::from(response.status_code == 500);
    }
    assert_eq!(refused, 5000 - 4096);
    assert_eq!(command(&mut bench, guest, REGISTER, &named("/g/7")).status_code, 200, "renewed");
    assert_eq!(command(&mut bench, ours, REGISTER, &named("/more")).status_code, 200);
}

proptest! {
    /// Whatever a local face with full authority says below the management prefix.
    #[test]
    fn no_request_panics(
        module in prop_oneof![
            Just("rib"), Just("faces"), Just("fib"), Just("cs"), Just("strategy-choice"),
            Just("status"), Just("nonsense"),
        ],
        verb in prop_oneof![
            Just("register"), Just("unregister"), Just("announce"), Just("create"),
            Just("update"), Just("destroy"), Just("add-nexthop"), Just("remove-nexthop"),
            Just("config"), Just("erase"), Just("set"), Just("unset"), Just("list"),
            Just("query"), Just("events"), Just("channels"), Just("info"), Just("general"),
        ],
        octets in proptest::collection::vec(any::<u8>(), 0..60),
        fields in proptest::collection::vec((0u32..140, any::<u64>(), any::<bool>()), 0..8),
        is_signed in any::<bool>(),
        can_be_prefix in any::<bool>(),
    ) {
        let mut bench = Bench::new();
        let app = bench.local();
        bench.route("/a", app, 1);
        let mut parameters = Vec::new();
        for (typ, number, is_text) in fields {
            if is_text {
                byname_packet::tlv::write_element(&mut parameters, typ + 1, &octets);
            } else {
                byname_packet::tlv::write_nni(&mut parameters, typ + 1, number);
            }
        }
        let mut element = Vec::new();
        byname_packet::tlv::write_element(&mut element, 104, &parameters);
        let name = name(&format!("/localhost/nfd/{module}/{verb}")).with_generic(&element);
        let interest = InterestBuilder::new(name.view()).can_be_prefix(can_be_prefix);
        let mut wire = Vec::new();
        if is_signed {
            let interest = interest.application_parameters(&octets);
            interest.encode_signed(&DigestSigner, SignatureExtra::default(), &mut wire).unwrap();
        } else {
            interest.encode(&mut wire);
        }
        for sent in bench.packet(app, &LpHeader::default(), &wire) {
            prop_assert!(sent.wire.len() <= byname_packet::MAX_PACKET_BYTES);
            prop_assert_eq!(sent.face, app);
        }
        bench.after_ms(10);
        bench.forwarder.poll_request();
    }
}
