//! Replies of the head.

use byname_catalog::id::{DiskId, InodeId, LeaseEpoch, SessionId, TransactionNumber, Version};
use byname_catalog::{
    Acls, Answer, Checksums, Content, Detail, Entry, Inode, Policy, Refusal, Resolution, Times,
    Versions,
};
use byname_packet::{DataBuilder, NullSigner};
use byname_site::{HeadFailure, Outcome, Reply, SiteAnswer};

use crate::support::{CONTENT, TestSite, data};

fn inode(detail: Detail) -> Entry {
    let inode = Inode {
        mode: 0o1777,
        owner: "anna".to_owned(),
        group: "cms".to_owned(),
        link_count: 2,
        times: Times { created_ns: 1, modified_ns: 2, changed_ns: u64::MAX },
        binding: TransactionNumber(1 << 48),
        tree: InodeId(1),
        policy: Policy { space: "main".to_owned(), replica_count: 3, receipt_count: 2 },
        detail,
        acls: Acls::default(),
        versions: Versions::default(),
    };
    Entry { id: InodeId(300), inode }
}

pub(crate) fn answers() -> Vec<Answer> {
    let content = Content {
        version: Version(7),
        size: 8193,
        root: [9; 32],
        checksums: Checksums { adler32: 1, crc32c: u32::MAX },
        replicas: (0..16).map(DiskId).collect(),
    };
    let mut answers = vec![
        Answer::Done,
        Answer::Entry(inode(Detail::File(content.clone()))),
        Answer::Entry(inode(Detail::File(Content { replicas: Vec::new(), ..content }))),
        Answer::Entry(inode(Detail::Directory { parent: InodeId(1) })),
        Answer::Entry(inode(Detail::Symlink { target: b"../a".to_vec() })),
        Answer::Session { session: SessionId(77), expires_ns: 5 },
        Answer::Disk(DiskId(9)),
        Answer::Count(4096),
    ];
    use Resolution::{Drop, Keep, Unknown, Wait};
    answers.extend([Keep, Wait, Drop, Unknown].map(Answer::Resolved));
    answers
}

#[test]
fn every_reply_comes_back_as_it_was() {
    let site = TestSite::new(1, "/cern/cms");
    let ticket = site.ticket(site.terms(CONTENT), &site.user(2, "anna"));
    let mut outcomes: Vec<Outcome> = answers()
        .into_iter()
        .map(|answer| Outcome::Done(Box::new(SiteAnswer::Plain(answer))))
        .collect();
    outcomes.push(Outcome::Done(Box::new(SiteAnswer::Ticket(ticket))));
    let agreed = SiteAnswer::Agreed { share: [3; 32], expires_ns: u64::MAX };
    outcomes.push(Outcome::Done(Box::new(agreed)));
    outcomes.extend((1..=60).map(|number| Outcome::Refused(Refusal::from_number(number).unwrap())));
    let reason = "the disk is full".to_owned();
    outcomes.push(Outcome::Failed { failure: HeadFailure::Engine, reason });
    let name = site.name.command("mkdir");
    for outcome in outcomes {
        let reply = Reply { epoch: LeaseEpoch(3), outcome };
        let wire = reply.encode(name.view(), &site.head.signer).unwrap();
        let found = data(&wire);
        let is_failure = matches!(reply.outcome, Outcome::Failed { .. });
        assert_eq!(found.meta.freshness_ms == 0, is_failure, "only outcomes may be repeated");
        assert_eq!(Reply::decode(&site.name, &found), Ok(reply));
    }
}

#[test]
fn a_long_reason_is_cut_between_characters() {
    let site = TestSite::new(1, "/cern/cms");
    let failure = HeadFailure::Busy;
    let reply =
        |reason| Reply { epoch: LeaseEpoch(3), outcome: Outcome::Failed { failure, reason } };
    let name = site.name.command("mkdir");
    let wire = reply("é".repeat(200)).encode(name.view(), &site.head.signer).unwrap();
    assert_eq!(Reply::decode(&site.name, &data(&wire)), Ok(reply("é".repeat(127))));
}

#[test]
fn what_is_no_reply_is_refused() {
    let site = TestSite::new(1, "/cern/cms");
    let decoded = |content: &[u8]| {
        let name = site.name.command("mkdir");
        let mut wire = Vec::new();
        DataBuilder::new(name.view()).encode(content, &NullSigner, &mut wire).unwrap();
        Reply::decode(&site.name, &data(&wire)).is_ok()
    };
    let epoch = [0xFD, 0xF6, 0x48, 1, 3];
    let done = [0xFD, 0xF6, 0x4A, 0];
    assert!(decoded(&[&epoch[..], &done].concat()));
    assert!(decoded(&[&epoch[..], &done, &[0xF0, 0]].concat()), "of the future, may be ignored");
    assert!(!decoded(&[&epoch[..], &done, &[0xF1, 0]].concat()), "may not be ignored");
    assert!(!decoded(&done), "of no head");
    assert!(!decoded(&epoch), "no outcome");
    assert!(!decoded(&[&epoch[..], &[0xFD, 0xF6, 0x4C, 1, 200]].concat()), "no such refusal");
    assert!(!decoded(&[&epoch[..], &[0xFD, 0xF6, 0x4C, 2, 0, 1]].concat()), "not shortest");
}
