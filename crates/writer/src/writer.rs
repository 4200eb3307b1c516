//! The thread's loop: one connection, over which [`WriterCore`] writes.

mod commands;

pub use commands::{CommandList, QuestionList};

use std::sync::Arc;
use std::time::Duration;

use byname_catalog::{Answer, Command, Entry};
use byname_face::{
    CommandClock, Face, FaceError, RegisterOptions, Registrar, Route, random_u64, register,
};
use byname_io::{Clock, Connection, Interest as Watch, Poller, Token, Waker};
use byname_link::ReassemblyLimits;
use byname_packet::lp::LpHeader;
use byname_site::Ticket;

use crate::core::{Now, Outgoing, WriterConfig, WriterCore};
use crate::error::WriterError;
use crate::put::{Put, PutEvent};
use crate::source::Source;

/// Most files written at a time.
pub const FILES_IN_FLIGHT_MAX: usize = 16;

const CONNECTION: Token = Token(0);
/// How often the loop looks at whether it shall stop.
const STOP_CHECK: Duration = Duration::from_millis(200);
/// Time for attempts to be given up when all shall stop.
const STOP_NS: u64 = 3_000_000_000;
/// Octets of a packet that arrives in pieces.
const REASSEMBLY: ReassemblyLimits = ReassemblyLimits {
    messages_max: 64,
    bytes_max: 1 << 20,
    fragments_max: 64,
    lifetime_ns: 500_000_000,
};

/// A packet that was received: reason of a Nack, PIT token, octets.
type Received = (Option<u64>, Option<Vec<u8>>, Vec<u8>);

/// The next file to be written.
#[derive(Debug)]
pub enum Next {
    /// It, with a number of its own.
    Put(usize, Put),
    /// It is not ready; whoever has it ready wakes the writer ([`Writer::waker`]).
    Later,
    /// There is none any more.
    End,
}

/// Writes to a site. See the crate's documentation.
pub struct Writer {
    core: WriterCore,
    face: Face,
    poller: Poller,
    clock: Clock,
    waker: Waker,
}

impl Writer {
    /// Takes over a connection to a forwarder, and registers the writer's prefix there.
    ///
    /// # Errors
    /// [`WriterError`] of what cannot be registered, or opened.
    pub fn connect(
        connection: Connection,
        config: WriterConfig,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, WriterError> {
        let is_datagram = connection.remote_uri().starts_with("udp");
        let options = match connection.is_local() && !is_datagram {
            true => RegisterOptions::local(),
            false => RegisterOptions::remote(),
        };
        let signer = Some(Arc::new(config.signer.clone()) as _);
        let command_clock = CommandClock::new();
        let random = Box::new(random_u64);
        let core = WriterCore::new(config, random_u64(), command_clock.clone(), random);
        let route = Route { prefix: core.prefix(), signer, face_id: None };
        let mut writer = Self::over(connection, core)?;
        let mut registrar = Registrar::new(std::iter::once(route), options, command_clock);
        register(&mut writer.face, &mut registrar, is_stopped)?;
        writer.open_session(is_stopped)?;
        Ok(writer)
    }

    fn over(connection: Connection, core: WriterCore) -> Result<Self, WriterError> {
        let mut poller = Poller::new()?;
        poller.add(&connection, CONNECTION, Watch::READ)?;
        let waker = poller.waker(Token(1))?;
        let face = Face::new(connection, REASSEMBLY);
        Ok(Self { core, face, poller, clock: Clock::new(), waker })
    }

    fn now(&self) -> Now {
        Now { now_ns: self.clock.now_ns(), unix_ns: self.clock.unix_ns() }
    }

    fn open_session(&mut self, is_stopped: &dyn Fn() -> bool) -> Result<(), WriterError> {
        match self.execute(Command::OpenSession, is_stopped)? {
            Answer::Session { session, .. } => {
                self.core.begin_session(session, self.now());
                Ok(())
            }
            _ => Err(WriterError::OtherAnswer),
        }
    }

    /// Ends the writer's waiting, from any thread: there is a next file.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Writes files, several at a time, in the order in which `next` gives them, each with a number
    /// of its own.
    ///
    /// # Errors
    /// What ends all of them: the connection, or a wish to stop, at which what is in flight is
    /// given up. What ends one file is its event.
    pub fn put_all(
        &mut self,
        next: &mut dyn FnMut() -> Next,
        on_event: &mut dyn FnMut(PutEvent),
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), WriterError> {
        let mut is_last = false;
        loop {
            while !is_last && self.core.in_flight() < FILES_IN_FLIGHT_MAX {
                match next() {
                    Next::Put(number, put) => self.core.put(number, put, self.now())?,
                    Next::Later => break,
                    Next::End => is_last = true,
                }
            }
            self.tell(on_event);
            if is_last && self.core.in_flight() == 0 {
                return Ok(());
            }
            if let Err(error) = self.turn(is_stopped) {
                if matches!(error, WriterError::Stopped) {
                    self.stop()?;
                }
                self.core.forget();
                self.tell(on_event);
                return Err(error);
            }
        }
    }

    /// Writes the content of an attempt that is open already, under a ticket for the writer's key.
    ///
    /// # Errors
    /// [`WriterError`]; the attempt is given up then.
    pub fn put_into(
        &mut self,
        ticket: Ticket,
        source: Arc<Source>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Box<Entry>, WriterError> {
        self.core.put_into(0, (ticket, source), self.now())?;
        let mut outcome = None;
        let mut on_event = |event| {
            if let PutEvent::Done { result, .. } = event {
                outcome = Some(result);
            }
        };
        self.put_all(&mut || Next::End, &mut on_event, is_stopped)?;
        outcome.unwrap_or(Err(WriterError::OtherAnswer))
    }

    fn tell(&mut self, on_event: &mut dyn FnMut(PutEvent)) {
        while let Some(event) = self.core.poll_event() {
            on_event(event);
        }
    }

    /// Gives up what is in flight, so that what it has reserved comes back.
    fn stop(&mut self) -> Result<(), WriterError> {
        self.core.stop(self.now())?;
        let until_ns = self.clock.now_ns() + STOP_NS;
        while self.core.in_flight() > 0 && self.clock.now_ns() < until_ns {
            self.turn(&|| false)?;
        }
        Ok(())
    }

    /// Waits for something to happen, and deals with it.
    fn turn(&mut self, is_stopped: &dyn Fn() -> bool) -> Result<(), WriterError> {
        if is_stopped() {
            return Err(WriterError::Stopped);
        }
        let now = self.now();
        self.core.handle_timeout(now)?;
        while let Some(outgoing) = self.core.poll_transmit(now) {
            self.transmit(&outgoing, now.now_ns)?;
        }
        self.face.flush()?;
        let write = self.face.connection().wants_write();
        self.poller.modify(self.face.connection(), CONNECTION, Watch { read: true, write })?;
        let due_ns = self.core.poll_timeout();
        let wait = Duration::from_nanos(due_ns.saturating_sub(now.now_ns)).min(STOP_CHECK);
        let mut ready = Vec::new();
        self.poller.wait(&mut ready, Some(wait))?;
        if ready.iter().any(|it| it.token == CONNECTION && (it.readable || it.hangup)) {
            self.receive()?;
        }
        Ok(())
    }

    /// What there is no room for is lost: disks ask again, commands and orders are sent again.
    fn transmit(&mut self, outgoing: &Outgoing, now_ns: u64) -> Result<(), WriterError> {
        let Outgoing { wire, pit_token, nack } = outgoing;
        let header =
            LpHeader { pit_token: pit_token.as_deref(), nack: *nack, ..LpHeader::default() };
        match self.face.send(&header, wire, now_ns) {
            Err(FaceError::Full(_)) => Ok(()),
            sent => Ok(sent?),
        }
    }

    fn receive(&mut self) -> Result<(), WriterError> {
        let now = self.now();
        let mut packets: Vec<Received> = Vec::new();
        let status = self.face.receive(now.now_ns, |received| {
            let token = received.header.pit_token.filter(|it| !it.is_empty()).map(<[u8]>::to_vec);
            packets.push((received.header.nack, token, received.packet.to_vec()));
        })?;
        for (nack, token, wire) in packets {
            self.core.handle_packet((nack, token.as_deref()), &wire, now)?;
        }
        if status.closed { Err(FaceError::Closed.into()) } else { Ok(()) }
    }
}

impl Drop for Writer {
    /// Ends the session, should somebody listen: the head ends it by itself otherwise.
    fn drop(&mut self) {
        let now = self.now();
        let Some(wire) = self.core.end_session(now) else { return };
        let ended = Outgoing { wire, pit_token: None, nack: None };
        let _ = self.transmit(&ended, now.now_ns).map(|()| self.face.flush());
    }
}
