//! Damages planted on a real disk, each found and made good by `site fsck --disks`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::disks::Site;
use crate::harness::{noise, wait_for};

const FILE_BYTES: usize = 30_000;

/// A content in the directory of a disk: octets, and the record beside them.
struct Stored {
    object: PathBuf,
    record: PathBuf,
}

impl Stored {
    fn of(object: PathBuf) -> Self {
        let record = object.to_str().unwrap().replacen("/objects/", "/records/", 1);
        Self { object, record: record.into() }
    }

    /// The same content on another disk.
    fn on(&self, (from, to): (&str, &str)) -> Self {
        let other = |path: &Path| -> PathBuf {
            path.to_str().unwrap().replacen(&format!("/{from}/"), &format!("/{to}/"), 1).into()
        };
        Self { object: other(&self.object), record: other(&self.record) }
    }

    fn copy_to(&self, to: &Self) {
        fs::copy(&self.object, &to.object).unwrap();
        fs::copy(&self.record, &to.record).unwrap();
    }
}

fn stored(site: &Site, disk: usize) -> Vec<Stored> {
    let mut objects = site.contents(disk);
    objects.sort();
    objects.into_iter().map(Stored::of).collect()
}

fn change(path: &Path, work: impl FnOnce(&mut Vec<u8>)) {
    let mut octets = fs::read(path).unwrap();
    work(&mut octets);
    fs::write(path, octets).unwrap();
}

fn swap(one: &Path, other: &Path) {
    let (first, second) = (fs::read(one).unwrap(), fs::read(other).unwrap());
    fs::write(one, second).unwrap();
    fs::write(other, first).unwrap();
}

/// Damages of one replica each, as docs/site.md lists them.
fn plant(stored: &[Stored]) {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, ..] = stored else { panic!("too few contents") };
    // 1 to 6: what there is of the content.
    fs::remove_file(&a.object).unwrap();
    change(&b.object, |octets| octets.truncate(10_000));
    change(&c.object, Vec::clear);
    change(&d.object, |octets| octets.extend_from_slice(b"more"));
    change(&e.object, |octets| octets[20_000] ^= 1);
    change(&f.object, |octets| octets.fill(0));
    // 7: contents of two files exchanged, of the same length.
    swap(&g.object, &h.object);
    // 8 to 12: what there is beside it.
    fs::remove_file(&i.record).unwrap();
    change(&j.record, Vec::clear);
    change(&k.record, |octets| {
        let length = octets.len();
        octets.truncate(length / 2);
    });
    change(&l.record, |octets| {
        let middle = octets.len() / 2;
        octets[middle] ^= 1;
    });
    swap(&m.record, &n.record);
}

/// 13 to 16: what nobody is to have: octets without a record, a record without octets, and what was
/// half written when the server died. The disk finds these itself, as it starts: where they are,
/// and what it says of them.
fn plant_strangers(disk: &Path, like: &Stored) -> [(PathBuf, &'static str); 4] {
    let lone = "07/0000000000001007-0000000000001008";
    let record = disk.join("records/08/0000000000001008-0000000000001009");
    let half = disk.join("incoming/0000000000001009-000000000000100a");
    let half_record = half.with_extension("record");
    fs::copy(&like.object, disk.join("objects").join(lone)).unwrap();
    fs::copy(&like.record, &record).unwrap();
    fs::write(&half, noise(5000, 1)).unwrap();
    fs::write(&half_record, b"half").unwrap();
    [
        (disk.join("quarantine").join(&lone[3..]), "it has no sound record"),
        (record, "it is a record without content"),
        (half, "it was being written"),
        (half_record, "it was being written"),
    ]
}

/// Files until there is enough on two of the disks; how many.
fn fill(site: &Site) -> u64 {
    let mut writer = site.writer();
    let mut files = 0;
    while site.contents(0).len() < 16 || site.contents(1).len() < 3 {
        site.put_by(&mut writer, &format!("f{files}"), &noise(FILE_BYTES, files)).unwrap();
        files += 1;
        assert!(files < 200, "the disks are not used alike");
    }
    files
}

/// 17: a version that was replaced, kept aside before it goes; where it is to be on a disk that has
/// never had it, since one that has dropped it does not take it for its own; and its file.
fn replaced(site: &Site) -> (Stored, Stored, String) {
    let aside = Stored { object: site.home.path().join("o"), record: site.home.path().join("r") };
    for number in 0.. {
        assert!(number < 100, "each file is on the first disk");
        let path = format!("again{number}");
        site.put(&path, &noise(FILE_BYTES, 1000)).unwrap();
        let all = (0..site.disks.len())
            .flat_map(|disk| stored(site, disk).into_iter().map(move |it| (disk, it)));
        // Names begin with the number of the file: the highest is the newest.
        let name = |it: &Stored| it.object.file_name().unwrap().to_owned();
        let (disk, old) = all.max_by_key(|(_, it)| name(it)).unwrap();
        let there = old.on((&format!("d{disk}"), "d0"));
        if there.object.exists() {
            continue;
        }
        old.copy_to(&aside);
        site.put(&path, &noise(FILE_BYTES, 1001)).unwrap();
        wait_for("the old version to go", || !old.object.exists(), String::new);
        return (aside, there, path);
    }
    unreachable!("it ends before")
}

/// Says in a record that the head has settled the content, so that the disk does not ask: it would
/// let go at its start what is not its.
fn settle(of: &Stored) {
    change(&of.record, |octets| {
        octets[33] = 1;
        let digest = *blake3::hash(&octets[32..]).as_bytes();
        octets[..32].copy_from_slice(&digest);
    });
}

/// Asserts that findings, one a line, have one of these problems for a replica of the disk.
fn assert_found(json: &str, (disk, damaged): (u64, &Stored), problems: &[&str]) {
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let name = damaged.object.file_name().unwrap().to_str().unwrap();
    let (inode, version) = name.split_once('-').unwrap();
    let content = (number(inode).into(), number(version).into());
    let is_it = |line: &str| {
        let it: serde_json::Value = serde_json::from_str(line).unwrap();
        (&it["inode"], &it["version"]) == (&content.0, &content.1)
            && it["disk"] == disk
            && problems.iter().any(|problem| it["problem"] == *problem)
    };
    assert!(json.lines().any(is_it), "{name}: no {problems:?} in {json}");
}

/// What the first look has to find of each damage of [`plant`], in its order: what the disk puts
/// into quarantine at its start is missing.
const PROBLEMS: [&str; 14] = [
    "missing",
    "missing",
    "missing",
    "missing",
    "different-content",
    "different-content",
    "different-content",
    "different-content",
    "missing",
    "missing",
    "missing",
    "missing",
    "different-content",
    "different-content",
];

#[test]
fn each_planted_damage_of_a_disk_is_found_and_repaired_and_a_second_look_finds_nothing() {
    let mut site = Site::new(3, 2);
    site.head.as_mut().unwrap().kill();
    site.head = Some(site.start_repairing_head());
    let files = fill(&site);
    let (aside, old, again) = replaced(&site);
    let disk: u64 = site.number(0).parse().unwrap();
    site.disks[0].take().unwrap().kill();
    // 18: a replica that the catalog knows nothing of, of a file that is on two other disks.
    let mut elsewhere = stored(&site, 1).into_iter().map(|it| (it.on(("d1", "d0")), it));
    let (extra, like) = elsewhere.find(|(there, _)| !there.object.exists()).unwrap();
    let here = stored(&site, 0);
    let strangers = plant_strangers(&site.home.path().join("d0"), here.last().unwrap());
    plant(&here);
    like.copy_to(&extra);
    aside.copy_to(&old);
    [&extra, &old].into_iter().for_each(settle);
    // What it finds by reading anew by itself would be made good before it is compared.
    let args = ["disk", "d0", "--scrub-rate", "0", "--connect", &site.socket];
    site.disks[0] = Some(site.home.start(&args, "serving d"));

    let log = site.log_of(0);
    for (path, why) in &strangers {
        let said = format!("{}: {why}", path.strip_prefix(site.home.path()).unwrap().display());
        assert!(log.contains(&said), "no {said:?} in {log}");
    }
    let fsck = |args: &[&str]| {
        let args = [&["fsck", "--disks", "--content", "--timeout", "60"], args].concat();
        site.run(&args)
    };
    let json = fsck(&["--json"]).fails_with(1, "").stdout();
    for (damaged, problem) in here.iter().zip(PROBLEMS) {
        assert_found(&json, (disk, damaged), &[problem]);
    }
    for too_many in [&old, &extra] {
        assert_found(&json, (disk, too_many), &["orphaned"]);
    }
    let is_of_disk = |line: &&str| {
        let it: serde_json::Value = serde_json::from_str(line).unwrap();
        it["disk"] == disk && it["problem"].is_string() && it["problem"] != "leaving"
    };
    assert_eq!(json.lines().filter(is_of_disk).count(), PROBLEMS.len() + 2, "no more: {json}");
    fsck(&["--repair"]).fails_with(1, "nothing was changed");
    fsck(&["--repair", "--yes"]).fails_with(1, "being mended");
    let second = || fsck(&[]).stdout();
    wait_for("a look that finds nothing", || second().ends_with(": OK\n"), second);
    for seed in 0..files {
        let octets = site.read(&format!("f{seed}")).ok();
        assert!(octets.bytes() == noise(FILE_BYTES, seed), "f{seed}");
    }
    assert!(site.read(&again).ok().bytes() == noise(FILE_BYTES, 1001));
    assert!(fs::read_dir(site.home.path().join("d0/incoming")).unwrap().next().is_none());
    assert!(!old.object.exists() && !extra.object.exists(), "what nobody has is gone");
    site.check();
    let nothing = site.home.run(&["site", "fsck", "--dir", "site", "--repair"]).ok();
    assert!(nothing.stderr().contains("nothing to mend"), "{}", nothing.stderr());
}
