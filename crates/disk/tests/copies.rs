//! Copies of the catalog's rows in a disk's directory: what is kept, what takes whose place, and
//! what a crash or a bad disk leaves.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use byname_catalog::id::{DiskId, LeaseEpoch, TransactionNumber};
use byname_disk::{DiskDirectory, Editions, KeepOrder, Label};
use byname_packet::{Interest, Name};
use byname_security::key::{KeyPair, KeySigner};
use byname_site::{CatalogCopy, CopyPoint, DiskName, Frame, Keep, SiteName, Stamp, frame};

fn site() -> SiteName {
    SiteName::new("/site".parse().unwrap()).unwrap()
}

fn new_disk(parent: &Path) -> PathBuf {
    let root = parent.join("disk");
    let label = Label {
        site: site().view().to_name(),
        place: "hall".to_owned(),
        disk: DiskId(7),
        generation: 1,
    };
    DiskDirectory::format(&root, &label, b"certificate").unwrap();
    root
}

fn open(root: &Path) -> DiskDirectory {
    DiskDirectory::open(root).unwrap().0
}

/// The beginning of an edition.
fn begin(edition: u64, through: Option<u64>, rows: &[u8]) -> KeepOrder {
    order(edition, CopyPoint::default(), through, rows)
}

/// What follows an order.
fn next(before: &KeepOrder, through: Option<u64>, rows: &[u8]) -> KeepOrder {
    order(before.order.edition, before.order.end(), through, rows)
}

/// Nobody verifies here: that is done before.
fn order(edition: u64, at: CopyPoint, through: Option<u64>, rows: &[u8]) -> KeepOrder {
    let key = Arc::new(KeyPair::ed25519_from_seed(&[1; 32]));
    let name: Name = "/site/KEY/k/self/v=1".parse().unwrap();
    let signer = KeySigner::new(key, name);
    let through = through.map(TransactionNumber);
    let rows = rows.to_vec();
    let order = Keep { epoch: LeaseEpoch(1), generation: 1, edition, at, through, rows };
    let disk = DiskName { place: "hall".to_owned(), id: DiskId(7) };
    let stamp = Stamp { time_ms: 1, nonce: [1; 8] };
    let wire = order.encode(&site(), &disk, &signer, stamp).unwrap();
    KeepOrder { order, wire }
}

/// Edition, octets of rows, and the last complete transaction.
fn complete(disk: &DiskDirectory) -> Option<(u64, u64, u64)> {
    let brief = |copy: CatalogCopy| (copy.edition, copy.length, copy.through.0);
    disk.editions().complete.map(brief)
}

/// The rows of a copy, as they are read back.
fn rows(disk: &DiskDirectory, edition: u64) -> Vec<u8> {
    let mut octets = Vec::new();
    loop {
        let page = disk.read_copy(edition, octets.len() as u64).unwrap();
        if page.is_empty() {
            break;
        }
        octets.extend(page);
    }
    let (mut rest, mut rows) = (octets.as_slice(), Vec::new());
    while let Frame::Order(wire, behind) = Frame::first(rest) {
        let (_, order) = Keep::decode(&site(), &Interest::decode(wire).unwrap()).unwrap();
        rows.extend(order.rows);
        rest = behind;
    }
    assert!(rest.is_empty());
    rows
}

#[test]
fn what_was_kept_is_found_again_and_goes_on() {
    let parent = tempfile::tempdir().unwrap();
    let root = new_disk(parent.path());
    let long = vec![7; 6144];
    let first = begin(1, None, &long);
    let second = next(&first, Some(40), b"ab");
    open(&root).keep_rows(&[first, second.clone()]).unwrap();
    let disk = open(&root);
    assert_eq!(complete(&disk), Some((1, 6146, 40)));
    let third = next(&second, Some(41), b"cd");
    disk.keep_rows(std::slice::from_ref(&third)).unwrap();
    let last = next(&third, Some(43), b"");
    disk.keep_rows(std::slice::from_ref(&last)).unwrap();
    let before = disk.editions();
    let copy = before.complete.unwrap();
    assert_eq!(copy.end(), last.order.end());
    let proof = disk.read_copy(1, copy.last).unwrap();
    assert_eq!(proof, frame(&last.wire), "the last order is where it is said to be");
    drop(disk);
    let disk = open(&root);
    assert_eq!(disk.editions(), before);
    assert_eq!(complete(&disk), Some((1, 6148, 43)));
    assert_eq!(rows(&disk, 1), [long.as_slice(), b"abcd"].concat());
}

#[test]
fn orders_that_are_not_the_next_of_a_copy_change_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let root = new_disk(parent.path());
    let disk = open(&root);
    let first = begin(3, Some(40), b"abcd");
    disk.keep_rows(std::slice::from_ref(&first)).unwrap();
    let kept = disk.editions();
    let end = first.order.end();
    let others = [
        first.clone(),
        order(3, CopyPoint { length: 2, ..end }, Some(41), b"x"),
        order(3, CopyPoint { length: 5, ..end }, Some(41), b"x"),
        order(3, CopyPoint { digest: [0; 32], ..end }, Some(41), b"behind other rows"),
        order(3, CopyPoint { through: TransactionNumber(39), ..end }, Some(41), b"x"),
        next(&first, Some(39), b"older"),
        next(&first, Some(40), b""),
        begin(2, Some(50), b"an edition that was begun before"),
        order(4, end, None, b"one that was never begun"),
    ];
    disk.keep_rows(&others).unwrap();
    assert_eq!(disk.editions(), kept);
    drop(disk);
    assert_eq!(rows(&open(&root), 3), b"abcd");
}

#[test]
fn a_new_edition_takes_the_place_of_the_old_one_when_it_is_complete() {
    let parent = tempfile::tempdir().unwrap();
    let root = new_disk(parent.path());
    let disk = open(&root);
    let (old, new) = (begin(1, Some(40), b"old"), begin(2, None, b"ne"));
    disk.keep_rows(&[old.clone(), new.clone()]).unwrap();
    assert_eq!(complete(&disk), Some((1, 3, 40)), "half of the new one");
    // The old one goes on meanwhile.
    disk.keep_rows(&[next(&old, Some(41), b"er")]).unwrap();
    drop(disk);
    let disk = open(&root);
    let Editions { complete: old, building } = disk.editions();
    assert_eq!(old.map(|copy| (copy.edition, copy.through.0)), Some((1, 41)));
    assert_eq!(building.map(|copy| (copy.edition, copy.length, copy.base)), Some((2, 2, 0)));
    disk.keep_rows(&[next(&new, Some(42), b"w")]).unwrap();
    assert_eq!((complete(&disk), disk.editions().building), (Some((2, 3, 42)), None));
    assert_eq!(rows(&disk, 2), b"new");
    let files: Vec<_> = fs::read_dir(root.join("catalog")).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
}

#[test]
fn what_is_torn_or_has_gone_bad_counts_only_up_to_there() {
    let parent = tempfile::tempdir().unwrap();
    let root = new_disk(parent.path());
    let one = begin(1, Some(40), b"ab");
    let two = next(&one, Some(41), b"cd");
    open(&root).keep_rows(&[one, two.clone()]).unwrap();
    let path = root.join("catalog").join("0000000000000001");
    let whole = fs::read(&path).unwrap();
    let Frame::Order(_, behind) = Frame::first(&whole) else { panic!("an order") };
    let first = whole.len() - behind.len();
    // A power cut leaves zeros, or less than was written.
    for torn in [[&whole[..], &[0; 5000]].concat(), [&whole[..], &whole[..99]].concat()] {
        fs::write(&path, torn).unwrap();
        let disk = open(&root);
        assert_eq!(complete(&disk), Some((1, 4, 41)));
        disk.keep_rows(&[next(&two, Some(42), b"ef")]).unwrap();
        drop(disk);
        assert_eq!(rows(&open(&root), 1), b"abcdef", "what was torn is cut off");
    }
    for at in [first + 3, first + 40, whole.len() - 1] {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        fs::write(&path, bad).unwrap();
        assert_eq!(complete(&open(&root)), Some((1, 2, 40)), "octet {at}");
    }
}

#[test]
fn a_disk_made_before_there_were_copies_gets_one() {
    let parent = tempfile::tempdir().unwrap();
    let root = new_disk(parent.path());
    fs::remove_dir(root.join("catalog")).unwrap();
    let disk = open(&root);
    assert_eq!(disk.editions(), Editions::default());
    disk.keep_rows(&[begin(1, Some(1), b"ab")]).unwrap();
    drop(disk);
    assert_eq!(complete(&open(&root)), Some((1, 2, 1)));
}
