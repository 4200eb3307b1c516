//! One cache for all users of a machine: what they share, and what a hostile one cannot do.

use std::fs;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use blake3::hazmat::{Mode, merge_subtrees_non_root, merge_subtrees_root};
use byname_cache::{Cache, CacheConfig, Content, Found, SERVICE_USER_COMPONENT, Service};
use byname_security::tree::{Check, FANOUT, Hash, NodeId, Shape, Tree, UNIT_BYTES, Verifier};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recvmsg, sendmsg, socket_with,
    sockopt,
};
use rustix::thread::set_thread_res_uid;

const PATIENCE: Duration = Duration::from_secs(60);
const MIB: usize = 1 << 20;

/// A unit of a content that is larger than any disk here, and the nodes above it from the top down:
/// the other values in them are those of nothing.
struct Far {
    root: Hash,
    size: u64,
    unit: u64,
    bytes: Vec<u8>,
    nodes: Vec<(NodeId, Vec<u8>)>,
}

type Value = [u8; 32];

fn halves(values: &[Value]) -> Option<(Value, Value)> {
    let half = values.len().next_power_of_two() / 2;
    let (left, right) = values.split_at(half);
    (values.len() > 1).then(|| (fold(left), fold(right)))
}

fn fold(values: &[Value]) -> Value {
    let merged = |(left, right)| merge_subtrees_non_root(&left, &right, Mode::Hash);
    halves(values).map_or_else(|| values[0], merged)
}

impl Far {
    fn new(size: u64, unit: u64) -> Self {
        let (shape, bytes) = (Shape::new(size), vec![7; UNIT_BYTES]);
        let (mut value, mut nodes, mut at) = (Vec::new(), Vec::new(), unit);
        shape.hash_units(unit, &bytes, &mut value).expect("a unit of it");
        let mut value: Value = value.try_into().expect("one value");
        let mut next = shape.node_of_unit(unit);
        while let Some(node) = next {
            let mut values = vec![[9; 32]; shape.node_len(node).expect("a node") / 32];
            values[at as usize % FANOUT] = value;
            nodes.insert(0, (node, values.concat()));
            (at, next) = (node.index, shape.parent(node));
            value = match (next, halves(&values)) {
                (None, Some((left, right))) => {
                    *merge_subtrees_root(&left, &right, Mode::Hash).as_bytes()
                }
                _ => fold(&values),
            };
        }
        Far { root: Hash(value), size, unit, bytes, nodes }
    }

    fn insert(&self, cache: &Cache) {
        let content = cache.content(self.root, self.size);
        self.nodes.iter().for_each(|(node, bytes)| content.insert_node(*node, bytes));
        content.insert(self.unit * UNIT_BYTES as u64, &self.bytes);
        assert!(cache.flush(PATIENCE));
    }

    /// True if a reader finds just this of it.
    fn is_found(&self, cache: &Cache) -> bool {
        let (sender, receiver) = mpsc::channel::<Found>();
        let content = cache.content(self.root, self.size);
        let nodes: Vec<NodeId> = self.nodes.iter().map(|(node, _)| *node).collect();
        let units = self.unit - 1..self.unit + 2;
        let is_asked = content.read(units, nodes, move |found| {
            let _ = sender.send(found);
        });
        let found = is_asked.then(|| receiver.recv_timeout(PATIENCE).expect("an answer"));
        found.is_some_and(|found| {
            found.nodes == self.nodes && found.runs == [(self.unit, self.bytes.clone())]
        })
    }
}

/// Content with its tree, different for each seed.
struct Sample {
    bytes: Vec<u8>,
    tree: Tree,
}

impl Sample {
    fn new(seed: u8, length: usize) -> Self {
        let mut bytes = vec![0; length];
        blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
        let tree = Tree::of(&bytes);
        Sample { bytes, tree }
    }

    fn content(&self, cache: &Cache) -> Content {
        cache.content(self.tree.root, self.bytes.len() as u64)
    }

    fn nodes(&self) -> Vec<NodeId> {
        let shape = Shape::new(self.bytes.len() as u64);
        let levels = (1..=shape.level_count()).rev();
        let of = |level| (0..shape.node_count(level)).map(move |index| NodeId { level, index });
        levels.flat_map(of).collect()
    }

    /// As readers do: from the top down, and units just before the node that proves them.
    fn insert(&self, cache: &Cache) {
        let (content, nodes) = (self.content(cache), self.nodes());
        if nodes.is_empty() {
            content.insert(0, &self.bytes);
        }
        for node in nodes {
            if node.level == 1 {
                let start = node.index as usize * FANOUT * UNIT_BYTES;
                let end = (start + FANOUT * UNIT_BYTES).min(self.bytes.len());
                for (at, unit) in self.bytes[start..end].chunks(UNIT_BYTES).enumerate() {
                    content.insert((start + at * UNIT_BYTES) as u64, unit);
                }
            }
            content.insert_node(node, self.tree.node(node).expect("it is one"));
        }
        assert!(cache.flush(PATIENCE));
    }

    /// The same, held up each time between the units and the node that proves them.
    fn insert_slowly(&self, cache: &Cache, pause: Duration) {
        let content = self.content(cache);
        for node in self.nodes() {
            if node.level == 1 {
                let start = node.index as usize * FANOUT * UNIT_BYTES;
                let end = (start + FANOUT * UNIT_BYTES).min(self.bytes.len());
                content.insert(start as u64, &self.bytes[start..end]);
            }
            std::thread::sleep(pause);
            content.insert_node(node, self.tree.node(node).expect("it is one"));
        }
        assert!(cache.flush(PATIENCE));
    }

    /// Some of the units, behind the nodes that prove them.
    fn insert_units(&self, cache: &Cache, units: Range<u64>) {
        let (content, unit_bytes) = (self.content(cache), UNIT_BYTES as u64);
        for node in self.nodes() {
            content.insert_node(node, self.tree.node(node).expect("it is one"));
        }
        let start = (units.start * unit_bytes) as usize;
        let end = ((units.end * unit_bytes) as usize).min(self.bytes.len());
        for (at, unit) in self.bytes[start..end].chunks(UNIT_BYTES).enumerate() {
            content.insert((units.start + at as u64) * unit_bytes, unit);
        }
        assert!(cache.flush(PATIENCE));
    }

    /// Units that a reader finds through a cache, and that verify.
    fn found(&self, cache: &Cache) -> u64 {
        let (content, units) = (self.content(cache), self.bytes.len().div_ceil(UNIT_BYTES) as u64);
        let (sender, receiver) = mpsc::channel();
        let is_asked = content.read(0..units, self.nodes(), move |found: Found| {
            let _ = sender.send(found);
        });
        let Some(found) = is_asked.then(|| receiver.recv_timeout(PATIENCE).expect("an answer"))
        else {
            return 0;
        };
        let mut verifier = Verifier::new(self.tree.root, self.bytes.len() as u64, 1000);
        for (node, bytes) in &found.nodes {
            // One that proves nothing of what is there, or is about to be written, is a hole of the
            // file, or half of it.
            let _ = verifier.add_node(*node, bytes);
        }
        let mut count = 0;
        for (first, bytes) in &found.runs {
            for (at, unit) in bytes.chunks(UNIT_BYTES).enumerate() {
                match verifier.check(first + at as u64, unit) {
                    Check::Verified => count += 1,
                    // Its node is still to be written.
                    Check::Need(_) => return 0,
                    Check::Bad => panic!("unit {} is another one", first + at as u64),
                }
            }
        }
        count
    }

    /// Waits until a reader of another program finds so many.
    fn wait_for(&self, scene: &Scene, units: u64) {
        let until = Instant::now() + PATIENCE;
        loop {
            let found = self.found(&scene.program());
            if found == units {
                return;
            }
            let refused = scene.refused_bytes();
            assert!(Instant::now() < until, "{found} of {units} units, {refused} bytes refused");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Brings units and no nodes, but for those that are asked for.
    fn bring_units_until_found(&self, scene: &Scene, program: &Cache) {
        let (content, until) = (self.content(program), Instant::now() + PATIENCE);
        while self.found(&scene.program()) != self.units() {
            assert!(Instant::now() < until, "{} bytes refused", scene.refused_bytes());
            content.insert(0, &self.bytes);
            assert!(program.flush(PATIENCE));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn units(&self) -> u64 {
        self.bytes.len().div_ceil(UNIT_BYTES) as u64
    }
}

/// A service, and programs that use it.
struct Scene {
    directory: tempfile::TempDir,
    service: Option<Service>,
}

impl Scene {
    fn new() -> Self {
        Self::with(|config| config)
    }

    fn with(change: impl FnOnce(CacheConfig) -> CacheConfig) -> Self {
        let mut scene =
            Scene { directory: tempfile::tempdir().expect("a directory"), service: None };
        scene.start(change);
        scene
    }

    fn start(&mut self, change: impl FnOnce(CacheConfig) -> CacheConfig) {
        let config = CacheConfig {
            free_bytes_min: 0,
            patience: PATIENCE,
            user_bytes_max: Some(1 << 40),
            ..CacheConfig::new(self.directory.path().join("cache"))
        };
        let service = Service::start(Cache::new(change(config)), &self.socket());
        self.service = Some(service.expect("a service"));
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// The cache as one more program has it.
    fn program(&self) -> Cache {
        let none = self.directory.path().join("of a program");
        Cache::new(CacheConfig { service: Some(self.socket()), ..CacheConfig::new(none) })
    }

    /// The cache as its administrator has it.
    fn keeper(&self) -> Cache {
        let own = CacheConfig::new(self.directory.path().join("cache"));
        Cache::new(CacheConfig { user_bytes_max: Some(1 << 40), ..own })
    }

    fn hostile(&self) -> Hostile {
        Hostile::connect(&self.socket())
    }

    fn entries(&self) -> Vec<PathBuf> {
        let groups = fs::read_dir(self.directory.path().join("cache/entries"));
        let below = |group: fs::DirEntry| fs::read_dir(group.path()).expect("a group").flatten();
        groups.into_iter().flatten().flatten().flat_map(below).map(|it| it.path()).collect()
    }

    fn refused_bytes(&self) -> u64 {
        self.service.as_ref().expect("it runs").brought_bytes().1
    }
}

/// A program that speaks with the service and means no good.
struct Hostile(OwnedFd);

impl Hostile {
    fn connect(socket: &Path) -> Self {
        let flags = SocketFlags::CLOEXEC;
        let line = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let line = line.expect("a socket");
        for direction in [sockopt::Timeout::Send, sockopt::Timeout::Recv] {
            sockopt::set_socket_timeout(&line, direction, Some(PATIENCE)).expect("an option");
        }
        connect(&line, &SocketAddrUnix::new(socket).expect("a path")).expect("connected");
        Hostile(line)
    }

    fn send(&self, parts: &[&[u8]]) -> bool {
        let parts: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let control = &mut SendAncillaryBuffer::default();
        sendmsg(&self.0, &parts, control, SendFlags::NOSIGNAL).is_ok()
    }

    /// An answer and the files in it; `None` if the service has hung up.
    fn receive(&self) -> Option<(Vec<u8>, Vec<fs::File>)> {
        let mut answer = vec![0; 1 << 16];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut answer)];
        let length = recvmsg(&self.0, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC);
        let length = length.ok()?.bytes;
        let mut files = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                files.extend(descriptors.map(fs::File::from));
            }
        }
        answer.truncate(length);
        (length > 0).then_some((answer, files))
    }
}

/// The head of a request, as the table of docs/cache.md has it.
fn head(kind: u8, sample: &Sample, number: u64, level: u8) -> Vec<u8> {
    let size = sample.bytes.len() as u64;
    let parts: [&[u8]; 5] = [
        &[1, kind],
        sample.tree.root.as_bytes(),
        &size.to_be_bytes(),
        &number.to_be_bytes(),
        &[level],
    ];
    parts.concat()
}

const OPEN: u8 = 1;
const MAP: u8 = 2;
const UNITS: u8 = 3;
const NODE: u8 = 4;

#[test]
fn what_one_program_brought_another_finds() {
    let scene = Scene::new();
    for (seed, length) in [1, UNIT_BYTES, UNIT_BYTES + 1, 5 * MIB + 77].into_iter().enumerate() {
        let sample = Sample::new(seed as u8, length);
        assert_eq!(sample.found(&scene.program()), 0);
        sample.insert(&scene.program());
        sample.wait_for(&scene, sample.units());
    }
    assert_eq!(scene.refused_bytes(), 0, "nothing came before its proof");
    assert!(!scene.directory.path().join("of a program").exists());
    assert!(!scene.directory.path().join("cache/tree").exists(), "no names");
}

#[test]
fn bytes_that_are_not_of_the_content_are_never_written() {
    let scene = Scene::new();
    let (sample, hostile) = (Sample::new(1, MIB), scene.hostile());
    let node = sample.tree.node(NodeId { level: 1, index: 0 }).expect("a node").to_vec();
    let mut false_node = node.clone();
    false_node[3] ^= 1;
    let zeros = vec![0; UNIT_BYTES];
    // Without a proof, with a false one, and with the right one but false bytes.
    assert!(hostile.send(&[&head(UNITS, &sample, 0, 0), &sample.bytes[..UNIT_BYTES]]));
    assert!(hostile.send(&[&head(NODE, &sample, 0, 1), &false_node]));
    assert!(hostile.send(&[&head(UNITS, &sample, 0, 0), &zeros]));
    assert!(hostile.send(&[&head(NODE, &sample, 0, 1), &node]));
    assert!(hostile.send(&[&head(UNITS, &sample, 0, 0), &zeros]));
    // True bytes in another place, in half, and beyond the end.
    let unit = &sample.bytes[..UNIT_BYTES];
    assert!(hostile.send(&[&head(UNITS, &sample, 1, 0), unit]));
    assert!(hostile.send(&[&head(UNITS, &sample, 0, 0), &unit[..100]]));
    assert!(hostile.send(&[&head(UNITS, &sample, u64::MAX, 0), unit]));
    assert!(hostile.send(&[&head(UNITS, &sample, 128, 0), unit]));
    assert!(hostile.send(&[&head(UNITS, &sample, 0, 0), &[]]));
    // What is true is taken from the same connection.
    let third = &sample.bytes[2 * UNIT_BYTES..][..UNIT_BYTES];
    assert!(hostile.send(&[&head(UNITS, &sample, 2, 0), third]));
    sample.wait_for(&scene, 1);
    assert!(scene.refused_bytes() >= 5 * UNIT_BYTES as u64);
}

#[test]
fn what_is_no_message_ends_the_connection_and_nothing_else() {
    let scene = Scene::new();
    let sample = Sample::new(1, MIB);
    let long = vec![0; 100_000];
    let good = head(OPEN, &sample, 0, 0);
    let mut other_version = good.clone();
    other_version[0] = 9;
    let bad: [&[u8]; 6] =
        [&[0], &good[..50], &other_version, &[&good[..], &[0]].concat(), &long, &[1, 77]];
    for message in bad {
        let hostile = scene.hostile();
        assert!(hostile.send(&[message]));
        assert!(hostile.receive().is_none(), "{message:?}");
    }
    // Sizes that would cost much are not there, whatever is said of them.
    let hostile = scene.hostile();
    for size in [0, u64::MAX, 1 << 63] {
        for kind in [OPEN, MAP] {
            let mut huge = head(kind, &sample, 0, 0);
            huge[34..42].copy_from_slice(&size.to_be_bytes());
            assert!(hostile.send(&[&huge]));
            assert_eq!(hostile.receive().expect("an answer").0, [0]);
        }
    }
    sample.insert(&scene.program());
    sample.wait_for(&scene, sample.units());
}

#[test]
fn what_a_broken_connection_lost_is_brought_again() {
    let mut scene = Scene::new();
    let (sample, program) = (Sample::new(1, MIB), scene.program());
    let (content, node) = (sample.content(&program), sample.nodes()[0]);
    content.insert_node(node, sample.tree.node(node).expect("it is one"));
    content.insert(0, &sample.bytes[..UNIT_BYTES]);
    assert!(program.flush(PATIENCE));
    sample.wait_for(&scene, 1);
    // The service is gone with all it had.
    drop(scene.service.take());
    let other = scene.directory.path().join("other");
    scene.start(|config| CacheConfig { directory: other, ..config });
    // A reader has verified the node and does not hand it on again.
    content.insert(0, &sample.bytes);
    sample.wait_for(&scene, sample.units());
    assert_eq!(scene.refused_bytes(), 0);
}

#[test]
fn a_node_that_the_service_lacks_is_asked_for_and_brought_again() {
    let scene = Scene::new();
    let (sample, hostile) = (Sample::new(1, MIB), scene.hostile());
    assert!(hostile.send(&[&head(UNITS, &sample, 0, 0), &sample.bytes[..UNIT_BYTES]]));
    let (need, _) = hostile.receive().expect("it asks");
    assert_eq!(need, [&[2][..], &head(NODE, &sample, 0, 1)].concat());
    // Its cache is emptied under it, after it has spoken of other contents.
    let program = scene.program();
    sample.insert(&program);
    sample.wait_for(&scene, sample.units());
    for seed in 2..6 {
        let other = Sample::new(seed, 2 * UNIT_BYTES);
        other.insert(&program);
        other.wait_for(&scene, other.units());
    }
    assert_eq!(scene.keeper().remove(None).expect("removed"), 5);
    sample.bring_units_until_found(&scene, &program);
}

#[test]
fn nodes_that_are_removed_while_units_are_brought_are_asked_for_again() {
    let scene = Scene::new();
    let (sample, program) = (Sample::new(1, MIB), scene.program());
    sample.insert(&program);
    sample.wait_for(&scene, sample.units());
    for _ in 0..3 {
        // The connection has the nodes in memory, and the cache has them no more.
        assert_eq!(scene.keeper().remove(None).expect("removed"), 1);
        sample.bring_units_until_found(&scene, &program);
    }
}

#[test]
fn contents_of_any_size_are_kept_and_their_maps_are_short() {
    let scene = Scene::new();
    let unit_count = (3 << 40) / UNIT_BYTES as u64;
    for unit in [1, unit_count / 2 + 5, unit_count - 2] {
        let far = Far::new(3 << 40, unit);
        far.insert(&scene.program());
        let until = Instant::now() + PATIENCE;
        while !far.is_found(&scene.program()) {
            assert!(Instant::now() < until, "{} bytes refused", scene.refused_bytes());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn a_content_too_large_for_the_file_system_leaves_nothing_behind() {
    let scene = Scene::new();
    let (size, unit) = (i64::MAX as u64, 9);
    let room = tempfile::tempfile().expect("a file");
    if room.set_len(size).is_ok() {
        return;
    }
    let far = Far::new(size, unit);
    far.insert(&scene.program());
    let sample = Sample::new(1, MIB);
    sample.insert(&scene.program());
    sample.wait_for(&scene, sample.units());
    assert_eq!(scene.entries().len(), 1);
}

#[test]
fn lent_files_can_only_be_read_and_hold_nobody_up() {
    let scene = Scene::new();
    let (sample, hostile) = (Sample::new(1, MIB), scene.hostile());
    sample.insert(&scene.program());
    sample.wait_for(&scene, sample.units());
    assert!(hostile.send(&[&head(OPEN, &sample, 0, 0)]));
    let (_, files) = hostile.receive().expect("an answer");
    assert_eq!(files.len(), 2);
    for file in &files {
        assert!(std::os::unix::fs::FileExt::write_at(file, b"x", 0).is_err(), "it is written to");
        assert!(file.set_len(0).is_err(), "it is cut");
        rustix::fs::flock(file, rustix::fs::FlockOperation::LockExclusive).expect("locked");
    }
    // Locked or not, others read and bring more of the same content.
    let other = Sample::new(2, MIB);
    other.insert(&scene.program());
    other.wait_for(&scene, other.units());
    assert_eq!(sample.found(&scene.program()), sample.units());
    sample.insert(&scene.program());
    // What is removed gives its room back although somebody keeps it open.
    let cache = Cache::new(CacheConfig {
        user_bytes_max: Some(1 << 40),
        ..CacheConfig::new(scene.directory.path().join("cache"))
    });
    assert_eq!(cache.remove(None).expect("removed"), 2);
    for file in &files {
        assert_eq!(file.metadata().expect("open").len(), 0, "it holds the disk");
    }
}

#[test]
fn a_user_keeps_no_more_than_a_share() {
    let mut scene = Scene::with(|config| CacheConfig { user_bytes_max: Some(12 << 20), ..config });
    for seed in 0..8 {
        let sample = Sample::new(seed, 4 * MIB);
        sample.insert(&scene.program());
        sample.wait_for(&scene, sample.units());
    }
    // The last one that is written to looks at the shares, and so does each 16 MiB.
    drop(scene.service.take());
    // When the last connection has let go of the cache.
    let (until, held) = (Instant::now() + PATIENCE, || scene.entries().len() as u64 * 4);
    while held() > 12 {
        assert!(Instant::now() < until, "{} MiB", held());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(held() >= 4);
    let names = fs::read_to_string(scene.entries()[0].join("names")).expect("names");
    let uid = rustix::process::geteuid().as_raw();
    assert!(names.ends_with(&format!(" /{SERVICE_USER_COMPONENT}/{uid}\n")), "{names}");
    assert_eq!(names.lines().count(), 1);
}

#[test]
fn a_user_has_no_more_entries_than_a_share() {
    let config = |config| CacheConfig {
        files_max: 100,
        bytes_max: 4 << 30,
        user_bytes_max: Some(1 << 30),
        ..config
    };
    let mut scene = Scene::with(config);
    let program = scene.program();
    for seed in 0..60 {
        Sample::new(seed, 100).insert(&program);
    }
    wait_until("all are there", || scene.entries().len() == 60);
    drop(program);
    drop(scene.service.take());
    wait_until("no more than a quarter", || scene.entries().len() <= 25);
    assert!(scene.entries().len() >= 20);
}

#[test]
fn nodes_of_trees_count_as_bytes_that_are_held() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = CacheConfig::new(directory.path().join("cache"));
    let cache = Cache::new(CacheConfig { free_bytes_min: 0, ..config });
    for at in 0..50 {
        Far::new(1 << 40, (1 << 20) + at).insert(&cache);
    }
    let held = cache.usage().expect("counted").bytes;
    drop(cache);
    let account = fs::read_to_string(directory.path().join("cache/account")).expect("an account");
    let said: u64 = account.split(' ').next().and_then(|it| it.parse().ok()).expect("a number");
    assert!(said > held / 2, "{said} of {held}");
}

/// Users beside the one of the test.
const USERS: [u32; 3] = [61_001, 61_002, 61_003];

/// Runs something as another user, on a thread whose children are that user's too; `None` if this
/// process may not.
fn as_user<T: Send>(uid: u32, act: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let user = rustix::process::Uid::from_raw(uid);
        let run = move || set_thread_res_uid(user, user, user).ok().map(|()| act());
        scope.spawn(run).join().expect("no panic")
    })
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A service with this share of bytes for each user, whose socket everybody reaches; `None`, said,
/// if this process cannot be several users.
fn shared_scene(test: &str, share: usize) -> Option<Scene> {
    if as_user(USERS[0], || ()).is_none() {
        eprintln!("SKIPPED {test}: only root can be several users");
        return None;
    }
    let scene = Scene::with(|config| CacheConfig { user_bytes_max: Some(share as u64), ..config });
    fs::set_permissions(scene.directory.path(), fs::Permissions::from_mode(0o755)).expect("mode");
    Some(scene)
}

impl Scene {
    /// A user brings some units of a content until they are there.
    fn bring(&self, user: usize, sample: &Sample, units: Range<u64>) {
        let wanted = sample.found(&self.program()) + units.end - units.start;
        wait_until("units that a user brings are there", || {
            self.try_to_bring(user, sample, units.clone());
            sample.found(&self.program()) == wanted
        });
    }

    fn try_to_bring(&self, user: usize, sample: &Sample, units: Range<u64>) {
        let (service, own) = (Some(self.socket()), self.directory.path().join("of a program"));
        let brought = as_user(USERS[user], || {
            let config = CacheConfig { service, ..CacheConfig::new(own) };
            sample.insert_units(&Cache::new(config), units);
        });
        brought.expect("root may be any user");
    }

    fn has(&self, sample: &Sample) -> bool {
        let root = sample.tree.root.as_bytes();
        let digits: String = root.iter().map(|octet| format!("{octet:02x}")).collect();
        self.entries().iter().any(|path| path.to_string_lossy().contains(&digits))
    }
}

#[test]
fn who_brings_the_first_unit_of_a_content_is_counted_no_more_than_that() {
    let test = "who_brings_the_first_unit_of_a_content_is_counted_no_more_than_that";
    let Some(mut scene) = shared_scene(test, 24 * MIB) else { return };
    let shared: Vec<Sample> = (0..4).map(|seed| Sample::new(seed, 4 * MIB)).collect();
    for sample in &shared {
        scene.bring(0, sample, 0..1);
        scene.bring(1, sample, 1..sample.units());
    }
    let own: Vec<Sample> = (10..17).map(|seed| Sample::new(seed, 4 * MIB)).collect();
    own.iter().for_each(|sample| scene.bring(0, sample, 0..sample.units()));
    drop(scene.service.take());
    let own_held = || own.iter().filter(|sample| scene.has(sample)).count();
    wait_until("what is too much of the first user's has gone", || own_held() <= 5);
    assert!(shared.iter().all(|sample| scene.has(sample)), "the other user brought that");
    assert_eq!(own_held(), 5, "nobody else's bytes are counted to the first user");
}

#[test]
fn who_has_a_share_in_what_others_brought_most_of_is_kept_no_more_and_costs_them_nothing() {
    let test = "who_has_a_share_in_what_others_brought_most_of_is_kept_no_more";
    let Some(mut scene) = shared_scene(test, 14 * MIB) else { return };
    let shared: Vec<Sample> = (0..2).map(|seed| Sample::new(seed, 20 * MIB)).collect();
    let unit_bytes = UNIT_BYTES as u64;
    let border = 11 * MIB as u64 / unit_bytes;
    for (other, sample) in shared.iter().enumerate() {
        scene.bring(1 + other, sample, 0..border);
        scene.bring(0, sample, border..sample.units());
    }
    drop(scene.service.take());
    scene.start(|config| CacheConfig { user_bytes_max: Some(14 * MIB as u64), ..config });
    let (more, others) = (Sample::new(8, MIB), Sample::new(9, MIB));
    scene.try_to_bring(0, &more, 0..more.units());
    scene.bring(1, &others, 0..others.units());
    assert!(!scene.has(&more), "more than a share");
    assert!(shared.iter().all(|sample| scene.has(sample)), "others brought most of it");
}

#[test]
fn connections_of_one_user_are_bounded_and_come_free_again() {
    let scene = Scene::new();
    let sample = Sample::new(1, MIB);
    let mut held = Vec::new();
    let is_served = |hostile: &Hostile| {
        hostile.send(&[&head(OPEN, &sample, 0, 0)]) && hostile.receive().is_some()
    };
    for _ in 0..100 {
        let hostile = scene.hostile();
        if is_served(&hostile) {
            held.push(hostile);
        }
    }
    assert_eq!(held.len(), 32);
    drop(held);
    let until = Instant::now() + PATIENCE;
    while !is_served(&scene.hostile()) {
        assert!(Instant::now() < until, "no connection comes free");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn who_does_not_read_answers_is_sent_away_and_holds_up_nobody() {
    let scene = Scene::new();
    let sample = Sample::new(1, MIB);
    sample.insert(&scene.program());
    sample.wait_for(&scene, sample.units());
    let hostile = scene.hostile();
    while hostile.send(&[&head(OPEN, &sample, 0, 0)]) {
        assert_eq!(sample.found(&scene.program()), sample.units());
    }
}

#[test]
fn a_service_that_is_gone_is_passed_by_and_one_that_is_back_is_used_again() {
    let mut scene = Scene::new();
    let sample = Sample::new(1, MIB);
    let program = scene.program();
    sample.insert(&program);
    sample.wait_for(&scene, sample.units());
    assert_eq!(sample.found(&program), sample.units());
    drop(scene.service.take());
    // What is open already may be read or not; what is not is not there, at once.
    let other = Sample::new(2, MIB);
    let begun = Instant::now();
    assert_eq!(other.found(&program), 0);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert!(program.counters().bypasses > 0);
    other.insert(&program);
    scene.start(|config| config);
    other.insert(&scene.program());
    other.wait_for(&scene, other.units());
    let until = Instant::now() + PATIENCE;
    while other.found(&program) != other.units() {
        assert!(Instant::now() < until, "it is not used again");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A service that is stopped takes connections (the kernel does) and answers nobody.
#[test]
fn a_service_that_does_not_answer_is_passed_by() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("socket");
    let flags = SocketFlags::CLOEXEC;
    let silent = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    let silent = silent.expect("a socket");
    rustix::net::bind(&silent, &SocketAddrUnix::new(&socket).expect("a path")).expect("bound");
    rustix::net::listen(&silent, 8).expect("listening");
    let none = directory.path().join("of a program");
    let program = Cache::new(CacheConfig { service: Some(socket), ..CacheConfig::new(none) });
    let sample = Sample::new(1, MIB);
    assert_eq!(sample.found(&program), 0);
    let until = Instant::now() + PATIENCE;
    while program.counters().bypasses == 0 {
        assert!(Instant::now() < until, "it is waited for again and again");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn two_services_cannot_have_one_socket_and_a_dead_one_is_replaced() {
    let mut scene = Scene::new();
    let cache = Cache::new(CacheConfig::new(scene.directory.path().join("cache")));
    let second = Service::start(cache, &scene.socket()).expect_err("it is taken");
    assert_eq!(second.kind(), std::io::ErrorKind::AddrInUse);
    // As if it had been killed: the socket stays, nobody answers.
    drop(scene.service.take());
    let flags = SocketFlags::CLOEXEC;
    let dead = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    let address = SocketAddrUnix::new(scene.socket()).expect("a path");
    rustix::net::bind(dead.expect("a socket"), &address).expect("bound");
    scene.start(|config| config);
    let sample = Sample::new(1, MIB);
    sample.insert(&scene.program());
    sample.wait_for(&scene, sample.units());
}

#[test]
fn what_is_no_socket_of_a_dead_service_is_not_removed() {
    let mut scene = Scene::new();
    drop(scene.service.take());
    let start = || {
        let cache = Cache::new(CacheConfig::new(scene.directory.path().join("cache")));
        Service::start(cache, &scene.socket()).expect_err("something else is there").kind()
    };
    std::fs::write(scene.socket(), b"precious").expect("a file");
    assert_eq!(start(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(scene.socket()).expect("it is still there"), b"precious");
    let other = scene.directory.path().join("other");
    std::fs::rename(scene.socket(), &other).expect("renamed");
    std::os::unix::fs::symlink(&other, scene.socket()).expect("a link");
    assert_eq!(start(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&other).expect("it is still there"), b"precious");
}

#[test]
fn a_socket_lies_where_nobody_else_can_replace_it() {
    let mut scene = Scene::new();
    drop(scene.service.take());
    let place = scene.directory.path().join("place");
    std::fs::create_dir(&place).expect("a directory");
    for (mode, is_safe) in [(0o777, false), (0o770, false), (0o1777, true), (0o755, true)] {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&place, permissions).expect("a mode");
        let cache = Cache::new(CacheConfig::new(scene.directory.path().join("cache")));
        let started = Service::start(cache, &place.join("socket"));
        assert_eq!(started.is_ok(), is_safe, "{mode:o}: {:?}", started.err());
        let refused = started.err().map(|error| error.kind());
        assert!(refused.is_none_or(|kind| kind == std::io::ErrorKind::PermissionDenied));
    }
}

#[test]
fn units_wait_for_a_node_that_is_held_up() {
    let scene = Scene::new();
    let program = scene.program();
    let sample = Sample::new(61, 5 * MIB + 11);
    sample.insert_slowly(&program, Duration::from_millis(100));
    sample.wait_for(&scene, sample.units());
    assert_eq!(scene.refused_bytes(), 0);
}

#[test]
fn nodes_of_many_groups_that_come_ahead_prove_all_of_them() {
    let scene = Scene::new();
    let program = scene.program();
    let sample = Sample::new(62, 41 * MIB + 5);
    let content = sample.content(&program);
    for node in sample.nodes() {
        content.insert_node(node, sample.tree.node(node).expect("it is one"));
    }
    for (at, group) in sample.bytes.chunks(MIB).enumerate() {
        program.wait_for_room(PATIENCE);
        content.insert((at * MIB) as u64, group);
    }
    assert!(program.flush(PATIENCE));
    sample.wait_for(&scene, sample.units());
    assert_eq!(scene.refused_bytes(), 0);
}
