//! Files whose content lies under a name of its own (docs/protocol.md §2.1).

use std::sync::{Arc, Mutex};

use byname_client::{Client, ClientError, DownloadOptions, Extent, NoProgress};
use byname_packet::lp::nack_reason;
use byname_packet::{Interest, Name};
use byname_security::tree::Hash;
use byname_transfer::error::ReadError;
use byname_transfer::naming::{self, ContentName, ParsedName, Part, Request, last_segment};
use byname_transfer::reader::{ObjectPlan, Proof};

use super::publisher::{Publisher, Reply, flip_content_bit, sample};
use super::server::{Meddler, Server};

const SIZE: usize = 3_000_000;

/// A site with `/site/a/f`, whose segments exist only under `/site/32=file/seq=9`.
fn site() -> (Publisher, Name, Vec<u8>) {
    let mut site = Publisher::new("/site", 1);
    let bytes = sample(SIZE);
    let name = site.publish("a/f", 3, &bytes);
    let content: Name = "/site/32=file/seq=9".parse().expect("a name");
    let elsewhere = site.publish("elsewhere", 3, &bytes);
    let object = site.objects.remove(&elsewhere).expect("it was published");
    site.objects.insert(content.clone(), object);
    site.object_mut(&name).bytes.fill(0);
    site.announces = Some(content);
    site.binding = Some(50);
    (site, name, bytes)
}

fn is_of_content(parsed: &ParsedName<'_>) -> bool {
    ContentName::parse(parsed.path).is_some_and(|content| content.id == 9)
}

/// Notes the segments that are asked for: true for those of the content.
fn noting(asked: &Arc<Mutex<Vec<(bool, Part)>>>) -> Meddler {
    let asked = Arc::clone(asked);
    Box::new(move |interest: &Interest<'_>, reply| {
        if let Some(parsed) = naming::parse(interest.name)
            && let Request::Segment { part, .. } = parsed.request
        {
            asked.lock().expect("no panic").push((is_of_content(&parsed), part));
        }
        reply
    })
}

#[test]
fn a_file_is_read_under_the_name_of_its_content() {
    let (site, name, bytes) = site();
    let asked = Arc::default();
    let (_server, mut client) = Server::meddled(site, noting(&asked));
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    client.download(&name, &target, DownloadOptions::default(), &mut NoProgress).expect("read");
    assert_eq!(std::fs::read(&target).expect("it is there"), bytes);
    let asked = asked.lock().expect("no panic");
    let segments = asked.iter().filter(|(_, part)| *part == Part::Content).count();
    assert!(segments >= SIZE / 8192 && asked.contains(&(true, Part::Tree(1))), "{segments}");
    assert!(asked.iter().all(|(is_of_content, _)| *is_of_content), "nothing under the path");
}

#[test]
fn a_flipped_bit_in_content_elsewhere_is_refused() {
    let (site, name, _) = site();
    let meddler: Meddler = Box::new(|interest, reply| match reply {
        Reply::Data(mut wire) if interest.name.last().and_then(|it| it.segment()) == Some(300) => {
            flip_content_bit(&mut wire, 5000);
            Reply::Data(wire)
        }
        other => other,
    });
    let (_server, mut client) = Server::meddled(site, meddler);
    let error = fetched(&mut client, &name).expect_err("it must be refused");
    assert!(matches!(error, ClientError::Read(ReadError::BadUnit { unit: 300, .. })), "{error}");
}

/// A writer that was killed holds nobody who pulls from it for long: the path is known, so "no
/// route" means that it is gone, also in the middle.
#[test]
fn a_pull_whose_writer_has_no_route_any_more_ends_at_once() {
    let (site, _, bytes) = site();
    let asked = Arc::new(Mutex::new((0_u64, 0_u64)));
    let counted = Arc::clone(&asked);
    let meddler: Meddler = Box::new(move |interest, reply| {
        let mut counted = counted.lock().expect("no panic");
        counted.0 += 1;
        if counted.0 <= 100 {
            return reply;
        }
        counted.1 += u64::from(interest.name.last().and_then(|it| it.segment()) == Some(150));
        Reply::Nack(nack_reason::NO_ROUTE)
    });
    let (_server, mut client) = Server::meddled(site, meddler);
    let name: Name = "/site/32=file/seq=9/v=3".parse().expect("a name");
    let (size, root, segment_bytes) = (SIZE as u64, Hash::of(&bytes), 8192);
    let plan = ObjectPlan {
        name,
        size: Some(size),
        segment_bytes: Some(segment_bytes),
        last_segment: Some(last_segment(size, segment_bytes)),
        proof: Proof::Root { root, size, segment_bytes },
        hints: Vec::new(),
    };
    let whole = Extent::Whole { older: None };
    let error = client
        .fetch(plan, whole, (&mut |_, _| Ok(()), &mut |_, _| {}))
        .expect_err("the writer is gone");
    assert!(matches!(error, ClientError::Read(ReadError::NoRoute { .. })), "{error:?}");
    // Asked every 100 ms for 0.7 s; every 0.8 s for a minute before it was so.
    let (_, of_one) = *asked.lock().expect("no panic");
    assert!(of_one <= 12, "a segment was asked for {of_one} times");
}

/// A site whose key may not lead there, whatever lies there.
#[test]
fn content_of_another_namespace_is_not_read() {
    let (mut site, name, _) = site();
    let other: Name = "/other/32=file/seq=9".parse().expect("a name");
    let object = site.objects.remove(site.announces.as_ref().expect("one")).expect("published");
    site.objects.insert(other.clone(), object);
    site.announces = Some(other);
    let asked = Arc::default();
    let (_server, mut client) = Server::meddled(site, noting(&asked));
    let error = fetched(&mut client, &name).expect_err("it must be refused");
    assert!(matches!(error, ClientError::Read(ReadError::Protocol { .. })), "{error}");
}

fn fetched(client: &mut Client, name: &Name) -> Result<(), ClientError> {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let result = client.download(name, &target, DownloadOptions::default(), &mut NoProgress);
    assert!(!target.exists(), "nothing that looks whole is left");
    result.map(drop)
}
