//! One bit flipped anywhere is refused, and nothing that looks whole is left.

use crate::harness::{Home, entries, noise, tampering, write};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;

/// Large enough for a tree of two levels of nodes on the wire (more than 256 units).
const LARGE: usize = 3_000_000;

fn leftovers(home: &Home) -> Vec<String> {
    let whole = |name: &String| name != "home" && !name.starts_with('.');
    entries(home.path()).into_iter().filter(whole).collect()
}

fn refused_when(kind: &'static str, args: &[&str]) {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("data");
    write(&dir.join("big"), &noise(LARGE, 3));
    for number in 0..2000 {
        write(&dir.join(format!("some-file-with-a-long-name-{number}")), b"");
    }
    let up = a.up(&dir, "/lab/data");
    b.run(&["trust", "add", &up.link]).ok();
    let relay = tampering(&up, kind);
    let mut command = args.to_vec();
    command.extend(["--connect", &relay, "--timeout", "5"]);
    let refused = b.run(&command).fails_with(5, "");
    let text = refused.stderr();
    assert!(text.contains("/lab/data"), "the message names what was bad:\n{text}");
    assert_eq!(leftovers(&b), Vec::<String>::new(), "{text}");
    // The same request is fine when nobody interferes: it was the bit.
    let uri = up.uri();
    let mut command = args.to_vec();
    command.extend(["--connect", &uri]);
    b.run(&command).ok();
}

#[test]
fn in_data() {
    refused_when("data", &["get", "/lab/data/big"]);
}

#[test]
fn in_a_tree_node() {
    refused_when("node", &["get", "/lab/data/big"]);
}

#[test]
fn in_metadata() {
    refused_when("metadata", &["get", "/lab/data/big"]);
}

#[test]
fn in_a_listing() {
    refused_when("listing", &["ls", "/lab/data"]);
}

#[test]
fn cat_prints_no_octet_that_was_not_verified() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("data");
    write(&dir.join("small"), b"only a few octets");
    let up = a.up(&dir, "/lab/data");
    let relay = tampering(&up, "data");
    let refused = b.run(&["cat", &up.link_to("small"), "--connect", &relay]).fails_with(5, "");
    assert_eq!(refused.bytes(), b"");
}

/// Bits that rot below the file system change no time stamp. A store through a mapping whose page
/// is dirty already is the nearest thing to that which a test can do. The file is in memory: a page
/// that anybody has synced meanwhile is dirty no more.
#[test]
fn on_the_servers_disk() {
    const AT: u64 = 1_500_000;
    let (a, b) = (Home::new(), Home::new());
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let dir = memory.path().join("data");
    std::fs::create_dir(&dir).unwrap();
    let path = dir.join("big");
    write(&path, &noise(LARGE, 4));
    let mut mapping = Mapping::new(&path, AT);
    let up = a.up(&dir, "/lab/data");
    // The root is computed and signed, but no cache holds the data yet.
    b.run(&["stat", &up.link_to("big")]).ok();
    let times = |path: &std::path::Path| {
        let meta = std::fs::metadata(path).unwrap();
        (meta.mtime_nsec(), meta.mtime(), meta.ctime_nsec())
    };
    let before = times(&path);
    mapping.flip();
    assert_ne!(std::fs::read(&path).unwrap(), noise(LARGE, 4));
    assert_eq!(times(&path), before, "the kernel cleaned the page in between");
    let refused = b.run(&["get", &up.link_to("big"), "-o", "bad", "--timeout", "5"]);
    refused.fails_with(5, "big");
    assert!(!b.path().join("bad").exists());
}

/// A process that keeps a page of a file mapped and dirty, and flips a bit in it when told.
struct Mapping {
    process: std::process::Child,
}

impl Mapping {
    const PROGRAM: &str = "import mmap,sys
f=open(sys.argv[1],'r+b'); m=mmap.mmap(f.fileno(),0); at=int(sys.argv[2])
m[at]=m[at]
print('dirty',flush=True)
sys.stdin.readline()
m[at]^=1
print('flipped',flush=True)
sys.stdin.readline()";

    fn new(path: &std::path::Path, at: u64) -> Self {
        let process = std::process::Command::new("python3")
            .args(["-c", Self::PROGRAM, path.to_str().unwrap(), &at.to_string()])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut mapping = Self { process };
        mapping.await_line();
        mapping
    }

    fn await_line(&mut self) {
        let mut octet = [0];
        while octet[0] != b'\n' {
            self.process.stdout.as_mut().unwrap().read_exact(&mut octet).unwrap();
        }
    }

    fn flip(&mut self) {
        self.process.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        self.await_line();
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
