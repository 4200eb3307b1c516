//! Disks that are full of what stays for readers only.

use byname_catalog::id::{ContentId, DiskId};
use byname_catalog::{
    AddDisk, Answer, AttributeChanges, Command, Policy, Refusal, Resolution, Usage,
};

use crate::support::{TestSite, place};

/// Octets that each of the two small disks takes.
const CAPACITY: u64 = 1000;

/// A site with a directory whose content goes to two small disks.
fn site() -> (TestSite, [DiskId; 2]) {
    let (mut site, _) = TestSite::in_memory();
    let disks = ["x", "y"].map(|server| {
        let (space, label) = ("small".into(), "room".into());
        let add = AddDisk { space, server: server.into(), label, capacity_bytes: CAPACITY };
        match site.run("op", Command::AddDisk(add)) {
            Ok(Answer::Disk(id)) => id,
            other => panic!("{other:?}"),
        }
    });
    site.mkdir("op", "d").unwrap();
    let changes = AttributeChanges { mode: Some(0o777), ..AttributeChanges::default() };
    site.run("op", Command::SetAttributes { place: place("d"), changes }).unwrap();
    let policy = Policy { space: "small".into(), replica_count: 2, receipt_count: 2 };
    site.run("op", Command::SetPolicy { place: place("d"), policy }).unwrap();
    (site, disks)
}

fn is_kept(site: &TestSite, disk: DiskId, content: ContentId) -> bool {
    site.reader("op").resolution(disk, content).unwrap() == Resolution::Keep
}

/// A user whose quota is small fills disks with what counts for nobody.
#[test]
fn what_is_replaced_again_and_again_fills_no_disk() {
    let (mut site, [disk, _]) = site();
    let all: Vec<ContentId> = (0..20).map(|_| site.put("anna", "d/f", 300)).collect();
    let kept = all.iter().filter(|content| is_kept(&site, disk, **content)).count();
    assert_eq!(kept, 3, "as many as there is room for, the current one among them");
    assert!(is_kept(&site, disk, all[18]) && is_kept(&site, disk, all[17]), "the last ones");
    // The same of what is removed.
    for index in 0..20 {
        let path = format!("d/g{index}");
        site.put("bert", &path, 300);
        site.run("bert", Command::Unlink { place: place(&path) }).unwrap();
    }
    site.put("anna", "d/other", 600);
    assert!(is_kept(&site, disk, all[19]), "what has a name stays");
    let used: Usage =
        site.reader("op").usage(&byname_catalog::Subject::Space("small".into())).unwrap().0;
    assert_eq!(used.bytes, 900);
}

#[test]
fn what_is_held_or_has_a_name_or_would_not_be_enough_stays() {
    let (mut site, [disk, _]) = site();
    let [first, second] = [300, 310].map(|size| site.put("anna", "d/f", size));
    // More than there is, and more than there would be.
    for size in [CAPACITY + 1, CAPACITY - 309] {
        assert_eq!(site.create("bert", "d/g", size), Err(Refusal::NoSpace));
        assert!(is_kept(&site, disk, first) && is_kept(&site, disk, second));
    }
    site.run("bert", Command::Hold { content: first }).unwrap();
    assert_eq!(site.create("bert", "d/g", 500), Err(Refusal::NoSpace));
    site.run("bert", Command::Release { content: first }).unwrap();
    let ticket = site.create("bert", "d/g", 500).unwrap();
    assert!(!is_kept(&site, disk, first) && is_kept(&site, disk, second));
    site.commit("bert", &ticket, 500).unwrap();
    assert_eq!(site.create("bert", "d/h", 500), Err(Refusal::NoSpace), "nothing can go");
}
