//! The face to a forwarder: connecting, registering, and doing both again.
//!
//! A stream that ends says so. Over datagrams a forwarder that restarts tells nobody, so a silent
//! one is told the prefixes once more: it answers, or it is connected to anew. Routes that end by
//! themselves are renewed while the service has answers.

use byname_face::{RegisterOptions, Registrar, Route, random_u64};
use byname_io::{ConnectError, Connection};
use byname_retry::BackOff;
use byname_transfer::server::{FaceId, Now};

use super::face::Face;
use super::{FileServer, ServerEvent};
use crate::error::StoreError;

/// Pauses before connecting again: who comes back is found within a second.
const PAUSES: BackOff = BackOff { min_ns: 100_000_000, max_ns: 800_000_000 };
/// Longest wait for the answer to a command that may have met a restart.
const ANSWER_NS: u64 = 1_000_000_000;

/// Renewals in the time for which a route lasts.
const RENEWALS: u64 = 5;

/// The forwarder, if there is one.
pub(super) struct Upstream<'a> {
    connect: &'a mut dyn FnMut() -> Result<Connection, ConnectError>,
    on_event: &'a mut dyn FnMut(ServerEvent<'_>),
    face: Option<FaceId>,
    was_ready: bool,
    /// Connections lost, or not made, since the prefixes were last registered.
    failures: u32,
    /// The prefixes are registered once more, at a forwarder that may have forgotten them.
    is_refreshed: bool,
    due_ns: u64,
    /// When routes that end by themselves are registered again.
    renew_ns: u64,
    is_local: bool,
}

impl<'a> Upstream<'a> {
    /// Not connected yet.
    pub(super) fn new(
        connect: &'a mut dyn FnMut() -> Result<Connection, ConnectError>,
        on_event: &'a mut dyn FnMut(ServerEvent<'_>),
    ) -> Self {
        Upstream {
            connect,
            on_event,
            face: None,
            was_ready: false,
            failures: 0,
            is_refreshed: false,
            due_ns: 0,
            renew_ns: u64::MAX,
            is_local: false,
        }
    }
}

impl FileServer {
    /// When there is something to do for the forwarder without anything arriving.
    pub(super) fn upstream_due_ns(&self, upstream: &Upstream<'_>) -> Option<u64> {
        match upstream.face {
            None => Some(upstream.due_ns),
            Some(face) => {
                let renew_ns = Some(upstream.renew_ns).filter(|renew_ns| *renew_ns != u64::MAX);
                let refresh_ns = self.faces.get(face).and_then(Face::refresh_due_ns);
                renew_ns.into_iter().chain(refresh_ns).min()
            }
        }
    }

    /// Forgets faces that ended; the forwarder's is to be replaced.
    pub(super) fn take_ended(&mut self, upstream: &mut Upstream<'_>) -> Result<(), StoreError> {
        for (face, why) in self.faces.take_ended() {
            if upstream.face == Some(face) {
                self.lose(upstream, why)?;
            }
        }
        Ok(())
    }

    /// Connects to the forwarder if that is due.
    pub(super) fn attach(&mut self, upstream: &mut Upstream<'_>) -> Result<(), StoreError> {
        let now_ns = self.clock.now_ns();
        if upstream.face.is_some() || upstream.due_ns > now_ns {
            return Ok(());
        }
        match self.connect(upstream.connect) {
            Ok((face, is_local)) => {
                (upstream.face, upstream.is_local) = (Some(face), is_local);
            }
            Err(error) => self.lose(upstream, Some(error))?,
        }
        Ok(())
    }

    fn connect(
        &mut self,
        connect: &mut dyn FnMut() -> Result<Connection, ConnectError>,
    ) -> Result<(FaceId, bool), StoreError> {
        let connection = connect()?;
        // A forwarder takes no UDP peer for local: anybody on its machine can forge one.
        let is_datagram = connection.remote_uri().starts_with("udp");
        let is_local = connection.is_local() && !is_datagram;
        let registrar = self.registrar(is_local, is_datagram);
        let now_ns = self.clock.now_ns();
        Ok((self.faces.add(connection, Some(registrar), &self.poller, now_ns)?, is_local))
    }

    /// Registers all prefixes.
    fn registrar(&self, is_local: bool, is_datagram: bool) -> Registrar {
        let options = match (is_local, is_datagram) {
            (true, _) => RegisterOptions::local(),
            (false, false) => RegisterOptions::remote(),
            // A command that meets a restart is lost.
            (false, true) => RegisterOptions { answer_ns: ANSWER_NS, ..RegisterOptions::remote() },
        };
        let options = RegisterOptions { lasting_ns: self.registered_ns, ..options };
        let prefixes = self.prefixes.clone().into_iter();
        let routes =
            prefixes.map(|(prefix, signer)| Route { prefix, signer: Some(signer), face_id: None });
        Registrar::new(routes, options, self.command_clock.clone())
    }

    /// The forwarder went away, refuses, or is not there yet: another attempt follows after a
    /// pause. A refusal before the first success is of the caller's making.
    pub(super) fn lose(
        &mut self,
        upstream: &mut Upstream<'_>,
        why: Option<StoreError>,
    ) -> Result<(), StoreError> {
        if let Some(face) = upstream.face.take() {
            self.faces.remove(face, None);
        }
        upstream.failures = upstream.failures.saturating_add(1);
        upstream.is_refreshed = false;
        upstream.renew_ns = u64::MAX;
        let pause_ns = PAUSES.pause_ns(upstream.failures, random_u64());
        upstream.due_ns = self.clock.now_ns() + pause_ns;
        let on_event = &mut upstream.on_event;
        match why {
            Some(error @ StoreError::Register(_)) if !upstream.was_ready => return Err(error),
            Some(StoreError::Io(error)) => {
                on_event(ServerEvent::Disconnected { reason: &error.to_string() });
            }
            Some(error) => on_event(ServerEvent::Retrying { error: &error }),
            None => on_event(ServerEvent::Disconnected { reason: "closed by the peer" }),
        }
        Ok(())
    }

    /// Registers the prefixes, at a silent forwarder anew.
    pub(super) fn register(
        &mut self,
        upstream: Option<&mut Upstream<'_>>,
        now: Now,
    ) -> Result<(), StoreError> {
        let Some(upstream) = upstream else { return Ok(()) };
        let again = self.registrar_again(upstream, now);
        let Some(face) = upstream.face.and_then(|face| self.faces.get_mut(face)) else {
            return Ok(());
        };
        if let Some(registrar) = again {
            upstream.is_refreshed = true;
            face.register_again(registrar);
        }
        let mut is_ready = false;
        face.register(now, &mut || is_ready = true)?;
        if is_ready {
            face.ask_for_askers(&self.command_clock, now);
            upstream.was_ready = true;
            upstream.failures = 0;
            if let Some(service) = &mut self.service {
                service.handle_registered();
            }
            if let Some(ns) = self.registered_ns {
                upstream.renew_ns = now.now_ns.saturating_add(ns / RENEWALS);
            }
            if !std::mem::take(&mut upstream.is_refreshed) {
                (upstream.on_event)(ServerEvent::Ready);
            }
        }
        Ok(())
    }

    /// Registers all prefixes once more if it is time.
    fn registrar_again(&self, upstream: &mut Upstream<'_>, now: Now) -> Option<Registrar> {
        let face = self.faces.get(upstream.face?)?;
        if face.refresh_due_ns().is_some_and(|due_ns| due_ns <= now.now_ns) {
            return Some(self.registrar(false, true));
        }
        if now.now_ns < upstream.renew_ns {
            return None;
        }
        let is_able = self.service.as_ref().is_none_or(|service| service.is_able());
        let pause_ns = self.registered_ns.map_or(u64::MAX, |ns| ns / RENEWALS);
        // Set anew once it is registered.
        upstream.renew_ns = if is_able { u64::MAX } else { now.now_ns.saturating_add(pause_ns) };
        is_able.then(|| self.registrar(upstream.is_local, false))
    }
}
