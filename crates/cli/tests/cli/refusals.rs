//! What a site refuses, with real processes: tickets, commands and content of who has no right to
//! what they ask for. Each test sees first that the same is accepted from who has.

use crate::disks::Site;
use crate::harness::{Finished, Home, noise, wait_for, write};
use crate::packets::Peer;
use crate::puts::expect;
use byname_catalog::id::{ContentId, SessionId};
use byname_catalog::{
    Answer, Checksums, Command, Commit, Create, Place, PolicyChanges, Publish, Receipt, Refusal,
};
use byname_keychain::Keychain;
use byname_packet::Data;
use byname_security::key::{KeyPair, KeySigner};
use byname_security::tree::Tree;
use byname_site::{
    Claim, CommandPacket, DiskName, DiskRefusal, HeadFailure, Identity, Insert, InsertAnswer,
    Outcome, Reply, RequestId, SignedReceipt, SiteAnswer, SiteName, Stamp, Ticket,
};
use byname_writer::{Next, Put, PutEvent, Source, WriterError};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

fn lab() -> SiteName {
    SiteName::new("/lab".parse().unwrap()).unwrap()
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Signed anew each time, never at the same moment.
fn stamp() -> Stamp {
    let nonce = byname_face::random_u64().to_be_bytes();
    Stamp { time_ms: now_s() * 1000, nonce }
}

fn keychain(home: &Home) -> Keychain {
    Keychain::open(&home.path().join("home/data/keys")).unwrap()
}

fn user(home: &Home, site: &SiteName, user: &str) -> KeySigner {
    keychain(home).identity(site.user(user).view()).unwrap().unwrap().signer
}

/// The disks of the site with their keys, in the order of their numbers.
fn disks(site: &Site) -> Vec<(DiskName, KeySigner)> {
    let keychain = keychain(&site.home);
    let mut found = Vec::new();
    for info in keychain.list().unwrap() {
        if let Some(Identity::Disk(name)) = lab().identity(info.identity.view()) {
            let signer = keychain.identity(info.identity.view()).unwrap().unwrap().signer;
            found.push((name, signer));
        }
    }
    found.sort_by_key(|(name, _)| name.id);
    found
}

/// Somebody who signs commands, and what he is answered.
struct Commander {
    peer: Peer,
    signer: KeySigner,
    session: Option<(SessionId, u64)>,
}

impl Commander {
    fn new(site: &Site, signer: KeySigner) -> Self {
        Self { peer: Peer::new(&site.socket), signer, session: None }
    }

    fn send(&mut self, packet: &CommandPacket) -> (Vec<u8>, Option<Outcome>) {
        let wire = packet.encode(&lab(), &self.signer, stamp()).unwrap();
        let outcome = self.again(&wire);
        (wire, outcome)
    }

    /// The outcome of the very same packet, sent once more.
    fn again(&mut self, wire: &[u8]) -> Option<Outcome> {
        let data = self.peer.ask(wire)?;
        Some(Reply::decode(&lab(), &Data::decode(&data).unwrap()).unwrap().outcome)
    }

    fn open_session(&mut self) -> (Vec<u8>, Option<Outcome>) {
        let (wire, outcome) = self.send(&CommandPacket::new(None, Command::OpenSession));
        if let Some(SiteAnswer::Plain(Answer::Session { session, .. })) = done(outcome.as_ref()) {
            self.session = Some((*session, 0));
        }
        (wire, outcome)
    }

    /// Sends the next command of the session.
    fn command(&mut self, command: Command, receipts: Vec<Vec<u8>>) -> (Vec<u8>, Option<Outcome>) {
        if self.session.is_none() {
            self.open_session();
        }
        let (session, last) = self.session.unwrap();
        self.session = Some((session, last + 1));
        let request = Some(RequestId { session, slot: 0, sequence: last + 1 });
        let sent = self.send(&CommandPacket { speaks_for: None, request, command, receipts });
        if matches!(sent.1, Some(Outcome::Failed { .. })) {
            // It was none of the session's.
            self.session = Some((session, last));
        }
        sent
    }

    fn create(&mut self, path: &str) -> Ticket {
        let create = Create {
            place: Place::path(path).unwrap(),
            mode: 0o644,
            size_max: 1000,
            publish: Publish::AtCommit,
            exclusive: false,
            policy: PolicyChanges::default(),
        };
        let (_, outcome) = self.command(Command::Create(create), Vec::new());
        match done(outcome.as_ref()) {
            Some(SiteAnswer::Ticket(ticket)) => ticket.clone(),
            _ => panic!("{outcome:?}"),
        }
    }
}

fn done(outcome: Option<&Outcome>) -> Option<&SiteAnswer> {
    match outcome {
        Some(Outcome::Done(answer)) => Some(answer),
        _ => None,
    }
}

fn is_not_authentic(outcome: Option<&Outcome>) -> bool {
    matches!(outcome, Some(Outcome::Failed { failure: HeadFailure::NotAuthentic, .. }))
}

/// Content that nobody serves: a disk that takes an order about it pulls in vain.
fn claimed(content: ContentId) -> Claim {
    Claim { content, size: 7, root: *Tree::of(b"content").root.as_bytes() }
}

/// An order to a disk.
struct Order<'a> {
    ticket: &'a Ticket,
    /// Content that the writer vouches for.
    of: ContentId,
    disk: &'a DiskName,
    key: &'a KeySigner,
}

impl Order<'_> {
    fn wire(&self) -> Vec<u8> {
        let locator = self.ticket.certificate().name().to_name();
        let signer = KeySigner::new(Arc::clone(self.key.key()), locator);
        let claim = claimed(self.of).encode(&lab(), &signer).unwrap();
        let hint = lab().writer(&lab().user("op"), 1);
        let order = Insert { ticket: self.ticket.clone(), claim, hint };
        order.encode(&lab(), self.disk, &signer, stamp()).unwrap()
    }

    fn send(&self, peer: &mut Peer) -> Option<InsertAnswer> {
        let data = peer.ask(&self.wire())?;
        Some(InsertAnswer::decode(&Data::decode(&data).unwrap()).unwrap())
    }
}

fn unreachable() -> InsertAnswer {
    InsertAnswer::Refused(DiskRefusal::Unreachable)
}

fn has_no_content(site: &Site) {
    assert_eq!(site.holders(), Vec::<usize>::new());
}

/// Scenario 10: a stolen ticket, one of another file, one for another disk, one that somebody else
/// than the site has made.
#[test]
fn a_ticket_lets_its_writer_write_its_file_to_its_disks_and_nothing_else() {
    let site = Site::new(2, 1);
    let signer = user(&site.home, &lab(), "op");
    let mut writer = Commander::new(&site, signer.clone());
    let (ticket, other) = (writer.create("f"), writer.create("g"));
    let (content, peer) = (ticket.terms().content, &mut writer.peer);
    let asked = &ticket.terms().disks[0].name;
    let (another, _) = disks(&site).into_iter().find(|(name, _)| name != asked).unwrap();
    let thief = KeySigner::new(
        Arc::new(KeyPair::ed25519_from_seed(&[9; 32])),
        ticket.certificate().name().to_name(),
    );
    let refused = |refusal| Some(InsertAnswer::Refused(refusal));
    let stolen = Order { ticket: &ticket, of: content, disk: asked, key: &thief };
    assert_eq!(stolen.send(peer), refused(DiskRefusal::NotAuthentic));
    let of = other.terms().content;
    let foreign = Order { ticket: &ticket, of, disk: asked, key: &signer };
    assert_eq!(foreign.send(peer), refused(DiskRefusal::NotAuthentic), "a claim of another file");
    let elsewhere = Order { ticket: &ticket, of: content, disk: &another, key: &signer };
    assert_eq!(elsewhere.send(peer), refused(DiskRefusal::NotAsked));

    // The thief's own: he says that he is the site.
    let key = thief.key().public_key();
    let own = Ticket::issue(&lab(), ticket.terms().clone(), &key, now_s(), &thief).unwrap();
    let forged = Order { ticket: &own, of: content, disk: asked, key: &thief }.send(peer);
    assert!(!matches!(forged, Some(InsertAnswer::Pulling { .. } | InsertAnswer::Stored(_))));
    has_no_content(&site);

    // It was the disk's own word each time: from who has the right it is taken, in vain, because
    // nobody serves the content.
    let right = Order { ticket: &ticket, of: content, disk: asked, key: &signer };
    let taken = right.send(peer);
    let is_taken = |answer: &InsertAnswer| {
        matches!(answer, InsertAnswer::Pulling { .. }) || *answer == unreachable()
    };
    assert!(taken.as_ref().is_some_and(is_taken), "{taken:?}");
}

#[test]
fn a_replayed_command_changes_nothing_again() {
    let site = Site::new(1, 1);
    // Caches would answer in place of the head.
    let no_cache = ["cs", "config", "--serve", "off", "--admit", "off", "--connect", &site.socket];
    site.home.run(&no_cache).ok();
    let mut user = Commander::new(&site, user(&site.home, &lab(), "op"));
    let (opened, first) = user.open_session();
    let make =
        |path: &str| Command::MakeDirectory { place: Place::path(path).unwrap(), mode: 0o755 };
    let (captured, outcome) = user.command(make("x"), Vec::new());
    assert!(done(outcome.as_ref()).is_some(), "{outcome:?}");
    let remove = ["rm", "-r", "/lab/x", "--connect", &site.socket];
    site.home.run(&remove).ok();
    // The first answer, and nothing else.
    assert_eq!(user.again(&captured), outcome);
    let (later, second) = user.command(make("y"), Vec::new());
    assert!(done(second.as_ref()).is_some(), "{second:?}");
    assert_eq!(user.again(&captured), Some(Outcome::Refused(Refusal::OldRequest)));
    assert_eq!(user.again(&later), second);
    assert_eq!(user.again(&opened), first, "the same session");
    let names = || site.home.run(&["ls", "/lab", "--connect", &site.socket, "--fresh"]).stdout();
    wait_for("what was made and not removed", || names() == "y/\n", names);
    // Another command under the request id of one that was executed.
    let (session, last) = user.session.unwrap();
    let request = Some(RequestId { session, slot: 0, sequence: last });
    let (_, reused) = user.send(&CommandPacket::new(request, make("z")));
    assert_eq!(reused, Some(Outcome::Refused(Refusal::RequestReused)));
}

#[test]
fn keys_of_another_site_and_of_strangers_count_nothing() {
    let site = Site::new(1, 1);
    let foreign = Home::new();
    let init = ["site", "init", "/lab", "--operator", "op", "--dir", "site"];
    foreign.run(&init).ok();
    // The very names, of other keys: another site that calls itself the same.
    let mut other = Commander::new(&site, user(&foreign, &lab(), "op"));
    let (_, outcome) = other.open_session();
    assert!(is_not_authentic(outcome.as_ref()), "{outcome:?}");
    let own = keychain(&foreign).identity(lab().view()).unwrap().unwrap().signer;
    let mut head = Commander::new(&site, own.clone());
    let (_, outcome) = head.open_session();
    assert!(is_not_authentic(outcome.as_ref()), "{outcome:?}");

    // A ticket of that site, whose writer has its key.
    let mut user = Commander::new(&site, user(&site.home, &lab(), "op"));
    let ticket = user.create("f");
    let disk = ticket.terms().disks[0].name.clone();
    let key = other.signer.key().public_key();
    let theirs = Ticket::issue(&lab(), ticket.terms().clone(), &key, now_s(), &own).unwrap();
    let content = ticket.terms().content;
    let order = Order { ticket: &theirs, of: content, disk: &disk, key: &other.signer };
    let answer = order.send(&mut other.peer);
    assert!(!matches!(answer, Some(InsertAnswer::Pulling { .. } | InsertAnswer::Stored(_))));
    has_no_content(&site);
    // Programs do not take that site for this one.
    let link = site.link();
    let at = ["mkdir", "/lab/x", "--site", &link, "--connect", &site.socket];
    foreign.run(&at).fails_with(6, "does not know the key");
    site.home.run(&["mkdir", "/lab/x", "--connect", &site.socket]).ok();
}

/// Scenario 11: a disk that lies has its own receipts and nobody else's.
#[test]
fn a_disk_gets_and_vouches_for_what_is_its_own_alone() {
    let site = Site::new(2, 1);
    let (disks, signer) = (disks(&site), user(&site.home, &lab(), "op"));
    let mut writer = Commander::new(&site, signer);
    let ticket = writer.create("f");
    let terms = ticket.terms().clone();
    let is_asked = |name: &DiskName| *name == terms.disks[0].name;
    let (asked, asked_key) = disks.iter().find(|(name, _)| is_asked(name)).unwrap();
    let (another, liar) = disks.iter().find(|(name, _)| !is_asked(name)).unwrap();

    // It commands nothing.
    let mut disk = Commander::new(&site, liar.clone());
    let (_, outcome) = disk.open_session();
    assert!(done(outcome.as_ref()).is_none() && outcome.is_some(), "{outcome:?}");
    let place = Place::path("x").unwrap();
    let make = Command::MakeDirectory { place, mode: 0o755 };
    let (_, outcome) = disk.send(&CommandPacket::new(None, make));
    assert!(done(outcome.as_ref()).is_none() && outcome.is_some(), "{outcome:?}");

    // It says of content that it has it: it was not asked, or it speaks for another.
    let claim = claimed(terms.content);
    let commit = Commit {
        content: terms.content,
        size: claim.size,
        root: claim.root,
        checksums: Checksums { adler32: 1, crc32c: 2 },
        modified_ns: None,
        receipts: Vec::new(),
    };
    let receipt = |disk: &DiskName, by: &KeySigner| {
        let receipt = Receipt {
            site: lab().octets().to_vec(),
            disk: disk.id,
            generation: terms.disks[0].generation,
            content: terms.content,
            size: claim.size,
            root: claim.root,
            checksums: commit.checksums,
        };
        SignedReceipt { disk: disk.clone(), receipt }.encode(&lab(), by).unwrap()
    };
    let mut committed =
        |receipt: Vec<u8>| writer.command(Command::Commit(commit.clone()), vec![receipt]).1;
    let of_its_own = committed(receipt(another, liar));
    assert_eq!(of_its_own, Some(Outcome::Refused(Refusal::UnknownDisk)));
    let of_another = committed(receipt(asked, liar));
    assert!(is_not_authentic(of_another.as_ref()), "{of_another:?}");
    let none = site.home.run(&["stat", "/lab/f", "--connect", &site.socket]);
    none.fails_with(3, "");
    // The head looked at the signature: that of the disk itself is taken.
    let right = committed(receipt(asked, asked_key));
    assert!(done(right.as_ref()).is_some(), "{right:?}");
}

/// The file is another one when disks pull it than when its writer signed for it.
#[test]
fn a_writer_that_serves_other_octets_than_it_signed_gets_nothing_stored() {
    let site = Site::new(2, 2);
    let local = site.home.path().join("lie");
    write(&local, &noise(300_000, 1));
    let source = Arc::new(Source::open(&local, &|| false).unwrap());
    // The open file: what is served is read from it.
    write(&local, &noise(300_000, 2));
    let create = Create {
        place: Place::path("f").unwrap(),
        mode: 0o644,
        size_max: 300_000,
        publish: Publish::AtCommit,
        exclusive: false,
        policy: PolicyChanges::default(),
    };
    let mut files = vec![Put { create, keep_time: false, source }];
    let mut outcome = None;
    let mut writer = site.writer();
    writer
        .put_all(
            &mut || files.pop().map_or(Next::End, |put| Next::Put(0, put)),
            &mut |event| {
                if let PutEvent::Done { result, .. } = event {
                    outcome = Some(result.map(drop));
                }
            },
            &|| false,
        )
        .unwrap();
    assert!(matches!(outcome, Some(Err(WriterError::Changed { .. }))), "{outcome:?}");
    has_no_content(&site);
    site.home.run(&["stat", "/lab/f", "--connect", &site.socket]).fails_with(3, "");
    site.put("f", &noise(300_000, 3)).unwrap();
    expect(&site, "/lab/f", &noise(300_000, 3));
}

/// A user of the site with a key of his own.
fn member<'a>(site: &'a Site, name: &str, group: &str) -> impl Fn(&[&str]) -> Finished + 'a {
    let home = Home::new();
    home.run(&["trust", "add", &site.link()]).ok();
    let key = home.run(&["site", "user", "key", "--site", "/lab", "--user", name]).ok();
    let file = site.home.path().join(format!("{name}.cert"));
    write(&file, key.stdout().as_bytes());
    let file = file.to_str().unwrap();
    site.run(&["user", "add", name, "--group", group, "--key", file]).ok();
    move |args| home.run(&[args, &["--connect", &site.socket]].concat())
}

#[test]
fn modes_bind_users_and_groups_in_all_they_change() {
    let site = Site::new(1, 1);
    let [anna, carl, bert] =
        [("anna", "physics"), ("carl", "physics"), ("bert", "cms")].map(|(name, group)| {
            Box::new(member(&site, name, group)) as Box<dyn Fn(&[&str]) -> Finished>
        });
    let operator = |args: &[&str]| {
        site.home.run(&[args, &["--connect", &site.socket, "--user", "op"]].concat())
    };
    let local = site.home.path().join("local");
    write(&local, &noise(5000, 1));
    let local = local.to_str().unwrap();
    operator(&["mkdir", "/lab/physics", "--mode", "775"]).ok();
    operator(&["chown", ":physics", "/lab/physics"]).ok();
    anna(&["put", local, "/lab/physics/shared"]).ok();
    anna(&["put", local, "/lab/physics/own"]).ok();
    anna(&["chmod", "664", "/lab/physics/shared"]).ok();
    anna(&["chmod", "644", "/lab/physics/own"]).ok();
    anna(&["mkdir", "/lab/physics/private", "--mode", "700"]).ok();
    anna(&["put", local, "/lab/physics/private/a"]).ok();

    let denied = "the modes do not allow it";
    bert(&["put", local, "/lab/physics/new"]).fails_with(7, denied);
    bert(&["put", local, "/lab/physics/shared"]).fails_with(7, denied);
    bert(&["rm", "/lab/physics/shared"]).fails_with(7, denied);
    bert(&["mv", "/lab/physics/shared", "/lab/physics/stolen"]).fails_with(7, denied);
    bert(&["truncate", "/lab/physics/shared"]).fails_with(7, denied);
    bert(&["truncate", "-s", "10", "/lab/physics/shared"]).fails_with(7, denied);
    bert(&["xattr", "set", "/lab/physics/shared", "user.x", "x"]).fails_with(7, denied);
    bert(&["chmod", "666", "/lab/physics/shared"]).fails_with(7, "only the owner");
    bert(&["chown", "bert", "/lab/physics/shared"]).fails_with(7, "only an operator");
    bert(&["ln", "-s", "x", "/lab/physics/link"]).fails_with(7, denied);

    // Her group may where the modes say so.
    carl(&["put", local, "/lab/physics/shared"]).ok();
    carl(&["put", local, "/lab/physics/own"]).fails_with(7, denied);
    carl(&["put", local, "/lab/physics/private/b"]).fails_with(7, denied);
    carl(&["rm", "/lab/physics/private/a"]).fails_with(7, denied);
    carl(&["chmod", "666", "/lab/physics/shared"]).fails_with(7, "only the owner");
    carl(&["put", local, "/lab/physics/new"]).ok();
    anna(&["rm", "/lab/physics/new"]).ok();
    operator(&["rm", "/lab/physics/private/a"]).ok();
    for name in ["shared", "own"] {
        assert!(site.read(&format!("physics/{name}")).ok().bytes() == noise(5000, 1));
    }
}
/// One replica of two has other octets than were stored: readers are not given them.
/// With both corrupt there is no file, and nothing that passes for one.
#[test]
fn a_corrupt_replica_is_never_served_as_the_file() {
    let site = Site::new(2, 2);
    let octets = noise(300_000, 5);
    site.put("f", &octets).unwrap();
    let corrupt = |disk: usize| {
        let path = site.contents(disk).pop().unwrap();
        let mut stored = std::fs::read(&path).unwrap();
        stored.iter_mut().skip(10_000).step_by(8192).for_each(|octet| *octet ^= 1);
        std::fs::write(&path, stored).unwrap();
    };
    corrupt(0);
    let read = site.read("f").ok();
    assert!(read.bytes() == octets, "{}", read.stderr());
    corrupt(1);
    // What the forwarder has kept is whole.
    site.home.run(&["cs", "erase", "/lab", "--connect", &site.socket]).ok();
    let read = site.read("f").fails_with(5, "");
    assert!(octets.starts_with(read.bytes()), "{} octets", read.bytes().len());
    site.put("f", &octets).unwrap();
    expect(&site, "/lab/f", &octets);
}
