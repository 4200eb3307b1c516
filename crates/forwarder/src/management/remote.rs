//! Commands of other machines, which are allowed by key: `/localhop/nfd/rib/*`.
//!
//! Without a verifier they are refused, with a word on what would help. A verifier may need a
//! certificate: then the command waits while it is fetched, first from where the command came from
//! (a client serves its certificates before it has a route), then by the routes. The signer may
//! register at and below the prefixes that the verdict names, and only over its own face. Commands
//! that wait are bounded in number, altogether and for each face, and each in the number of
//! certificates and in time.

use std::collections::VecDeque;

use byname_packet::mgmt::{ControlParameters, ControlResponse, PrefixAnnouncement, Verdict};
use byname_packet::{Component, ContentType, Data, Interest, InterestBuilder, Name, NameRef};

use super::action::{Asker, Turn};
use super::awaited::{Awaited, PATIENCE_NS, Purpose};
use super::fields::Command;
use super::request::{
    Call, CommandOutcome, Request, is_announcement, is_signed, module_and_verb, read_request,
};
use super::response::{self, PREFIX_LEN, bad, forbidden};
use super::rib;
use super::settings::Settings;
use crate::face::FaceId;
use crate::rng::Rng;
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
    /// Time at which the certificate is sought by the routes; `None` once it is.
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
    /// Commands whose certificate has come.
    ready: VecDeque<Waiting>,
    answers: VecDeque<Answer>,
    /// Certificates to be asked for, and over which face.
    wanted: Vec<(Name, Option<FaceId>)>,
}

impl Remote {
    pub(super) fn due_ns(&self) -> Option<u64> {
        if !self.wanted.is_empty() || !self.ready.is_empty() {
            return Some(0);
        }
        self.waiting.iter().flat_map(|w| [w.route_ns, Some(w.until_ns)]).flatten().min()
    }

    /// A command from a face without authority of its own.
    pub(super) fn handle_command(
        &mut self,
        turn: &mut Turn<'_>,
        settings: &Settings,
        call: &Call<'_>,
    ) -> CommandOutcome {
        let name = call.interest.name;
        self.answers.retain(|answer| answer.until_ns > turn.now_ns);
        let known = self
            .answers
            .iter()
            .find(|answer| answer.face == call.asker.face && answer.name.view() == name);
        if let Some(answer) = known {
            return answer.response.clone().into();
        }
        let again = self.waiting.iter_mut().chain(&mut self.ready).find(|waiting| {
            waiting.asker.face == call.asker.face
                && Interest::decode(&waiting.interest).is_ok_and(|first| first.name == name)
        });
        if let Some(waiting) = again {
            waiting.asker = call.asker;
            return CommandOutcome::Later;
        }
        match judge(turn, settings, call) {
            Next::Answer(response) => {
                self.keep_answer(call, &response, turn.now_ns);
                response.into()
            }
            Next::Fetch(certificate) => self.wait_for_certificate(call, certificate, turn.now_ns),
        }
    }

    fn keep_answer(&mut self, call: &Call<'_>, response: &ControlResponse, now_ns: u64) {
        if self.answers.len() >= ANSWERS_MAX {
            self.answers.pop_front();
        }
        self.answers.push_back(Answer {
            face: call.asker.face,
            name: call.interest.name.to_name(),
            response: response.clone(),
            until_ns: now_ns.saturating_add(ANSWERS_NS),
        });
    }

    fn wait_for_certificate(
        &mut self,
        call: &Call<'_>,
        certificate: Name,
        now_ns: u64,
    ) -> CommandOutcome {
        let of_face = self.waiting.iter().filter(|w| w.asker.face == call.asker.face).count();
        if self.waiting.len() >= WAITING_MAX || of_face >= WAITING_OF_FACE_MAX {
            return forbidden("too many commands wait for certificates; try again later").into();
        }
        self.waiting.push(Waiting {
            asker: call.asker,
            interest: call.interest.wire().to_vec(),
            certificate: certificate.clone(),
            certificate_count: 1,
            route_ns: Some(now_ns.saturating_add(DIRECT_NS)),
            until_ns: now_ns.saturating_add(PATIENCE_NS),
        });
        self.wanted.push((certificate, Some(call.asker.face)));
        CommandOutcome::Later
    }

    /// Hands the verifier what may be a certificate that commands wait for. They are judged one by
    /// one by [`Remote::judge_next`].
    pub(super) fn handle_certificate(
        &mut self,
        turn: &Turn<'_>,
        settings: &Settings,
        awaited: &mut Awaited,
        data: &Data<'_>,
    ) {
        if data.meta.content_type != ContentType::KEY {
            return;
        }
        let (ready, waiting): (Vec<Waiting>, Vec<Waiting>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|w| w.certificate.view().is_prefix_of(data.name));
        self.waiting = waiting;
        let Some(verifier) = &settings.verifier else { return };
        if !ready.is_empty() {
            verifier.add_certificate(data, turn.unix_ns);
        }
        for waiting in ready {
            awaited.remove(&waiting.certificate);
            self.ready.push_back(waiting);
        }
    }

    /// Judges one command whose certificate has come; false if there is none. One at a time: each
    /// has to see what the one before has changed.
    pub(super) fn judge_next(&mut self, turn: &mut Turn<'_>, settings: &Settings) -> bool {
        let Some(mut waiting) = self.ready.pop_front() else { return false };
        let wire = std::mem::take(&mut waiting.interest);
        let Ok(interest) = Interest::decode(&wire) else { return true };
        let call = Call { asker: waiting.asker, interest: &interest };
        let response = match judge(turn, settings, &call) {
            Next::Answer(response) => response,
            Next::Fetch(certificate) if certificate == waiting.certificate => {
                forbidden("the certificate found is not the one that signs the command")
            }
            Next::Fetch(_) if waiting.certificate_count >= CERTIFICATES_MAX => {
                forbidden(format!("the chain has more than {CERTIFICATES_MAX} certificates"))
            }
            Next::Fetch(certificate) => {
                self.wanted.push((certificate.clone(), Some(waiting.asker.face)));
                waiting.certificate = certificate;
                waiting.certificate_count += 1;
                waiting.route_ns = Some(turn.now_ns.saturating_add(DIRECT_NS));
                waiting.until_ns = turn.now_ns.saturating_add(PATIENCE_NS);
                self.waiting.push(Waiting { interest: wire, ..waiting });
                return true;
            }
        };
        self.keep_answer(&call, &response, turn.now_ns);
        answer(turn, &call, &response);
        true
    }

    pub(super) fn handle_timeout(
        &mut self,
        turn: &mut Turn<'_>,
        awaited: &mut Awaited,
        rng: &mut Rng,
    ) {
        for waiting in &mut self.waiting {
            if waiting.route_ns.is_some_and(|at| at <= turn.now_ns) {
                waiting.route_ns = None;
                self.wanted.push((waiting.certificate.clone(), None));
            }
        }
        for (certificate, from) in std::mem::take(&mut self.wanted) {
            let mut wire = Vec::new();
            InterestBuilder::new(certificate.view())
                .can_be_prefix(true)
                .nonce(rng.nonce())
                .lifetime_ms(PATIENCE_NS / 1_000_000)
                .encode(&mut wire);
            awaited.add(certificate, Purpose::Certificate, turn.now_ns);
            turn.express(wire, from);
        }
        let (waiting, late): (_, Vec<Waiting>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|w| w.until_ns > turn.now_ns);
        self.waiting = waiting;
        for waiting in late {
            let Ok(interest) = Interest::decode(&waiting.interest) else { continue };
            let call = Call { asker: waiting.asker, interest: &interest };
            let name = &waiting.certificate;
            let text = format!("no answer to a request for certificate {name}; serve it");
            answer(turn, &call, &forbidden(text));
        }
    }
}

/// Next step of a command whose signature was checked.
enum Next {
    Answer(ControlResponse),
    Fetch(Name),
}

fn judge(turn: &mut Turn<'_>, settings: &Settings, call: &Call<'_>) -> Next {
    let Some(verifier) = &settings.verifier else {
        return Next::Answer(forbidden(advice(turn, call)));
    };
    if !is_signed(call.interest) {
        return Next::Answer(forbidden("the command is not signed"));
    }
    let (module, verb) = module_and_verb(call.interest.name);
    let announcement = is_announcement(module, verb).then(|| rib::announced(call));
    let verdict = match &announcement {
        Some(Err(refusal)) => return Next::Answer(refusal.clone()),
        Some(Ok(packet)) => verifier.verify_announcement(packet, turn.unix_ns),
        None => verifier.verify(call.interest, turn.unix_ns),
    };
    match verdict {
        Verdict::NeedCertificate(name) if !may_be_fetched(name.view()) => {
            Next::Answer(forbidden("the command names no certificate that can be fetched"))
        }
        Verdict::NeedCertificate(name) => Next::Fetch(name),
        Verdict::Refused(reason) => {
            Next::Answer(forbidden(format!("{reason}; {}", advice(turn, call))))
        }
        Verdict::Allowed { may_register, until_s } => {
            let by = (may_register.as_slice(), until_s);
            let result = match announcement.and_then(Result::ok) {
                Some(packet) => announce(turn, call, &packet, by),
                None => carry_out(turn, call, by),
            };
            Next::Answer(result.unwrap_or_else(|refusal| refusal))
        }
    }
}

fn announce(
    turn: &mut Turn<'_>,
    call: &Call<'_>,
    packet: &Data<'_>,
    (may_register, until_s): (&[Name], u64),
) -> Result<ControlResponse, ControlResponse> {
    let found = PrefixAnnouncement::from_data(packet)
        .map_err(|error| bad(format!("malformed prefix announcement: {error}")))?;
    check_prefix(turn, found.prefix.view(), may_register, call)?;
    rib::announce(turn, call.asker.face, packet, (false, until_s))
}

fn carry_out(
    turn: &mut Turn<'_>,
    call: &Call<'_>,
    (may_register, until_s): (&[Name], u64),
) -> Result<ControlResponse, ControlResponse> {
    let (command, takes, request) = read_request(call)?;
    if let Some(complaint) = takes.complaint(&request.parameters) {
        return Err(bad(complaint));
    }
    check_prefix(turn, request.prefix()?.view(), may_register, call)?;
    if request.face != call.asker.face {
        return Err(forbidden("another machine may only register routes to itself"));
    }
    match command {
        Command::RibRegister => rib::register(turn, &Request { until_s, ..request }),
        Command::RibUnregister => rib::unregister(turn, &request),
        _ => Err(forbidden("no such command here")),
    }
}

fn answer(turn: &mut Turn<'_>, call: &Call<'_>, response: &ControlResponse) {
    if let Some(packet) = response::encode(call.interest.name, ContentType::BLOB, response) {
        turn.reply(call.asker, packet);
    }
}

/// Returns whether the forwarder may ask for a certificate of this name, which a stranger chose:
/// not if it is one of this machine, where an Interest may have effects, nor if no key can have it.
fn may_be_fetched(name: NameRef<'_>) -> bool {
    let is_of_key = name.components().any(|c| c == Component::generic(b"KEY"));
    is_of_key && !scope::is_localhost(name) && !scope::is_localhop(name)
}

fn check_prefix(
    turn: &Turn<'_>,
    prefix: NameRef<'_>,
    may_register: &[Name],
    call: &Call<'_>,
) -> Result<(), ControlResponse> {
    if may_register.iter().any(|allowed| allowed.view().is_prefix_of(prefix)) {
        return Ok(());
    }
    Err(forbidden(format!(
        "this key may not register {}; {}",
        prefix.to_user(),
        advice(turn, call)
    )))
}

/// Advice: what the operator would have to do for the command to be allowed.
fn advice(turn: &Turn<'_>, call: &Call<'_>) -> String {
    if turn.view.face(call.asker.face).is_some_and(|face| face.info.local) {
        return String::from(
            "over TCP nobody knows whose command this is: use the forwarder's Unix socket, or let \
             its operator allow it to all programs of this machine: byname forward \
             --allow-register-loopback",
        );
    }
    let component = call.interest.name.get(PREFIX_LEN + 2);
    let parameters = component
        .and_then(|c| ControlParameters::decode(c.value).ok())
        .and_then(|parameters| parameters.name);
    let prefix = parameters.map_or_else(|| String::from("PREFIX"), |name| name.view().to_user());
    format!(
        "the operator of this forwarder has to allow it: byname forward --allow-register \
         '{prefix}=KEY'"
    )
}
