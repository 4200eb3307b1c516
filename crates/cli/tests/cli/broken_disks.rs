//! A disk with a file system of its own, which is full or cannot be written to.

use crate::disks::Site;
use crate::harness::{noise, write};
use crate::puts::{expect, run};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// A small file system in memory, there until it is dropped.
struct SmallFileSystem(PathBuf);

impl SmallFileSystem {
    /// At this directory; `None` where nobody may mount one, which is said.
    fn at(directory: PathBuf, test: &str) -> Option<Self> {
        std::fs::create_dir_all(&directory).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=3m", "tmpfs"]).arg(&directory);
        if rustix::process::geteuid().is_root() && mount.output().unwrap().status.success() {
            return Some(Self(directory));
        }
        let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: root who may mount a tmpfs");
        None
    }
}

impl SmallFileSystem {
    /// From now on it can be written to, or not.
    fn remount(&self, how: &str) {
        let mut mount = Command::new("mount");
        mount.args(["-o", &format!("remount,{how}")]).arg(&self.0);
        assert!(mount.status().unwrap().success(), "{how}");
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        // Whoever serves it may not have ended yet.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Scenario 11, a full disk: its catalog believes that it has room.
#[test]
fn a_full_disk_is_told_and_replaced_and_serves_what_it_has() {
    let mut site = Site::new(0, 1);
    let test = "a_full_disk_is_told_and_replaced_and_serves_what_it_has";
    let directory = site.home.path().join("d0");
    let Some(_file_system) = SmallFileSystem::at(directory, test) else { return };
    site.add_disk(0);
    site.disks.push(Some(site.start_disk(0)));
    let (small, large) = (noise(100_000, 1), noise(5_000_000, 2));
    let local = site.home.path().join("large");
    write(&local, &large);
    let put = ["put", local.to_str().unwrap(), "/lab/large"];
    run(&site, &put).fails_with(1, "the disk is full");
    run(&site, &["stat", "/lab/large"]).fails_with(3, "");
    site.await_status("the disk is full");
    assert!(site.contents(0).is_empty(), "nothing of it is kept");
    site.put("small", &small).unwrap();
    expect(&site, "/lab/small", &small);
    site.await_status("OK");

    // With another disk that is no obstacle.
    site.add_disk(1);
    site.disks.push(Some(site.start_disk(1)));
    run(&site, &put).ok();
    expect(&site, "/lab/large", &large);
    assert_eq!(site.contents(1).len(), 1);
    assert!(site.read("small").ok().bytes() == small);
    site.check();
}

/// Scenario 11, a disk that has become read-only: its server starts, and what does not fit together
/// is not served from there either.
#[test]
fn a_disk_that_is_read_only_at_its_start_serves_what_it_has() {
    let mut site = Site::new(0, 1);
    let test = "a_disk_that_is_read_only_at_its_start_serves_what_it_has";
    let directory = site.home.path().join("d0");
    let Some(file_system) = SmallFileSystem::at(directory, test) else { return };
    site.add_disk(0);
    site.disks.push(Some(site.start_disk(0)));
    let (kept, torn) = (noise(100_000, 1), noise(50_000, 2));
    site.put("torn", &torn).unwrap();
    let object = site.contents(0).remove(0);
    site.put("kept", &kept).unwrap();
    site.disks[0].take().unwrap().kill();
    std::fs::File::options().write(true).open(&object).unwrap().set_len(40_000).unwrap();
    file_system.remount("ro");

    site.disks[0] = Some(site.start_disk(0));
    let log = site.disks[0].as_ref().unwrap().log();
    assert!(log.contains("is on a read-only file system"), "{log}");
    assert!(log.contains("not served, and not put into quarantine"), "{log}");
    site.home.run(&["disk", "d0"]).fails_with(7, "another process serves this disk");
    expect(&site, "/lab/kept", &kept);
    run(&site, &["cs", "erase", "/lab"]).ok();
    let read = run(&site, &["cat", "/lab/torn", "--timeout", "3"]);
    assert!(read.stdout().is_empty(), "nothing of it is served");
    site.await_status("the disk cannot be written to");
    assert!(site.put("new", &torn).is_err(), "it takes nothing");
    run(&site, &["site", "fsck", "--disks"]).fails_with(1, "");

    // Readers were never sent elsewhere; writers are.
    site.add_disk(1);
    site.disks.push(Some(site.start_disk(1)));
    site.put("new", &torn).unwrap();
    expect(&site, "/lab/new", &torn);

    site.disks[0].take().unwrap().kill();
    file_system.remount("rw");
    site.disks[0] = Some(site.start_disk(0));
    let log = site.disks[0].as_ref().unwrap().log();
    assert!(log.contains("put into quarantine"), "{log}");
    expect(&site, "/lab/kept", &kept);
    site.await_status("OK");
    site.check();
}
