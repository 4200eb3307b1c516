//! The catalog beside what disks list: each way in which they can differ.

use std::collections::BTreeMap;

use byname_catalog::id::{ContentId, InodeId, LeaseEpoch, Version};
use byname_catalog::{Command, DiskChanges, DiskState};
use byname_packet::{Data, Interest, InterestBuilder, SignatureExtra};
use byname_site::{List, ListAnswer, Listed};
use serde_json::Value;

use crate::commands::{SIZE, commit, create, receipt, send_commit};
use crate::support::{Holder, NOW_NS, TestHead, done, place};

/// Contents that a disk lists at a time.
const PAGE: usize = 2;

/// What each of the two disks has; one that is absent does not answer.
type Disks = [Option<BTreeMap<ContentId, (u64, [u8; 32])>>; 2];

fn put(head: &mut TestHead, path: &str) -> ContentId {
    let commit = commit(create(head, path).terms().content);
    let holders = [10, 11]
        .map(|seed: u8| Holder::new(seed, &head.site.disk(&head.disks[usize::from(seed - 10)].0)));
    let receipts = (0..2).map(|disk| receipt(head, disk, &holders[disk], &commit)).collect();
    done(send_commit(head, &commit, receipts));
    commit.content
}

pub(crate) fn query(head: &mut TestHead, text: &str) -> Vec<Value> {
    asked(head, true, text).unwrap()
}

/// What the head says to an operator, or to anna; its refusal if it does not.
pub(crate) fn asked(
    head: &mut TestHead,
    is_operator: bool,
    text: &str,
) -> Result<Vec<Value>, String> {
    let stamp = head.stamp();
    let extra =
        SignatureExtra { nonce: Some(&stamp.nonce), time_ms: Some(stamp.time_ms), seq_num: None };
    let (name, mut wire) = (head.site.command("query"), Vec::new());
    InterestBuilder::new(name.view())
        .must_be_fresh(true)
        .application_parameters(text.as_bytes())
        .encode_signed(
            if is_operator { &head.operator.signer } else { &head.anna.signer },
            extra,
            &mut wire,
        )
        .unwrap();
    let data = head.send_for_data(&wire);
    let content = Data::decode(&data).unwrap().content.to_vec();
    let lines = String::from_utf8(content).map_err(|error| error.to_string())?;
    lines.lines().map(|line| serde_json::from_str(line).map_err(|it| it.to_string())).collect()
}

/// The signed page that a disk answers an order with.
fn page(head: &TestHead, disk: usize, wire: &[u8], disks: &Disks) -> Option<Vec<u8>> {
    let interest = Interest::decode(wire).unwrap();
    let (name, order) = List::decode(&head.site, &interest).unwrap();
    assert_eq!(name, head.disks[disk].0);
    let all = disks[disk].as_ref()?;
    let behind = all.iter().filter(|(content, _)| order.after.is_none_or(|it| it < **content));
    let listed = |(content, (size, root)): (&ContentId, &(u64, [u8; 32]))| Listed {
        content: *content,
        size: *size,
        root: *root,
    };
    let contents: Vec<Listed> = behind.map(listed).collect();
    let is_last = contents.len() <= PAGE;
    let contents = contents.into_iter().take(PAGE).collect();
    let answer = ListAnswer::Page { epoch: LeaseEpoch(1), contents, is_last };
    Some(answer.encode(interest.name, &head.disks[disk].1.signer).unwrap())
}

/// Compares; findings as (problem, disk, name).
fn compare(head: &mut TestHead, disks: &Disks) -> Vec<(String, Option<usize>, String)> {
    assert_eq!(query(head, "fsck-begin")[0]["begun"], true);
    let mut watch = head.watch();
    while let Some(orders) = watch.lists(&mut || head.stamp()) {
        if !orders.is_empty() {
            assert_eq!(query(head, "fsck-begin")[0]["begun"], false, "one at a time");
        }
        let answers = orders.into_iter().map(|order| {
            let interest = Interest::decode(order.wire()).unwrap();
            let (name, _) = List::decode(&head.site, &interest).unwrap();
            let disk = head.disks.iter().position(|(disk, _)| *disk == name).unwrap();
            let page = page(head, disk, order.wire(), disks);
            (order, page)
        });
        let answers = answers.collect();
        watch.handle_lists(answers, NOW_NS);
    }
    let lines = query(head, "fsck");
    let number = |line: &Value| line["disk"].as_u64();
    let index = |id: u64| head.disks.iter().position(|(disk, _)| disk.id.0 == id).unwrap();
    let text = |line: &Value, key: &str| line[key].as_str().unwrap_or("-").to_owned();
    let found = lines
        .iter()
        .map(|line| (text(line, "problem"), number(line).map(index), text(line, "name")));
    found.collect()
}

fn nothing() -> Disks {
    [Some(BTreeMap::new()), Some(BTreeMap::new())]
}

fn found(problem: &str, disk: Option<usize>, name: &str) -> (String, Option<usize>, String) {
    (problem.to_owned(), disk, name.to_owned())
}

fn has(disks: &mut Disks, disk: usize, content: ContentId) -> &mut (u64, [u8; 32]) {
    disks[disk].as_mut().unwrap().entry(content).or_insert((SIZE, [7; 32]))
}

#[test]
fn every_difference_between_catalog_and_disks_is_found_and_nothing_else() {
    let mut head = TestHead::new();
    done(head.run(true, Command::MakeDirectory { place: place("dir"), mode: 0o755 }));
    let paths = ["whole", "dir/one", "other", "gone", "short", "left"];
    let [whole, one, other, _gone, short, left] = paths.map(|path| put(&mut head, path));
    let mut disks = nothing();
    for content in [whole, one, other, short, left] {
        has(&mut disks, 0, content);
        has(&mut disks, 1, content);
    }
    disks[1].as_mut().unwrap().remove(&one);
    has(&mut disks, 0, other).1 = [8; 32];
    has(&mut disks, 0, short).0 = 1;
    disks[1].as_mut().unwrap().remove(&short);
    // Being written, given up, and of no catalog that anybody knows.
    let open = create(&mut head, "open").terms().content;
    let aborted = create(&mut head, "aborted").terms().content;
    done(head.run(true, Command::Abort { content: aborted }));
    let foreign = ContentId { inode: InodeId(1 << 50), version: Version(1 << 50) };
    for content in [open, aborted, foreign] {
        has(&mut disks, 0, content);
    }
    done(head.run(true, Command::Unlink { place: place("left") }));
    head.expire(NOW_NS + 1_800_000_000_000);
    let expected = [
        found("lost", None, "/test/site/gone"),
        found("lost", None, "/test/site/short"),
        found("missing", Some(1), "/test/site/dir/one"),
        found("missing", Some(0), "/test/site/gone"),
        found("missing", Some(1), "/test/site/gone"),
        found("missing", Some(1), "/test/site/short"),
        found("different-size", Some(0), "/test/site/short"),
        found("different-content", Some(0), "/test/site/other"),
        found("under-replicated", None, "/test/site/dir/one"),
        found("under-replicated", None, "/test/site/other"),
        found("orphaned", Some(0), "-"),
        found("unknown", Some(0), "-"),
        found("leaving", Some(0), "-"),
        found("leaving", Some(1), "-"),
    ];
    assert_eq!(compare(&mut head, &disks), expected);
}

#[test]
fn many_replicas_are_compared_page_by_page_and_agree() {
    let mut head = TestHead::new();
    let mut disks = nothing();
    for index in 0..11 {
        let content = put(&mut head, &format!("f{index}"));
        has(&mut disks, 0, content);
        has(&mut disks, 1, content);
    }
    assert_eq!(compare(&mut head, &disks), []);
    let state = query(&mut head, "fsck-state");
    assert_eq!((&state[0]["files"], &state[1]["listed"]), (&11.into(), &11.into()));
}

#[test]
fn what_a_silent_disk_has_is_out_of_reach_and_not_lost() {
    let mut head = TestHead::new();
    let one = put(&mut head, "one");
    put(&mut head, "two");
    let mut disks = nothing();
    has(&mut disks, 0, one);
    disks[1] = None;
    let expected = [
        found("out-of-reach", None, "/test/site/two"),
        found("missing", Some(0), "/test/site/two"),
    ];
    assert_eq!(compare(&mut head, &disks), expected);
    let state = query(&mut head, "fsck-state");
    assert_eq!(state[2]["failure"], "it does not answer");
}

/// A disk that lies need never come to its end, and one comparison runs at a time.
#[test]
fn a_disk_that_lists_without_end_is_ended_by_turning_it_off() {
    const INVENTED: u64 = 100;
    let mut head = TestHead::new();
    let one = put(&mut head, "one");
    let mut disks = nothing();
    has(&mut disks, 0, one);
    has(&mut disks, 1, one);
    query(&mut head, "fsck-begin");
    let (mut watch, liar) = (head.watch(), head.disks[1].0.id);
    let (mut invented, mut is_off) = (0, false);
    while let Some(orders) = watch.lists(&mut || head.stamp()) {
        let answers = orders.into_iter().map(|order| {
            let interest = Interest::decode(order.wire()).unwrap();
            let (name, _) = List::decode(&head.site, &interest).unwrap();
            if name.id != liar {
                let page = page(&head, 0, order.wire(), &disks);
                return (order, page);
            }
            invented += 1;
            let content = ContentId { inode: InodeId((1 << 50) + invented), version: Version(1) };
            let contents = vec![Listed { content, size: u64::MAX, root: [0; 32] }];
            let answer = ListAnswer::Page { epoch: LeaseEpoch(1), contents, is_last: false };
            let page = answer.encode(interest.name, &head.disks[1].1.signer).unwrap();
            (order, Some(page))
        });
        let answers = answers.collect();
        watch.handle_lists(answers, NOW_NS);
        if invented == INVENTED && !is_off {
            is_off = true;
            assert_eq!(query(&mut head, "fsck-state")[0]["running"], true);
            let changes = DiskChanges { state: Some(DiskState::Off), ..DiskChanges::default() };
            done(head.run(true, Command::SetDisk { disk: liar, changes }));
        }
        assert!(invented <= INVENTED, "it is off");
    }
    let state = query(&mut head, "fsck-state");
    assert_eq!(state[0]["running"], false);
    assert_eq!((&state[1]["done"], &state[2]["failure"]), (&true.into(), &"it is off".into()));
    assert_eq!(state[2]["listed"], INVENTED);
}

/// Another disk's key answers in the place of a disk: that is no answer.
#[test]
fn a_disk_s_word_counts_only_if_it_has_signed_it() {
    let mut head = TestHead::new();
    let one = put(&mut head, "one");
    let mut disks = nothing();
    has(&mut disks, 0, one);
    has(&mut disks, 1, one);
    head.disks[1].1 = Holder::new(10, &head.site.disk(&head.disks[0].0));
    compare(&mut head, &disks);
    let state = query(&mut head, "fsck-state");
    assert_eq!(state[2]["failure"], "it does not answer");
    assert!(state[1]["failure"].is_null());
}

#[test]
fn only_operators_compare() {
    let mut head = TestHead::new();
    let stamp = head.stamp();
    let extra =
        SignatureExtra { nonce: Some(&stamp.nonce), time_ms: Some(stamp.time_ms), seq_num: None };
    let (name, mut wire) = (head.site.command("query"), Vec::new());
    InterestBuilder::new(name.view())
        .application_parameters(b"fsck-begin")
        .encode_signed(&head.anna.signer, extra, &mut wire)
        .unwrap();
    let data = head.send_for_data(&wire);
    let text = String::from_utf8_lossy(Data::decode(&data).unwrap().content).into_owned();
    assert!(!text.contains("begun"), "{text}");
    assert!(head.watch().lists(&mut || head.stamp()).is_none(), "nothing was begun");
}
