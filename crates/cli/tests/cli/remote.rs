//! Publishing through a forwarder on another machine, which has to allow the publisher's key.
//!
//! Over UDP, since a UDP peer is a stranger to a forwarder even on the same machine.

use crate::harness::{Daemon, Home, free_port, noise, write};

/// A forwarder that everybody reaches by UDP and its owner by the socket.
fn forwarder(home: &Home, port: u16, flags: &[&str]) -> (Daemon, String) {
    let socket = format!("unix://{}", home.work("run").join("f.sock").display());
    let udp = format!("udp://127.0.0.1:{port}");
    let mut args = vec!["forward", "--listen", &socket, "--listen", &udp];
    args.extend(flags);
    (home.start(&args, "listening"), socket)
}

/// The flags that a refusal asks for.
fn asked_for(stderr: &str) -> Vec<String> {
    let flags = stderr.split("byname forward ").last().unwrap().lines().next().unwrap();
    flags.split_whitespace().map(|flag| flag.trim_matches('\'').to_owned()).collect()
}

#[test]
fn a_forwarder_elsewhere_takes_a_publisher_whose_key_is_allowed() {
    let (there, here) = (Home::new(), Home::new());
    let tree = here.work("tree");
    write(&tree.join("f"), &noise(300_000, 1));
    let port = free_port();
    let connect = format!("udp://127.0.0.1:{port}");
    let serve = ["serve", tree.to_str().unwrap(), "--name", "/lab/run7", "--connect", &connect];

    let (strict, _) = forwarder(&there, port, &[]);
    let refused = here.run(&serve).fails_with(4, "refused to register /lab/run7");
    let flags = asked_for(&refused.stderr());
    assert!(flags.len() == 2 && flags[1].starts_with("/lab/run7=SHA256:"), "{flags:?}");
    drop(strict);

    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let (_willing, socket) = forwarder(&there, port, &flags);
    let daemon = here.start(&serve, "byname:/");
    let key = format!("key={}", flags[1].split_once('=').unwrap().1);
    assert!(daemon.log().contains(&key), "{}", daemon.log());
    let out = there.work("out").join("f");
    let link = format!("byname:/lab/run7/f?{key}");
    there.run(&["get", &link, "-o", out.to_str().unwrap(), "--connect", &socket]).ok();
    assert_eq!(std::fs::read(&out).unwrap(), noise(300_000, 1));

    // The key counts for this name only.
    let other = ["serve", tree.to_str().unwrap(), "--name", "/lab/run8", "--connect", &connect];
    here.run(&other).fails_with(4, "--allow-register '/lab/run8=SHA256:");
}

#[test]
fn a_key_of_a_name_above_serves_its_certificate_too() {
    let (there, here) = (Home::new(), Home::new());
    let tree = here.work("tree");
    write(&tree.join("f"), b"hello");
    here.run(&["key", "generate", "/lab"]).ok();
    let port = free_port();
    let connect = format!("udp://127.0.0.1:{port}");
    let serve = ["serve", tree.to_str().unwrap(), "--name", "/lab/run7", "--connect", &connect];
    let certificate = here.work("tree").join("lab.ndncert");
    let text = here.run(&["key", "export", "/lab"]).ok().stdout();
    write(&certificate, text.as_bytes());
    let allow = format!("/lab={}", certificate.display());
    let (_daemon, socket) = forwarder(&there, port, &["--allow-register", &allow]);
    let _server = here.start(&serve, "byname:/");
    let out = there.run(&["cat", "/lab/run7/f", "--trust-on-first-use", "--connect", &socket]).ok();
    assert_eq!(out.stdout(), "hello");
}
