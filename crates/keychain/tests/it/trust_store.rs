//! The trust file.

use std::fs;
use std::path::Path;

use byname_keychain::{FileError, LineProblem, TrustStore, TrustStoreError, parse_trust};
use byname_security::key::KeyId;
use byname_security::trust::Anchor;
use proptest::prelude::*;

use crate::{chmod, mode, name};

const ALICE: KeyId = KeyId([1; 32]);
const BOB: KeyId = KeyId([2; 32]);

fn open(home: &tempfile::TempDir) -> TrustStore {
    TrustStore::open(&home.path().join("byname/trust")).unwrap()
}

fn write(home: &tempfile::TempDir, text: &str) {
    let path = open(home).path();
    fs::write(path, text).unwrap();
}

#[test]
fn anchors_are_added_listed_and_removed() {
    let home = tempfile::tempdir().unwrap();
    let mut store = open(&home);
    assert_eq!(store.anchors().count(), 0);
    assert!(store.add_anchor(name("/lab"), ALICE).unwrap());
    assert!(!store.add_anchor(name("/lab"), ALICE).unwrap());
    assert!(store.add_anchor(name("/lab"), BOB).unwrap());
    assert!(store.add_anchor(name("/a%20b/v=7"), BOB).unwrap());
    let again = open(&home);
    let listed: Vec<&Anchor> = again.anchors().collect();
    assert_eq!(listed.len(), 3);
    assert_eq!(*listed[2], Anchor { prefix: name("/a%20b/v=7"), key: BOB });

    let removed = store.remove_anchors(name("/lab").view(), Some(BOB)).unwrap();
    assert_eq!(removed, [Anchor { prefix: name("/lab"), key: BOB }]);
    assert!(store.remove_anchors(name("/lab/run7").view(), None).unwrap().is_empty());
    assert_eq!(store.remove_anchors(name("/lab").view(), None).unwrap().len(), 1);
    let again = open(&home);
    assert_eq!(again.anchors().map(|anchor| anchor.key).collect::<Vec<_>>(), [BOB]);
}

#[test]
fn a_revoked_key_is_in_the_policy() {
    let home = tempfile::tempdir().unwrap();
    let mut store = open(&home);
    store.add_anchor(name("/lab"), ALICE).unwrap();
    assert!(store.revoke(ALICE).unwrap());
    assert!(!store.revoke(ALICE).unwrap());
    let policy = open(&home).policy();
    assert!(policy.revoked.contains(&ALICE));
    assert_eq!(policy.anchors.len(), 1);
}

#[test]
fn the_file_is_text_for_people_and_their_comments_stay() {
    let home = tempfile::tempdir().unwrap();
    let mine = format!("# the lab, key confirmed by phone\n\n  anchor   {ALICE}  /lab\n#end");
    write(&home, &mine);
    let mut store = open(&home);
    store.revoke(BOB).unwrap();
    let text = fs::read_to_string(store.path()).unwrap();
    assert_eq!(text, format!("{mine}\nrevoked {BOB}\n"));

    let fresh = tempfile::tempdir().unwrap();
    let mut store = open(&fresh);
    store.add_anchor(name("/lab"), ALICE).unwrap();
    let text = fs::read_to_string(store.path()).unwrap();
    assert!(text.starts_with("# Keys that byname trusts"), "{text}");
    assert!(text.ends_with(&format!("\nanchor {ALICE} /lab\n")), "{text}");
}

#[test]
fn a_line_that_says_nothing_known_is_an_error_with_file_and_line() {
    let home = tempfile::tempdir().unwrap();
    for (line, is_expected) in [
        ("trust me", (|p| matches!(p, LineProblem::Form { .. })) as fn(&LineProblem) -> bool),
        ("anchor", |p| matches!(p, LineProblem::Form { .. })),
        (&format!("anchor {ALICE} /lab /more"), |p| matches!(p, LineProblem::Form { .. })),
        ("anchor SHA256:short /lab", |p| matches!(p, LineProblem::Key(_))),
        (&format!("anchor {ALICE} lab"), |p| matches!(p, LineProblem::Name(_))),
        ("revoked md5", |p| matches!(p, LineProblem::Key(_))),
    ] {
        let before = format!("# one\nrevoked {BOB}\n{line}\n");
        write(&home, &before);
        let dir = home.path().join("byname/trust");
        let error = TrustStore::open(&dir).unwrap_err();
        let message = error.to_string();
        assert!(
            message.starts_with(&format!("{}:3: ", dir.join("anchors").display())),
            "{message}"
        );
        let TrustStoreError::Line { line: 3, problem, .. } = &error else { panic!("{error}") };
        assert!(is_expected(problem), "{message}");
        // A store opened before refuses to write over what it does not understand.
        fs::remove_file(dir.join("anchors")).unwrap();
        let mut store = open(&home);
        write(&home, &before);
        assert!(store.revoke(ALICE).is_err());
        assert_eq!(fs::read_to_string(store.path()).unwrap(), before);
        fs::remove_file(dir.join("anchors")).unwrap();
    }
}

#[test]
fn files_that_others_may_change_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let mut store = open(&home);
    store.add_anchor(name("/lab"), ALICE).unwrap();
    assert_eq!(mode(&store.path()), 0o600);
    let dir = store.path().parent().map(Path::to_owned).unwrap();
    assert_eq!(mode(&dir), 0o700);
    let refused = |path: &Path, wide: u32| {
        let error = TrustStore::open(&dir).unwrap_err();
        let expected = format!("chmod go-w '{}'", path.display());
        assert!(error.to_string().contains(&expected), "{error}");
        assert!(matches!(
            error,
            TrustStoreError::File(FileError::TooOpen { mode, .. }) if mode == wide
        ));
    };
    for wide in [0o620, 0o602, 0o666] {
        chmod(&store.path(), wide);
        refused(&store.path(), wide);
    }
    // Others may read it: it holds nothing secret.
    chmod(&store.path(), 0o644);
    assert_eq!(TrustStore::open(&dir).unwrap().anchors().count(), 1);
    chmod(&dir, 0o777);
    refused(&dir, 0o777);
}

#[test]
fn binary_and_endless_files_are_errors() {
    let home = tempfile::tempdir().unwrap();
    let path = open(&home).path();
    let dir = path.parent().unwrap();
    fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(matches!(TrustStore::open(dir), Err(TrustStoreError::NotText { .. })));
    fs::write(&path, vec![b'\n'; (1 << 20) + 1]).unwrap();
    let long = TrustStore::open(dir);
    assert!(matches!(long, Err(TrustStoreError::File(FileError::TooLong { .. }))));
}

#[test]
fn changes_made_at_once_are_all_kept() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("trust");
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let dir = &dir;
            scope.spawn(move || {
                let mut store = TrustStore::open(dir).unwrap();
                for index in 0..8 {
                    store.add_anchor(name(&format!("/lab/{thread}/{index}")), ALICE).unwrap();
                }
            });
        }
    });
    assert_eq!(TrustStore::open(&dir).unwrap().anchors().count(), 32);
}

proptest! {
    #[test]
    fn any_text_is_a_policy_or_an_error_with_a_line_number(
        lines in prop::collection::vec("(anchor|revoked|#|x)?[ \t]?(SHA256:)?[!-~ä ]{0,60}", 0..8),
    ) {
        if let Err((line, _)) = parse_trust(&lines.join("\n")) {
            prop_assert!((1..=lines.len()).contains(&line));
        }
    }
}
