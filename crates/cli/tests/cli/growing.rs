//! Files that grow and are put again and again, with real processes.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::disks::Site;
use crate::harness::{noise, wait_for};

/// Octets by which the file grows each time.
const ADDED: usize = 7001;

fn grown(content: &[u8], round: usize) -> &[u8] {
    &content[..100_000 + round * ADDED]
}

/// Contents on a disk, the newest version last.
fn objects(site: &Site, disk: usize) -> Vec<PathBuf> {
    let shards = fs::read_dir(site.home.path().join(format!("d{disk}/objects"))).unwrap();
    let files = shards.flat_map(|shard| fs::read_dir(shard.unwrap().path()).unwrap());
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn a_file_goes_on_growing_whoever_is_killed_and_nothing_of_it_is_lost() {
    let mut site = Site::new(3, 2);
    let content = noise(100_000 + 24 * ADDED, 1);
    for round in 0..24 {
        match round {
            // In turn, each back before the next one goes.
            4 | 10 | 16 => {
                let disk = (round - 4) / 6;
                site.disks[disk].take().unwrap().kill();
            }
            7 | 13 | 19 => {
                let disk = (round - 7) / 6;
                site.disks[disk] = Some(site.start_disk(disk));
                site.await_status("OK");
            }
            22 => {
                site.head.take().unwrap().kill();
                site.head = Some(site.start_head());
            }
            _ => {}
        }
        site.put("log", grown(&content, round)).unwrap();
        let read = || site.read("log").bytes() == grown(&content, round);
        wait_for("what was put", read, || format!("round {round}"));
    }
    site.await_status("OK");
    site.run(&["fsck", "--disks", "--content"]).ok();
    site.check();
}

#[test]
fn rot_in_what_a_file_grew_from_is_found_and_read_around() {
    let site = Site::new(2, 2);
    let content = noise(100_000 + 4 * ADDED, 2);
    for round in 0..3 {
        site.put("log", grown(&content, round)).unwrap();
    }
    let newest = objects(&site, 0).pop().unwrap();
    let file = fs::File::options().write(true).open(&newest).unwrap();
    file.write_all_at(&[content[9] ^ 1], 9).unwrap();
    site.put("log", grown(&content, 3)).unwrap();
    // The disk did not read it again: the new version has the rot of the one before.
    let of_rotten = fs::read(objects(&site, 0).pop().unwrap()).unwrap();
    assert_eq!((of_rotten.len(), of_rotten[9]), (grown(&content, 3).len(), content[9] ^ 1));
    let read = || site.read("log").bytes() == grown(&content, 3);
    wait_for("what was put", read, || "the other disk has it".into());
    let found = site.run(&["fsck", "--disks", "--content", "--json"]);
    assert!(found.stdout().contains("different-content"), "{}", found.stdout());
}
