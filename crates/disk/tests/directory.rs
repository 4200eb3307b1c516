//! A disk's directory as a killed process, a full disk or somebody with `cp` leaves it.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like tests")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use byname_catalog::Checksums;
use byname_catalog::id::{ContentId, DiskId, InodeId, LeaseEpoch, Version};
use byname_disk::{
    DiskDirectory, DiskError, FileFacts, Files, Label, LockGuard, OpenFile, Record, Scan, Step,
    StoreFailure, SystemFiles,
};

const CONTENT: ContentId = ContentId { inode: InodeId(0x203), version: Version(9) };

fn label() -> Label {
    let site = "/cern/cms".parse().unwrap();
    Label { site, place: "hall".to_owned(), disk: DiskId(7), generation: 2 }
}

fn new_disk(parent: &Path) -> std::path::PathBuf {
    let root = parent.join("disk");
    DiskDirectory::format(&root, &label(), b"").unwrap();
    root
}

fn record(octets: &[u8]) -> Record {
    Record {
        size: octets.len() as u64,
        root: *blake3::hash(octets).as_bytes(),
        checksums: Checksums { adler32: 1, crc32c: 2 },
        is_settled: false,
        ticket: vec![1; 10],
        claim: vec![2; 10],
    }
}

fn store(disk: &DiskDirectory, octets: &[u8]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut incoming = disk.begin(CONTENT, octets.len() as u64).unwrap();
    incoming.write(octets).unwrap();
    incoming.keep(&record(octets), &mut |step| steps.push(step)).unwrap();
    steps
}

fn open(root: &Path) -> (DiskDirectory, Scan) {
    DiskDirectory::open(root).unwrap()
}

fn object(root: &Path) -> std::path::PathBuf {
    root.join("objects/03/0000000000000203-0000000000000009")
}

#[test]
fn what_is_stored_is_found_again_with_all_that_was_known_of_it() {
    let parent = tempfile::tempdir().unwrap();
    let root = new_disk(parent.path());
    let (disk, scan) = open(&root);
    assert!(scan.replicas.is_empty());
    assert_eq!(store(&disk, b"octets"), Step::ALL, "in this order");
    drop(disk);
    let (disk, scan) = open(&root);
    assert_eq!(disk.label(), &label());
    assert_eq!(scan.replicas.get(&CONTENT), Some(&record(b"octets")));
    assert_eq!(fs::read(object(&root)).unwrap(), b"octets");
    disk.settle(CONTENT).unwrap();
    drop(disk);
    assert!(open(&root).1.replicas[&CONTENT].is_settled);
}

#[test]
fn a_disk_that_ends_after_any_step_has_all_of_a_content_or_none_of_it() {
    for last in Step::ALL {
        let parent = tempfile::tempdir().unwrap();
        let root = new_disk(parent.path());
        let (disk, _) = open(&root);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut incoming = disk.begin(CONTENT, 6).unwrap();
            incoming.write(b"octets").unwrap();
            let kept = incoming.keep(&record(b"octets"), &mut |step| {
                assert!(step != last, "the process ends here");
            });
            kept.unwrap();
        }));
        assert!(ended.is_err());
        drop(disk);
        let (_disk, scan) = open(&root);
        let is_whole = matches!(last, Step::DataPlaced | Step::DirectoriesSynced);
        assert_eq!(scan.replicas.contains_key(&CONTENT), is_whole, "{last:?}");
        assert_eq!(object(&root).exists(), is_whole, "{last:?}");
        assert_eq!(scan.quarantined, [], "{last:?}");
        let left: Vec<_> = fs::read_dir(root.join("incoming")).unwrap().collect();
        assert!(left.is_empty(), "{last:?}");
        let records: Vec<_> = fs::read_dir(root.join("records/03")).unwrap().collect();
        assert_eq!(records.len(), usize::from(is_whole), "{last:?}");
    }
}

#[test]
fn content_that_is_shorter_than_its_record_says_is_not_stored() {
    let parent = tempfile::tempdir().unwrap();
    let root = new_disk(parent.path());
    let (disk, _) = open(&root);
    let mut incoming = disk.begin(CONTENT, 6).unwrap();
    incoming.write(b"octets").unwrap();
    let longer = Record { size: 7, ..record(b"octets") };
    assert_eq!(incoming.keep(&longer, &mut |_| {}), Err(StoreFailure::Failing));
    assert!(!object(&root).exists());
}

#[test]
fn torn_replicas_are_put_into_quarantine_and_not_deleted() {
    type Spoil = dyn Fn(&Path);
    let spoil: [(&str, &Spoil); 3] = [
        ("cut", &|root| fs::write(object(root), b"oct").unwrap()),
        ("without a record", &|root| {
            fs::remove_file(root.join("records/03/0000000000000203-0000000000000009")).unwrap();
        }),
        ("with a torn record", &|root| {
            let path = root.join("records/03/0000000000000203-0000000000000009");
            let octets = fs::read(&path).unwrap();
            fs::write(&path, &octets[..octets.len() / 2]).unwrap();
        }),
    ];
    for (how, spoil) in spoil {
        let parent = tempfile::tempdir().unwrap();
        let root = new_disk(parent.path());
        store(&open(&root).0, b"octets");
        spoil(&root);
        let (_disk, scan) = open(&root);
        assert!(scan.replicas.is_empty(), "{how}");
        assert_eq!(scan.quarantined.len(), 1, "{how}");
        assert!(scan.quarantined[0].path.exists(), "{how}");
        assert!(!object(&root).exists(), "{how}: it is not served");
    }
}

/// A file system without room for one more name, for as long as it has none.
#[derive(Debug, Default)]
struct Full {
    system: SystemFiles,
    has_room: AtomicBool,
}

impl Full {
    fn room<T>(&self, then: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self.has_room.load(Ordering::Relaxed) {
            true => then(),
            false => Err(rustix::io::Errno::NOSPC.into()),
        }
    }
}

impl Files for Full {
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.room(|| self.system.create(path))
    }
    fn read(&self, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
        self.system.read(path, bytes_max)
    }
    fn read_at(&self, path: &Path, offset: u64, bytes_max: usize) -> io::Result<Vec<u8>> {
        self.system.read_at(path, offset, bytes_max)
    }
    fn append(&self, path: &Path, len: u64) -> io::Result<Box<dyn OpenFile>> {
        self.room(|| self.system.append(path, len))
    }
    fn facts(&self, path: &Path) -> io::Result<FileFacts> {
        self.system.facts(path)
    }
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.system.list(directory)
    }
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.room(|| self.system.create_directory(path))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.system.facts(from)?;
        self.room(|| self.system.rename(from, to))
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.system.remove(path)
    }
    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.system.sync_directory(path)
    }
    fn sync_all(&self, path: &Path) -> io::Result<()> {
        self.system.sync_all(path)
    }
    fn room(&self, path: &Path) -> io::Result<(u64, u64)> {
        let (free, total) = self.system.room(path)?;
        Ok((if self.has_room.load(Ordering::Relaxed) { free } else { 0 }, total))
    }
    fn is_read_only(&self, path: &Path) -> io::Result<bool> {
        self.system.is_read_only(path)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        self.system.lock(path)
    }
}

/// The disk ended: it could not put aside what a power cut had torn.
#[test]
fn a_disk_that_is_full_when_it_starts_hides_what_it_cannot_put_aside() {
    let parent = tempfile::tempdir().unwrap();
    let root = new_disk(parent.path());
    store(&open(&root).0, b"octets");
    fs::write(object(&root), b"oct").unwrap();
    fs::write(root.join("incoming/half"), b"half").unwrap();
    let files = Arc::new(Full::default());
    let (disk, scan) = DiskDirectory::open_in(files.clone(), &root).unwrap();
    assert!(scan.replicas.is_empty());
    let [found] = &scan.quarantined[..] else { panic!("{:?}", scan.quarantined) };
    assert!(!found.is_moved && found.path == object(&root));
    assert!(!root.join("incoming/half").exists(), "what can go has gone first");
    let path = b"03/0000000000000203-0000000000000009";
    assert!(disk.hidden().has_path(path), "it is not served");
    assert_eq!(disk.begin(CONTENT, 6).err(), Some(StoreFailure::Full));
    assert_eq!(fs::read(object(&root)).unwrap(), b"oct", "nor is it lost");

    files.has_room.store(true, Ordering::Relaxed);
    disk.probe().unwrap();
    assert!(!object(&root).exists(), "with room it is put aside");
    store(&disk, b"octets");
    assert!(!disk.hidden().has_path(path), "what came in its place is served");
    let aside = root.join("quarantine/0000000000000203-0000000000000009");
    assert_eq!(fs::read(&aside).unwrap(), b"oct");
    assert!(aside.with_extension("record").exists());
    drop(disk);
    assert_eq!(open(&root).1.replicas.get(&CONTENT), Some(&record(b"octets")));
}

#[test]
fn what_a_start_removes_is_named_or_counted() {
    let parent = tempfile::tempdir().unwrap();
    let root = new_disk(parent.path());
    store(&open(&root).0, b"octets");
    fs::write(root.join("incoming/half"), b"half").unwrap();
    for number in 0..101 {
        let name = format!("records/07/{:016x}-{:016x}", number * 256 + 7, 9);
        fs::write(root.join(name), b"x").unwrap();
    }
    let (disk, scan) = open(&root);
    assert_eq!(scan.removed.named[0], (root.join("incoming/half"), "it was being written"));
    assert!(
        scan.removed.named[1..].iter().all(|(_, why)| *why == "it is a record without content")
    );
    assert_eq!((scan.removed.named.len(), scan.removed.more), (100, 2));
    assert!(scan.removed.named.iter().all(|(path, _)| !path.exists()));
    assert!(scan.replicas.contains_key(&CONTENT), "what is whole stays");
    drop(disk);
    assert_eq!(open(&root).1.removed, byname_disk::Removed::default());
}

#[test]
fn files_that_are_no_contents_are_put_aside() {
    let parent = tempfile::tempdir().unwrap();
    let root = new_disk(parent.path());
    store(&open(&root).0, b"octets");
    for name in ["objects/03/notes", "objects/04/0000000000000203-0000000000000009"] {
        fs::write(root.join(name), b"x").unwrap();
    }
    let (_disk, scan) = open(&root);
    assert_eq!(scan.quarantined.len(), 2);
    let kept = scan.replicas.get(&CONTENT);
    assert_eq!(kept, Some(&record(b"octets")), "nothing happens to the one in its place");
}

/// A disk starts whatever somebody has copied into it.
#[test]
fn files_in_the_place_of_directories_are_put_aside() {
    let parent = tempfile::tempdir().unwrap();
    let root = new_disk(parent.path());
    store(&open(&root).0, b"octets");
    for name in ["objects/foreign", "records/foreign", "objects/zz"] {
        fs::write(root.join(name), b"x").unwrap();
    }
    let (disk, scan) = open(&root);
    assert_eq!(scan.quarantined.len(), 3, "{:?}", scan.quarantined);
    assert!(scan.quarantined.iter().all(|it| it.is_moved && it.path.exists()));
    assert_eq!(scan.replicas.get(&CONTENT), Some(&record(b"octets")));
    drop(disk);
    assert!(open(&root).1.quarantined.is_empty());
}

#[test]
fn a_disk_is_made_in_a_directory_that_is_there() {
    let parent = tempfile::tempdir().unwrap();
    let root = parent.path().join("not mounted/disk");
    let refused = DiskDirectory::format(&root, &label(), b"").unwrap_err();
    assert!(refused.to_string().contains("not mounted"), "{refused}");
    assert!(!parent.path().join("not mounted").exists());
}

#[test]
fn what_was_dropped_stays_dropped_whatever_a_crash_left() {
    let parent = tempfile::tempdir().unwrap();
    let root = new_disk(parent.path());
    let (disk, _) = open(&root);
    store(&disk, b"octets");
    let kept = fs::read(object(&root)).unwrap();
    disk.remove(CONTENT).unwrap();
    assert!(!object(&root).exists());
    disk.remove(CONTENT).unwrap();
    drop(disk);
    // The power failed between the note and the removal.
    fs::write(object(&root), kept).unwrap();
    let (_disk, scan) = open(&root);
    assert!(scan.dropped.contains(&CONTENT) && scan.replicas.is_empty());
    assert!(!object(&root).exists());
}

#[test]
fn content_that_was_dropped_is_not_taken_again_whatever_is_remembered() {
    let parent = tempfile::tempdir().unwrap();
    let root = new_disk(parent.path());
    let (disk, _) = open(&root);
    store(&disk, b"octets");
    disk.remove(CONTENT).unwrap();
    assert_eq!(disk.begin(CONTENT, 6).err(), Some(StoreFailure::Stopped));
}

#[test]
fn the_highest_epoch_survives() {
    let parent = tempfile::tempdir().unwrap();
    let root = new_disk(parent.path());
    let (disk, scan) = open(&root);
    assert_eq!(scan.epoch, LeaseEpoch(0));
    disk.keep_epoch(LeaseEpoch(1 << 50)).unwrap();
    drop(disk);
    assert_eq!(open(&root).1.epoch, LeaseEpoch(1 << 50));
    fs::write(root.join("epoch"), "12").unwrap();
    assert!(matches!(DiskDirectory::open(&root), Err(DiskError::BadEpoch { .. })), "cut off");
}

#[test]
fn a_copy_of_a_disk_is_refused_and_one_that_was_moved_is_not() {
    let parent = tempfile::tempdir().unwrap();
    let root = new_disk(parent.path());
    let moved = parent.path().join("moved");
    fs::rename(&root, &moved).unwrap();
    drop(open(&moved));
    let copy = parent.path().join("copy");
    let status = std::process::Command::new("cp").arg("-a").args([&moved, &copy]).status();
    assert!(status.unwrap().success());
    let refused = DiskDirectory::open(&copy);
    assert!(matches!(refused, Err(DiskError::Cloned { disk: 7, .. })), "{refused:?}");
}

#[test]
fn one_process_serves_a_disk_and_other_directories_are_none() {
    let parent = tempfile::tempdir().unwrap();
    let root = new_disk(parent.path());
    let open_now = open(&root);
    assert!(matches!(DiskDirectory::open(&root), Err(DiskError::Locked { .. })));
    drop(open_now);
    let other = parent.path().join("other");
    fs::create_dir(&other).unwrap();
    assert!(matches!(DiskDirectory::open(&other), Err(DiskError::NoLabel { .. })));
    assert!(matches!(DiskDirectory::format(&root, &label(), b""), Err(DiskError::NotEmpty { .. })));
    fs::write(root.join("label"), "byname disk 2\n").unwrap();
    assert!(matches!(DiskDirectory::open(&root), Err(DiskError::BadLabel { .. })));
}

#[test]
fn content_for_which_there_is_no_room_is_refused_before_it_comes() {
    let parent = tempfile::tempdir().unwrap();
    let root = new_disk(parent.path());
    let (disk, _) = open(&root);
    let (free, _) = disk.room().unwrap();
    let refused = disk.begin(CONTENT, free.saturating_mul(2).min(1 << 45));
    assert_eq!(refused.err(), Some(StoreFailure::Full));
    let left: Vec<_> = fs::read_dir(root.join("incoming")).unwrap().collect();
    assert!(left.is_empty());
    disk.probe().unwrap();
}
