//! Reading from a server without any forwarder, from several sources, and over bad networks.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::harness::{Daemon, Home, free_port, noise, write};

const SIZE: usize = 6_000_000;

/// A server that listens everywhere, and its link without the places.
fn serve(home: &Home, listen: &[&str]) -> (Daemon, String) {
    let tree = home.work("tree");
    write(&tree.join("f"), &noise(SIZE, 5));
    let mut args = vec!["serve", tree.to_str().unwrap(), "--name", "/lab"];
    args.extend(listen.iter().flat_map(|uri| ["--listen", uri]));
    let daemon = home.start(&args, "byname:/");
    let link = daemon.line_with("byname:/");
    let key = link.split("key=").nth(1).unwrap();
    let link = format!("byname:/lab/f?key={key}");
    (daemon, link)
}

/// Fetches the file and compares it.
#[track_caller]
fn get(reader: &Home, link: &str, via: &[&str]) -> String {
    let out = reader.work("out").join("f");
    let _ = std::fs::remove_file(&out);
    let mut args = vec!["get", link, "-o", out.to_str().unwrap()];
    args.extend(via.iter().flat_map(|uri| ["--via", uri]));
    let stderr = reader.run(&args).ok().stderr();
    assert!(std::fs::read(&out).unwrap() == noise(SIZE, 5), "{via:?}: other bytes");
    stderr
}

#[test]
fn a_server_without_a_forwarder_is_read_over_every_transport() {
    let (publisher, reader) = (Home::new(), Home::new());
    let run = publisher.work("run");
    let (port, web_port) = (free_port(), free_port());
    let uris = [
        format!("ws://127.0.0.1:{web_port}"),
        format!("unix://{}/u.sock", run.display()),
        format!("memif://{}/m.sock", run.display()),
        format!("tcp://127.0.0.1:{port}"),
        format!("udp://127.0.0.1:{port}"),
    ];
    let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
    let (mut daemon, link) = serve(&publisher, &uris);
    for uri in &uris {
        get(&reader, &link, &[uri]);
    }
    assert_eq!(daemon.interrupt(), Some(0));
    assert!(!run.join("u.sock").exists() && !run.join("m.sock").exists());
}

#[test]
fn a_reader_without_the_key_in_its_link_gets_the_certificate_from_the_server() {
    let (publisher, reader) = (Home::new(), Home::new());
    let uri = format!("tcp://127.0.0.1:{}", free_port());
    let (_daemon, link) = serve(&publisher, &[&uri]);
    reader.run(&["trust", "add", &link.replace("/lab/f", "/lab")]).ok();
    let found = reader.run(&["cat", "/lab/f", "--via", &uri]).ok();
    assert!(found.bytes() == noise(SIZE, 5));
}

#[test]
fn a_forwarder_of_this_user_is_reached_by_shared_memory_without_being_asked_for() {
    let home = Home::new();
    let _forwarder = home.start(&["forward"], "memif.sock");
    let tree = home.work("tree");
    write(&tree.join("f"), &noise(SIZE, 5));
    let serve = ["serve", tree.to_str().unwrap(), "--name", "/lab"];
    let server = home.start(&serve, "byname:/");
    assert!(server.log().contains("attaching to memif://"), "{}", server.log());
    let out = home.work("out").join("f");
    home.run(&["get", "/lab/f", "-o", out.to_str().unwrap()]).ok();
    assert!(std::fs::read(&out).unwrap() == noise(SIZE, 5));
    assert!(home.run(&["face", "list"]).ok().stdout().contains("memif"));
    // A socket that nobody answers is no obstacle.
    drop(server);
    let memory = home.path().join("home/run/memif.sock");
    std::fs::remove_file(&memory).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&memory).unwrap());
    let server = home.start(&serve, "byname:/");
    assert!(server.log().contains("attaching to unix://"), "{}", server.log());
    home.run(&["cat", "/lab/f"]).ok();
}

/// Failure of a source after its first `good` bytes.
#[derive(Clone, Copy)]
enum Then {
    Dies,
    FallsSilent,
    Lies,
}

/// Carries connections to `target`; answers go bad after so many bytes.
fn bad_source(target: u16, good: usize, then: Then) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let passed = Arc::new(AtomicUsize::new(0));
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.unwrap();
            if matches!(then, Then::Dies) && passed.load(Ordering::Relaxed) > good {
                return;
            }
            let server = TcpStream::connect(("127.0.0.1", target)).unwrap();
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || pass(from, to, |_| true));
            let passed = passed.clone();
            std::thread::spawn(move || {
                pass(server, client, |bytes| {
                    if passed.fetch_add(bytes.len(), Ordering::Relaxed) < good {
                        return true;
                    }
                    match then {
                        Then::Dies => return false,
                        Then::FallsSilent => std::thread::sleep(std::time::Duration::MAX),
                        Then::Lies => {
                            // Content, rather than what frames it, with any luck; else it dies.
                            let middle = bytes.len() / 2;
                            bytes[middle] ^= 1;
                        }
                    }
                    true
                });
            });
        }
    });
    port
}

fn pass(mut from: TcpStream, mut to: TcpStream, mut change: impl FnMut(&mut [u8]) -> bool) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !change(&mut buffer[..count]) || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(std::net::Shutdown::Both), to.shutdown(std::net::Shutdown::Both));
}

#[test]
fn another_source_finishes_what_one_began_that_died_fell_silent_or_lied() {
    let (publisher, reader) = (Home::new(), Home::new());
    let port = free_port();
    let tcp = format!("tcp://127.0.0.1:{port}");
    let unix = format!("unix://{}/u.sock", publisher.work("run").display());
    let (_daemon, link) = serve(&publisher, &[&tcp, &unix]);
    for then in [Then::Dies, Then::FallsSilent, Then::Lies] {
        let bad = format!("tcp://127.0.0.1:{}", bad_source(port, SIZE / 3, then));
        get(&reader, &link, &[&bad, &unix]);
    }
}

#[test]
fn a_source_that_does_not_have_the_file_is_no_obstacle() {
    let (publisher, other, reader) = (Home::new(), Home::new(), Home::new());
    let (mine, wrong) =
        (format!("tcp://127.0.0.1:{}", free_port()), format!("tcp://127.0.0.1:{}", free_port()));
    let (_daemon, link) = serve(&publisher, &[&mine]);
    let tree = other.work("tree");
    let elsewhere = ["serve", tree.to_str().unwrap(), "--name", "/elsewhere", "--listen", &wrong];
    let _other = other.start(&elsewhere, "byname:/");
    get(&reader, &link, &[&wrong, &mine]);
    // Its Nack is unsigned, so it proves nothing of the file.
    reader.run(&["cat", &link, "--via", &wrong]).fails_with(4, "no route");
}

/// Carries datagrams to `target` and loses, repeats, delays and damages some.
fn bad_network(target: u16) -> u16 {
    let front = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = front.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let back = UdpSocket::bind("127.0.0.1:0").unwrap();
        back.connect(("127.0.0.1", target)).unwrap();
        let (mut buffer, mut client) = ([0; 65536], None);
        let (answers, to_clients) = (back.try_clone().unwrap(), front.try_clone().unwrap());
        let mut started = false;
        loop {
            let Ok((count, from)) = front.recv_from(&mut buffer) else { return };
            client.get_or_insert(from);
            let _ = back.send(&buffer[..count]);
            if !std::mem::replace(&mut started, true) {
                let (answers, to_clients) =
                    (answers.try_clone().unwrap(), to_clients.try_clone().unwrap());
                std::thread::spawn(move || meddle(&answers, &to_clients, from));
            }
        }
    });
    port
}

fn meddle(answers: &UdpSocket, clients: &UdpSocket, client: std::net::SocketAddr) {
    let (mut buffer, mut late, mut random) = ([0; 65536], Vec::new(), 1u32);
    loop {
        let Ok(count) = answers.recv(&mut buffer) else { return };
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match (random >> 16) % 100 {
            0..2 => continue,
            2..4 => drop(clients.send_to(&buffer[..count], client)),
            4..6 => {
                late = buffer[..count].to_vec();
                continue;
            }
            6 => buffer[count / 2] ^= 4,
            _ => {}
        }
        let _ = clients.send_to(&buffer[..count], client);
        if !late.is_empty() {
            let _ = clients.send_to(&std::mem::take(&mut late), client);
        }
    }
}

#[test]
fn a_network_that_loses_repeats_reorders_and_damages_brings_the_right_bytes() {
    let (publisher, reader) = (Home::new(), Home::new());
    let port = free_port();
    let (_daemon, link) = serve(&publisher, &[&format!("udp://127.0.0.1:{port}")]);
    get(&reader, &link, &[&format!("udp://127.0.0.1:{}", bad_network(port))]);
}

#[test]
fn a_transfer_is_measured_over_every_link_there_is() {
    let home = Home::new();
    let file = home.work("tree").join("f");
    write(&file, &noise(300_000, 5));
    for link in ["in-process", "pair", "memif", "unix", "tcp", "udp"] {
        let args = ["bench", "transfer", file.to_str().unwrap(), "--link", link, "--json"];
        let found: serde_json::Value =
            serde_json::from_str(&home.run(&args).ok().stdout()).unwrap();
        assert_eq!(found["bytes"], 300_000, "{link}");
        assert!(found["cpu_s_per_gib"].as_f64().unwrap() > 0.0);
    }
}
