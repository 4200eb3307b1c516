//! Seals of backups: the head vouches for each file, and who has the certificate of its key can
//! look at that anywhere.

use std::fs;

use serde_json::Value;

use crate::backups::History;
use crate::harness::Home;

/// The sum's frame is the last of a file of a backup: 32 octets behind 5.
const SUM_BYTES: usize = 37;

/// Where the frame of the seal begins, which is before it.
fn seal_at(octets: &[u8]) -> usize {
    let sum_at = octets.len() - SUM_BYTES;
    let is_seal = |at: &usize| {
        let Some(length) = octets.get(at + 1..at + 5) else { return false };
        let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
        octets[*at] == 6 && at + 5 + length == sum_at
    };
    (16..sum_at).rev().find(is_seal).expect("a seal")
}

/// The same with the sum of all of it.
fn with_sum(octets: &[u8]) -> Vec<u8> {
    [octets, &[5, 0, 0, 0, 32], &blake3::hash(octets).as_bytes()[..]].concat()
}

/// Whoever can write to a backup makes one of his own, whole and with the right sum: it is not what
/// the head has sealed.
#[test]
fn a_backup_that_somebody_else_has_made_is_refused() {
    let history = History::new();
    let site = &history.site;
    let octets = fs::read(&history.whole).unwrap();
    let sum_at = octets.len() - SUM_BYTES;
    let before = |end: usize| *blake3::hash(&octets[..end]).as_bytes();
    let seal = seal_at(&octets);
    assert_eq!(octets[sum_at + 5..], before(sum_at));
    let forged = site.home.path().join("forged");
    let refused = |octets: &[u8], words: &str| {
        fs::write(&forged, octets).unwrap();
        let forged = forged.to_str().unwrap();
        let args = ["site", "restore", forged, "--no-disks", "--dir", "no"];
        site.home.run(&args).fails_with(5, words);
    };
    refused(&with_sum(&octets[..seal]), "not sealed");
    // A time of the head's that is in all of them, altered.
    let mut other = octets[..sum_at].to_vec();
    let at = other.windows(9).position(|it| it == b"\"at_ns\":1").unwrap();
    other[at + 9] = if other[at + 9] == b'0' { b'1' } else { b'0' };
    refused(&with_sum(&other), "its seal is not the site's");
    // The seal of another backup.
    site.done(&["mkdir", "/lab/later"]);
    let later = site.home.path().join("later.byname-backup");
    site.run(&["backup", later.to_str().unwrap()]).ok();
    let later = fs::read(&later).unwrap();
    let swapped = [&later[..seal_at(&later)], &octets[seal..sum_at]].concat();
    refused(&with_sum(&swapped), "its seal is not the site's");
    assert_eq!(history.look(&[&history.whole]), [false, true, true]);
}

/// On the machine where backups are there need not be the key of the site.
#[test]
fn seals_are_checked_by_a_certificate_and_nobody_is_told_that_they_were_who_has_none() {
    let history = History::new();
    let elsewhere = Home::new();
    let stranger = Home::new();
    stranger.run(&["key", "generate", "/lab"]).ok();
    let certificate = |home: &Home| {
        let file = elsewhere.path().join("certificate");
        fs::write(&file, home.run(&["key", "export", "/lab"]).ok().stdout()).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let whole = fs::read(&history.whole).unwrap();
    let file = elsewhere.path().join("unsealed");
    fs::write(&file, with_sum(&whole[..seal_at(&whole)])).unwrap();
    let unsealed = file.to_str().unwrap();
    let verify = |args: &[&str]| elsewhere.run(&[&["site", "backup", "verify"], args].concat());
    let seals = |args: &[&str]| {
        let line: Value = serde_json::from_str(&verify(args).ok().stdout()).unwrap();
        line["seals"].as_str().unwrap().to_owned()
    };
    for from in [&history.whole, &history.to] {
        let said = verify(&[from]).ok().stdout();
        assert!(said.ends_with("/lab: rows OK, seals not checked\n"), "{said}");
        assert_eq!(seals(&[from, "--json"]), "unchecked");
        let own = certificate(&history.site.home);
        let said = verify(&[from, "--certificate", &own]).ok().stdout();
        assert!(said.ends_with("/lab: OK\n"), "{said}");
        assert_eq!(seals(&[from, "--json", "--certificate", &own]), "verified");
        assert_eq!(seals(&[unsealed, "--json", "--certificate", &own]), "missing");
        let other = certificate(&stranger);
        verify(&[from, "--certificate", &other]).fails_with(5, "its seal is not the site's");
    }
}
