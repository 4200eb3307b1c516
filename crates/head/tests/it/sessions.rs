//! Keys of sessions: what counts under them, and what those get who try.

use byname_catalog::id::SessionId;
use byname_catalog::{Answer, Command, KeyHolder, LendKey, Refusal};
use byname_head::CommandAnswer;
use byname_packet::{Data, Interest, InterestBuilder, SignatureExtra};
use byname_security::exchange::Exchange;
use byname_site::{
    Agree, CommandPacket, HeadFailure, Outcome, Reply, RequestId, SessionKeys, SiteAnswer,
    Transcript,
};

use crate::queries::asked;
use crate::support::{Holder, NOW_NS, TestHead, add_key, done, place};

const SECOND_NS: u64 = 1_000_000_000;
const MINUTE_NS: u64 = 60 * SECOND_NS;

/// A user with keys of a session.
struct Client {
    is_operator: bool,
    session: SessionId,
    keys: SessionKeys,
    /// Of packets under the keys; of commands in the only slot.
    number: u64,
    sequence: u64,
}

fn session(head: &mut TestHead, is_operator: bool) -> SessionId {
    let wire = head.signed(is_operator, &CommandPacket::new(None, Command::OpenSession));
    match done(head.send(&wire)) {
        SiteAnswer::Plain(Answer::Session { session, .. }) => session,
        other => panic!("{other:?}"),
    }
}

/// An Interest for keys of a session, signed now, and the number that it is made with.
fn wish(head: &mut TestHead, is_operator: bool, session: SessionId) -> (Vec<u8>, Exchange) {
    let stamp = head.stamp();
    let exchange = Exchange::from_seed(&[stamp.nonce[7]; 32]).unwrap();
    let signer = if is_operator { &head.operator.signer } else { &head.anna.signer };
    let agree = Agree { session, share: *exchange.share() };
    (agree.encode(&head.site, signer, stamp).unwrap(), exchange)
}

fn agreed(head: &TestHead, session: SessionId, own: Exchange, answer: &[u8]) -> SessionKeys {
    let data = Data::decode(answer).unwrap();
    let SiteAnswer::Agreed { share, .. } = done(Reply::decode(&head.site, &data).unwrap()) else {
        panic!("no share")
    };
    let transcript = Transcript { name: data.name, content: data.content };
    SessionKeys::derive(&head.site, session, own, &share, transcript).unwrap()
}

impl Client {
    fn new(head: &mut TestHead, is_operator: bool) -> Self {
        let session = session(head, is_operator);
        Self::of(head, is_operator, session)
    }

    fn of(head: &mut TestHead, is_operator: bool, session: SessionId) -> Self {
        let (wire, own) = wish(head, is_operator, session);
        let answer = head.send_for_data(&wire);
        let keys = agreed(head, session, own, &answer);
        Self { is_operator, session, keys, number: 0, sequence: 0 }
    }

    fn packet(&mut self, path: &str) -> CommandPacket {
        self.sequence += 1;
        let request = RequestId { session: self.session, slot: 0, sequence: self.sequence };
        let command = Command::MakeDirectory { place: place(path), mode: 0o777 };
        CommandPacket::new(Some(request), command)
    }

    fn sealed(&mut self, head: &TestHead, packet: &CommandPacket) -> Vec<u8> {
        self.number += 1;
        packet.encode_sealed(&head.site, &self.keys, self.number).unwrap()
    }

    /// Makes a directory under the keys; whether the answer is under them, too.
    fn run(&mut self, head: &mut TestHead, path: &str) -> (Outcome, bool) {
        let packet = self.packet(path);
        let wire = self.sealed(head, &packet);
        self.send(head, &wire)
    }

    fn send(&self, head: &mut TestHead, wire: &[u8]) -> (Outcome, bool) {
        let answer = head.answered(wire);
        let data = Data::decode(&answer).unwrap();
        let outcome = Reply::decode(&head.site, &data).unwrap().outcome;
        (outcome, self.keys.is_answer(&data))
    }
}

fn failure((outcome, is_sealed): (Outcome, bool)) -> (Option<HeadFailure>, bool) {
    match outcome {
        Outcome::Failed { failure, .. } => (Some(failure), is_sealed),
        _ => (None, is_sealed),
    }
}

/// What a head says that has no such keys, for everybody to verify.
const NO_KEYS: (Option<HeadFailure>, bool) = (Some(HeadFailure::NoKeys), false);

#[test]
fn commands_and_answers_are_under_the_keys_that_were_agreed_upon() {
    let mut head = TestHead::new();
    let mut op = Client::new(&mut head, true);
    let (outcome, is_sealed) = op.run(&mut head, "a");
    assert!(matches!(outcome, Outcome::Done(_)) && is_sealed, "{outcome:?}");
    assert!(head.reader().entry(&place("a")).is_ok());
    // Rights are those of the user: keys change nothing about them.
    let mut anna = Client::new(&mut head, false);
    let (outcome, is_sealed) = anna.run(&mut head, "b");
    assert!(is_sealed);
    assert_eq!(outcome, Outcome::Refused(Refusal::AccessDenied));
    // No answer of one is an answer to the other.
    let packet = op.packet("c");
    let wire = op.sealed(&head, &packet);
    let answer = head.answered(&wire);
    assert!(!anna.keys.is_answer(&Data::decode(&answer).unwrap()));
}

#[test]
fn a_captured_command_is_executed_once_and_its_answer_fits_no_other() {
    let mut head = TestHead::new();
    let mut op = Client::new(&mut head, true);
    let packet = op.packet("a");
    let wire = op.sealed(&head, &packet);
    let first = head.answered(&wire);
    let last = head.reader().last_transaction().unwrap();
    assert_eq!(head.answered(&wire), first, "it is the same command");
    assert_eq!(head.reader().last_transaction().unwrap(), last);
    // The same, sealed anew: the first answer again, under another name.
    let again = op.sealed(&head, &packet);
    let answer = head.answered(&again);
    let (first, answer) = (Data::decode(&first).unwrap(), Data::decode(&answer).unwrap());
    assert_eq!(first.content, answer.content);
    assert_ne!(first.name, answer.name);
    assert!(!Interest::decode(&again).unwrap().matches(&first));
    // When the slot has gone on, the captured one is refused.
    assert!(matches!(op.run(&mut head, "b").0, Outcome::Done(_)));
    assert_eq!(op.send(&mut head, &wire).0, Outcome::Refused(Refusal::OldRequest));
    assert_eq!(head.reader().list(&place(""), None, 9).unwrap().len(), 2);
}

#[test]
fn the_key_of_answers_makes_no_commands() {
    let mut head = TestHead::new();
    let mut op = Client::new(&mut head, true);
    let packet = op.packet("a");
    let sealed = op.sealed(&head, &packet);
    let interest = Interest::decode(&sealed).unwrap();
    let name = head.site.command("mkdir");
    let builder = InterestBuilder::new(name.view());
    let builder = builder.application_parameters(interest.application_parameters.unwrap());
    let extra = SignatureExtra { nonce: None, time_ms: None, seq_num: Some(1) };
    let mut swapped = Vec::new();
    builder.encode_signed(op.keys.answers(), extra, &mut swapped).unwrap();
    assert_eq!(failure(op.send(&mut head, &swapped)), NO_KEYS);
    assert!(head.reader().entry(&place("a")).is_err());
}

#[test]
fn keys_end_with_the_key_of_their_user() {
    let mut head = TestHead::new();
    let mut anna = Client::new(&mut head, false);
    assert!(anna.run(&mut head, "a").1);
    let name = head.anna.certificate.key_name().value().to_vec();
    head.done(Command::RemoveKey { name });
    assert_eq!(failure(anna.run(&mut head, "b")), NO_KEYS);
    // There again, it has to agree again.
    let holder = Holder::new(3, &head.site.user("anna"));
    head.done(add_key(KeyHolder::User("anna".into()), &holder));
    assert_eq!(failure(anna.run(&mut head, "c")), NO_KEYS);
    let mut anna = Client::new(&mut head, false);
    assert!(anna.run(&mut head, "d").1);
    // Its certificate ends.
    head.later_ns = 999_999 * SECOND_NS - 5 * MINUTE_NS;
    let mut anna = Client::new(&mut head, false);
    assert!(anna.run(&mut head, "e").1);
    head.later_ns += 6 * MINUTE_NS;
    assert_eq!(failure(anna.run(&mut head, "f")), NO_KEYS);
}

/// What the operator's question is answered by, if not by lines.
fn outcome_of(head: &mut TestHead, question: &str) -> Outcome {
    let data = asked(head, true, question);
    Reply::decode(&head.site, &Data::decode(&data).unwrap()).unwrap().outcome
}

/// Otherwise whoever got hold of an operator's token would make himself a key that stays.
#[test]
fn what_a_lent_key_does_ends_with_it() {
    let mut head = TestHead::new();
    let lent = Holder::new(9, &head.site.user("op"));
    let other = Holder::new(10, &head.site.user("op"));
    let key_name = |of: &Holder| of.certificate.key_name().value().to_vec();
    for holder in [&lent, &other] {
        done(head.run(
            true,
            Command::LendKey(LendKey {
                lender: b"whoever".to_vec(),
                name: key_name(holder),
                certificate: holder.certificate.wire().to_vec(),
                expires_ns: NOW_NS + 20 * MINUTE_NS,
            }),
        ));
    }
    let (lent_name, other_name) = (key_name(&lent), key_name(&other));
    let own = std::mem::replace(&mut head.operator, lent);
    let thief = Holder::new(11, &head.site.user("op"));
    for command in [
        add_key(KeyHolder::User("op".into()), &thief),
        Command::SetUser { user: "eve".into(), groups: Vec::new(), is_operator: true },
        Command::RemoveKey { name: key_name(&own) },
        Command::RecallKey { name: other_name.clone() },
    ] {
        let refused = head.run(true, command.clone()).outcome;
        let Outcome::Failed { failure, reason } = refused else {
            panic!("{command:?}: {refused:?}")
        };
        assert_eq!(failure, HeadFailure::NotAuthentic, "{command:?}");
        assert!(reason.contains("a lent key"), "{reason}");
    }
    // By some questions something is done.
    let seal = format!("backup-seal {}", "0".repeat(64));
    let space = "balance main 5 -";
    for question in ["replicate 5 6 - 2 1", space, "fsck-begin repair", "prove-disk 1 5", &seal] {
        let Outcome::Failed { failure, reason } = outcome_of(&mut head, question) else {
            panic!("{question} was answered")
        };
        assert_eq!(failure, HeadFailure::NotAuthentic, "{question}");
        assert!(reason.contains("a lent key"), "{reason}");
    }
    assert!(!asked(&mut head, true, "status").is_empty());
    done(head.run(true, Command::MakeDirectory { place: place("as-ever"), mode: 0o755 }));
    done(head.run(true, Command::RecallKey { name: lent_name }));
    head.operator = own;
    done(head.run(true, Command::RecallKey { name: other_name }));
}

#[test]
fn a_lent_key_signs_for_its_user_until_its_time_is_over() {
    let mut head = TestHead::new();
    let lent = Holder::new(9, &head.site.user("anna"));
    let expires_ns = NOW_NS + 20 * MINUTE_NS;
    let lend = LendKey {
        lender: b"whoever".to_vec(),
        name: lent.certificate.key_name().value().to_vec(),
        certificate: lent.certificate.wire().to_vec(),
        expires_ns,
    };
    // By another user's key it is another user's name.
    let refused = head.run(true, Command::LendKey(lend.clone())).outcome;
    assert_eq!(refused, Outcome::Refused(Refusal::NotLendable));
    done(head.run(false, Command::LendKey(lend.clone())));
    let own = std::mem::replace(&mut head.anna, lent);
    assert!(Client::new(&mut head, false).run(&mut head, "a").1);
    // It lends none itself, under its signature and under keys agreed upon with it.
    let refused = head.run(false, Command::LendKey(lend.clone())).outcome;
    assert_eq!(refused, Outcome::Refused(Refusal::NotLendable));
    head.later_ns = 15 * MINUTE_NS;
    let mut anna = Client::new(&mut head, false);
    assert!(anna.run(&mut head, "b").1);
    let mut packet = anna.packet("c");
    packet.command = Command::LendKey(lend);
    let sealed = anna.sealed(&head, &packet);
    let (outcome, is_sealed) = anna.send(&mut head, &sealed);
    assert!(is_sealed);
    assert_eq!(outcome, Outcome::Refused(Refusal::NotLendable));
    head.later_ns = 21 * MINUTE_NS;
    assert_eq!(failure(anna.run(&mut head, "c")), NO_KEYS);
    let open = head.signed(false, &CommandPacket::new(None, Command::OpenSession));
    let refused = head.send(&open).outcome;
    let Outcome::Failed { failure, reason } = refused else { panic!("{refused:?}") };
    assert_eq!(failure, HeadFailure::NotAuthentic);
    assert!(reason.contains("lent for a time that is over"), "{reason}");
    head.anna = own;
    assert!(Client::new(&mut head, false).run(&mut head, "d").1);
}

#[test]
fn keys_end_when_they_are_idle_and_after_an_hour() {
    let mut head = TestHead::new();
    let mut op = Client::new(&mut head, true);
    head.later_ns = 11 * MINUTE_NS;
    assert_eq!(failure(op.run(&mut head, "a")), NO_KEYS);
    let mut op = Client::new(&mut head, true);
    for count in 1..=6 {
        head.later_ns += 9 * MINUTE_NS;
        assert!(op.run(&mut head, &format!("{count}")).1, "{count}");
    }
    head.later_ns += 7 * MINUTE_NS;
    assert_eq!(failure(op.run(&mut head, "b")), NO_KEYS);
}

#[test]
fn keys_count_for_their_own_session_alone() {
    let mut head = TestHead::new();
    let (mut op, mut other) = (Client::new(&mut head, true), Client::new(&mut head, true));
    let packet = other.packet("a");
    let wire = op.sealed(&head, &packet);
    assert_eq!(failure(op.send(&mut head, &wire)), (Some(HeadFailure::NotAuthentic), true));
    let packet = CommandPacket::new(None, Command::OpenSession);
    let wire = op.sealed(&head, &packet);
    assert_eq!(failure(op.send(&mut head, &wire)), (Some(HeadFailure::NotAuthentic), true));
    // Nobody agrees upon keys of a session that is not his, or that there is not.
    for session in [op.session, SessionId(77)] {
        let (wire, _) = wish(&mut head, false, session);
        assert_eq!(head.send(&wire).outcome, Outcome::Refused(Refusal::UnknownSession));
    }
    assert!(op.run(&mut head, "b").1, "his keys are what they were");
}

#[test]
fn who_agrees_all_the_time_ends_nobody_else_s_keys() {
    let mut head = TestHead::new();
    let mut op = Client::new(&mut head, true);
    let mut first = Client::new(&mut head, false);
    for _ in 0..256 {
        Client::new(&mut head, false);
    }
    assert_eq!(failure(first.run(&mut head, "a")), NO_KEYS, "his own are bounded");
    assert!(op.run(&mut head, "b").1);
}

#[test]
fn numbers_far_ahead_or_long_ago_are_refused() {
    let mut head = TestHead::new();
    let mut op = Client::new(&mut head, true);
    assert!(op.run(&mut head, "a").1);
    let replayed = (Some(HeadFailure::Replayed), false);
    op.number += 1 << 20;
    assert_eq!(failure(op.run(&mut head, "b")), replayed);
    (op.number, op.sequence) = (5000, op.sequence - 1);
    assert!(op.run(&mut head, "b").1);
    op.number = 3000;
    assert_eq!(failure(op.run(&mut head, "c")), replayed);
    assert!(head.reader().entry(&place("c")).is_err());
    // Signed, the same command counts.
    let request = RequestId { session: op.session, slot: 0, sequence: op.sequence };
    let command = Command::MakeDirectory { place: place("c"), mode: 0o777 };
    let signed = head.signed(true, &CommandPacket::new(Some(request), command));
    done(head.send(&signed));
}

/// Another head has no keys and says so; the command that was sent to the first one is signed and
/// gets its first answer.
#[test]
fn a_head_that_was_started_again_has_no_keys() {
    let mut head = TestHead::new();
    let mut op = Client::new(&mut head, true);
    let packet = op.packet("a");
    let wire = op.sealed(&head, &packet);
    let first = head.answered(&wire);
    let deposed = head.take_over();
    assert_eq!(failure(op.send(&mut head, &wire)), NO_KEYS);
    let signed = head.signed(op.is_operator, &packet);
    let again = head.send_for_data(&signed);
    let reply = |wire: &[u8]| Reply::decode(&head.site, &Data::decode(wire).unwrap()).unwrap();
    assert_eq!(reply(&again).outcome, reply(&first).outcome);
    assert!(reply(&again).epoch > reply(&first).epoch);
    // The session goes on with keys of the new head; the old head does nothing under its own.
    let mut renewed = Client::of(&mut head, true, op.session);
    renewed.sequence = op.sequence;
    assert!(renewed.run(&mut head, "b").1);
    head.speak_to(deposed);
    let packet = op.packet("c");
    let wire = op.sealed(&head, &packet);
    let of_the_old = head.executed(&wire);
    assert!(matches!(of_the_old.as_slice(), [CommandAnswer::Nack]), "{of_the_old:?}");
    head.commands.handle_answers(of_the_old);
    head.commands.poll_transmit().unwrap();
    assert_eq!(failure(renewed.run(&mut head, "c")), NO_KEYS);
    assert!(head.reader().entry(&place("c")).is_err());
}

#[test]
fn an_agreement_that_is_sent_again_ends_no_later_one() {
    let mut head = TestHead::new();
    let session = session(&mut head, true);
    let (first, _) = wish(&mut head, true, session);
    head.send_for_data(&first);
    let (second, own) = wish(&mut head, true, session);
    let answer = head.send_for_data(&second);
    let keys = agreed(&head, session, own, &answer);
    let mut op = Client { is_operator: true, session, keys, number: 0, sequence: 0 };
    assert!(op.run(&mut head, "a").1);
    let replayed = head.send(&first).outcome;
    assert_eq!(failure((replayed, false)).0, Some(HeadFailure::Replayed));
    assert_eq!(head.send_for_data(&second), answer, "the latest gets its answer again");
    assert!(op.run(&mut head, "b").1);
    head.later_ns = 3 * MINUTE_NS;
    let late = head.send(&first).outcome;
    assert_eq!(failure((late, false)).0, Some(HeadFailure::Clock));
}

#[test]
fn a_share_that_leads_to_no_secret_is_refused() {
    let mut head = TestHead::new();
    let session = session(&mut head, true);
    let stamp = head.stamp();
    let agree = Agree { session, share: [0; 32] };
    let wire = agree.encode(&head.site, &head.operator.signer, stamp).unwrap();
    assert_eq!(failure((head.send(&wire).outcome, false)).0, Some(HeadFailure::Malformed));
}

/// A question under keys is answered under them, once.
#[test]
fn a_question_counts_once() {
    let mut head = TestHead::new();
    let mut op = Client::new(&mut head, true);
    op.number += 1;
    let wire = op.keys.ask(&head.site, b"status", op.number).unwrap();
    let answer = head.answered(&wire);
    let data = Data::decode(&answer).unwrap();
    assert!(op.keys.is_answer(&data));
    assert!(data.content.starts_with(b"{"), "{:?}", data.content);
    let again = failure(op.send(&mut head, &wire));
    assert_eq!(again.0, Some(HeadFailure::Replayed));
}
