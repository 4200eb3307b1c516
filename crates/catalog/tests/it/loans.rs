//! Keys that users lend for a while.

use byname_catalog::{AddKey, Command, KeyHolder, LOAN_NS_MAX, LendKey, Refusal};

use crate::support::TestSite;

const OWN: &[u8] = b"\x08\x04anna\x08\x03own";

fn add(name: &[u8], user: &str) -> Command {
    let (holder, certificate) = (KeyHolder::User(user.into()), b"certificate".to_vec());
    Command::AddKey(AddKey { holder, name: name.to_vec(), certificate })
}

fn lend(lender: &[u8], name: &[u8], expires_ns: u64) -> Command {
    let (lender, name) = (lender.to_vec(), name.to_vec());
    Command::LendKey(LendKey { lender, name, certificate: b"c".to_vec(), expires_ns })
}

fn key(number: usize) -> Vec<u8> {
    [b"\x08\x04anna\x08\x03".to_vec(), format!("{number:03}").into_bytes()].concat()
}

fn of_anna() -> TestSite {
    let mut site = TestSite::in_memory().0;
    site.run("op", add(OWN, "anna")).unwrap();
    site
}

#[test]
fn a_key_is_lent_for_seven_days_at_most_and_by_no_lent_one() {
    let mut site = of_anna();
    let soon = site.now_ns + 1000;
    site.run("anna", lend(OWN, &key(1), soon)).unwrap();
    let row = site.reader("op").key(&key(1)).unwrap().unwrap();
    assert_eq!(row.holder, KeyHolder::User("anna".into()));
    assert!(row.counts_at(soon - 1) && !row.counts_at(soon));
    // For longer, by the same command.
    site.run("anna", lend(OWN, &key(1), soon + 1000)).unwrap();
    assert!(site.reader("op").key(&key(1)).unwrap().unwrap().counts_at(soon));
    for (refusal, user, command) in [
        (Refusal::BadLoan, "anna", lend(OWN, &key(2), site.now_ns)),
        (Refusal::BadLoan, "anna", lend(OWN, &key(2), site.now_ns + LOAN_NS_MAX + 9_999_999)),
        (Refusal::NotLendable, "anna", lend(&key(1), &key(2), soon)),
        (Refusal::UnknownKey, "anna", lend(&key(7), &key(2), soon)),
        (Refusal::NotLendable, "bert", lend(OWN, &key(2), soon)),
        (Refusal::NotLendable, "anna", lend(OWN, b"\x08\x04bert\x08\x01k", soon)),
        (Refusal::NotLendable, "anna", lend(OWN, b"no name", soon)),
        (Refusal::KeyOfAnother, "anna", lend(OWN, OWN, soon)),
    ] {
        assert_eq!(site.run(user, command.clone()), Err(refusal), "{user}: {command:?}");
    }
    assert_eq!(site.reader("op").keys(b"", 9).unwrap().len(), 2);
}

#[test]
fn loans_end_with_their_lender_and_when_they_are_recalled() {
    let mut site = of_anna();
    let soon = site.now_ns + 1_000_000;
    for number in 1..=2 {
        site.run("anna", lend(OWN, &key(number), soon)).unwrap();
    }
    let recall = |name: &[u8]| Command::RecallKey { name: name.to_vec() };
    assert_eq!(site.run("bert", recall(&key(1))), Err(Refusal::NotLendable));
    assert_eq!(site.run("anna", recall(OWN)), Err(Refusal::NotLendable));
    site.run("anna", recall(&key(1))).unwrap();
    assert_eq!(site.run("anna", recall(&key(1))), Err(Refusal::UnknownKey));
    site.run("op", Command::RemoveKey { name: OWN.to_vec() }).unwrap();
    assert_eq!(site.reader("op").keys(b"", 9).unwrap(), []);
}

#[test]
fn a_user_lends_so_many_keys_and_what_is_over_makes_room() {
    let mut site = of_anna();
    let soon = site.now_ns + 1_000_000;
    for number in 0..64 {
        site.run("anna", lend(OWN, &key(number), soon)).unwrap();
    }
    assert_eq!(site.run("anna", lend(OWN, &key(64), soon)), Err(Refusal::TooManyLoans));
    site.run("anna", lend(OWN, &key(63), soon + 1)).unwrap();
    site.now_ns = soon;
    site.run("anna", lend(OWN, &key(64), soon + 9)).unwrap();
    assert_eq!(site.reader("op").keys(b"", 99).unwrap().len(), 3, "her own, the two last");
}
