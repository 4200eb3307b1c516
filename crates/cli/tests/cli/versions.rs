//! What files of a site were before, with real processes.

use crate::disks::Site;
use crate::harness::{noise, write};
use crate::puts::{expect, json, run};

fn versions(site: &Site, name: &str) -> Vec<serde_json::Value> {
    let shown = run(site, &["versions", "ls", name, "--json"]).ok().stdout();
    shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn old_versions_are_listed_read_and_made_current_again() {
    let mut site = Site::new(2, 2);
    run(&site, &["mkdir", "/lab/d"]).ok();
    run(&site, &["site", "policy", "set", "/lab/d", "--versions", "2"]).ok();
    let file = site.home.path().join("a");
    let contents: Vec<Vec<u8>> = (1..=3).map(|seed| noise(300_000, seed)).collect();
    for octets in &contents {
        write(&file, octets);
        run(&site, &["put", file.to_str().unwrap(), "/lab/d/a"]).ok();
    }
    let found = versions(&site, "/lab/d/a");
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found[2]["current"], true);
    assert_eq!((&found[0]["size"], &found[0]["replaced_by"]), (&300_000.into(), &"op".into()));
    let bytes = |site: &Site| json(site, &["site", "status"])["state"]["bytes"].clone();
    assert_eq!(bytes(&site), 900_000, "they count");

    // Longer than versions stay for readers; the head is killed on the way.
    std::thread::sleep(std::time::Duration::from_secs(3));
    site.head.take().expect("a head").kill();
    site.head = Some(site.start_head());
    let first = found[0]["version"].to_string();
    let read = run(&site, &["versions", "cat", "/lab/d/a", &first]).ok();
    assert!(read.bytes() == contents[0]);
    run(&site, &["versions", "restore", "/lab/d/a", &first]).ok();
    expect(&site, "/lab/d/a", &contents[0]);
    let after = versions(&site, "/lab/d/a");
    assert_eq!(after.len(), 3, "the oldest made room for the one that was current");
    assert_eq!(after[2]["root"], found[0]["root"]);
    assert_eq!(after[1]["version"], found[2]["version"]);
    run(&site, &["versions", "cat", "/lab/d/a", "1"]).fails_with(3, "versions ls");
    let fsck = run(&site, &["site", "fsck", "--disks", "--json"]).stdout();
    assert!(!fsck.contains("orphaned") && !fsck.contains("missing"), "{fsck}");

    run(&site, &["site", "policy", "set", "/lab/d/a", "--versions", "0"]).ok();
    assert_eq!((versions(&site, "/lab/d/a").len(), bytes(&site)), (1, 300_000.into()));
}
