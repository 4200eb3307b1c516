//! Listening: whose socket file it is, whose port, and who may connect.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Barrier;

use byname_io::{BindError, DatagramSocket, Endpoint, EndpointError, ErrorClass, PortOwner};

use crate::*;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn unix(path: &Path) -> Endpoint {
    Endpoint::Unix(path.to_owned())
}

/// A socket file whose process is gone.
fn leave_stale(path: &Path) {
    drop(UnixListener::bind(path).unwrap());
    assert!(fs::symlink_metadata(path).unwrap().file_type().is_socket());
}

#[test]
fn a_socket_and_the_directories_made_for_it_are_private() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = directory.path().join("a/b/socket");
    let listener = Listener::bind(&unix(&path)).unwrap();
    // Nothing changes the mode after bind, so this is the mode it was created with.
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(&directory.path().join("a")), 0o700);
    assert_eq!(mode(directory.path()), 0o755, "an existing directory is left as it is");
    assert!(listener.is_reachable());
    drop(listener);
    assert!(!path.exists());
}

#[test]
fn a_stale_socket_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    leave_stale(&path);
    let listener = Listener::bind(&unix(&path)).unwrap();
    assert_eq!(mode(&path), 0o600);
    let (mut client, mut server) = connected(&listener);
    send(&mut client, &frame(b"hello"));
    assert_eq!(receive(&mut server, 1), [frame(b"hello")]);
}

#[test]
fn a_live_socket_is_left_alone_and_its_holder_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let listener = Listener::bind(&unix(&path)).unwrap();
    let error = Listener::bind(&unix(&path)).unwrap_err();
    let BindError::InUse { owner: Some(PortOwner { pid, name }), .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*pid, std::process::id());
    assert!(error.to_string().contains(&format!("by {name} (pid {pid})")), "{error}");
    // The probe that found out is a connection that has closed; the next is a real one.
    drop(accept(&listener));
    connected(&listener);
}

#[test]
fn what_is_not_a_socket_is_not_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("precious");
    fs::write(&path, "data").unwrap();
    let error = Listener::bind(&unix(&path)).unwrap_err();
    assert!(matches!(error, BindError::NotASocket { .. }), "{error}");
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(Listener::bind(&unix(&link)), Err(BindError::NotASocket { .. })));
    assert_eq!(fs::read_to_string(path).unwrap(), "data");
}

#[test]
fn dropping_leaves_a_socket_that_somebody_else_put_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let ours = Listener::bind(&unix(&path)).unwrap();
    fs::remove_file(&path).unwrap();
    let theirs = UnixListener::bind(&path).unwrap();
    assert!(!ours.is_reachable());
    drop(ours);
    assert!(path.exists());
    drop(theirs);
}

#[test]
fn of_many_that_find_a_stale_socket_one_wins_and_stays_reachable() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    for _ in 0..20 {
        leave_stale(&path);
        let start = Barrier::new(4);
        let results: Vec<_> = std::thread::scope(|scope| {
            let attempt = || {
                start.wait();
                Listener::bind(&unix(&path))
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(attempt)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let winners: Vec<_> = results.iter().flatten().collect();
        assert_eq!(winners.len(), 1);
        assert!(winners[0].is_reachable());
        let in_use = |r: &&Result<Listener, BindError>| matches!(r, Err(BindError::InUse { .. }));
        assert_eq!(results.iter().filter(in_use).count(), 3);
    }
}

#[test]
fn a_taken_port_names_its_owner() {
    let tcp = Listener::bind(&endpoint("tcp4://127.0.0.1:0")).unwrap();
    let udp = DatagramSocket::bind(&endpoint("udp4://127.0.0.1:0")).unwrap();
    let (tcp, udp) = (tcp.local_address().map(|a| (tcp, a)).unwrap(), (udp.local_address(), udp));
    for error in [
        Listener::bind(&endpoint(&format!("tcp://{}", tcp.1))).unwrap_err(),
        Listener::bind(&endpoint(&format!("tcp4://*:{}", tcp.1.port()))).unwrap_err(),
        DatagramSocket::bind(&endpoint(&format!("udp://{}", udp.0))).unwrap_err(),
        DatagramSocket::bind(&endpoint(&format!("udp4://0.0.0.0:{}", udp.0.port()))).unwrap_err(),
    ] {
        let BindError::InUse { owner: Some(owner), .. } = &error else { panic!("{error}") };
        assert_eq!(owner.pid, std::process::id());
        assert!(error.to_string().contains(&owner.name), "{error}");
        assert_eq!(error.class(), ErrorClass::Permanent);
    }
}

#[test]
fn port_zero_becomes_the_actual_port() {
    let listener = Listener::bind(&endpoint("tcp4://localhost:0")).unwrap();
    let port = listener.local_address().unwrap().port();
    assert_ne!(port, 0);
    assert_eq!(listener.local_endpoint(), &endpoint(&format!("tcp4://localhost:{port}")));
    assert!(listener.accept().unwrap().is_none(), "nobody has connected");
}

#[test]
fn a_star_serves_both_families_and_brackets_only_ipv6() {
    let both = Listener::bind(&endpoint("tcp://*:0")).unwrap();
    let port = both.local_address().unwrap().port();
    let near = endpoint(&format!("tcp://127.0.0.1:{port}"));
    let client = byname_io::Connection::connect(&near, PATIENCE).unwrap();
    let server = accept(&both);
    assert_eq!(server.remote_uri(), client.local_uri());
    assert!(server.remote_uri().starts_with("tcp4://127.0.0.1:") && server.is_local());
    if !has_ipv6("a_star_serves_both_families") {
        return;
    }
    let near = endpoint(&format!("tcp://[::1]:{port}"));
    let _client = byname_io::Connection::connect(&near, PATIENCE).unwrap();
    assert!(accept(&both).remote_uri().starts_with("tcp6://[::1]:"));

    let six = Listener::bind(&endpoint("tcp://[::]:0")).unwrap();
    let port = six.local_address().unwrap().port();
    Listener::bind(&endpoint(&format!("tcp://0.0.0.0:{port}"))).expect("IPv4 is still free");
}

#[test]
fn endpoints_of_the_wrong_kind_are_refused() {
    let error = Listener::bind(&endpoint("udp://127.0.0.1:0")).unwrap_err();
    assert!(matches!(error, BindError::Endpoint(EndpointError::WrongTransport { .. })), "{error}");
    let error = DatagramSocket::bind(&endpoint("tcp://127.0.0.1:0")).unwrap_err();
    assert!(matches!(error, BindError::Endpoint(EndpointError::WrongTransport { .. })), "{error}");
    // An address for documentation, which no machine has.
    let error = Listener::bind(&endpoint("tcp://203.0.113.77:0")).unwrap_err();
    assert!(matches!(error, BindError::Failed { operation: "bind", .. }), "{error}");
}
