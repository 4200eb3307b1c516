//! Orders of writers and heads to a disk, as packets: who is obeyed, and what is signed.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like tests")]

use std::sync::Arc;

use byname_catalog::id::{ContentId, DiskId, InodeId, LeaseEpoch, Version};
use byname_catalog::{Answer, Checksums, Resolution};
use byname_disk::machine::{Action, Limits};
use byname_disk::orders::{Handled, Orders};
use byname_disk::pull::Kept;
use byname_disk::{
    Copied, CopyWork, DiskService, Editions, Event, Machine, Scan, StoreFailure, Workers,
};
use byname_packet::{Data, Interest, Name, ValidityPeriod};
use byname_security::cert::{Certificate, CertificateRequest};
use byname_security::key::{KeyPair, KeySigner};
use byname_security::trust::{TrustPolicy, Validator};
use byname_site::{
    Check, Claim, CopyAnswer, CopyPoint, DiskName, DiskRefusal, Drop, DropAnswer, Identity, Insert,
    InsertAnswer, Keep, Outcome, Recall, Reply, SignedReceipt, SiteAnswer, SiteName, Stamp, Terms,
    TermsDisk, Ticket, check_data,
};
use byname_store::Service;
use byname_transfer::server::{Arrival, FaceId, Now};

const NOW_S: u64 = 1_800_000_000;
const CONTENT: ContentId = ContentId { inode: InodeId(300), version: Version(7) };
const EPOCH: LeaseEpoch = LeaseEpoch(5);
const KEPT: Kept =
    Kept { size: 100, root: [1; 32], checksums: Checksums { adler32: 3, crc32c: 4 } };

struct Holder {
    key: Arc<KeyPair>,
    certificate: Certificate,
    signer: KeySigner,
}

fn holder(seed: u8, namespace: Name, issuer: Option<&Holder>) -> Holder {
    let key = Arc::new(KeyPair::ed25519_from_seed(&[seed; 32]));
    let key_name = namespace.with_generic(b"KEY").with_generic(&[seed; 8]);
    let public_key = key.public_key();
    let request = CertificateRequest {
        key_name: key_name.view(),
        public_key: &public_key,
        issuer_id: if issuer.is_some() { b"site" } else { b"self" },
        version: 1,
        validity: ValidityPeriod { not_before_s: NOW_S - 9, not_after_s: NOW_S + 99_999 },
    };
    let signer = KeySigner::new(Arc::clone(&key), request.certificate_name());
    let certificate = request.issue(issuer.map_or(&signer, |issuer| &issuer.signer)).unwrap();
    Holder { key, certificate, signer }
}

fn disk_name(id: u64) -> DiskName {
    DiskName { place: "hall".to_owned(), id: DiskId(id) }
}

/// A site, a disk of it, and a writer with a ticket for that disk.
struct Scene {
    site: SiteName,
    head: Holder,
    writer: Holder,
    ticket: Ticket,
    orders: Orders,
    machine: Machine,
}

fn scene() -> Scene {
    let prefix: Name = "/site".parse().unwrap();
    let site = SiteName::new(prefix.clone()).unwrap();
    let head = holder(1, prefix.clone(), None);
    let disk = holder(2, site.disk(&disk_name(7)), Some(&head));
    let writer = holder(3, site.user("ann"), Some(&head));
    let terms = Terms {
        content: CONTENT,
        epoch: EPOCH,
        size_max: 1000,
        receipt_count: 1,
        expires_ns: (NOW_S + 3600) * 1_000_000_000,
        disks: vec![TermsDisk { name: disk_name(7), generation: 4 }],
        origin: None,
    };
    let key = writer.key.public_key();
    let ticket = Ticket::issue(&site, terms, &key, NOW_S, &head.signer).unwrap();
    let mut policy = TrustPolicy::default();
    policy.add_anchor(prefix, head.key.key_id());
    let mut validator = Validator::new(policy);
    for holder in [&head, &disk] {
        validator.add_certificate(holder.certificate.wire()).unwrap();
    }
    let signer = Arc::new(disk.signer);
    let orders =
        Orders { site: site.clone(), disk: disk_name(7), generation: 4, signer, validator };
    let machine = Machine::new(Limits::default(), &Scan::default(), 0);
    Scene { site, head, writer, ticket, orders, machine }
}

fn stamp() -> Stamp {
    Stamp { time_ms: NOW_S * 1000, nonce: [1; 8] }
}

impl Scene {
    /// An insert signed by whoever has `key`.
    fn insert(&self, key: &Arc<KeyPair>) -> Vec<u8> {
        let locator = self.ticket.certificate().name().to_name();
        let signer = KeySigner::new(Arc::clone(key), locator);
        let claim = Claim { content: CONTENT, size: 100, root: [1; 32] };
        let claim = claim.encode(&self.site, &signer).unwrap();
        let hint = self.site.writer(&self.site.user("ann"), 1);
        let order = Insert { ticket: self.ticket.clone(), claim, hint };
        order.encode(&self.site, &disk_name(7), &signer, stamp()).unwrap()
    }

    fn handle(&mut self, wire: &[u8]) -> Handled {
        let interest = Interest::decode(wire).unwrap();
        self.orders.handle(&interest, &mut self.machine, (0, NOW_S), true).unwrap()
    }

    /// The answer to an insert of the writer's.
    fn ask(&mut self) -> InsertAnswer {
        let wire = self.insert(&Arc::clone(&self.writer.key));
        match self.handle(&wire) {
            Handled::Answer(wire) | Handled::Refused(wire) => decoded(&wire),
            Handled::Pulling(claim) => {
                let name = Interest::decode(&wire).unwrap().name.to_name();
                let at = (&self.machine, 0);
                decoded(&self.orders.answer_insert(name.view(), &claim, at).unwrap())
            }
            other => panic!("{other:?}"),
        }
    }
}

fn decoded(wire: &[u8]) -> InsertAnswer {
    InsertAnswer::decode(&Data::decode(wire).unwrap()).unwrap()
}

/// One order, one answer: nobody has to ask again and again how far it is.
#[test]
fn an_order_to_pull_is_answered_when_it_is_done_or_after_a_second() {
    let scene = scene();
    let wire = scene.insert(&Arc::clone(&scene.writer.key));
    let interest = Interest::decode(&wire).unwrap();
    let arrival = Arrival {
        interest: &interest,
        pit_token: None,
        congestion_mark: None,
        face: FaceId(1),
        incoming_face_id: None,
        path_trace: None,
    };
    let Scene { orders, machine, .. } = scene;
    let (workers, _queues) = Workers::queues();
    let (tell, told) = std::sync::mpsc::channel();
    let mut service = DiskService::new(orders, machine, workers, told);
    let now = |ms: u64| Now { now_ns: ms * 1_000_000, unix_ns: NOW_S * 1_000_000_000 };
    let answer = |service: &mut DiskService| {
        let sent = service.poll_transmit()?;
        Some(decoded(&sent.wire))
    };
    service.handle_interest(&arrival, now(0));
    service.handle_timeout(now(999));
    assert_eq!(answer(&mut service), None);
    assert_eq!(service.poll_timeout(), Some(now(1000).now_ns));
    service.handle_timeout(now(1000));
    assert!(matches!(answer(&mut service), Some(InsertAnswer::Pulling { .. })));
    service.handle_interest(&arrival, now(1100));
    tell.send(Event::Pulled(CONTENT, Ok(KEPT))).unwrap();
    service.handle_timeout(now(1200));
    assert!(matches!(answer(&mut service), Some(InsertAnswer::Stored(_))));
    service.handle_interest(&arrival, now(1300));
    assert!(matches!(answer(&mut service), Some(InsertAnswer::Stored(_))), "at once");
}

/// A pull that fails, or gives way to another writer's, is told at once, too.
#[test]
fn an_order_that_is_held_hears_of_the_failure() {
    let mut scene = scene();
    let wire = scene.insert(&Arc::clone(&scene.writer.key));
    let Handled::Pulling(claim) = scene.handle(&wire) else { panic!() };
    let name = Interest::decode(&wire).unwrap().name.to_name();
    scene.machine.handle_pulled(CONTENT, Err(StoreFailure::Full), 0);
    let answer = scene.orders.answer_insert(name.view(), &claim, (&scene.machine, 0)).unwrap();
    assert_eq!(decoded(&answer), InsertAnswer::Refused(DiskRefusal::Full));
    let over = 3_000_000_000;
    let answer = scene.orders.answer_insert(name.view(), &claim, (&scene.machine, over)).unwrap();
    assert!(matches!(decoded(&answer), InsertAnswer::Pulling { received_bytes: 0, .. }));
    let mut scene = self::scene();
    let other = Claim { root: [2; 32], ..claim };
    scene.ask();
    scene.machine.handle_pulled(CONTENT, Ok(KEPT), 0);
    let answer = scene.orders.answer_insert(name.view(), &other, (&scene.machine, 0)).unwrap();
    assert_eq!(decoded(&answer), InsertAnswer::Refused(DiskRefusal::OtherClaim));
}

#[test]
fn a_writer_with_a_ticket_gets_a_receipt_once_its_content_is_stored() {
    let mut scene = scene();
    assert!(matches!(scene.ask(), InsertAnswer::Pulling { received_bytes: 0, .. }));
    let Some(Action::Pull(pull)) = scene.machine.poll_action() else { panic!() };
    assert_eq!((pull.content, pull.size, pull.root), (CONTENT, 100, [1; 32]));
    assert_eq!(
        (pull.segment_size, pull.hint),
        (8192, scene.site.writer(&scene.site.user("ann"), 1))
    );
    assert_eq!(pull.ticket, scene.ticket.wire());
    scene.machine.handle_pulled(CONTENT, Ok(KEPT), 0);
    let InsertAnswer::Stored(receipt) = scene.ask() else { panic!() };
    let data = Data::decode(&receipt).unwrap();
    let validator = &mut scene.orders.validator;
    let Check::Accepted(by) = check_data(&scene.site, &data, validator, NOW_S) else { panic!() };
    assert_eq!(by.identity, Identity::Disk(disk_name(7)));
    let SignedReceipt { disk, receipt } = SignedReceipt::decode(&scene.site, &data).unwrap();
    assert_eq!((disk, receipt.generation, receipt.content), (disk_name(7), 4, CONTENT));
    assert_eq!((receipt.size, receipt.root, receipt.checksums), (100, [1; 32], KEPT.checksums));
}

#[test]
fn a_stolen_ticket_pulls_nothing() {
    let mut scene = scene();
    let thief = Arc::new(KeyPair::ed25519_from_seed(&[9; 32]));
    let wire = scene.insert(&thief);
    let Handled::Refused(answer) = scene.handle(&wire) else { panic!() };
    let answer = InsertAnswer::decode(&Data::decode(&answer).unwrap()).unwrap();
    assert_eq!(answer, InsertAnswer::Refused(DiskRefusal::NotAuthentic));
    assert_eq!(scene.machine.poll_action(), None);
}

#[test]
fn a_refusal_is_not_signed_unless_it_may_be() {
    let mut scene = scene();
    let thief = Arc::new(KeyPair::ed25519_from_seed(&[9; 32]));
    let by_head = |epoch| {
        let order = Drop { epoch, generation: 3, contents: Vec::new() };
        order.encode(&scene.site, &disk_name(7), &scene.head.signer, stamp()).unwrap()
    };
    for wire in [scene.insert(&thief), by_head(EPOCH)] {
        let interest = Interest::decode(&wire).unwrap();
        let mut handle = |may_sign_refusal| {
            let Scene { orders, machine, .. } = &mut scene;
            orders.handle(&interest, machine, (0, NOW_S), may_sign_refusal).unwrap()
        };
        assert_eq!(handle(false), Handled::Unsigned);
        assert!(matches!(handle(true), Handled::Refused(_)));
    }
    // What is carried out is answered all the same.
    let wire = scene.insert(&Arc::clone(&scene.writer.key));
    let interest = Interest::decode(&wire).unwrap();
    let handled = scene.orders.handle(&interest, &mut scene.machine, (0, NOW_S), false).unwrap();
    assert!(matches!(handled, Handled::Pulling(_)));
}

#[test]
fn what_went_wrong_is_said() {
    for (why, said) in [
        (StoreFailure::Full, DiskRefusal::Full),
        (StoreFailure::ReadOnly, DiskRefusal::ReadOnly),
        (StoreFailure::Failing, DiskRefusal::Failing),
        (StoreFailure::Unreachable, DiskRefusal::Unreachable),
        (StoreFailure::Slow, DiskRefusal::Slow),
        (StoreFailure::Mismatch, DiskRefusal::Mismatch),
    ] {
        let mut scene = scene();
        scene.ask();
        scene.machine.handle_pulled(CONTENT, Err(why), 0);
        assert_eq!(scene.ask(), InsertAnswer::Refused(said));
    }
}

#[test]
fn orders_to_other_disks_and_tickets_for_another_generation_do_nothing() {
    let mut scene = scene();
    let wire = scene.insert(&Arc::clone(&scene.writer.key));
    scene.orders.generation = 3;
    let Handled::Refused(answer) = scene.handle(&wire) else { panic!() };
    let answer = InsertAnswer::decode(&Data::decode(&answer).unwrap()).unwrap();
    assert_eq!(answer, InsertAnswer::Refused(DiskRefusal::OldGeneration));
    scene.orders.disk = disk_name(8);
    assert_eq!(scene.handle(&wire), Handled::NotForUs);
    assert_eq!(scene.machine.poll_action(), None);
}

#[test]
fn only_the_site_drops_and_only_in_a_term_that_is_not_over() {
    let mut scene = scene();
    let order = |epoch| Drop { epoch, generation: 4, contents: vec![CONTENT] };
    let (site, disk) = (scene.site.clone(), disk_name(7));
    let by_user = order(EPOCH).encode(&site, &disk, &scene.writer.signer, stamp()).unwrap();
    scene.orders.validator.add_certificate(scene.writer.certificate.wire()).unwrap();
    let refused = |handled| {
        let Handled::Refused(wire) = handled else { panic!("{handled:?}") };
        DropAnswer::decode(&Data::decode(&wire).unwrap()).unwrap()
    };
    let not_authentic = DropAnswer::Refused(DiskRefusal::NotAuthentic);
    assert_eq!(refused(scene.handle(&by_user)), not_authentic);
    let by_head = order(EPOCH).encode(&site, &disk, &scene.head.signer, stamp()).unwrap();
    let Handled::Later(id) = scene.handle(&by_head) else { panic!() };
    assert_eq!(scene.machine.poll_action(), Some(Action::KeepEpoch(EPOCH)));
    scene.machine.handle_epoch_kept(EPOCH, Ok(()));
    assert_eq!(scene.machine.poll_action(), Some(Action::Remove(CONTENT)));
    scene.machine.handle_removed(CONTENT, Ok(()), 0);
    let (done, outcome) = scene.machine.poll_drop().unwrap();
    assert_eq!(done, id);
    let name = Interest::decode(&by_head).unwrap().name.to_name();
    let answer = scene.orders.answer_drop(name.view(), outcome, (150, None)).unwrap();
    let answer = DropAnswer::decode(&Data::decode(&answer).unwrap()).unwrap();
    assert_eq!(answer, DropAnswer::Done { epoch: EPOCH, load: 150, scrub: None });
    let old = order(LeaseEpoch(4)).encode(&site, &disk, &scene.head.signer, stamp()).unwrap();
    assert_eq!(refused(scene.handle(&old)), DropAnswer::Refused(DiskRefusal::OldEpoch));
}

#[test]
fn a_resolution_counts_only_if_the_site_has_signed_it() {
    let mut scene = scene();
    let outcome = Outcome::Done(Box::new(SiteAnswer::Plain(Answer::Resolved(Resolution::Drop))));
    let reply = Reply { epoch: EPOCH, outcome };
    let name = scene.site.command("resolve").with_generic(b"digest");
    let by_head = reply.encode(name.view(), &scene.head.signer).unwrap();
    let by_user = reply.encode(name.view(), &scene.writer.signer).unwrap();
    scene.orders.validator.add_certificate(scene.writer.certificate.wire()).unwrap();
    let mut resolution = |wire: &[u8]| scene.orders.resolution(&Data::decode(wire).unwrap(), NOW_S);
    assert_eq!(resolution(&by_head), Check::Accepted(Some((EPOCH, Resolution::Drop))));
    assert_eq!(resolution(&by_user), Check::Refused(()));
}

/// What a disk says about copies, after the work that an order leads to.
fn copy_answer(scene: &mut Scene, wire: &[u8]) -> CopyAnswer {
    let answer = match scene.handle(wire) {
        Handled::Refused(wire) => wire,
        Handled::Copy(_) => {
            let name = Interest::decode(wire).unwrap().name.to_name();
            let copied = Copied::Editions(Editions::default());
            scene.orders.answer_copy(name.view(), &scene.machine, copied).unwrap()
        }
        other => panic!("{other:?}"),
    };
    CopyAnswer::decode(&Data::decode(&answer).unwrap()).unwrap()
}

#[test]
fn only_the_site_has_rows_kept_and_given_back() {
    let mut scene = scene();
    scene.orders.validator.add_certificate(scene.writer.certificate.wire()).unwrap();
    let wire = scene.insert(&Arc::clone(&scene.writer.key));
    scene.handle(&wire);
    let keep = |generation, epoch| Keep {
        epoch: LeaseEpoch(epoch),
        generation,
        edition: 1,
        at: CopyPoint::default(),
        through: None,
        rows: b"rows".to_vec(),
    };
    let encode = |scene: &Scene, order: &Keep, signer: &KeySigner| {
        order.encode(&scene.site, &disk_name(7), signer, stamp()).unwrap()
    };
    let wire = encode(&scene, &keep(4, 5), &scene.head.signer);
    let Handled::Copy(CopyWork::Keep(kept)) = scene.handle(&wire) else { panic!("not kept") };
    assert_eq!((kept.order, kept.wire), (keep(4, 5), wire.clone()));
    let CopyAnswer::State(state) = copy_answer(&mut scene, &wire) else { panic!("no state") };
    assert_eq!((state.generation, state.highest), (4, 300), "what was ordered was seen");
    let refused = |scene: &mut Scene, wire: &[u8], why| {
        assert_eq!(copy_answer(scene, wire), CopyAnswer::Refused(why));
    };
    let forged = encode(&scene, &keep(4, 5), &scene.writer.signer);
    refused(&mut scene, &forged, DiskRefusal::NotAuthentic);
    let foreign = encode(&scene, &keep(3, 5), &scene.head.signer);
    refused(&mut scene, &foreign, DiskRefusal::OldGeneration);
    let drop = Drop { epoch: LeaseEpoch(6), generation: 4, contents: vec![] };
    let drop = drop.encode(&scene.site, &disk_name(7), &scene.head.signer, stamp()).unwrap();
    scene.handle(&drop);
    refused(&mut scene, &wire, DiskRefusal::OldEpoch);
    for recall in [Recall::State, Recall::Copy { edition: 1, offset: 2 }, Recall::Record(CONTENT)] {
        let encode = |signer: &KeySigner| {
            recall.encode(&scene.site, &disk_name(7), signer, stamp()).unwrap()
        };
        let (own, forged) = (encode(&scene.head.signer), encode(&scene.writer.signer));
        assert!(matches!(scene.handle(&own), Handled::Copy(_)), "{recall:?}");
        refused(&mut scene, &forged, DiskRefusal::NotAuthentic);
    }
}
