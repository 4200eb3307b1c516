//! Orders to disks, and receipts: what a disk must refuse, whoever asks.

use byname_catalog::id::{ContentId, InodeId, LeaseEpoch, TransactionNumber, Version};
use byname_catalog::{Checksums, Receipt};
use byname_packet::{KeyLocator, Signer};
use byname_security::key::KeySigner;
use byname_site::{
    CONTENTS_MAX, COPY_PAGE_BYTES, CatalogCopy, Check, Claim, CopyAnswer, CopyPoint, CopyState,
    DiskName, DiskRefusal, DiskView, Drop, DropAnswer, Identity, Insert, InsertAnswer, Keep,
    KeptRecord, ROTTEN_MAX, ROWS_BYTES_MAX, Recall, ScrubState, SignedReceipt, Terms, Ticket,
    Untrusted, check_data,
};

use crate::support::{
    CONTENT, Holder, NOW_S, TestSite, data, disk, interest, name, stamp, with_ticket,
};

const OTHER: ContentId = ContentId { inode: InodeId(301), version: Version(7) };

fn insert(site: &TestSite, ticket: &Ticket, claim: Claim, signer: &dyn Signer) -> Insert {
    let claim = claim.encode(&site.name, signer).unwrap();
    let hint = site.name.writer(&site.name.user("anna"), 1 << 40);
    Insert { ticket: ticket.clone(), claim, hint }
}

fn claim(content: ContentId, size: u64) -> Claim {
    Claim { content, size, root: [9; 32] }
}

/// What disk 1, in generation 4, having seen epoch 5, says of an order.
fn judge(site: &TestSite, order: &Insert, signer: &dyn Signer) -> Check<Claim, DiskRefusal> {
    judge_as(site, order, signer, view(&disk(1), 4, 5))
}

fn view(name: &DiskName, generation: u64, epoch: u64) -> DiskView<'_> {
    DiskView { name, generation, epoch: LeaseEpoch(epoch) }
}

fn judge_as(
    site: &TestSite,
    order: &Insert,
    signer: &dyn Signer,
    view: DiskView<'_>,
) -> Check<Claim, DiskRefusal> {
    let wire = order.encode(&site.name, view.name, signer, stamp(1)).unwrap();
    let (to, decoded) = Insert::decode(&site.name, &interest(&wire)).unwrap();
    assert_eq!((&to, &decoded), (view.name, order));
    decoded.check(&site.name, &interest(&wire), view, (&mut site.validator(&[]), NOW_S))
}

struct World {
    site: TestSite,
    anna: Holder,
    ticket: Ticket,
    writer: KeySigner,
}

fn world() -> World {
    let site = TestSite::new(1, "/cern/cms");
    let anna = site.user(2, "anna");
    let ticket = site.ticket(site.terms(CONTENT), &anna);
    let writer = with_ticket(&anna, &ticket);
    World { site, anna, ticket, writer }
}

#[test]
fn an_order_of_the_writer_is_accepted() {
    let World { site, ticket, writer, .. } = world();
    let order = insert(&site, &ticket, claim(CONTENT, 10_000), &writer);
    assert_eq!(judge(&site, &order, &writer), Check::Accepted(claim(CONTENT, 10_000)));
    let later = judge_as(&site, &order, &writer, view(&disk(2), 4, 5));
    assert_eq!(later, Check::Accepted(claim(CONTENT, 10_000)));
}

#[test]
fn a_ticket_for_another_disk_or_generation_or_of_an_old_head_is_refused() {
    let World { site, ticket, writer, .. } = world();
    let order = insert(&site, &ticket, claim(CONTENT, 1), &writer);
    let judge = |name: &DiskName, generation, epoch| {
        judge_as(&site, &order, &writer, view(name, generation, epoch))
    };
    assert_eq!(judge(&disk(3), 4, 5), Check::Refused(DiskRefusal::NotAsked));
    let moved = DiskName { place: "rack2".to_owned(), ..disk(1) };
    assert_eq!(judge(&moved, 4, 5), Check::Refused(DiskRefusal::NotAsked));
    assert_eq!(judge(&disk(1), 5, 5), Check::Refused(DiskRefusal::OldGeneration));
    assert_eq!(judge(&disk(1), 4, 6), Check::Refused(DiskRefusal::OldEpoch));
    assert!(matches!(judge(&disk(1), 4, 4), Check::Accepted(_)));
}

#[test]
fn a_ticket_of_another_file_is_refused() {
    let World { site, anna, ticket, writer } = world();
    let other_ticket = site.ticket(site.terms(OTHER), &anna);
    let other_writer = with_ticket(&anna, &other_ticket);
    let refused = Check::Refused(DiskRefusal::NotAuthentic);
    // The other file's ticket, for a claim of this one.
    let order = insert(&site, &other_ticket, claim(CONTENT, 1), &writer);
    assert_eq!(judge(&site, &order, &other_writer), refused);
    // This ticket in an order that the other one's signature is on.
    let order = insert(&site, &ticket, claim(CONTENT, 1), &writer);
    assert_eq!(judge(&site, &order, &other_writer), refused);
    // A claim of the other file, signed for it.
    let order = insert(&site, &ticket, claim(OTHER, 1), &other_writer);
    assert_eq!(judge(&site, &order, &writer), refused);
    // A claim of this file, signed with the key, by the other ticket.
    let order = insert(&site, &ticket, claim(CONTENT, 1), &other_writer);
    assert_eq!(judge(&site, &order, &writer), refused);
}

/// Two tickets for one content, as `replace` makes them: terms of one do not count for the other.
#[test]
fn terms_count_only_with_the_ticket_that_signed() {
    let World { site, anna, ticket, writer } = world();
    let roomy = Terms { size_max: 1 << 40, ..site.terms(CONTENT) };
    let self_made = {
        let key = anna.key.public_key();
        Ticket::issue(&site.name, roomy, &key, NOW_S + 1, &anna.signer).unwrap()
    };
    let order = insert(&site, &self_made, claim(CONTENT, 1 << 30), &writer);
    let refused = Check::Refused(DiskRefusal::NotAuthentic);
    assert_eq!(judge(&site, &order, &writer), refused);
    let forger = with_ticket(&anna, &self_made);
    let order = insert(&site, &self_made, claim(CONTENT, 1 << 30), &forger);
    let check = judge(&site, &order, &forger);
    assert!(!matches!(check, Check::Accepted(_)), "{check:?}");
    let order = insert(&site, &ticket, claim(CONTENT, 10_001), &writer);
    assert_eq!(judge(&site, &order, &writer), Check::Refused(DiskRefusal::TooLarge));
}

#[test]
fn strangers_heads_and_thieves_order_no_pull() {
    let World { site, anna, ticket, writer } = world();
    let thief = site.user(3, "thief");
    let foreign = TestSite::new(7, "/cern/cms");
    let refused = Check::Refused(DiskRefusal::NotAuthentic);
    let order = insert(&site, &ticket, claim(CONTENT, 1), &writer);
    for signer in [&thief.signer, &anna.signer, &site.head.signer] {
        assert_eq!(judge(&site, &order, signer), refused);
    }
    assert_eq!(judge(&site, &order, &with_ticket(&thief, &ticket)), refused, "a stolen ticket");
    // Another site of the same name.
    let forged = foreign.ticket(foreign.terms(CONTENT), &anna);
    let forger = with_ticket(&anna, &forged);
    let order = insert(&site, &forged, claim(CONTENT, 1), &forger);
    let check = judge(&site, &order, &forger);
    assert!(!matches!(check, Check::Accepted(_)), "{check:?}");
}

#[test]
fn a_hint_to_the_disks_own_machine_is_refused() {
    let World { site, ticket, writer, .. } = world();
    for local in ["/", "/localhost/nfd", "/localhop"] {
        let mut order = insert(&site, &ticket, claim(CONTENT, 1), &writer);
        order.hint = name(local);
        let wire = order.encode(&site.name, &disk(1), &writer, stamp(1)).unwrap();
        assert!(Insert::decode(&site.name, &interest(&wire)).is_err(), "{local}");
    }
}

#[test]
fn only_the_head_has_content_dropped_and_no_old_one() {
    let World { site, anna, writer, .. } = world();
    let disk_key = site.disk_key(4, &disk(1));
    let order = Drop { epoch: LeaseEpoch(5), generation: 4, contents: vec![CONTENT, OTHER] };
    let judge = |order: &Drop, signer: &dyn Signer, generation, epoch| {
        let wire = order.encode(&site.name, &disk(1), signer, stamp(1)).unwrap();
        let (to, decoded) = Drop::decode(&site.name, &interest(&wire)).unwrap();
        assert_eq!((&to, &decoded), (&disk(1), order));
        let view = DiskView { name: &disk(1), generation, epoch: LeaseEpoch(epoch) };
        let mut validator = site.validator(&[&anna, &disk_key]);
        decoded.check(&site.name, &interest(&wire), view, (&mut validator, NOW_S))
    };
    let head = &site.head.signer;
    assert_eq!(judge(&order, head, 4, 5), Check::Accepted(()));
    assert_eq!(judge(&order, head, 4, 4), Check::Accepted(()));
    assert_eq!(judge(&order, head, 4, 6), Check::Refused(DiskRefusal::OldEpoch));
    assert_eq!(judge(&order, head, 5, 5), Check::Refused(DiskRefusal::OldGeneration));
    for signer in [&anna.signer, &disk_key.signer] {
        let refused = Check::Refused(DiskRefusal::NotAuthentic);
        assert_eq!(judge(&order, signer, 4, 5), refused);
    }
    assert!(!matches!(judge(&order, &writer, 4, 5), Check::Accepted(())));
    let drop_of = |count: usize| {
        let order = Drop { contents: vec![CONTENT; count], ..order.clone() };
        let wire = order.encode(&site.name, &disk(1), head, stamp(1)).unwrap();
        Drop::decode(&site.name, &interest(&wire)).is_ok()
    };
    assert_eq!([0, 1, CONTENTS_MAX, CONTENTS_MAX + 1].map(drop_of), [true, true, true, false]);
}

fn receipt(site: &TestSite) -> SignedReceipt {
    SignedReceipt {
        disk: disk(1),
        receipt: Receipt {
            site: site.name.octets().to_vec(),
            disk: disk(1).id,
            generation: 4,
            content: CONTENT,
            size: 8193,
            root: [9; 32],
            checksums: Checksums { adler32: 1, crc32c: u32::MAX },
        },
    }
}

#[test]
fn a_receipt_is_its_disks() {
    let site = TestSite::new(1, "/cern/cms");
    let (mine, other) = (site.disk_key(3, &disk(1)), site.disk_key(4, &disk(2)));
    let anna = site.user(5, "anna");
    let receipt = receipt(&site);
    let check = |signer: &dyn Signer| {
        let wire = receipt.encode(&site.name, signer).unwrap();
        assert_eq!(SignedReceipt::decode(&site.name, &data(&wire)), Ok(receipt.clone()));
        let mut validator = site.validator(&[&mine, &other, &anna]);
        match check_data(&site.name, &data(&wire), &mut validator, NOW_S) {
            Check::Accepted(found) => Ok(found.identity),
            Check::Refused(error) => Err(error),
            Check::NeedCertificate(name) => panic!("{name}"),
        }
    };
    assert_eq!(check(&mine.signer), Ok(Identity::Disk(disk(1))));
    for stranger in [&other.signer, &anna.signer] {
        assert!(matches!(check(stranger), Err(Untrusted::Trust(_))));
    }
    let elsewhere = TestSite::new(1, "/cern/atlas");
    let wire = receipt.encode(&elsewhere.name, &mine.signer).unwrap();
    assert!(SignedReceipt::decode(&site.name, &data(&wire)).is_err(), "of another site");
}

#[test]
fn answers_of_disks_come_back_as_they_were() {
    let site = TestSite::new(1, "/cern/cms");
    let key = site.disk_key(3, &disk(1));
    let name = site.name.insert(&disk(1));
    let stored = receipt(&site).encode(&site.name, &key.signer).unwrap();
    let answers = [
        InsertAnswer::Pulling { received_bytes: 1 << 40, again_ms: 60_000 },
        InsertAnswer::Stored(stored),
        InsertAnswer::Refused(DiskRefusal::Full),
    ];
    for answer in answers {
        let wire = answer.encode(name.view(), &key.signer).unwrap();
        let found = data(&wire);
        assert_eq!(found.meta.freshness_ms > 0, matches!(answer, InsertAnswer::Refused(_)));
        let is_signed = matches!(found.signature_info.key_locator, Some(KeyLocator::Name(_)));
        assert_eq!(is_signed, !matches!(answer, InsertAnswer::Stored(_)), "a receipt is, in it");
        assert_eq!(InsertAnswer::decode(&found), Ok(answer));
    }
    let endless = InsertAnswer::Pulling { received_bytes: 0, again_ms: 60_001 };
    let wire = endless.encode(name.view(), &key.signer).unwrap();
    assert!(InsertAnswer::decode(&data(&wire)).is_err());
    let answers = [
        DropAnswer::Done { epoch: LeaseEpoch(1 << 50), load: 250, scrub: None },
        DropAnswer::Done { epoch: LeaseEpoch(1), load: 0, scrub: Some(ScrubState::default()) },
        DropAnswer::Done {
            epoch: LeaseEpoch(1),
            load: 1,
            scrub: Some(ScrubState {
                done_bytes: 1 << 40,
                total_bytes: 1 << 41,
                ended_s: Some(1_700_000_000),
                rotten_count: 33,
                rotten: vec![OTHER; ROTTEN_MAX],
            }),
        },
        DropAnswer::Refused(DiskRefusal::OldEpoch),
    ];
    for answer in answers {
        let wire = answer.encode(name.view(), &key.signer).unwrap();
        assert_eq!(DropAnswer::decode(&data(&wire)), Ok(answer));
    }
}

#[test]
fn orders_about_copies_come_back_as_they_were() {
    let site = TestSite::new(1, "/cern/cms");
    let signer = &site.head.signer;
    let keep = |through, rows: &[u8]| Keep {
        epoch: LeaseEpoch(9),
        generation: 4,
        edition: 3,
        at: CopyPoint { length: 1 << 33, digest: [5; 32], through: TransactionNumber(70) },
        through,
        rows: rows.to_vec(),
    };
    let longest = vec![7; ROWS_BYTES_MAX];
    for order in [keep(None, &longest), keep(Some(TransactionNumber(77)), b"")] {
        let wire = order.encode(&site.name, &disk(1), signer, stamp(1)).unwrap();
        assert_eq!(Keep::decode(&site.name, &interest(&wire)).unwrap(), (disk(1), order.clone()));
        let validator = (&mut site.validator(&[]), NOW_S + 86_400 * 3);
        let kept = Keep::check_kept(&site.name, &interest(&wire), validator);
        assert_eq!(kept, Check::Accepted(()), "days after it was sent");
    }
    let longer = keep(None, &[longest.as_slice(), b"x"].concat());
    let wire = longer.encode(&site.name, &disk(1), signer, stamp(1)).unwrap();
    assert!(Keep::decode(&site.name, &interest(&wire)).is_err());
    for order in [Recall::State, Recall::Copy { edition: 3, offset: 9 }, Recall::Record(CONTENT)] {
        let wire = order.encode(&site.name, &disk(1), signer, stamp(1)).unwrap();
        assert_eq!(Recall::decode(&site.name, &interest(&wire)).unwrap(), (disk(1), order));
    }
}

#[test]
fn answers_about_copies_come_back_as_they_were() {
    let World { site, ticket, writer, .. } = world();
    let copy = CatalogCopy {
        edition: 3,
        length: 5000,
        base: 4000,
        stored: 6000,
        last: 5900,
        digest: [5; 32],
        through: TransactionNumber(77),
    };
    let state = CopyState {
        epoch: LeaseEpoch(9),
        generation: 4,
        highest: 301,
        complete: Some(copy),
        building: None,
    };
    let building = CopyState { complete: None, building: Some(copy), ..state };
    let record = KeptRecord {
        is_settled: true,
        checksums: Checksums { adler32: 1, crc32c: 2 },
        ticket: ticket.wire().to_vec(),
        claim: claim(CONTENT, 5).encode(&site.name, &writer).unwrap(),
    };
    let answers = [
        CopyAnswer::State(state),
        CopyAnswer::State(building),
        CopyAnswer::Octets(vec![1; COPY_PAGE_BYTES]),
        CopyAnswer::Octets(Vec::new()),
        CopyAnswer::Record(Box::new(record)),
        CopyAnswer::Refused(DiskRefusal::ReadOnly),
    ];
    for answer in answers {
        let name = site.name.recall(&disk(1));
        let wire = answer.encode(name.view(), &site.disk_key(5, &disk(1)).signer).unwrap();
        assert_eq!(CopyAnswer::decode(&data(&wire)).unwrap(), answer);
    }
}
