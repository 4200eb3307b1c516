//! Asking the forwarder for Interests: one `rib/register` command per prefix, until each is
//! answered.
//!
//! Sans-I/O like everything that speaks a protocol: commands to send are polled, answers handled,
//! time is given. spec: NFD management, "ControlCommand" and "RibMgmt".

use std::sync::atomic::{AtomicU64, Ordering};

use byname_packet::mgmt::{ControlParameters, ControlResponse, ROUTE_FLAG_CHILD_INHERIT};
use byname_packet::mgmt::{route_origin, status_code};
use byname_packet::{Data, DigestSigner, InterestBuilder, Name, NameRef, SignatureExtra, Signer};
use byname_transfer::server::{Now, SharedSigner};

use crate::error::RegisterError;

const SECOND_NS: u64 = 1_000_000_000;
/// How long a command may take; also the Interest's lifetime.
const ANSWER_NS: u64 = SECOND_NS;
/// The same elsewhere, where certificates are fetched before the answer.
const REMOTE_ANSWER_NS: u64 = 4 * SECOND_NS;
/// Commands sent for one prefix before giving up.
const ATTEMPTS_MAX: u32 = 4;

enum Step {
    /// To be sent; so many were sent before.
    ToSend(u32),
    Sent {
        command: Name,
        at_ns: u64,
        attempts: u32,
    },
    Registered,
}

/// The time of the last command of any registrar of this process: verifiers let no key sign two at
/// the same time.
static LAST_TIME_MS: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Registrar {
    prefixes: Vec<(Name, SharedSigner, Step)>,
    is_local: bool,
}

impl Registrar {
    pub(crate) fn new(prefixes: &[(Name, SharedSigner)], is_local: bool) -> Self {
        let prefixes = prefixes.iter();
        let prefixes = prefixes
            .map(|(prefix, signer)| (prefix.clone(), signer.clone(), Step::ToSend(0)))
            .collect();
        Self { prefixes, is_local }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.prefixes.iter().all(|(_, _, step)| matches!(step, Step::Registered))
    }

    /// The next command to send; `random` makes its nonces.
    pub(crate) fn poll_command(
        &mut self,
        now: Now,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<Vec<u8>> {
        let is_local = self.is_local;
        if !self.may_send() {
            return None;
        }
        let (prefix, signer, step) =
            self.prefixes.iter_mut().find(|(_, _, step)| matches!(step, Step::ToSend(_)))?;
        let Step::ToSend(attempts) = *step else { return None };
        let wire = command(prefix, signer, is_local, (now, random));
        let name = byname_packet::Interest::decode(&wire).ok()?.name.to_name();
        *step = Step::Sent { command: name, at_ns: now.now_ns, attempts: attempts + 1 };
        Some(wire)
    }

    /// Elsewhere one by one: while a certificate is fetched, a later command could overtake, and
    /// NFD then refuses the earlier.
    fn may_send(&self) -> bool {
        let is_sent = |(_, _, step): &(_, _, Step)| matches!(step, Step::Sent { .. });
        self.is_local || !self.prefixes.iter().any(is_sent)
    }

    /// When there is a command to send, or [`Registrar::handle_timeout`] has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<u64> {
        let is_waiting = |(_, _, step): &(_, _, Step)| matches!(step, Step::ToSend(_));
        if self.may_send() && self.prefixes.iter().any(is_waiting) {
            return Some(0);
        }
        let answer_ns = answer_ns(self.is_local);
        let sent = self.prefixes.iter().filter_map(|(_, _, step)| match step {
            Step::Sent { at_ns, .. } => Some(at_ns + answer_ns),
            _ => None,
        });
        sent.min()
    }

    /// Sends again what was not answered in time.
    pub(crate) fn handle_timeout(&mut self, now: Now) -> Result<(), RegisterError> {
        let is_local = self.is_local;
        for (prefix, _, step) in &mut self.prefixes {
            let Step::Sent { at_ns, attempts, .. } = *step else { continue };
            if at_ns + answer_ns(is_local) > now.now_ns {
                continue;
            }
            if attempts >= ATTEMPTS_MAX {
                return Err(RegisterError::Silent { prefix: prefix.clone(), is_local });
            }
            *step = Step::ToSend(attempts);
        }
        Ok(())
    }

    /// Takes a Data if it answers a command; others are of no interest here.
    pub(crate) fn handle_data(&mut self, data: &Data<'_>) -> Result<(), RegisterError> {
        let is_local = self.is_local;
        let Some((prefix, step)) = self.sent(data.name) else { return Ok(()) };
        // An answer that cannot be read is as good as none: the command is sent again.
        let Ok(response) = ControlResponse::decode(data.content) else { return Ok(()) };
        if response.status_code != status_code::OK {
            let (code, text) = (response.status_code, response.status_text);
            return Err(RegisterError::Refused { prefix: prefix.clone(), code, text, is_local });
        }
        *step = Step::Registered;
        Ok(())
    }

    /// Takes a Nack if it is of a command.
    pub(crate) fn handle_nack(
        &mut self,
        name: NameRef<'_>,
        reason: u64,
    ) -> Result<(), RegisterError> {
        match self.sent(name) {
            Some((prefix, _)) => {
                Err(RegisterError::NoManagement { prefix: prefix.clone(), reason })
            }
            None => Ok(()),
        }
    }

    fn sent(&mut self, name: NameRef<'_>) -> Option<(&Name, &mut Step)> {
        let found = self.prefixes.iter_mut().find(
            |(_, _, step)| matches!(step, Step::Sent { command, .. } if command.view() == name),
        );
        found.map(|(prefix, _, step)| (&*prefix, step))
    }
}

/// Now, or the next millisecond in which nothing was signed.
fn next_time_ms(now: Now) -> u64 {
    let now_ms = now.unix_ns / 1_000_000;
    let next = |last_ms: u64| Some(now_ms.max(last_ms + 1));
    // The closure always gives a value, and either result is the value before.
    let (Ok(last_ms) | Err(last_ms)) =
        LAST_TIME_MS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    now_ms.max(last_ms + 1)
}

fn answer_ns(is_local: bool) -> u64 {
    if is_local { ANSWER_NS } else { REMOTE_ANSWER_NS }
}

/// The signed command: a digest suffices on a local face, elsewhere the prefix's own key signs.
fn command(
    prefix: &Name,
    signer: &SharedSigner,
    is_local: bool,
    (now, random): (Now, &mut dyn FnMut() -> u64),
) -> Vec<u8> {
    let scope: &[u8] = if is_local { b"localhost" } else { b"localhop" };
    let mut parameters = Vec::new();
    ControlParameters {
        name: Some(prefix.clone()),
        origin: Some(route_origin::CLIENT),
        cost: Some(0),
        flags: Some(ROUTE_FLAG_CHILD_INHERIT),
        ..ControlParameters::default()
    }
    .encode(&mut parameters);
    let mut name = Name::new();
    for component in [scope, b"nfd", b"rib", b"register", &parameters] {
        name.push_generic(component);
    }
    let nonce = random().to_be_bytes();
    let extra = SignatureExtra {
        nonce: Some(&nonce),
        time_ms: Some(next_time_ms(now)),
        ..SignatureExtra::default()
    };
    let builder = InterestBuilder::new(name.view())
        .must_be_fresh(true)
        .nonce((random() as u32).to_be_bytes())
        .lifetime_ms(answer_ns(is_local) / 1_000_000);
    let signers: [&dyn Signer; 2] = [&**signer, &DigestSigner];
    let mut wire = Vec::new();
    for signer in &signers[usize::from(is_local)..] {
        if builder.encode_signed(*signer, extra, &mut wire).is_ok() {
            break;
        }
        // A key that cannot sign leaves the digest; the forwarder then says what it thinks of it.
        wire.clear();
    }
    wire
}

#[cfg(test)]
mod tests;
