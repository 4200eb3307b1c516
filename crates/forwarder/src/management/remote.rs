//! Commands of other machines, which are allowed by key: `/localhop/nfd/rib/*`.
//!
//! Without a verifier they are refused, with a word on what would help. A verifier may need a
//! certificate: then the command waits while it is fetched, first from where the command came from
//! (a client serves its certificates before it has a route), then by the routes. The signer may
//! register at and below the prefixes that the verdict names, and only over its own face. Commands
//! that wait are bounded in number, altogether and for each face, and each in the number of
//! certificates and in time.

use std::collections::VecDeque;

use byname_packet::mgmt::{ControlResponse, Verdict};
use byname_packet::{Component, ContentType, Data, Interest, InterestBuilder, Name, NameRef};

use super::command::{Call, Outcome, Request, bad, forbidden, is_announcement, is_signed};
use super::internal::{PATIENCE_NS, Purpose};
use super::rib::announced;
use super::{Asker, PREFIX_LEN, encode_response, module_and_verb};
use crate::face::FaceId;
use crate::forwarder::{Forwarder, Tx};
use crate::scope;

/// Commands that wait for certificates.
const WAITING_MAX: usize = 256;

/// Of them, commands of one face.
const WAITING_OF_FACE_MAX: usize = 16;

/// Certificates fetched for one command.
const CERTIFICATES_MAX: u32 = 8;

/// After this long without answer, the certificate is sought by the routes as well.
const DIRECT_NS: u64 = 1_000_000_000;

/// Answers kept, for who asks again with the same Interest: a second look at its signature would
/// find a replay.
const ANSWERS_MAX: usize = 128;
const ANSWERS_NS: u64 = 10_000_000_000;

/// A command that waits for a certificate.
#[derive(Debug)]
struct Waiting {
    asker: Asker,
    interest: Vec<u8>,
    certificate: Name,
    certificate_count: u32,
    /// When the certificate is sought by the routes; `None` once it is.
    route_ns: Option<u64>,
    until_ns: u64,
}

#[derive(Debug)]
struct Answer {
    face: FaceId,
    name: Name,
    response: ControlResponse,
    until_ns: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Remote {
    waiting: Vec<Waiting>,
    answers: VecDeque<Answer>,
    /// Certificates to be asked for, and over which face.
    wanted: Vec<(Name, Option<FaceId>)>,
}

impl Remote {
    pub(super) fn due_ns(&self) -> Option<u64> {
        if !self.wanted.is_empty() {
            return Some(0);
        }
        self.waiting.iter().flat_map(|w| [w.route_ns, Some(w.until_ns)]).flatten().min()
    }
}

/// What is to become of a command after a look at its signature.
enum Next {
    Answer(ControlResponse),
    Fetch(Name),
}

impl Forwarder {
    /// A command from a face without authority of its own.
    pub(super) fn on_remote_command(&mut self, call: &Call<'_>) -> Outcome {
        let name = call.interest.name;
        let remote = &mut self.management.remote;
        remote.answers.retain(|answer| answer.until_ns > call.now_ns);
        let known = remote
            .answers
            .iter()
            .find(|answer| answer.face == call.asker.face && answer.name.view() == name);
        if let Some(answer) = known {
            return answer.response.clone().into();
        }
        let again = remote.waiting.iter_mut().find(|waiting| {
            waiting.asker.face == call.asker.face
                && Interest::decode(&waiting.interest).is_ok_and(|first| first.name == name)
        });
        if let Some(waiting) = again {
            waiting.asker = call.asker;
            return Outcome::Later;
        }
        match self.judge(call) {
            Next::Answer(response) => {
                self.keep_answer(call, &response);
                response.into()
            }
            Next::Fetch(certificate) => self.wait_for_certificate(call, certificate),
        }
    }

    fn judge(&mut self, call: &Call<'_>) -> Next {
        let Some(verifier) = self.config.command_verifier.clone() else {
            return Next::Answer(forbidden(advice(call)));
        };
        if !is_signed(call.interest) {
            return Next::Answer(forbidden("the command is not signed"));
        }
        let unix_ns = self.unix_ns(call.now_ns);
        let (module, verb) = module_and_verb(call.interest.name);
        let announcement = is_announcement(module, verb).then(|| announced(call));
        let verdict = match &announcement {
            Some(Err(refusal)) => return Next::Answer(refusal.clone()),
            Some(Ok(packet)) => verifier.verify_announcement(packet, unix_ns),
            None => verifier.verify(call.interest, unix_ns),
        };
        match verdict {
            Verdict::NeedCertificate(name) if !may_be_fetched(name.view()) => {
                Next::Answer(forbidden("the command names no certificate that can be fetched"))
            }
            Verdict::NeedCertificate(name) => Next::Fetch(name),
            Verdict::Refused(reason) => {
                Next::Answer(forbidden(format!("{reason}; {}", advice(call))))
            }
            Verdict::Allowed { may_register } => {
                let packet = announcement.and_then(Result::ok);
                let result = match packet {
                    Some(packet) => self.announce_remote(call, &packet, &may_register),
                    None => self.command_remote(call, &may_register),
                };
                Next::Answer(result.unwrap_or_else(|refusal| refusal))
            }
        }
    }

    fn announce_remote(
        &mut self,
        call: &Call<'_>,
        packet: &Data<'_>,
        may_register: &[Name],
    ) -> Result<ControlResponse, ControlResponse> {
        let found = byname_packet::mgmt::PrefixAnnouncement::from_data(packet)
            .map_err(|error| bad(format!("malformed prefix announcement: {error}")))?;
        check_prefix(found.prefix.view(), may_register, call)?;
        self.announce(call.asker.face, packet, false, call.now_ns)
    }

    fn command_remote(
        &mut self,
        call: &Call<'_>,
        may_register: &[Name],
    ) -> Result<ControlResponse, ControlResponse> {
        let (command, takes, request) = self.read_request(call)?;
        if let Some(complaint) = takes.complaint(&request.parameters) {
            return Err(bad(complaint));
        }
        check_prefix(request.prefix()?.view(), may_register, call)?;
        if request.face != call.asker.face {
            return Err(forbidden("another machine may only register routes to itself"));
        }
        match self.carry_out_command(command, Request { has_full_authority: false, ..request }) {
            Outcome::Now(response) => Ok(response),
            Outcome::Later => Err(forbidden("no such command here")),
        }
    }

    fn keep_answer(&mut self, call: &Call<'_>, response: &ControlResponse) {
        let answers = &mut self.management.remote.answers;
        if answers.len() >= ANSWERS_MAX {
            answers.pop_front();
        }
        answers.push_back(Answer {
            face: call.asker.face,
            name: call.interest.name.to_name(),
            response: response.clone(),
            until_ns: call.now_ns.saturating_add(ANSWERS_NS),
        });
    }

    fn wait_for_certificate(&mut self, call: &Call<'_>, certificate: Name) -> Outcome {
        let waiting = &mut self.management.remote.waiting;
        let of_face = waiting.iter().filter(|w| w.asker.face == call.asker.face).count();
        if waiting.len() >= WAITING_MAX || of_face >= WAITING_OF_FACE_MAX {
            return forbidden("too many commands wait for certificates; try again later").into();
        }
        waiting.push(Waiting {
            asker: call.asker,
            interest: call.interest.wire().to_vec(),
            certificate: certificate.clone(),
            certificate_count: 1,
            route_ns: Some(call.now_ns.saturating_add(DIRECT_NS)),
            until_ns: call.now_ns.saturating_add(PATIENCE_NS),
        });
        self.management.remote.wanted.push((certificate, Some(call.asker.face)));
        Outcome::Later
    }

    /// Hands out what may be a certificate that somebody waits for, and looks at those commands
    /// again.
    pub(super) fn on_certificate(&mut self, data: &Data<'_>, now_ns: u64, tx: &mut dyn Tx) {
        if data.meta.content_type != ContentType::KEY {
            return;
        }
        let (ready, waiting): (Vec<Waiting>, Vec<Waiting>) =
            std::mem::take(&mut self.management.remote.waiting)
                .into_iter()
                .partition(|w| w.certificate.view().is_prefix_of(data.name));
        self.management.remote.waiting = waiting;
        let Some(verifier) = self.config.command_verifier.clone() else { return };
        if !ready.is_empty() {
            verifier.add_certificate(data, self.unix_ns(now_ns));
        }
        for waiting in ready {
            self.forget_awaited(&waiting.certificate);
            self.judge_again(waiting, now_ns, tx);
        }
    }

    fn judge_again(&mut self, mut waiting: Waiting, now_ns: u64, tx: &mut dyn Tx) {
        let wire = std::mem::take(&mut waiting.interest);
        let Ok(interest) = Interest::decode(&wire) else { return };
        let call = Call { asker: waiting.asker, interest: &interest, now_ns };
        let response = match self.judge(&call) {
            Next::Answer(response) => response,
            Next::Fetch(certificate) if certificate == waiting.certificate => {
                forbidden("the certificate found is not the one that signs the command")
            }
            Next::Fetch(_) if waiting.certificate_count >= CERTIFICATES_MAX => {
                forbidden(format!("the chain has more than {CERTIFICATES_MAX} certificates"))
            }
            Next::Fetch(certificate) => {
                let from = waiting.asker.face;
                self.management.remote.wanted.push((certificate.clone(), Some(from)));
                waiting.certificate = certificate;
                waiting.certificate_count += 1;
                waiting.route_ns = Some(now_ns.saturating_add(DIRECT_NS));
                waiting.until_ns = now_ns.saturating_add(PATIENCE_NS);
                self.management.remote.waiting.push(Waiting { interest: wire, ..waiting });
                return;
            }
        };
        self.keep_answer(&call, &response);
        self.answer_remote(&call, &response, tx);
    }

    fn answer_remote(&mut self, call: &Call<'_>, response: &ControlResponse, tx: &mut dyn Tx) {
        let name = call.interest.name;
        if let Some(packet) = encode_response(name, ContentType::BLOB, response) {
            self.reply(call.asker, &packet, tx);
        }
    }

    pub(super) fn maintain_remote(&mut self, now_ns: u64, tx: &mut dyn Tx) {
        let remote = &mut self.management.remote;
        for waiting in &mut remote.waiting {
            if waiting.route_ns.is_some_and(|at| at <= now_ns) {
                waiting.route_ns = None;
                remote.wanted.push((waiting.certificate.clone(), None));
            }
        }
        for (certificate, from) in std::mem::take(&mut remote.wanted) {
            let mut wire = Vec::new();
            InterestBuilder::new(certificate.view())
                .can_be_prefix(true)
                .nonce(self.rng.nonce())
                .lifetime_ms(PATIENCE_NS / 1_000_000)
                .encode(&mut wire);
            self.express((certificate, Purpose::Certificate), &wire, from, (now_ns, tx));
        }
        let (waiting, late) = std::mem::take(&mut self.management.remote.waiting)
            .into_iter()
            .partition(|w| w.until_ns > now_ns);
        self.management.remote.waiting = waiting;
        let late: Vec<Waiting> = late;
        for waiting in late {
            let Ok(interest) = Interest::decode(&waiting.interest) else { continue };
            let call = Call { asker: waiting.asker, interest: &interest, now_ns };
            let name = &waiting.certificate;
            let text = format!("no answer to a request for certificate {name}; serve it");
            self.answer_remote(&call, &forbidden(text), tx);
        }
    }
}

/// Whether the forwarder may ask for a certificate of this name, which a stranger chose: not if it
/// is one of this machine, where an Interest may have effects, nor if no key can have it.
fn may_be_fetched(name: NameRef<'_>) -> bool {
    let is_of_key = name.components().any(|c| c == Component::generic(b"KEY"));
    is_of_key && !scope::is_localhost(name) && !scope::is_localhop(name)
}

fn check_prefix(
    prefix: NameRef<'_>,
    may_register: &[Name],
    call: &Call<'_>,
) -> Result<(), ControlResponse> {
    if may_register.iter().any(|allowed| allowed.view().is_prefix_of(prefix)) {
        return Ok(());
    }
    Err(forbidden(format!("this key may not register {}; {}", prefix.to_name(), advice(call))))
}

/// What the operator would have to do for the command to be allowed.
fn advice(call: &Call<'_>) -> String {
    let component = call.interest.name.get(PREFIX_LEN + 2);
    let parameters = component
        .and_then(|c| byname_packet::mgmt::ControlParameters::decode(c.value).ok())
        .and_then(|parameters| parameters.name);
    let prefix = parameters.map_or_else(|| String::from("PREFIX"), |name| name.to_string());
    format!(
        "the operator of this forwarder has to allow it: byname forward --allow-register \
         {prefix}=KEY"
    )
}
