//! Names on the same faces that no files are behind.

use byname_packet::{Data, NameRef};
use byname_transfer::server::{Arrival, Now, Outgoing, Server};

/// Answers names of its own, beside the files of the server that it is given to
/// ([`FileServer::add_service`]).
///
/// Called by the serving thread, which must not wait. A service with threads of its own has them
/// call [`ServerHandle::wake`] when there is something to send.
///
/// [`FileServer::add_service`]: super::FileServer::add_service
/// [`ServerHandle::wake`]: super::ServerHandle::wake
pub trait Service: Send {
    /// True for names that it answers in place of the server.
    fn answers(&self, name: NameRef<'_>) -> bool;

    /// Takes an Interest with such a name. Each is answered by one packet, or counted as expired.
    fn handle_interest(&mut self, arrival: &Arrival<'_>, now: Now);

    /// Takes Data that came in answer to an Interest which the service has sent.
    fn handle_data(&mut self, _data: &Data<'_>, _now: Now) {}

    /// Takes the Nack of such an Interest.
    fn handle_nack(&mut self, _name: NameRef<'_>, _now: Now) {}

    /// False while it has no answers: routes that end by themselves are then not renewed.
    fn is_able(&self) -> bool {
        true
    }

    /// The forwarder has taken the prefixes, for the first time or again.
    fn handle_registered(&mut self) {}

    /// Does what is due, and takes what its threads have done.
    fn handle_timeout(&mut self, now: Now);

    /// The next packet to send.
    fn poll_transmit(&mut self) -> Option<Outgoing>;

    /// When [`Service::handle_timeout`] must be called at the latest, in monotonic nanoseconds.
    fn poll_timeout(&self) -> Option<u64>;
}

/// Whoever takes Interests that have come.
pub(super) struct Recipients<'a> {
    pub(super) engine: &'a mut Server,
    pub(super) service: Option<&'a mut (dyn Service + 'static)>,
    /// Trace of what is answered here.
    pub(super) path_trace: &'static [u8],
}

impl Recipients<'_> {
    pub(super) fn handle_data(&mut self, data: &Data<'_>, now: Now) {
        if let Some(service) = &mut self.service {
            service.handle_data(data, now);
        }
    }

    pub(super) fn handle_nack(&mut self, name: NameRef<'_>, now: Now) {
        if let Some(service) = &mut self.service {
            service.handle_nack(name, now);
        }
    }

    pub(super) fn handle_interest(&mut self, arrival: &Arrival<'_>, now: Now) {
        match &mut self.service {
            Some(service) if service.answers(arrival.interest.name) => {
                service.handle_interest(arrival, now);
            }
            _ => self.engine.handle_interest(arrival, now),
        }
    }
}
