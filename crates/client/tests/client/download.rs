//! Single files to disk.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use byname_client::{DownloadOptions, FileOutcome, NoProgress};
use byname_packet::Interest;

use super::publisher::{Publisher, Reply, sample};
use super::server::Server;

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn files_of_every_shape_arrive_whole_with_their_attributes() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut publisher = Publisher::new("/lab", 1);
    let sizes = [0, 1, 8191, 8192, 8193, 2 << 20, (2 << 20) + 1, 5_000_000];
    let names: Vec<_> = sizes
        .iter()
        .enumerate()
        .map(|(version, size)| {
            publisher.publish(&format!("d x/{size}"), 1000 + version as u64, &sample(*size))
        })
        .collect();
    let (_server, mut client) = Server::honest(publisher);
    for (name, size) in names.iter().zip(sizes) {
        let target = directory.path().join(size.to_string());
        let report = client
            .download(name, &target, DownloadOptions::default(), &mut NoProgress)
            .expect("it arrives");
        assert_eq!(report.outcome, FileOutcome::Fetched);
        assert_eq!((report.size, report.fetched_bytes), (size as u64, size as u64));
        assert!(std::fs::read(&target).expect("the file") == sample(size), "{size}");
        let metadata = std::fs::metadata(&target).expect("the file");
        assert_eq!(metadata.permissions().mode() & 0o7777, 0o644);
        let mtime = metadata.modified().expect("mtime");
        let since = mtime.duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        assert_eq!(u128::from(report.version), since.as_nanos());
    }
    assert_eq!(names_in(directory.path()).len(), sizes.len(), "no part files are left");
}

#[test]
fn the_beginning_is_asked_for_while_the_certificate_is_on_its_way() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut publisher = Publisher::new("/lab", 1);
    let name = publisher.publish("f", 1000, &sample(100_000));
    // The certificate comes to nobody who has not asked for content before.
    let mut is_asked = false;
    let meddler = move |interest: &Interest<'_>, reply| {
        is_asked |= interest.name.last().is_some_and(|last| last.segment().is_some());
        let is_certificate = interest.name.get(1).is_some_and(|it| it.value == b"KEY");
        if is_certificate && !is_asked { Reply::Silence } else { reply }
    };
    let (_server, mut client) = Server::meddled(publisher, Box::new(meddler));
    let target = directory.path().join("f");
    let report = client
        .download(&name, &target, DownloadOptions::default(), &mut NoProgress)
        .expect("it arrives");
    assert_eq!(report.fetched_bytes, 100_000);
    assert!(std::fs::read(&target).expect("the file") == sample(100_000));
}
