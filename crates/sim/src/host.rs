//! A host: one real forwarder, the real link layer of its links, and programs on local faces.

use byname_forwarder::{Config, FaceId, FaceInfo, Forwarder, Route, Tx};
use byname_link::{
    CongestionMarker, Feedback, LinkOptions, LinkReceiver, LinkSender, LinkService, ReassemblyLimits,
};
use byname_packet::Name;
use byname_packet::lp::{LpHeader, LpPacket, encode_header};
use byname_packet::mgmt::ROUTE_FLAG_CHILD_INHERIT;

use crate::line::{Arrival, Line};
use crate::random::Random;

/// Turns that programs and forwarder may pass to each other at one instant.
const TURNS_MAX: usize = 1_000_000;

/// "static" among the origins of routes.
const ROUTE_ORIGIN_STATIC: u64 = 255;

/// Monotonic and wall clock; they run alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Monotonic nanoseconds since the start of the world.
    pub now_ns: u64,
    /// Nanoseconds since the Unix epoch.
    pub unix_ns: u64,
}

/// A program on a host, connected to its forwarder as over a Unix socket.
pub trait Program: std::any::Any {
    /// A frame from the forwarder.
    fn handle_frame(&mut self, frame: &[u8], now: Now);
    /// The time of `poll_timeout` has come.
    fn handle_timeout(&mut self, now: Now);
    /// The next frame for the forwarder.
    fn poll_frame(&mut self, now: Now) -> Option<Vec<u8>>;
    /// When `handle_timeout` has something to do.
    fn poll_timeout(&mut self) -> Option<u64>;
    /// What the program found to be wrong: a promise of the code under test that was broken.
    fn fault(&self) -> Option<String>;
}

/// Where a link ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) host: usize,
    pub(crate) port: usize,
}

/// This host's end of a link: everything up to the line towards the other end.
pub(crate) struct Wire {
    sender: LinkSender,
    marker: CongestionMarker,
    pub(crate) line: Line,
    pub(crate) peer: Place,
    random: Random,
}

enum Kind {
    Wire(Box<Wire>),
    Program(Box<dyn Program>),
}

struct Port {
    face: FaceId,
    info: FaceInfo,
    kind: Kind,
}

/// A frame under way to another host.
pub(crate) struct Leaving {
    pub(crate) to: Place,
    pub(crate) arrival: Arrival,
}

#[derive(Default)]
struct Ports {
    ports: Vec<Port>,
    leaving: Vec<Leaving>,
    for_programs: Vec<(usize, Vec<u8>)>,
    now_ns: u64,
}

impl Tx for Ports {
    fn send(&mut self, face: FaceId, header: &LpHeader<'_>, packet: &[u8]) {
        let Some(place) = self.ports.iter().position(|port| port.face == face) else { return };
        let (leaving, now_ns) = (&mut self.leaving, self.now_ns);
        match &mut self.ports[place].kind {
            Kind::Program(_) => self.for_programs.push((place, whole_frame(header, packet))),
            Kind::Wire(wire) => wire.send(header, packet, now_ns, leaving),
        }
    }
}

impl Wire {
    pub(crate) fn new(
        line: Line,
        peer: Place,
        mtu_bytes: Option<usize>,
        random: Random,
    ) -> (Self, LinkReceiver) {
        let service = match mtu_bytes {
            None => LinkService::stream(),
            Some(mtu) => LinkService::datagram(mtu, 0, ReassemblyLimits::default()),
        };
        let (receiver, sender) = service.split();
        (Wire { sender, marker: CongestionMarker::default(), line, peer, random }, receiver)
    }

    fn send(
        &mut self,
        header: &LpHeader<'_>,
        packet: &[u8],
        now_ns: u64,
        leaving: &mut Vec<Leaving>,
    ) {
        let Wire { sender, marker, line, peer, random } = self;
        let mut header = *header;
        if marker.on_queued(line.queued_bytes(now_ns) as usize, now_ns) {
            header.congestion_mark = Some(header.congestion_mark.unwrap_or(0).max(1));
        }
        // What fits no frame is dropped, as a real link does.
        let _ = sender.send(&header, packet, now_ns, |head, body| {
            let arrivals = line.send(now_ns, [head, body].concat(), random);
            leaving.extend(arrivals.into_iter().map(|arrival| Leaving { to: *peer, arrival }));
        });
    }

    fn handle_timeout(&mut self, now_ns: u64, leaving: &mut Vec<Leaving>) {
        let Wire { sender, line, peer, random, .. } = self;
        sender.handle_timeout(now_ns, |head, body| {
            let arrivals = line.send(now_ns, [head, body].concat(), random);
            leaving.extend(arrivals.into_iter().map(|arrival| Leaving { to: *peer, arrival }));
        });
    }
}

/// A packet with its header as one LpPacket, or bare if there is nothing to say.
pub fn whole_frame(header: &LpHeader<'_>, packet: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(packet.len() + 32);
    encode_header(header, None, packet.len(), &mut frame);
    frame.extend_from_slice(packet);
    frame
}

/// One machine.
pub struct Host {
    /// For messages.
    pub name: String,
    forwarder: Option<Forwarder>,
    ports: Ports,
    /// The receiving halves of the ports that are links.
    receivers: Vec<Option<LinkReceiver>>,
    config: Config,
    /// Prefixes and the ports to which they lead, put in again at every start.
    routes: Vec<(Name, usize, u64)>,
    /// What came while the host was down.
    missed_frames: u64,
}

impl Host {
    /// A host whose forwarder runs.
    pub(crate) fn new(name: &str, config: Config) -> Self {
        Host {
            name: name.to_owned(),
            forwarder: Some(Forwarder::new(config.clone())),
            ports: Ports::default(),
            receivers: Vec::new(),
            config,
            routes: Vec::new(),
            missed_frames: 0,
        }
    }

    /// The forwarder, unless it is down.
    pub fn forwarder(&self) -> Option<&Forwarder> {
        self.forwarder.as_ref()
    }

    /// The bounds that the forwarder was given.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Frames that came while the host was down.
    pub fn missed_frames(&self) -> u64 {
        self.missed_frames
    }

    pub(crate) fn port_count(&self) -> usize {
        self.ports.ports.len()
    }

    pub(crate) fn add_wire(
        &mut self,
        (wire, receiver): (Wire, LinkReceiver),
        mtu_bytes: Option<usize>,
    ) {
        let info = FaceInfo {
            remote_uri: format!("sim://{}", wire.peer.host),
            mtu_bytes,
            ..FaceInfo::default()
        };
        self.add_port(info, Kind::Wire(Box::new(wire)), Some(receiver));
    }

    pub(crate) fn add_program(&mut self, program: Box<dyn Program>) -> usize {
        let info = FaceInfo {
            local: true,
            remote_uri: format!("internal://{}", self.ports.ports.len()),
            ..FaceInfo::default()
        };
        self.add_port(info, Kind::Program(program), None);
        self.ports.ports.len() - 1
    }

    fn add_port(&mut self, info: FaceInfo, kind: Kind, receiver: Option<LinkReceiver>) {
        self.receivers.push(receiver);
        let face = self.forwarder.as_mut().map_or(FaceId(0), |it| it.add_face(info.clone()));
        self.ports.ports.push(Port { face, info, kind });
    }

    /// Leads a prefix to a port, now and after every start.
    pub(crate) fn add_route(&mut self, prefix: &Name, port: usize, cost: u64) {
        self.routes.push((prefix.clone(), port, cost));
        self.put_routes(self.routes.len() - 1);
    }

    fn put_routes(&mut self, from: usize) {
        let Some(forwarder) = &mut self.forwarder else { return };
        for (prefix, port, cost) in &self.routes[from..] {
            let face = self.ports.ports[*port].face;
            let (origin, flags) = (ROUTE_ORIGIN_STATIC, ROUTE_FLAG_CHILD_INHERIT);
            let route = Route { face, origin, cost: *cost, flags, expires_ns: None };
            forwarder.add_route(prefix, route).expect("few routes");
        }
    }

    /// Ends the forwarder at once; programs notice that nothing comes any more.
    pub(crate) fn crash(&mut self) {
        self.forwarder = None;
    }

    /// Starts a forwarder with the same configuration and nothing else of its former life.
    pub(crate) fn restart(&mut self) {
        let mut forwarder = Forwarder::new(self.config.clone());
        for port in &mut self.ports.ports {
            port.face = forwarder.add_face(port.info.clone());
        }
        self.forwarder = Some(forwarder);
        self.put_routes(0);
    }

    /// Tells the forwarder whether a link can be used, as a driver that sees it fail does.
    pub(crate) fn set_link(&mut self, port: usize, is_up: bool, is_noticed: bool) {
        let place = &mut self.ports.ports[port];
        if let Kind::Wire(wire) = &mut place.kind {
            wire.line.is_up = is_up;
        }
        if let Some(forwarder) = self.forwarder.as_mut().filter(|_| is_noticed) {
            forwarder.set_face_up(place.face, is_up);
        }
    }

    pub(crate) fn set_reliability(&mut self, port: usize, reliability: bool) {
        let options = LinkOptions { reliability, ..LinkOptions::default() };
        if let Some(receiver) = &mut self.receivers[port] {
            receiver.set_options(&options);
        }
        if let Kind::Wire(wire) = &mut self.ports.ports[port].kind {
            wire.sender.set_options(&options);
        }
    }

    pub(crate) fn wire(&self, port: usize) -> Option<&Wire> {
        match &self.ports.ports[port].kind {
            Kind::Wire(wire) => Some(wire),
            Kind::Program(_) => None,
        }
    }

    pub(crate) fn wire_mut(&mut self, port: usize) -> Option<&mut Wire> {
        match &mut self.ports.ports[port].kind {
            Kind::Wire(wire) => Some(wire),
            Kind::Program(_) => None,
        }
    }

    pub(crate) fn programs(&self) -> impl Iterator<Item = &dyn Program> {
        self.ports.ports.iter().filter_map(|port| match &port.kind {
            Kind::Wire(_) => None,
            Kind::Program(program) => Some(&**program),
        })
    }

    /// A program, as what it is.
    pub(crate) fn program<P: Program>(&self, port: usize) -> Option<&P> {
        match &self.ports.ports.get(port)?.kind {
            Kind::Wire(_) => None,
            Kind::Program(program) => (&**program as &dyn std::any::Any).downcast_ref(),
        }
    }

    /// The same, to change it.
    pub(crate) fn program_mut<P: Program>(&mut self, port: usize) -> Option<&mut P> {
        match &mut self.ports.ports.get_mut(port)?.kind {
            Kind::Wire(_) => None,
            Kind::Program(program) => (&mut **program as &mut dyn std::any::Any).downcast_mut(),
        }
    }

    /// When something is due.
    pub(crate) fn poll_timeout(&mut self) -> Option<u64> {
        let forwarder = self.forwarder.as_ref().and_then(Forwarder::poll_timeout);
        let ports = self.ports.ports.iter_mut().filter_map(|port| match &mut port.kind {
            Kind::Wire(wire) => wire.sender.poll_timeout(),
            Kind::Program(program) => program.poll_timeout(),
        });
        ports.chain(forwarder).min()
    }

    /// Lets everything happen that is due.
    pub(crate) fn handle_timeout(&mut self, now: Now) {
        self.ports.now_ns = now.now_ns;
        let is_due = |at: Option<u64>| at.is_some_and(|at| at <= now.now_ns);
        if let Some(forwarder) = &mut self.forwarder
            && is_due(forwarder.poll_timeout())
        {
            forwarder.handle_timeout(now.now_ns, &mut self.ports);
        }
        let Ports { ports, leaving, .. } = &mut self.ports;
        for port in ports {
            match &mut port.kind {
                Kind::Wire(wire) if is_due(wire.sender.poll_timeout()) => {
                    wire.handle_timeout(now.now_ns, leaving);
                }
                Kind::Program(program) => {
                    if is_due(program.poll_timeout()) {
                        program.handle_timeout(now);
                    }
                }
                Kind::Wire(_) => {}
            }
        }
    }

    /// Takes a frame from a link.
    pub(crate) fn receive(&mut self, port: usize, frame: &[u8], now: Now) {
        self.ports.now_ns = now.now_ns;
        let Some(forwarder) = &mut self.forwarder else {
            self.missed_frames += 1;
            return;
        };
        let Some(Some(receiver)) = self.receivers.get_mut(port) else { return };
        let (face, mut feedback) = (self.ports.ports[port].face, Feedback::default());
        // What is malformed is dropped and counted by the receiver.
        if let Ok(Some(received)) = receiver.receive(frame, now.now_ns, &mut feedback) {
            let (header, packet) = (&received.header, received.packet);
            forwarder.handle_packet(face, header, packet, now.now_ns, &mut self.ports);
        }
        if let Kind::Wire(wire) = &mut self.ports.ports[port].kind
            && !feedback.is_empty()
        {
            wire.sender.handle_feedback(&mut feedback, now.now_ns);
        }
    }

    /// Lets forwarder and programs talk until they have nothing to say; false if that does not end.
    pub(crate) fn settle(&mut self, now: Now, leaving: &mut Vec<Leaving>) -> bool {
        self.ports.now_ns = now.now_ns;
        for _ in 0..TURNS_MAX {
            for (port, frame) in std::mem::take(&mut self.ports.for_programs) {
                if let Kind::Program(program) = &mut self.ports.ports[port].kind {
                    program.handle_frame(&frame, now);
                }
            }
            let Some((port, frame)) = self.poll_programs(now) else {
                leaving.append(&mut self.ports.leaving);
                return true;
            };
            let face = self.ports.ports[port].face;
            if let Some(forwarder) = &mut self.forwarder {
                give(forwarder, face, &frame, now.now_ns, &mut self.ports);
            }
        }
        false
    }

    fn poll_programs(&mut self, now: Now) -> Option<(usize, Vec<u8>)> {
        self.ports.ports.iter_mut().enumerate().find_map(|(place, port)| match &mut port.kind {
            Kind::Wire(_) => None,
            Kind::Program(program) => program.poll_frame(now).map(|frame| (place, frame)),
        })
    }
}

fn give(forwarder: &mut Forwarder, face: FaceId, frame: &[u8], now_ns: u64, ports: &mut Ports) {
    let Ok(link) = LpPacket::decode(frame) else { return };
    if let Some(packet) = link.fragment {
        forwarder.handle_packet(face, &link.header, packet, now_ns, ports);
    }
}
