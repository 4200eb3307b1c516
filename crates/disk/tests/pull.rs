//! Pulls from a real file server, honest or not.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like tests")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use byname_catalog::id::{ContentId, DiskId, InodeId, Version};
use byname_client::{Client, ClientConfig};
use byname_disk::pull::{Kept, Pull, Watch, pull};
use byname_disk::{DiskDirectory, Label, Step, StoreFailure};
use byname_packet::{DigestSigner, Name};
use byname_security::key::KeyId;
use byname_security::tree::{GROUP_BYTES, NodeId, Tree};
use byname_store::backend::memory::Memory;
use byname_store::{FileServer, FileServerConfig, MountConfig, MountSource, ServerHandle};
use byname_transfer::naming::{content_path, content_segment_size};
use tempfile::TempDir;

const CONTENT: ContentId = ContentId { inode: InodeId(5), version: Version(1) };

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn octets(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// A writer that serves `served`, and a disk.
struct Scene {
    directory: TempDir,
    disk: DiskDirectory,
    client: Client,
    writer: ServerHandle,
    files: Arc<Memory>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.writer.stop();
    }
}

fn scene(served: &[u8]) -> Scene {
    let directory = tempfile::tempdir().unwrap();
    let (root, state) = (directory.path().join("disk"), directory.path().join("writer"));
    let (site, place) = (name("/site"), "hall".to_owned());
    let label = Label { site: site.clone(), place, disk: DiskId(7), generation: 1 };
    DiskDirectory::format(&root, &label, b"").unwrap();
    let (disk, _) = DiskDirectory::open(&root).unwrap();
    let files = Arc::new(Memory::new());
    let path = content_path(CONTENT.inode.0, CONTENT.version.0);
    files.put(std::str::from_utf8(&path).unwrap(), served).unwrap();
    let source = MountSource::Contents(files.clone());
    let mount = MountConfig { prefix: site, source, signer: Arc::new(DigestSigner) };
    let mut server = FileServer::new(FileServerConfig::new(vec![mount], state)).unwrap();
    let connection = server.connect_local().unwrap();
    let writer = server.handle();
    thread::spawn(move || server.run_alone());
    let client = Client::with_connection(connection, ClientConfig::default()).unwrap();
    Scene { directory, disk, client, writer, files }
}

fn order(claimed: &[u8]) -> Pull {
    let versioned = name("/site/32=file/seq=5/v=1");
    Pull {
        content: CONTENT,
        size: claimed.len() as u64,
        root: *blake3::hash(claimed).as_bytes(),
        segment_size: content_segment_size(versioned.view()).unwrap() as u64,
        name: versioned,
        hint: name("/site/32=user/ann/32=at/seq=1"),
        writer: KeyId([3; 32]),
        ticket: vec![1; 10],
        claim: vec![2; 10],
        older: None,
    }
}

#[derive(Default)]
struct Seen {
    bytes: u64,
    /// Times that all of it was brought anew.
    again: u32,
    steps: Vec<Step>,
    /// Values of level 1, by node.
    values: BTreeMap<u64, Vec<u8>>,
}

impl Watch for Seen {
    fn on_bytes(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    fn on_again(&mut self) {
        self.bytes = 0;
        self.again += 1;
    }

    fn on_node(&mut self, node: NodeId, values: &[u8]) {
        if node.level == 1 {
            self.values.insert(node.index, values.to_vec());
        }
    }

    fn on_step(&mut self, step: Step) {
        self.steps.push(step);
    }
}

impl Scene {
    fn pull(&mut self, order: &Pull) -> (Result<Kept, StoreFailure>, Seen) {
        let mut seen = Seen::default();
        let outcome = pull(order, &self.disk, &mut self.client, &mut seen);
        (outcome, seen)
    }

    /// Files below a directory of the disk.
    fn count(&self, below: &str) -> usize {
        std::fs::read_dir(self.directory.path().join("disk").join(below)).unwrap().count()
    }
}

#[test]
fn contents_of_all_shapes_are_stored_with_their_checksums() {
    for len in [0, 1, 8192, 8193, 128 << 10, 3 * 1024 * 1024 + 5] {
        let content = octets(len);
        let mut scene = scene(&content);
        let (kept, seen) = scene.pull(&order(&content));
        let kept = kept.unwrap();
        assert_eq!((kept.size, seen.bytes), (len as u64, len as u64));
        assert_eq!(kept.checksums.crc32c, crc32c::crc32c(&content), "{len}");
        assert_eq!(kept.checksums.adler32, adler2::adler32_slice(&content), "{len}");
        assert_eq!(seen.steps, Step::ALL);
        // Of a small one no tree is asked for.
        let values: Vec<u8> = seen.values.into_values().flatten().collect();
        let expected =
            if len > GROUP_BYTES { Tree::of(&content).levels[0].clone() } else { vec![] };
        assert!(values == expected, "all nodes came, and are told: {len}");
        let object = scene.directory.path().join("disk/objects/05");
        let object = object.join("0000000000000005-0000000000000001");
        assert!(std::fs::read(object).unwrap() == content, "{len}");
        let record = scene.disk.record(CONTENT).unwrap();
        assert_eq!((record.root, record.ticket), (kept.root, vec![1; 10]));
    }
}

#[test]
fn a_writer_that_serves_other_octets_than_it_signed_gets_nothing_stored() {
    for at in [0, 8191, 8192, 100_000] {
        let signed = octets(100_001);
        let mut served = signed.clone();
        served[at] ^= 1;
        let mut scene = scene(&served);
        let (outcome, seen) = scene.pull(&order(&signed));
        assert_eq!(outcome, Err(StoreFailure::Mismatch), "octet {at}");
        assert_eq!(seen.steps, [], "nothing is synced");
        assert_eq!((scene.count("objects/05"), scene.count("incoming")), (0, 0));
        assert_eq!(scene.disk.record(CONTENT), None);
    }
}

#[test]
fn an_empty_content_is_checked_by_its_root_too() {
    let mut scene = scene(b"");
    let lie = Pull { root: [9; 32], ..order(b"") };
    assert_eq!(scene.pull(&lie).0, Err(StoreFailure::Mismatch));
    assert_eq!(scene.disk.record(CONTENT), None);
}

#[test]
fn a_writer_that_has_nothing_is_unreachable_and_leaves_nothing() {
    let content = octets(100);
    let mut scene = scene(&content);
    let other = Pull { name: name("/site/32=file/seq=6/v=1"), ..order(&content) };
    let (outcome, _) = scene.pull(&other);
    assert_eq!(outcome, Err(StoreFailure::Unreachable));
    assert_eq!(scene.count("incoming"), 0);
}

#[test]
fn a_content_for_which_there_is_no_room_is_not_asked_for() {
    let content = octets(100);
    let mut scene = scene(&content);
    let (free, _) = scene.disk.room().unwrap();
    let huge = Pull { size: free.saturating_mul(2).min(1 << 45), ..order(&content) };
    let (outcome, seen) = scene.pull(&huge);
    assert_eq!((outcome, seen.bytes), (Err(StoreFailure::Full), 0));
}

/// Packets that a writer was asked for while a disk with an older version pulled a new one.
fn asked_for(older: &[u8], newer: &[u8]) -> u64 {
    let mut scene = scene(older);
    scene.pull(&order(older)).0.unwrap();
    let before = scene.writer.counters().interests;
    let next = ContentId { version: Version(2), ..CONTENT };
    let path = content_path(next.inode.0, next.version.0);
    scene.files.put(std::str::from_utf8(&path).unwrap(), newer).unwrap();
    let pulled = Pull {
        content: next,
        name: name("/site/32=file/seq=5/v=2"),
        older: Some(CONTENT),
        ..order(newer)
    };
    let (kept, seen) = scene.pull(&pulled);
    assert_eq!((kept.unwrap().size, seen.bytes), (newer.len() as u64, newer.len() as u64));
    let object = scene.directory.path().join("disk/objects/05");
    let object = std::fs::read(object.join("0000000000000005-0000000000000002")).unwrap();
    assert!(object == newer, "{} octets become {}", older.len(), newer.len());
    scene.writer.counters().interests - before
}

#[test]
fn what_an_older_version_has_is_not_asked_of_the_writer() {
    let older = octets(6 << 20);
    let all = asked_for(&[], &older);
    assert!(all > 700, "{all}: content and tree");
    let mut changed = older.clone();
    changed[3_000_000] ^= 1;
    let longer: Vec<u8> = older.iter().copied().chain(octets(100_000)).collect();
    let cut = &older[..5_000_001];
    for (newer, most) in [(&older[..], 8), (&changed, 10), (&longer, 24), (cut, 10)] {
        let asked = asked_for(&older, newer);
        assert!(asked <= most, "{asked} packets for {} octets", newer.len());
    }
    let other: Vec<u8> = older.iter().map(|octet| octet ^ 1).collect();
    assert!(asked_for(&older, &other) < all + 16, "little more than without an older version");
}

/// A disk that pulls one version after the other of a file.
struct Growing {
    scene: Scene,
    version: u64,
    /// Times that a version was brought anew.
    again: u32,
}

impl Growing {
    fn new() -> Self {
        Self { scene: scene(&[]), version: 1, again: 0 }
    }

    fn path(&self) -> std::path::PathBuf {
        let object = self.scene.directory.path().join("disk/objects/05");
        object.join(format!("0000000000000005-{:016x}", self.version))
    }

    /// Pulls the next version, and returns the packets that the writer was asked for.
    fn pull(&mut self, content: &[u8]) -> u64 {
        let before = self.scene.writer.counters().interests;
        let older = ContentId { version: Version(self.version), ..CONTENT };
        self.version += 1;
        let next = ContentId { version: Version(self.version), ..CONTENT };
        let path = content_path(next.inode.0, next.version.0);
        self.scene.files.put(std::str::from_utf8(&path).unwrap(), content).unwrap();
        let pulled = Pull {
            content: next,
            name: name(&format!("/site/32=file/seq=5/v={}", self.version)),
            older: (self.version > 2).then_some(older),
            ..order(content)
        };
        let (kept, seen) = self.scene.pull(&pulled);
        let kept = kept.unwrap();
        assert_eq!(seen.bytes, content.len() as u64);
        self.again += seen.again;
        assert_eq!(kept.checksums.crc32c, crc32c::crc32c(content));
        assert_eq!(kept.checksums.adler32, adler2::adler32_slice(content));
        assert!(std::fs::read(self.path()).unwrap() == content, "version {}", self.version);
        self.scene.writer.counters().interests - before
    }
}

#[test]
fn of_a_file_that_grows_only_what_is_new_is_asked_for() {
    let mut growing = Growing::new();
    let content = octets(6 << 20);
    growing.pull(&content[..5_000_001]);
    growing.pull(&content[..5_000_002]);
    for end in [5_000_003, 5_008_192, 5_008_193, 5_100_000, 5 << 20, (5 << 20) + 1, 6 << 20] {
        let before = std::fs::metadata(growing.path()).unwrap().len();
        let units = (end as u64 - before).div_ceil(8192) + 2;
        let asked = growing.pull(&content[..end]);
        // And at most six nodes, of two or three levels.
        assert!(asked <= units + 6, "{asked} packets for {units} units to {end}");
    }
}

#[test]
fn what_only_seems_to_have_grown_is_pulled_as_a_whole() {
    let content = octets(1 << 20);
    let mut growing = Growing::new();
    growing.pull(&content[..800_000]);
    growing.pull(&content[..900_000]);
    // The unit that is compared is the same, another one is not.
    let mut other = content.clone();
    other[3] ^= 1;
    growing.pull(&other);
    assert_eq!(growing.again, 1, "the disk is told that nothing of it is there");
    growing.pull(&content);
    // And one of which the compared one differs, too.
    let inverse: Vec<u8> = content.iter().chain(&content).map(|octet| octet ^ 1).collect();
    growing.pull(&inverse);
    let longer: Vec<u8> = inverse.iter().copied().chain(octets(9)).collect();
    assert!(growing.pull(&longer) < 12);
    // What it would be made from is gone, or is not whole any more.
    let longer: Vec<u8> = longer.iter().copied().chain(octets(9)).collect();
    std::fs::remove_file(growing.path()).unwrap();
    assert!(growing.pull(&longer) > 128);
    std::fs::File::options().write(true).open(growing.path()).unwrap().set_len(100_000).unwrap();
    let longer: Vec<u8> = longer.iter().copied().chain(octets(9)).collect();
    growing.pull(&longer);
}
