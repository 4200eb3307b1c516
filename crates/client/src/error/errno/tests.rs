//! Every variant has its number.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use byname_io::{ConnectError, FrameError, IoError};
use byname_packet::{DecodeError, Name};
use byname_security::cert::CertificateError;
use byname_security::key::{KeyId, KeyPair};
use byname_security::trust::UnsignedKind;

use super::*;
use crate::error::Refusals;

/// Names all variants of an enum; one that is not listed does not compile.
macro_rules! variants {
    ($all:ident, $name:ident, $type:ident { $($variant:ident),+ $(,)? }) => {
        const $all: &[&str] = &[$(stringify!($variant)),+];
        fn $name(value: &$type) -> &'static str {
            match value {
                $($type::$variant { .. } => stringify!($variant),)+
            }
        }
    };
}

variants!(
    CLIENT,
    client_variant,
    ClientError {
        Read,
        NoForwarder,
        NoEndpoint,
        Unreachable,
        Disconnected,
        Io,
        LocalDisk,
        Output,
        InTheWay,
        Busy,
        Exists,
        KeepsChanging,
        NoProgress,
        ListingTooLarge,
        TooMany,
        Thread,
        OtherClient,
        Interrupted,
    }
);
variants!(
    READ,
    read_variant,
    ReadError {
        NotFound,
        NoRoute,
        TimeOut,
        VersionGone,
        BeingWritten,
        BeingListed,
        RootPending,
        NoPermission,
        Unservable,
        RolledBack,
        NotFresh,
        Trust,
        BadUnit,
        BadNode,
        Manifest,
        Protocol,
    }
);
variants!(
    TRUST,
    trust_variant,
    TrustError {
        UnknownKey,
        KeyMismatch,
        OutsideAnchor,
        NotUnder,
        Expired,
        NotYetValid,
        Revoked,
        BadSignature,
        BadDigest,
        Unsigned,
        NoKeyLocator,
        UnsupportedSignature,
        ChainTooLong,
        MalformedCertificate,
        NoCertificate,
        Unvouched,
    }
);

fn name() -> Name {
    "/lab/x".parse().unwrap()
}

fn key() -> KeyId {
    KeyPair::ed25519_from_seed(&[1; 32]).key_id()
}

fn disk(number: Errno) -> io::Error {
    io::Error::from_raw_os_error(number.raw_os_error())
}

fn path() -> PathBuf {
    "/tmp/x".into()
}

fn client_errors() -> Vec<(ClientError, Errno)> {
    let refused =
        ConnectError::NobodyListens { uri: "unix:///x".into(), source: disk(Errno::NOENT) };
    let endpoint = || "tcp://h:1".to_owned();
    vec![
        (ClientError::Read(ReadError::NotFound { name: name() }), Errno::NOENT),
        (
            ClientError::NoForwarder { tried: Refusals::new(vec![refused]).unwrap() },
            Errno::CONNREFUSED,
        ),
        (ClientError::NoEndpoint, Errno::HOSTUNREACH),
        (ClientError::Unreachable { endpoint: endpoint() }, Errno::CONNREFUSED),
        (ClientError::Disconnected { endpoint: endpoint(), source: None }, Errno::CONNRESET),
        (ClientError::Io(IoError::Frame(FrameError("x"))), Errno::PROTO),
        (ClientError::LocalDisk { path: path(), source: disk(Errno::NOSPC) }, Errno::NOSPC),
        (ClientError::Output(disk(Errno::PIPE)), Errno::PIPE),
        (ClientError::Output(io::ErrorKind::WriteZero.into()), Errno::IO),
        (ClientError::InTheWay { path: path(), obstacle: "a directory" }, Errno::EXIST),
        (ClientError::Busy { path: path() }, Errno::BUSY),
        (ClientError::Exists { path: path() }, Errno::EXIST),
        (ClientError::KeepsChanging { name: name(), versions: 5 }, Errno::STALE),
        (ClientError::NoProgress { name: name(), after: Duration::ZERO }, Errno::TIMEDOUT),
        (ClientError::ListingTooLarge { name: name(), bytes: 2, max: 1 }, Errno::FBIG),
        (ClientError::TooMany { what: Limit::OpenFiles, max: 1 }, Errno::MFILE),
        (ClientError::TooMany { what: Limit::Ranges, max: 1 }, Errno::INVAL),
        (ClientError::Thread(disk(Errno::AGAIN)), Errno::AGAIN),
        (ClientError::OtherClient, Errno::BADF),
        (ClientError::Interrupted, Errno::INTR),
    ]
}

fn read_errors() -> Vec<(ReadError, Errno)> {
    let unservable = |reason| ReadError::Unservable { name: name(), reason };
    let protocol = |problem| ReadError::Protocol { name: name(), problem };
    let decode = DecodeError::Truncated { within: "Data" };
    vec![
        (ReadError::NotFound { name: name() }, Errno::NOENT),
        (ReadError::NoRoute { name: name() }, Errno::HOSTUNREACH),
        (ReadError::TimeOut { name: name() }, Errno::TIMEDOUT),
        (ReadError::VersionGone { name: name() }, Errno::STALE),
        (ReadError::BeingWritten { name: name() }, Errno::BUSY),
        (ReadError::BeingListed { name: name() }, Errno::BUSY),
        (ReadError::RootPending { name: name() }, Errno::TIMEDOUT),
        (ReadError::NoPermission { name: name() }, Errno::ACCESS),
        (unservable(ServerReason::ListingTooLarge), Errno::FBIG),
        (unservable(ServerReason::NameTooLong), Errno::NAMETOOLONG),
        (unservable(ServerReason::Unreadable { code: 5 }), Errno::REMOTEIO),
        (ReadError::RolledBack { name: name(), seen: 2, got: 1 }, Errno::IO),
        (ReadError::NotFresh { name: name(), age_ns: 1 }, Errno::TIMEDOUT),
        (ReadError::Trust(TrustError::BadDigest { name: name() }), Errno::IO),
        (ReadError::BadUnit { name: name(), unit: 1 }, Errno::IO),
        (ReadError::BadNode { name: name(), level: 1, node: 1 }, Errno::IO),
        (ReadError::Manifest { name: name(), key: None, source: decode.into() }, Errno::IO),
        (protocol(ProtocolProblem::Kind { is_directory: true }), Errno::ISDIR),
        (protocol(ProtocolProblem::Kind { is_directory: false }), Errno::NOTDIR),
        (protocol(ProtocolProblem::Link { target: b"x".to_vec() }), Errno::LOOP),
        (protocol(ProtocolProblem::Announcement(decode)), Errno::IO),
    ]
}

fn trust_errors() -> Vec<(TrustError, Errno)> {
    let (packet, key_id) = (name(), key());
    let late = |name: Name| TrustError::Expired { name, key_id, at_s: 1, now_s: 2 };
    let early = |name: Name| TrustError::NotYetValid { name, key_id, at_s: 2, now_s: 1 };
    let (prefix, namespace, identity) = (name(), name(), name());
    let mismatch =
        |prefix| TrustError::KeyMismatch { name: name(), prefix, expected: key(), found: key() };
    vec![
        (TrustError::UnknownKey { name: name(), key_id, identity }, Errno::NOKEY),
        (mismatch(name()), Errno::NOKEY),
        (TrustError::OutsideAnchor { name: name(), prefix, key_id }, Errno::NOKEY),
        (TrustError::NotUnder { name: name(), namespace, key_id }, Errno::IO),
        (late(name()), Errno::KEYEXPIRED),
        (early(name()), Errno::KEYREJECTED),
        (TrustError::Unvouched { name: name(), key_id }, Errno::KEYREJECTED),
        (TrustError::Revoked { key_id, name: name(), packet }, Errno::KEYREVOKED),
        (TrustError::BadSignature { name: name(), key_id }, Errno::IO),
        (TrustError::BadDigest { name: name() }, Errno::IO),
        (TrustError::Unsigned { name: name(), kind: UnsignedKind::Null }, Errno::IO),
        (TrustError::NoKeyLocator { name: name() }, Errno::IO),
        (TrustError::UnsupportedSignature { name: name(), signature_type: 99 }, Errno::IO),
        (TrustError::ChainTooLong { name: name() }, Errno::IO),
        (
            TrustError::MalformedCertificate {
                name: name(),
                source: CertificateError::ContentType { content_type: 0 },
            },
            Errno::IO,
        ),
        (TrustError::NoCertificate { name: name(), certificate: name() }, Errno::NOKEY),
    ]
}

#[test]
fn every_error_has_its_number() {
    let mut seen = BTreeSet::new();
    for (error, number) in client_errors() {
        assert_eq!(error.errno(), number.raw_os_error(), "{error:?}");
        seen.insert(client_variant(&error));
    }
    assert_eq!(seen, CLIENT.iter().copied().collect());
    seen.clear();
    for (error, number) in read_errors() {
        seen.insert(read_variant(&error));
        assert_eq!(ClientError::from(error).errno(), number.raw_os_error());
    }
    assert_eq!(seen, READ.iter().copied().collect());
    seen.clear();
    for (error, number) in trust_errors() {
        seen.insert(trust_variant(&error));
        let error = ClientError::Read(ReadError::Trust(error));
        assert_eq!(error.errno(), number.raw_os_error(), "{error:?}");
    }
    assert_eq!(seen, TRUST.iter().copied().collect());
}
