//! Directories: listing, ranges, whole trees, hostile names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use byname_client::{
    Client, ClientError, DownloadOptions, Event, NoProgress, Progress, TreeEntry, TreeOptions,
    TreeReport,
};
use byname_packet::Name;
use byname_transfer::attributes::Attributes;
use byname_transfer::error::ReadError;
use byname_transfer::manifest;
use byname_transfer::metadata::Absence;

use super::publisher::{Publisher, Reply, sample};
use super::server::Server;

fn fetch_tree(client: &mut Client, name: &Name, target: &Path) -> Result<TreeReport, ClientError> {
    let files = DownloadOptions::default();
    let options = TreeOptions { files, filter: &mut |_| true };
    client.download_tree(name, target, options, &mut NoProgress)
}

fn files_below(root: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut to_do = vec![root.to_owned()];
    while let Some(directory) = to_do.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                to_do.push(path);
            } else {
                found.insert(path.strip_prefix(root).expect("below").to_owned());
            }
        }
    }
    found
}

fn small_tree() -> (Publisher, Name) {
    let mut publisher = Publisher::new("/lab", 1);
    let root =
        publisher.publish_listing("d", 1000, &[b"a.txt", b"empty/", "s p \u{e9}/".as_bytes()]);
    publisher.publish("d/a.txt", 1000, b"hello");
    publisher.publish_listing("d/empty", 1000, &[]);
    publisher.publish_listing("d/s p \u{e9}", 1000, &[b"big", b"deep/"]);
    publisher.publish("d/s p \u{e9}/big", 1000, &sample(3_000_000));
    publisher.publish_listing("d/s p \u{e9}/deep", 1000, &[b"v=1"]);
    publisher.publish("d/s p \u{e9}/deep/v=1", 1000, b"deep");
    (publisher, root)
}

#[test]
fn a_tree_arrives_whole_and_the_second_time_nothing_is_fetched() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("new/target");
    let (publisher, root) = small_tree();
    let (_server, mut client) = Server::honest(publisher);
    let report = fetch_tree(&mut client, &root, &target).expect("it arrives");
    assert!(report.is_complete());
    assert_eq!((report.fetched_count, report.directory_count), (3, 4));
    assert!(target.join("empty").is_dir());
    assert!(std::fs::read(target.join("s p \u{e9}/big")).expect("the file") == sample(3_000_000));
    assert_eq!(std::fs::read(target.join("s p \u{e9}/deep/v=1")).expect("the file"), b"deep");
    assert_eq!(files_below(&target).len(), 3);
    let report = fetch_tree(&mut client, &root, &target).expect("it is there");
    assert_eq!((report.identical_count, report.fetched_bytes), (3, 0));
}

#[test]
fn entries_that_make_no_safe_path_are_left_out_and_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("t");
    let long = [b'n'; 256];
    let hostile: [&[u8]; 8] =
        [b"..", b"../", b"../escape", b"/etc/passwd", b"", b".", b"x/y", &long];
    let mut entries = hostile.to_vec();
    entries.push(b"good");
    let mut publisher = Publisher::new("/lab", 1);
    let root = publisher.publish_listing("d", 1000, &entries);
    publisher.publish("d/good", 1000, b"good");
    let (_server, mut client) = Server::honest(publisher);
    let report = fetch_tree(&mut client, &root, &target).expect("the rest arrives");
    assert_eq!((report.fetched_count, report.skipped_count), (1, hostile.len() as u64));
    assert!(!report.is_complete());
    assert_eq!(files_below(directory.path()), BTreeSet::from([PathBuf::from("t/good")]));
}

#[test]
fn a_symbolic_link_inside_the_target_is_not_followed() {
    let directory = tempfile::tempdir().expect("a directory");
    let (target, outside) = (directory.path().join("t"), directory.path().join("outside"));
    std::fs::create_dir(&target).expect("disk");
    std::fs::create_dir(&outside).expect("disk");
    std::os::unix::fs::symlink(&outside, target.join("empty")).expect("disk");
    std::os::unix::fs::symlink("../outside", target.join("s p \u{e9}")).expect("disk");
    let (publisher, root) = small_tree();
    let (_server, mut client) = Server::honest(publisher);
    let report = fetch_tree(&mut client, &root, &target).expect("the rest arrives");
    assert_eq!((report.fetched_count, report.failed_count), (1, 2));
    assert!(matches!(report.failures[0].1, ClientError::InTheWay { .. }));
    assert_eq!(files_below(&outside), BTreeSet::new());
}

#[test]
fn one_failing_file_does_not_end_the_others() {
    #[derive(Default)]
    struct Watch {
        failed: Vec<PathBuf>,
        done: usize,
    }
    impl Progress for Watch {
        fn on_event(&mut self, event: Event<'_>) {
            match event {
                Event::FileFailed { path, .. } => self.failed.push(path.to_owned()),
                Event::FileDone { .. } => self.done += 1,
                _ => {}
            }
        }
    }
    let directory = tempfile::tempdir().expect("a directory");
    let (mut publisher, root) = small_tree();
    let victim = publisher.name("d/a.txt");
    publisher.object_mut(&victim).absence = Some(Absence::NoPermission);
    let (_server, mut client) = Server::honest(publisher);
    let mut watch = Watch::default();
    let options = TreeOptions { files: DownloadOptions::default(), filter: &mut |_| true };
    let report = client
        .download_tree(&root, directory.path(), options, &mut watch)
        .expect("the rest arrives");
    assert_eq!((report.fetched_count, report.failed_count), (2, 1));
    let (path, error) = &report.failures[0];
    assert_eq!(path, &directory.path().join("a.txt"));
    assert!(matches!(error, ClientError::Read(ReadError::NoPermission { .. })));
    assert_eq!((watch.failed, watch.done), (vec![path.clone()], 2));
}

#[test]
fn what_the_filter_leaves_out_is_not_even_asked_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let (publisher, root) = small_tree();
    let (_server, mut client) = Server::meddled(
        publisher,
        Box::new(|interest, reply| {
            assert!(!interest.name.to_string().contains("big"), "{}", interest.name);
            reply
        }),
    );
    let mut filter = |entry: &TreeEntry<'_>| entry.is_directory() || !entry.path.ends_with("big");
    let options = TreeOptions { files: DownloadOptions::default(), filter: &mut filter };
    let report = client
        .download_tree(&root, directory.path(), options, &mut NoProgress)
        .expect("the rest arrives");
    assert_eq!(report.fetched_count, 2);
    assert!(report.is_complete());
}

#[test]
fn a_directory_that_is_not_there_is_an_error_of_the_call() {
    let directory = tempfile::tempdir().expect("a directory");
    let (publisher, _) = small_tree();
    let missing = publisher.name("missing");
    let (_server, mut client) = Server::honest(publisher);
    let error = fetch_tree(&mut client, &missing, directory.path()).expect_err("not there");
    assert!(matches!(error, ClientError::Read(ReadError::NotFound { .. })), "{error}");
}

#[test]
fn many_small_files_share_the_slots() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut publisher = Publisher::new("/lab", 1);
    let names: Vec<String> = (0..300).map(|number| format!("f{number:03}")).collect();
    let entries: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
    let root = publisher.publish_listing("d", 1000, &entries);
    for (number, name) in names.iter().enumerate() {
        publisher.publish(&format!("d/{name}"), 1000, &sample(number * 100));
    }
    let (_server, mut client) = Server::honest(publisher);
    let report = fetch_tree(&mut client, &root, directory.path()).expect("it arrives");
    assert_eq!(report.fetched_count, 300);
    for (number, name) in names.iter().enumerate() {
        let bytes = std::fs::read(directory.path().join(name)).expect("the file");
        assert!(bytes == sample(number * 100), "{name}");
    }
}

#[test]
fn a_listing_of_fifty_thousand_entries_is_read_whole() {
    let names: Vec<String> = (0..50_000).map(|number| format!("entry-{number:06}")).collect();
    let entries: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
    let mut publisher = Publisher::new("/lab", 1);
    let root = publisher.publish_listing("d", 1000, &entries);
    let (_server, mut client) = Server::honest(publisher);
    let listing = client.list(&root).expect("it arrives");
    assert_eq!(listing.entry_count(), 50_000);
    assert!(listing.safe_entries().zip(&names).all(|(entry, name)| entry.name == name.as_bytes()));
}

#[test]
fn ranges_are_exact_and_in_order_even_when_packets_are_lost() {
    let size = 5_000_000u64;
    let bytes = sample(size as usize);
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &bytes);
    let mut number = 0u64;
    let (_server, mut client) = Server::meddled(
        publisher,
        Box::new(move |_, reply| {
            number += 1;
            if number.is_multiple_of(67) { Reply::Silence } else { reply }
        }),
    );
    let file = client.open(&name).expect("it is there");
    assert_eq!(file.size(), Some(size));
    let ranges = [0..1, 8191..8193, 0..size, 4_999_999..size, 123..1_000_456, 7..7, size..size + 9];
    for range in ranges {
        let mut read = Vec::new();
        let count = client
            .read_range(&file, range.clone(), &mut |offset, piece| {
                assert_eq!(offset, range.start + read.len() as u64);
                read.extend_from_slice(piece);
                Ok(())
            })
            .expect("it arrives");
        let end = range.end.min(size) as usize;
        assert_eq!(count, read.len() as u64);
        assert!(read == bytes[(range.start as usize).min(end)..end], "{range:?}");
    }
}

#[test]
fn an_output_that_fails_ends_the_reading() {
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &sample(1_000_000));
    let (_server, mut client) = Server::honest(publisher);
    let file = client.open(&name).expect("it is there");
    let result = client
        .read_range(&file, 0..u64::MAX, &mut |_, _| Err(std::io::ErrorKind::BrokenPipe.into()));
    assert!(matches!(result, Err(ClientError::Output(_))));
}

#[test]
fn files_that_shall_survive_a_power_cut_are_placed_in_batches_and_none_is_forgotten() {
    struct Done(BTreeSet<PathBuf>);
    impl Progress for Done {
        fn on_event(&mut self, event: Event<'_>) {
            if let Event::FileDone { path, .. } = event {
                assert!(path.is_file(), "told before it is in place: {}", path.display());
                self.0.insert(path.to_owned());
            }
        }
    }
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("t");
    let names: Vec<String> = (0..600).map(|number| format!("f{number:03}")).collect();
    let mut publisher = Publisher::new("/lab", 1);
    let entries: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    let root = publisher.publish_listing("d", 1000, &entries);
    for name in &names {
        publisher.publish(&format!("d/{name}"), 1000, name.as_bytes());
    }
    let (_server, mut client) = Server::honest(publisher);
    let mut done = Done(BTreeSet::new());
    let files = DownloadOptions { sync: true, ..DownloadOptions::default() };
    let options = TreeOptions { files, filter: &mut |_| true };
    let report = client.download_tree(&root, &target, options, &mut done).expect("it arrives");
    assert_eq!((report.fetched_count, report.failed_count), (600, 0));
    assert_eq!(done.0.len(), 600);
    assert_eq!(files_below(&target).len(), 600, "and no part file is left");
}

/// A directory whose manifest has symbolic links with these targets.
fn publish_links(publisher: &mut Publisher, path: &str, links: &[(&str, &str)]) -> Name {
    let mut payload = Vec::new();
    manifest::write_header(&mut payload, links.len() as u64);
    for (name, target) in links {
        let attributes =
            Attributes { link_target: Some(target.as_bytes()), ..Attributes::default() };
        let entry = manifest::Entry::new(name.as_bytes(), 0o100_444);
        manifest::Entry { attributes, ..entry }.encode(&mut payload);
    }
    publisher.publish_manifest_octets(path, 1000, &payload)
}

#[test]
fn no_target_of_a_link_leads_out_of_the_tree_whoever_signed_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("t");
    let mut publisher = Publisher::new("/lab", 1);
    let root = publish_links(
        &mut publisher,
        "d",
        &[
            ("absolute", "/etc/passwd"),
            ("fine", "sub/../../x"),
            ("inside", "sub/x"),
            ("upward", "../outside"),
        ],
    );
    // For three of them their names are asked: two have files behind them, one has nothing.
    publisher.publish("d/absolute", 1000, b"not a password");
    publisher.publish("d/upward", 1000, b"not outside");
    let (_server, mut client) = Server::honest(publisher);
    let report = fetch_tree(&mut client, &root, &target).expect("it is listed");
    assert_eq!((report.fetched_count, report.failed_count), (3, 1));
    assert_eq!(report.failures[0].0, target.join("fine"));
    assert_eq!(std::fs::read(target.join("absolute")).expect("a file"), b"not a password");
    assert_eq!(std::fs::read(target.join("upward")).expect("a file"), b"not outside");
    let made = std::fs::read_link(target.join("inside")).expect("a link");
    assert_eq!(made, PathBuf::from("sub/x"));
}

#[test]
fn nothing_is_written_through_a_link_that_an_earlier_version_made() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("t");
    let mut publisher = Publisher::new("/lab", 1);
    let root = publish_links(&mut publisher, "d", &[("precious", "other"), ("x", "precious")]);
    let (_server, mut client) = Server::honest(publisher);
    assert_eq!(fetch_tree(&mut client, &root, &target).expect("links").fetched_count, 2);
    std::fs::create_dir(target.join("other")).expect("disk");
    std::fs::write(target.join("other/f"), b"mine").expect("disk");
    // The next version has a directory and a file where the links were.
    let mut publisher = Publisher::new("/lab", 1);
    let root = publisher.publish_listing("d", 2000, &[b"precious/", b"x"]);
    publisher.publish_listing("d/precious", 2000, &[b"f"]);
    publisher.publish("d/precious/f", 2000, b"theirs");
    publisher.publish("d/x", 2000, b"a file");
    let (_server, mut client) = Server::honest(publisher);
    let report = fetch_tree(&mut client, &root, &target).expect("it is listed");
    assert_eq!((report.fetched_count, report.failed_count), (1, 1));
    assert!(matches!(report.failures[0].1, ClientError::InTheWay { .. }), "{report:?}");
    assert_eq!(std::fs::read(target.join("other/f")).expect("mine"), b"mine");
    let x = std::fs::symlink_metadata(target.join("x")).expect("there");
    assert!(x.is_file(), "the link was replaced, and not what it led to");
}

#[test]
fn links_in_a_circle_come_to_an_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("t");
    let mut publisher = Publisher::new("/lab", 1);
    let mut path = String::from("d");
    let root = publish_links(&mut publisher, &path, &[("again", "/d")]);
    for _ in 0..20 {
        path.push_str("/again");
        publisher.publish_listing(&path, 1000, &[]);
        publish_links(&mut publisher, &path, &[("again", "/d")]);
    }
    let (_server, mut client) = Server::honest(publisher);
    let report = fetch_tree(&mut client, &root, &target).expect("it is listed");
    assert_eq!((report.directory_count, report.failed_count), (9, 1));
}
