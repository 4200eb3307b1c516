//! Telling a forwarder which names are answered here: any number of routes, many commands at once.
//! Sans-I/O.
//!
//! Commands are signed with a digest, which forwarders accept on local links only.
//!
//! spec: NFD management, "ControlCommand" and "RibMgmt".

use byname_packet::lp::LpHeader;
use byname_packet::mgmt::{ControlParameters, ControlResponse, ROUTE_FLAG_CHILD_INHERIT};
use byname_packet::mgmt::{route_origin, status_code};
use byname_packet::{Data, DigestSigner, Interest, InterestBuilder, Name, SignatureExtra};

use crate::error::TrafficError;
use crate::numbers::Random;
use crate::pattern::route_component;

/// Commands that wait for an answer at a time.
const WINDOW: usize = 64;
/// How long one may take; also the Interest's lifetime.
const ANSWER_NS: u64 = 2_000_000_000;
/// Commands sent for one route before giving up.
const ATTEMPTS_MAX: u32 = 4;

/// Routes to register: prefixes, or `spread` names below each.
#[derive(Debug, Clone)]
pub struct Routes {
    /// The prefixes.
    pub prefixes: Vec<Name>,
    /// How many names below each, as [`crate::Pattern::spread`] asks for them; `None` means the
    /// prefix itself.
    pub spread: Option<u64>,
    /// The forwarder's number of the face that the routes lead to; `None` means the one that
    /// registers them.
    pub face: Option<u64>,
}

impl Routes {
    /// How many routes there are.
    pub fn count(&self) -> u64 {
        self.prefixes.len() as u64 * self.spread.unwrap_or(1)
    }

    fn get(&self, index: u64) -> Option<Name> {
        let spread = self.spread.unwrap_or(1).max(1);
        let prefix = self.prefixes.get(usize::try_from(index / spread).ok()?)?;
        Some(match self.spread {
            Some(_) => prefix.with_generic(&route_component(index % spread)),
            None => prefix.clone(),
        })
    }
}

#[derive(Debug)]
struct Command {
    route: u64,
    name: Name,
    sent_ns: u64,
    attempts: u32,
}

/// Registers all routes, some at a time.
#[derive(Debug)]
pub(crate) struct Registrar {
    routes: Routes,
    next: u64,
    sent: Vec<Command>,
    /// Routes to be asked for again, and how often they were.
    again: Vec<(u64, u32)>,
    random: Random,
}

impl Registrar {
    pub(crate) fn new(routes: Routes, seed: u64) -> Self {
        let (sent, again) = (Vec::with_capacity(WINDOW), Vec::new());
        Self { routes, next: 0, sent, again, random: Random::new(seed) }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.next == self.routes.count() && self.sent.is_empty() && self.again.is_empty()
    }

    /// The next command to send; `unix_ns` dates it.
    pub(crate) fn poll_command(
        &mut self,
        now_ns: u64,
        unix_ns: u64,
    ) -> Result<Option<Vec<u8>>, TrafficError> {
        if self.sent.len() >= WINDOW {
            return Ok(None);
        }
        let (route, attempts) = match self.again.pop() {
            Some(again) => again,
            None if self.next < self.routes.count() => {
                self.next += 1;
                (self.next - 1, 0)
            }
            None => return Ok(None),
        };
        let Some(prefix) = self.routes.get(route) else { return Ok(None) };
        let wire = command(prefix, self.routes.face, unix_ns, &mut self.random)?;
        let Ok(interest) = Interest::decode(&wire) else { return Ok(None) };
        let name = interest.name.to_name();
        self.sent.push(Command { route, name, sent_ns: now_ns, attempts: attempts + 1 });
        Ok(Some(wire))
    }

    pub(crate) fn poll_timeout(&self) -> Option<u64> {
        self.sent.iter().map(|command| command.sent_ns + ANSWER_NS).min()
    }

    /// Sends again what was not answered in time.
    pub(crate) fn handle_timeout(&mut self, now_ns: u64) -> Result<(), TrafficError> {
        let is_late = |command: &Command| command.sent_ns + ANSWER_NS <= now_ns;
        while let Some(at) = self.sent.iter().position(is_late) {
            let command = self.sent.swap_remove(at);
            if command.attempts >= ATTEMPTS_MAX {
                return Err(TrafficError::Silent { prefix: self.prefix_of(&command) });
            }
            self.again.push((command.route, command.attempts));
        }
        Ok(())
    }

    /// Takes a packet if it answers a command; others are of no interest here.
    pub(crate) fn handle_packet(
        &mut self,
        header: &LpHeader<'_>,
        packet: &[u8],
    ) -> Result<(), TrafficError> {
        if let Some(reason) = header.nack {
            let Ok(interest) = Interest::decode(packet) else { return Ok(()) };
            let Some(command) = self.answered(&interest.name) else { return Ok(()) };
            return Err(TrafficError::NoManagement { prefix: self.prefix_of(&command), reason });
        }
        let Ok(data) = Data::decode(packet) else { return Ok(()) };
        let Some(command) = self.answered(&data.name) else { return Ok(()) };
        match ControlResponse::decode(data.content) {
            Ok(response) if response.status_code == status_code::OK => Ok(()),
            Ok(response) => Err(TrafficError::Refused {
                prefix: self.prefix_of(&command),
                code: response.status_code,
                text: response.status_text,
            }),
            // As good as none: the command is sent again.
            Err(_) => {
                self.again.push((command.route, command.attempts));
                Ok(())
            }
        }
    }

    fn answered(&mut self, name: &byname_packet::NameRef<'_>) -> Option<Command> {
        let at = self.sent.iter().position(|command| command.name.view() == *name)?;
        Some(self.sent.swap_remove(at))
    }

    fn prefix_of(&self, command: &Command) -> Name {
        self.routes.get(command.route).unwrap_or_default()
    }
}

fn command(
    prefix: Name,
    face_id: Option<u64>,
    unix_ns: u64,
    random: &mut Random,
) -> Result<Vec<u8>, TrafficError> {
    let mut parameters = Vec::new();
    ControlParameters {
        name: Some(prefix),
        face_id,
        origin: Some(route_origin::APP),
        cost: Some(0),
        flags: Some(ROUTE_FLAG_CHILD_INHERIT),
        ..ControlParameters::default()
    }
    .encode(&mut parameters);
    let mut name = Name::new();
    let path: [&[u8]; 5] = [b"localhost", b"nfd", b"rib", b"register", &parameters];
    path.iter().for_each(|component| name.push_generic(component));
    let nonce = random.next().to_be_bytes();
    let extra = SignatureExtra {
        nonce: Some(&nonce),
        time_ms: Some(unix_ns / 1_000_000),
        ..SignatureExtra::default()
    };
    let mut wire = Vec::new();
    InterestBuilder::new(name.view())
        .must_be_fresh(true)
        .nonce((random.next() as u32).to_be_bytes())
        .lifetime_ms(ANSWER_NS / 1_000_000)
        .encode_signed(&DigestSigner, extra, &mut wire)?;
    Ok(wire)
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_packet::{DataBuilder, NullSigner};

    fn routes(spread: Option<u64>) -> Routes {
        Routes { prefixes: vec!["/a".parse().unwrap(), "/b".parse().unwrap()], spread, face: None }
    }

    /// The prefix that a command is about.
    fn prefix(wire: &[u8]) -> Name {
        let interest = Interest::decode_checked(wire).unwrap();
        let parameters = interest.name.get(4).unwrap();
        ControlParameters::decode(parameters.value).unwrap().name.unwrap()
    }

    fn answer(registrar: &mut Registrar, wire: &[u8], code: u64) -> Result<(), TrafficError> {
        let response = ControlResponse::new(code, "text");
        let (mut content, mut data) = (Vec::new(), Vec::new());
        response.encode(&mut content);
        let name = Interest::decode(wire).unwrap().name;
        DataBuilder::new(name).encode(&content, &NullSigner, &mut data).unwrap();
        registrar.handle_packet(&LpHeader::default(), &data)
    }

    #[test]
    fn every_route_is_registered_once_and_few_at_a_time() {
        let mut registrar = Registrar::new(routes(Some(100)), 1);
        let mut prefixes = Vec::new();
        while !registrar.is_done() {
            let mut wires = Vec::new();
            while let Some(wire) = registrar.poll_command(0, 0).unwrap() {
                wires.push(wire);
            }
            assert!((1..=WINDOW).contains(&wires.len()));
            for wire in wires {
                prefixes.push(prefix(&wire));
                answer(&mut registrar, &wire, 200).unwrap();
            }
        }
        prefixes.sort();
        prefixes.dedup();
        assert_eq!((prefixes.len() as u64, routes(Some(100)).count()), (200, 200));
        let first = "/a".parse::<Name>().unwrap().with_generic(&[0; 8]);
        assert_eq!(prefixes.first(), Some(&first));
    }

    #[test]
    fn silence_is_asked_again_and_then_an_error() {
        let mut registrar = Registrar::new(routes(None), 1);
        for attempt in 0..u64::from(ATTEMPTS_MAX) {
            let now_ns = attempt * ANSWER_NS;
            while registrar.poll_command(now_ns, 0).unwrap().is_some() {}
            assert_eq!(registrar.poll_timeout(), Some(now_ns + ANSWER_NS));
            let result = registrar.handle_timeout(now_ns + ANSWER_NS);
            assert_eq!(result.is_err(), attempt + 1 == u64::from(ATTEMPTS_MAX), "{attempt}");
        }
    }

    #[test]
    fn refusals_name_the_prefix() {
        let mut registrar = Registrar::new(routes(None), 1);
        let wire = registrar.poll_command(0, 0).unwrap().unwrap();
        let error = answer(&mut registrar, &wire, 403).unwrap_err();
        assert!(error.to_string().contains("/a") && error.to_string().contains("403"), "{error}");
        let wire = registrar.poll_command(0, 0).unwrap().unwrap();
        let nack = LpHeader { nack: Some(150), ..LpHeader::default() };
        let error = registrar.handle_packet(&nack, &wire).unwrap_err();
        assert!(matches!(error, TrafficError::NoManagement { reason: 150, .. }), "{error}");
    }
}
