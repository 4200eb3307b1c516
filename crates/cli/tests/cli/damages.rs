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
/// half written when the server died.
fn plant_strangers(disk: &Path, like: &Stored) {
    let stranger = |top: &str| disk.join(top).join("07/0000000000001007-0000000000001008");
    fs::copy(&like.object, stranger("objects")).unwrap();
    let lone = disk.join("records/08/0000000000001008-0000000000001009");
    fs::copy(&like.record, lone).unwrap();
    fs::write(disk.join("incoming/0000000000001009-000000000000100a"), noise(5000, 1)).unwrap();
    fs::write(disk.join("incoming/0000000000001009-000000000000100a.record"), b"half").unwrap();
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

/// 17: a version that was replaced, kept aside before it goes; and where it is to be on a disk.
fn replaced(site: &Site) -> (Stored, Stored) {
    site.put("again", &noise(FILE_BYTES, 1000)).unwrap();
    let all = (0..site.disks.len())
        .flat_map(|disk| stored(site, disk).into_iter().map(move |it| (disk, it)));
    // Names begin with the number of the file: the highest is the newest.
    let (disk, old) = all.max_by_key(|(_, it)| it.object.file_name().unwrap().to_owned()).unwrap();
    let aside = Stored { object: site.home.path().join("o"), record: site.home.path().join("r") };
    old.copy_to(&aside);
    site.put("again", &noise(FILE_BYTES, 1001)).unwrap();
    wait_for("the old version to go", || !old.object.exists(), String::new);
    (aside, old.on((&format!("d{disk}"), "d0")))
}

/// Asserts that lines of findings name each of these replicas.
fn assert_found(json: &str, damaged: &[Stored]) {
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let findings: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for of in damaged {
        let name = of.object.file_name().unwrap().to_str().unwrap();
        let (inode, version) = name.split_once('-').unwrap();
        let content = (number(inode).into(), number(version).into());
        let is_it = |it: &serde_json::Value| {
            (it["inode"].clone(), it["version"].clone()) == content && it["disk"].is_u64()
        };
        assert!(findings.iter().any(is_it), "{name}: {json}");
    }
}

#[test]
fn each_planted_damage_of_a_disk_is_found_and_repaired_and_a_second_look_finds_nothing() {
    let mut site = Site::new(3, 2);
    site.head.as_mut().unwrap().kill();
    site.head = Some(site.start_repairing_head());
    let files = fill(&site);
    let (aside, old) = replaced(&site);
    site.disks[0].take().unwrap().kill();
    // 18: a replica that the catalog knows nothing of, of a file that is on two other disks.
    let mut elsewhere = stored(&site, 1).into_iter().map(|it| (it.on(("d1", "d0")), it));
    let (extra, like) = elsewhere.find(|(there, _)| !there.object.exists()).unwrap();
    let here = stored(&site, 0);
    plant(&here);
    plant_strangers(&site.home.path().join("d0"), here.last().unwrap());
    like.copy_to(&extra);
    aside.copy_to(&old);
    site.disks[0] = Some(site.start_disk(0));

    let fsck = |args: &[&str]| {
        let args = [&["fsck", "--disks", "--content", "--timeout", "60"], args].concat();
        site.run(&args)
    };
    let found = fsck(&["--repair"]).fails_with(1, "nothing was changed").stdout();
    for problem in ["missing", "different-content"] {
        assert!(found.contains(problem), "{problem}: {found}");
    }
    assert_found(&fsck(&["--json"]).stdout(), &here[..14]);
    fsck(&["--repair", "--yes"]).fails_with(1, "being mended");
    let again = || fsck(&[]).stdout();
    wait_for("a look that finds nothing", || again().ends_with(": OK\n"), again);
    for seed in 0..files {
        let octets = site.read(&format!("f{seed}")).ok();
        assert!(octets.bytes() == noise(FILE_BYTES, seed), "f{seed}");
    }
    assert!(site.read("again").ok().bytes() == noise(FILE_BYTES, 1001));
    assert!(fs::read_dir(site.home.path().join("d0/incoming")).unwrap().next().is_none());
    assert!(!old.object.exists() && !extra.object.exists(), "what nobody has is gone");
    site.check();
    let nothing = site.home.run(&["site", "fsck", "--dir", "site", "--repair"]).ok();
    assert!(nothing.stderr().contains("nothing to mend"), "{}", nothing.stderr());
}
