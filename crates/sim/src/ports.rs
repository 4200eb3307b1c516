//! The faces of a host's forwarder: links, up to the line towards the other end, and programs.

use byname_forwarder::{FaceId, FaceInfo, Tx};
use byname_link::{
    CongestionMarker, LinkOptions, LinkReceiver, LinkSender, LinkService, ReassemblyLimits,
};
use byname_packet::lp::{LpHeader, encode_header};

use crate::check::{Ledger, Token};
use crate::frame::Frame;
use crate::line::{Arrival, Line};
use crate::program::Program;
use crate::random::Random;

/// Where a link ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) host: usize,
    pub(crate) port: usize,
}

/// This host's end of a link: everything up to the line towards the other end.
pub(crate) struct Wire {
    pub(crate) sender: LinkSender,
    marker: CongestionMarker,
    pub(crate) line: Line,
    /// Number of the line in the world.
    pub(crate) number: usize,
    random: Random,
    is_departure_planned: bool,
}

pub(crate) enum Kind {
    Wire(Box<Wire>),
    Program(Box<dyn Program>),
}

pub(crate) struct Port {
    pub(crate) face: FaceId,
    pub(crate) info: FaceInfo,
    pub(crate) kind: Kind,
}

/// Events for the world to plan.
pub(crate) enum Leaving {
    /// A frame comes to the other end of a line.
    Frame { line: usize, arrival: Arrival },
    /// A line will be free for the next frame that waits.
    Departure { line: usize, at_ns: u64 },
}

/// The frame that the forwarder is looking at, and where it lies: what leaves as it came is not
/// copied.
struct Current {
    start: usize,
    len: usize,
    frame: Frame,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Ports {
    pub(crate) ports: Vec<Port>,
    pub(crate) leaving: Vec<Leaving>,
    pub(crate) for_programs: Vec<(usize, Frame)>,
    pub(crate) now_ns: u64,
    /// The ports that are programs.
    pub(crate) programs: Vec<usize>,
    /// The ports of links that send lost frames again.
    pub(crate) reliable: Vec<usize>,
    /// Ports by the number of their face, which forwarders give out in sequence.
    by_face: Vec<usize>,
    current: Option<Current>,
    /// Who asked for what, where that is watched.
    pub(crate) ledger: Option<Box<Ledger>>,
}

impl Ports {
    /// The token under which the forwarder shall see a packet.
    pub(crate) fn token_for(&mut self, port: usize, header: &LpHeader<'_>, packet: &[u8]) -> Token {
        let is_program = matches!(self.ports[port].kind, Kind::Program(_));
        match &mut self.ledger {
            Some(ledger) => ledger.arrives((port, is_program), header, packet, self.now_ns),
            None => header.pit_token.map(Token::new).unwrap_or_default(),
        }
    }

    /// Adds a port, or gives it another face.
    pub(crate) fn set_face(&mut self, port: usize, face: FaceId) {
        let at = face.0 as usize;
        if self.by_face.len() <= at {
            self.by_face.resize(at + 1, usize::MAX);
        }
        self.by_face[at] = port;
        self.ports[port].face = face;
    }

    /// No face of a former forwarder leads anywhere.
    pub(crate) fn forget_faces(&mut self) {
        self.by_face.clear();
    }

    /// Says which frame the forwarder is given, and the octets of it that it sees.
    pub(crate) fn begin(&mut self, frame: &Frame, octets: &[u8]) {
        let (start, len) = (octets.as_ptr().addr(), octets.len());
        self.current = Some(Current { start, len, frame: frame.clone() });
    }

    /// The octets may change from now on.
    pub(crate) fn end(&mut self) {
        self.current = None;
    }
}

impl Tx for Ports {
    fn send(&mut self, face: FaceId, header: &LpHeader<'_>, packet: &[u8]) {
        let Some(place) = self.by_face.get(face.0 as usize) else { return };
        let Some(port) = self.ports.get_mut(*place) else { return };
        let is_program = matches!(port.kind, Kind::Program(_));
        let own = match &mut self.ledger {
            Some(ledger) => ledger.leaves((*place, is_program), header, packet, self.now_ns),
            None => header.pit_token.map(Token::new).unwrap_or_default(),
        };
        let header = &LpHeader { pit_token: own.get(), ..*header };
        match &mut port.kind {
            Kind::Program(_) => {
                let frame = match packed(&self.current, packet) {
                    Some(frame) if header.is_empty() => frame,
                    _ => {
                        let mut head = Vec::new();
                        encode_header(header, None, packet.len(), &mut head);
                        Frame::new(&head, packet)
                    }
                };
                self.for_programs.push((*place, frame));
            }
            Kind::Wire(wire) => {
                wire.send((header, packet), self.now_ns, &self.current, &mut self.leaving);
            }
        }
    }
}

/// The frame that lies in memory where `packet` does.
fn packed(current: &Option<Current>, packet: &[u8]) -> Option<Frame> {
    let current = current.as_ref()?;
    let is_it = current.start == packet.as_ptr().addr() && current.len == packet.len();
    is_it.then(|| current.frame.clone())
}

impl Wire {
    pub(crate) fn new(
        line: Line,
        number: usize,
        mtu_bytes: Option<usize>,
        random: Random,
    ) -> (Self, LinkReceiver) {
        let service = match mtu_bytes {
            None => LinkService::stream(),
            Some(mtu) => LinkService::datagram(mtu, 0, ReassemblyLimits::default()),
        };
        let (receiver, sender) = service.split();
        let marker = CongestionMarker::default();
        let is_departure_planned = false;
        (Wire { sender, marker, line, number, random, is_departure_planned }, receiver)
    }

    fn send(
        &mut self,
        (header, packet): (&LpHeader<'_>, &[u8]),
        now_ns: u64,
        current: &Option<Current>,
        leaving: &mut Vec<Leaving>,
    ) {
        let Wire { sender, marker, line, number, random, .. } = self;
        let marked = marker.mark(header, line.queued_bytes(now_ns) as usize, now_ns);
        let header = marked.as_ref().unwrap_or(header);
        // What fits no frame is dropped, as a real link does.
        let _ = sender.send(header, packet, now_ns, |head, body| {
            let shared = if head.is_empty() { packed(current, body) } else { None };
            let frame = shared.unwrap_or_else(|| Frame::new(head, body));
            line.send(now_ns, frame, random, &mut |arrival| {
                leaving.push(Leaving::Frame { line: *number, arrival });
            });
        });
        self.plan_departure(leaving);
    }

    /// Sends lost frames again.
    pub(crate) fn handle_timeout(&mut self, now_ns: u64, leaving: &mut Vec<Leaving>) {
        let Wire { sender, line, number, random, .. } = self;
        sender.handle_timeout(now_ns, |head, body| {
            line.send(now_ns, Frame::new(head, body), random, &mut |arrival| {
                leaving.push(Leaving::Frame { line: *number, arrival });
            });
        });
        self.plan_departure(leaving);
    }

    /// The line is free.
    pub(crate) fn depart(&mut self, now_ns: u64, leaving: &mut Vec<Leaving>) {
        self.is_departure_planned = false;
        let Wire { line, number, random, .. } = self;
        line.depart(now_ns, random, &mut |arrival| {
            leaving.push(Leaving::Frame { line: *number, arrival });
        });
        self.plan_departure(leaving);
    }

    fn plan_departure(&mut self, leaving: &mut Vec<Leaving>) {
        if let Some(at_ns) = self.line.next_departure().filter(|_| !self.is_departure_planned) {
            self.is_departure_planned = true;
            leaving.push(Leaving::Departure { line: self.number, at_ns });
        }
    }

    /// Lets this end send lost frames again, or not.
    pub(crate) fn set_options(&mut self, options: &LinkOptions) {
        self.sender.set_options(options);
    }
}
