//! `byname site prove`: disks show that they have octets, and one that has not cannot.

use crate::disks::Site;
use crate::harness::noise;

/// The octets of a file on a disk.
fn object(site: &Site, disk: usize, octets: &[u8]) -> std::path::PathBuf {
    let mut objects = site.contents(disk).into_iter();
    objects.find(|path| std::fs::read(path).unwrap() == octets).unwrap()
}

#[test]
fn a_disk_without_the_octets_cannot_prove_that_it_has_them() {
    let site = Site::new(2, 2);
    let files = [("small", 700), ("altered", 40_000), ("gone", 50_000), ("whole", 300_000)];
    let octets = files.map(|(name, len)| (name, noise(len, len as u64)));
    for (name, octets) in &octets {
        site.put(name, octets).unwrap();
    }
    let all = ["prove", "/lab/small", "/lab/altered", "/lab/gone", "/lab/whole"];
    assert_eq!(site.run(&all).ok().stdout(), "8 replicas proved\n");
    // The disk goes on to say that it has what its records are of.
    std::fs::write(object(&site, 0, &octets[1].1), noise(40_000, 9)).unwrap();
    std::fs::remove_file(object(&site, 1, &octets[2].1)).unwrap();
    site.run(&["fsck", "--disks"]).ok();
    let found = site.run(&all).fails_with(1, "").stdout();
    let lines: Vec<&str> = found.lines().collect();
    let [altered, gone, last] = lines[..] else { panic!("{found}") };
    assert!(altered.contains("/lab/altered"), "{found}");
    assert!(altered.ends_with("what it shows is not what was written"), "{found}");
    assert!(gone.contains("/lab/gone"), "{found}");
    assert!(gone.ends_with("the disk does not have the content"), "{found}");
    assert_eq!(last, "8 replicas, 2 not proved");
    // Of a disk so many are drawn at random; of one with four these.
    let line = |disk: &str| -> Vec<serde_json::Value> {
        let listed = site.run(&["prove", disk, "--json"]).stdout();
        listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let disks = site.run(&["disk", "ls", "--json"]).ok().stdout();
    for disk in disks.lines() {
        let disk: serde_json::Value = serde_json::from_str(disk).unwrap();
        let proofs = line(&disk["disk"].to_string());
        assert_eq!(proofs.len(), 4, "{proofs:?}");
        assert_eq!(proofs.iter().filter(|it| it["proved"] == false).count(), 1, "{proofs:?}");
    }
    site.run(&["prove", "99"]).fails_with(3, "");
    site.run(&["prove", "/lab/none"]).fails_with(3, "");
}
