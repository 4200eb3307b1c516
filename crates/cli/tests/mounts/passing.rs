//! Files of the site cache that the kernel reads by itself: when it does, what it reads, and what
//! becomes of flipped bits with it and without it.

use crate::harness::{noise, wait_for};
use crate::scene::{Scene, can_mount, is_root, sh};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

const SIZE: usize = 6_000_001;
/// Place of the bit that is flipped: in the middle of a page and of a unit.
const FLIPPED: usize = 3_000_100;

fn content() -> Vec<u8> {
    noise(SIZE, 21)
}

/// True if the kernel is new enough; otherwise says that a test is skipped.
fn kernel_passes_through(test: &str) -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split('.').map_while(|number| number.parse::<u32>().ok());
    let is_new = (numbers.next(), numbers.next()) >= (Some(6), Some(9));
    if !is_new {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: FUSE passthrough wants Linux 6.9");
    }
    is_new
}

/// A mount whose cache has all of `large`; `None` if this machine passes nothing through.
fn warm(test: &str, options: &[&str]) -> Option<Scene> {
    if !can_mount(test) || !is_root(test) || !kernel_passes_through(test) {
        return None;
    }
    let scene = Scene::unmounted(&[], |source| {
        std::fs::write(source.join("large"), content()).unwrap();
    });
    scene.reader.run(&["cache", "warm", &scene.up.link]).ok();
    scene.mount(options);
    Some(scene)
}

impl Scene {
    fn open(&self) -> File {
        File::open(self.mount.join("large")).unwrap()
    }

    /// Opens the file until the kernel reads it by itself.
    fn open_passed_through(&self) -> File {
        let mut open = None;
        let is_passed = || {
            // Whoever has it open has decided how.
            drop(open.take());
            is_passed_through(open.insert(self.open()))
        };
        wait_for("the kernel to read by itself", is_passed, || self.log());
        open.unwrap()
    }

    fn data(&self) -> PathBuf {
        let found = "find \"$1\" -path '*/entries/*/data'";
        PathBuf::from(sh(found, &[&self.reader.path().join("home/cache")]).trim())
    }

    /// Flips a bit of what is in the cache.
    fn flip(&self) {
        let data = File::options().read(true).write(true).open(self.data()).unwrap();
        let mut octet = [0];
        data.read_exact_at(&mut octet, FLIPPED as u64).unwrap();
        data.write_all_at(&[octet[0] ^ 1], FLIPPED as u64).unwrap();
        data.sync_all().unwrap();
    }
}

fn is_passed_through(file: &File) -> bool {
    let mut value = [0; 8];
    let length = rustix::fs::fgetxattr(file, "user.byname.passed_through", &mut value[..]);
    value[..length.unwrap()] == *b"yes"
}

fn whole(mut file: &File) -> Vec<u8> {
    let mut read = Vec::new();
    file.read_to_end(&mut read).unwrap();
    read
}

#[test]
fn a_whole_file_of_the_cache_is_read_by_the_kernel_itself() {
    let test = "a_whole_file_of_the_cache_is_read_by_the_kernel_itself";
    let metrics = format!("127.0.0.1:{}", crate::harness::free_port());
    let Some(mut scene) = warm(test, &["--metrics", &metrics]) else { return };
    let first = scene.open_passed_through();
    let second = scene.open();
    assert!(is_passed_through(&second), "all who have it open");
    let mut stream = TcpStream::connect(&metrics).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert!(said.contains("byname_mount_passed_through_files 1\n"), "{said}");
    assert!(said.contains("byname_cache_rotten_units_total 0\n"), "{said}");
    scene.up.daemon.kill();
    scene.reader.run(&["cache", "drop", "--all"]).ok();
    assert!(whole(&first) == content(), "the disk's file, which is open");
    let mut page = [0; 4096];
    second.read_exact_at(&mut page, 4_500_000).unwrap();
    assert_eq!(page, content()[4_500_000..][..4096]);
    assert_eq!(second.read_at(&mut page, SIZE as u64).unwrap(), 0);
    let script = "import mmap; m = mmap.mmap(0, 0, prot=mmap.PROT_READ); \
                  print(m[5000000:5000004].hex(), end='')";
    let mapped = Command::new("python3").args(["-c", script]).stdin(second).output().unwrap();
    let expected: String =
        content()[5_000_000..][..4].iter().map(|it| format!("{it:02x}")).collect();
    assert_eq!(String::from_utf8_lossy(&mapped.stdout), expected);
}

#[test]
fn the_way_in_which_a_file_is_read_stays_as_long_as_it_is_open() {
    let test = "the_way_in_which_a_file_is_read_stays_as_long_as_it_is_open";
    let Some(scene) = warm(test, &[]) else { return };
    let open = scene.open();
    assert!(!is_passed_through(&open), "nobody has hashed it");
    scene.reader.run(&["cache", "verify"]).ok();
    assert!(!is_passed_through(&scene.open()), "it is open in the other way");
    assert!(whole(&open) == content());
    drop(open);
    assert!(whole(&scene.open_passed_through()) == content());
}

#[test]
fn a_bit_that_flips_in_the_cache_is_found_before_the_kernel_reads_by_itself() {
    let test = "a_bit_that_flips_in_the_cache_is_found_before_the_kernel_reads_by_itself";
    let Some(scene) = warm(test, &[]) else { return };
    drop(scene.open_passed_through());
    scene.flip();
    scene.umount();
    scene.mount(&[]);
    let open = scene.open();
    assert!(!is_passed_through(&open), "it was written to since it was hashed");
    assert!(whole(&open) == content());
    drop(open);
    let sound = scene.open_passed_through();
    assert!(whole(&sound) == content(), "what was fetched anew");
    // This is the difference: what changes in a file that is passed through is seen.
    scene.flip();
    let mut octet = [0];
    sound.read_exact_at(&mut octet, FLIPPED as u64).unwrap();
    assert_eq!(octet[0], content()[FLIPPED] ^ 1);
    drop(sound);
    // The mount hears a little later that it was closed.
    let is_found = || whole(&scene.open()) == content();
    wait_for("look at what is opened anew", is_found, || scene.log());
}

#[test]
fn without_passthrough_every_flipped_bit_is_found() {
    let test = "without_passthrough_every_flipped_bit_is_found";
    let Some(scene) = warm(test, &["--no-passthrough"]) else { return };
    scene.reader.run(&["cache", "verify"]).ok();
    let open = scene.open();
    assert!(!is_passed_through(&open));
    scene.flip();
    assert!(whole(&open) == content());
    drop(open);
    scene.umount();
    scene.mount(&["-o", "no_passthrough"]);
    scene.flip();
    let open = scene.open();
    assert!(!is_passed_through(&open));
    assert!(whole(&open) == content());
}
