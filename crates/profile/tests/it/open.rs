//! From a link and one caller's wishes to endpoints and a client's configuration.

use byname_client::ClientError;
use byname_packet::Name;
use byname_profile::{Environment, Link, OpenOptions, Paths, Profile, ProfileError, UnknownKey};
use byname_security::key::{KeyId, KeyPair};
use byname_security::trust::{TrustError, UnknownKeys};
use byname_transfer::error::ReadError;
use rustix::io::Errno;
use std::time::Duration;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn key() -> KeyId {
    KeyPair::ed25519_from_seed(&[1; 32]).key_id()
}

fn profile(variables: &[(&str, &str)]) -> (tempfile::TempDir, Profile) {
    let home = tempfile::tempdir().unwrap();
    let environment = Environment::of(variables.iter().copied());
    let profile = Profile::at(Paths::below(home.path()), environment).unwrap();
    (home, profile)
}

#[test]
fn the_caller_wins_over_the_link_and_the_link_over_the_configuration() {
    let (_home, profile) = profile(&[("BYNAME_CONNECT", "tcp://configured:1")]);
    let link: Link = "byname:/lab?via=tcp://a:1&via=udp://b:2".parse().unwrap();
    let plain = Link::of_name(name("/lab"));
    let via = OpenOptions { via: vec!["tcp://c:3".parse().unwrap()], ..OpenOptions::default() };
    let connect = OpenOptions { connect: Some("tcp://d:4".parse().unwrap()), ..via.clone() };
    let none = OpenOptions::default();
    for (link, options, expected, asks_all) in [
        (&link, &connect, &["tcp://d:4"][..], false),
        (&link, &via, &["tcp://c:3"], true),
        (&link, &none, &["tcp://a:1", "udp://b:2"], true),
        (&plain, &none, &["tcp://configured:1"], false),
    ] {
        let found = profile.endpoints(link, options).unwrap();
        let shown: Vec<String> = found.list.iter().map(ToString::to_string).collect();
        assert_eq!(
            (shown, found.asks_all),
            (expected.iter().map(|&e| e.into()).collect(), asks_all)
        );
    }
}

#[test]
fn an_address_that_is_none_is_refused_wherever_it_stands() {
    let (_home, configured) = profile(&[("BYNAME_CONNECT", "gopher://x")]);
    let error = configured.forwarders(false).unwrap_err();
    assert!(error.to_string().contains("gopher"), "{error}");
    let (_home, profile) = profile(&[]);
    let link: Link = "byname:/lab?via=gopher://x".parse().unwrap();
    let error = profile.endpoints(&link, &OpenOptions::default()).unwrap_err();
    assert_eq!(error.errno(), Errno::INVAL.raw_os_error());
}

#[test]
fn wishes_win_over_the_configuration() {
    let (_home, profile) = profile(&[("BYNAME_TIMEOUT", "3"), ("BYNAME_BWLIMIT", "1000")]);
    let link = Link::of_name(name("/lab"));
    let config = profile.client_config(&link, &OpenOptions::default()).unwrap();
    assert_eq!((config.timeout, config.retries), (Duration::from_secs(3), 5));
    assert_eq!((config.bytes_per_second, config.transfers), (Some(1000), 8));
    assert!(config.copies.is_none());
    let options = OpenOptions {
        timeout: Some(Duration::from_millis(200)),
        retries: Some(0),
        bytes_per_second: Some(0),
        transfers: Some(0),
        keeps_packets: true,
        ..OpenOptions::default()
    };
    let config = profile.client_config(&link, &options).unwrap();
    assert_eq!((config.timeout, config.retries), (Duration::from_millis(200), 0));
    assert_eq!((config.bytes_per_second, config.transfers), (None, 1));
    assert!(config.copies.is_some());
}

#[test]
fn the_key_of_a_link_counts_for_that_link_and_a_trusted_one_from_then_on() {
    let (home, profile) = profile(&[]);
    let link = Link { key: Some(key()), ..Link::of_name(name("/lab")) };
    let anchors = |link: &Link| {
        let config = profile.client_config(link, &OpenOptions::default()).unwrap();
        let anchors = config.trust.anchors.iter();
        anchors.map(|anchor| (anchor.prefix.to_string(), anchor.key)).collect::<Vec<_>>()
    };
    assert_eq!(anchors(&link), [("/lab".to_owned(), key())]);
    assert_eq!(anchors(&Link::of_name(name("/lab"))), []);
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "a reader needs no state");
    profile.trust(&name("/lab"), key()).unwrap();
    assert_eq!(anchors(&Link::of_name(name("/other"))), [("/lab".to_owned(), key())]);
}

#[test]
fn an_unknown_key_comes_with_the_line_to_run() {
    let (packet, identity) = (name("/lab/x"), name("/lab"));
    let cause = TrustError::UnknownKey { name: packet, key_id: key(), identity };
    let error = ClientError::Read(ReadError::Trust(cause));
    let unknown = UnknownKey::of(&error).unwrap();
    let line = format!("byname trust add 'byname:/lab,key={}'", key());
    assert_eq!(unknown.command(), line);
    assert!(unknown.to_string().ends_with(&line), "{unknown}");
    assert_eq!(ProfileError::from(error).errno(), Errno::NOKEY.raw_os_error());
    assert_eq!(UnknownKey::of(&ClientError::Interrupted), None);
}

#[test]
fn two_profiles_of_one_process_know_nothing_of_each_other() {
    let (_a, strict) = profile(&[("BYNAME_RETRIES", "1")]);
    let (_b, other) = profile(&[("BYNAME_RETRIES", "2")]);
    strict.trust(&name("/lab"), key()).unwrap();
    assert_eq!(strict.trust_policy(UnknownKeys::Refuse).unwrap().anchors.len(), 1);
    assert_eq!(other.trust_policy(UnknownKeys::Refuse).unwrap().anchors.len(), 0);
    assert_ne!(
        strict.settings().number("client.retries"),
        other.settings().number("client.retries")
    );
}

#[test]
fn a_state_that_is_damaged_is_told_by_opening() {
    let (home, profile) = profile(&[]);
    let socket = home.path().join("s");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let link =
        Link { via: vec![format!("unix://{}", socket.display())], ..Link::of_name(name("/x")) };
    let options = OpenOptions::default();
    let endpoints = profile.endpoints(&link, &options).unwrap();
    let connect = || profile.connect(&endpoints, profile.client_config(&link, &options).unwrap());
    assert!(connect().is_ok());
    std::fs::create_dir_all(&profile.paths().state).unwrap();
    std::fs::write(profile.seen_versions().path(), b"\xff").unwrap();
    let error = connect().err().unwrap();
    assert!(matches!(error, ProfileError::Seen(_)), "{error:?}");
    assert_eq!(error.errno(), Errno::UCLEAN.raw_os_error());
}
