//! Doors at a head: for whom they speak is judged at each packet, signed or under keys.

use byname_catalog::id::SessionId;
use byname_catalog::{
    Answer, AttributeChanges, Command, Create, Grant, KeyHolder, PolicyChanges, Publish, Refusal,
    SetDoor,
};
use byname_head::Rates;
use byname_packet::{Data, InterestBuilder, SignatureExtra};
use byname_security::exchange::Exchange;
use byname_site::{
    Agree, CommandPacket, HeadFailure, Outcome, Reply, RequestId, SessionKeys, SiteAnswer,
    SpeaksFor, Transcript, sign_question,
};

use crate::support::{Holder, TestHead, add_key, done, place};

const DOOR: &str = "xrd";

/// A door with a session for a user.
struct Door {
    key: Holder,
    speaks_for: SpeaksFor,
    session: Option<SessionId>,
    sequence: u64,
    /// Keys of the session, and the last number under them.
    keys: Option<(SessionKeys, u64)>,
}

fn of_group(group: &str) -> Grant {
    Grant { groups: vec![group.to_owned()], ..Grant::default() }
}

fn grant(head: &mut TestHead, grant: Grant) {
    head.done(Command::SetDoor(SetDoor { door: DOOR.into(), grant }));
}

fn mkdir(path: &str) -> Command {
    Command::MakeDirectory { place: place(path), mode: 0o755 }
}

/// A site whose top everybody may write in, with a door for users.
fn site() -> (TestHead, Door) {
    let mut head = TestHead::new();
    let changes = AttributeChanges { mode: Some(0o777), ..AttributeChanges::default() };
    head.done(Command::SetAttributes { place: place("/"), changes });
    grant(&mut head, of_group("users"));
    let key = Holder::new(40, &head.site.door(DOOR));
    head.done(add_key(KeyHolder::Door(DOOR.into()), &key));
    let speaks_for = SpeaksFor { user: "anna".into(), groups: Vec::new() };
    (head, Door { key, speaks_for, session: None, sequence: 0, keys: None })
}

impl Door {
    fn send(&mut self, head: &mut TestHead, packet: &CommandPacket) -> Outcome {
        let stamp = head.stamp();
        let wire = match &mut self.keys {
            Some((keys, number)) if packet.request.is_some() => {
                *number += 1;
                packet.encode_sealed(&head.site, keys, *number).unwrap()
            }
            _ => packet.encode(&head.site, &self.key.signer, stamp).unwrap(),
        };
        let answer = head.answered(&wire);
        Reply::decode(&head.site, &Data::decode(&answer).unwrap()).unwrap().outcome
    }

    fn open(&mut self, head: &mut TestHead) -> Outcome {
        let packet = CommandPacket::new(None, Command::OpenSession);
        let outcome = self.send(head, &packet.spoken_for(Some(self.speaks_for.clone())));
        if let Outcome::Done(answer) = &outcome
            && let SiteAnswer::Plain(Answer::Session { session, .. }) = **answer
        {
            (self.session, self.sequence) = (Some(session), 0);
        }
        outcome
    }

    fn packet(&mut self, command: Command) -> CommandPacket {
        self.sequence += 1;
        let session = self.session.unwrap();
        let request = RequestId { session, slot: 0, sequence: self.sequence };
        CommandPacket::new(Some(request), command).spoken_for(Some(self.speaks_for.clone()))
    }

    fn run(&mut self, head: &mut TestHead, command: Command) -> Outcome {
        let packet = self.packet(command);
        let outcome = self.send(head, &packet);
        // What was not looked at has not used its number.
        if matches!(outcome, Outcome::Failed { .. }) {
            self.sequence -= 1;
        }
        outcome
    }

    fn agree(&mut self, head: &mut TestHead) -> Outcome {
        let stamp = head.stamp();
        let own = Exchange::from_seed(&[stamp.nonce[7]; 32]).unwrap();
        let session = self.session.unwrap();
        let agree = Agree { session, share: *own.share() };
        let wire = agree.encode(&head.site, &self.key.signer, stamp).unwrap();
        let answer = head.send_for_data(&wire);
        let data = Data::decode(&answer).unwrap();
        let outcome = Reply::decode(&head.site, &data).unwrap().outcome;
        if let Outcome::Done(agreed) = &outcome
            && let SiteAnswer::Agreed { share, .. } = &**agreed
        {
            let transcript = Transcript { name: data.name, content: data.content };
            let keys = SessionKeys::derive(&head.site, session, own, share, transcript);
            self.keys = Some((keys.unwrap(), 0));
        }
        outcome
    }

    /// The answer to a question for the user: its text, or why there is none.
    fn ask(&mut self, head: &mut TestHead, question: &str) -> Result<String, Outcome> {
        let parameters = self.speaks_for.asking(question.as_bytes());
        let stamp = head.stamp();
        let wire = sign_question(&head.site, &parameters, &self.key.signer, stamp).unwrap();
        let answer = head.send_for_data(&wire);
        let data = Data::decode(&answer).unwrap();
        match Reply::decode(&head.site, &data) {
            Ok(reply) => Err(reply.outcome),
            Err(_) => Ok(String::from_utf8(data.content.to_vec()).unwrap()),
        }
    }
}

fn refused(refusal: Refusal) -> Outcome {
    Outcome::Refused(refusal)
}

fn is_done(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Done(_))
}

#[test]
fn a_door_acts_for_a_user_and_gets_the_ticket_of_what_he_writes() {
    let (mut head, mut door) = site();
    assert!(is_done(&door.open(&mut head)));
    assert!(is_done(&door.run(&mut head, mkdir("a"))));
    let made = head.reader().entry(&place("a")).unwrap().inode;
    assert_eq!((made.owner.as_str(), made.group.as_str()), ("anna", "users"));
    let create = Create {
        place: place("a/f"),
        mode: 0o644,
        size_max: 10,
        publish: Publish::AtCommit,
        exclusive: false,
        policy: PolicyChanges::default(),
    };
    let Outcome::Done(answer) = door.run(&mut head, Command::Create(create)) else { panic!() };
    let SiteAnswer::Ticket(ticket) = *answer else { panic!("{answer:?}") };
    assert_eq!(ticket.certificate().public_key(), door.key.certificate.public_key());
}

#[test]
fn a_door_that_lies_is_told_so_and_does_nothing() {
    let (mut head, mut door) = site();
    // For an operator, for somebody in no group of the grant, for nobody.
    let refusals = [
        ("op", Refusal::MayNotSpeakForOperator),
        ("carl", Refusal::MayNotSpeakFor),
        ("nobody", Refusal::UnknownUser),
    ];
    let groups = vec!["guests".to_owned()];
    head.done(Command::SetUser { user: "carl".into(), groups, is_operator: false });
    for (user, refusal) in refusals {
        door.speaks_for.user = user.into();
        assert_eq!(door.open(&mut head), refused(refusal), "{user}");
        assert_eq!(door.ask(&mut head, "whoami"), Err(refused(refusal)), "{user}");
    }
    // In the middle of a session, under its keys, too.
    door.speaks_for.user = "anna".into();
    assert!(is_done(&door.open(&mut head)) && is_done(&door.agree(&mut head)));
    door.speaks_for.user = "op".into();
    assert_eq!(door.run(&mut head, mkdir("a")), refused(Refusal::MayNotSpeakForOperator));
    // The session is anna's, so that was none of its commands.
    door.sequence -= 1;
    door.speaks_for = SpeaksFor { user: "anna".into(), groups: vec!["ops".into()] };
    assert_eq!(door.run(&mut head, mkdir("a")), refused(Refusal::MayNotAssertGroup));
    assert!(head.reader().entry(&place("a")).is_err());
    door.speaks_for.groups.clear();
    assert!(is_done(&door.run(&mut head, mkdir("a"))));
}

#[test]
fn a_door_has_no_rights_of_its_own_and_nobody_else_speaks_for_others() {
    let (mut head, mut door) = site();
    let plain = CommandPacket::new(None, Command::OpenSession);
    assert_eq!(door.send(&mut head, &plain), refused(Refusal::NotSpokenFor));
    assert!(is_done(&door.open(&mut head)) && is_done(&door.agree(&mut head)));
    let bare = door.packet(mkdir("a")).spoken_for(None);
    assert_eq!(door.send(&mut head, &bare), refused(Refusal::NotSpokenFor));
    // Neither an operator nor a user says for whom it is.
    let speaks_for = SpeaksFor { user: "anna".into(), groups: Vec::new() };
    for is_operator in [true, false] {
        let request = head.request(is_operator);
        let packet = CommandPacket::new(Some(request), mkdir("a"));
        let wire = head.signed(is_operator, &packet.spoken_for(Some(speaks_for.clone())));
        assert_eq!(head.send(&wire).outcome, refused(Refusal::MayNotSpeakFor));
    }
    assert!(head.reader().entry(&place("a")).is_err());
}

#[test]
fn a_grant_that_is_taken_back_counts_at_the_next_packet_under_keys_too() {
    let (mut head, mut door) = site();
    assert!(is_done(&door.open(&mut head)) && is_done(&door.agree(&mut head)));
    assert!(is_done(&door.run(&mut head, mkdir("a"))));
    assert!(door.ask(&mut head, "whoami").unwrap().contains("\"user\":\"anna\""));
    grant(&mut head, of_group("others"));
    assert_eq!(door.run(&mut head, mkdir("b")), refused(Refusal::MayNotSpeakFor));
    assert_eq!(door.ask(&mut head, "whoami"), Err(refused(Refusal::MayNotSpeakFor)));
    grant(&mut head, of_group("users"));
    assert!(is_done(&door.run(&mut head, mkdir("b"))));
    // So does a group that the user is not in any more.
    let groups = vec!["guests".to_owned()];
    head.done(Command::SetUser { user: "anna".into(), groups, is_operator: false });
    assert_eq!(door.run(&mut head, mkdir("c")), refused(Refusal::MayNotSpeakFor));
    // A door that is removed has no key: it is nobody.
    head.done(Command::RemoveDoor { door: DOOR.into() });
    let outcome = door.run(&mut head, mkdir("c"));
    assert!(matches!(outcome, Outcome::Failed { failure: HeadFailure::NoKeys, .. }), "{outcome:?}");
}

#[test]
fn keys_of_a_session_are_agreed_upon_by_who_opened_it() {
    let (mut head, mut door) = site();
    assert!(is_done(&door.open(&mut head)));
    // The user's own session is not the door's.
    let own = head.request(false).session;
    let of_door = door.session.replace(own);
    assert_eq!(door.agree(&mut head), refused(Refusal::UnknownSession));
    let agree = Agree { session: of_door.unwrap(), share: [9; 32] };
    let stamp = head.stamp();
    let wire = agree.encode(&head.site, &head.anna.signer, stamp).unwrap();
    assert_eq!(head.send(&wire).outcome, refused(Refusal::UnknownSession));
}

#[test]
fn a_door_that_lies_uses_up_nobodys_share_and_its_users_share_theirs() {
    let (mut head, mut door) = site();
    assert!(is_done(&door.open(&mut head)));
    head.limit(Rates { user: Some(10), door: Some(1000) });
    head.later_ns += 5_000_000_000;
    let is_busy =
        |outcome: &Outcome| matches!(outcome, Outcome::Failed { failure: HeadFailure::Busy, .. });
    grant(&mut head, Grant::default());
    for _ in 0..100 {
        assert_eq!(door.run(&mut head, mkdir("a")), refused(Refusal::MayNotSpeakFor));
    }
    assert!(is_done(&head.run(false, mkdir("own")).outcome), "anna's share is as it was");
    grant(&mut head, of_group("users"));
    let held = (0..100).filter(|_| is_busy(&door.run(&mut head, mkdir("a")))).count();
    assert!(held >= 80, "{held} of 100 at 10 a second");
    assert!(is_busy(&head.run(false, mkdir("own")).outcome), "anna's share is one");
    head.limit(Rates { user: None, door: Some(10) });
    head.later_ns += 5_000_000_000;
    let held = (0..100).filter(|_| is_busy(&door.run(&mut head, mkdir("a")))).count();
    assert!(held >= 80, "{held} of 100 at 10 a second");
    assert!(!is_busy(&head.run(false, mkdir("own")).outcome), "the door's share is its own");
    let stamp = head.stamp();
    let extra =
        SignatureExtra { nonce: Some(&stamp.nonce), time_ms: Some(stamp.time_ms), seq_num: None };
    let (name, mut wire) = (head.site.command("query"), Vec::new());
    InterestBuilder::new(name.view())
        .must_be_fresh(true)
        .application_parameters(b"top")
        .encode_signed(&head.operator.signer, extra, &mut wire)
        .unwrap();
    let data = head.send_for_data(&wire);
    let top = String::from_utf8(Data::decode(&data).unwrap().content.to_vec()).unwrap();
    let has = |words: &str| top.lines().any(|line| line.contains(words));
    assert!(has("\"name\":\"door xrd\"") && has("\"door\":\"xrd\""), "{top}");
    done(head.run(true, mkdir("z")));
}
