//! A directory to publish, a server on one end of a socket pair, and a reader on the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use byname_face::frame_len;
use byname_io::{Connection, Interest as Readiness, Poller, Token};
use byname_packet::lp::{self, LpHeader, LpPacket};
use byname_packet::{Data, DigestSigner, Interest, InterestBuilder, Name, NameRef, Packet};
use byname_security::tree::Hash;
use byname_store::backend::memory::Memory;
use byname_store::{
    Exposure, FileServer, FileServerConfig, MountConfig, MountSource, ServerHandle, StoreError,
    WatchLevels,
};
use byname_transfer::listing;
use byname_transfer::metadata::{Absence, Answer, ContentRoot, Metadata};
use byname_transfer::naming::{self, Part};
use byname_transfer::server::Counters;
use tempfile::TempDir;

/// Long enough for the slowest machine; a test that reaches it fails.
const PATIENCE: Duration = Duration::from_secs(300);

/// Files of one test, in a directory or in memory, and directories beside them.
pub(crate) struct World {
    home: TempDir,
    memory: Option<Memory>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::at(TempDir::new().unwrap())
    }

    /// On a file system whose files can have as many octets as there are numbers for.
    pub(crate) fn in_shared_memory() -> Self {
        Self::at(TempDir::new_in("/dev/shm").unwrap())
    }

    fn at(home: TempDir) -> Self {
        std::fs::create_dir(home.path().join("tree")).unwrap();
        Self { home, memory: None }
    }

    /// Files in memory.
    pub(crate) fn memory() -> Self {
        Self { memory: Some(Memory::new()), ..Self::new() }
    }

    /// Files in memory that are given only to those who wait.
    pub(crate) fn remote() -> Self {
        Self { memory: Some(Memory::new().remote()), ..Self::new() }
    }

    /// The published directory.
    pub(crate) fn tree(&self) -> PathBuf {
        self.home.path().join("tree")
    }

    /// A directory beside it.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.tree().join(relative)
    }

    /// Writes a file and the directories above it.
    pub(crate) fn write(&self, relative: &str, content: &[u8]) {
        if let Some(memory) = &self.memory {
            return memory.put(relative, content).unwrap();
        }
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Removes a file.
    pub(crate) fn remove(&self, relative: &str) {
        match &self.memory {
            Some(memory) => assert!(memory.remove(relative)),
            None => std::fs::remove_file(self.path(relative)).unwrap(),
        }
    }

    /// Published source; the exposure applies to directories only.
    pub(crate) fn source(&self, exposure: Exposure) -> MountSource {
        match &self.memory {
            Some(memory) => MountSource::Backend(Arc::new(memory.clone())),
            None => MountSource::Directory { directory: self.tree(), exposure },
        }
    }

    /// A configuration with one mount at `/t`.
    pub(crate) fn config(&self) -> FileServerConfig {
        let source = self.source(Exposure::default());
        let mount =
            MountConfig { prefix: "/t".parse().unwrap(), source, signer: Arc::new(DigestSigner) };
        FileServerConfig::new(vec![mount], self.beside("state"))
    }
}

/// Octets that differ from unit to unit.
pub(crate) fn pattern(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at / 7 + at / 8192 * 31) as u8).collect()
}

/// Reply to an Interest.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A Data packet.
    Data(Vec<u8>),
    /// A Nack with this reason.
    Nack(u64),
}

/// A reader connected to a running server. Dropping stops the server.
pub(crate) struct Peer {
    connection: Connection,
    poller: Poller,
    handle: ServerHandle,
    thread: Option<JoinHandle<Result<(), StoreError>>>,
    frames: Vec<Vec<u8>>,
    nonce: u32,
}

impl Peer {
    pub(crate) fn start(world: &World) -> Self {
        Self::start_with(world.config())
    }

    pub(crate) fn start_with(config: FileServerConfig) -> Self {
        let server = FileServer::new(config).unwrap();
        let (ours, theirs) = Connection::pair().unwrap();
        let handle = server.handle();
        let thread = std::thread::spawn(move || server.run_direct(theirs));
        let mut peer = Self::over(ours, handle);
        peer.thread = Some(thread);
        peer
    }

    /// A reader by a connection to a server that somebody else runs.
    pub(crate) fn over(connection: Connection, handle: ServerHandle) -> Self {
        let poller = Poller::new().unwrap();
        poller.add(&connection, Token(0), Readiness::READ).unwrap();
        let frames = Vec::new();
        Self { connection, poller, handle, thread: None, frames, nonce: 0 }
    }

    /// Counters of the server once it has nothing to do; asks something so that they are current.
    pub(crate) fn counters(&mut self) -> Counters {
        self.ask(&InterestBuilder::new("/nobody/home".parse::<Name>().unwrap().view()));
        let before = self.handle.counters();
        let deadline = Instant::now() + PATIENCE;
        while self.handle.counters() == before && before.interests == 0 {
            assert!(Instant::now() < deadline);
            std::thread::yield_now();
        }
        self.handle.counters()
    }

    /// Sends an Interest without waiting.
    pub(crate) fn send(&mut self, builder: &InterestBuilder<'_>, token: &[u8]) {
        self.queue(builder, token);
        self.flush();
    }

    /// Sends what was queued.
    pub(crate) fn flush(&mut self) {
        self.connection.flush().unwrap();
    }

    /// What the server watches.
    pub(crate) fn watched(&self) -> WatchLevels {
        self.handle.watched().unwrap()
    }

    /// Bursts that the server's serving thread left to others.
    pub(crate) fn handed_over(&self) -> u64 {
        self.handle.bursts_handed_over()
    }

    /// Prepares an Interest to be sent with others.
    pub(crate) fn queue(&mut self, builder: &InterestBuilder<'_>, token: &[u8]) {
        self.nonce += 1;
        let mut wire = Vec::new();
        builder.clone().nonce(self.nonce.to_be_bytes()).encode(&mut wire);
        let header = LpHeader { pit_token: Some(token), ..LpHeader::default() };
        let mut front = Vec::new();
        lp::encode_header(&header, None, wire.len(), &mut front);
        self.connection.queue(&[&front, &wire]).unwrap();
    }

    /// The next frame from the server.
    fn next_frame(&mut self) -> Vec<u8> {
        let deadline = Instant::now() + PATIENCE;
        while self.frames.is_empty() {
            assert!(Instant::now() < deadline, "the server does not answer");
            let mut events = Vec::new();
            self.poller.wait(&mut events, Some(Duration::from_millis(100))).unwrap();
            let frames = &mut self.frames;
            let status = self
                .connection
                .recv_burst(frame_len, &mut |frame| frames.push(frame.to_vec()))
                .unwrap();
            assert!(!status.closed || !self.frames.is_empty(), "the server is gone");
        }
        self.connection.flush().unwrap();
        self.frames.remove(0)
    }

    /// The next frame, and whether it is a Data.
    pub(crate) fn receive_frame(&mut self) -> (Vec<u8>, bool) {
        let frame = self.next_frame();
        let is_data = LpPacket::decode(&frame).unwrap().header.nack.is_none();
        (frame, is_data)
    }

    /// The next packet from the server, with the token it carries.
    pub(crate) fn receive(&mut self) -> (Vec<u8>, Reply) {
        let frame = self.next_frame();
        let link = LpPacket::decode(&frame).unwrap();
        let token = link.header.pit_token.unwrap_or_default().to_vec();
        let packet = link.fragment.unwrap();
        let reply = match (Packet::decode(packet).unwrap(), link.header.nack) {
            (Packet::Data(_), None) => Reply::Data(packet.to_vec()),
            (Packet::Interest(_), Some(reason)) => Reply::Nack(reason),
            other => panic!("unexpected packet {other:?}"),
        };
        (token, reply)
    }

    /// Sends an Interest and waits for its answer, checking that it is one.
    pub(crate) fn ask(&mut self, builder: &InterestBuilder<'_>) -> Reply {
        let token = (self.nonce + 1).to_be_bytes();
        self.send(builder, &token);
        let mut wire = Vec::new();
        builder.encode(&mut wire);
        let (returned, reply) = self.receive();
        assert_eq!(returned, token, "the PIT token must come back");
        if let Reply::Data(data) = &reply {
            let interest = Interest::decode(&wire).unwrap();
            assert!(interest.matches(&Data::decode(data).unwrap()), "not an answer");
        }
        reply
    }

    /// The answer to a discovery Interest as it is.
    pub(crate) fn ask_metadata(&mut self, path: &str) -> Reply {
        self.ask_metadata_of(Name::from_path(path).unwrap().view())
    }

    fn ask_metadata_of(&mut self, name: NameRef<'_>) -> Reply {
        let name = naming::metadata_name(name);
        let builder = InterestBuilder::new(name.view());
        self.ask(&builder.can_be_prefix(true).must_be_fresh(true).lifetime_ms(4000))
    }

    /// The answer to a discovery Interest. Waits while a file is being written or hashed, or a
    /// directory listed.
    pub(crate) fn discover(&mut self, path: &str) -> Answer {
        self.discover_of(Name::from_path(path).unwrap().view())
    }

    fn discover_of(&mut self, path: NameRef<'_>) -> Answer {
        let deadline = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < deadline, "{path} never settles");
            let wire = match self.ask_metadata_of(path) {
                Reply::Data(wire) => wire,
                Reply::Nack(reason) => panic!("{path}: Nack {reason}"),
            };
            match Answer::decode(&Data::decode(&wire).unwrap()).unwrap() {
                Answer::Absence(Absence::BeingWritten { .. } | Absence::BeingListed { .. }) => {}
                Answer::Metadata(found) if found.root == ContentRoot::Pending => {}
                answer => return answer,
            }
            // The processor belongs to who hashes.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn metadata(&mut self, path: &str) -> Metadata {
        self.metadata_of(Name::from_path(path).unwrap().view())
    }

    pub(crate) fn metadata_of(&mut self, path: NameRef<'_>) -> Metadata {
        match self.discover_of(path) {
            Answer::Metadata(metadata) => metadata,
            Answer::Absence(absence) => panic!("{path}: {absence:?}"),
        }
    }

    pub(crate) fn absence(&mut self, path: &str) -> Absence {
        self.absence_of(Name::from_path(path).unwrap().view())
    }

    pub(crate) fn absence_of(&mut self, path: NameRef<'_>) -> Absence {
        match self.discover_of(path) {
            Answer::Metadata(metadata) => panic!("{path} is published: {metadata:?}"),
            Answer::Absence(absence) => absence,
        }
    }

    /// One segment's content, or the Nack's reason.
    pub(crate) fn segment(
        &mut self,
        object: NameRef<'_>,
        part: Part,
        n: u64,
    ) -> Result<Vec<u8>, u64> {
        let name = naming::segment_name(object, part, n);
        match self.ask(&InterestBuilder::new(name.view())) {
            Reply::Data(wire) => Ok(Data::decode(&wire).unwrap().content.to_vec()),
            Reply::Nack(reason) => Err(reason),
        }
    }

    /// All segments of an object, up to the FinalBlockId that each must carry.
    pub(crate) fn object(&mut self, versioned: NameRef<'_>, part: Part) -> Vec<u8> {
        self.try_object(versioned, part).unwrap_or_else(|name| panic!("{name} is not served"))
    }

    /// The same, or the first name that was refused.
    pub(crate) fn try_object(
        &mut self,
        versioned: NameRef<'_>,
        part: Part,
    ) -> Result<Vec<u8>, String> {
        let mut content = Vec::new();
        for segment in 0.. {
            let name = naming::segment_name(versioned, part, segment);
            let Reply::Data(wire) = self.ask(&InterestBuilder::new(name.view())) else {
                return Err(name.to_string());
            };
            let data = Data::decode(&wire).unwrap();
            content.extend_from_slice(data.content);
            let last = data.meta.final_block_id.unwrap().segment().unwrap();
            if segment == last {
                break;
            }
        }
        Ok(content)
    }

    /// The whole content, checked against size and root.
    pub(crate) fn fetch(&mut self, metadata: &Metadata) -> Vec<u8> {
        let content = self.object(metadata.name.view(), Part::Content);
        let size = metadata.size.or(metadata.listing_size).unwrap();
        assert_eq!(content.len() as u64, size);
        assert_eq!(metadata.root, ContentRoot::Known(Hash::of(&content).0));
        content
    }

    /// The entries of a directory as `name` or `name/`.
    pub(crate) fn list(&mut self, path: &str) -> Vec<String> {
        let metadata = self.metadata(path);
        assert!(metadata.is_directory());
        let payload = self.fetch(&metadata);
        listing::entries(&payload)
            .map(|entry| {
                let entry = entry.unwrap();
                let mark = if entry.is_directory { "/" } else { "" };
                format!("{}{mark}", String::from_utf8(entry.name.to_vec()).unwrap())
            })
            .collect()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.handle.stop();
        let served = thread.join();
        if !std::thread::panicking() {
            served.unwrap().unwrap();
        }
    }
}
