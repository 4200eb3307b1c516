//! `--fresh` and `--offline`: whom a mount asks, and what it takes, while a publisher is stopped
//! and when it has a newer version.

use crate::faults::{Between, restart};
use crate::harness::{signal, wait_for, write};
use crate::scene::{Scene, can_mount};
use std::fs;
use std::path::Path;

fn files(source: &Path) {
    write(&source.join("file"), b"old");
    fs::create_dir(source.join("sub")).unwrap();
    write(&source.join("sub/inner"), b"inner");
}

fn is_silence<T>(result: std::io::Result<T>) -> bool {
    result.is_err_and(|error| [5, 110].contains(&error.raw_os_error().unwrap()))
}

#[test]
fn with_fresh_nothing_is_opened_that_its_publisher_does_not_confirm() {
    if !can_mount("with_fresh_nothing_is_opened_that_its_publisher_does_not_confirm") {
        return;
    }
    let scene = Scene::unmounted(&[], files);
    // What was answered before the root is known counts for nothing later.
    let link = scene.up.link_to("file");
    let stat = || scene.reader.run(&["stat", &link, "--fresh", "--json"]).stdout();
    wait_for("the root", || stat().contains("\"root\":\""), stat);
    scene.mount(&["--freshness", "3600", "--timeout", "2"]);
    let path = scene.mount.join("file");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    scene.stop_publisher();
    assert_eq!(fs::read(&path).unwrap(), b"old", "what was seen counts for an hour");
    signal(scene.up.daemon.pid(), "CONT");
    scene.umount();
    scene.mount(&["--fresh", "--timeout", "2"]);
    // A publisher that was stopped may need longer than that on a busy machine.
    wait_for("the version", || fs::read(&path).is_ok_and(|it| it == b"old"), || scene.log());
    let open = fs::File::open(&path).unwrap();
    scene.stop_publisher();
    assert!(is_silence(fs::read(&path)));
    assert!(is_silence(fs::metadata(scene.mount.join("sub"))));
    assert_eq!(std::io::read_to_string(open).unwrap(), "old", "what is open stays");
    signal(scene.up.daemon.pid(), "CONT");
    write(&scene.source.join("new"), b"new");
    fs::rename(scene.source.join("new"), scene.source.join("file")).unwrap();
    wait_for("the new version", || fs::read(&path).is_ok_and(|it| it == b"new"), || scene.log());
}

#[test]
fn offline_shows_what_a_store_has_and_what_was_seen() {
    if !can_mount("offline_shows_what_a_store_has_and_what_was_seen") {
        return;
    }
    let mut scene = Scene::unmounted(&[], files);
    let between = Between::start();
    between.route(&scene);
    let connect = ["--timeout", "2", "--connect", between.socket()];
    let with = |flag: &'static str| [&connect[..], &[flag]].concat();
    scene.mount(&connect);
    assert_eq!(fs::read(scene.mount.join("file")).unwrap(), b"old");
    assert!(fs::metadata(scene.mount.join("missing")).is_err());
    scene.umount();
    write(&scene.source.join("file"), b"newer");
    scene.up.daemon.kill();
    // For a second the forwarder has an answer that is fresh.
    let link = &scene.up.link;
    let stat = || scene.reader.run(&[&["stat", link, "--fresh"], &connect[..]].concat());
    wait_for("its end", || stat().stdout().is_empty(), || scene.log());
    scene.mount_command(&with("--fresh")).fails_with(4, "");
    scene.mount(&with("--offline"));
    let read = || fs::read_to_string(scene.mount.join("file"));
    assert_eq!(read().unwrap(), "old", "what the forwarder has of it");
    scene.up.daemon = restart(&scene);
    between.route(&scene);
    let current = || scene.reader.run(&["cat", &scene.up.link_to("file"), "--fresh"]);
    wait_for("the newer version", || current().stdout() == "newer", || scene.log());
    assert_eq!(read().unwrap(), "old", "nobody is asked");
    scene.umount();
    scene.mount(&connect);
    let is_newer = || fs::read(scene.mount.join("file")).is_ok_and(|it| it == b"newer");
    wait_for("the newer version", is_newer, || scene.log());
}
