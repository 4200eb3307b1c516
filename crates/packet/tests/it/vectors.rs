//! Replays the golden packets: what is accepted and what it shows, what is refused and why, and
//! that our encoders write the very octets of those marked canonical.

use std::path::PathBuf;

use byname_packet::lp::LpPacket;
use byname_packet::mgmt::{
    ControlParameters, ControlResponse, CsInfo, FaceStatus, FibEntry, GeneralStatus, NextHop,
    RibEntry, StrategyChoice,
};
use byname_packet::{Component, Data, DecodeError, Interest, Name, NameRef, SignatureInfo};
use byname_packet::{tlv, types};
use serde_json::{Value, json};

use crate::rebuild;
use crate::shown::{self, hex, unhex};

/// Output of a decoder, and the octets our encoder writes for it (if it can).
type Decoded = Result<(Value, Option<Vec<u8>>), DecodeError>;

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors")
}

pub(crate) fn read(file: &str) -> Vec<Value> {
    let path = folder().join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{file}: {e}"));
    let list: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(!list.is_empty(), "{file}");
    list
}

pub(crate) fn text<'a>(vector: &'a Value, key: &str) -> &'a str {
    vector[key].as_str().unwrap_or_else(|| panic!("{key} of {vector}"))
}

fn replay(file: &str, decode: impl Fn(&[u8]) -> Decoded) {
    for vector in read(file) {
        let title = format!("{file}: {}", text(&vector, "name"));
        let wire = unhex(text(&vector, "hex"));
        match (vector["accept"].as_bool(), decode(&wire)) {
            (Some(true), Ok((found, rebuilt))) => {
                assert_eq!(found, vector["expect"], "{title}");
                if vector["canonical"] == true {
                    assert_eq!(rebuilt.map(|wire| hex(&wire)), Some(hex(&wire)), "{title}");
                }
            }
            (Some(false), Err(error)) => {
                assert_eq!(error.reason(), text(&vector, "reason"), "{title}: {error}");
            }
            (_, found) => panic!("{title}: {found:?}"),
        }
    }
}

#[test]
fn components() {
    replay("packet/component.json", |wire| {
        let component = Component::decode(wire)?;
        let mut again = Vec::new();
        component.encode(&mut again);
        assert_eq!(again, wire);
        Ok((shown::component(component), None))
    });
}

#[test]
fn names_and_what_people_see() {
    replay("packet/name.json", |wire| {
        let name = NameRef::decode(wire)?;
        let uri: Name = name.to_string().parse().unwrap();
        assert_eq!(uri.view(), name);
        assert_eq!(Name::from_user(&name.to_user()).unwrap().view(), name);
        Ok((shown::name(name), None))
    });
}

fn replay_text(
    file: &str,
    parse: impl Fn(&str) -> Result<Name, byname_packet::UriError>,
    show: impl Fn(&Name) -> String,
) {
    for vector in read(file) {
        let typed = text(&vector, "name");
        match (vector["accept"].as_bool(), parse(typed)) {
            (Some(true), Ok(name)) => {
                let mut wire = Vec::new();
                name.view().encode(&mut wire);
                let found = json!({ "hex": hex(&wire), "canonical": show(&name) });
                assert_eq!(found, vector["expect"], "{file}: {typed}");
            }
            (Some(false), Err(error)) => {
                assert_eq!(error.reason(), text(&vector, "reason"), "{file}: {typed}: {error}");
            }
            (_, found) => panic!("{file}: {typed}: {found:?}"),
        }
    }
}

#[test]
fn uris_and_paths() {
    replay_text("packet/uri.json", str::parse, Name::to_string);
    replay_text("packet/path.json", Name::from_path, |name| name.view().to_user());
}

#[test]
fn canonical_order() {
    for vector in read("packet/order.json") {
        let (less, greater) = (unhex(text(&vector, "less")), unhex(text(&vector, "greater")));
        let less = NameRef::decode(&less).unwrap();
        assert!(less < NameRef::decode(&greater).unwrap(), "{vector}");
    }
}

#[test]
fn signature_infos() {
    replay("packet/signature-info.json", |wire| {
        let element = tlv::read_only(wire, types::SIGNATURE_INFO, "SignatureInfo")?;
        Ok((shown::signature_info(SignatureInfo::from_value(element.value)?), None))
    });
}

#[test]
fn interests() {
    replay("packet/interest.json", |wire| {
        let interest = Interest::decode_checked(wire)?;
        assert_eq!(interest.wire(), wire);
        Ok((shown::interest(&interest), rebuild::interest(&interest)))
    });
}

#[test]
fn datas() {
    replay("packet/data.json", |wire| {
        let data = Data::decode(wire)?;
        assert_eq!(data.wire(), wire);
        Ok((shown::data(&data), rebuild::data(&data)))
    });
}

#[test]
fn which_data_answers_which_interest() {
    for vector in read("packet/match.json") {
        let (asked, answer) = (unhex(text(&vector, "interest")), unhex(text(&vector, "data")));
        let interest = Interest::decode(&asked).unwrap();
        let matches = interest.matches(&Data::decode(&answer).unwrap());
        assert_eq!(vector["matches"], matches, "{vector}");
    }
}

#[test]
fn what_a_forwarder_changes() {
    for vector in read("packet/forward.json") {
        let wire = unhex(text(&vector, "hex"));
        let nonce = unhex(text(&vector, "nonce")).try_into().unwrap();
        let hops = vector["hop_limit"].as_u64().map(|hops| u8::try_from(hops).unwrap());
        let mut out = vec![0xEE];
        Interest::decode_checked(&wire).unwrap().encode_forwarded(nonce, hops, &mut out);
        assert_eq!(hex(&out[1..]), text(&vector, "forwarded"), "{}", vector["name"]);
        Interest::decode_checked(&out[1..]).unwrap();
    }
}

#[test]
fn lp_packets() {
    replay("lp/packet.json", |wire| {
        let packet = LpPacket::decode(wire)?;
        assert_eq!(packet.is_idle(), packet.fragment.is_none());
        Ok((shown::lp_packet(&packet), Some(rebuild::lp_packet(&packet))))
    });
}

/// Decodes a dataset, shows its entries and encodes them again.
fn dataset<T>(
    entries: Vec<T>,
    show: impl Fn(&T) -> Value,
    encode: impl Fn(&T, &mut Vec<u8>),
) -> Decoded {
    let mut wire = Vec::new();
    entries.iter().for_each(|entry| encode(entry, &mut wire));
    Ok((entries.iter().map(show).collect(), Some(wire)))
}

#[test]
fn management_commands() {
    replay("mgmt/control-parameters.json", |wire| {
        let parameters = ControlParameters::decode(wire)?;
        let mut again = Vec::new();
        parameters.encode(&mut again);
        Ok((shown::control_parameters(&parameters), Some(again)))
    });
    replay("mgmt/control-response.json", |wire| {
        let response = ControlResponse::decode(wire)?;
        let mut again = Vec::new();
        response.encode(&mut again);
        let found = json!({
            "status_code": response.status_code,
            "status_text": response.status_text,
            "body": hex(&response.body),
        });
        Ok((found, Some(again)))
    });
}

#[test]
fn management_datasets() {
    replay("mgmt/general-status.json", |wire| {
        let status = GeneralStatus::decode(wire)?;
        let mut again = Vec::new();
        status.encode(&mut again);
        Ok((shown::general_status(&status), Some(again)))
    });
    replay("mgmt/face-status.json", |wire| {
        dataset(FaceStatus::decode_all(wire)?, shown::face_status, FaceStatus::encode)
    });
    let rib = |entry: &RibEntry| {
        let routes: Vec<Value> = entry.routes.iter().map(shown::route).collect();
        json!({ "name": entry.name.to_string(), "routes": routes })
    };
    replay("mgmt/rib.json", |wire| dataset(RibEntry::decode_all(wire)?, rib, RibEntry::encode));
    let fib = |entry: &FibEntry| {
        let hop = |hop: &NextHop| json!({ "face_id": hop.face_id, "cost": hop.cost });
        let hops: Vec<Value> = entry.next_hops.iter().map(hop).collect();
        json!({ "name": entry.name.to_string(), "next_hops": hops })
    };
    replay("mgmt/fib.json", |wire| dataset(FibEntry::decode_all(wire)?, fib, FibEntry::encode));
    replay("mgmt/cs-info.json", |wire| {
        let info = CsInfo::decode(wire)?;
        let mut again = Vec::new();
        info.encode(&mut again);
        let found = json!({
            "capacity": info.capacity,
            "flags": info.flags,
            "entry_count": info.entry_count,
            "hit_count": info.hit_count,
            "miss_count": info.miss_count,
        });
        Ok((found, Some(again)))
    });
    let choice = |choice: &StrategyChoice| {
        let (name, strategy) = (choice.name.to_string(), choice.strategy.to_string());
        json!({ "name": name, "strategy": strategy })
    };
    replay("mgmt/strategy-choice.json", |wire| {
        dataset(StrategyChoice::decode_all(wire)?, choice, StrategyChoice::encode)
    });
}
