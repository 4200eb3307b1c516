//! Files of other software, read; and what we write, read again. `vectors/security/foreign`.

use std::sync::Arc;

use byname_security::base64;
use byname_security::cert::Certificate;
use byname_security::foreign::{
    FILE_BYTES_MAX, ForeignError, Item, certificate_to_pem, key_to_pem, read,
};
use byname_security::key::{Algorithm, KeyPair};
use byname_security::safe_bag::{SafeBag, SafeBagError};
use proptest::prelude::*;

use crate::identity::{Publisher, name};

fn file(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/security/foreign");
    std::fs::read(format!("{folder}/{name}")).unwrap()
}

fn only(file: &[u8]) -> Item {
    let mut items = read(file).unwrap();
    assert_eq!(items.len(), 1);
    items.pop().unwrap()
}

fn certificate(name: &str) -> Certificate {
    match only(&file(name)) {
        Item::Certificate(certificate) => certificate,
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys_and_certificates_of_ndnd() {
    for (kind, algorithm, identity) in [
        ("ed25519", Algorithm::Ed25519, "/lab/ed"),
        ("ecdsa", Algorithm::EcdsaP256, "/lab/ec"),
        ("rsa", Algorithm::Rsa, "/lab/rsa"),
    ] {
        let certificate = certificate(&format!("ndnd-{kind}.cert"));
        assert_eq!(certificate.identity(), name(identity).view());
        certificate.verify_signed_by(certificate.public_key()).unwrap();
        let Item::Key { name, key } = only(&file(&format!("ndnd-{kind}.key"))) else { panic!() };
        assert_eq!(key.algorithm(), algorithm);
        assert_eq!(key.key_id(), certificate.key_id());
        assert_eq!(name.unwrap().view(), certificate.key_name());
    }
}

#[test]
fn keys_and_certificates_of_python_ndn_and_safe_bags() {
    for kind in ["ecdsa", "rsa"] {
        let certificate = certificate(&format!("python-ndn-{kind}.ndncert"));
        certificate.verify_signed_by(certificate.public_key()).unwrap();
        let privkey = only(&file(&format!("python-ndn-{kind}.privkey")));
        let Item::Key { name: None, key } = privkey else { panic!() };
        assert_eq!(key.key_id(), certificate.key_id());
        for digest in ["sha1", "sha256"] {
            let bag = only(&file(&format!("openssl-{kind}-{digest}.safebag")));
            let Item::SafeBag(bag) = bag else { panic!() };
            assert_eq!(bag.certificate(), &certificate);
            assert_eq!(bag.open(b"opensesame").unwrap().key_id(), certificate.key_id());
            assert_eq!(bag.open(b"open sesame").unwrap_err(), SafeBagError::Passphrase);
        }
    }
}

#[test]
fn several_blocks_in_one_file() {
    let both = [file("ndnd-ecdsa.key"), file("ndnd-ecdsa.cert")].concat();
    let items = read(&both).unwrap();
    assert!(matches!(items[..], [Item::Key { .. }, Item::Certificate(_)]));
}

#[test]
fn what_we_write_is_read_again() {
    let publisher = Publisher::new("/lab", 3);
    let bag = SafeBag::seal(publisher.certificate.clone(), &publisher.key, b"word").unwrap();
    let Item::SafeBag(read_bag) = only(base64::encode_lines(&bag.encode()).as_bytes()) else {
        panic!()
    };
    assert_eq!(read_bag, bag);
    assert_eq!(read_bag.open(b"word").unwrap().key_id(), publisher.key_id());
    let stranger = Publisher::new("/lab", 4);
    let other = SafeBag::seal(publisher.certificate.clone(), &stranger.key, b"word");
    assert_eq!(other.unwrap_err(), SafeBagError::OtherKey);

    let pem = certificate_to_pem(&publisher.certificate);
    assert!(matches!(only(pem.as_bytes()), Item::Certificate(it) if it == publisher.certificate));
    for algorithm in [Algorithm::Ed25519, Algorithm::EcdsaP256, Algorithm::Rsa] {
        let key = Arc::new(KeyPair::generate(algorithm).unwrap());
        let key_name = name("/lab/KEY/x");
        let pem = key_to_pem(key_name.view(), key.clone()).unwrap();
        let Item::Key { name, key: again } = only(pem.as_bytes()) else { panic!() };
        assert_eq!((name, again.key_id()), (Some(key_name), key.key_id()));
        assert_eq!(KeyPair::from_pkcs8(&key.to_pkcs8().unwrap()).unwrap().key_id(), key.key_id());
    }
}

#[test]
fn what_is_nothing_known_is_refused() {
    assert_eq!(read(b"").unwrap_err(), ForeignError::Unknown);
    assert_eq!(read(&vec![b'A'; FILE_BYTES_MAX + 1]).unwrap_err(), ForeignError::TooLong);
    // As long as may be, but nothing but zeros.
    assert_eq!(read(&vec![b'A'; FILE_BYTES_MAX]).unwrap_err(), ForeignError::Unknown);
    assert!(matches!(read(b"no base64!").unwrap_err(), ForeignError::Base64(_)));
    assert_eq!(read(b"-----BEGIN NDN CERT-----\nAAAA").unwrap_err(), ForeignError::Unfinished);
    let cut = file("ndnd-ecdsa.key");
    assert!(read(&cut[..cut.len() / 2]).is_err());
}

proptest! {
    #[test]
    fn any_file_is_taken_calmly(
        octets in proptest::collection::vec(any::<u8>(), 0..200),
        at in any::<prop::sample::Index>(),
        octet in any::<u8>(),
    ) {
        let _ = read(&octets);
        for start in [6u8, 128, 0x30] {
            let _ = read(&[&[start][..], &octets].concat());
        }
        let mut damaged = file("openssl-ecdsa-sha1.safebag");
        let at = at.index(damaged.len());
        damaged[at] = octet;
        let _ = read(&damaged);
    }
}
