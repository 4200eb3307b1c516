//! Own keys on disk.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use byname_keychain::{
    Damage, FileError, Identity, Import, Keychain, KeychainError, TrustStore, VALIDITY_S,
};
use byname_packet::{Data, DataBuilder, Name};
use byname_security::base64::encode_lines;
use byname_security::cert::{Certificate, CertificateRequest, ValidityError};
use byname_security::key::{Algorithm, KeyPair};
use byname_security::trust::{
    Decision, Signed, TrustError, TrustPolicy, Trusted, UnknownKeys, Validator,
};

use crate::{NOW_NS, NOW_S, chmod, mode, name, walk};

fn open(home: &tempfile::TempDir) -> Keychain {
    Keychain::open(&home.path().join("byname/keys")).unwrap()
}

fn create(keychain: &Keychain, prefix: &str) -> Identity {
    keychain.create_identity(name(prefix).view(), Algorithm::Ed25519, NOW_NS).unwrap()
}

/// Decision of a validator with this policy and these certificates on a packet of `identity`.
fn decide(policy: TrustPolicy, identity: &Identity, served: &[Certificate]) -> Decision {
    let packet = identity.prefix.with_generic(b"file");
    let mut wire = Vec::new();
    DataBuilder::new(packet.view()).encode(b"x", &identity.signer, &mut wire).unwrap();
    let mut validator = Validator::new(policy);
    for certificate in served {
        validator.add_certificate(certificate.wire()).unwrap();
    }
    validator.check(&Signed::from(&Data::decode(&wire).unwrap()), NOW_S)
}

fn only_file(dir: &Path, suffix: &str) -> PathBuf {
    let mut files = walk(dir).into_iter().filter(|path| path.to_string_lossy().ends_with(suffix));
    let file = files.next().unwrap();
    assert_eq!(files.next(), None);
    file
}

#[test]
fn a_new_identity_survives_reopening_and_signs_for_its_name() {
    let home = tempfile::tempdir().unwrap();
    let keychain = open(&home);
    assert!(keychain.identity(name("/lab").view()).unwrap().is_none());
    for (prefix, algorithm) in [
        ("/lab", Algorithm::Ed25519),
        ("/", Algorithm::EcdsaP256),
        ("/with%20space/%C3%A4/v=7", Algorithm::Ed25519),
    ] {
        let prefix = name(prefix);
        let made = keychain.create_identity(prefix.view(), algorithm, NOW_NS).unwrap();
        let read = open(&home).identity(prefix.view()).unwrap().unwrap();
        assert_eq!(read.prefix, prefix);
        assert_eq!(read.certificate, made.certificate);
        assert_eq!(read.signer.key().algorithm(), algorithm);
        assert_eq!(read.signer.key().key_id(), made.certificate.key_id());
        let mut policy = TrustPolicy::default();
        policy.add_anchor(prefix.clone(), made.certificate.key_id());
        let served = keychain.certificates_to_serve(prefix.view()).unwrap();
        assert!(matches!(decide(policy, &read, &served), Decision::Trusted(_)));
    }
    assert_eq!(keychain.list().unwrap().len(), 3);
}

#[test]
fn a_new_certificate_is_self_signed_and_valid_for_ten_years_from_an_hour_ago() {
    let home = tempfile::tempdir().unwrap();
    let certificate = create(&open(&home), "/lab").certificate;
    assert!(certificate.is_self_signed());
    assert_eq!(certificate.identity(), name("/lab").view());
    assert_eq!(certificate.key_component().value.len(), 8);
    let version = certificate.name().last().unwrap().version();
    assert_eq!(version, Some(NOW_S * 1_000_000));
    assert_eq!(certificate.check_validity(NOW_S - 3600), Ok(()));
    assert_eq!(certificate.check_validity(NOW_S + VALIDITY_S), Ok(()));
    let end = NOW_S + VALIDITY_S;
    assert_eq!(certificate.check_validity(end + 1), Err(ValidityError::Expired(end)));
    assert!(end > NOW_S + 3649 * 86_400);
}

#[test]
fn everything_on_disk_is_private() {
    let home = tempfile::tempdir().unwrap();
    let keychain = open(&home);
    create(&keychain, "/lab");
    keychain.rotate(name("/lab").view(), NOW_NS + 1).unwrap();
    let paths = walk(keychain.dir());
    assert_eq!(paths.len(), 8, "{paths:?}");
    for path in paths {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&path), expected, "{}", path.display());
    }
    assert_eq!(mode(keychain.dir()), 0o700);
}

#[test]
fn wider_permissions_are_refused_with_the_command_that_repairs_them() {
    let home = tempfile::tempdir().unwrap();
    let keychain = open(&home);
    create(&keychain, "/lab");
    let prefix = name("/lab");
    let key = only_file(keychain.dir(), ".pk8");
    for wide in [0o604, 0o640, 0o660, 0o622, 0o611] {
        chmod(&key, wide);
        let error = keychain.identity(prefix.view()).unwrap_err();
        let KeychainError::File(FileError::TooOpen { path, mode, .. }) = &error else {
            panic!("{error}")
        };
        assert_eq!((path, *mode), (&key, wide));
        let message = error.to_string();
        assert!(message.contains(&format!("chmod go= '{}'", key.display())), "{message}");
    }
    chmod(&key, 0o400);
    assert!(keychain.identity(prefix.view()).unwrap().is_some());
    chmod(keychain.dir(), 0o750);
    let error = Keychain::open(keychain.dir()).unwrap_err();
    assert!(error.to_string().contains("mode 0750"), "{error}");
    chmod(keychain.dir(), 0o700);
}

#[test]
fn creating_again_returns_the_same_key() {
    let home = tempfile::tempdir().unwrap();
    let keychain = open(&home);
    let first = create(&keychain, "/lab");
    let again = create(&keychain, "/lab");
    assert_eq!(first.certificate, again.certificate);
    assert_eq!(keychain.list().unwrap().len(), 1);
}

#[test]
fn the_longest_identity_above_a_name_is_found() {
    let home = tempfile::tempdir().unwrap();
    let keychain = open(&home);
    create(&keychain, "/lab");
    create(&keychain, "/lab/run7");
    let found = |uri: &str| {
        keychain.identity_for(name(uri).view()).unwrap().map(|found| found.prefix.to_string())
    };
    assert_eq!(found("/lab/run7/x").as_deref(), Some("/lab/run7"));
    assert_eq!(found("/lab/run8").as_deref(), Some("/lab"));
    assert_eq!(found("/labor"), None);
}

#[test]
fn a_rotated_key_counts_for_those_who_trust_the_old_one() {
    let home = tempfile::tempdir().unwrap();
    let keychain = open(&home);
    let prefix = name("/lab");
    let old = create(&keychain, "/lab");
    let new = keychain.rotate(prefix.view(), NOW_NS + 1).unwrap();
    assert_ne!(new.certificate.key_id(), old.certificate.key_id());
    assert_eq!(new.certificate.issuer(), Some(old.certificate.name()));
    assert_eq!(new.chain, [new.certificate.clone(), old.certificate.clone()]);
    let served = keychain.certificates_to_serve(prefix.view()).unwrap();
    assert_eq!(served.len(), 3, "the new key's own certificate too");
    for trusted in [&old, &new] {
        let mut policy = TrustPolicy::default();
        policy.add_anchor(prefix.clone(), trusted.certificate.key_id());
        let decision = decide(policy, &new, &served);
        assert!(matches!(decision, Decision::Trusted(Trusted::Anchored { .. })), "{decision:?}");
    }
    let infos = keychain.list().unwrap();
    let current: Vec<_> = infos.iter().filter(|info| info.is_current).collect();
    assert_eq!(infos.len(), 2);
    assert_eq!(current.len(), 1);
    assert_eq!(current[0].key_id, new.certificate.key_id());
    assert_eq!(open(&home).identity(prefix.view()).unwrap().unwrap().certificate, new.certificate);
}

#[test]
fn a_revoked_key_signs_nothing_more_and_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let keychain = open(&home);
    let prefix = name("/lab");
    let old = create(&keychain, "/lab");
    let key_id = old.certificate.key_id();
    assert!(keychain.revoke(key_id).unwrap().is_revoked);
    assert!(keychain.identity(prefix.view()).unwrap().is_none());
    let error = keychain.rotate(prefix.view(), NOW_NS).unwrap_err();
    assert!(matches!(error, KeychainError::NoIdentity { .. }));
    assert!(error.to_string().contains("byname key generate /lab"), "{error}");
    // A new key is self-signed: the revoked one vouches for nothing.
    let new = create(&keychain, "/lab");
    assert!(new.certificate.is_self_signed());
    assert_ne!(new.certificate.key_id(), key_id);
    let store = TrustStore::open(&home.path().join("trust")).unwrap();
    let policy = keychain.trust_policy(&store, UnknownKeys::Refuse).unwrap();
    let served = keychain.certificates_to_serve(prefix.view()).unwrap();
    assert!(matches!(decide(policy.clone(), &new, &served), Decision::Trusted(_)));
    let refused = decide(policy, &old, &served);
    assert!(matches!(refused, Decision::Refused(TrustError::Revoked { .. })), "{refused:?}");
    let error = keychain.revoke(byname_security::key::KeyId([0; 32])).unwrap_err();
    assert!(matches!(error, KeychainError::NoSuchKey { .. }));
}

#[test]
fn own_keys_are_anchors_for_their_own_names_only() {
    let home = tempfile::tempdir().unwrap();
    let keychain = open(&home);
    let lab = create(&keychain, "/lab");
    let mut store = TrustStore::open(&home.path().join("trust")).unwrap();
    let stranger = byname_security::key::KeyId([9; 32]);
    store.add_anchor(name("/other"), stranger).unwrap();
    let policy = keychain.trust_policy(&store, UnknownKeys::TrustOnFirstUse).unwrap();
    assert_eq!(policy.unknown_keys, UnknownKeys::TrustOnFirstUse);
    let anchors: BTreeSet<_> =
        policy.anchors.iter().map(|anchor| (anchor.prefix.to_string(), anchor.key)).collect();
    let expected = [("/lab".to_owned(), lab.certificate.key_id()), ("/other".to_owned(), stranger)];
    assert_eq!(anchors, BTreeSet::from(expected));
}

#[test]
fn certificates_are_exported_and_imported_as_other_software_does() {
    let home = tempfile::tempdir().unwrap();
    let keychain = open(&home);
    let lab = create(&keychain, "/lab");
    let alice = create(&keychain, "/lab/alice");
    let text = keychain.export_certificate(alice.certificate.key_id()).unwrap();
    assert!(text.lines().all(|line| line.len() <= 64));
    let exported = Certificate::decode(&byname_security::base64::decode_lines(&text).unwrap());
    assert_eq!(exported.unwrap(), alice.certificate);

    // The lab certifies alice's key; from then on her packets point to that certificate.
    let request = CertificateRequest {
        key_name: alice.certificate.key_name(),
        public_key: alice.certificate.public_key(),
        issuer_id: b"lab",
        version: 1,
        validity: alice.certificate.validity(),
    };
    let issued = request.issue(&lab.signer).unwrap();
    let only = |certificate: &Certificate| Import {
        certificates: vec![certificate.clone()],
        ..Import::default()
    };
    let imported = keychain.import(only(&issued), NOW_NS).unwrap();
    assert_eq!(imported, [request.certificate_name()]);
    let alice = keychain.identity(name("/lab/alice").view()).unwrap().unwrap();
    assert_eq!(alice.certificate, issued);
    let mut policy = TrustPolicy::default();
    policy.add_anchor(name("/lab"), lab.certificate.key_id());
    let served = [issued.clone(), lab.certificate.clone()];
    assert!(matches!(decide(policy, &alice, &served), Decision::Trusted(_)));

    let other_home = tempfile::tempdir().unwrap();
    let elsewhere = open(&other_home);
    let error = elsewhere.import(only(&issued), NOW_NS).unwrap_err();
    assert!(matches!(error, KeychainError::NotOurs { .. }), "{error}");
    let error = keychain.export_certificate(byname_security::key::KeyId([0; 32])).unwrap_err();
    assert!(matches!(error, KeychainError::NoSuchKey { .. }));
}

/// Its packets would point to a certificate that no reader accepts.
#[test]
fn an_altered_certificate_is_not_imported() {
    let home = tempfile::tempdir().unwrap();
    let keychain = open(&home);
    let lab = create(&keychain, "/lab");
    let mut wire = lab.certificate.wire().to_vec();
    let at = wire.len() - 64;
    wire[at..].fill(0);
    let forged = Certificate::decode(&wire).unwrap();
    let certificates = vec![forged];
    let import = Import { certificates, ..Import::default() };
    let error = keychain.import(import, NOW_NS).unwrap_err();
    assert!(error.to_string().contains("altered or forged"), "{error}");
    let served = keychain.certificates_to_serve(name("/lab").view()).unwrap();
    assert_eq!(served, [lab.certificate]);
}

#[test]
fn imported_keys_keep_their_names_and_overwrite_nothing() {
    let (home, other_home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (keychain, elsewhere) = (open(&home), open(&other_home));
    let lab = create(&keychain, "/lab");
    let copy = |identity: &byname_keychain::Identity, make_current| Import {
        certificates: vec![identity.certificate.clone()],
        keys: vec![(
            None,
            KeyPair::from_pkcs8(&identity.signer.key().to_pkcs8().unwrap()).unwrap(),
        )],
        make_current,
        ..Import::default()
    };
    // Where there is none, it signs; where there is another, only if wished.
    elsewhere.import(copy(&lab, false), NOW_NS).unwrap();
    let moved = elsewhere.identity(name("/lab").view()).unwrap().unwrap();
    assert_eq!(moved.certificate, lab.certificate);
    let third_home = tempfile::tempdir().unwrap();
    let third = open(&third_home);
    let own = create(&third, "/lab");
    let current = || third.identity(name("/lab").view()).unwrap().unwrap().certificate;
    third.import(copy(&lab, false), NOW_NS).unwrap();
    assert_eq!(current(), own.certificate);
    third.import(copy(&lab, true), NOW_NS).unwrap();
    assert_eq!(current(), lab.certificate);
    assert_eq!(third.list().unwrap().len(), 2);
    let (key, certificate) = third.key_pair(own.certificate.key_id()).unwrap();
    assert_eq!((key.key_id(), certificate), (own.certificate.key_id(), own.certificate));

    // The same name with another key.
    let key_name = lab.certificate.key_name().to_name();
    let seeded = || KeyPair::ed25519_from_seed(&[5; 32]);
    let named = |name: Option<Name>| Import { keys: vec![(name, seeded())], ..Import::default() };
    let error = third.import(named(Some(key_name)), NOW_NS).unwrap_err();
    assert!(matches!(error, KeychainError::Taken { .. }), "{error}");
    // A name alone is enough for a key; without any, an identity is asked for.
    third.import(named(Some(name("/x/KEY/1"))), NOW_NS).unwrap();
    assert_eq!(
        third.identity(name("/x").view()).unwrap().unwrap().signer.key().key_id(),
        seeded().key_id()
    );
    let error = third.import(named(Some(name("/x/1"))), NOW_NS).unwrap_err();
    assert!(matches!(error, KeychainError::Import(Damage::KeyName { .. })), "{error}");
    assert!(matches!(third.import(named(None), NOW_NS), Err(KeychainError::Nameless)));
    let under = Import { identity: Some(name("/y")), ..named(None) };
    third.import(under, NOW_NS).unwrap();
    assert!(third.identity(name("/y").view()).unwrap().is_some());
}

#[test]
fn damaged_files_are_errors_that_name_the_file() {
    for (suffix, content) in [
        (".pk8", "no key"),
        (".ndncert", "no certificate!"),
        (".ndncert", "AAAA"),
        ("identity", "not a name"),
        ("current", "zz"),
        ("current", "../../x"),
        ("current", "abc"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let keychain = open(&home);
        create(&keychain, "/lab");
        let file = only_file(keychain.dir(), suffix);
        fs::write(&file, content).unwrap();
        let error = keychain.identity(name("/lab").view()).unwrap_err();
        let KeychainError::Damaged { path, .. } = &error else { panic!("{suffix}: {error}") };
        assert_eq!(path, &file);
        assert!(error.to_string().contains("is damaged"), "{error}");
        // Nothing is overwritten by a new identity.
        let create = keychain.create_identity(name("/lab").view(), Algorithm::Ed25519, NOW_NS);
        assert!(matches!(create, Err(KeychainError::Damaged { .. })));
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
    }
}

#[test]
fn a_missing_or_overlong_file_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let keychain = open(&home);
    create(&keychain, "/lab");
    let key = only_file(keychain.dir(), ".pk8");
    fs::write(&key, vec![0; 20_000]).unwrap();
    let error = keychain.list().unwrap_err();
    assert!(matches!(error, KeychainError::File(FileError::TooLong { .. })), "{error}");
    for gone in [".pk8", ".ndncert", "current", "identity"] {
        let home = tempfile::tempdir().unwrap();
        let keychain = open(&home);
        create(&keychain, "/lab");
        fs::remove_file(only_file(keychain.dir(), gone)).unwrap();
        let error = keychain.identity(name("/lab").view()).unwrap_err();
        assert!(matches!(error, KeychainError::Damaged { .. }), "{gone}: {error}");
    }
}

#[test]
fn what_a_dead_process_left_is_ignored_and_cleared() {
    let home = tempfile::tempdir().unwrap();
    let keychain = open(&home);
    // Died while creating /lab: the directory was not renamed yet.
    create(&keychain, "/other");
    let folder = |prefix: &str| only_file(keychain.dir(), prefix).parent().unwrap().to_owned();
    let other = folder("identity");
    let lab = byname_packet::sha256(&[name("/lab").view().value()]);
    let lab: String = lab[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let left = keychain.dir().join(format!(".tmp-{lab}"));
    fs::create_dir(&left).unwrap();
    fs::write(left.join("identity"), "/lab\n").unwrap();
    // Died while replacing a file of /other.
    fs::write(other.join(".tmp-current"), "00").unwrap();
    // Somebody's own file.
    fs::write(keychain.dir().join("notes.txt"), "mine").unwrap();

    assert!(keychain.identity(name("/lab").view()).unwrap().is_none());
    assert_eq!(keychain.list().unwrap().len(), 1);
    create(&keychain, "/lab");
    keychain.rotate(name("/other").view(), NOW_NS).unwrap();
    assert_eq!(keychain.list().unwrap().len(), 3);
    let left: Vec<_> = walk(keychain.dir())
        .into_iter()
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(".tmp"))
        .collect();
    assert_eq!(left, Vec::<PathBuf>::new());
    assert!(keychain.dir().join("notes.txt").exists());
}

#[test]
fn a_rotation_cut_short_leaves_the_old_key_current() {
    let home = tempfile::tempdir().unwrap();
    let keychain = open(&home);
    let prefix = name("/lab");
    let old = create(&keychain, "/lab");
    let folder = only_file(keychain.dir(), "identity").parent().unwrap().to_owned();
    let before = fs::read(folder.join("current")).unwrap();
    let new = keychain.rotate(prefix.view(), NOW_NS + 1).unwrap();
    // As if the process had died before `current` was replaced, and before the certificate was.
    fs::write(folder.join("current"), &before).unwrap();
    let now = keychain.identity(prefix.view()).unwrap().unwrap();
    assert_eq!(now.certificate, old.certificate);
    for path in walk(&folder) {
        let text = fs::read_to_string(&path).unwrap_or_default();
        if text == encode_lines(new.certificate.wire()) {
            fs::remove_file(path).unwrap();
        }
    }
    let now = keychain.identity(prefix.view()).unwrap().unwrap();
    assert_eq!(now.certificate, old.certificate);
    assert_eq!(keychain.list().unwrap().len(), 2);
    let again = keychain.rotate(prefix.view(), NOW_NS + 2).unwrap();
    assert_eq!(again.certificate.issuer(), Some(old.certificate.name()));
}

const CHILD_DIR: &str = "BYNAME_TEST_KEYCHAIN";

#[test]
fn processes_that_create_at_once_end_up_with_one_key() {
    if let Some(dir) = std::env::var_os(CHILD_DIR) {
        // This is one of the processes that the test below starts.
        let keychain = Keychain::open(Path::new(&dir)).unwrap();
        println!("KEY {}", create(&keychain, "/lab").certificate.key_id());
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("keys");
    let test = "keychain::processes_that_create_at_once_end_up_with_one_key";
    let child = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(CHILD_DIR, &dir)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..8).map(|_| child()).collect();
    let mut keys = BTreeSet::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let at = text.find("KEY ").unwrap();
        keys.insert(text[at..].lines().next().unwrap().to_owned());
    }
    assert_eq!(keys.len(), 1, "{keys:?}");
    let keychain = Keychain::open(&dir).unwrap();
    assert_eq!(keychain.list().unwrap().len(), 1);
    assert_eq!(walk(&dir).len(), 6, "{:?}", walk(&dir));
}
