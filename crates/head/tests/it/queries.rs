//! What users ask about paths, which no cache answers.

use byname_catalog::{AttributeChanges, Command, EntryName, Place, TrashPolicy};
use byname_head::{Described, Describer, Rates};
use byname_packet::{Data, InterestBuilder, SignatureExtra};
use byname_security::base64;
use byname_site::{Outcome, Reply};
use byname_transfer::metadata::Metadata;
use serde_json::Value;

use crate::paths::put;
use crate::support::{TestHead, place};

/// The content of the answer to a query, by the operator or anna.
pub(crate) fn asked(head: &mut TestHead, is_operator: bool, text: &str) -> Vec<u8> {
    let stamp = head.stamp();
    let extra =
        SignatureExtra { nonce: Some(&stamp.nonce), time_ms: Some(stamp.time_ms), seq_num: None };
    let (name, mut wire) = (head.site.command("query"), Vec::new());
    let signer = if is_operator { &head.operator.signer } else { &head.anna.signer };
    InterestBuilder::new(name.view())
        .must_be_fresh(true)
        .application_parameters(text.as_bytes())
        .encode_signed(signer, extra, &mut wire)
        .unwrap();
    head.send_for_data(&wire)
}

fn lines(head: &mut TestHead, text: &str) -> Vec<Value> {
    let data = asked(head, true, text);
    let content = Data::decode(&data).unwrap().content.to_vec();
    assert!(data.len() <= 8800, "{} octets", data.len());
    let lines = String::from_utf8(content).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn metadata(line: &Value) -> Metadata {
    let octets = base64::decode_url(line["metadata"].as_str().unwrap()).unwrap();
    Metadata::decode(&octets).unwrap()
}

/// All entries of a directory, page by page.
fn entries(head: &mut TestHead, name: &str) -> Vec<(Vec<u8>, Metadata)> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let mut page = lines(head, format!("entries {name} {after}").trim_end());
        let more = page.pop_if(|line| line.get("more").is_some());
        for line in page {
            let name = base64::decode_url(line["name"].as_str().unwrap()).unwrap();
            all.push((name, metadata(&line)));
        }
        match more {
            Some(more) => more["more"].as_str().unwrap().clone_into(&mut after),
            None => return all,
        }
    }
}

#[test]
fn a_path_is_described_as_its_readers_are_told() {
    let mut head = TestHead::new();
    put(&mut head, "a", 9000);
    let line = lines(&mut head, "describe /test/site/a").remove(0);
    let reader = head.reader();
    let Described::Object(public) = Describer::new(&head.site, &reader).path(b"a").unwrap() else {
        panic!("a directory")
    };
    assert_eq!(metadata(&line), *public);
    assert_eq!(line["replicas"], 2);
    drop(reader);

    let target = b"a".to_vec();
    head.done(Command::MakeSymlink { place: place("link"), target });
    let link = metadata(&lines(&mut head, "describe /test/site/link")[0]);
    assert_eq!(link.attributes().link_target, Some(&b"a"[..]));

    head.done(Command::MakeDirectory { place: place("d"), mode: 0o750 });
    let line = lines(&mut head, "describe /test/site/d").remove(0);
    let directory = metadata(&line);
    assert!(directory.is_directory() && line["binding"].as_u64().unwrap() > 0);
    assert_eq!((directory.mode, directory.attributes().owner), (Some(0o40_750), Some("op")));
    let top = metadata(&lines(&mut head, "describe /test/site")[0]);
    assert!(top.is_directory());
}

#[test]
fn what_is_not_there_or_elsewhere_is_refused() {
    let mut head = TestHead::new();
    let mut refusal = |is_operator, text: &str| {
        let data = asked(&mut head, is_operator, text);
        let reply = Reply::decode(&head.site, &Data::decode(&data).unwrap()).unwrap();
        let Outcome::Refused(refusal) = reply.outcome else { panic!("{reply:?}") };
        refusal.to_string()
    };
    assert_eq!(refusal(true, "describe /test/site/none"), "no such file or directory");
    assert_eq!(refusal(true, "describe /other/site/a"), "no such file or directory");
    assert_eq!(refusal(true, "entries /test/site/none"), "no such file or directory");
    assert_eq!(refusal(true, "entries /test/site !"), "an entry cannot have this name");
}

#[test]
fn entries_come_in_pages_with_any_names_and_only_to_those_who_may_list() {
    let mut head = TestHead::new();
    head.done(Command::MakeDirectory { place: place("d"), mode: 0o700 });
    assert_eq!(entries(&mut head, "/test/site/d").len(), 0);
    let mut wanted: Vec<Vec<u8>> = (0..60).map(|at| format!("{at:03}").into_bytes()).collect();
    wanted.extend([b"\xff 100%".to_vec(), vec![b'x'; 255], "Größe".as_bytes().to_vec()]);
    for name in &wanted {
        let name = EntryName::new(name.clone()).unwrap();
        let place = Place { names: [place("d").names, vec![name]].concat(), ..place("") };
        head.done(Command::MakeDirectory { place, mode: 0o755 });
    }
    put(&mut head, "d/file", 5);
    wanted.push(b"file".to_vec());
    wanted.sort();
    let found = entries(&mut head, "/test/site/d");
    assert_eq!(found.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), wanted);
    let file = &found.iter().find(|(name, _)| name == b"file").unwrap().1;
    assert_eq!((file.size, file.forwarding_hint().len()), (Some(5), 2));

    let data = asked(&mut head, false, "entries /test/site/d");
    let reply = Reply::decode(&head.site, &Data::decode(&data).unwrap()).unwrap();
    let Outcome::Refused(refusal) = reply.outcome else { panic!("{reply:?}") };
    assert_eq!(refusal.to_string(), "the modes do not allow it");
    let changes = AttributeChanges { mode: Some(0o755), ..AttributeChanges::default() };
    head.done(Command::SetAttributes { place: place("d"), changes });
    let data = asked(&mut head, false, "entries /test/site/d");
    assert!(Reply::decode(&head.site, &Data::decode(&data).unwrap()).is_err());
}

/// One tree in the trash, which has no path, would leave nobody any list.
#[test]
fn quotas_are_listed_while_a_tree_that_has_one_is_in_the_trash() {
    let mut head = TestHead::new();
    let trash = TrashPolicy { is_on: true, keep_ns: u64::MAX, bytes_max: u64::MAX };
    head.done(Command::SetTrash { place: place("/"), policy: trash });
    for path in ["t", "t/deep", "shut", "shut/tree"] {
        head.done(Command::MakeDirectory { place: place(path), mode: 0o700 });
    }
    for path in ["t/deep", "shut/tree"] {
        head.done(Command::MakeTree { place: place(path) });
    }
    head.done(Command::RemoveAll { place: place("t") });
    let listed = |head: &mut TestHead, is_operator| {
        let data = asked(head, is_operator, "quotas");
        let content = Data::decode(&data).unwrap().content.to_vec();
        let text = String::from_utf8(content).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let trees = lines.filter(|line| line["kind"] == "tree");
        let mut names: Vec<String> =
            trees.map(|line| line["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    let by_operator = listed(&mut head, true);
    let [numbered, top, path] = by_operator.as_slice() else { panic!("{by_operator:?}") };
    assert!(numbered.starts_with('#'), "{numbered}");
    assert_eq!((top.as_str(), path.as_str()), ("/", "/shut/tree"));
    let by_anna = listed(&mut head, false);
    assert!(by_anna.contains(numbered) && !by_anna.contains(path), "{by_anna:?}");
}

#[test]
fn a_client_in_a_loop_is_held_back_and_nobody_else() {
    let mut head = TestHead::new();
    let mkdir = |path| Command::MakeDirectory { place: place(path), mode: 0o755 };
    head.run(false, mkdir("x"));
    head.limit(Rates { user: Some(10), door: None });
    head.later_ns += 5_000_000_000;
    let is_answered = |head: &mut TestHead, is_operator| {
        let data = asked(head, is_operator, "status");
        Data::decode(&data).unwrap().content.first() == Some(&b'{')
    };
    let answered = (0..100).filter(|_| is_answered(&mut head, false)).count();
    assert!((1..=20).contains(&answered), "{answered} at 10 a second");
    // Commands count, too, and are not executed: nothing is lost by it.
    let outcome = head.run(false, mkdir("x")).outcome;
    let is_busy = |outcome: &Outcome| {
        matches!(outcome, Outcome::Failed { failure: byname_site::HeadFailure::Busy, .. })
    };
    assert!(is_busy(&outcome), "{outcome:?}");
    assert!(is_answered(&mut head, true), "somebody else");
    head.done(mkdir("y"));
    head.later_ns += 5_000_000_000;
    assert!(is_answered(&mut head, false));
    let outcome = head.run(false, mkdir("x")).outcome;
    assert!(!is_busy(&outcome), "{outcome:?}");
    let top = lines(&mut head, "top");
    let anna = top.iter().find(|line| line["kind"] == "user" && line["name"] == "anna").unwrap();
    assert!(anna["held_back"].as_u64().unwrap() >= 80, "{anna}");
    let reply = asked(&mut head, false, "top");
    let reply = Reply::decode(&head.site, &Data::decode(&reply).unwrap()).unwrap();
    assert_eq!(reply.outcome, Outcome::Refused(byname_catalog::Refusal::NotOperator));
}
