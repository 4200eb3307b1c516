//! Tickets: certificates by which a writer's packets count, for one content and nobody else.

use std::sync::Arc;

use byname_catalog::EntryName;
use byname_catalog::id::{ContentId, InodeId, Version};
use byname_packet::{DataBuilder, Name, Signer};
use byname_security::cert::CertificateRequest;
use byname_security::key::KeySigner;
use byname_security::trust::{Decision, Signed, Validator};
use byname_site::{
    Check, Claim, Identity, Origin, Terms, Ticket, VALIDITY_AFTER_S, VALIDITY_BEFORE_S, check_data,
};

use crate::support::{CONTENT, NOW_S, TestSite, data, with_ticket};

const OTHER: ContentId = ContentId { inode: InodeId(300), version: Version(8) };

fn signed(name: Name, signer: &dyn Signer) -> Vec<u8> {
    let mut wire = Vec::new();
    DataBuilder::new(name.view()).encode(b"x", signer, &mut wire).unwrap();
    wire
}

fn is_trusted(validator: &mut Validator, wire: &[u8], now_s: u64) -> bool {
    matches!(validator.check(&Signed::from(&data(wire)), now_s), Decision::Trusted(_))
}

#[test]
fn terms_come_back_as_they_were() {
    let site = TestSite::new(1, "/cern/cms");
    let anna = site.user(2, "anna");
    let origin = Origin {
        directory: InodeId(1),
        name: EntryName::new("a.root").unwrap(),
        owner: "anna".to_owned(),
        group: "cms".to_owned(),
        mode: 0o640,
    };
    let plain = site.terms(CONTENT);
    let without_disks = Terms { disks: Vec::new(), receipt_count: 0, ..plain.clone() };
    for terms in [Terms { origin: Some(origin), ..plain.clone() }, plain, without_disks] {
        let ticket = site.ticket(terms.clone(), &anna);
        let decoded = Ticket::decode(&site.name, ticket.wire()).unwrap();
        assert_eq!(decoded.terms(), &terms);
        assert_eq!(decoded, ticket);
        assert_eq!(decoded.certificate().public_key(), &anna.key.public_key());
    }
}

/// The client that everyone uses knows no tickets: to its validator they are certificates.
#[test]
fn a_validator_takes_what_the_writer_signs_below_the_content_and_nothing_else() {
    let site = TestSite::new(1, "/cern/cms");
    let anna = site.user(2, "anna");
    let ticket = site.ticket(site.terms(CONTENT), &anna);
    let mut validator = site.validator(&[]);
    validator.add_certificate(ticket.wire()).unwrap();
    let writer = with_ticket(&anna, &ticket);
    let below = |content| site.name.content(content).with_keyword(b"tree-1").with_segment(0);
    let node = signed(below(CONTENT), &writer);
    assert!(is_trusted(&mut validator, &node, NOW_S));
    assert!(!is_trusted(&mut validator, &signed(below(OTHER), &writer), NOW_S));
    assert!(!is_trusted(&mut validator, &signed(site.name.view().to_name(), &writer), NOW_S));
    // Clocks of disks may be wrong by hours.
    validator.add_certificate(ticket.wire()).unwrap();
    let end_s = NOW_S + 3600 + VALIDITY_AFTER_S;
    for (now_s, counts) in [
        (NOW_S - VALIDITY_BEFORE_S, true),
        (end_s, true),
        (NOW_S - VALIDITY_BEFORE_S - 1, false),
        (end_s + 1, false),
    ] {
        validator.add_certificate(ticket.wire()).unwrap();
        validator.add_certificate(site.head.certificate.wire()).unwrap();
        assert_eq!(is_trusted(&mut validator, &node, now_s), counts, "{now_s}");
    }
}

/// Who has somebody's ticket, but not the key, can sign nothing with it.
#[test]
fn a_stolen_ticket_is_worth_nothing() {
    let site = TestSite::new(1, "/cern/cms");
    let (anna, thief) = (site.user(2, "anna"), site.user(3, "thief"));
    let ticket = site.ticket(site.terms(CONTENT), &anna);
    let claim = Claim { content: CONTENT, size: 1, root: [9; 32] };
    let with_stolen = claim.encode(&site.name, &with_ticket(&thief, &ticket)).unwrap();
    let with_own = claim.encode(&site.name, &thief.signer).unwrap();
    for wire in [with_stolen, with_own] {
        let mut validator = site.validator(&[&thief]);
        validator.add_certificate(ticket.wire()).unwrap();
        let check = check_data(&site.name, &data(&wire), &mut validator, NOW_S);
        assert!(matches!(check, Check::Refused(_)), "{check:?}");
    }
    let mut validator = site.validator(&[]);
    validator.add_certificate(ticket.wire()).unwrap();
    let wire = claim.encode(&site.name, &with_ticket(&anna, &ticket)).unwrap();
    let Check::Accepted(found) = check_data(&site.name, &data(&wire), &mut validator, NOW_S) else {
        panic!("the writer's own");
    };
    assert_eq!(found.identity, Identity::Writer(CONTENT));
    assert_eq!(Claim::decode(&site.name, &data(&wire)), Ok(claim));
}

#[test]
fn tickets_of_other_sites_and_other_certificates_are_none() {
    let site = TestSite::new(1, "/cern/cms");
    let other = TestSite::new(2, "/cern/atlas");
    let anna = site.user(3, "anna");
    let foreign = other.ticket(other.terms(CONTENT), &anna);
    assert!(Ticket::decode(&other.name, foreign.wire()).is_ok());
    assert!(Ticket::decode(&site.name, foreign.wire()).is_err());
    assert!(Ticket::decode(&site.name, anna.certificate.wire()).is_err());
    // A certificate for the content, of which nobody said for which disks it is.
    let key_name = site.name.content(CONTENT).with_generic(b"KEY").with_generic(b"1");
    let public_key = anna.key.public_key();
    let request = CertificateRequest {
        key_name: key_name.view(),
        public_key: &public_key,
        issuer_id: b"site",
        version: 1,
        validity: anna.certificate.validity(),
    };
    let bare = request.issue(&site.head.signer).unwrap();
    assert!(Ticket::decode(&site.name, bare.wire()).is_err());
    let self_made = KeySigner::new(Arc::clone(&anna.key), request.certificate_name());
    let mut validator = site.validator(&[]);
    validator.add_certificate(request.issue(&self_made).unwrap().wire()).unwrap();
    let wire = signed(site.name.claim(CONTENT), &self_made);
    assert!(!is_trusted(&mut validator, &wire, NOW_S), "nobody issues a ticket to himself");
}
