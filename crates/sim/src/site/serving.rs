//! The production file-server engine over files and directories that somebody else has: everything
//! it asks for is answered at once.

use std::collections::BTreeMap;

use byname_packet::lp::{LpHeader, LpPacket, encode_header};
use byname_packet::{Interest, Name};
use byname_security::tree::Tree;
use byname_site::SiteName;
use byname_store::Service;
use byname_transfer::server::{
    self, Arrival, Completion, FaceId, FileStat, FileState, Fingerprint, FixedData, Handle, Hashed,
    ListFailure, Listing, Located, Mount, Op, Outgoing, Recalled, SegmentBurst, SegmentSent,
    Server, ServerConfig, SharedSigner, SignedSegment,
};

use crate::program::Now;

const REGULAR: u16 = 0o100_644;

/// Whoever has what is served.
pub(super) trait Objects {
    /// What a path leads to.
    fn locate(&self, path: &[u8]) -> Object;
    /// A directory's snapshot.
    fn list(
        &self,
        path: &[u8],
        is_manifest: bool,
        bytes_max: usize,
    ) -> Result<Listing, ListFailure>;
}

/// Target of a path.
pub(super) enum Object {
    /// The whole of a file.
    File(Vec<u8>),
    /// Anything that is no file here.
    Other(Located),
}

/// An open file or its tree.
struct Open {
    octets: Vec<u8>,
    state: FileState,
}

/// See the module.
pub(super) struct Serving {
    server: Server,
    open: BTreeMap<u64, Open>,
    next_handle: u64,
    pub(super) out: Vec<Outgoing>,
}

impl Serving {
    /// Serves a site's paths, or its contents.
    pub(super) fn new(
        site: &SiteName,
        signer: SharedSigner,
        (certificate, contents): (&[u8], bool),
    ) -> Self {
        let prefix: Name = site.view().to_name();
        let mount = Mount { prefix, signer, contents };
        let mut server = Server::new(ServerConfig::default(), vec![mount]);
        let certificate = FixedData { wire: certificate.to_vec() };
        server.add_fixed(certificate).expect("a certificate is a packet");
        Self { server, open: BTreeMap::new(), next_handle: 0, out: Vec::new() }
    }

    pub(super) fn handle_interest(
        &mut self,
        arrival: &Arrival<'_>,
        objects: &dyn Objects,
        now: Now,
    ) {
        self.server.handle_interest(arrival, clocks(now));
        self.pump(objects, now);
    }

    pub(super) fn handle_timeout(&mut self, objects: &dyn Objects, now: Now) {
        self.server.handle_timeout(clocks(now));
        self.pump(objects, now);
    }

    pub(super) fn poll_timeout(&mut self) -> Option<u64> {
        self.server.poll_timeout()
    }

    pub(super) fn fault(&self) -> Option<String> {
        let full = self.server.levels().overfull(&ServerConfig::default());
        let (what, held, max) = full?;
        Some(format!("tables are bounded: {held} {what} at a server, allowed are {max}"))
    }

    fn pump(&mut self, objects: &dyn Objects, now: Now) {
        loop {
            self.out.extend(std::iter::from_fn(|| self.server.poll_transmit()));
            if let Some(burst) = self.server.poll_segments() {
                let sent = self.read(&burst);
                self.server.handle_segments(burst, sent);
            } else if let Some((id, op)) = self.server.poll_op() {
                if let Some(completion) = self.carry_out(op, objects) {
                    self.server.handle_completion(id, completion, clocks(now));
                }
            } else {
                return;
            }
        }
    }

    fn carry_out(&mut self, op: Op, objects: &dyn Objects) -> Option<Completion> {
        Some(match op {
            Op::Close { handle } => {
                self.open.remove(&handle.0);
                return None;
            }
            Op::Locate { path, .. } => Completion::Located(match objects.locate(&path) {
                Object::File(octets) => self.keep_file(octets),
                Object::Other(located) => located,
            }),
            Op::List { path, bytes_max, .. } => {
                Completion::Listed(objects.list(&path, false, bytes_max))
            }
            Op::Manifest { path, bytes_max, .. } => {
                Completion::Listed(objects.list(&path, true, bytes_max))
            }
            Op::ReadKept { .. } => Completion::Kept(None),
            Op::Recall { .. } => Completion::Recalled(Recalled::default()),
            Op::Announce { .. } => Completion::Announced(true),
            Op::Hash { file, .. } => Completion::Hashed(match self.open.get(&file.0) {
                Some(open) => Hashed::Root(*Tree::of(&open.octets).root.as_bytes()),
                None => Hashed::Failed,
            }),
            Op::OpenTree { file, .. } => {
                let found = self.open.get(&file.0);
                let tree = found.map(|open| (Tree::of(&open.octets).levels.concat(), open.state));
                Completion::TreeOpened(tree.map(|(levels, state)| self.keep(levels, state)))
            }
            Op::SignSegment(_) => Completion::Signed(SignedSegment::Failed),
        })
    }

    fn keep(&mut self, octets: Vec<u8>, state: FileState) -> Handle {
        self.next_handle += 1;
        self.open.insert(self.next_handle, Open { octets, state });
        Handle(self.next_handle)
    }

    fn keep_file(&mut self, octets: Vec<u8>) -> Located {
        let (size, mut object) = (octets.len() as u64, [0; 16]);
        object.copy_from_slice(&Tree::of(&octets).root.as_bytes()[..16]);
        let state = FileState { fingerprint: Fingerprint::new(object, [0; 24]), size };
        let stat = FileStat { state, mode: REGULAR, mtime_ns: 0, ctime_ns: None };
        Located::File { stat, handle: self.keep(octets, state) }
    }

    fn read(&mut self, burst: &SegmentBurst) -> SegmentSent {
        let Some(open) = self.open.get(&burst.source().0) else { return SegmentSent::Failed };
        let packets = burst.segments().map(|segment| {
            let start = usize::try_from(segment.offset).ok()?;
            let content = open.octets.get(start..)?.get(..segment.len)?;
            Some([segment.header, content, segment.trailer].concat())
        });
        match packets.collect::<Option<Vec<_>>>() {
            Some(packets) => {
                let face = FaceId(0);
                self.out.extend(packets.into_iter().map(|wire| Outgoing { face, wire }));
                SegmentSent::Sent
            }
            None => SegmentSent::Failed,
        }
    }
}

/// Hands an Interest in a frame to the service that answers it, or to the file server.
pub(super) fn take_frame(
    frame: &LpPacket<'_>,
    (service, serving): (&mut dyn Service, &mut Serving),
    objects: &dyn Objects,
    now: Now,
) {
    let Some(packet) = frame.fragment.filter(|_| frame.header.nack.is_none()) else { return };
    let Ok(interest) = Interest::decode(packet) else { return };
    let arrival = Arrival {
        interest: &interest,
        pit_token: frame.header.pit_token,
        congestion_mark: frame.header.congestion_mark,
        face: FaceId(0),
        incoming_face_id: None,
        path_trace: None,
    };
    match service.answers(interest.name) {
        true => service.handle_interest(&arrival, clocks(now)),
        false => serving.handle_interest(&arrival, objects, now),
    }
}

/// A frame with a packet that goes back with a token, or as a Nack.
pub(super) fn frame((pit_token, nack): (Option<&[u8]>, Option<u64>), packet: &[u8]) -> Vec<u8> {
    let header = LpHeader { pit_token, nack, ..LpHeader::default() };
    let mut frame = Vec::new();
    encode_header(&header, None, packet.len(), &mut frame);
    frame.extend_from_slice(packet);
    frame
}

pub(super) fn clocks(now: Now) -> server::Now {
    server::Now { now_ns: now.now_ns, unix_ns: now.unix_ns }
}
