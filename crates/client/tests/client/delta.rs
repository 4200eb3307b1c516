//! An older version stands at the target: only what changed travels.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use byname_client::{Client, DownloadOptions, Event, FileReport, NoProgress, Progress};
use byname_packet::Interest;
use byname_transfer::naming::{self, Part, Request};

use super::publisher::{Publisher, Reply, flip_content_bit, sample};
use super::server::Server;

const SIZE: usize = 6_000_000;
const UNIT: usize = 8192;

/// Fetches `new` over `old`; the report, and how many content segments were asked for. One that a
/// slow machine made the client ask for again counts once.
fn update(old: &[u8], new: &[u8], part: Option<&[u8]>) -> (FileReport, u64) {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    std::fs::write(&target, old).expect("disk");
    if let Some(part) = part {
        std::fs::write(directory.path().join(".f.byname-part"), part).expect("disk");
    }
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, new);
    let asked = Arc::new(Mutex::new(HashSet::new()));
    let names = Arc::clone(&asked);
    let (_server, mut client) = Server::meddled(
        publisher,
        Box::new(move |interest, reply| {
            if is_content(interest) {
                names.lock().expect("no panic").insert(interest.name.to_name());
            }
            reply
        }),
    );
    let report = download(&mut client, &name, &target, &mut NoProgress);
    assert!(std::fs::read(&target).expect("the file") == new);
    assert_eq!(report.fetched_bytes + report.reused_bytes, new.len() as u64, "{report:?}");
    let asked = asked.lock().expect("no panic").len() as u64;
    (report, asked)
}

fn download(
    client: &mut Client,
    name: &byname_packet::Name,
    target: &Path,
    progress: &mut dyn Progress,
) -> FileReport {
    client.download(name, target, DownloadOptions::default(), progress).expect("it arrives")
}

fn is_content(interest: &Interest<'_>) -> bool {
    let request = naming::parse(interest.name).map(|parsed| parsed.request);
    matches!(request, Some(Request::Segment { part: Part::Content, .. }))
}

#[test]
fn of_a_large_file_with_few_changes_only_those_travel() {
    let old = sample(SIZE);
    let mut new = old.clone();
    for unit in [0, 7, 8, 255, 256, 300, 511, 512, 700, 732] {
        new[unit * UNIT + 5] ^= 0x40;
    }
    let (report, asked) = update(&old, &new, None);
    assert_eq!(asked, 10);
    let last = SIZE - 732 * UNIT;
    assert_eq!(report.fetched_bytes, (9 * UNIT + last) as u64);
}

#[test]
fn a_file_that_grew_or_shrank_keeps_what_stayed_in_its_place() {
    let new = sample(SIZE);
    // The short unit at the end of the shorter version became a whole one.
    let (report, _) = update(&new[..SIZE / 2], &new, None);
    assert_eq!(report.reused_bytes, (SIZE / 2 / UNIT * UNIT) as u64);
    let longer = [&new[..], b"what was cut off"].concat();
    let (report, asked) = update(&longer, &new, None);
    assert_eq!((report.fetched_bytes, asked), (0, 0));
    let (report, _) = update(b"", &new, None);
    assert_eq!(report.reused_bytes, 0);
}

#[test]
fn what_an_earlier_run_left_counts_before_the_older_version() {
    let old = sample(SIZE);
    let mut new = old.clone();
    new[3_000_000..].fill(9);
    let part = &new[..4_000_000];
    let (report, _) = update(&old, &new, Some(part));
    assert_eq!(report.reused_bytes, (4_000_000 / UNIT * UNIT) as u64);
}

#[test]
fn a_version_with_nothing_in_common_is_fetched_whole() {
    let new = sample(4 * SIZE);
    let old: Vec<u8> = new.iter().map(|byte| byte ^ 0xff).collect();
    let (report, asked) = update(&old, &new, None);
    assert_eq!((report.reused_bytes, asked), (0, (4 * SIZE).div_ceil(UNIT) as u64));
}

/// Remembers what was refused.
struct Refusals(Vec<String>);

impl Progress for Refusals {
    fn on_event(&mut self, event: Event<'_>) {
        if let Event::Refused { what, .. } = event {
            self.0.push(what.to_owned());
        }
    }
}

#[test]
fn what_was_wrong_is_told_although_asking_again_helps() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &sample(SIZE));
    let mut is_done = false;
    let (_server, mut client) = Server::meddled(
        publisher,
        Box::new(move |interest, reply| match reply {
            Reply::Data(mut wire) if !is_done && is_content(interest) => {
                let segment = interest.name.last().and_then(|it| it.segment());
                if segment == Some(321) {
                    is_done = true;
                    flip_content_bit(&mut wire, 700);
                }
                Reply::Data(wire)
            }
            other => other,
        }),
    );
    let mut refusals = Refusals(Vec::new());
    download(&mut client, &name, &directory.path().join("f"), &mut refusals);
    assert_eq!(refusals.0, ["unit 321 is not what was signed"]);
}
