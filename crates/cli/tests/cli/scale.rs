//! Sizes that break what was only tried on small things. Memory is read from the kernel's
//! high-water marks and compared with the figures that docs/semantics.md states.

use crate::harness::{Home, noise, write};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Stdio;

/// Memory limits in KiB: of a client, and of `up` with its content store of 64 MiB.
const CLIENT_KIB_MAX: u64 = 64 << 10;
const UP_KIB_MAX: u64 = 256 << 10;

/// The most memory that a process ever had, in KiB.
fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|text| text.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or(0)
}

/// Compares the client's peak and that of `up` with the bounds, and prints them.
fn check_memory(what: &str, client_kib: u64, up: u32) {
    let up_kib = peak_kib(up);
    println!("{what}: the client had {client_kib} KiB at most, `up` {up_kib} KiB");
    assert!(client_kib < CLIENT_KIB_MAX, "{what}: the client needed {client_kib} KiB");
    assert!(up_kib < UP_KIB_MAX, "{what}: `up` needed {up_kib} KiB");
}

/// Runs a command, returns its output and the most memory it had.
fn measured(home: &Home, args: &[&str]) -> (Vec<u8>, u64) {
    let mut child = home.byname().args(args).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let (mut total, mut last) = (0u64, Vec::new());
        let mut chunk = vec![0; 1 << 20];
        loop {
            match out.read(&mut chunk).unwrap() {
                0 => return (total, last),
                len => {
                    total += len as u64;
                    last.extend_from_slice(&chunk[..len]);
                    let keep = last.len().saturating_sub(4 << 20);
                    last.drain(..keep);
                }
            }
        }
    });
    let mut peak = 0;
    let status = loop {
        peak = peak.max(peak_kib(child.id()));
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    };
    assert!(status.success(), "{args:?}: {status}");
    (reader.join().unwrap().1, peak)
}

#[test]
fn four_gib_and_one_byte() {
    const SIZE: u64 = (4 << 30) + 1;
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    let mut file = std::fs::File::create(dir.join("huge")).unwrap();
    file.set_len(SIZE).unwrap();
    for (at, seed) in [(0, 1), (2 << 30, 2), (SIZE - 5000, 3)] {
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(&noise(5000, seed)).unwrap();
    }
    drop(file);
    let up = a.up(&dir, "/lab/d");
    let link = up.link_to("huge");
    // The end of the file needs three levels of the tree.
    let range = format!("{}:{}", SIZE - 5000, 5000);
    let (tail, _) = measured(&b, &["cat", &link, "--range", &range]);
    assert_eq!(tail, noise(5000, 3));
    let ((_, kib), sum) = (
        measured(&b, &["get", &link, "-o", "huge"]),
        b.run(&["stat", "--checksum", "b3", &link]).ok().stdout(),
    );
    let copy = std::fs::File::open(b.path().join("huge")).unwrap();
    assert_eq!(copy.metadata().unwrap().len(), SIZE);
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(copy).unwrap();
    assert_eq!(sum.split_whitespace().next().unwrap(), hasher.finalize().to_hex().as_str());
    check_memory("4 GiB + 1 byte", kib, up.daemon.pid());
}

#[test]
fn fifty_thousand_entries_in_one_directory() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    for number in 0..50_000 {
        std::fs::File::create(dir.join(format!("entry-{number:06}"))).unwrap();
    }
    let up = a.up(&dir, "/lab/d");
    let (listed, kib) = measured(&b, &["ls", &up.link]);
    let text = String::from_utf8(listed).unwrap();
    let names: Vec<&str> = text.lines().collect();
    assert_eq!(names.len(), 50_000);
    assert!(names.is_sorted());
    check_memory("50 000 entries", kib, up.daemon.pid());
}

#[test]
fn a_tree_of_a_hundred_thousand_files() {
    const DIRECTORIES: usize = 100;
    const FILES: usize = 1000;
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    for directory in 0..DIRECTORIES {
        let below = dir.join(format!("{directory:03}"));
        std::fs::create_dir(&below).unwrap();
        for file in 0..FILES {
            write(&below.join(format!("{file:04}")), format!("{directory}/{file}").as_bytes());
        }
    }
    let begun = std::time::Instant::now();
    let up = a.up(&dir, "/lab/d");
    let linked = begun.elapsed();
    let (first, _) = measured(&b, &["cat", &up.link_to("042/0777")]);
    assert_eq!(first, b"42/777");
    // Nothing is scanned at the start, so this does not depend on the number of files.
    println!("100 000 files: link after {linked:?}, a byte after {:?}", begun.elapsed());
    let (_, kib) = measured(&b, &["get", "-r", &up.link, "-o", "copy"]);
    let mut count = 0;
    for directory in 0..DIRECTORIES {
        for file in 0..FILES {
            let path = format!("copy/{directory:03}/{file:04}");
            let content = std::fs::read(b.path().join(Path::new(&path))).unwrap();
            assert_eq!(content, format!("{directory}/{file}").as_bytes(), "{path}");
            count += 1;
        }
    }
    assert_eq!(count, 100_000);
    check_memory("100 000 files", kib, up.daemon.pid());
}

#[test]
fn sixty_four_files_side_by_side() {
    const FILES: u64 = 64;
    const SIZE: usize = (4 << 20) + 1;
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    for number in 0..FILES {
        write(&dir.join(number.to_string()), &noise(SIZE, number));
    }
    let up = a.up(&dir, "/lab/d");
    let args = ["get", "-r", &up.link, "-o", "copy", "--transfers", "64", "--no-keep"];
    let (_, kib) = measured(&b, &args);
    for number in 0..FILES {
        let content = std::fs::read(b.path().join(format!("copy/{number}"))).unwrap();
        assert!(content == noise(SIZE, number), "{number}");
    }
    check_memory("64 files", kib, up.daemon.pid());
}
