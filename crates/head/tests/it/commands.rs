//! Who may command, what a repetition gets, what a ticket and a receipt are worth.

use byname_catalog::id::ContentId;
use byname_catalog::{
    Answer, Checksums, Command, Commit, Create, KeyHolder, PolicyChanges, Publish, Receipt, Refusal,
};
use byname_site::{
    CommandPacket, HeadFailure, Identity, Outcome, Reply, SignedReceipt, SiteAnswer, Ticket,
    check_data,
};

use crate::support::{Holder, NOW_S, TestHead, add_key, done, place};

pub(crate) const SIZE: u64 = 10;

fn mkdir(path: &str) -> Command {
    Command::MakeDirectory { place: place(path), mode: 0o777 }
}

fn failure(reply: &Reply) -> Option<HeadFailure> {
    match &reply.outcome {
        Outcome::Failed { failure, .. } => Some(*failure),
        _ => None,
    }
}

#[test]
fn only_keys_of_the_catalog_command() {
    let mut head = TestHead::new();
    let stranger = Holder::new(77, &head.site.user("anna"));
    let impostor = Holder::new(78, &head.site.user("op"));
    let elsewhere = Holder::new(79, &"/other/site/32=user/anna".parse().unwrap());
    let packet = CommandPacket::new(None, Command::OpenSession);
    for holder in [&stranger, &impostor, &elsewhere] {
        let stamp = head.stamp();
        let wire = packet.encode(&head.site, &holder.signer, stamp).unwrap();
        assert_eq!(failure(&head.send(&wire)), Some(HeadFailure::NotAuthentic));
    }
    // A key that was added for anna, whose name says that it is the operator's.
    head.done(add_key(KeyHolder::User("anna".into()), &impostor));
    let stamp = head.stamp();
    let wire = packet.encode(&head.site, &impostor.signer, stamp).unwrap();
    assert_eq!(failure(&head.send(&wire)), Some(HeadFailure::NotAuthentic));
    // A signature of another key under anna's name.
    let name = head.anna.certificate.name().to_name();
    let forged = byname_security::key::KeySigner::new(stranger.key.clone(), name);
    let stamp = head.stamp();
    let wire = packet.encode(&head.site, &forged, stamp).unwrap();
    assert_eq!(failure(&head.send(&wire)), Some(HeadFailure::NotAuthentic));
}

#[test]
fn a_key_that_was_removed_commands_no_more() {
    let mut head = TestHead::new();
    assert_eq!(head.run(false, mkdir("a")).outcome, Outcome::Refused(Refusal::AccessDenied));
    let name = head.anna.certificate.key_name().value().to_vec();
    head.done(Command::RemoveKey { name });
    assert_eq!(failure(&head.run(false, mkdir("a"))), Some(HeadFailure::NotAuthentic));
}

#[test]
fn users_are_bound_by_modes_and_operators_are_not() {
    let mut head = TestHead::new();
    head.done(mkdir("a"));
    let add = Command::SetUser { user: "eve".into(), groups: vec!["g".into()], is_operator: true };
    assert_eq!(head.run(false, add).outcome, Outcome::Refused(Refusal::NotOperator));
    let SiteAnswer::Plain(Answer::Entry(entry)) = done(head.run(false, mkdir("a/b"))) else {
        panic!("no entry")
    };
    assert_eq!(entry.inode.owner, "anna");
}

#[test]
fn a_repeated_command_gets_its_first_answer_from_the_next_head_too() {
    let mut head = TestHead::new();
    let request = head.request(true);
    let packet = CommandPacket::new(Some(request), mkdir("a"));
    let first = head.signed(true, &packet);
    let first = done(head.send(&first));
    // Signed anew, because the answer was lost.
    let again = head.signed(true, &packet);
    assert_eq!(done(head.send(&again)), first);
    head.restart();
    let again = head.signed(true, &packet);
    assert_eq!(done(head.send(&again)), first);
    let other = CommandPacket::new(Some(request), mkdir("b"));
    let other = head.signed(true, &other);
    assert_eq!(head.send(&other).outcome, Outcome::Refused(Refusal::RequestReused));
    // Somebody else's request.
    let stolen = head.signed(false, &packet);
    assert_eq!(head.send(&stolen).outcome, Outcome::Refused(Refusal::NotYourSession));
}

/// What has no request id is told by the Interest itself: captured and sent again it opens no other
/// session.
#[test]
fn a_session_is_opened_once_by_one_interest() {
    let mut head = TestHead::new();
    let packet = CommandPacket::new(None, Command::OpenSession);
    let wire = head.signed(false, &packet);
    let first = head.send_for_data(&wire);
    assert_eq!(head.send_for_data(&wire), first);
    let another = head.signed(false, &packet);
    assert_ne!(done(head.send(&another)), done(head.send(&wire)));
    let mut late = head.stamp();
    late.time_ms -= 121_000;
    let late = packet.encode(&head.site, &head.anna.signer, late).unwrap();
    assert_eq!(failure(&head.send(&late)), Some(HeadFailure::Clock));
}

/// What is remembered for that is bounded, and one user does not use it up.
#[test]
fn who_opens_many_sessions_keeps_nobody_from_opening_one() {
    let mut head = TestHead::new();
    let packet = CommandPacket::new(None, Command::OpenSession);
    for _ in 0..16_500 {
        let wire = head.signed(false, &packet);
        if failure(&head.send(&wire)) == Some(HeadFailure::Busy) {
            break;
        }
    }
    let wire = head.signed(false, &packet);
    assert_eq!(failure(&head.send(&wire)), Some(HeadFailure::Busy));
    let wire = head.signed(true, &packet);
    done(head.send(&wire));
}

pub(crate) fn create(head: &mut TestHead, path: &str) -> Ticket {
    create_of(head, path, SIZE)
}

pub(crate) fn create_of(head: &mut TestHead, path: &str, size_max: u64) -> Ticket {
    let create = Create {
        place: place(path),
        mode: 0o644,
        size_max,
        publish: Publish::AtCommit,
        exclusive: false,
        policy: PolicyChanges::default(),
    };
    match done(head.run(true, Command::Create(create))) {
        SiteAnswer::Ticket(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn commit(content: ContentId) -> Commit {
    Commit {
        content,
        size: SIZE,
        root: [7; 32],
        checksums: Checksums { adler32: 1, crc32c: 2 },
        modified_ns: None,
        receipts: Vec::new(),
    }
}

/// The receipt of a disk for a commit, signed by some key.
pub(crate) fn receipt(head: &TestHead, disk: usize, by: &Holder, commit: &Commit) -> Vec<u8> {
    let name = head.disks[disk].0.clone();
    let receipt = Receipt {
        site: head.site.octets().to_vec(),
        disk: name.id,
        generation: 1,
        content: commit.content,
        size: commit.size,
        root: commit.root,
        checksums: commit.checksums,
    };
    SignedReceipt { disk: name, receipt }.encode(&head.site, &by.signer).unwrap()
}

pub(crate) fn send_commit(head: &mut TestHead, commit: &Commit, receipts: Vec<Vec<u8>>) -> Reply {
    let request = head.request(true);
    let command = Command::Commit(commit.clone());
    let packet = CommandPacket { receipts, ..CommandPacket::new(Some(request), command) };
    let wire = head.signed(true, &packet);
    let reply = head.send(&wire);
    head.settle(true, &reply);
    reply
}

#[test]
fn a_ticket_is_the_site_s_word_for_the_key_that_asked() {
    let mut head = TestHead::new();
    let ticket = create(&mut head, "f");
    let terms = ticket.terms();
    assert_eq!(terms.disks.len(), 2);
    assert_eq!((terms.size_max, terms.receipt_count), (SIZE, 2));
    let origin = terms.origin.as_ref().unwrap();
    assert_eq!((origin.name.as_bytes(), origin.owner.as_str()), (b"f".as_slice(), "op"));
    let certificate = ticket.certificate();
    assert_eq!(certificate.key_id(), head.operator.key.key_id());
    // Today's validator takes what the ticket's key signs below the content's name.
    let mut validator = head.validator();
    validator.add_certificate(ticket.wire()).unwrap();
    let signer = byname_security::key::KeySigner::new(
        head.operator.key.clone(),
        certificate.name().to_name(),
    );
    let mut node = Vec::new();
    let name = head.site.content(terms.content).with_keyword(b"tree-1").with_segment(0);
    byname_packet::DataBuilder::new(name.view()).encode(b"x", &signer, &mut node).unwrap();
    let node = byname_packet::Data::decode(&node).unwrap();
    let checked = check_data(&head.site, &node, &mut validator, NOW_S);
    let byname_site::Check::Accepted(found) = checked else { panic!("{checked:?}") };
    assert_eq!(found.identity, Identity::Writer(terms.content));
}

#[test]
fn a_commit_needs_receipts_that_the_disks_signed() {
    let mut head = TestHead::new();
    let content = create(&mut head, "f").terms().content;
    let commit = commit(content);
    let anna = Holder::new(3, &head.site.user("anna"));
    let [first, second] = [10, 11].map(|seed: u8| {
        let disk = usize::from(seed - 10);
        Holder::new(seed, &head.site.disk(&head.disks[disk].0))
    });
    let good = |head: &TestHead| {
        vec![receipt(head, 0, &first, &commit), receipt(head, 1, &second, &commit)]
    };
    // By a user, by the other disk, and by nobody known.
    for signer in [&anna, &second, &Holder::new(99, &head.site.disk(&head.disks[0].0))] {
        let receipts =
            vec![receipt(&head, 0, signer, &commit), receipt(&head, 1, &second, &commit)];
        let reply = send_commit(&mut head, &commit, receipts);
        assert_eq!(failure(&reply), Some(HeadFailure::NotAuthentic));
        assert!(head.reader().entry(&place("f")).is_err());
    }
    let one = vec![receipt(&head, 0, &first, &commit)];
    let reply = send_commit(&mut head, &commit, one);
    assert_eq!(reply.outcome, Outcome::Refused(Refusal::TooFewReceipts));
    let other = Commit { root: [8; 32], ..commit.clone() };
    let receipts = good(&head);
    let reply = send_commit(&mut head, &other, receipts);
    assert_eq!(reply.outcome, Outcome::Refused(Refusal::ForeignReceipt));
    let receipts = good(&head);
    done(send_commit(&mut head, &commit, receipts));
    let entry = head.reader().entry(&place("f")).unwrap();
    assert_eq!(entry.inode.content().unwrap().replicas.len(), 2);
}

/// A disk asks as itself, and gets no more than its question is for.
#[test]
fn a_disk_may_resolve_and_nothing_else() {
    let mut head = TestHead::new();
    let content = create(&mut head, "f").terms().content;
    let (name, _) = &head.disks[0];
    let disk = Holder::new(10, &head.site.disk(name));
    let stamp = head.stamp();
    let resolve = CommandPacket::new(None, Command::Resolve { generation: 1, content });
    let wire = resolve.encode(&head.site, &disk.signer, stamp).unwrap();
    let answer = done(head.send(&wire));
    let wait = Answer::Resolved(byname_catalog::Resolution::Wait);
    assert_eq!(answer, SiteAnswer::Plain(wait));
    for command in [mkdir("x"), Command::Abort { content }, Command::OpenSession] {
        let stamp = head.stamp();
        let packet = CommandPacket::new(None, command);
        let wire = packet.encode(&head.site, &disk.signer, stamp).unwrap();
        assert!(matches!(head.send(&wire).outcome, Outcome::Refused(_)));
    }
}
