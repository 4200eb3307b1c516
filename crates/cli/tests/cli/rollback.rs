//! Older versions, rightly signed: what one command has seen holds for the next one, whether a
//! file's own description or a manifest showed it.

use crate::harness::{Home, Up, write};
use std::time::{Duration, SystemTime};

/// A publisher of one file, with "two" in it.
fn publisher() -> (Home, Up) {
    let home = Home::new();
    let dir = home.work("d");
    write(&dir.join("a"), b"two");
    let up = home.up(&dir, "/lab/d");
    // A file that was just written has no version yet: somebody else waits for it.
    Home::new().run(&["stat", &up.link_to("a")]).ok();
    (home, up)
}

/// The same publisher after it has lost its memory and found an old file: all that it signs is
/// right and old, as if somebody replayed it.
fn gone_back(home: &Home, mut before: Up) -> Up {
    assert_eq!(before.daemon.interrupt(), Some(0), "{}", before.daemon.log());
    std::fs::remove_dir_all(home.path().join("home/state")).unwrap();
    let dir = home.path().join("d");
    write(&dir.join("a"), b"one");
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    std::fs::File::options().write(true).open(dir.join("a")).unwrap().set_modified(old).unwrap();
    home.up(&dir, "/lab/d")
}

#[test]
fn what_a_tree_or_a_long_listing_has_shown_no_single_get_undoes() {
    for seen in [&["get", "-r"][..], &["ls", "-l"]] {
        let (publisher, up) = publisher();
        let reader = Home::new();
        reader.run(&[seen, &[&up.link]].concat()).ok();
        let up = gone_back(&publisher, up);
        let link = up.link_to("a");
        reader.run(&["get", &link, "-o", "alone"]).fails_with(5, "older");
        assert!(!reader.path().join("alone").exists());
        reader.run(&["trust", "forget", "/lab/d"]).ok();
        reader.run(&["get", &link, "-o", "alone"]).ok();
        assert_eq!(std::fs::read(reader.path().join("alone")).unwrap(), b"one");
    }
}

#[test]
fn what_a_single_get_has_shown_no_tree_undoes() {
    let (publisher, up) = publisher();
    let reader = Home::new();
    let out = reader.work("out");
    reader.run(&["get", &up.link_to("a"), "-o", "out/a"]).ok();
    let up = gone_back(&publisher, up);
    reader.run(&["get", "-r", &up.link, "-o", "out"]).fails_with(8, "older");
    assert_eq!(std::fs::read(out.join("a")).unwrap(), b"two");
}
