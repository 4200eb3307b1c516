//! What whoever runs daemons relies on.

use crate::harness::{Home, free_port, signal, wait_for, write};
use std::os::unix::net::UnixDatagram;

#[test]
fn a_forwarder_elsewhere_is_said_to_take_no_commands() {
    let home = Home::new();
    let dir = home.work("d");
    write(&dir.join("file"), b"content");
    let uri = format!("udp://127.0.0.1:{}", free_port());
    // Over UDP even this machine counts as another.
    let up = home.up_with(&dir, "/lab/d", &["--listen", &uri]);
    for command in [&["status"][..], &["face", "list"], &["route", "add", "/a", "udp://[::1]"]] {
        let args = [command, &["--connect", &uri]].concat();
        home.run(&args).fails_with(4, "shows its state to programs of its own machine only");
    }
    let link = up.link_to("file");
    let shown = home.run(&["explain", &link, "--connect", &uri]).ok().stdout();
    assert!(shown.contains("reports nothing about itself to this machine"), "{shown}");
}

#[test]
fn serve_tells_the_service_manager_when_it_can_be_reached_and_when_it_ends() {
    let home = Home::new();
    let dir = home.work("d");
    write(&dir.join("file"), b"content");
    let path = home.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_nonblocking(true).unwrap();
    let listen = format!("tcp://127.0.0.1:{}", free_port());
    let mut command = home.byname();
    command.args(["serve", dir.to_str().unwrap(), "--name", "/lab/d", "--listen", &listen]);
    command.env("NOTIFY_SOCKET", &path);
    let mut daemon = home.start_command(command, "byname:/");
    let mut heard = String::new();
    let mut listen_for = |word: &str| {
        let done = || {
            let mut octets = [0; 1000];
            if let Ok(count) = socket.recv(&mut octets) {
                heard.push_str(&String::from_utf8_lossy(&octets[..count]));
            }
            heard.contains(word)
        };
        wait_for(word, done, String::new);
    };
    listen_for("READY=1");
    daemon.interrupt();
    listen_for("STOPPING=1");
}

#[test]
fn a_reload_names_what_only_a_restart_changes() {
    let home = Home::new();
    let socket = home.work("run").join("f.sock");
    let file = home.path().join("forward.toml");
    let config = |more: &str| {
        let listen = format!("[forwarder]\nlisten = [\"unix://{}\"]\n{more}", socket.display());
        write(&file, listen.as_bytes());
    };
    config("");
    let daemon = home.start(&["forward", "--config", file.to_str().unwrap()], "listening on");
    signal(daemon.pid(), "HUP");
    daemon.await_line("faces -0");
    assert!(!daemon.log().contains("restart"), "{}", daemon.log());
    config(&format!("shards = 2\nmetrics = \"127.0.0.1:{}\"\n", free_port()));
    signal(daemon.pid(), "HUP");
    daemon.await_line("only a restart changes shards, metrics");
}
