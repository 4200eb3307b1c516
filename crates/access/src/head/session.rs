//! The session of whoever commands a head: opened by the first command, renewed while it is used,
//! ended with the program, and its keys.

use std::time::{Duration, Instant};

use byname_catalog::id::SessionId;
use byname_catalog::{Answer, Command, Refusal, SESSION_IDLE_NS, SESSION_NS};
use byname_packet::{Data, Signer};
use byname_site::{Outcome, Reply, RequestId, SiteAnswer};

use super::{HeadSession, failed};
use crate::error::AccessError;

/// Age at which a session is renewed before it is used: well before the head takes it for idle.
const RENEW_AGE: Duration = Duration::from_nanos(SESSION_IDLE_NS / 10 * 9);
/// Age at which another one is opened, well before the head ends this one: so no command is sent
/// again in a session that is over.
const OVER_AGE: Duration = Duration::from_nanos(SESSION_NS / 10 * 9);

/// A session of the catalog.
pub(super) struct OpenSession {
    id: SessionId,
    /// Last sequence of its slot.
    sequence: u64,
    /// When it was opened, or renewed last.
    renewed: Instant,
}

impl OpenSession {
    fn next(&mut self) -> RequestId {
        self.sequence += 1;
        RequestId { session: self.id, slot: 0, sequence: self.sequence }
    }
}

impl HeadSession {
    /// The request id of the next command, in a session that lasts.
    pub(super) fn next_request(&mut self) -> Result<RequestId, AccessError> {
        let mut session = self.lasting_session()?;
        let request = session.next();
        self.session = Some(session);
        Ok(request)
    }

    fn lasting_session(&mut self) -> Result<OpenSession, AccessError> {
        if let Some(session) = self.session.take().filter(|it| it.renewed.elapsed() < OVER_AGE) {
            if session.renewed.elapsed() < RENEW_AGE {
                return Ok(session);
            }
            if let Some(renewed) = self.renewed(session)? {
                return Ok(renewed);
            }
        }
        self.keyring.end_session();
        let (renewed, packet) = (Instant::now(), self.packet(None, Command::OpenSession));
        match self.outcome(&packet)?? {
            SiteAnswer::Plain(Answer::Session { session, .. }) => {
                Ok(OpenSession { id: session, sequence: 0, renewed })
            }
            _ => Err(AccessError::OtherAnswer),
        }
    }

    /// The session for longer; `None` if the head has ended it.
    fn renewed(&mut self, mut session: OpenSession) -> Result<Option<OpenSession>, AccessError> {
        let renewed = Instant::now();
        let packet = self.packet(Some(session.next()), Command::RenewSession);
        Ok(match self.outcome(&packet)? {
            Ok(_) => Some(OpenSession { renewed, ..session }),
            Err(Refusal::UnknownSession) => None,
            Err(refusal) => return Err(refusal.into()),
        })
    }

    /// Agrees with the head upon keys of the session, if so much was sent that it is worth it. A
    /// head that does not want to gets signatures, as before.
    pub(super) fn agree_in_time(&mut self) -> Result<(), AccessError> {
        if !self.keyring.note_sent(self.clock.now_ns()) {
            return Ok(());
        }
        match self.agree() {
            Err(error @ (AccessError::Stopped | AccessError::NoHead { .. })) => Err(error),
            // Signatures do as well; should there be something wrong, what is asked next says so.
            Err(_) => {
                self.keyring.refused(self.clock.now_ns());
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn agree(&mut self) -> Result<(), AccessError> {
        let session = self.lasting_session()?;
        let id = session.id;
        self.session = Some(session);
        let Some(agree) = self.keyring.begin(id, self.clock.now_ns()) else { return Ok(()) };
        let signer: &dyn Signer = &self.account.identity.signer;
        let wire = agree.encode(&self.account.site, signer, self.stamp())?;
        let answer = self.answered(&mut |_| Ok((wire.clone(), None)))?;
        let data = Data::decode(&answer)?;
        match Reply::decode(&self.account.site, &data)?.outcome {
            Outcome::Done(done) => {
                let now_ns = self.clock.now_ns();
                self.keyring.agreed(&self.account.site, (&data, &done), now_ns);
                Ok(())
            }
            other => Err(failed(other)),
        }
    }
}

impl Drop for HeadSession {
    /// Ends the session, should somebody listen: the head ends it by itself otherwise.
    fn drop(&mut self) {
        let Some(mut session) = self.session.take() else { return };
        let packet = self.packet(Some(session.next()), Command::EndSession);
        if let Ok((wire, _)) = self.make(&packet) {
            self.exchange.tell(&wire);
        }
    }
}
