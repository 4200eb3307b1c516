//! Trees whose directories have manifests, also when somebody on the way does not like them.

use crate::harness::{Home, entries, noise, tampering, write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Files around the sizes that are treated differently.
const SIZES: [usize; 6] = [0, 1, 8192, 8193, 131_073, 3_000_000];

fn fill(dir: &Path) {
    std::fs::create_dir_all(dir.join("sub/deep")).unwrap();
    std::fs::create_dir(dir.join("empty")).unwrap();
    for (at, size) in SIZES.into_iter().enumerate() {
        write(&dir.join(format!("size {size}")), &noise(size, at as u64));
        write(&dir.join(format!("sub/deep/{size}")), &noise(size, 9 + at as u64));
    }
    for number in 0..300 {
        write(&dir.join(format!("sub/small-{number:03}")), &noise(number * 20, number as u64));
    }
}

fn is_same(one: &Path, other: &Path) {
    assert_eq!(entries(one), entries(other), "{}", one.display());
    for name in entries(one) {
        let (one, other) = (one.join(&name), other.join(&name));
        if one.is_dir() {
            is_same(&one, &other);
            continue;
        }
        assert!(std::fs::read(&one).unwrap() == std::fs::read(&other).unwrap(), "{name} differs");
        let (one, other) = (one.metadata().unwrap(), other.metadata().unwrap());
        let about = |meta: &std::fs::Metadata| (meta.mode(), meta.mtime(), meta.mtime_nsec());
        assert_eq!(about(&one), about(&other), "{name}");
    }
}

#[test]
fn a_tree_arrives_with_all_its_files_sizes_times_and_modes() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    fill(&dir);
    let up = a.up(&dir, "/lab/d");
    b.run(&["get", "-r", &up.link, "-o", "out"]).ok();
    is_same(&dir, &b.path().join("out"));
    let again = b.run(&["get", "-r", "--json", &up.link, "-o", "out"]).ok().stdout();
    assert!(again.contains("\"files\":0") && again.contains("\"bytes\":0"), "{again}");
    b.run(&["verify", "out", &up.link]).ok();
    b.run(&["verify", "--quick", "out", &up.link]).ok();
}

#[test]
fn what_is_different_is_fetched_again_and_told() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    fill(&dir);
    let up = a.up(&dir, "/lab/d");
    b.run(&["get", "-r", &up.link, "-o", "out"]).ok();
    let out = b.path().join("out");
    // Of the same size and time: only its octets tell.
    let rotten = out.join("sub/small-100");
    let time = rotten.metadata().unwrap().modified().unwrap();
    std::fs::write(&rotten, vec![b'x'; 2000]).unwrap();
    std::fs::File::options().write(true).open(&rotten).unwrap().set_modified(time).unwrap();
    b.run(&["verify", "--quick", "out", &up.link]).ok();
    let told = b.run(&["verify", "out", &up.link]).fails_with(5, "1 difference, ").stdout();
    assert_eq!(told, "differs  sub/small-100\n");
    b.run(&["get", "-r", "--checksum", &up.link, "-o", "out"]).ok();
    is_same(&dir, &out);
    // Of the same size and another time: that is enough to look again.
    write(&dir.join("sub/small-007"), &noise(140, 99));
    write(&dir.join("size 8193"), &noise(8193, 98));
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while std::fs::read(out.join("sub/small-007")).unwrap() != noise(140, 99) {
        assert!(std::time::Instant::now() < deadline, "the change never arrives");
        b.run(&["get", "-r", &up.link, "-o", "out"]).ok();
    }
    is_same(&dir, &out);
}

fn get_through(kind: &'static str) {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    fill(&dir);
    let up = a.up(&dir, "/lab/d");
    b.run(&["trust", "add", &up.link]).ok();
    let relay = tampering(&up, kind);
    let link = ["--connect", relay.as_str(), "--timeout", "5"];
    b.run(&[&["get", "-r", "/lab/d", "-o", "out"][..], &link].concat()).ok();
    is_same(&dir, &b.path().join("out"));
    let long = b.run(&[&["ls", "-l", "/lab/d/sub"][..], &link].concat()).ok().stdout();
    assert_eq!(long.lines().count(), 301);
}

/// Whoever alters a manifest can make others ask file by file, and nothing more.
#[test]
fn an_altered_manifest_hides_nothing() {
    get_through("manifest");
}

#[test]
fn a_withheld_manifest_hides_nothing() {
    get_through("withheld manifest");
}

#[test]
fn a_malformed_manifest_is_the_publishers_fault_and_said_so() {
    use crate::publisher::Publisher;
    use crate::publisher_server::Server;
    let home = Home::new();
    let mut publisher = Publisher::new("/lab", 1);
    // Of one entry that is not there.
    let mut payload = Vec::new();
    byname_transfer::manifest::write_header(&mut payload, 1);
    publisher.publish_manifest_octets("d", 1000, &payload);
    let key = publisher.key_id();
    let uri = format!("unix://{}", home.path().join("publisher.sock").display());
    Server::listen_often(&uri.parse().unwrap(), &Arc::new(Mutex::new(publisher)));
    let link = format!("byname:/lab/d?key={key}");
    let words = format!("the manifest of /lab/d by key {key} is malformed: 0 entries");
    for command in [&["ls", "-l"][..], &["get", "-r"]] {
        let args = [command, &[&link, "--connect", &uri]].concat();
        home.run(&args).fails_with(5, &words);
    }
}

#[test]
fn octets_altered_on_the_way_are_refused_file_by_file() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    for name in ["one", "two"] {
        write(&dir.join(name), name.as_bytes());
    }
    write(&dir.join("empty"), b"");
    let up = a.up(&dir, "/lab/d");
    b.run(&["trust", "add", &up.link]).ok();
    let relay = tampering(&up, "data");
    let args = ["get", "-r", "/lab/d", "-o", "out", "--connect", &relay, "--timeout", "5"];
    b.run(&args).fails_with(8, "/lab/d/one");
    assert_eq!(entries(&b.path().join("out")), ["empty"]);
}
