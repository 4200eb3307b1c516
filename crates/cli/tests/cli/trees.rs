//! Recursive fetches.

use crate::harness::{Home, entries, noise, write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

#[test]
fn filters_dry_run_delete_and_skips() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    for name in ["a.txt", "b.txt", "c.log"] {
        write(&dir.join(name), name.as_bytes());
    }
    std::fs::create_dir(dir.join("sub")).unwrap();
    write(&dir.join("sub/d.txt"), b"d");
    let up = a.up(&dir, "/lab/d");
    let get = |extra: &[&str]| {
        let mut args = vec!["get", "-r", &up.link, "-o", "out"];
        args.extend_from_slice(extra);
        b.run(&args)
    };
    let out = b.path().join("out");
    get(&["--dry-run"]).ok();
    assert!(!out.exists());
    get(&["--include", "*.txt", "--exclude", "b*"]).ok();
    assert_eq!(entries(&out), ["a.txt", "sub"]);
    get(&[]).ok();
    assert_eq!(entries(&out), ["a.txt", "b.txt", "c.log", "sub"]);
    let before = std::fs::metadata(out.join("a.txt")).unwrap().ino();
    get(&[]).ok();
    assert_eq!(std::fs::metadata(out.join("a.txt")).unwrap().ino(), before, "identical: skipped");
    write(&out.join("a.txt"), b"other");
    write(&out.join("local"), b"mine");
    let kept = get(&["--no-clobber"]).ok().stderr();
    assert!(kept.contains("a.txt") && kept.contains("kept"), "{kept}");
    assert_eq!(std::fs::read(out.join("a.txt")).unwrap(), b"other");
    get(&["--delete"]).ok();
    assert_eq!(std::fs::read(out.join("a.txt")).unwrap(), b"a.txt");
    assert_eq!(entries(&out), ["a.txt", "b.txt", "c.log", "sub"]);
    write(&b.path().join("list"), b"c.log\nsub/d.txt\n");
    b.run(&["get", "-r", &up.link, "-o", "few", "--files-from", "list"]).ok();
    assert_eq!(entries(&b.path().join("few")), ["c.log", "sub"]);
}

#[test]
fn times_and_modes_are_the_publishers() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    write(&dir.join("tool"), b"#!/bin/sh\n");
    std::fs::set_permissions(dir.join("tool"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let status = std::process::Command::new("touch")
        .args(["-d", "2001-02-03T04:05:06Z"])
        .arg(dir.join("tool"))
        .status();
    assert!(status.unwrap().success());
    let up = a.up(&dir, "/lab/d");
    b.run(&["get", &up.link_to("tool")]).ok();
    let meta = std::fs::metadata(b.path().join("tool")).unwrap();
    assert_eq!((meta.mode() & 0o777, meta.mtime()), (0o755, 981_173_106));
}

#[test]
fn nothing_is_written_outside_the_target() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    std::fs::create_dir(dir.join("sub")).unwrap();
    write(&dir.join("sub/file"), b"theirs");
    write(&dir.join("other"), b"theirs");
    let up = a.up(&dir, "/lab/d");
    let precious = b.work("precious");
    write(&precious.join("file"), b"mine");
    let out = b.work("out");
    symlink(&precious, out.join("sub")).unwrap();
    b.run(&["get", "-r", &up.link, "-o", "out"]).fails_with(8, "sub");
    assert_eq!(std::fs::read(precious.join("file")).unwrap(), b"mine");
    assert_eq!(std::fs::read(out.join("other")).unwrap(), b"theirs", "the rest went on");
}

#[test]
fn links_that_leave_the_root_and_special_files_are_not_published() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    let secret = a.work("secret");
    write(&secret.join("s"), b"secret");
    write(&dir.join("inside"), b"inside");
    symlink(secret.join("s"), dir.join("absolute")).unwrap();
    symlink("../secret/s", dir.join("upward")).unwrap();
    symlink("inside", dir.join("fine")).unwrap();
    symlink("nowhere", dir.join("dangling")).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(dir.join("fifo")).status().unwrap();
    assert!(fifo.success());
    write(&dir.join("private"), b"private");
    let owner_only = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(dir.join("private"), owner_only).unwrap();
    let up = a.up(&dir, "/lab/d");
    assert_eq!(b.run(&["ls", &up.link]).ok().stdout(), "fine\ninside\n");
    for name in ["absolute", "upward", "dangling", "fifo", "private"] {
        b.run(&["cat", &up.link_to(name)]).fails_with(3, name);
    }
    assert_eq!(b.run(&["cat", &up.link_to("fine")]).ok().bytes(), b"inside");
}

#[test]
fn a_listing_of_many_entries_and_many_small_files() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    for number in 0..5000 {
        write(&dir.join(format!("{number:05}")), &noise(number % 50, number as u64));
    }
    let up = a.up(&dir, "/lab/d");
    assert_eq!(b.run(&["ls", &up.link]).ok().stdout().lines().count(), 5000);
    b.run(&["get", "-r", &up.link, "-o", "out"]).ok();
    b.run(&["verify", "out", &up.link]).ok();
}
