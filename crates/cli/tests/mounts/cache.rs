//! A mount and the site cache: the second mount reads from the disk, and bad disks harm nobody.

use crate::harness::{noise, signal, wait_for};
use crate::scene::{Scene, can_mount, is_root, sh};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Reads a file that is not in the cache, until it is.
fn warm(scene: &Scene, name: &str) {
    let path = scene.mount.join(name);
    assert_eq!(cached_bytes(&path), "0", "also before its publisher has hashed it");
    let has_root = || {
        std::fs::File::open(&path).unwrap();
        attribute(&path, "user.byname.root").is_ok()
    };
    wait_for("the root of the file", has_root, || scene.log());
    assert_eq!(cached_bytes(&path), "0");
    assert_same(scene, name);
    let is_cached = || cached_bytes(&path) == SIZE.to_string();
    wait_for("units in the cache", is_cached, || scene.log());
}

#[test]
fn a_second_mount_reads_from_the_cache_what_the_first_has_read() {
    if !can_mount("a_second_mount_reads_from_the_cache_what_the_first_has_read") {
        return;
    }
    let mut scene = Scene::new(large);
    warm(&scene, "large");
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

/// True if a command succeeds; otherwise says that a test is skipped.
fn succeeds(test: &str, script: &str, arguments: &[&Path]) -> bool {
    let done = Command::new("sh").args(["-c", script, "sh"]).args(arguments).output().unwrap();
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {script}: {said}");
    }
    done.status.success()
}

/// Ends what a test has stopped, whatever becomes of it.
struct Undone<F: FnMut()>(F);

impl<F: FnMut()> Drop for Undone<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A file system of its own for the reader's cache, and the image that it is in; `None` where none
/// can be made.
fn disk_for_the_cache(test: &str, scene: &Scene) -> Option<(PathBuf, PathBuf)> {
    let (cache, image) = (scene.reader.work("home/cache"), scene.reader.path().join("image"));
    let made = "truncate -s 4G \"$1\" && mkfs.ext4 -q \"$1\" && mount -o loop \"$1\" \"$2\" && \
                chmod 700 \"$2\"";
    succeeds(test, made, &[&image, &cache]).then_some((cache, image))
}

#[test]
fn a_cache_disk_that_is_frozen_holds_up_no_reader() {
    const TEST: &str = "a_cache_disk_that_is_frozen_holds_up_no_reader";
    if !is_root(TEST) {
        return;
    }
    let scene = Scene::unmounted(&[], large);
    let Some((cache, _)) = disk_for_the_cache(TEST, &scene) else { return };
    let unmounted = Unmounted(&cache);
    scene.mount(&[]);
    warm(&scene, "large");
    sh("fsfreeze -f \"$1\"", &[&cache]);
    let thawed = Undone(|| {
        let _ = Command::new("fsfreeze").arg("-u").arg(&cache).status();
    });
    // What has to be written to the disk hangs from now on.
    assert_same(&scene, "other");
    scene.umount();
    scene.mount(&[]);
    assert_same(&scene, "large");
    assert_same(&scene, "other");
    scene.umount();
    drop(thawed);
    scene.mount(&[]);
    assert_same(&scene, "large");
    scene.umount();
    drop(unmounted);
}

#[test]
fn a_cache_disk_whose_file_system_is_stopped_holds_up_no_reader() {
    const TEST: &str = "a_cache_disk_whose_file_system_is_stopped_holds_up_no_reader";
    if !is_root(TEST) || !succeeds(TEST, "command -v rclone", &[]) {
        return;
    }
    let scene = Scene::unmounted(&[], large);
    let (cache, below) = (scene.reader.work("home/cache"), scene.reader.work("below"));
    let mut rclone = Command::new("rclone")
        .args(["mount", "--vfs-cache-mode", "full", "--cache-dir"])
        .arg(scene.reader.work("rclone"))
        .args([&below, &cache])
        .spawn()
        .unwrap();
    let pid = rclone.id();
    let ended = Undone(|| {
        // In this order: what is stopped cannot be unmounted in peace.
        let _ = Command::new("kill").args(["-CONT", &pid.to_string()]).status();
        let _ = Command::new("umount").arg("-l").arg(&cache).status();
        let _ = rclone.kill();
        let _ = rclone.wait();
    });
    let is_mounted = || Command::new("mountpoint").arg("-q").arg(&cache).status().unwrap();
    wait_for("rclone's mount", || is_mounted().success(), String::new);
    scene.mount(&[]);
    warm(&scene, "large");
    signal(pid, "STOP");
    assert_same(&scene, "other");
    assert_same(&scene, "large");
    scene.umount();
    signal(pid, "CONT");
    scene.mount(&[]);
    assert_same(&scene, "other");
    scene.umount();
    drop(ended);
}

/// What a power cut leaves of a cache: a copy of its disk, taken from below the file system while
/// it is written to, so that nothing of it is there that was not written back.
#[test]
fn a_power_cut_below_the_file_system_costs_fetches_and_never_a_wrong_byte() {
    const TEST: &str = "a_power_cut_below_the_file_system_costs_fetches_and_never_a_wrong_byte";
    if !is_root(TEST) {
        return;
    }
    let scene = Scene::unmounted(&[], large);
    let Some((cache, image)) = disk_for_the_cache(TEST, &scene) else { return };
    let unmounted = Unmounted(&cache);
    // What the mount before, which ends meanwhile, has open is not dropped.
    let is_empty = || {
        scene.reader.run(&["cache", "drop", "--all"]).ok();
        scene.reader.run(&["cache", "ls", "--json"]).ok().stdout().is_empty()
    };
    for is_synced in [false, true] {
        wait_for("an empty cache", is_empty, || scene.log());
        scene.mount(&[]);
        warm(&scene, "large");
        if is_synced {
            // Of what follows some is written back, and not in the order in which it was written.
            sh("sync -f \"$1\"", &[&cache]);
        }
        assert_same(&scene, "other");
        let copy = scene.reader.path().join("copy");
        sh("cp --sparse=always \"$1\" \"$2\"", &[&image, &copy]);
        scene.umount();
        sh(
            // Whoever was just told to end may still have something open.
            "for _ in $(seq 100); do umount \"$2\" 2>/dev/null && break; sleep 0.1; done
             ! mountpoint -q \"$2\" && mv \"$3\" \"$1\" && mount -o loop \"$1\" \"$2\"",
            &[&image, &cache, &copy],
        );
        scene.mount(&[]);
        assert_same(&scene, "large");
        assert_same(&scene, "other");
        scene.umount();
    }
    scene.reader.run(&["cache", "scrub"]).ok();
    drop(unmounted);
}
