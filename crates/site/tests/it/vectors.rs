//! Golden octets of vectors/site, which another encoder wrote.

use byname_catalog::id::{ContentId, DiskId, InodeId, LeaseEpoch, SessionId, Version};
use byname_packet::{DataBuilder, DecodeError, InterestBuilder, Name, NameRef, NullSigner};
use byname_security::exchange::Exchange;
use byname_site::{
    Claim, CommandPacket, CopyAnswer, Drop, DropAnswer, Insert, InsertAnswer, Keep, List,
    ListAnswer, Prove, ProveAnswer, Recall, Reply, SessionKeys, SignedReceipt, Stamp, Ticket,
    Transcript,
};
use serde_json::Value;

use crate::support::{TestSite, data, interest};

const COMMAND: &str = include_str!("../../../../vectors/site/command.json");
const PACKET: &str = include_str!("../../../../vectors/site/packet.json");
const CONTENT: &str = include_str!("../../../../vectors/site/content.json");

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

fn vectors(text: &str) -> Vec<Value> {
    let Value::Array(vectors) = serde_json::from_str(text).unwrap() else { panic!("a list") };
    assert!(vectors.iter().any(|vector| vector["accept"] == true));
    assert!(vectors.iter().any(|vector| vector["accept"] == false));
    vectors
}

fn outcome<T: std::fmt::Debug>(vector: &Value, decoded: Result<T, DecodeError>) -> Option<T> {
    match (decoded, vector["accept"].as_bool().unwrap()) {
        (Ok(found), true) => Some(found),
        (Err(error), false) => {
            assert_eq!(error.reason(), vector["reason"], "{}", vector["name"]);
            None
        }
        (other, _) => panic!("{}: {other:?}", vector["name"]),
    }
}

#[test]
fn commands() {
    let site = TestSite::new(1, "/cern/cms");
    let (all, mut accepted) = (crate::commands::all(), 0);
    for vector in vectors(COMMAND) {
        let operation = vector["operation"].as_str().unwrap();
        let parameters = unhex(vector["hex"].as_str().unwrap());
        let name = site.name.command(operation);
        let mut wire = Vec::new();
        let builder = InterestBuilder::new(name.view()).application_parameters(&parameters);
        builder.encode(&mut wire);
        let decoded = CommandPacket::decode(&site.name, &interest(&wire));
        let Some(found) = outcome(&vector, decoded) else { continue };
        // Each kind three times: without and with a request id, and for a user from a door; in the
        // order of the table.
        assert_eq!(Some(&found.command), all.get(accepted / 3), "{}", vector["name"]);
        accepted += 1;
        let request = found.request.map(|id| (id.session.0, id.slot, id.sequence));
        assert_eq!(serde_json::json!(request), vector["expect"]["request"], "{}", vector["name"]);
        let speaks_for = found.speaks_for.as_ref().map(|it| (&it.user, &it.groups));
        let expected = &vector["expect"]["speaks_for"];
        assert_eq!(serde_json::json!(speaks_for), *expected, "{}", vector["name"]);
        assert_eq!(unhex(vector["expect"]["digest"].as_str().unwrap()), found.digest());
        let stamp = crate::support::stamp(1);
        let again = found.encode(&site.name, &NullSigner, stamp).unwrap();
        let again = interest(&again).application_parameters.unwrap().to_vec();
        assert_eq!(again, parameters, "{}", vector["name"]);
    }
    assert_eq!(accepted, 3 * all.len(), "every kind of command has its vectors");
}

/// A packet with this name and content, unsigned.
fn packet(name: &Name, content: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    DataBuilder::new(name.view()).encode(content, &NullSigner, &mut wire).unwrap();
    wire
}

#[test]
fn contents() {
    let site = TestSite::new(1, "/cern/cms");
    let mut kinds = std::collections::BTreeSet::new();
    for vector in vectors(CONTENT) {
        let (kind, of) = (vector["kind"].as_str().unwrap(), vector["of"].as_str().unwrap());
        let wire = packet(&of.parse().unwrap(), &unhex(vector["hex"].as_str().unwrap()));
        let data = data(&wire);
        let content = |found: &Vec<u8>| crate::support::data(found).content.to_vec();
        let written = match kind {
            "claim" => outcome(&vector, Claim::decode(&site.name, &data)).map(|claim| {
                assert_eq!(claim.content, CONTENT_ID);
                content(&claim.encode(&site.name, &NullSigner).unwrap())
            }),
            "receipt" => outcome(&vector, SignedReceipt::decode(&site.name, &data)).map(|found| {
                assert_eq!((found.disk.id, found.receipt.disk), (DiskId(1), DiskId(1)));
                content(&found.encode(&site.name, &NullSigner).unwrap())
            }),
            "reply" => outcome(&vector, Reply::decode(&site.name, &data)).map(|reply| {
                assert_eq!(reply.epoch, LeaseEpoch(5));
                content(&reply.encode(data.name, &NullSigner).unwrap())
            }),
            "insert-answer" => outcome(&vector, InsertAnswer::decode(&data))
                .map(|answer| content(&answer.encode(data.name, &NullSigner).unwrap())),
            "drop-answer" => outcome(&vector, DropAnswer::decode(&data))
                .map(|answer| content(&answer.encode(data.name, &NullSigner).unwrap())),
            "list-answer" => outcome(&vector, ListAnswer::decode(&data))
                .map(|answer| content(&answer.encode(data.name, &NullSigner).unwrap())),
            "proof-answer" => outcome(&vector, ProveAnswer::decode(&data))
                .map(|answer| content(&answer.encode(data.name, &NullSigner).unwrap())),
            "copy-answer" => outcome(&vector, CopyAnswer::decode(&data))
                .map(|answer| content(&answer.encode(data.name, &NullSigner).unwrap())),
            other => panic!("{other}"),
        };
        if let Some(written) = written {
            assert_eq!(written, data.content, "{}", vector["name"]);
            kinds.insert(kind.to_owned());
        }
    }
    assert_eq!(kinds.len(), 8, "every kind has a vector that is accepted: {kinds:?}");
}

const CONTENT_ID: ContentId = ContentId { inode: InodeId(300), version: Version(7) };

#[test]
fn packets() {
    let site = TestSite::new(1, "/cern/cms");
    let mut accepted = std::collections::BTreeSet::new();
    for vector in vectors(PACKET) {
        let wire = unhex(vector["hex"].as_str().unwrap());
        let kind = vector["kind"].as_str().unwrap();
        let stamp = Stamp { time_ms: 1, nonce: [1; 8] };
        let parameters = |wire: &[u8]| interest(wire).application_parameters.unwrap().to_vec();
        let again = match kind {
            "ticket" => Ticket::decode(&site.name, &wire).ok().map(|ticket| {
                // Written anew by another key, it says the same.
                let (terms, key) = (ticket.terms(), ticket.certificate().public_key());
                let again = Ticket::issue(&site.name, terms.clone(), key, 1, &site.head.signer);
                assert_eq!(again.unwrap().terms(), terms);
                ticket.wire().to_vec()
            }),
            "insert" => Insert::decode(&site.name, &interest(&wire)).ok().map(|(disk, order)| {
                let again = order.encode(&site.name, &disk, &NullSigner, stamp).unwrap();
                assert_eq!(parameters(&again), parameters(&wire));
                wire.clone()
            }),
            "list" => List::decode(&site.name, &interest(&wire)).ok().map(|(disk, order)| {
                let again = order.encode(&site.name, &disk, &NullSigner, stamp).unwrap();
                assert_eq!(parameters(&again), parameters(&wire));
                wire.clone()
            }),
            "prove" => Prove::decode(&site.name, &interest(&wire)).ok().map(|(disk, order)| {
                assert_eq!((order.content, order.challenge), (CONTENT_ID, [5; 32]));
                let again = order.encode(&site.name, &disk, &NullSigner, stamp).unwrap();
                assert_eq!(parameters(&again), parameters(&wire));
                wire.clone()
            }),
            "keep" => Keep::decode(&site.name, &interest(&wire)).ok().map(|(disk, order)| {
                let again = order.encode(&site.name, &disk, &NullSigner, stamp).unwrap();
                assert_eq!(parameters(&again), parameters(&wire));
                wire.clone()
            }),
            "recall" => Recall::decode(&site.name, &interest(&wire)).ok().map(|(disk, order)| {
                let again = order.encode(&site.name, &disk, &NullSigner, stamp).unwrap();
                assert_eq!(parameters(&again), parameters(&wire));
                wire.clone()
            }),
            "drop" => Drop::decode(&site.name, &interest(&wire)).ok().map(|(disk, order)| {
                let is_empty = vector["name"] == "drop: nothing";
                let contents = if is_empty { &[][..] } else { &[CONTENT_ID; 2] };
                assert_eq!(order.contents, contents);
                let again = order.encode(&site.name, &disk, &NullSigner, stamp).unwrap();
                assert_eq!(parameters(&again), parameters(&wire));
                wire.clone()
            }),
            other => panic!("{other}"),
        };
        assert_eq!(again.is_some(), vector["accept"] == true, "{}", vector["name"]);
        if let Some(again) = again {
            assert_eq!(again, wire);
            accepted.insert(kind.to_owned());
        }
    }
    assert_eq!(accepted.len(), 7, "{accepted:?}");
}

/// Keys that both ends derive, and what counts under them.
#[test]
fn sessions() {
    const SESSION: &str = include_str!("../../../../vectors/site/session.json");
    let site = TestSite::new(1, "/cern/cms");
    let vectors = vectors(SESSION);
    let agreement = &vectors[0]["expect"];
    let octets = |key: &str| unhex(agreement[key].as_str().unwrap());
    let exchange = |key: &str| Exchange::from_seed(&octets(key).try_into().unwrap()).unwrap();
    let (user, head) = (exchange("user"), exchange("head"));
    assert_eq!(user.share().to_vec(), octets("user_share"));
    assert_eq!(head.share().to_vec(), octets("head_share"));
    let session = SessionId(agreement["session"].as_u64().unwrap());
    let (name, content) = (octets("name"), octets("content"));
    let name = NameRef::from_value(&name).unwrap();
    let derive = |own, peer: &str| {
        let peer: [u8; 32] = octets(peer).try_into().unwrap();
        let transcript = Transcript { name, content: &content };
        SessionKeys::derive(&site.name, session, own, &peer, transcript).unwrap()
    };
    let (of_user, of_head) = (derive(user, "head_share"), derive(head, "user_share"));
    assert_eq!(of_user.name().value(), octets("locator"));
    assert_eq!(site.name.parse_session_keys(of_user.name()), Some(session));
    for vector in &vectors[1..] {
        let wire = unhex(vector["hex"].as_str().unwrap());
        let counts = match vector["name"].as_str().unwrap().split_once(':').unwrap().0 {
            "command" => of_head.opened(&interest(&wire)) == Some(258),
            _ => of_user.is_answer(&data(&wire)),
        };
        assert_eq!(counts, vector["accept"] == true, "{}", vector["name"]);
    }
}

/// The terms are what stands in the packet, element by element.
#[test]
fn terms_of_the_golden_ticket() {
    let site = TestSite::new(1, "/cern/cms");
    let vectors = vectors(PACKET);
    let golden = |label: &str| {
        let vector = vectors.iter().find(|vector| vector["name"] == label).unwrap();
        let wire = unhex(vector["hex"].as_str().unwrap());
        Ticket::decode(&site.name, &wire).unwrap().terms().clone()
    };
    assert_eq!(golden("ticket: for two disks"), site.terms(CONTENT_ID));
    let origin = golden("ticket: with the file's place").origin.unwrap();
    assert_eq!((origin.directory, origin.name.as_bytes()), (InodeId(1), &b"a.root"[..]));
    assert_eq!((origin.owner, origin.group, origin.mode), ("anna".into(), "cms".into(), 0o640));
}

/// Names are octets too.
#[test]
fn names() {
    let site = TestSite::new(1, "/cern/cms");
    let disk = crate::support::disk(1);
    let found = [
        (site.name.content(CONTENT_ID), "/cern/cms/32=file/seq=300/v=7"),
        (site.name.claim(CONTENT_ID), "/cern/cms/32=file/seq=300/v=7/32=claim"),
        (site.name.disk(&disk), "/cern/cms/32=disk/rack1/seq=1"),
        (site.name.insert(&disk), "/cern/cms/32=disk/rack1/seq=1/insert"),
        (site.name.drop(&disk), "/cern/cms/32=disk/rack1/seq=1/drop"),
        (site.name.list(&disk), "/cern/cms/32=disk/rack1/seq=1/list"),
        (site.name.prove(&disk), "/cern/cms/32=disk/rack1/seq=1/prove"),
        (site.name.keep(&disk), "/cern/cms/32=disk/rack1/seq=1/keep"),
        (site.name.recall(&disk), "/cern/cms/32=disk/rack1/seq=1/recall"),
        (
            site.name.receipt(&disk, CONTENT_ID),
            "/cern/cms/32=disk/rack1/seq=1/32=receipt/seq=300/v=7",
        ),
        (site.name.user("anna"), "/cern/cms/32=user/anna"),
        (site.name.writer(&site.name.user("anna"), 9), "/cern/cms/32=user/anna/32=at/seq=9"),
        (site.name.writer(&site.name.door("d"), 9), "/cern/cms/32=door/d/32=at/seq=9"),
        (site.name.command("mkdir"), "/cern/cms/32=catalog/mkdir"),
    ];
    for (name, text) in found {
        assert_eq!(name, text.parse::<Name>().unwrap(), "{text}");
    }
    let unsigned = |name: Name| {
        let mut wire = Vec::new();
        InterestBuilder::new(name.view()).application_parameters(&[]).encode(&mut wire);
        Insert::decode(&site.name, &interest(&wire)).is_err()
    };
    assert!(unsigned(site.name.insert(&disk)) && unsigned(site.name.drop(&disk)));
    assert_eq!(site.name.parse_disk(site.name.disk(&disk).view()), Some(disk));
    assert_eq!(site.name.segment_size(CONTENT_ID), 8192);
}
