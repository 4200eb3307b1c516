//! A host: one real forwarder, the real link layer of its links, and programs on local faces.

mod promises;

use byname_forwarder::strategy::{self, Chosen};
use byname_forwarder::{Config, FaceId, FaceInfo, Forwarder, Route};
use byname_link::{Feedback, LinkOptions, LinkReceiver};
use byname_packet::Name;
use byname_packet::lp::{LpHeader, LpPacket};
use byname_packet::mgmt::ROUTE_FLAG_CHILD_INHERIT;

use crate::frame::Frame;
use crate::ports::{Kind, Leaving, Port, Ports, Wire};
use crate::program::{Crash, Now, Program};

/// Turns that programs and forwarder may pass to each other at one instant.
const TURNS_MAX: usize = 1_000_000;

/// "static" among the origins of routes.
const ROUTE_ORIGIN_STATIC: u64 = 255;

/// The full name of a strategy that is called by its own, as `asf`, or `asf/v=5/max-timeouts~1`.
pub(crate) fn strategy_name(name: &str) -> Option<Name> {
    format!("/localhost/nfd/strategy/{name}").parse().ok()
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
    /// Strategies, put in again likewise.
    strategies: Vec<(Name, Chosen)>,
    /// Ports of programs that crashed.
    down: Vec<usize>,
    /// Prefixes that lead anywhere, if that was counted since it changed last.
    prefix_count: Option<usize>,
    /// Number of frames that arrived while the host was down.
    missed_frames: u64,
    /// Where frames are put together.
    scratch: Vec<u8>,
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
            strategies: Vec::new(),
            down: Vec::new(),
            prefix_count: None,
            missed_frames: 0,
            scratch: Vec::new(),
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
            remote_uri: format!("sim://{}", wire.number),
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
        let port = self.ports.ports.len();
        if matches!(kind, Kind::Program(_)) {
            self.ports.programs.push(port);
        }
        self.ports.ports.push(Port { face, info, kind });
        self.ports.set_face(port, face);
    }

    /// Leads a prefix to a port, now and after every start.
    pub(crate) fn add_route(&mut self, prefix: &Name, port: usize, cost: u64) {
        self.routes.push((prefix.clone(), port, cost));
        self.prefix_count = None;
        self.put_routes(self.routes.len() - 1);
    }

    /// Takes back what led a prefix to links.
    pub(crate) fn remove_routes(&mut self, prefix: &Name) {
        let ports = &self.ports.ports;
        let is_meant = |route: &(Name, usize, u64)| {
            route.0 == *prefix && matches!(ports[route.1].kind, Kind::Wire(_))
        };
        for (prefix, port, _) in self.routes.iter().filter(|route| is_meant(route)) {
            if let Some(forwarder) = &mut self.forwarder {
                forwarder.remove_route(prefix, ports[*port].face, ROUTE_ORIGIN_STATIC);
            }
        }
        self.routes.retain(|route| !is_meant(route));
        self.prefix_count = None;
    }

    /// Chooses a strategy, now and after every start; false if there is none of that name.
    pub(crate) fn set_strategy(&mut self, prefix: &Name, name: &str) -> bool {
        let chosen = strategy_name(name).and_then(|name| strategy::by_name(name.view()));
        let Some(chosen) = chosen else { return false };
        self.strategies.push((prefix.clone(), chosen));
        self.put_strategies();
        true
    }

    fn put_strategies(&mut self) {
        let Some(forwarder) = &mut self.forwarder else { return };
        for (prefix, chosen) in &self.strategies {
            forwarder.set_strategy(prefix, chosen.clone());
        }
    }

    fn put_routes(&mut self, from: usize) {
        let Some(forwarder) = &mut self.forwarder else { return };
        let is_up = |route: &&(Name, usize, u64)| !self.down.contains(&route.1);
        for (prefix, port, cost) in self.routes[from..].iter().filter(is_up) {
            let face = self.ports.ports[*port].face;
            let (origin, flags) = (ROUTE_ORIGIN_STATIC, ROUTE_FLAG_CHILD_INHERIT);
            let route = Route { face, origin, cost: *cost, flags, expires_ns: None };
            forwarder.add_route(prefix, route).expect("few routes");
        }
    }

    /// Ends the forwarder at once; programs notice that their connections are closed.
    pub(crate) fn crash(&mut self, now: Now) {
        self.forwarder = None;
        if let Some(ledger) = &mut self.ports.ledger {
            ledger.forget();
        }
        self.tell_programs(false, now);
    }

    fn tell_programs(&mut self, is_up: bool, now: Now) {
        let Ports { ports, programs, .. } = &mut self.ports;
        for place in programs.iter().filter(|place| !self.down.contains(place)) {
            if let Kind::Program(program) = &mut ports[*place].kind {
                program.handle_face(is_up, now);
            }
        }
    }

    /// Ends a program at once. Its face is gone, with its routes.
    pub(crate) fn crash_program(&mut self, port: usize, how: Crash, now: Now) {
        let place = &mut self.ports.ports[port];
        let Kind::Program(program) = &mut place.kind else { return };
        program.crash(how, now);
        if self.down.contains(&port) {
            return;
        }
        self.down.push(port);
        self.prefix_count = None;
        if let Some(forwarder) = &mut self.forwarder {
            forwarder.remove_face(place.face);
        }
        self.ports.for_programs.retain(|(other, _)| *other != port);
    }

    /// Starts a program again; its face is another one.
    pub(crate) fn restart_program(&mut self, port: usize, now: Now) {
        if !self.down.contains(&port) {
            return;
        }
        self.down.retain(|other| *other != port);
        self.prefix_count = None;
        if let Some(forwarder) = &mut self.forwarder {
            let face = forwarder.add_face(self.ports.ports[port].info.clone());
            self.ports.set_face(port, face);
            self.put_routes_of(port);
        }
        let is_up = self.forwarder.is_some();
        if let Kind::Program(program) = &mut self.ports.ports[port].kind {
            program.handle_face(is_up, now);
            program.restart(now);
        }
    }

    fn put_routes_of(&mut self, port: usize) {
        let own = self.routes.extract_if(.., |route| route.1 == port).collect::<Vec<_>>();
        let from = self.routes.len();
        self.routes.extend(own);
        self.put_routes(from);
    }

    /// Starts a forwarder with the same configuration and nothing else of its former life.
    pub(crate) fn restart(&mut self, now: Now) {
        let mut forwarder = Forwarder::new(self.config.clone());
        self.ports.forget_faces();
        for port in (0..self.ports.ports.len()).filter(|port| !self.down.contains(port)) {
            let info = self.ports.ports[port].info.clone();
            self.ports.set_face(port, forwarder.add_face(info));
        }
        self.forwarder = Some(forwarder);
        self.put_strategies();
        self.put_routes(0);
        self.tell_programs(true, now);
    }

    /// Tells the forwarder whether a link can be used, as a driver that sees it fail does.
    pub(crate) fn set_link(&mut self, port: usize, is_up: bool, is_noticed: bool, now_ns: u64) {
        let place = &mut self.ports.ports[port];
        if let Kind::Wire(wire) = &mut place.kind {
            match is_up {
                true => wire.line.is_up = true,
                false => wire.line.cut(now_ns),
            }
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
            wire.set_options(&options);
        }
        self.ports.reliable.retain(|known| *known != port);
        if reliability {
            self.ports.reliable.push(port);
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
        self.ports.programs.iter().filter_map(|place| match &self.ports.ports[*place].kind {
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
        let Ports { ports, programs, reliable, .. } = &mut self.ports;
        // Only these know deadlines; a host may have many other ports.
        let mut due = forwarder;
        for place in programs.iter().chain(reliable.iter()) {
            let own = match &mut ports[*place].kind {
                Kind::Wire(wire) => wire.sender.poll_timeout(),
                Kind::Program(program) => program.poll_timeout(),
            };
            due = due.into_iter().chain(own).min();
        }
        due
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
        let Ports { ports, programs, reliable, leaving, .. } = &mut self.ports;
        for place in programs.iter().chain(reliable.iter()) {
            match &mut ports[*place].kind {
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

    /// The line behind a port is free for what waits.
    pub(crate) fn depart(&mut self, port: usize, now_ns: u64) {
        let Ports { ports, leaving, .. } = &mut self.ports;
        if let Kind::Wire(wire) = &mut ports[port].kind {
            wire.depart(now_ns, leaving);
        }
    }

    /// Takes a frame from a link.
    pub(crate) fn receive(&mut self, port: usize, frame: &Frame, now: Now) {
        self.ports.now_ns = now.now_ns;
        let Some(forwarder) = &mut self.forwarder else {
            self.missed_frames += 1;
            return;
        };
        let Some(Some(receiver)) = self.receivers.get_mut(port) else { return };
        let (face, mut feedback) = (self.ports.ports[port].face, Feedback::default());
        let octets = frame.bytes(&mut self.scratch);
        self.ports.begin(frame, octets);
        // What is malformed is dropped and counted by the receiver.
        if let Ok(Some(received)) = receiver.receive(octets, now.now_ns, &mut feedback) {
            let token = self.ports.token_for(port, &received.header, received.packet);
            let header = LpHeader { pit_token: token.get(), ..received.header };
            forwarder.handle_packet(face, &header, received.packet, now.now_ns, &mut self.ports);
        }
        self.ports.end();
        if let Kind::Wire(wire) = &mut self.ports.ports[port].kind
            && !feedback.is_empty()
        {
            wire.sender.handle_feedback(&mut feedback, now.now_ns);
        }
    }

    /// Lets forwarder and programs talk until they have nothing to say; false if that does not end.
    pub(crate) fn settle(&mut self, now: Now) -> bool {
        self.ports.now_ns = now.now_ns;
        for _ in 0..TURNS_MAX {
            for (port, frame) in std::mem::take(&mut self.ports.for_programs) {
                if let Kind::Program(program) = &mut self.ports.ports[port].kind {
                    program.handle_frame(frame.bytes(&mut self.scratch), now);
                }
            }
            let Some((port, frame)) = self.poll_programs(now) else { return true };
            if let Some(forwarder) = &mut self.forwarder {
                give(forwarder, port, &frame, now.now_ns, &mut self.ports);
            }
        }
        false
    }

    /// Moves the events for the world since the last call into `leaving`, which is empty.
    pub(crate) fn take_leaving(&mut self, leaving: &mut Vec<Leaving>) {
        std::mem::swap(&mut self.ports.leaving, leaving);
    }

    fn poll_programs(&mut self, now: Now) -> Option<(usize, Vec<u8>)> {
        let Ports { ports, programs, .. } = &mut self.ports;
        programs.iter().find_map(|place| match &mut ports[*place].kind {
            Kind::Wire(_) => None,
            Kind::Program(program) => program.poll_frame(now).map(|frame| (*place, frame)),
        })
    }
}

fn give(forwarder: &mut Forwarder, port: usize, frame: &[u8], now_ns: u64, ports: &mut Ports) {
    let Ok(link) = LpPacket::decode(frame) else { return };
    if let Some(packet) = link.fragment {
        let token = ports.token_for(port, &link.header, packet);
        let header = LpHeader { pit_token: token.get(), ..link.header };
        forwarder.handle_packet(ports.ports[port].face, &header, packet, now_ns, ports);
    }
}
