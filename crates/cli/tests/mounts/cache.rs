//! A mount and the site cache: the second mount reads from the disk, and bad disks harm nobody.

use crate::harness::noise;
use crate::scene::{Scene, can_mount, is_root, sh};
use std::path::Path;

const SIZE: usize = 6_000_001;

fn large(directory: &Path) {
    std::fs::write(directory.join("large"), noise(SIZE, 7)).unwrap();
    std::fs::write(directory.join("other"), noise(SIZE, 8)).unwrap();
}

fn attribute(path: &Path, name: &str) -> rustix::io::Result<String> {
    let mut value = [0; 100];
    let length = rustix::fs::getxattr(path, name, &mut value[..])?;
    Ok(String::from_utf8(value[..length].to_vec()).unwrap())
}

fn cached_bytes(path: &Path) -> String {
    attribute(path, "user.byname.cached").unwrap()
}

/// Reads a file of the mount and compares it with the source.
fn assert_same(scene: &Scene, name: &str) {
    let read = std::fs::read(scene.mount.join(name)).unwrap();
    assert!(read == std::fs::read(scene.source.join(name)).unwrap(), "{name}");
}

#[test]
fn a_second_mount_reads_from_the_cache_what_the_first_has_read() {
    if !can_mount("a_second_mount_reads_from_the_cache_what_the_first_has_read") {
        return;
    }
    let mut scene = Scene::new(large);
    let large = scene.mount.join("large");
    assert_eq!(cached_bytes(&large), "0", "also before its publisher has hashed it");
    let has_root = || {
        std::fs::File::open(&large).unwrap();
        attribute(&large, "user.byname.root").is_ok()
    };
    crate::harness::wait_for("the root of the file", has_root, || scene.log());
    assert_eq!(cached_bytes(&large), "0");
    assert_same(&scene, "large");
    let is_cached = || cached_bytes(&large) == SIZE.to_string();
    crate::harness::wait_for("units in the cache", is_cached, || scene.log());
    scene.umount();
    scene.mount(&[]);
    let open = std::fs::File::open(scene.mount.join("large")).unwrap();
    scene.up.daemon.kill();
    let mut read = Vec::new();
    std::io::Read::read_to_end(&mut &open, &mut read).unwrap();
    assert!(read == noise(SIZE, 7));
    drop(open);
}

#[test]
fn without_a_cache_nothing_is_kept_and_there_is_no_such_attribute() {
    if !can_mount("without_a_cache_nothing_is_kept_and_there_is_no_such_attribute") {
        return;
    }
    let scene = Scene::with(&[], &["--no-cache"], large);
    assert_same(&scene, "large");
    let got = attribute(&scene.mount.join("large"), "user.byname.cached");
    assert_eq!(got, Err(rustix::io::Errno::NODATA));
    assert!(!scene.reader.path().join("home/cache").exists());
}

#[test]
fn a_cache_disk_that_is_full_and_then_read_only_harms_no_reader() {
    if !is_root("a_cache_disk_that_is_full_and_then_read_only_harms_no_reader") {
        return;
    }
    let scene = Scene::unmounted(&[], large);
    let cache = scene.reader.work("home/cache");
    sh("mount -t tmpfs -o size=4m tmpfs \"$1\"", &[&cache]);
    let unmounted = Unmounted(&cache);
    scene.mount(&[]);
    assert_same(&scene, "large");
    assert_same(&scene, "other");
    scene.umount();
    sh("mount -o remount,ro \"$1\"", &[&cache]);
    scene.mount(&[]);
    assert_same(&scene, "large");
    assert_same(&scene, "other");
    scene.umount();
    drop(unmounted);
}

/// Takes a disk away at the end of a test.
struct Unmounted<'a>(&'a Path);

impl Drop for Unmounted<'_> {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0).status();
    }
}
