//! `--watch` with real processes: behind a caching forwarder, in storms of changes, and where the
//! kernel gives out too little.

use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::harness::{Daemon, Home, free_port, noise, signal, wait_for, write};

/// A server that watches, and its metrics.
struct Watching {
    daemon: Daemon,
    metrics: u16,
}

impl Watching {
    fn start(home: &Home, dir: &Path) -> Self {
        let (port, metrics) = (free_port(), free_port());
        let listen = format!("tcp://127.0.0.1:{port}");
        let address = format!("127.0.0.1:{metrics}");
        let dir = dir.to_str().unwrap();
        let args = ["serve", dir, "--name", "/lab/d", "--watch", "--metrics", &address];
        let args = [&args[..], &["--listen", &listen]].concat();
        let watching = Self { daemon: home.start(&args, "byname:/"), metrics };
        watching.daemon.await_line("metrics at");
        watching.await_value("watch_walks_total", |walks| walks == 1);
        watching
    }

    fn value(&self, name: &str) -> u64 {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.metrics)).unwrap();
        let request = "GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let start = format!("byname_server_{name} ");
        let value = answer.lines().find_map(|line| line.strip_prefix(&start));
        value.unwrap_or_else(|| panic!("no {name} in {answer}")).parse().unwrap()
    }

    fn await_value(&self, name: &str, is_so: impl Fn(u64) -> bool) {
        wait_for(name, || is_so(self.value(name)), || format!("{}", self.value(name)));
    }

    fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.daemon.pid()));
        let line = status.unwrap();
        let line = line.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().strip_suffix("kB").unwrap().trim().parse().unwrap()
    }
}

/// Lists until it is as wanted.
fn await_list(reader: &Home, link: &str, wanted: &[&str]) {
    let wanted: String = wanted.iter().map(|name| format!("{name}\n")).collect();
    let list = || reader.run(&["ls", link]).ok().stdout();
    wait_for("the list", || list() == wanted, list);
}

fn await_content(reader: &Home, link: &str, wanted: &[u8]) {
    let read = || reader.run(&["cat", link]);
    wait_for("the content", || read().bytes() == wanted, || read().stderr());
}

#[test]
fn copies_renames_and_removals_are_seen_behind_a_caching_forwarder() {
    let (home, reader) = (Home::new(), Home::new());
    let dir = home.work("d");
    write(&dir.join("f"), b"0");
    let up = home.up_with(&dir, "/lab/d", &["--watch"]);
    let link = up.link.clone();
    await_list(&reader, &link, &["f"]);
    for round in 1..4 {
        let content = format!("round {round}");
        write(&dir.join("f"), content.as_bytes());
        await_content(&reader, &up.link_to("f"), content.as_bytes());
    }
    let copied = Command::new("cp").arg("-a").arg(&dir).arg(home.path().join("copy")).status();
    assert!(copied.unwrap().success());
    std::fs::rename(home.path().join("copy"), dir.join("deep")).unwrap();
    await_list(&reader, &link, &["deep/", "f"]);
    await_content(&reader, &up.link_to("deep/f"), b"round 3");
    std::fs::rename(dir.join("deep"), dir.join("moved")).unwrap();
    await_list(&reader, &link, &["f", "moved/"]);
    write(&dir.join("moved/f"), b"where it is now");
    await_content(&reader, &up.link_to("moved/f"), b"where it is now");
    std::fs::remove_dir_all(dir.join("moved")).unwrap();
    await_list(&reader, &link, &["f"]);
}

/// Ten thousand files in a directory that is watched already: some 30 000 events.
fn ten_thousand_files(dir: &Path) {
    for n in 0..10_000 {
        std::fs::write(dir.join(n.to_string()), n.to_string()).unwrap();
    }
}

#[test]
fn ten_thousand_files_copied_in_at_once_cost_bounded_memory() {
    let (home, reader) = (Home::new(), Home::new());
    let dir = home.work("d");
    let serving = Watching::start(&home, &dir);
    ten_thousand_files(&dir);
    // What comes while events are lost is hashed when it is asked for.
    let is_overrun = || serving.value("watch_overflows_total") > 0;
    serving.await_value("hashed_ahead_total", |hashed| hashed == 10_000 || is_overrun());
    assert_eq!(reader.run(&["ls", &serving.daemon.link()]).ok().stdout().lines().count(), 10_000);
    assert!(serving.peak_kib() < 128 << 10, "{} KiB", serving.peak_kib());
}

#[test]
fn lost_changes_are_said_and_the_tree_is_walked_again() {
    let (home, reader) = (Home::new(), Home::new());
    let dir = home.work("d");
    write(&dir.join("f"), b"before");
    let serving = Watching::start(&home, &dir);
    let link = serving.daemon.link();
    await_list(&reader, &link, &["f"]);
    // While nobody reads them, the kernel keeps 16 384 events.
    signal(serving.daemon.pid(), "STOP");
    std::fs::create_dir(dir.join("many")).unwrap();
    for _ in 0..3 {
        for n in 0..3000 {
            std::fs::write(dir.join("x"), n.to_string()).unwrap();
            std::fs::rename(dir.join("x"), dir.join("f")).unwrap();
        }
    }
    std::fs::create_dir_all(dir.join("unheard/of")).unwrap();
    write(&dir.join("unheard/of/f"), b"lost");
    signal(serving.daemon.pid(), "CONT");
    serving.daemon.await_line("changes came faster than they could be read");
    serving.await_value("watch_overflows_total", |overflows| overflows >= 1);
    serving.await_value("watched_directories", |directories| directories == 4);
    await_list(&reader, &link, &["f", "many/", "unheard/"]);
    await_content(&reader, &serving.daemon.link_to("f"), b"2999");
    await_content(&reader, &serving.daemon.link_to("unheard/of/f"), b"lost");
    // It is trusted again.
    write(&dir.join("unheard/of/f"), b"heard of");
    await_content(&reader, &serving.daemon.link_to("unheard/of/f"), b"heard of");
    std::fs::create_dir(dir.join("unheard/again")).unwrap();
    serving.await_value("watched_directories", |directories| directories == 5);
}

#[test]
fn what_cannot_be_watched_is_said_and_seen_all_the_same() {
    let (home, reader) = (Home::new(), Home::new());
    let dir = home.work("d");
    for n in 0..20 {
        std::fs::create_dir(dir.join(n.to_string())).unwrap();
        write(&dir.join(n.to_string()).join("f"), b"before");
    }
    let (port, metrics) = (free_port(), free_port());
    let byname = home.byname();
    let limit = "echo 6 > /proc/sys/user/max_inotify_watches && exec \"$@\"";
    let unshared = ["--user", "--map-root-user", "sh", "-c", limit, "sh"];
    let mut command = Command::new("unshare");
    command.args(unshared).arg(byname.get_program()).args(["serve", dir.to_str().unwrap()]);
    command.args(["--name", "/lab/d", "--watch", "--listen", &format!("tcp://127.0.0.1:{port}")]);
    command.args(["--metrics", &format!("127.0.0.1:{metrics}")]).current_dir(home.path());
    for (key, value) in byname.get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    let daemon = home.start_command(command, "byname:/");
    daemon.await_line("cannot watch all directories");
    daemon.await_line("fs.inotify.max_user_watches");
    let serving = Watching { daemon, metrics };
    serving.await_value("watched_directories", |directories| directories == 6);
    serving.await_value("unwatched_directories", |directories| directories == 15);
    for n in 0..20 {
        let link = serving.daemon.link_to(&n.to_string());
        await_list(&reader, &link, &["f"]);
        write(&dir.join(n.to_string()).join("g"), b"new");
        await_list(&reader, &link, &["f", "g"]);
    }
    assert_eq!(serving.value("watch_overflows_total"), 0);
}

#[test]
fn readers_in_a_storm_of_changes_get_one_state_or_another() {
    let (home, reader) = (Home::new(), Home::new());
    let dir = home.work("d");
    let serving = Watching::start(&home, &dir);
    write(&dir.join("f"), &[0; 100_000]);
    let until = Instant::now() + Duration::from_secs(5);
    std::thread::scope(|scope| {
        let dir = &dir;
        scope.spawn(move || {
            let mut n = 0u64;
            while Instant::now() < until {
                n += 1;
                std::fs::write(dir.join("new"), vec![n as u8; 100_000]).unwrap();
                std::fs::rename(dir.join("new"), dir.join("f")).unwrap();
                let below = dir.join(format!("d{}", n % 50));
                let _ = std::fs::create_dir(&below);
                std::fs::write(below.join("f"), n.to_string()).unwrap();
                if n.is_multiple_of(7) {
                    std::fs::remove_dir_all(&below).unwrap();
                }
            }
        });
        while Instant::now() < until {
            let read = reader.run(&["cat", &serving.daemon.link_to("f")]);
            let bytes = read.bytes();
            assert!(bytes.iter().all(|octet| Some(octet) == bytes.first()), "two states mixed");
            reader.run(&["ls", "-l", &serving.daemon.link()]);
        }
    });
    write(&dir.join("f"), &noise(100_000, 1));
    await_content(&reader, &serving.daemon.link_to("f"), &noise(100_000, 1));
    let below = std::fs::read_dir(&dir).unwrap().filter(|it| it.as_ref().unwrap().path().is_dir());
    let directories = 1 + below.count() as u64;
    serving.await_value("watched_directories", |watched| watched == directories);
}

#[test]
fn a_mirror_does_not_watch() {
    let home = Home::new();
    let args = ["serve", ".", "--name", "/x", "--mirror", "--watch"];
    home.run(&args).fails_with(2, "--watch");
}
