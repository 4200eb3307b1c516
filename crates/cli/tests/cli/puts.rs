//! Files that are put into a site with real processes: forwarder, head, disks, writers, readers.

use crate::disks::Site;
use crate::harness::{Daemon, Finished, Home, noise, signal, wait_for, write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// A command of the operator.
pub(crate) fn run(site: &Site, args: &[&str]) -> Finished {
    site.home.run(&[args, &["--connect", &site.socket]].concat())
}

/// The object that a command prints with `--json`.
pub(crate) fn json(site: &Site, args: &[&str]) -> serde_json::Value {
    let line = run(site, &[args, &["--json"]].concat()).ok().stdout();
    serde_json::from_str(&line).unwrap()
}

/// Runs a command with something on its stdin.
fn piped(site: &Site, args: &[&str], input: &[u8]) -> Finished {
    let file = site.home.path().join("stdin");
    write(&file, input);
    let mut command = site.home.byname();
    command.args(args).args(["--connect", &site.socket]);
    command.stdin(std::fs::File::open(&file).unwrap());
    Finished::of(command.output().unwrap())
}

pub(crate) fn old(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds);
    std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// Waits until caches have forgotten what was there a second ago.
pub(crate) fn expect(site: &Site, name: &str, wanted: &[u8]) {
    let is_there = || {
        let found = run(site, &["cat", name, "--fresh"]);
        found.stderr().is_empty() && found.bytes() == wanted
    };
    wait_for(name, is_there, || run(site, &["stat", name]).stderr());
}

#[test]
fn a_file_is_put_read_and_rewritten() {
    let site = Site::new(2, 2);
    let file = site.home.path().join("a");
    let path = file.to_str().unwrap();
    let octets = noise(3_000_000, 1);
    write(&file, &octets);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    old(&file, 0);
    run(&site, &["put", path, "/lab/d/a"]).fails_with(3, "-p");
    let put = json(&site, &["put", path, "/lab/d/a", "-p"]);
    assert_eq!((&put["files"], &put["bytes"]), (&1.into(), &3_000_000.into()), "{put}");
    expect(&site, "/lab/d/a", &octets);
    let stat = json(&site, &["stat", "/lab/d/a", "--fresh"]);
    assert_eq!(stat["mode"], "640");
    assert_eq!(stat["mtime_ns"], 1_700_000_000_000_000_000_u64);

    // Caches may still have what was there a moment ago: it does not pass for what is there.
    run(&site, &["stat", "/lab/d/a", "--fresh"]).ok();
    run(&site, &["rm", "/lab/d/a"]).ok();
    let again = json(&site, &["put", path, "/lab/d/a"]);
    assert_eq!((&again["files"], &again["files_skipped"]), (&1.into(), &0.into()), "{again}");
    let octets = noise(2_000_000, 2);
    write(&file, &octets);
    run(&site, &["put", path, "/lab/d/a"]).ok();
    expect(&site, "/lab/d/a", &octets);

    // Whose size nobody knows before, and one that has none.
    let octets = noise(700_000, 3);
    piped(&site, &["put", "-", "/lab/stream"], &octets).ok();
    expect(&site, "/lab/stream", &octets);
    piped(&site, &["put", "-", "/lab/empty"], b"").ok();
    expect(&site, "/lab/empty", b"");

    run(&site, &["put", path, "/lab/d"]).fails_with(1, "it is a directory");
    run(&site, &["put", ".", "/lab/x"]).fails_with(2, "put -r");
    run(&site, &["put", "none", "/lab/x"]).fails_with(7, "none");
    run(&site, &["put", "-r", path, "/lab/x"]).ok();
    expect(&site, "/lab/x", &octets_of(&file));
}

/// Octets that the forwarder has sent to the processes that are connected to it now.
fn sent_bytes(site: &Site) -> u64 {
    let faces = run(site, &["face", "list", "--json"]).ok().stdout();
    let faces = faces.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    faces.map(|face| face["out_bytes"].as_u64().unwrap()).sum()
}

/// A file that is written anew is asked for only where it changed, by each of its disks.
#[test]
fn what_did_not_change_is_not_sent_again() {
    let site = Site::new(2, 2);
    let file = site.home.path().join("a");
    let path = file.to_str().unwrap();
    let mut octets = noise(6_000_000, 1);
    let sent_for = |octets: &[u8]| {
        write(&file, octets);
        let before = sent_bytes(&site);
        run(&site, &["put", path, "/lab/a"]).ok();
        sent_bytes(&site) - before
    };
    let whole = sent_for(&octets);
    assert!(whole > 12_000_000, "{whole} octets to two disks");
    octets[3_000_000] ^= 1;
    let changed = sent_for(&octets);
    assert!(changed < 600_000, "{changed} octets to two disks for one that changed");
    octets.extend(noise(50_000, 2));
    let longer = sent_for(&octets);
    assert!((100_000..800_000).contains(&longer), "{longer} octets to two disks for 50 000 more");
    expect(&site, "/lab/a", &octets);
}

pub(crate) fn octets_of(file: &Path) -> Vec<u8> {
    std::fs::read(file).unwrap()
}

/// A tree with files of several sizes, directories and a link.
pub(crate) fn tree(home: &Home, files: usize) -> std::path::PathBuf {
    let root = home.work("tree");
    for number in 0..files {
        let directory = root.join(format!("d{}", number % 3)).join("below");
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join(format!("f{number}"));
        write(&file, &noise([0, 10, 9000, 200_000][number % 4] + number, number as u64));
        old(&file, number as u64);
    }
    std::fs::create_dir_all(root.join("empty")).unwrap();
    symlink("d0/below/f0", root.join("link")).unwrap();
    root
}

#[test]
fn a_tree_is_put_and_put_again() {
    let site = Site::new(3, 2);
    let root = tree(&site.home, 24);
    let path = root.to_str().unwrap();
    let fifo = Command::new("mkfifo").arg(root.join("fifo")).status();
    assert!(fifo.unwrap().success());
    let failed = run(&site, &["put", "-r", path, "/lab/t"]).fails_with(8, "1 of the entries");
    assert!(failed.stderr().contains("fifo: is no file"), "{}", failed.stderr());
    std::fs::remove_file(root.join("fifo")).unwrap();
    wait_for(
        "the same tree",
        || run(&site, &["verify", path, "/lab/t", "--fresh"]).stderr().contains("as published"),
        || run(&site, &["verify", path, "/lab/t", "--fresh"]).stdout(),
    );
    // What said before that there is nothing may be kept for its second by the forwarder.
    let listed = || run(&site, &["ls", "/lab/t"]).stdout();
    let is_listed = || listed().contains("empty/") && listed().contains("link");
    wait_for("its listing", is_listed, listed);

    let again = json(&site, &["put", "-r", path, "/lab/t"]);
    assert_eq!((&again["files"], &again["files_skipped"]), (&0.into(), &25.into()), "{again}");

    // Another content of the same size and time is seen only by who looks; another time alone is
    // taken over, so that the next run need not read it.
    let changed = root.join("d1/below/f1");
    write(&changed, &noise(11, 99));
    old(&changed, 1);
    old(&root.join("d2/below/f2"), 77);
    let again = json(&site, &["put", "-r", path, "/lab/t"]);
    assert_eq!((&again["files"], &again["files_skipped"]), (&0.into(), &25.into()), "{again}");
    let again = json(&site, &["put", "-r", path, "/lab/t", "--checksum"]);
    assert_eq!((&again["files"], &again["files_skipped"]), (&1.into(), &24.into()), "{again}");
    expect(&site, "/lab/t/d1/below/f1", &noise(11, 99));
    let stat = json(&site, &["stat", "/lab/t/d2/below/f2", "--fresh"]);
    assert_eq!(stat["mtime_ns"], 1_700_000_077_000_000_000_u64);

    // What was removed a moment ago is written, though caches still list it.
    run(&site, &["rm", "/lab/t/d1/below/f1"]).ok();
    let again = json(&site, &["put", "-r", path, "/lab/t"]);
    assert_eq!((&again["files"], &again["files_skipped"]), (&1.into(), &24.into()), "{again}");
    // A file that lies where a directory is wanted fails alone.
    run(&site, &["rm", "-r", "/lab/t/d0"]).ok();
    run(&site, &["put", root.join("link").to_str().unwrap(), "/lab/t/d0"]).ok();
    wait_for(
        "a list without the directory",
        || !run(&site, &["ls", "/lab/t", "--fresh"]).stdout().contains("d0/"),
        String::new,
    );
    run(&site, &["put", "-r", path, "/lab/t"]).fails_with(8, "not a directory");
}

#[test]
fn what_keeps_a_file_from_being_put_is_said() {
    let mut site = Site::new(2, 2);
    write(&site.home.path().join("a"), &noise(100_000, 1));
    write(&site.home.path().join("large"), &noise(100, 1));
    std::fs::File::options()
        .write(true)
        .open(site.home.path().join("large"))
        .unwrap()
        .set_len(2 << 30)
        .unwrap();
    run(&site, &["put", "large", "/lab/large"]).fails_with(1, "byname site disk ls");
    run(&site, &["put", "a", "/other/a"]).fails_with(6, "no key here for a site above");

    // Somebody else, who may not write there.
    let bert = Home::new();
    let at = ["--site", "/lab", "--user", "bert"];
    let key = bert.run(&[&["site", "user", "key"], &at[..]].concat()).ok();
    let file = site.home.path().join("bert.cert");
    write(&file, key.stdout().as_bytes());
    site.run(&["user", "add", "bert", "--key", file.to_str().unwrap()]).ok();
    let put = ["put", site.home.path().join("a").to_str().unwrap(), "/lab/a"].map(str::to_owned);
    let put: Vec<&str> = put.iter().map(String::as_str).collect();
    let as_bert = |more: &[&str]| {
        bert.run(&[&put[..], more, &["--user", "bert", "--connect", &site.socket]].concat())
    };
    as_bert(&[]).fails_with(6, "");
    let link = site.link();
    as_bert(&["--site", &link]).fails_with(7, "/lab/a: the modes do not allow it");
    let key = link.find("key=").unwrap();
    let wrong = format!("{}key=SHA256:{}", &link[..key], "A".repeat(43));
    as_bert(&["--site", &wrong]).fails_with(6, "");

    // A dead disk is replaced; where there is no other, it is named.
    site.disks[1].take().unwrap().kill();
    run(&site, &["put", "a", "/lab/a"]).fails_with(1, "byname site disk ls");
    site.head.take().unwrap().kill();
    run(&site, &["put", "a", "/lab/b"]).fails_with(4, "no route");
}

/// The head is killed while a tree is put; the writer goes on when it is back.
#[test]
fn a_writer_goes_on_when_the_head_is_back() {
    let mut site = Site::new(2, 1);
    let root = tree(&site.home, 40);
    let path = root.to_str().unwrap();
    let writer = held_writer(&site, path);
    site.head.take().unwrap().kill();
    signal_disks(&site, "CONT");
    // Longer than a writer waits for a site that it has never heard of.
    std::thread::sleep(Duration::from_secs(4));
    site.head = Some(site.start_head());
    Finished::of(writer.wait_with_output().unwrap()).ok();
    verified(&site, path);
}

/// A writer that begins while the head is away waits for it, if there is time by its own word.
#[test]
fn a_writer_that_has_time_waits_for_a_head_that_is_away() {
    let mut site = Site::new(1, 1);
    let root = tree(&site.home, 3);
    let path = root.to_str().unwrap();
    site.head.take().unwrap().kill();
    let began = Instant::now();
    run(&site, &["put", "-r", path, "/lab/t"]).fails_with(4, "no route");
    assert!(began.elapsed() < Duration::from_secs(15), "who says nothing is told soon");
    let put = ["put", "-r", path, "/lab/t", "--timeout", "60", "--connect", &site.socket];
    let mut waiting = site.home.byname();
    waiting.args(put).stdout(Stdio::piped()).stderr(Stdio::piped());
    let waiting = waiting.spawn().unwrap();
    std::thread::sleep(Duration::from_secs(5));
    site.head = Some(site.start_head());
    Finished::of(waiting.wait_with_output().unwrap()).ok();
    verified(&site, path);
}

/// A writer is killed while it puts a tree: what is there is whole, and the next run does the rest.
#[test]
fn a_writer_that_was_killed_is_run_again() {
    let mut site = Site::new(2, 2);
    let root = tree(&site.home, 120);
    let path = root.to_str().unwrap();
    for _ in 0..3 {
        let mut killed = writer(&site, path);
        wait_until_some_are_put(&site);
        killed.kill().unwrap();
        killed.wait().unwrap();
        run(&site, &["get", "-r", "/lab/t", "-o", "got", "--fresh"]).ok();
        for found in walk(&site.home.path().join("got")) {
            let original = root.join(found.strip_prefix(site.home.path().join("got")).unwrap());
            assert_eq!(octets_of(&found), octets_of(&original), "{}", found.display());
        }
    }
    // One that is interrupted gives back what it has reserved.
    let mut stopped = writer(&site, path);
    std::thread::sleep(Duration::from_millis(300));
    signal(stopped.id(), "INT");
    let code = stopped.wait().unwrap().code();
    assert!(matches!(code, Some(0 | 130)), "{code:?}");
    // What is there by now is not written once more.
    let listed = run(&site, &["find", "/lab/t", "--type", "file", "--fresh"]).ok().stdout();
    let resumed = json(&site, &["put", "-r", path, "/lab/t"]);
    let count = |field: &str| resumed[field].as_u64().unwrap() as usize;
    assert!(count("files_skipped") >= listed.lines().count(), "{resumed}\n{listed}");
    assert_eq!(count("files") + count("files_skipped"), 121, "120 files and a link: {resumed}");
    verified(&site, path);
    let mut head: Daemon = site.head.take().unwrap();
    head.kill();
    site.home.run(&["site", "fsck", "--dir", "site"]).ok();
}

#[test]
fn an_interrupted_writer_gives_back_what_it_has_reserved() {
    let site = Site::new(2, 2);
    let root = tree(&site.home, 40);
    let mut stopped = held_writer(&site, root.to_str().unwrap());
    signal(stopped.id(), "INT");
    assert_eq!(stopped.wait().unwrap().code(), Some(130));
    assert_eq!(reserved_bytes(&site), 0);
}

#[test]
fn small_commands_see_and_change_what_is_there() {
    let site = Site::new(1, 1);
    let root = tree(&site.home, 8);
    run(&site, &["put", "-r", root.to_str().unwrap(), "/lab/t"]).ok();
    let found = run(&site, &["find", "/lab/t", "--name", "f[13]", "--type", "file", "--fresh"]);
    assert_eq!(found.ok().stdout(), "/lab/t/d0/below/f3\n/lab/t/d1/below/f1\n");
    let links = run(&site, &["find", "/lab/t", "--type", "symlink", "--json"]).ok().stdout();
    assert!(links.contains("\"/lab/t/link\"") && links.lines().count() == 1, "{links}");
    let sum = json(&site, &["du", "/lab/t"]);
    let bytes: u64 = walk(&root).iter().map(|file| octets_of(file).len() as u64).sum();
    assert_eq!((&sum["bytes"], &sum["files"]), (&bytes.into(), &8.into()), "{sum}");
    assert_eq!(sum["directories"], 7, "{sum}");

    run(&site, &["touch", "/lab/done"]).ok();
    run(&site, &["touch", "-c", "/lab/none", "/lab/done"]).ok();
    run(&site, &["touch", "/lab/no/done"]).fails_with(3, "no such file");
    run(&site, &["truncate", "/lab/t/d0/below/f3"]).ok();
    run(&site, &["truncate", "/lab/t"]).fails_with(1, "it is a directory");
    expect(&site, "/lab/t/d0/below/f3", b"");
    expect(&site, "/lab/done", b"");
    run(&site, &["stat", "/lab/none"]).fails_with(3, "");
    assert_eq!(reserved_bytes(&site), 0);
}

/// A writer that has begun, and cannot end before its disks go on.
fn held_writer(site: &Site, path: &str) -> std::process::Child {
    signal_disks(site, "STOP");
    let writer = writer(site, path);
    wait_for("a reservation", || reserved_bytes(site) > 0, String::new);
    writer
}

fn signal_disks(site: &Site, name: &str) {
    site.disks.iter().flatten().for_each(|disk| signal(disk.pid(), name));
}

fn reserved_bytes(site: &Site) -> u64 {
    let status = site.run(&["status", "--json"]).stdout();
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    status["state"]["reserved_bytes"].as_u64().unwrap()
}

/// A writer at work.
fn writer(site: &Site, path: &str) -> std::process::Child {
    let mut command = site.home.byname();
    command.args(["put", "-r", path, "/lab/t", "--connect", &site.socket]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn wait_until_some_are_put(site: &Site) {
    wait_for(
        "some file",
        || run(site, &["ls", "-R", "/lab/t", "--fresh"]).stdout().contains("below/f"),
        || run(site, &["ls", "-R", "/lab/t", "--fresh"]).stderr(),
    );
}

fn verified(site: &Site, path: &str) {
    let verify = || run(site, &["verify", path, "/lab/t", "--fresh"]);
    wait_for("the tree", || verify().stderr().contains("as published"), || verify().stdout());
}

fn walk(root: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => found.extend(walk(&entry.path())),
            kind if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}
