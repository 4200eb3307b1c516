//! `put -r` with the flags that say what is written, what stays and what goes.

use crate::disks::Site;
use crate::harness::{noise, wait_for, write};
use crate::puts::{expect, json, old, run, tree};
use std::process::Command;

/// Lines on stdout, in order.
fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_dry_run_tells_what_the_upload_then_does() {
    let site = Site::new(2, 1);
    let root = tree(&site.home, 8);
    let path = root.to_str().unwrap();
    let put = ["put", "-r", path, "/lab/t"];
    let new = run(&site, &[&put[..], &["--dry-run"]].concat()).ok();
    assert_eq!(new.stdout().matches("<f+++++++++").count(), 8, "{}", new.stdout());
    run(&site, &["stat", "/lab/t"]).fails_with(3, "");
    run(&site, &put).ok();

    write(&root.join("d1/below/f1"), &noise(20, 9));
    old(&root.join("d2/below/f2"), 77);
    std::fs::create_dir(root.join("new")).unwrap();
    write(&root.join("new/x"), b"x");
    std::fs::remove_file(root.join("d2/below/f5")).unwrap();
    std::fs::remove_dir(root.join("empty")).unwrap();
    std::fs::remove_file(root.join("link")).unwrap();
    std::os::unix::fs::symlink("d1/below/f1", root.join("link")).unwrap();
    let all = [&put[..], &["--delete"]].concat();
    let dry = [&all[..], &["--dry-run"]].concat();
    let wanted = [
        "*deleting   d2/below/f5",
        "*deleting   empty/",
        ".f..t...... d2/below/f2",
        "<f+++++++++ new/x",
        "<f.st...... d1/below/f1",
        "cLc........ link -> d1/below/f1",
        "cd+++++++++ new/",
    ];
    for _ in 0..2 {
        let told = run(&site, &dry).ok();
        assert_eq!(lines(&told.stdout()), wanted, "{}", told.stderr());
        assert!(told.stderr().contains("would write 3 files (1 new, 2 changed)"));
        assert!(told.stderr().contains("would delete 2"), "{}", told.stderr());
    }
    let sums = run(&site, &[&dry[..], &["--json"]].concat()).ok().stdout();
    assert!(sums.contains("\"change\":\"deleted\"") && sums.contains("\"files_new\":1"), "{sums}");

    let done = run(&site, &all).ok();
    let said = done.stderr();
    assert!(said.contains("deleted d2/below/f5\n") && said.contains("deleted empty/\n"), "{said}");
    let verify = || run(&site, &["verify", path, "/lab/t", "--fresh"]);
    wait_for("the tree", || verify().stderr().contains("as published"), || verify().stdout());
    assert_eq!(run(&site, &dry).ok().stdout(), "");
}

#[test]
fn filters_say_what_is_written_and_what_is_left_alone() {
    let site = Site::new(1, 1);
    let root = tree(&site.home, 8);
    let path = root.to_str().unwrap();
    // No directory for which nothing is written.
    run(&site, &["put", "-r", path, "/lab/some", "--include", "f3"]).ok();
    let found = run(&site, &["find", "/lab/some", "--fresh"]).ok().stdout();
    assert_eq!(found, "/lab/some/d0\n/lab/some/d0/below\n/lab/some/d0/below/f3\n");
    let more = ["--include", "f3", "--exclude", "nothing"];
    let again = run(&site, &[&["put", "-r", path, "/lab/some"], &more[..]].concat()).ok();
    assert!(again.stderr().contains("--exclude 'nothing' matched nothing"), "{}", again.stderr());
    std::fs::write(site.home.path().join("list"), "d0/below/f3\nd0/none\n").unwrap();
    run(&site, &["put", "-r", path, "/lab/some", "--files-from", "list"])
        .fails_with(8, "d0/none: is not there");

    // What a filter leaves out is not deleted, nor the directories that it is in.
    run(&site, &["put", "-r", path, "/lab/t"]).ok();
    std::fs::remove_dir_all(root.join("d1")).unwrap();
    let delete = ["put", "-r", path, "/lab/t", "--delete"];
    let kept = run(&site, &[&delete[..], &["--exclude", "f4"]].concat()).ok().stderr();
    assert!(kept.contains("deleted d1/below/f1\n") && !kept.contains("below/\n"), "{kept}");
    expect(&site, "/lab/t/d1/below/f4", &noise(4, 4));
    run(&site, &[&delete[..], &["--exclude", "d1/"]].concat()).ok();
    let gone = run(&site, &delete).ok().stderr();
    assert!(gone.contains("deleted d1/below/f4\n") && gone.contains("deleted d1/\n"), "{gone}");
}

#[test]
fn what_is_there_stays_with_no_clobber() {
    let site = Site::new(1, 1);
    let root = tree(&site.home, 4);
    let path = root.to_str().unwrap();
    run(&site, &["put", "-r", path, "/lab/t"]).ok();
    write(&root.join("d1/below/f1"), &noise(30, 9));
    write(&root.join("d1/below/new"), b"new");
    let put = json(&site, &["put", "-r", path, "/lab/t", "--no-clobber"]);
    assert_eq!((&put["files"], &put["files_skipped"]), (&1.into(), &5.into()), "{put}");
    expect(&site, "/lab/t/d1/below/f1", &noise(11, 1));
    expect(&site, "/lab/t/d1/below/new", b"new");
    let file = root.join("d1/below/f1");
    let file = file.to_str().unwrap();
    run(&site, &["put", file, "/lab/t/d1/below/f1", "--no-clobber"])
        .fails_with(1, "there is something of this name");
    run(&site, &["put", file, "/lab/f1", "--no-clobber"]).ok();
}

#[test]
fn nothing_is_deleted_unless_everything_was_written() {
    let site = Site::new(1, 1);
    let root = tree(&site.home, 4);
    let path = root.to_str().unwrap();
    run(&site, &["put", "-r", path, "/lab/t"]).ok();
    std::fs::remove_file(root.join("d1/below/f1")).unwrap();
    let fifo = Command::new("mkfifo").arg(root.join("fifo")).status();
    assert!(fifo.unwrap().success());
    let delete = ["put", "-r", path, "/lab/t", "--delete"];
    let failed = run(&site, &delete).fails_with(8, "nothing was deleted");
    assert!(!failed.stderr().contains("deleted d1"), "{}", failed.stderr());
    expect(&site, "/lab/t/d1/below/f1", &noise(11, 1));
    std::fs::remove_file(root.join("fifo")).unwrap();
    run(&site, &delete).fails_with(0, "deleted d1/below/f1");
}
