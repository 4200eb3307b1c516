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
fn serve_says_for_whom_its_link_is() {
    const HINT: &str = "this link is for programs of this machine";
    let home = Home::new();
    let dir = home.work("d");
    write(&dir.join("file"), b"content");
    let socket = format!("unix://{}", home.path().join("f.sock").display());
    let _forwarder = home.start(&["forward", "--listen", &socket], "f.sock");
    let args = ["serve", dir.to_str().unwrap(), "--name", "/lab/d", "--connect", &socket];
    let mut daemon = home.start(&args, "byname:/");
    daemon.await_line(HINT);
    daemon.interrupt();
    let via = [&args[..], &["--via", "tcp://lab.example.org"]].concat();
    let mut daemon = home.start(&via, "byname:/");
    daemon.interrupt();
    assert!(!daemon.log().contains(HINT), "{}", daemon.log());
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
fn serve_records_what_was_read_and_takes_sighup() {
    let (home, reader) = (Home::new(), Home::new());
    let dir = home.work("d");
    write(&dir.join("one, two"), &[7; 100_000]);
    let log = home.path().join("access.jsonl");
    let listen = format!("tcp://127.0.0.1:{}", free_port());
    let config = home.path().join("home/config");
    std::fs::create_dir_all(&config).unwrap();
    let args = ["serve", "d", "--name", "/lab/d", "--listen", &listen, "--access-log"];
    let args = [&args[..], &[log.to_str().unwrap()]].concat();
    let daemon = home.start(&args, "byname:/");
    let fields_of = |path: &std::path::Path, name: &str| -> Option<serde_json::Value> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines =
            text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.into_iter().find(|record| record["name"] == name)
    };
    reader.run(&["cat", &daemon.link_to("one, two")]).ok();
    reader.run(&["cat", &daemon.link_to("absent")]).fails_with(3, "absent");
    let context = || std::fs::read_to_string(&log).unwrap_or_default();
    let is_there = |name: &str| fields_of(&log, name).is_some();
    wait_for("records", || is_there("/lab/d/one, two") && is_there("/lab/d/absent"), context);
    let read = fields_of(&log, "/lab/d/one, two").unwrap();
    assert_eq!(read["schema"], 1);
    assert!(read["peer"].as_str().unwrap().starts_with("tcp4://127.0.0.1:"), "{read}");
    assert!(read["bytes"].as_u64().unwrap() > 100_000, "{read}");
    let count = |field: &str| read[field].as_u64().unwrap();
    assert!(count("segments") >= 13 && count("lookups") >= 1, "{read}");
    assert_eq!(fields_of(&log, "/lab/d/absent").unwrap()["absences"], 1);

    // As logrotate does, and with other settings.
    let moved = home.path().join("access.1");
    std::fs::rename(&log, &moved).unwrap();
    write(&home.path().join("home/config/config.toml"), b"[server]\nworkers = 2\n");
    signal(daemon.pid(), "HUP");
    daemon.await_line("only a restart changes server.workers");
    reader.run(&["cat", &daemon.link_to("other")]).fails_with(3, "other");
    wait_for("new file", || is_there("/lab/d/other"), context);
    assert!(fields_of(&moved, "/lab/d/other").is_none());

    write(&home.path().join("home/config/config.toml"), b"[server]\naccess_sample = 0\n");
    signal(daemon.pid(), "HUP");
    daemon.await_line("nothing is recorded");
    write(&home.path().join("home/config/config.toml"), b"[server]\nwrokers = 2\n");
    signal(daemon.pid(), "HUP");
    daemon.await_line("configuration not taken over");
    reader.run(&["cat", &daemon.link_to("one, two")]).ok();
}

#[test]
fn config_show_lists_every_option_of_every_command() {
    let home = Home::new();
    let shown = home.run(&["config", "show"]).ok().stdout();
    let manual = include_str!("../../../../deploy/byname-forward.toml");
    let options = manual.lines().filter_map(|line| {
        let (name, _) = line.trim_start_matches('#').split_once(" = ")?;
        name.chars().all(|c| c.is_ascii_lowercase() || c == '_').then_some(name)
    });
    let of_tables = ["prefix", "to", "cost", "child_inherit", "capture", "mtu", "key"];
    let mut count = 0;
    for name in options.filter(|name| !of_tables.contains(name)) {
        assert!(shown.contains(&format!("forwarder.{name} ")), "{name} is missing:\n{shown}");
        count += 1;
    }
    assert!(count > 30, "{count}");
    for line in ["server.access_log", "client.bwlimit", "forwarder.route", "forwarder.strategy"] {
        assert!(shown.contains(line), "{line}");
    }
    let json = home.run(&["config", "show", "--json"]).ok().stdout();
    let pit = json.lines().find(|line| line.contains("forwarder.pit_entries")).unwrap();
    assert!(pit.contains("131072") && pit.contains("default"), "{pit}");
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
