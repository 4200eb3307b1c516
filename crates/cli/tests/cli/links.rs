//! Symbolic links of a published tree: they arrive as links, and lead nobody astray.

use crate::harness::{Home, Up, entries, wait_for, write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A publisher whose tree has links of all kinds.
fn tree() -> (Home, Home, PathBuf, Up) {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    std::fs::create_dir_all(dir.join("data/deep")).unwrap();
    std::fs::create_dir_all(dir.join("views")).unwrap();
    write(&dir.join("data/big"), &vec![7; 300_000]);
    write(&dir.join("data/deep/x"), b"x");
    symlink("big", dir.join("data/same")).unwrap();
    symlink("../data/deep", dir.join("views/deep")).unwrap();
    symlink("data/./big", dir.join("latest")).unwrap();
    symlink("views/../data/big", dir.join("crooked")).unwrap();
    let up = a.up(&dir, "/lab/d");
    (a, b, dir, up)
}

fn target(path: PathBuf) -> String {
    std::fs::read_link(&path).map(|to| to.display().to_string()).unwrap_or_default()
}

#[test]
fn links_arrive_as_links() {
    let (_a, b, _, up) = tree();
    let out = b.path().join("out");
    let dry = b.run(&["get", "-r", &up.link, "-o", "out", "--dry-run"]).ok().stdout();
    assert!(dry.contains("cL+++++++++ latest -> data/./big\n"), "{dry}");
    assert!(dry.contains("cL+++++++++ views/deep -> ../data/deep\n"), "{dry}");
    assert!(dry.contains(">f+++++++++ crooked\n"), "it is copied: {dry}");
    b.run(&["get", "-r", &up.link, "-o", "out"]).ok();
    assert_eq!(target(out.join("data/same")), "big");
    assert_eq!(target(out.join("views/deep")), "../data/deep");
    assert_eq!(target(out.join("latest")), "data/./big");
    assert_eq!(std::fs::read(out.join("latest")).unwrap().len(), 300_000, "and lead to the bytes");
    let crooked = std::fs::symlink_metadata(out.join("crooked")).unwrap();
    assert!(crooked.is_file(), "`..` behind a name: a copy in its place");
    assert_eq!(b.run(&["get", "-r", &up.link, "-o", "out", "--dry-run"]).ok().stdout(), "");
    let again = b.run(&["get", "-r", &up.link, "-o", "out", "--json"]).ok().stdout();
    assert!(again.contains("\"files\":0"), "all is there: {again}");
    b.run(&["verify", "out", &up.link]).ok();
    std::fs::remove_file(out.join("latest")).unwrap();
    symlink("data/deep/x", out.join("latest")).unwrap();
    let verified = b.run(&["verify", "out", &up.link]).fails_with(5, "1 difference");
    assert_eq!(verified.stdout(), "differs  latest\n");
    b.run(&["get", "-r", &up.link, "-o", "out"]).ok();
    assert_eq!(target(out.join("latest")), "data/./big", "the other link was replaced");
}

#[test]
fn links_are_listed_as_links_and_read_as_what_they_lead_to() {
    let (_a, b, _, up) = tree();
    let long = b.run(&["ls", "-l", &up.link]).ok().stdout();
    let latest = long.lines().find(|line| line.contains("latest")).unwrap();
    assert!(latest.starts_with("lrwxrwxrwx") && latest.ends_with("latest -> data/./big"), "{long}");
    let all = b.run(&["ls", "-R", &up.link]).ok().stdout();
    assert!(all.contains("views/deep\n") && !all.contains("views/deep/x"), "{all}");
    let json = b.run(&["ls", "-l", "--json", &up.link_to("data")]).ok().stdout();
    assert!(json.contains(r#""target":"big""#) && json.contains(r#""type":"symlink""#), "{json}");
    assert_eq!(b.run(&["cat", &up.link_to("latest")]).ok().bytes().len(), 300_000);
    b.run(&["get", &up.link_to("latest"), "-o", "one"]).ok();
    assert!(std::fs::symlink_metadata(b.path().join("one")).unwrap().is_file());
}

#[test]
fn copy_links_fetches_what_they_lead_to() {
    let (_a, b, _, up) = tree();
    let out = b.path().join("out");
    let get = ["get", "-r", &up.link, "-o", "out", "--copy-links"];
    let dry = b.run(&[&get[..], &["--dry-run"]].concat()).ok().stdout();
    assert!(dry.contains(">f+++++++++ views/deep/x\n"), "{dry}");
    b.run(&get).ok();
    assert!(!Path::new(&target(out.join("latest"))).exists());
    assert_eq!(std::fs::read(out.join("latest")).unwrap().len(), 300_000);
    assert_eq!(std::fs::read(out.join("views/deep/x")).unwrap(), b"x");
    b.run(&["verify", "out", &up.link]).ok();
    assert_eq!(b.run(&[&get[..], &["--dry-run"]].concat()).ok().stdout(), "");
}

#[test]
fn part_of_a_tree_gets_copies_of_what_lies_outside_of_it() {
    let (_a, b, _, up) = tree();
    b.run(&["get", "-r", &up.link_to("views")]).ok();
    assert_eq!(entries(&b.path().join("views")), ["deep"]);
    assert_eq!(std::fs::read(b.path().join("views/deep/x")).unwrap(), b"x");
    assert!(target(b.path().join("views/deep")).is_empty(), "a directory, no link");
}

#[test]
fn a_link_that_becomes_a_directory_is_not_written_through() {
    let (_a, b, dir, up) = tree();
    let out = b.path().join("out");
    b.run(&["get", "-r", &up.link, "-o", "out"]).ok();
    // Now the publisher has a directory where its link was, with a file for the link's target.
    std::fs::remove_file(dir.join("views/deep")).unwrap();
    std::fs::create_dir(dir.join("views/deep")).unwrap();
    write(&dir.join("views/deep/x"), b"through the link");
    let views = up.link_to("views");
    let is_listed = |link: &str, name: &str, kind: &str| {
        let listed = b.run(&["ls", "-l", "--json", link]).ok().stdout();
        let line = listed.lines().find(|line| line.contains(&format!("/{name}\""))).unwrap_or("");
        line.contains(&format!("\"type\":\"{kind}\""))
    };
    wait_for("directory", || is_listed(&views, "deep", "directory"), || up.daemon.log());
    b.run(&["get", "-r", &up.link, "-o", "out"]).fails_with(8, "views/deep");
    assert_eq!(std::fs::read(out.join("data/deep/x")).unwrap(), b"x", "not written through");
    // And a link where the reader has a directory of its own: that stays.
    std::fs::remove_file(out.join("views/deep")).unwrap();
    std::fs::create_dir(out.join("other")).unwrap();
    write(&out.join("other/mine"), b"mine");
    symlink("data", dir.join("other")).unwrap();
    wait_for("link", || is_listed(&up.link, "other", "symlink"), || up.daemon.log());
    b.run(&["get", "-r", &up.link, "-o", "out"]).fails_with(8, "other");
    assert_eq!(std::fs::read(out.join("other/mine")).unwrap(), b"mine");
}
