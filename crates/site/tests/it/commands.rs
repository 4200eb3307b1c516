//! Commands: each comes back as it was, is the same however it is signed, and is its signer's.

use byname_catalog::engine::MemoryEngine;
use byname_catalog::id::{DiskId, InodeId, SessionId};
use byname_catalog::{
    AddDisk, AddKey, Answer, AttributeChanges, Caller, Catalog, Checksums, Command, Commit, Create,
    DiskChanges, DiskState, EntryName, Failure, Grant, KeyHolder, LendKey, Limits, Place, Policy,
    PolicyChanges, Publish, Refusal, Rename, RestoreTrash, SetAcl, SetDoor, SetXattr, Setup,
    Subject, Submission, TimeChange, TrashPolicy, initialise,
};
use byname_packet::{InterestBuilder, tlv};
use byname_security::command::{Replay, ReplayError};
use byname_site::{
    Check, CommandPacket, Identity, RequestId, SpeaksFor, Untrusted, check_interest,
};

use crate::support::{CONTENT, NOW_S, TestSite, interest, name, stamp};

pub(crate) fn place(path: &str) -> Place {
    Place::path(path).unwrap()
}

/// One of each kind, with what may be there and what may be absent.
pub(crate) fn all() -> Vec<Command> {
    let of_site = [of_operators(), of_keys(), of_disks(), of_policies()].concat();
    [of_namespace(), of_attributes(), of_content(), of_site].concat()
}

fn user() -> String {
    "anna".to_owned()
}

fn of_namespace() -> Vec<Command> {
    vec![
        Command::MakeDirectory { place: place("a/b c"), mode: 0o1755 },
        Command::RemoveDirectory { place: Place::inode(InodeId(1 << 48)) },
        Command::Unlink {
            place: Place::entry(InodeId(9), EntryName::new(vec![0xff; 255]).unwrap()),
        },
        Command::RemoveAll { place: place("b/c") },
        Command::RestoreTrash(RestoreTrash { item: InodeId(300), to: None }),
        Command::RestoreTrash(RestoreTrash { item: InodeId(300), to: Some(place("b/c")) }),
        Command::PurgeTrash { item: InodeId(300) },
        Command::Rename(Rename { from: place("a"), to: place("b/c"), no_replace: true }),
        Command::Rename(Rename { from: place("a"), to: place("b/c"), no_replace: false }),
        Command::Link { existing: place("a"), place: place("b") },
        Command::MakeSymlink { place: place("l"), target: b"../a".to_vec() },
    ]
}

fn of_attributes() -> Vec<Command> {
    vec![
        Command::SetAttributes { place: place("a"), changes: AttributeChanges::default() },
        Command::SetAttributes {
            place: place("a"),
            changes: AttributeChanges {
                mode: Some(0o640),
                owner: Some(user()),
                group: Some("cms".to_owned()),
                modified: Some(TimeChange::At(u64::MAX)),
                size: Some(0),
            },
        },
        Command::SetAttributes {
            place: place("a"),
            changes: AttributeChanges {
                modified: Some(TimeChange::Now),
                ..AttributeChanges::default()
            },
        },
        Command::SetXattr(SetXattr {
            place: place("a"),
            name: b"user.x".to_vec(),
            value: Vec::new(),
            must_exist: Some(false),
        }),
        Command::RemoveXattr { place: place("a"), name: b"user.x".to_vec() },
        Command::SetAcl(SetAcl {
            place: place("a"),
            is_default: true,
            acl: Some("u::rwx,u:anna:r--,g::r-x,g:cms:rw-,m::rwx,o::---".parse().unwrap()),
        }),
        Command::SetAcl(SetAcl { place: place("a"), is_default: false, acl: None }),
    ]
}

fn of_content() -> Vec<Command> {
    let content = CONTENT;
    let checksums = Checksums { adler32: 1, crc32c: 0xFFFF_FFFF };
    vec![
        Command::Create(Create {
            place: place("a"),
            mode: 0o644,
            size_max: 1 << 40,
            publish: Publish::AtCommit,
            exclusive: false,
            policy: PolicyChanges::default(),
        }),
        Command::Create(Create {
            place: place("a"),
            mode: 0o600,
            size_max: 0,
            publish: Publish::AtOnce,
            exclusive: true,
            policy: changes(),
        }),
        Command::Create(Create {
            place: place("a"),
            mode: 0o644,
            size_max: 0,
            publish: Publish::Whole,
            exclusive: true,
            policy: PolicyChanges::default(),
        }),
        Command::Extend { content },
        Command::Commit(Commit {
            content,
            size: 8193,
            root: [3; 32],
            checksums,
            modified_ns: Some(5),
            receipts: Vec::new(),
        }),
        Command::Abort { content },
        Command::ReplaceDisk { content, disk: DiskId(2) },
        Command::Resolve { generation: 4, content },
        Command::Hold { content },
        Command::Release { content },
        Command::Lease { place: place("a") },
        Command::EndLease { place: Place::inode(InodeId(7)) },
        Command::OpenSession,
        Command::RenewSession,
        Command::EndSession,
    ]
}

fn changes() -> PolicyChanges {
    let space = Some("tape".to_owned());
    PolicyChanges { space, replica_count: Some(3), receipt_count: Some(1) }
}

/// A packet in the place of a certificate: who adds a key reads it, not who decodes the command.
const DATA: &[u8] = &[6, 5, 7, 3, 8, 1, b'k'];

fn of_operators() -> Vec<Command> {
    vec![
        Command::Expire { limit: 10 },
        Command::Collect { limit: 10 },
        Command::Dropped { disk: DiskId(2), contents: vec![CONTENT] },
        Command::DropReplica { content: CONTENT, disk: DiskId(2) },
        Command::SetUser { user: user(), groups: vec!["cms".to_owned()], is_operator: true },
    ]
}

fn of_keys() -> Vec<Command> {
    let name = || vec![8, 1, b'k'];
    let add = |holder| Command::AddKey(AddKey { holder, name: name(), certificate: DATA.to_vec() });
    vec![
        add(KeyHolder::User(user())),
        add(KeyHolder::Disk(DiskId(2))),
        add(KeyHolder::Door("xrd1".to_owned())),
        Command::RemoveKey { name: name() },
        Command::SetDoor(SetDoor { door: "xrd1".to_owned(), grant: Grant::default() }),
        Command::SetDoor(SetDoor {
            door: "xrd1".to_owned(),
            grant: Grant {
                is_for_all: true,
                users: vec![user(), "bert".to_owned()],
                groups: vec!["cms".to_owned()],
                asserted: vec!["higgs".to_owned()],
            },
        }),
        Command::RemoveDoor { door: "xrd1".to_owned() },
        Command::LendKey(LendKey {
            lender: Vec::new(),
            name: name(),
            certificate: DATA.to_vec(),
            expires_ns: 1 << 60,
        }),
        Command::RecallKey { name: name() },
    ]
}

fn of_disks() -> Vec<Command> {
    vec![
        Command::AddDisk(AddDisk {
            space: "main".to_owned(),
            server: "d1".to_owned(),
            label: "rack1".to_owned(),
            capacity_bytes: 1 << 44,
        }),
        Command::SetDisk {
            disk: DiskId(2),
            changes: DiskChanges {
                state: Some(DiskState::Drain),
                is_up: Some(false),
                capacity_bytes: Some(1),
                is_new_generation: true,
                load: Some(3),
                drain_bytes_per_s: None,
                server: None,
            },
        },
        Command::SetDisk {
            disk: DiskId(2),
            changes: DiskChanges {
                state: Some(DiskState::Drain),
                drain_bytes_per_s: Some(20_000_000),
                server: Some("d2".to_owned()),
                ..DiskChanges::default()
            },
        },
        Command::SetDisk { disk: DiskId(2), changes: DiskChanges::default() },
        Command::RemoveDisk { disk: DiskId(2) },
    ]
}

fn of_policies() -> Vec<Command> {
    let policy = Policy { space: "main".to_owned(), replica_count: 3, receipt_count: 2 };
    vec![
        Command::SetPolicy { place: place("a"), policy },
        Command::SetVersions { place: place("a"), wanted: 5 },
        Command::SetTrash {
            place: place("a"),
            policy: TrashPolicy {
                is_on: true,
                keep_ns: 7 * 86_400_000_000_000,
                bytes_max: 1 << 40,
            },
        },
        Command::SetTrash {
            place: place("a"),
            policy: TrashPolicy { is_on: false, keep_ns: 1, bytes_max: u64::MAX },
        },
        Command::SetPattern { pattern: "*.tmp".to_owned(), changes: None },
        Command::SetPattern { pattern: "*.root".to_owned(), changes: Some(changes()) },
        Command::SetLimits {
            subject: Subject::User(user()),
            limits: Limits { inodes: 1, bytes: 2, ..Limits::NONE },
        },
        Command::SetLimits { subject: Subject::Group("cms".to_owned()), limits: Limits::NONE },
        Command::SetLimits { subject: Subject::Tree(InodeId(7)), limits: Limits::NONE },
        Command::SetLimits {
            subject: Subject::Space("tape".to_owned()),
            limits: Limits { bytes: 1 << 44, ..Limits::NONE },
        },
        Command::SetLimits {
            subject: Subject::User(user()),
            limits: Limits {
                inodes: 10,
                bytes: 300,
                soft_inodes: 8,
                soft_bytes: 200,
                grace_ns: 3_600_000_000_000,
            },
        },
        Command::SetLimits {
            subject: Subject::Space("tape".to_owned()),
            limits: Limits { soft_bytes: 200, ..Limits::NONE },
        },
        Command::MakeTree { place: place("a") },
        Command::TrimLog { below: 5, limit: 6 },
        Command::RaiseEpoch { epoch: 3 },
    ]
}

fn request(sequence: u64) -> RequestId {
    RequestId { session: SessionId(77), slot: 63, sequence }
}

#[test]
fn every_command_comes_back_as_it_was() {
    let site = TestSite::new(1, "/cern/cms");
    let anna = site.user(2, "anna");
    for command in all() {
        for request in [None, Some(request(1))] {
            let packet = CommandPacket::new(request, command.clone());
            let groups = vec!["cms".to_owned()];
            let speaks_for = request.map(|_| SpeaksFor { user: user(), groups });
            let packet = packet.spoken_for(speaks_for);
            let wire = packet.encode(&site.name, &anna.signer, stamp(1)).unwrap();
            let decoded = CommandPacket::decode(&site.name, &interest(&wire));
            assert_eq!(decoded, Ok(packet));
        }
    }
}

#[test]
fn a_command_that_is_signed_anew_is_the_same_and_another_is_not() {
    let site = TestSite::new(1, "/cern/cms");
    let anna = site.user(2, "anna");
    let packet = |request, command| CommandPacket::new(Some(request), command);
    let first = packet(request(1), Command::MakeDirectory { place: place("a"), mode: 0o755 });
    let decoded = |number| {
        let wire = first.encode(&site.name, &anna.signer, stamp(number)).unwrap();
        let name = interest(&wire).name.to_name();
        (name, CommandPacket::decode(&site.name, &interest(&wire)).unwrap().digest())
    };
    assert_ne!(decoded(1).0, decoded(2).0);
    assert_eq!(decoded(1).1, decoded(2).1);
    let later = packet(request(2), first.command.clone());
    assert_eq!(later.digest(), first.digest(), "the identity is not part of it");
    let other = packet(request(1), Command::MakeDirectory { place: place("a"), mode: 0o700 });
    assert_ne!(other.digest(), first.digest());
    let same_elements = |command| packet(request(1), command).digest();
    assert_ne!(
        same_elements(Command::Unlink { place: place("a") }),
        same_elements(Command::RemoveDirectory { place: place("a") }),
        "the operation is part of it"
    );
    let commit = all().into_iter().find(|it| matches!(it, Command::Commit(_))).unwrap();
    let mut commit = packet(request(1), commit);
    let without = commit.digest();
    commit.receipts.push(anna.certificate.wire().to_vec());
    assert_ne!(commit.digest(), without, "receipts are part of it");
}

/// A half-understood command must not be half executed.
#[test]
fn a_command_with_anything_more_or_less_is_refused() {
    let site = TestSite::new(1, "/cern/cms");
    for command in all() {
        let anna = site.user(2, "anna");
        let packet = CommandPacket::new(None, command.clone());
        let wire = packet.encode(&site.name, &anna.signer, stamp(1)).unwrap();
        let parameters = interest(&wire).application_parameters.unwrap().to_vec();
        let body = tlv::read_only(&parameters, 0xF608, "Command").unwrap().value;
        let refused = |parameters: &[u8], operation: &str| {
            let name = site.name.command(operation);
            let mut wire = Vec::new();
            let builder = InterestBuilder::new(name.view()).application_parameters(parameters);
            builder.encode(&mut wire);
            CommandPacket::decode(&site.name, &interest(&wire)).is_err()
        };
        let with_body = |body: &[u8]| {
            let mut parameters = Vec::new();
            tlv::write_element(&mut parameters, 0xF608, body);
            parameters
        };
        assert!(!refused(&with_body(body), command.name()));
        // An element of the future, which elsewhere would be passed over.
        assert!(refused(&with_body(&[body, &[0xF0, 0]].concat()), command.name()), "{command:?}");
        assert!(refused(&[&parameters[..], &[0xF0, 0]].concat(), command.name()));
        assert!(refused(&with_body(body), "no-such-command"));
        if !body.is_empty() {
            assert!(refused(&with_body(&[]), command.name()), "{command:?}");
        }
    }
}

#[test]
fn only_a_commit_brings_receipts_and_no_more_than_sixteen() {
    let site = TestSite::new(1, "/cern/cms");
    let anna = site.user(2, "anna");
    let decoded = |command: Command, count| {
        let mut packet = CommandPacket::new(None, command);
        let mut receipt = Vec::new();
        let receipt_name = name("/r");
        byname_packet::DataBuilder::new(receipt_name.view())
            .encode(b"", &byname_packet::NullSigner, &mut receipt)
            .unwrap();
        packet.receipts = vec![receipt; count];
        let wire = packet.encode(&site.name, &anna.signer, stamp(1)).unwrap();
        CommandPacket::decode(&site.name, &interest(&wire)).map(|found| found.receipts.len())
    };
    let commit = all().into_iter().find(|it| matches!(it, Command::Commit(_))).unwrap();
    assert_eq!(decoded(commit.clone(), 16), Ok(16));
    assert!(decoded(commit, 17).is_err());
    assert!(decoded(Command::OpenSession, 1).is_err());
}

#[test]
fn a_command_is_its_signers() {
    let site = TestSite::new(1, "/cern/cms");
    let (anna, disk) = (site.user(2, "anna"), site.disk_key(3, &crate::support::disk(1)));
    let door = site.issued_by(4, site.name.door("xrd1"), &site.head);
    let mut validator = site.validator(&[&anna, &disk, &door]);
    for (holder, identity) in [
        (&anna, Identity::User("anna".to_owned())),
        (&disk, Identity::Disk(crate::support::disk(1))),
        (&door, Identity::Door("xrd1".to_owned())),
        (&site.head, Identity::Site),
    ] {
        let packet = CommandPacket::new(None, Command::OpenSession);
        let wire = packet.encode(&site.name, &holder.signer, stamp(1)).unwrap();
        let Check::Accepted(found) =
            check_interest(&site.name, &interest(&wire), &mut validator, NOW_S)
        else {
            panic!("{identity:?}");
        };
        assert_eq!(found.identity, identity);
        assert_eq!(found.key_id(), holder.key.key_id());
    }
}

#[test]
fn a_foreign_sites_key_counts_for_nothing() {
    let site = TestSite::new(1, "/cern/cms");
    let foreign = TestSite::new(7, "/cern/atlas");
    let impostor = TestSite::new(8, "/cern/cms");
    let stranger = foreign.user(9, "anna");
    let forged = impostor.user(10, "anna");
    let check = |signer: &byname_security::key::KeySigner| {
        // A validator forgets the certificates of what it refuses.
        let known = [&stranger, &forged, &foreign.head, &impostor.head];
        let mut validator = site.validator(&known);
        let packet = CommandPacket::new(None, Command::OpenSession);
        let wire = packet.encode(&site.name, signer, stamp(1)).unwrap();
        check_interest(&site.name, &interest(&wire), &mut validator, NOW_S)
    };
    let namespace = foreign.name.user("anna");
    let refused = Check::Refused(Untrusted::ForeignIdentity { namespace });
    assert_eq!(check(&stranger.signer), refused);
    assert!(matches!(check(&forged.signer), Check::Refused(Untrusted::Trust(_))));
    assert!(matches!(check(&impostor.head.signer), Check::Refused(Untrusted::Trust(_))));
}

/// A user's key vouches for nothing but names below the user's own, which are nobody's.
#[test]
fn a_user_can_make_nobody() {
    let site = TestSite::new(1, "/cern/cms");
    let anna = site.user(2, "anna");
    let made = [
        site.issued_by(3, site.name.user("bert"), &anna),
        site.issued_by(4, site.name.disk(&crate::support::disk(1)), &anna),
        site.issued_by(5, site.name.content(CONTENT), &anna),
        site.issued_by(6, site.name.user("anna").with_generic(b"x"), &anna),
    ];
    for holder in &made {
        let mut validator = site.validator(&[&anna, holder]);
        let packet = CommandPacket::new(None, Command::OpenSession);
        let wire = packet.encode(&site.name, &holder.signer, stamp(1)).unwrap();
        let check = check_interest(&site.name, &interest(&wire), &mut validator, NOW_S);
        assert!(matches!(check, Check::Refused(_)), "{:?}: {check:?}", holder.certificate.name());
    }
}

#[test]
fn changed_parameters_and_missing_signatures_are_refused() {
    let site = TestSite::new(1, "/cern/cms");
    let anna = site.user(2, "anna");
    let mut validator = site.validator(&[&anna]);
    let packet =
        CommandPacket::new(None, Command::MakeDirectory { place: place("aaaa"), mode: 0o755 });
    let wire = packet.encode(&site.name, &anna.signer, stamp(1)).unwrap();
    let mut changed = wire.clone();
    let at = changed.windows(4).position(|octets| octets == b"aaaa").unwrap();
    changed[at] = b'b';
    let check = check_interest(&site.name, &interest(&changed), &mut validator, NOW_S);
    assert_eq!(check, Check::Refused(Untrusted::ParametersDigest));
    // The same with the digest put right.
    let changed = interest(&changed);
    let mut unsigned = Vec::new();
    let operation = site.name.command("mkdir");
    InterestBuilder::new(operation.view())
        .application_parameters(changed.application_parameters.unwrap())
        .encode(&mut unsigned);
    let check = check_interest(&site.name, &interest(&unsigned), &mut validator, NOW_S);
    assert_eq!(check, Check::Refused(Untrusted::Unsigned));
    // Nobody knows the key.
    let mut empty = site.validator(&[]);
    let check = check_interest(&site.name, &interest(&wire), &mut empty, NOW_S);
    assert_eq!(check, Check::NeedCertificate(anna.certificate.name().to_name()));
    // Long after the certificate's end.
    let check = check_interest(&site.name, &interest(&wire), &mut validator, NOW_S * 2);
    assert!(matches!(check, Check::Refused(Untrusted::Trust(_))));
}

/// Whoever records a command and sends it again gets the first answer, and nothing more happens.
#[test]
fn a_replayed_request_is_executed_once() {
    let site = TestSite::new(1, "/cern/cms");
    let anna = site.user(2, "anna");
    let setup = Setup {
        site: site.name.octets().to_vec(),
        operator: "anna".to_owned(),
        group: "cms".to_owned(),
        key: None,
        policy: Policy { space: "main".to_owned(), replica_count: 1, receipt_count: 1 },
    };
    let engine = MemoryEngine::default();
    initialise(&engine, &setup, 1).unwrap();
    let catalog = Catalog::lead(engine, "head", (1, 100)).unwrap();
    let mut replay = Replay::default();
    let mut play = |wire: &[u8]| {
        let mut validator = site.validator(&[&anna]);
        let Check::Accepted(signer) =
            check_interest(&site.name, &interest(wire), &mut validator, NOW_S)
        else {
            panic!("it is signed");
        };
        let packet = CommandPacket::decode(&site.name, &interest(wire)).unwrap();
        let request = packet.catalog_request();
        if request.is_none() {
            let time_ms = interest(wire).signature_info.unwrap().time_ms.unwrap();
            let key = signer.key_id();
            replay.admit((key, key), time_ms, NOW_S * 1000).map_err(Some)?;
        }
        let Identity::User(user) = signer.identity else { panic!("a user") };
        let submission =
            Submission { caller: Caller::User(user), request, command: packet.command };
        match catalog.execute(2, &[submission]).unwrap().remove(0) {
            Ok(answer) => Ok(Ok(answer)),
            Err(Failure::Refused(refusal)) => Ok(Err(refusal)),
            Err(Failure::Engine(_)) => Err(None::<ReplayError>),
        }
    };
    let sign = |packet: &CommandPacket, number| {
        packet.encode(&site.name, &anna.signer, stamp(number)).unwrap()
    };
    let open = sign(&CommandPacket::new(None, Command::OpenSession), 1);
    let Ok(Ok(Answer::Session { session, .. })) = play(&open) else { panic!("a session") };
    assert_eq!(play(&open), Err(Some(ReplayError::Replayed)));
    let request = Some(RequestId { session, slot: 0, sequence: 1 });
    let make =
        CommandPacket::new(request, Command::MakeDirectory { place: place("a"), mode: 0o755 });
    let first = play(&sign(&make, 2)).unwrap();
    assert!(first.is_ok(), "{first:?}");
    assert_eq!(play(&sign(&make, 2)).unwrap(), first, "replayed");
    assert_eq!(play(&sign(&make, 3)).unwrap(), first, "signed anew");
    let other = Command::RemoveDirectory { place: place("a") };
    let reused = play(&sign(&CommandPacket::new(request, other.clone()), 4)).unwrap();
    assert_eq!(reused, Err(Refusal::RequestReused));
    let next = Some(RequestId { session, slot: 0, sequence: 2 });
    assert!(play(&sign(&CommandPacket::new(next, other), 5)).unwrap().is_ok());
    assert_eq!(play(&sign(&make, 2)).unwrap(), Err(Refusal::OldRequest), "its time is over");
}
