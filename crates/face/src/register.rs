//! Registration of prefixes at a forwarder: one `rib/register` command for each, until it is
//! answered.
//!
//! [`Registrar`] is sans-I/O: commands to send are polled, answers handled, time is given. For each
//! step of a loop, in this order: *time* ([`Registrar::handle_timeout`]), *send*
//! ([`Registrar::poll_command`] until there is none), *receive* ([`Registrar::handle_packet`]).
//! [`register`] is such a loop over a [`Face`].
//!
//! A command that is not answered is sent again after a pause that doubles, with jitter, four times
//! at most. A limited number is in flight: towards another machine one, for a certificate may have
//! to be fetched before the answer, a later command could overtake, and NFD then refuses the
//! earlier. Other processes may sign by the same key meanwhile. A forwarder takes no two commands
//! of a key with one time, and says no more than that it refuses. So what another machine's
//! forwarder refuses is signed anew, within the same number of attempts.
//!
//! spec: NFD management, "ControlCommand" and "RibMgmt".

use std::sync::Arc;
use std::time::Duration;

use byname_io::{Clock, Interest as Watch, Poller, Token};
use byname_packet::lp::LpHeader;
use byname_packet::mgmt::{
    ControlParameters, ControlResponse, ROUTE_FLAG_CAPTURE, ROUTE_FLAG_CHILD_INHERIT, route_origin,
    status_code,
};
use byname_packet::{Data, DigestSigner, Interest, Name, NameRef, Signer, types};
use byname_retry::BackOff;

use crate::command::{CommandClock, ControlCommand};
use crate::error::{FaceError, RegisterError};
use crate::face::Face;
use crate::random_u64;

/// A key, as several threads use it.
pub type SharedSigner = Arc<dyn Signer + Send + Sync>;

const SECOND_NS: u64 = 1_000_000_000;
/// Commands sent for one prefix before giving up.
const ATTEMPTS_MAX: u32 = 4;
/// Pauses between them.
const PAUSES: BackOff = BackOff { min_ns: SECOND_NS / 10, max_ns: SECOND_NS };
/// Interval at which [`register`] checks whether it shall stop.
const STOP_CHECK_NS: u64 = SECOND_NS / 10;

/// A prefix for which a forwarder shall send Interests.
#[derive(Clone)]
pub struct Route {
    /// The prefix.
    pub prefix: Name,
    /// Key that may register it elsewhere; on local faces a digest suffices.
    pub signer: Option<SharedSigner>,
    /// The forwarder's number of the face that the route leads to; `None` is the one that
    /// registers it.
    pub face_id: Option<u64>,
}

/// Options of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterOptions {
    /// The forwarder is on this machine.
    pub is_local: bool,
    /// Origin of the routes, see [`route_origin`].
    pub origin: u64,
    /// Longest wait for an answer; also the Interest's lifetime.
    pub answer_ns: u64,
    /// Commands that wait for an answer at a time.
    pub in_flight_max: usize,
    /// Time after which the forwarder forgets the route unless it is registered again.
    pub lasting_ns: Option<u64>,
}

impl RegisterOptions {
    /// At the forwarder of this machine.
    pub const fn local() -> Self {
        let origin = route_origin::CLIENT;
        Self { is_local: true, origin, answer_ns: SECOND_NS, in_flight_max: 64, lasting_ns: None }
    }

    /// At another machine's, where certificates are fetched before the answer.
    pub const fn remote() -> Self {
        let origin = route_origin::CLIENT;
        Self {
            is_local: false,
            origin,
            answer_ns: 4 * SECOND_NS,
            in_flight_max: 1,
            lasting_ns: None,
        }
    }
}

/// A command that waits for its answer, or for its next attempt.
struct Pending {
    route: Route,
    /// Commands sent.
    attempts: u32,
    /// Name of the last one.
    command: Name,
    /// When its answer is late, or the next attempt is due.
    due_ns: u64,
}

/// Registers prefixes. See the module's documentation.
pub struct Registrar {
    options: RegisterOptions,
    clock: CommandClock,
    next: Option<Route>,
    routes: Box<dyn Iterator<Item = Route> + Send>,
    in_flight: Vec<Pending>,
    retries: Vec<Pending>,
}

impl Registrar {
    /// Nothing is registered yet. Whoever signs other commands by the same keys shares the clock.
    pub fn new(
        routes: impl Iterator<Item = Route> + Send + 'static,
        options: RegisterOptions,
        clock: CommandClock,
    ) -> Self {
        let mut routes: Box<dyn Iterator<Item = Route> + Send> = Box::new(routes);
        let next = routes.next();
        Self { options, clock, next, routes, in_flight: Vec::new(), retries: Vec::new() }
    }

    /// True if the forwarder has taken all prefixes.
    pub fn is_done(&self) -> bool {
        self.next.is_none() && self.in_flight.is_empty() && self.retries.is_empty()
    }

    /// The next command to send; `random` makes its nonces.
    ///
    /// # Errors
    /// [`RegisterError::Sign`].
    pub fn poll_command(
        &mut self,
        (now_ns, unix_ns): (u64, u64),
        random: &mut dyn FnMut() -> u64,
    ) -> Result<Option<Vec<u8>>, RegisterError> {
        if !self.may_send() {
            return Ok(None);
        }
        let due = self.retries.iter().position(|retry| retry.due_ns <= now_ns);
        let (route, attempts) = match due.map(|at| self.retries.swap_remove(at)) {
            Some(retry) => (retry.route, retry.attempts),
            None => match self.next.take() {
                Some(route) => (route, 0),
                None => return Ok(None),
            },
        };
        if self.next.is_none() {
            self.next = self.routes.next();
        }
        let wire = self.command(&route, self.clock.next_ms(unix_ns), random)?;
        let command = Interest::decode(&wire).expect("it was just encoded").name.to_name();
        let due_ns = now_ns.saturating_add(self.options.answer_ns);
        self.in_flight.push(Pending { route, attempts: attempts + 1, command, due_ns });
        Ok(Some(wire))
    }

    fn may_send(&self) -> bool {
        self.in_flight.len() < self.options.in_flight_max
    }

    /// When there is a command to send, or [`Registrar::handle_timeout`] has something to do.
    pub fn poll_timeout(&self) -> Option<u64> {
        if self.may_send() && self.next.is_some() {
            return Some(0);
        }
        let retries = self.retries.iter().filter(|_| self.may_send());
        self.in_flight.iter().chain(retries).map(|pending| pending.due_ns).min()
    }

    /// Plans another attempt for what was not answered in time; `random` makes the jitter.
    ///
    /// # Errors
    /// [`RegisterError::Silent`] after the last attempt.
    pub fn handle_timeout(
        &mut self,
        now_ns: u64,
        random: &mut dyn FnMut() -> u64,
    ) -> Result<(), RegisterError> {
        while let Some(at) = self.in_flight.iter().position(|sent| sent.due_ns <= now_ns) {
            let mut late = self.in_flight.swap_remove(at);
            if late.attempts >= ATTEMPTS_MAX {
                let (prefix, is_local) = (late.route.prefix, self.options.is_local);
                return Err(RegisterError::Silent { prefix, is_local });
            }
            late.due_ns = now_ns.saturating_add(PAUSES.pause_ns(late.attempts, random()));
            self.retries.push(late);
        }
        Ok(())
    }

    /// Takes a packet if it answers a command; others are of no interest here.
    ///
    /// # Errors
    /// As [`Registrar::handle_data`] and [`Registrar::handle_nack`].
    pub fn handle_packet(
        &mut self,
        header: &LpHeader<'_>,
        packet: &[u8],
    ) -> Result<(), RegisterError> {
        match header.nack {
            Some(reason) => Interest::decode(packet)
                .map_or(Ok(()), |interest| self.handle_nack(interest.name, reason)),
            None => Data::decode(packet).map_or(Ok(()), |data| self.handle_data(&data)),
        }
    }

    /// Takes a Data if it answers a command.
    ///
    /// # Errors
    /// [`RegisterError::Refused`].
    pub fn handle_data(&mut self, data: &Data<'_>) -> Result<(), RegisterError> {
        let Some(at) = self.position(data.name) else { return Ok(()) };
        // An answer that cannot be read is as good as none: the command is sent again.
        let Ok(response) = ControlResponse::decode(data.content) else { return Ok(()) };
        let mut answered = self.in_flight.swap_remove(at);
        if response.status_code == status_code::OK {
            return Ok(());
        }
        let may_be_taken = !self.options.is_local && answered.route.signer.is_some();
        if may_be_taken
            && response.status_code == status_code::UNAUTHORIZED
            && answered.attempts < ATTEMPTS_MAX
        {
            answered.due_ns = 0;
            self.retries.push(answered);
            return Ok(());
        }
        Err(RegisterError::Refused {
            prefix: answered.route.prefix,
            code: response.status_code,
            text: response.status_text,
            is_local: self.options.is_local,
        })
    }

    /// Takes a Nack if it is of a command.
    ///
    /// # Errors
    /// [`RegisterError::NoManagement`].
    pub fn handle_nack(&mut self, name: NameRef<'_>, reason: u64) -> Result<(), RegisterError> {
        let Some(at) = self.position(name) else { return Ok(()) };
        let prefix = self.in_flight.swap_remove(at).route.prefix;
        Err(RegisterError::NoManagement { prefix, reason })
    }

    fn position(&self, name: NameRef<'_>) -> Option<usize> {
        self.in_flight.iter().position(|sent| sent.command.view() == name)
    }

    /// The signed command: a digest suffices on a local face, elsewhere the prefix's own key signs.
    fn command(
        &self,
        route: &Route,
        time_ms: u64,
        random: &mut dyn FnMut() -> u64,
    ) -> Result<Vec<u8>, RegisterError> {
        let parameters = ControlParameters {
            name: Some(route.prefix.clone()),
            face_id: route.face_id,
            origin: Some(self.options.origin),
            cost: Some(0),
            flags: Some(flags_of(route.prefix.view())),
            expiration_period_ms: self.options.lasting_ns.map(|ns| ns / 1_000_000),
            ..ControlParameters::default()
        };
        let command = ControlCommand {
            is_local: self.options.is_local,
            path: "rib/register",
            parameters: &parameters,
            lifetime_ms: self.options.answer_ns / 1_000_000,
        };
        let key = route.signer.as_ref().filter(|_| !self.options.is_local);
        if let Some(Ok(wire)) = key.map(|key| command.sign(&**key, time_ms, random)) {
            return Ok(wire);
        }
        // A key that cannot sign leaves the digest; the forwarder then says what it thinks of it.
        command
            .sign(&DigestSigner, time_ms, random)
            .map_err(|source| RegisterError::Sign { prefix: route.prefix.clone(), source })
    }
}

/// Flags of a route. A prefix with a keyword is a place within somebody else's prefix: a disk or a
/// writer of a site. Whoever has the shorter one has nothing of what is below, so its routes must
/// not be inherited there: half of the Interests would go astray, and be lost behind a forwarder
/// that knows no Nacks.
fn flags_of(prefix: NameRef<'_>) -> u64 {
    let is_within = prefix.components().any(|component| component.typ == types::KEYWORD);
    let capture = if is_within { ROUTE_FLAG_CAPTURE } else { 0 };
    ROUTE_FLAG_CHILD_INHERIT | capture
}

/// Registers over a face until all is done, or `is_stopped`.
///
/// # Errors
/// [`FaceError::Register`] of the first prefix that the forwarder does not take, and what ends the
/// face.
pub fn register(
    face: &mut Face,
    registrar: &mut Registrar,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), FaceError> {
    let (clock, mut poller, mut events) = (Clock::new(), Poller::new()?, Vec::new());
    poller.add(face.connection(), Token(0), Watch::READ)?;
    while !registrar.is_done() && !is_stopped() {
        let now_ns = clock.now_ns();
        registrar.handle_timeout(now_ns, &mut random_u64)?;
        while let Some(command) =
            registrar.poll_command((now_ns, clock.unix_ns()), &mut random_u64)?
        {
            face.send(&LpHeader::default(), &command, now_ns)?;
        }
        face.flush()?;
        let write = face.connection().wants_write();
        poller.modify(face.connection(), Token(0), Watch { read: true, write })?;
        let due_ns = registrar.poll_timeout().unwrap_or(u64::MAX).min(now_ns + STOP_CHECK_NS);
        let timeout = Duration::from_nanos(due_ns.saturating_sub(now_ns));
        poller.wait(&mut events, Some(timeout))?;
        if !events.iter().any(|event| event.readable || event.hangup) {
            continue;
        }
        let mut outcome = Ok(());
        let status = face.receive(now_ns, |received| {
            if outcome.is_ok() {
                outcome = registrar.handle_packet(&received.header, received.packet);
            }
        })?;
        outcome?;
        if status.closed {
            return Err(FaceError::Closed);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
