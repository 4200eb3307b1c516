//! A disk with a file system of its own, on which nothing more can be written.

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
