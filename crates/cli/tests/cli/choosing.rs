//! Which entries of a tree are fetched, and what is said about it before and after.

use crate::harness::{Finished, Home, Up, entries, write};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A publisher with a small tree, and a reader.
fn tree() -> (Home, Home, PathBuf, Up) {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    for (path, content) in [
        ("top.txt", "top"),
        ("run1/a.root", "aaaa"),
        ("run1/a.log", "log of a"),
        ("run2/deep/b.root", "b"),
        ("notes/n.txt", "n"),
    ] {
        std::fs::create_dir_all(dir.join(path).parent().unwrap()).unwrap();
        write(&dir.join(path), content.as_bytes());
    }
    let up = a.up(&dir, "/lab/d");
    (a, b, dir, up)
}

fn get(home: &Home, up: &Up, extra: &[&str]) -> Finished {
    let mut args = vec!["get", "-r", &up.link, "-o", "out"];
    args.extend_from_slice(extra);
    home.run(&args)
}

/// Every path below a directory, sorted; directories end with a slash.
fn below(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut ahead = vec![String::new()];
    while let Some(at) = ahead.pop() {
        for name in entries(&root.join(&at)) {
            let path = format!("{at}{name}");
            if root.join(&path).is_dir() {
                found.push(format!("{path}/"));
                ahead.push(format!("{path}/"));
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn touch(path: &Path) {
    let status = std::process::Command::new("touch").args(["-d", "2001-02-03"]).arg(path).status();
    assert!(status.unwrap().success());
}

#[test]
fn a_dry_run_lists_what_would_change_and_the_real_run_changes_that() {
    let (_a, b, dir, up) = tree();
    let out = b.path().join("out");
    let first = get(&b, &up, &["--dry-run", "--delete"]).ok();
    assert_eq!(
        first.stdout(),
        "cd+++++++++ notes/\n>f+++++++++ notes/n.txt\ncd+++++++++ run1/\n>f+++++++++ run1/a.log\n\
         >f+++++++++ run1/a.root\ncd+++++++++ run2/\ncd+++++++++ run2/deep/\n\
         >f+++++++++ run2/deep/b.root\n>f+++++++++ top.txt\n"
    );
    assert!(first.stderr().contains("would fetch 5 files (5 new, 0 changed), 17 B"));
    assert!(!out.exists(), "nothing was made");

    get(&b, &up, &[]).ok();
    assert_eq!(get(&b, &up, &["--dry-run", "--delete"]).ok().stdout(), "", "all is there");

    write(&out.join("top.txt"), b"shorter or not");
    touch(&out.join("run1/a.root"));
    std::fs::remove_dir_all(out.join("notes")).unwrap();
    std::fs::create_dir(out.join("mine")).unwrap();
    write(&out.join("mine/x\u{1b}[31m"), b"x");
    let changes = get(&b, &up, &["--dry-run", "--delete"]).ok();
    assert_eq!(
        changes.stdout(),
        "cd+++++++++ notes/\n>f+++++++++ notes/n.txt\n.f..t...... run1/a.root\n\
         >f.st...... top.txt\n*deleting   mine/x%1B[31m\n*deleting   mine/\n"
    );
    assert!(
        changes.stderr().contains("(1 new, 1 changed), 4 B; 3 identical already; would delete 2")
    );
    assert!(out.join("mine").exists() && !out.join("notes").exists(), "nothing was done");

    let json = get(&b, &up, &["--dry-run", "--delete", "--json"]).ok().stdout();
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["change"].as_str()).collect();
    assert_eq!(kinds, ["new", "new", "attributes", "changed", "deleted", "deleted"]);
    let total = lines.last().unwrap();
    assert_eq!((&total["dry_run"], &total["files"]), (&true.into(), &2.into()));
    assert_eq!((&total["files_deleted"], &total["bytes"]), (&2.into(), &4.into()));

    let real = get(&b, &up, &["--delete"]).ok().stderr();
    assert!(real.contains("deleted mine/x%1B[31m\ndeleted mine/\n"), "{real}");
    assert!(real.contains("fetched 2 files, 4 B") && real.contains(", 2 deleted"), "{real}");
    assert_eq!(below(&out), below(&dir));
}

#[test]
fn a_dry_run_of_a_single_file_says_what_would_happen() {
    let (_a, b, _, up) = tree();
    let link = up.link_to("top.txt");
    let dry = ["get", link.as_str(), "--dry-run"];
    assert_eq!(b.run(&dry).ok().stdout(), ">f+++++++++ top.txt\n");
    b.run(&["get", &link]).ok();
    assert_eq!(b.run(&dry).ok().stdout(), "");
    write(&b.path().join("top.txt"), b"other");
    assert!(b.run(&dry).ok().stdout().starts_with(">f.s"), "it is shorter");
}

#[test]
fn identical_files_are_not_logged_as_done() {
    let (_a, b, _, up) = tree();
    assert!(get(&b, &up, &["-v"]).ok().stderr().contains("top.txt done"));
    assert!(!get(&b, &up, &["-v"]).ok().stderr().contains("done"));
}

#[test]
fn what_a_filter_leaves_out_is_never_deleted() {
    let (_a, b, _, up) = tree();
    let out = b.path().join("out");
    get(&b, &up, &[]).ok();
    std::fs::create_dir_all(out.join("cache/deep")).unwrap();
    write(&out.join("cache/deep/mine"), b"mine");
    write(&out.join("run1/mine.txt"), b"mine");
    get(&b, &up, &["--delete", "--exclude", "cache", "--include", "*.root"]).ok();
    assert!(out.join("cache/deep/mine").exists(), "in a directory that is excluded");
    assert!(out.join("run1/mine.txt").exists(), "not included");
    assert!(out.join("top.txt").exists(), "published, and not included");
    get(&b, &up, &["--delete"]).ok();
    assert!(!out.join("cache").exists() && !out.join("run1/mine.txt").exists());
}

#[test]
fn a_directory_selects_what_is_in_it_and_no_empty_ones_are_made() {
    let (_a, b, dir, up) = tree();
    std::fs::create_dir(dir.join("empty")).unwrap();
    for (args, expected) in [
        (&["--include", "run1"][..], &["run1/", "run1/a.log", "run1/a.root"][..]),
        (&["--include", "/run1/"], &["run1/", "run1/a.log", "run1/a.root"]),
        (&["--include", "*.root", "--exclude", "deep"], &["run1/", "run1/a.root"]),
        (&["--min-size", "8"], &["run1/", "run1/a.log"]),
        (
            &["--max-size", "1"],
            &["notes/", "notes/n.txt", "run2/", "run2/deep/", "run2/deep/b.root"],
        ),
        (&["--min-age", "1d"], &[]),
    ] {
        get(&b, &up, args).ok();
        assert_eq!(below(&b.path().join("out")), expected, "{args:?}");
        let shown = get(&b, &up, &[args, &["--dry-run"]].concat()).ok().stdout();
        assert_eq!(shown, "", "{args:?}: all is there");
        std::fs::remove_dir_all(b.path().join("out")).unwrap();
        let lines = get(&b, &up, &[args, &["--dry-run"]].concat()).ok().stdout().lines().count();
        assert_eq!(lines, expected.len(), "{args:?}: the dry run says the same");
    }
    get(&b, &up, &[]).ok();
    assert!(b.path().join("out/empty").is_dir(), "published as an empty directory");
}

#[test]
fn a_list_comes_from_standard_input_and_names_directories() {
    let (_a, b, _, up) = tree();
    let mut command = b.byname();
    command.args(["get", "-r", &up.link, "-o", "out", "--files-from", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"# wanted\n./run2/\ntop.txt\nno/such\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(8), "{stderr}");
    assert!(stderr.contains("no/such: is not published"), "{stderr}");
    let expected = ["run2/", "run2/deep/", "run2/deep/b.root", "top.txt"];
    assert_eq!(below(&b.path().join("out")), expected);
}

#[test]
fn a_pattern_that_matches_nothing_is_said() {
    let (_a, b, _, up) = tree();
    let said = get(&b, &up, &["--include", "*.txt", "--include", "*.doc"]).ok().stderr();
    assert!(said.contains("--include '*.doc' matched nothing"), "{said}");
    assert!(!said.contains("'*.txt'"), "{said}");
    get(&b, &up, &["--include", "a**b"]).fails_with(2, "** stands for whole directories");
}

#[test]
fn several_names_go_into_the_directory_behind_them() {
    let (_a, b, _, up) = tree();
    let (top, log) = (up.link_to("top.txt"), up.link_to("run1/a.log"));
    b.run(&["get", &top, &log, "in/to"]).ok();
    write(&b.path().join("a file"), b"");
    b.run(&["get", &top, "./a file"]).fails_with(2, "is a file: what stands behind");
    assert_eq!(below(&b.path().join("in")), ["to/", "to/a.log", "to/top.txt"]);
    b.run(&["get", "-r", &up.link_to("run1"), &up.link_to("run2"), "./trees"]).ok();
    assert_eq!(entries(&b.path().join("trees")), ["run1", "run2"]);
    let missing = up.link_to("nosuch");
    b.run(&["get", &missing, &top, "some"]).fails_with(8, "1 of 2 names failed");
    assert_eq!(entries(&b.path().join("some")), ["top.txt"], "the other one went on");
    b.run(&["get", &top, &log, "-o", "x"]).fails_with(2, "-o names one target");
    b.run(&["get", &top, "dir", "-o", "x"]).fails_with(2, "leave one out");
}
