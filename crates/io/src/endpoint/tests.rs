//! Endpoints as users write them, and the errors when they are wrong.

use super::*;

fn parse(uri: &str) -> Endpoint {
    uri.parse().unwrap_or_else(|e| panic!("{uri}: {e}"))
}

#[test]
fn uris_survive_a_round_trip_with_the_port_made_explicit() {
    for (given, shown) in [
        ("unix:///run/nfd/nfd.sock", "unix:///run/nfd/nfd.sock"),
        ("unix:///with space/ü", "unix:///with space/ü"),
        ("tcp://host", "tcp://host:6363"),
        ("tcp://host/", "tcp://host:6363"),
        ("tcp4://127.0.0.1:1", "tcp4://127.0.0.1:1"),
        ("tcp6://[::1]", "tcp6://[::1]:6363"),
        ("tcp://[2001:db8::1]:80", "tcp://[2001:db8::1]:80"),
        ("udp://*:0", "udp://*:0"),
        ("udp4://h-1.example_x.org", "udp4://h-1.example_x.org:6363"),
        ("udp6://[fe80::1%eth0]:65535", "udp6://[fe80::1%eth0]:65535"),
        ("ws://host", "ws://host:9696"),
        ("ws://[::1]:80/", "ws://[::1]:80"),
        ("udp://224.0.23.170?dev=eth0", "udp4://224.0.23.170:56363?dev=eth0"),
        ("udp6://[ff02::114]:7?dev=wlp0s1", "udp6://[ff02::114]:7?dev=wlp0s1"),
    ] {
        let endpoint = parse(given);
        assert_eq!(endpoint.to_string(), shown);
        assert_eq!(parse(shown), endpoint);
    }
}

#[test]
fn memif_uris_name_a_socket_and_perhaps_an_interface_and_a_role() {
    let memif = |id, role| Endpoint::Memif { path: "/run/ndn/memif.sock".into(), id, role };
    let path = "memif:///run/ndn/memif.sock";
    for (query, shown, endpoint) in [
        ("", "", memif(0, None)),
        ("?", "", memif(0, None)),
        ("?id=0", "", memif(0, None)),
        ("?id=4294967295", "?id=4294967295", memif(u32::MAX, None)),
        ("?role=client", "?role=client", memif(0, Some(MemifRole::Client))),
        ("?role=server&id=3", "?id=3&role=server", memif(3, Some(MemifRole::Server))),
    ] {
        let parsed = parse(&format!("{path}{query}"));
        assert_eq!(parsed, endpoint);
        assert_eq!(parsed.to_string(), format!("{path}{shown}"));
        assert_eq!(parse(&parsed.to_string()), endpoint);
    }
    for query in ["?x=1", "?id", "?id=", "?id=+1", "?id=4294967296", "?role=x", "?id=1&id=1"] {
        let error = format!("{path}{query}").parse::<Endpoint>().expect_err(query);
        assert!(matches!(error, EndpointError::BadParameter { .. }), "{query}");
    }
    let error = "memif://relative".parse::<Endpoint>().expect_err("relative");
    assert!(matches!(error, EndpointError::RelativePath { .. }));
}

#[test]
fn hosts_made_from_plain_text_equal_parsed_ones() {
    assert_eq!(parse("tcp://[::1]:5"), Endpoint::Tcp { host: "::1".into(), port: 5 });
}

#[test]
fn malformed_uris_have_distinct_errors() {
    use EndpointError as E;
    let error = |uri: &str| uri.parse::<Endpoint>().expect_err(uri);
    assert!(matches!(error("host:6363"), E::MissingScheme { .. }));
    assert!(matches!(error(""), E::MissingScheme { .. }));
    assert!(matches!(error("http://host"), E::UnknownScheme { scheme } if scheme == "http"));
    assert!(matches!(error("tcp5://host"), E::UnknownScheme { .. }));
    assert!(matches!(error("://host"), E::UnknownScheme { .. }));
    assert!(matches!(error("ws4://host"), E::UnknownScheme { .. }));
    assert!(matches!(error("udp://224.0.23.170:6363"), E::NoDevice { .. }));
    for uri in ["udp://224.0.23.170?dev=a/b", "udp://224.0.23.170?dev=abcdefghijklmnop"] {
        assert!(matches!(error(uri), E::BadParameter { .. }), "{uri}");
    }
    assert!(matches!(error("udp://host?dev=eth0"), E::BadParameter { .. }));
    assert!(matches!(error("ws://host/path"), E::BadHost { .. }));
    assert!(matches!(error("unix://a/b"), E::RelativePath { .. }));
    assert!(matches!(error("unix:///a/"), E::RelativePath { .. }));
    assert!(matches!(error("unix:///a\0b"), E::RelativePath { .. }));
    let long = format!("unix:///{}", "x".repeat(107));
    assert!(matches!(error(&long), E::PathTooLong { max: 107, .. }));
    for uri in ["tcp://", "tcp://:80", "tcp://::1", "tcp://[::1", "tcp://[host]", "tcp://[::1]80"] {
        assert!(matches!(error(uri), E::BadHost { .. }), "{uri}");
    }
    for uri in ["udp://a b", "udp://a/b", "udp://user@host"] {
        assert!(matches!(error(uri), E::BadHost { .. }), "{uri}");
    }
    for uri in ["tcp://h:", "tcp://h:65536", "tcp://h:+1", "tcp://[::1]:x"] {
        assert!(matches!(error(uri), E::BadPort { .. }), "{uri}");
    }
    assert!(matches!(error("tcp4://[::1]"), E::FamilyMismatch { .. }));
    assert!(matches!(error("udp6://127.0.0.1"), E::FamilyMismatch { .. }));
}

#[test]
fn resolving_keeps_the_family() {
    let expected: SocketAddr = "127.0.0.1:7".parse().unwrap();
    assert_eq!(parse("tcp4://127.0.0.1:7").resolve().unwrap(), [expected]);
    assert!(parse("tcp4://localhost").resolve().unwrap().iter().all(SocketAddr::is_ipv4));
    assert!(matches!(parse("tcp://*").resolve(), Err(EndpointError::Wildcard)));
    assert!(matches!(parse("unix:///x").resolve(), Err(EndpointError::WrongTransport { .. })));
    let error = parse("tcp://no-such-host.invalid").resolve().unwrap_err();
    assert!(matches!(&error, EndpointError::Unresolved { host, .. } if host.ends_with("invalid")));
    assert_eq!(error.class(), crate::ErrorClass::Retryable);
}

#[test]
fn a_star_is_both_families() {
    let listen = |uri: &str| {
        let found = parse(uri).resolve_listen().unwrap();
        found.iter().map(|l| (l.address.to_string(), l.dual_stack)).collect::<Vec<_>>()
    };
    assert_eq!(listen("tcp://*:9"), [("[::]:9".into(), true), ("0.0.0.0:9".into(), false)]);
    assert_eq!(listen("udp4://*:9"), [("0.0.0.0:9".into(), false)]);
    assert_eq!(listen("udp6://*:9"), [("[::]:9".into(), false)]);
    assert_eq!(listen("tcp://[::]:9"), [("[::]:9".into(), false)]);
}
