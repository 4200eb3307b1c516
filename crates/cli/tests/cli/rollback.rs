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

/// The memory holds 65 536 names. Whatever it has forgotten, a copy's own packet says its version.
#[test]
fn a_copy_is_not_overwritten_by_an_older_version_that_the_memory_has_forgotten() {
    let (publisher, up) = publisher();
    let reader = Home::new();
    let out = reader.work("out");
    reader.run(&["get", &up.link_to("a"), "-o", "out/a"]).ok();
    let up = gone_back(&publisher, up);
    let link = up.link_to("a");
    for tree in [false, true] {
        std::fs::remove_file(reader.path().join("home/state/seen-versions")).unwrap();
        match tree {
            false => reader.run(&["get", &link, "-o", "out/a"]).fails_with(5, "older"),
            true => reader.run(&["get", "-r", &up.link, "-o", "out"]).fails_with(8, "older"),
        };
        assert_eq!(std::fs::read(out.join("a")).unwrap(), b"two");
    }
    // Whoever wants the older one says so, and moves the newer away.
    reader.run(&["trust", "forget", "/lab/d"]).ok();
    reader.run(&["get", &link, "-o", "out/a"]).fails_with(5, "move a newer copy");
    std::fs::rename(out.join("a"), out.join("newer")).unwrap();
    reader.run(&["trust", "forget", "/lab/d"]).ok();
    reader.run(&["get", &link, "-o", "out/a"]).ok();
    assert_eq!(std::fs::read(out.join("a")).unwrap(), b"one");
}

fn seen(reader: &Home) -> String {
    std::fs::read_to_string(reader.path().join("home/state/seen-versions")).unwrap()
}

#[test]
fn commands_at_the_same_time_lose_no_version_that_another_has_seen() {
    let home = Home::new();
    let dir = home.work("d");
    let names: Vec<String> = (0..12).map(|number| format!("f{number}")).collect();
    names.iter().for_each(|name| write(&dir.join(name), name.as_bytes()));
    let up = home.up(&dir, "/lab/d");
    let reader = Home::new();
    reader.run(&["trust", "add", &up.link]).ok();
    let uri = up.uri();
    let mut commands: Vec<_> = names
        .iter()
        .map(|name| {
            let name = format!("/lab/d/{name}");
            reader.byname().args(["stat", &name, "--connect", &uri]).spawn().unwrap()
        })
        .collect();
    commands.iter_mut().for_each(|command| assert!(command.wait().unwrap().success()));
    let seen = seen(&reader);
    for name in names {
        assert!(seen.lines().any(|line| line.ends_with(&format!("/{name}"))), "{name}:\n{seen}");
    }
}

#[test]
fn a_damaged_memory_of_versions_stops_with_the_file_and_what_to_do() {
    let (_publisher, up) = publisher();
    let reader = Home::new();
    let link = up.link_to("a");
    reader.run(&["get", &link, "-o", "a"]).ok();
    let path = reader.path().join("home/state/seen-versions");
    let whole = std::fs::read(&path).unwrap();
    let (file, hint) = (path.to_str().unwrap(), "to forget all versions seen");
    for damage in [&b"\xff\xfe"[..], b"17\n", b"many /lab/d/a\n", b"1 /lab/d/a more\n"] {
        let damaged = [&whole, damage].concat();
        std::fs::write(&path, &damaged).unwrap();
        for command in [&["get", &link, "-o", "b"][..], &["trust", "forget", "/lab/d"]] {
            let failed = reader.run(command).fails_with(7, file);
            assert!(failed.stderr().contains(hint), "{}", failed.stderr());
        }
        assert!(!reader.path().join("b").exists(), "nothing is fetched unguarded");
        assert_eq!(std::fs::read(&path).unwrap(), damaged, "nothing is forgotten silently");
    }
    std::fs::remove_file(&path).unwrap();
    reader.run(&["get", &link, "-o", "b"]).ok();
}
