//! Backups of a running head, and catalogs made of them, with real processes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use byname_catalog::engine::EmbeddedEngine;
use byname_catalog::{Caller, Place, Reader};
use serde_json::Value;

use crate::disks::{Site, put_from};
use crate::harness::{Daemon, Home, noise, wait_for};
use crate::rebuilding::{last_transaction, rows, top};

const ENGINE: &str = "site/catalog.redb";

impl Site {
    /// A head that keeps what was replaced or removed.
    fn start_keeping_head(&self) -> Daemon {
        let args = ["catalog", "--dir", "site", "--keep-versions", "1h", "--connect", &self.socket];
        self.home.start(&args, "byname:/lab")
    }

    fn backup(&self, args: &[&str]) -> Value {
        let done = self.run(&[&["backup", "--json"], args].concat()).ok().stdout();
        serde_json::from_str(&done).unwrap()
    }

    fn restore(&self, args: &[&str]) -> crate::harness::Finished {
        self.home.run(&[&["site", "restore"], args].concat())
    }

    fn transaction(&self) -> u64 {
        let state: Value = serde_json::from_str(&self.run(&["status", "--json"]).stdout()).unwrap();
        state["state"]["transaction"].as_u64().unwrap()
    }

    /// The change behind another one that removed a file; others belong to sessions.
    fn removal_after(&self, number: u64) -> u64 {
        let log = self.run(&["log", "--after", &number.to_string()]).ok().stdout();
        let mut lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let removal = lines.find(|line| line["command"] == "unlink").expect(&log);
        removal["transaction"].as_u64().unwrap()
    }

    fn all_contents(&self) -> BTreeSet<PathBuf> {
        (0..self.disks.len()).flat_map(|disk| self.contents(disk)).collect()
    }

    pub(crate) fn done(&self, args: &[&str]) {
        self.home.run(&[args, &["--connect", &self.socket]].concat()).ok();
    }
}

/// Number of the file that a finding of this kind is about.
fn inode_of(kind: &str, findings: &str) -> u64 {
    let lines = findings.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let found = lines.into_iter().find(|line| line["finding"] == kind).expect(findings);
    found["inode"].as_u64().unwrap()
}

/// A site whose head keeps what was removed.
fn site() -> Site {
    let mut site = Site::new(3, 2);
    site.head.as_mut().unwrap().kill();
    site.head = Some(site.start_keeping_head());
    site
}

/// True if a restored catalog has this name.
fn has(catalog: &Path, path: &str) -> bool {
    let engine = EmbeddedEngine::open(&catalog.join("catalog.redb")).unwrap();
    let reader = Reader::new(&engine, &Caller::Head).unwrap();
    reader.entry(&Place::path(path).unwrap()).is_ok()
}

/// Puts files until somebody says that it is enough.
fn write_on(site: &Site, stop: &AtomicBool, count: &AtomicU64) {
    let mut writer = site.writer();
    let local = site.home.path().join("meanwhile");
    while !stop.load(Ordering::Relaxed) {
        let index = count.load(Ordering::Relaxed);
        put_from(&local, &mut writer, &format!("w{index}"), &noise(500, index)).unwrap();
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Files by their paths.
type Files = BTreeMap<String, Vec<u8>>;

/// A site with one of everything, and its files.
fn filled() -> (Site, Files) {
    let site = site();
    let mut wanted = Files::new();
    let mut writer = site.writer();
    site.done(&["mkdir", "/lab/d"]);
    for index in 0..40 {
        let (path, octets) = (format!("d/f{index}"), noise(3000 * (index % 5), index as u64));
        site.put_by(&mut writer, &path, &octets).unwrap();
        wanted.insert(path, octets);
    }
    site.done(&["ln", "/lab/d/f1", "/lab/hard"]);
    site.done(&["xattr", "set", "/lab/d/f2", "user.who", "anna"]);
    site.run(&["user", "add", "anna", "--group", "physics"]).ok();
    (site, wanted)
}

/// Ends a writer, also if the test fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Takes a backup while a writer goes on; so many of its files were there before it began.
fn take_meanwhile(site: &Site, to: &str) -> u64 {
    // Writers go on while it is taken, and what they had acknowledged before it began is in it.
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| write_on(site, &stop, &count));
        let ending = Ending(&stop);
        let there = || count.load(Ordering::Relaxed);
        wait_for("a writer", || there() > 2, String::new);
        let before = there();
        let all = site.backup(&[to]);
        assert!(all["snapshot"]["rows"].as_u64().unwrap() > 100 && all["log"].is_null(), "{all}");
        let then = there();
        wait_for("writes to go on", || there() > then, String::new);
        drop(ending);
        writing.join().unwrap();
        before
    })
}

/// What comes after the backup; what is read of it when that is restored.
fn go_on(site: &Site, wanted: &mut Files) {
    let mut writer = site.writer();
    site.put_by(&mut writer, "d/f3", b"written anew").unwrap();
    site.put_by(&mut writer, "d/young", b"a new file").unwrap();
    site.done(&["rm", "/lab/d/f4"]);
    site.done(&["mv", "/lab/d/f5", "/lab/moved"]);
    site.done(&["mkdir", "/lab/later"]);
    site.put_by(&mut writer, "later/lost", b"in a directory that is not known").unwrap();
    wanted.insert("d/f3".to_owned(), b"written anew".to_vec());
    wanted.insert("d/young".to_owned(), b"a new file".to_vec());
}

/// The drill: the head's directory is deleted, and what was there before the backup is read right.
#[test]
fn a_restored_site_reads_all_of_before_its_backup_and_deletes_nothing() {
    let (mut site, mut wanted) = filled();
    let to = site.home.path().join("backup").display().to_string();
    let to = to.as_str();
    let before = take_meanwhile(&site, to);
    for index in 0..before {
        wanted.insert(format!("w{index}"), noise(500, index));
    }
    let more = site.backup(&[to]);
    assert!(more["snapshot"].is_null() && more["log"]["after"].is_u64(), "{more}");
    let ok = site.home.run(&["site", "backup", "verify", to]).ok().stdout();
    assert!(ok.ends_with("/lab: OK\n") && ok.starts_with("2 files"), "{ok}");

    go_on(&site, &mut wanted);
    let contents = site.all_contents();
    site.stop_all();
    site.lose_state();

    site.restore(&[to, "--dir", "site", "--yes"]).fails_with(2, "which disks");
    let disks = ["d0", "d1", "d2", "--dir", "site", "--json"];
    let looked = site.restore(&[&[to], &disks[..]].concat()).fails_with(2, "--yes").stdout();
    assert!(!site.home.path().join(ENGINE).exists(), "nothing was made");
    let made = site.restore(&[&[to, "--yes"], &disks[..]].concat()).fails_with(1, "").stdout();
    let finding = |kind: &str, name: &str| {
        let is_it = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["finding"] == kind && line["name"].as_str().is_some_and(|it| it.contains(name))
        };
        assert_eq!(made.lines().filter(|line| is_it(line)).count(), 1, "{kind} {name}: {made}");
        assert_eq!(looked.lines().filter(|line| is_it(line)).count(), 1, "{kind} {name}: {looked}");
    };
    finding("new-version", "/lab/d/f3");
    finding("new-file", "/lab/d/young");
    finding("lost+found", "found/");
    assert!(!made.contains("\"lost\""), "{made}");
    site.restore(&[&[to, "--yes"], &disks[..]].concat()).fails_with(7, "there is a site in site");

    site.head = Some(site.start_keeping_head());
    for disk in 0..3 {
        site.disks[disk] = Some(site.start_disk(disk));
    }
    site.await_status("OK");
    for (path, octets) in &wanted {
        assert!(site.read(path).ok().bytes() == octets, "{path}");
    }
    assert!(site.read("hard").ok().bytes() == wanted["d/f1"]);
    let listed = site.run(&["user", "ls"]).ok().stdout();
    assert!(listed.contains("anna"), "{listed}");
    site.run(&["fsck", "--disks", "--content"]).ok();
    // All but the version of d/f3 that the newer one replaced.
    let now = site.all_contents();
    let replaced = format!("{:016x}-", inode_of("new-version", &made));
    let is_replaced =
        |path: &Path| path.file_name().unwrap().to_str().unwrap().starts_with(&replaced);
    let mut deleted = contents.difference(&now).filter(|path| !is_replaced(path));
    assert!(deleted.next().is_none(), "{:?}: {made}", contents.difference(&now));
    site.put("d/f6", b"with a number that nobody has seen").unwrap();
    // What was read a moment ago is fresh for a second.
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(site.read("d/f6").ok().bytes(), b"with a number that nobody has seen");
    // The head's log does not go back: all rows are taken once more.
    let anew = site.backup(&[to]);
    assert!(anew["snapshot"]["rows"].is_u64(), "{anew}");
    site.check();
}

/// A site with a backup of several parts, and the same in one file.
pub(crate) struct History {
    pub(crate) site: Site,
    /// The directory, and the file.
    pub(crate) to: String,
    pub(crate) whole: String,
    /// The change that made `second`, and the one that removed `first`.
    second: u64,
    removed: u64,
    digest: String,
}

impl History {
    pub(crate) fn new() -> Self {
        let site = site();
        let mut writer = site.writer();
        site.put_by(&mut writer, "first", &noise(9000, 1)).unwrap();
        let to = site.home.work("backup").to_str().unwrap().to_owned();
        site.backup(&[&to]);
        site.put_by(&mut writer, "second", &noise(9000, 2)).unwrap();
        let second = site.transaction();
        site.done(&["rm", "/lab/first"]);
        let removed = site.removal_after(second);
        site.backup(&[&to]);
        let full = site.backup(&["--full", &to]);
        assert!(full["snapshot"]["rows"].is_u64(), "{full}");
        site.put_by(&mut writer, "third", &noise(9000, 3)).unwrap();
        drop(writer);
        site.backup(&[&to]);
        let whole = site.home.path().join("whole.byname-backup").to_str().unwrap().to_owned();
        let taken = site.backup(&[&whole]);
        let digest = taken["snapshot"]["digest"].as_str().unwrap().to_owned();
        Self { site, to, whole, second, removed, digest }
    }

    /// Which files a catalog has that is made of a backup, to look at it.
    pub(crate) fn look(&self, args: &[&str]) -> [bool; 3] {
        let dir = self.site.home.path().join("look");
        let path = dir.to_str().unwrap();
        self.site.restore(&[args, &["--no-disks", "--dir", path, "--yes"]].concat()).ok();
        let there = files_of(&dir);
        fs::remove_dir_all(&dir).unwrap();
        there
    }
}

fn files_of(catalog: &Path) -> [bool; 3] {
    ["first", "second", "third"].map(|path| has(catalog, path))
}

#[test]
fn a_backup_goes_back_to_any_change_or_time() {
    let history = History::new();
    let (site, to) = (&history.site, history.to.as_str());
    let [second, removed] = [history.second, history.removed].map(|number| number.to_string());
    assert_eq!(history.look(&[to]), [false, true, true]);
    assert_eq!(history.look(&[&history.whole]), [false, true, true]);
    assert_eq!(history.look(&[to, "--at", &second]), [true, true, false]);
    assert_eq!(history.look(&[to, "--at", &removed]), [false, true, false]);
    // The time of that change, and a nanosecond before it.
    let before = (history.removed - 1).to_string();
    let log = site.run(&["log", "--after", &before]).ok().stdout();
    let line: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    let at_ns = line["at_ns"].as_u64().unwrap();
    let time = |ns: u64| jiff::Timestamp::from_nanosecond(ns.into()).unwrap().to_string();
    assert_eq!(history.look(&[to, "--at", &time(at_ns)]), [false, true, false]);
    assert_eq!(history.look(&[to, "--at", &time(at_ns - 1)]), [true, true, false]);
    let refused = |at: &str, code, words| {
        let args = [to, "--at", at, "--no-disks", "--dir", "no", "--yes"];
        site.restore(&args).fails_with(code, words);
    };
    refused("1", 3, "changes from");
    refused(&u64::MAX.to_string(), 3, "changes up to");
    refused("noon", 2, "a time such as");
}

#[test]
fn going_back_names_what_is_newer_and_all_of_a_backup_is_what_the_catalog_was() {
    let History { mut site, to, second, .. } = History::new();
    // Sessions of who took the others are in this one.
    site.backup(&[&to]);
    site.stop_all();
    let old = site.lose_state();
    let args = [to.as_str(), "d0", "d1", "d2", "--dir", "site", "--json", "--yes"];
    let back = site.restore(&[&args[..], &["--at", &second.to_string()]].concat()).ok().stdout();
    assert!(back.contains("\"later\"") && back.contains("\"losses\":0"), "{back}");
    assert_eq!(files_of(&site.home.path().join("site")), [true, true, false]);
    fs::remove_dir_all(site.home.path().join("site")).unwrap();
    let made = site.restore(&args).ok().stdout();
    let new = site.home.path().join(ENGINE);
    assert!(last_transaction(&new) > last_transaction(&old), "{made}");
    assert_eq!(rows(&old), rows(&new));
    assert_eq!(top(&old), top(&new));
}

#[test]
fn an_export_as_lines_says_what_the_backup_says_and_is_imported() {
    let history = History::new();
    let site = &history.site;
    let exported = site.home.run(&["site", "export", "--from", &history.whole]).ok().stdout();
    let last: Value = serde_json::from_str(exported.lines().last().unwrap()).unwrap();
    assert_eq!(last["digest"], *history.digest);
    for text in [&exported, &site.run(&["export"]).ok().stdout()] {
        assert!(text.contains("\"name\":\"second\"") && !text.contains("\"first\""), "{text}");
        let lines = site.home.path().join("lab.jsonl");
        fs::write(&lines, text).unwrap();
        let lines = lines.to_str().unwrap();
        let unsealed = ["site", "import", lines, "--no-disks", "--dir", "no"];
        site.home.run(&unsealed).fails_with(5, "not sealed");
        assert_eq!(history.look(&[lines, "--unsealed"]), [false, true, true]);
    }
    let without_one: Vec<&str> = exported.lines().filter(|it| !it.contains("second")).collect();
    let torn = site.home.path().join("torn.jsonl");
    for (text, words) in [
        (without_one.join("\n") + "\n", "another digest"),
        (exported[..exported.len() - 2].to_owned(), "its end is missing"),
    ] {
        fs::write(&torn, text).unwrap();
        let torn = torn.to_str().unwrap();
        let args = ["site", "import", torn, "--unsealed", "--no-disks", "--dir", "no"];
        site.home.run(&args).fails_with(5, words);
    }
}

#[test]
fn a_backup_that_is_torn_or_altered_is_refused() {
    let history = History::new();
    let site = &history.site;
    let octets = fs::read(&history.whole).unwrap();
    let damaged = site.home.path().join("damaged");
    let refused = |octets: &[u8], words: &str| {
        fs::write(&damaged, octets).unwrap();
        for what in [&["backup", "verify"][..], &["restore", "--no-disks", "--dir", "no"]] {
            let args = [&["site"], what, &[damaged.to_str().unwrap()]].concat();
            site.home.run(&args).fails_with(5, words);
        }
    };
    refused(&octets[..octets.len() - 1], "its end is missing");
    refused(&[&octets[..], b"x"].concat(), "its sum is another");
    refused(b"something else that is long enough", "it is no backup");
    for at in [60, octets.len() / 2, octets.len() - 3] {
        let mut octets = octets.clone();
        octets[at] ^= 1;
        refused(&octets, "damaged: ");
    }
    // What was done leaves nothing but what was asked for.
    for dir in [Path::new(&history.to), site.home.path()] {
        let left = fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name());
        let hidden = left.filter(|name| name.to_string_lossy().starts_with(".byname"));
        assert_eq!(hidden.count(), 0, "{}", dir.display());
    }
}

/// Its term is above that of the site's head: disks would obey it, and the head no more.
#[test]
fn a_catalog_that_was_made_for_a_look_is_not_served() {
    let site = site();
    let file = site.home.path().join("whole.byname-backup").to_str().unwrap().to_owned();
    site.backup(&[&file]);
    let made = site.restore(&[&file, "--no-disks", "--dir", "look", "--yes"]).ok().stderr();
    assert!(made.contains("no head serves it"), "{made}");
    let catalog = ["catalog", "/lab", "--dir", "look", "--connect", &site.socket];
    site.home.run(&catalog).fails_with(7, "for a look only");
    site.home.run(&["site", "fsck", "--dir", "look"]).ok();
    site.put("f", b"the head goes on").unwrap();
    // With a look at the disks one comes out that is served, in the same place.
    fs::remove_file(site.home.path().join("look/catalog.redb")).unwrap();
    let mut site = site;
    site.stop_all();
    let disks = ["d0", "d1", "d2", "--dir", "look", "--yes"];
    let made = site.restore(&[&[file.as_str()][..], &disks].concat()).stderr();
    assert!(made.contains("serve it"), "{made}");
    assert!(!site.home.path().join("look/for-a-look-only").exists());
}

#[test]
fn only_operators_take_backups() {
    let site = site();
    let anna = Home::new();
    anna.run(&["trust", "add", &site.link()]).ok();
    let key = anna.run(&["site", "user", "key", "--site", "/lab", "--user", "anna"]).ok();
    let file = site.home.path().join("anna.cert");
    fs::write(&file, key.stdout()).unwrap();
    let file = file.to_str().unwrap();
    site.run(&["user", "add", "anna", "--group", "physics", "--key", file]).ok();
    let to = anna.path().join("mine");
    let words = "only an operator of the site may do this";
    let connect = ["--connect", &site.socket];
    anna.run(&[&["site", "backup", to.to_str().unwrap()], &connect[..]].concat())
        .fails_with(7, words);
    anna.run(&[&["site", "export"], &connect[..]].concat()).fails_with(7, words);
    assert!(!to.exists());
}
