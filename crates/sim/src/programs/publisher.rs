//! A file server: the production engine over a disk in memory that takes its time.
//!
//! A crash loses everything but the disk: files, records and trees. It starts again with a new
//! engine, as the real server does over its state directory.

mod copies;
mod directories;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use byname_packet::lp::LpPacket;
use byname_packet::{Interest, Name, ValidityPeriod};
use byname_security::cert::CertificateRequest;
use byname_security::key::{KeyId, KeyPair, KeySigner};
use byname_security::tree::{HASH_BYTES, Shape, UNIT_BYTES};
use byname_transfer::server::{
    Arrival, Completion, FaceId, FixedData, Handle, Hashed, KeptObject, ListFailure, Located,
    MirrorOptions, Mount, Octets, Op, OpId, SegmentBurst, SegmentSent, Server, ServerConfig,
    SignSegment, SignedSegment, sign_segment,
};

use crate::disk::{Disk, File, Trouble};
use crate::program::{Crash, Now, Program};
use crate::random::Random;

use directories::Wanted;

/// Time that the disk takes.
#[derive(Clone, Copy, Debug)]
pub struct DiskTimes {
    /// Anything that is not reading content.
    pub operation_ns: u64,
    /// A burst of segments.
    pub read_ns: u64,
    /// Hashing, per octet, in picoseconds.
    pub hash_ps_per_byte: u64,
}

impl Default for DiskTimes {
    fn default() -> Self {
        DiskTimes { operation_ns: 50_000, read_ns: 20_000, hash_ps_per_byte: 250 }
    }
}

enum Open {
    File(File),
    Levels(Vec<u8>),
}

enum Due {
    Completion(OpId, Completion),
    Segments(SegmentBurst, SegmentSent, Vec<Vec<u8>>),
}

/// See the module.
pub struct Publisher {
    server: Server,
    /// Parameters of the engine, which is rebuilt from them after a crash.
    mount: Mount,
    certificate: Vec<u8>,
    key_seed: u8,
    /// Of a mirror: what was kept with its files, by path.
    kept: Option<BTreeMap<Vec<u8>, KeptObject>>,
    is_down: bool,
    disk: Disk,
    times: DiskTimes,
    random: Random,
    open: HashMap<Handle, Open>,
    next_handle: u64,
    /// Disk operations in progress, by time of completion and order.
    due: BTreeMap<(u64, u64), Due>,
    due_count: u64,
    out: VecDeque<Vec<u8>>,
    key_id: KeyId,
}

impl Publisher {
    /// A server of everything on `disk` under `prefix`, with a key made from `key_seed`.
    pub fn new(prefix: &Name, key_seed: u8, disk: Disk, times: DiskTimes) -> Self {
        let (signer, key_id, certificate) = identity(prefix, key_seed);
        let (prefix, signer) = (prefix.clone(), Arc::new(signer));
        let mount = Mount { prefix, signer, contents: false };
        Publisher {
            server: engine(&mount, &certificate),
            mount,
            certificate,
            key_seed,
            kept: None,
            is_down: false,
            disk,
            times,
            random: Random::new(key_seed.into()),
            open: HashMap::new(),
            next_handle: 0,
            due: BTreeMap::new(),
            due_count: 0,
            out: VecDeque::new(),
            key_id,
        }
    }

    /// The same of contents: the files on `disk` have the names of
    /// [`content_path`](byname_transfer::naming::content_path), as on a disk server of a site.
    pub fn of_contents(prefix: &Name, key_seed: u8, disk: Disk, times: DiskTimes) -> Self {
        let mut publisher = Publisher::new(prefix, key_seed, disk, times);
        publisher.mount.contents = true;
        publisher.server = engine(&publisher.mount, &publisher.certificate);
        publisher
    }

    /// The key that signs.
    pub fn key_id(&self) -> KeyId {
        self.key_id
    }

    /// The disk, to change files on it.
    pub fn disk_mut(&mut self) -> &mut Disk {
        &mut self.disk
    }

    /// The disk as it is.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    fn is_failing(&mut self, probability: f64) -> bool {
        self.random.chance(probability)
    }

    fn finish(&mut self, at_ns: u64, due: Due) {
        let Trouble { slow, slow_ns, .. } = self.disk.trouble;
        let at_ns = if self.random.chance(slow) { at_ns + slow_ns } else { at_ns };
        self.due_count += 1;
        self.due.insert((at_ns, self.due_count), due);
    }

    /// Lets the disk begin everything that the engine asks for.
    fn pump(&mut self, now: Now) {
        loop {
            while let Some(outgoing) = self.server.poll_transmit() {
                self.out.push_back(outgoing.wire);
            }
            if let Some(burst) = self.server.poll_segments() {
                let is_failing = self.is_failing(self.disk.trouble.read_error);
                let (sent, packets) = match is_failing {
                    true => (SegmentSent::Failed, Vec::new()),
                    false => self.read(&burst),
                };
                let due = Due::Segments(burst, sent, packets);
                self.finish(now.now_ns + self.times.read_ns, due);
            } else if let Some((id, op)) = self.server.poll_op() {
                self.begin(id, op, now);
            } else {
                return;
            }
        }
    }

    fn begin(&mut self, id: OpId, op: Op, now: Now) {
        let mut took_ns = self.times.operation_ns;
        let is_failing = self.is_failing(self.disk.trouble.other_error);
        let completion = match op {
            Op::Close { handle } => {
                self.open.remove(&handle);
                return;
            }
            Op::Locate { .. } if is_failing => Completion::Located(Located::Failed),
            Op::Locate { path, .. } => Completion::Located(self.locate(&path)),
            Op::List { .. } | Op::Manifest { .. } if is_failing => {
                Completion::Listed(Err(ListFailure::Failed))
            }
            Op::List { path, bytes_max, .. } => {
                Completion::Listed(directories::list(&self.disk, &path, bytes_max))
            }
            Op::Manifest { path, name, bytes_max, quiet, signature_bytes, .. } => {
                let unix_ns = now.unix_ns;
                let wanted = Wanted { path, name, bytes_max, quiet, signature_bytes, unix_ns };
                Completion::Listed(directories::describe(&mut self.disk, &wanted))
            }
            Op::ReadKept { path, .. } => {
                let kept = self.kept.as_ref().and_then(|kept| kept.get(&path));
                Completion::Kept(kept.cloned())
            }
            Op::Recall { key, state } => {
                Completion::Recalled(self.disk.recall(&key, state.as_ref()))
            }
            Op::Announce { key, record } => Completion::Announced(self.disk.announce(key, record)),
            Op::Hash { .. } if is_failing => Completion::Hashed(Hashed::Failed),
            Op::Hash { file, state } => {
                took_ns += state.size * self.times.hash_ps_per_byte / 1000;
                Completion::Hashed(self.hash(file))
            }
            Op::OpenTree { .. } if is_failing => Completion::TreeOpened(None),
            Op::OpenTree { state, .. } => {
                let levels = self.disk.levels(&state);
                let opened = levels.map(|levels| self.keep(Open::Levels(levels)));
                Completion::TreeOpened(opened)
            }
            Op::SignSegment(_) if is_failing => Completion::Signed(SignedSegment::Failed),
            Op::SignSegment(order) => Completion::Signed(self.sign(&order)),
        };
        self.finish(now.now_ns + took_ns, Due::Completion(id, completion));
    }

    fn keep(&mut self, open: Open) -> Handle {
        self.next_handle += 1;
        let handle = Handle(self.next_handle);
        self.open.insert(handle, open);
        handle
    }

    fn locate(&mut self, path: &[u8]) -> Located {
        match self.disk.find(path) {
            None => match self.disk.find_directory(path) {
                Some(stat) => Located::Directory { stat, changes: None },
                None => Located::NotFound,
            },
            Some(file) => Located::File { stat: file.stat(), handle: self.keep(Open::File(file)) },
        }
    }

    fn hash(&mut self, handle: Handle) -> Hashed {
        let Some(Open::File(file)) = self.open.get(&handle) else { return Hashed::Failed };
        if !self.disk.is_unchanged(file) {
            return Hashed::Changed;
        }
        let (tree, state) = (file.tree(), file.stat().state);
        let root = *tree.root.as_bytes();
        match self.disk.keep_tree(state, tree) {
            true => Hashed::Root(root),
            false => Hashed::Failed,
        }
    }

    fn sign(&self, order: &SignSegment) -> SignedSegment {
        let content = match (self.open.get(&order.source), order.octets) {
            (Some(Open::File(file)), _) if !self.disk.is_unchanged(file) => {
                return SignedSegment::Changed;
            }
            (Some(open), Octets::Stored { offset, len }) => open.read(offset, len),
            (Some(Open::File(file)), Octets::Values { offset, len }) => values(file, offset, len),
            _ => None,
        };
        let packet = content.and_then(|content| sign_segment(order, &content).ok());
        packet.map_or(SignedSegment::Failed, SignedSegment::Packet)
    }

    /// The packets of a burst.
    fn read(&self, burst: &SegmentBurst) -> (SegmentSent, Vec<Vec<u8>>) {
        let Some(open) = self.open.get(&burst.source()) else {
            return (SegmentSent::Failed, Vec::new());
        };
        if let Open::File(file) = open
            && !self.disk.is_unchanged(file)
        {
            return (SegmentSent::Changed, Vec::new());
        }
        let packets = burst.segments().map(|segment| {
            let content = open.read(segment.offset, segment.len)?;
            Some([segment.header, &content, segment.trailer].concat())
        });
        match packets.collect() {
            Some(packets) => (SegmentSent::Sent, packets),
            None => (SegmentSent::Failed, Vec::new()),
        }
    }
}

impl Open {
    fn read(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        match self {
            Open::File(file) => {
                let mut octets = vec![0; len];
                let fits = offset.checked_add(len as u64)? <= file.size;
                fits.then(|| file.read(offset, &mut octets))?;
                Some(octets)
            }
            Open::Levels(levels) => {
                let start = usize::try_from(offset).ok()?;
                Some(levels.get(start..)?.get(..len)?.to_vec())
            }
        }
    }
}

/// Octets of level 1 of a file's tree, computed from the units they stand for.
fn values(file: &File, offset: u64, len: usize) -> Option<Vec<u8>> {
    let first = offset / HASH_BYTES as u64;
    let count = (len / HASH_BYTES) as u64;
    let start = first * UNIT_BYTES as u64;
    let end = (start + count * UNIT_BYTES as u64).min(file.size);
    let mut octets = vec![0; end.checked_sub(start)? as usize];
    file.read(start, &mut octets);
    let mut values = Vec::with_capacity(len);
    Shape::new(file.size).hash_units(first, &octets, &mut values).ok()?;
    Some(values)
}

fn engine(mount: &Mount, certificate: &[u8]) -> Server {
    let mut server = Server::new(ServerConfig::default(), vec![mount.clone()]);
    let certificate = FixedData { wire: certificate.to_vec() };
    server.add_fixed(certificate).expect("a certificate is a packet");
    server
}

/// A signer with a self-signed certificate.
fn identity(prefix: &Name, seed: u8) -> (KeySigner, KeyId, Vec<u8>) {
    let key = Arc::new(KeyPair::ed25519_from_seed(&[seed; 32]));
    let key_name = prefix.with_generic(b"KEY").with_generic(&[seed; 8]);
    let public_key = key.public_key();
    let request = CertificateRequest {
        key_name: key_name.view(),
        public_key: &public_key,
        issuer_id: b"self",
        version: 1,
        validity: ValidityPeriod { not_before_s: 0, not_after_s: 4_000_000_000 },
    };
    let signer = KeySigner::new(key.clone(), request.certificate_name());
    let certificate = request.issue(&signer).expect("a certificate").wire().to_vec();
    (signer, key.key_id(), certificate)
}

fn clocks(now: Now) -> byname_transfer::server::Now {
    byname_transfer::server::Now { now_ns: now.now_ns, unix_ns: now.unix_ns }
}

impl Program for Publisher {
    fn handle_frame(&mut self, frame: &[u8], now: Now) {
        if self.is_down {
            return;
        }
        let Ok(link) = LpPacket::decode(frame) else { return };
        let Some(packet) = link.fragment.filter(|_| link.header.nack.is_none()) else { return };
        let Ok(interest) = Interest::decode(packet) else { return };
        let arrival = Arrival {
            interest: &interest,
            pit_token: link.header.pit_token,
            congestion_mark: link.header.congestion_mark,
            face: FaceId(0),
            incoming_face_id: None,
            path_trace: None,
        };
        self.server.handle_interest(&arrival, clocks(now));
        self.pump(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        while let Some(entry) = self.due.first_entry().filter(|it| it.key().0 <= now.now_ns) {
            match entry.remove() {
                Due::Completion(id, completion) => {
                    self.server.handle_completion(id, completion, clocks(now));
                }
                Due::Segments(burst, sent, packets) => {
                    self.out.extend(packets);
                    self.server.handle_segments(burst, sent);
                }
            }
        }
        self.server.handle_timeout(clocks(now));
        self.pump(now);
    }

    fn poll_frame(&mut self, _now: Now) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<u64> {
        if self.is_down {
            return None;
        }
        let disk = self.due.keys().next().map(|(at_ns, _)| *at_ns);
        [self.server.poll_timeout(), disk].into_iter().flatten().min()
    }

    fn fault(&self) -> Option<String> {
        let full = self.server.levels().overfull(&ServerConfig::default());
        let (what, held, max) = full?;
        Some(format!("tables are bounded: {held} {what} at a server, allowed are {max}"))
    }

    fn crash(&mut self, _how: Crash, _now: Now) {
        self.disk.crash().expect("a temporary directory can be copied");
        self.server = engine(&self.mount, &self.certificate);
        if self.kept.is_some() {
            self.server.mirror(0, MirrorOptions::default());
        }
        self.is_down = true;
        self.open.clear();
        self.due.clear();
        self.out.clear();
    }

    fn restart(&mut self, _now: Now) {
        self.is_down = false;
    }
}
