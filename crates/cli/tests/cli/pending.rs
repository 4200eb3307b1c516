//! Reading large files that nobody has hashed yet, hashing ahead, and signatures for others.

use crate::harness::{Home, noise};
use std::io::{Seek, SeekFrom, Write};

#[test]
fn a_range_of_a_huge_file_does_not_wait_for_its_root() {
    const SIZE: u64 = 64 << 30;
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    let mut file = std::fs::File::create(dir.join("huge")).unwrap();
    file.set_len(SIZE).unwrap();
    file.seek(SeekFrom::Start(SIZE - 100_000)).unwrap();
    file.write_all(&noise(100_000, 5)).unwrap();
    drop(file);
    let up = a.up(&dir, "/lab/d");
    let range = format!("{}:{}", SIZE - 100_000, 100_000);
    let begun = std::time::Instant::now();
    let tail = b.run(&["cat", &up.link_to("huge"), "--range", &range]).ok();
    println!("the end of 64 GiB that nobody has hashed: {:?}", begun.elapsed());
    assert!(tail.bytes() == noise(100_000, 5));
}

#[test]
fn a_file_is_fetched_while_it_is_hashed() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    let content = noise(100_000_000, 6);
    std::fs::write(dir.join("f"), &content).unwrap();
    let up = a.up(&dir, "/lab/d");
    b.run(&["get", &up.link_to("f"), "-o", "copy"]).ok();
    assert!(std::fs::read(b.path().join("copy")).unwrap() == content);
}

#[test]
fn what_was_prepared_is_known_and_a_running_server_is_left_alone() {
    let a = Home::new();
    let dir = a.work("d");
    std::fs::write(dir.join("f"), noise(5_000_000, 7)).unwrap();
    let prepare = |more: &[&str]| {
        let dir = dir.to_str().unwrap();
        a.run(&[&["prepare", dir, "--name", "/lab/d"], more].concat())
    };
    let first = prepare(&[]).ok().stdout();
    assert!(first.starts_with("1 file: 1 hashed"), "{first}");
    let again = prepare(&["--json"]).ok().stdout();
    assert!(again.contains("\"known_files\":1"), "{again}");
    let _up = a.up(&dir, "/lab/d");
    prepare(&[]).fails_with(7, "a server publishes /lab/d now");
}

#[test]
fn signed_segments_change_nothing_for_our_readers() {
    for kind in ["digest", "ed25519", "ecdsa", "rsa"] {
        let (a, b) = (Home::new(), Home::new());
        let dir = a.work("d");
        std::fs::write(dir.join("f"), noise(100_000, 8)).unwrap();
        let up = a.up_with(&dir, "/lab/d", &["--segment-signature", kind]);
        let read = b.run(&["cat", &up.link_to("f")]).ok();
        assert!(read.bytes() == noise(100_000, 8), "{kind}");
        assert_eq!(b.run(&["ls", &up.link]).ok().stdout(), "f\n", "{kind}");
    }
}
