//! A site's catalog made again from its disks, with real processes: the head's state is deleted.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use byname_catalog::engine::{EmbeddedEngine, Engine, Table};
use byname_catalog::{BaseRow, Caller, Inode, Place, Reader, export};
use serde_json::Value;

use crate::disks::Site;
use crate::harness::{noise, wait_for, write};

const ENGINE: &str = "site/catalog.redb";

/// All rows of a catalog from which others follow, but for the numbers that a new one has anew.
pub(crate) fn rows(path: &Path) -> BTreeMap<(Table, Vec<u8>), Vec<u8>> {
    let engine = EmbeddedEngine::open(path).unwrap();
    let mut all: Vec<BaseRow> = Vec::new();
    loop {
        let after = all.last().map(|row| (row.table, row.key.as_slice()));
        let page = export(&*engine.snapshot().unwrap(), after, 1000).unwrap();
        let is_last = page.len() < 1000;
        all.extend(page);
        if is_last {
            break;
        }
    }
    let top = 1_u64.to_be_bytes();
    let is_anew = |row: &BaseRow| match row.table {
        // Counters, the lease, sessions of users.
        Table::Meta => row.key != b"site",
        Table::User => true,
        // These have new bindings: compared by `top`.
        Table::Inode => row.key == top,
        Table::Dentry => row.key.starts_with(&top),
        _ => false,
    };
    all.into_iter()
        .filter(|row| !is_anew(row))
        .map(|row| ((row.table, row.key), row.value))
        .collect()
}

/// A user's name, groups, and whether he is an operator.
pub(crate) type UserFacts = (String, Vec<String>, bool);

/// The top directory and its entries, and all users.
pub(crate) fn top(path: &Path) -> (Vec<Inode>, Vec<UserFacts>) {
    let engine = EmbeddedEngine::open(path).unwrap();
    let reader = Reader::new(&engine, &Caller::Head).unwrap();
    let place = Place::path("").unwrap();
    let top = Inode { binding: Default::default(), ..reader.entry(&place).unwrap().inode };
    let list = reader.list(&place, None, 1000).unwrap();
    let users = reader.users(None, 1000).unwrap();
    let user = |(name, user): (String, byname_catalog::User)| (name, user.groups, user.is_operator);
    let inodes = [top].into_iter().chain(list.into_iter().map(|entry| entry.inode));
    (inodes.collect(), users.into_iter().map(user).collect())
}

pub(crate) fn last_transaction(path: &Path) -> u64 {
    let engine = EmbeddedEngine::open(path).unwrap();
    Reader::new(&engine, &Caller::Head).unwrap().last_transaction().unwrap().0
}

/// Waits until so many disks have copies that are as new as the catalog.
fn await_copies(site: &Site, count: usize) {
    let status = || site.run(&["status", "--json"]).stdout();
    let is_copied = || {
        let state: Value = serde_json::from_str(&status()).unwrap_or_default();
        let last = &state["state"]["transaction"];
        let disks = state["disks"].as_array().cloned().unwrap_or_default();
        let copied = disks.iter().filter(|disk| disk["catalog"]["through"] == *last);
        last.is_u64() && copied.count() >= count
    };
    wait_for("copies of the catalog", is_copied, status);
}

/// Waits until nothing changes any more: what was removed or replaced ends by itself.
fn await_rest(site: &Site) {
    let transaction = || {
        let status = site.run(&["status", "--json"]).stdout();
        let state: Value = serde_json::from_str(&status).unwrap_or_default();
        state["state"]["transaction"].as_u64()
    };
    let (mut last, mut since) = (None, Instant::now());
    let is_at_rest = || {
        let now = transaction();
        if now.is_none() || now != last {
            (last, since) = (now, Instant::now());
        }
        since.elapsed() >= Duration::from_secs(3)
    };
    wait_for("an end of changes", is_at_rest, String::new);
}

/// A local tree of files; some are empty, some longer than a unit.
fn tree(site: &Site, files: usize) -> PathBuf {
    let local = site.home.work("tree");
    for index in 0..files {
        let size = [0, 9, 700, 20_000][index % 4];
        let directory = local.join(format!("d{}", index % 10));
        fs::create_dir_all(&directory).unwrap();
        write(&directory.join(format!("f{index}")), &noise(size, index as u64));
    }
    local
}

/// A site of three disks with one of everything.
fn site(files: usize) -> (Site, PathBuf) {
    let site = Site::new(3, 2);
    let local = tree(&site, files);
    let connect = ["--connect", &site.socket];
    let op = |args: &[&str]| site.home.run(&[args, &connect].concat()).ok();
    op(&["put", "-r", local.to_str().unwrap(), "/lab/run"]);
    op(&["chmod", "640", "/lab/run/d1/f1"]);
    op(&["ln", "/lab/run/d1/f1", "/lab/run/d2/hard"]);
    op(&["ln", "-s", "d1/f1", "/lab/run/soft"]);
    op(&["xattr", "set", "/lab/run/d2/f2", "user.who", "anna"]);
    op(&["touch", "/lab/run/d3/f3"]);
    op(&["mkdir", "/lab/shared", "--mode", "2775"]);
    op(&["rm", "/lab/run/d3/f13"]);
    op(&["mv", "/lab/run/d4/f14", "/lab/shared/moved"]);
    (site, local)
}

impl Site {
    pub(crate) fn stop_all(&mut self) {
        self.head.take().unwrap().interrupt();
        for disk in &mut self.disks {
            if let Some(mut disk) = disk.take() {
                disk.interrupt();
            }
        }
    }

    fn start_all(&mut self, disks: &[usize]) {
        self.head = Some(self.start_head());
        for index in disks {
            self.disks[*index] = Some(self.start_disk(*index));
        }
    }

    /// The head's state is lost; a copy of it for comparison.
    pub(crate) fn lose_state(&self) -> PathBuf {
        let old = self.home.path().join("old.redb");
        fs::copy(self.home.path().join(ENGINE), &old).unwrap();
        fs::remove_dir_all(self.home.path().join("site")).unwrap();
        old
    }

    /// Everything is stopped, or the head alone, and the head's state is lost, when all of it is on
    /// the disks. What was removed or replaced ends by itself, so that may take several tries.
    fn lose_copied_state(&mut self, is_served: bool, disks: &[&str]) -> PathBuf {
        let (site, kept) = (self.home.path().join("site"), self.home.path().join("kept"));
        for _ in 0..20 {
            await_copies(self, 3);
            match is_served {
                true => drop(self.head.take().unwrap().interrupt()),
                false => self.stop_all(),
            }
            fs::rename(&site, &kept).unwrap();
            let listed = self.rebuild(&[disks, &["--json"]].concat()).fails_with(2, "").stdout();
            let lines: Vec<Value> =
                listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            fs::remove_dir_all(&site).unwrap();
            fs::rename(&kept, &site).unwrap();
            let last = last_transaction(&self.home.path().join(ENGINE));
            let mut of_disks = lines.iter().filter(|line| line["disk"].is_u64());
            if of_disks.all(|line| line["through"] == last) {
                return self.lose_state();
            }
            match is_served {
                true => self.head = Some(self.start_head()),
                false => self.start_all(&[0, 1, 2]),
            }
        }
        panic!("the copies never have all changes");
    }

    fn rebuild(&self, extra: &[&str]) -> crate::harness::Finished {
        self.home.run(&[&["site", "rebuild", "/lab", "--dir", "site"], extra].concat())
    }
}

#[test]
fn a_catalog_made_again_from_all_disks_is_the_same() {
    let (mut site, local) = site(1000);
    let all = ["d0", "d1", "d2"];
    site.rebuild(&["d0", "--yes"]).fails_with(7, "another process");
    let old = site.lose_copied_state(false, &all);
    let looked = site.rebuild(&["d0", "d1", "d2"]).fails_with(2, "--yes");
    assert!(looked.stdout().contains("its rows were taken"), "{}", looked.stdout());
    assert!(!site.home.path().join(ENGINE).exists(), "nothing was made");
    // Somebody was interrupted: what he left is in nobody's way.
    write(&site.home.path().join("site/rebuild-new.redb"), &noise(9000, 1));
    write(&site.home.path().join("site/rebuild-rows.redb"), &noise(9000, 1));
    let made = site.rebuild(&["d0", "d1", "d2", "--yes"]).ok().stdout();
    assert!(!made.contains("FINDING"), "{made}");
    let new = site.home.path().join(ENGINE);
    assert_eq!(rows(&old), rows(&new));
    assert_eq!(top(&old), top(&new));
    site.home.run(&["site", "fsck", "--dir", "site"]).ok();

    site.start_all(&[0, 1, 2]);
    site.await_status("OK");
    let out = site.home.path().join("out");
    let out_dir = out.to_str().unwrap();
    let get = ["get", "-r", "/lab/run/d5", "-o", out_dir, "--connect", &site.socket];
    site.home.run(&get).ok();
    for index in (5..1000).step_by(10) {
        let file = format!("f{index}");
        let there = [out.join(&file), out.join("d5").join(&file)];
        let there = there.iter().find_map(|path| fs::read(path).ok());
        assert_eq!(there, fs::read(local.join("d5").join(&file)).ok(), "{file}");
    }
    let link = site.read("run/d2/hard").ok();
    assert_eq!(link.bytes(), fs::read(local.join("d1/f1")).unwrap());
    // A catalog that is there stays.
    site.stop_all();
    let refused = site.rebuild(&["d0", "d1", "d2", "--yes"]);
    refused.fails_with(7, "there is a site in site already");
    site.start_all(&[0, 1, 2]);
    site.await_status("OK");
    // Writes go on, with numbers that nobody has seen.
    site.put("run/d1/f1", b"written anew").unwrap();
    site.put("late", b"new").unwrap();
    // Caches may say for a second what the other name led to before.
    let other = || site.read("run/d2/hard").ok().bytes().to_vec();
    wait_for("the new content", || other() == b"written anew", String::new);
    site.run(&["fsck", "--disks", "--content"]).ok();
    await_copies(&site, 3);
    site.check();
}

#[test]
fn disks_that_are_served_give_the_catalog_back_by_name() {
    let (mut site, _) = site(60);
    await_copies(&site, 3);
    let listed = site.run(&["disk", "ls", "--json"]).ok().stdout();
    let number = |line: &str| -> String {
        let line: Value = serde_json::from_str(line).unwrap();
        format!("here/{}", line["disk"])
    };
    let disks: Vec<String> = listed.lines().map(number).collect();
    let flags: Vec<String> = disks.iter().map(|disk| format!("--disk={disk}")).collect();
    let socket = site.socket.clone();
    let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    flags.extend(["--connect", &socket]);
    let old = site.lose_copied_state(true, &flags);
    let of = |disks: &[String]| -> Vec<String> {
        let flags = disks.iter().flat_map(|disk| ["--disk".to_owned(), disk.clone()]);
        flags.chain(["--connect".to_owned(), site.socket.clone()]).collect()
    };
    let rebuild = |disks: &[String], yes: &[&str]| {
        let flags = of(disks);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        site.rebuild(&[yes, &flags].concat())
    };
    rebuild(&["here/99".to_owned()], &["--yes"]).fails_with(7, "it does not answer");
    rebuild(&[disks[0].clone(), disks[0].clone()], &[]).fails_with(2, "is given twice");
    rebuild(&disks, &["--yes"]).ok();
    let new = site.home.path().join(ENGINE);
    assert_eq!(rows(&old), rows(&new));
    assert_eq!(top(&old), top(&new));
    site.head = Some(site.start_head());
    site.await_status("OK");
    site.put("late", b"new").unwrap();
    site.run(&["fsck", "--disks"]).ok();
    site.check();
}

#[test]
fn with_one_disk_missing_the_rows_are_those_of_another() {
    let (mut site, _) = site(60);
    let old = site.lose_copied_state(false, &["d0", "d1", "d2"]);
    site.rebuild(&["d1", "d2", "--yes"]).ok();
    let new = site.home.path().join(ENGINE);
    assert_eq!(rows(&old), rows(&new));
    // Without its replica: a file that is on one disk alone.
    fs::remove_file(&new).unwrap();
    let listed = site.rebuild(&["d1", "--yes", "--json"]).fails_with(1, "").stdout();
    let findings: Vec<Value> = listed.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert!(findings.iter().any(|it| it["finding"] == "out-of-reach"), "{listed}");
    assert!(findings.iter().all(|it| it["finding"] != "lost"), "{listed}");
    assert_eq!(rows(&old), rows(&new), "what is out of reach stays in the catalog");
    site.start_all(&[0, 1, 2]);
    site.await_status("OK");
    site.run(&["fsck", "--disks"]).ok();
    // A head of before cannot command the disks any more.
    site.head.take().unwrap().interrupt();
    fs::copy(&old, &new).unwrap();
    site.head = Some(site.start_head());
    site.await_status("the order is of a head that has lost the lease");
}

#[test]
fn contents_that_are_newer_than_the_rows_are_taken_by_their_tickets() {
    let (mut site, _) = site(20);
    // What was removed would be told of as lost if copies that still have it came back.
    await_rest(&site);
    await_copies(&site, 3);
    site.stop_all();
    // The copies stay as they are now; what is written from here on is not in them.
    let copies: Vec<PathBuf> =
        (0..3).map(|disk| site.home.path().join(format!("d{disk}/catalog"))).collect();
    let keep = |from: &Path, to: &Path| {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    };
    copies.iter().for_each(|copy| keep(copy, &copy.with_extension("then")));
    site.start_all(&[0, 1, 2]);
    site.await_status("OK");
    site.put("run/d1/f1", b"a newer version").unwrap();
    site.put("shared/young", b"a new file").unwrap();
    let mkdir = ["mkdir", "/lab/later", "--connect", &site.socket];
    site.home.run(&mkdir).ok();
    site.put("later/lost", b"in a directory that is not known").unwrap();
    site.stop_all();
    for copy in &copies {
        fs::remove_dir_all(copy).unwrap();
        fs::rename(copy.with_extension("then"), copy).unwrap();
    }
    site.lose_state();
    let listed = site.rebuild(&["d0", "d1", "d2", "--yes", "--json"]).fails_with(1, "").stdout();
    for (finding, name) in [
        ("new-version", "/lab/run/d1/f1"),
        ("new-file", "/lab/shared/young"),
        ("lost+found", "/lab/lost%2Bfound/"),
    ] {
        let is_it = |line: &&str| {
            let line: Value = serde_json::from_str(line).unwrap();
            let is_named = |it: &str| it.contains(name) || it.contains(&name.replace("%2B", "+"));
            line["finding"] == finding && line["name"].as_str().is_some_and(is_named)
        };
        assert_eq!(listed.lines().filter(is_it).count(), 1, "{finding}: {listed}");
    }
    site.start_all(&[0, 1, 2]);
    site.await_status("OK");
    assert_eq!(site.read("run/d1/f1").ok().bytes(), b"a newer version");
    assert_eq!(site.read("shared/young").ok().bytes(), b"a new file");
    site.run(&["fsck", "--disks", "--content"]).ok();
    site.put("run/d1/f1", b"newer still").unwrap();
    site.check();
}

#[test]
fn a_lying_disk_is_found_out_and_another_believed() {
    let (mut site, _) = site(20);
    // What the copies get after they are whole.
    await_copies(&site, 3);
    let set = ["xattr", "set", "/lab/run/d2/f2", "user.late", "bert"];
    site.home.run(&[&set[..], &["--connect", &site.socket]].concat()).ok();
    let old = site.lose_copied_state(false, &["d0", "d1", "d2"]);
    let copy_of = |disk: usize| {
        let dir = site.home.path().join(format!("d{disk}/catalog"));
        fs::read_dir(dir).unwrap().next().unwrap().unwrap().path()
    };
    // The last order says something else, or has another signature if the change came before that;
    // all that the disk itself looks at fits.
    let copy = copy_of(0);
    let octets = fs::read(&copy).unwrap();
    let mut orders = Vec::new();
    let mut rest = octets.as_slice();
    while let byname_site::Frame::Order(wire, behind) = byname_site::Frame::first(rest) {
        orders.push(wire.to_vec());
        rest = behind;
    }
    let last = orders.last_mut().unwrap();
    let at = last.windows(4).rposition(|it| it == b"bert").unwrap_or(last.len() - 1);
    last[at] ^= 1;
    let forged: Vec<u8> = orders.iter().flat_map(|wire| byname_site::frame(wire)).collect();
    fs::write(&copy, &forged).unwrap();
    // What it had before that still counts.
    let listed = site.rebuild(&["d0", "--json"]).fails_with(2, "").stdout();
    let last: Value = serde_json::from_str(listed.lines().last().unwrap()).unwrap();
    assert!(last["through"].as_u64().unwrap() < last_transaction(&old), "{listed}");
    fs::write(&copy, &forged[forged.len() / 2..]).unwrap();
    site.rebuild(&["d0", "--yes"]).fails_with(3, "no disk has a complete copy");
    fs::write(&copy, &forged).unwrap();
    let said = site.rebuild(&["d0", "d1", "d2", "--yes"]).fails_with(1, "").stdout();
    assert!(said.contains("the site's key has not signed it"), "{said}");
    let new = site.home.path().join(ENGINE);
    assert_eq!(rows(&old), rows(&new));
    assert_eq!(top(&old), top(&new));
}
