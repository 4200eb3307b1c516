//! Copies as holders: whoever has one serves it with what the publisher signed, and no key.

use crate::harness::{Daemon, Home, entries, free_port, noise, write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A publisher, a forwarder of its own beside it, and a mirror's and a reader's homes.
struct Scene {
    publisher: Home,
    mirror: Home,
    reader: Home,
    dir: std::path::PathBuf,
    forward: Daemon,
    uri: String,
    socket: String,
}

fn scene() -> Scene {
    let (publisher, mirror, reader) = (Home::new(), Home::new(), Home::new());
    let dir = publisher.work("d");
    std::fs::create_dir(dir.join("sub")).unwrap();
    write(&dir.join("small"), b"small\n");
    write(&dir.join("empty"), b"");
    write(&dir.join("sub/medium"), &noise(300_000, 3));
    write(&dir.join("large"), &noise(5_000_001, 4));
    let uri = format!("tcp://127.0.0.1:{}", free_port());
    let socket = format!("unix://{}", publisher.path().join("nfd.sock").display());
    let listen = ["forward", "--allow-register-loopback", "--listen", &uri, "--listen", &socket];
    let forward = publisher.start(&listen, "nfd.sock");
    Scene { publisher, mirror, reader, dir, forward, uri, socket }
}

impl Scene {
    /// The publisher's server and its link.
    fn origin(&self) -> (Daemon, String) {
        let dir = self.dir.to_str().unwrap();
        let args = ["serve", dir, "--name", "/lab/d", "--connect", &self.uri];
        let server = self.publisher.start(&args, "byname:/");
        let link = server.line_with("byname:/");
        (server, link)
    }

    fn mirror_of(&self, dir: &str, extra: &[&str]) -> Daemon {
        let mut args = vec!["serve", "--mirror", dir, "--name", "/lab/d", "--connect", &self.uri];
        args.extend_from_slice(extra);
        self.mirror.start(&args, "byname:/")
    }

    /// Until every file's root is in a manifest: before that, who copies a tree asks for the
    /// file's own packet. Files are too young for it in the moment after they were written.
    fn wait_for_roots(&self, link: &str) {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let all = self.reader.run(&["ls", "-lR", link, "--json"]).ok().stdout();
            if all.matches("\"root\":").count() == 4 {
                return;
            }
            assert!(Instant::now() < until, "{all}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn assert_same(&self, copy: &Path) {
        for name in ["small", "empty", "sub/medium", "large"] {
            let (one, other) = (self.dir.join(name), copy.join(name));
            assert!(std::fs::read(one).unwrap() == std::fs::read(other).unwrap(), "{name}");
        }
    }

    /// The forwarder forgets what it has seen, so that only holders can answer.
    fn forget(&self) {
        self.publisher.run(&["cs", "erase", "/lab", "--connect", &self.socket]).ok();
    }
}

fn link_to(link: &str, path: &str) -> String {
    crate::harness::below(link, path)
}

#[test]
fn a_copy_is_served_when_its_publisher_is_dead_and_nobody_trusts_the_mirror() {
    let scene = scene();
    let (mut origin, link) = scene.origin();
    let got = scene.mirror.run(&["get", "-r", &link, "-o", "copy", "--json"]).ok().stdout();
    assert!(!got.contains("\"packets_kept\":0"), "{got}");
    // Singly, too: then its own packet is kept with it.
    for name in ["small", "sub/medium"] {
        let path = format!("copy/{name}");
        scene.mirror.run(&["get", &link_to(&link, name), "-o", &path]).ok();
    }
    origin.kill();
    scene.forget();
    scene.reader.run(&["get", "-r", &link, "-o", "none", "--fresh"]).fails_with(4, "");
    let mut mirror = scene.mirror_of("copy", &["--json"]);
    // Until then what the mirror has is its publisher's word of this moment.
    std::thread::sleep(Duration::from_millis(1100));
    let get = scene.reader.run(&["get", "-r", &link, "-o", "out"]).ok();
    assert!(get.stderr().contains("the publisher does not answer"), "{}", get.stderr());
    scene.assert_same(&scene.reader.path().join("out"));
    let stat = scene.reader.run(&["stat", &link_to(&link, "small"), "--json"]).ok().stdout();
    assert!(stat.contains("\"age_ms\":"), "{stat}");
    assert_eq!(
        scene.reader.run(&["cat", &link_to(&link, "small"), "--offline"]).ok().bytes(),
        b"small\n"
    );
    scene.reader.run(&["cat", &link_to(&link, "small"), "--fresh"]).fails_with(4, "");
    scene.reader.run(&["ls", &link]).ok();
    scene.reader.run(&["verify", "out", &link]).ok();
    // Somebody who trusts another key reads nothing from it, and the mirror has none of its own.
    let stranger = Home::new();
    stranger.run(&["cat", "/lab/d/small", "--connect", &scene.uri]).fails_with(6, "");
    assert!(!scene.mirror.path().join("home/data/keys").exists());
    assert_eq!(mirror.interrupt(), Some(0));
    assert!(mirror.log().contains("\"hidden_changed\":0"), "{}", mirror.log());
    drop(scene.forward);
}

#[test]
fn a_mirror_of_a_directory_answers_for_every_file_and_directory_in_it() {
    let scene = scene();
    let dir = scene.dir.to_str().unwrap();
    scene.publisher.run(&["prepare", dir, "--name", "/lab/d"]).ok();
    let (mut origin, link) = scene.origin();
    scene.wait_for_roots(&link);
    // By manifest: no file has a packet of its own.
    scene.mirror.run(&["get", "-r", &link, "-o", "copy"]).ok();
    origin.kill();
    scene.forget();
    let mut mirror = scene.mirror_of("copy", &["--json"]);
    // Whose word counts is known from the directory.
    scene.reader.run(&["ls", &link]).ok();
    let stat = scene.reader.run(&["stat", &link_to(&link, "sub/medium"), "--json"]).ok().stdout();
    let stat: serde_json::Value = serde_json::from_str(&stat).unwrap();
    assert_eq!((&stat["size"], &stat["type"]), (&300_000.into(), &"file".into()), "{stat}");
    assert_eq!(stat["root"].as_str().unwrap().len(), 64, "{stat}");
    assert_eq!(scene.reader.run(&["cat", &link_to(&link, "small")]).ok().bytes(), b"small\n");
    let range = ["cat", &link_to(&link, "large"), "--range", "4000000+5000"];
    assert_eq!(scene.reader.run(&range).ok().bytes(), &noise(5_000_001, 4)[4_000_000..4_005_000]);
    scene.reader.run(&["get", &link_to(&link, "large"), "-o", "one"]).ok();
    assert!(std::fs::read(scene.reader.path().join("one")).unwrap() == noise(5_000_001, 4));
    for directory in [link.clone(), link_to(&link, "sub")] {
        let stat = scene.reader.run(&["stat", &directory, "--json"]).ok().stdout();
        assert!(stat.contains("\"type\":\"directory\""), "{stat}");
    }
    let steps = scene.reader.run(&["explain", &link_to(&link, "small"), "--json"]).ok();
    let steps = steps.stdout();
    let steps: Vec<serde_json::Value> =
        steps.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found = |name: &str| steps.iter().find(|step| step["step"] == name).unwrap();
    assert!(found("metadata")["outcome"].as_str().unwrap().contains("no route"), "{steps:?}");
    let says = |step: &serde_json::Value| step["outcome"].as_str().unwrap().starts_with("answered");
    assert!(steps.iter().any(|step| step["step"] == "manifest" && says(step)), "{steps:?}");
    assert_eq!(found("version")["size"], 6);
    assert!(steps.iter().any(|step| step["step"] == "path"), "{steps:?}");
    let none = scene.reader.run(&["explain", &link_to(&link, "none"), "--json"]);
    assert!(none.stdout().contains("\"step\":\"manifest\""), "{}", none.stdout());
    none.fails_with(4, "");
    // What the manifest does not have is nowhere, and nobody takes it for the publisher's word of
    // this moment.
    scene.reader.run(&["stat", &link_to(&link, "none")]).fails_with(4, "");
    scene.reader.run(&["stat", &link_to(&link, "small"), "--fresh"]).fails_with(4, "");
    mirror.interrupt();
    assert!(mirror.log().contains("\"hidden_changed\":0"), "{}", mirror.log());
}

#[test]
fn what_does_not_match_its_packet_is_hidden_and_counted() {
    let scene = scene();
    let (mut origin, link) = scene.origin();
    scene.mirror.run(&["get", "-r", &link, "-o", "copy"]).ok();
    for name in ["small", "large"] {
        let path = format!("copy/{name}");
        scene.mirror.run(&["get", &link_to(&link, name), "-o", &path]).ok();
    }
    origin.kill();
    scene.forget();
    let copy = scene.mirror.path().join("copy");
    // One by its size; the other has size and time of the original.
    write(&copy.join("small"), b"changed size");
    let time = std::fs::metadata(copy.join("large")).unwrap().modified().unwrap();
    write(&copy.join("large"), &noise(5_000_001, 5));
    let large = std::fs::File::options().write(true).open(copy.join("large")).unwrap();
    large.set_modified(time).unwrap();
    drop(large);
    let port = free_port();
    let metrics = format!("127.0.0.1:{port}");
    let mut mirror = scene.mirror_of("copy", &["--json", "--metrics", &metrics]);
    for name in ["small", "large"] {
        scene.reader.run(&["cat", &link_to(&link, name), "--timeout", "5"]).fails_with(4, name);
    }
    let medium = scene.reader.run(&["get", "-r", &link, "-o", "out", "--timeout", "5"]);
    medium.fails_with(8, "");
    assert_eq!(entries(&scene.reader.path().join("out")), ["empty", "sub"]);
    let metrics = page(port);
    assert!(metrics.contains("byname_mirror_hidden_total "), "{metrics}");
    assert!(!metrics.contains("byname_mirror_hidden_total 0\n"), "{metrics}");
    assert!(!metrics.contains("byname_mirror_answers_total 0\n"), "{metrics}");
    mirror.interrupt();
    let log = mirror.log();
    assert!(log.contains("hidden_changed") && !log.contains("\"hidden_changed\":0"), "{log}");
}

#[test]
fn the_origin_dies_in_mid_file_and_a_mirror_finishes_it() {
    let scene = scene();
    let content = noise(24 << 20, 9);
    write(&scene.dir.join("big"), &content);
    let (mut origin, link) = scene.origin();
    let big = link_to(&link, "big");
    scene.mirror.run(&["get", &big, "-o", "big"]).ok();
    let copy = scene.mirror.work("copy");
    std::fs::rename(scene.mirror.path().join("big"), copy.join("big")).unwrap();
    let _mirror = scene.mirror_of("copy", &[]);
    scene.forget();
    let mut command = scene.reader.byname();
    command.args(["get", &big, "--bwlimit", "8000000", "--timeout", "20", "--json"]);
    let get = command.stdout(Stdio::piped()).spawn().unwrap();
    let part = scene.reader.path().join(".big.byname-part");
    crate::killed::await_data(&part, || origin_log(&scene));
    origin.kill();
    let output = get.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(std::fs::read(scene.reader.path().join("big")).unwrap() == content);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("\"bytes_resumed\":0"), "it went on and did not begin anew: {said}");
}

#[test]
fn the_origin_dies_and_a_mirror_that_is_reached_directly_finishes() {
    let (publisher, holder, reader) = (Home::new(), Home::new(), Home::new());
    let dir = publisher.work("d");
    let content = noise(24 << 20, 10);
    write(&dir.join("big"), &content);
    let uris = [free_port(), free_port()].map(|port| format!("tcp://127.0.0.1:{port}"));
    let serve = ["serve", dir.to_str().unwrap(), "--name", "/lab/d", "--listen", &uris[0]];
    let mut origin = publisher.start(&serve, "byname:/");
    let link = link_to(&origin.line_with("byname:/"), "big");
    holder.run(&["get", &link, "-o", "big"]).ok();
    let copy = holder.work("copy");
    std::fs::rename(holder.path().join("big"), copy.join("big")).unwrap();
    let serve = ["serve", "--mirror", "copy", "--name", "/lab/d", "--listen", &uris[1]];
    let mirror = holder.start(&serve, "byname:/");
    let mut command = reader.byname();
    command.args(["get", &link, "--via", &uris[0], "--via", &uris[1]]);
    command.args(["--bwlimit", "8000000", "--timeout", "20", "--json"]);
    let get = command.stdout(Stdio::piped()).spawn().unwrap();
    crate::killed::await_data(&reader.path().join(".big.byname-part"), || mirror.log());
    origin.kill();
    let output = get.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(std::fs::read(reader.path().join("big")).unwrap() == content);
}

/// Fetches the metrics page of a server.
pub(crate) fn page(port: u16) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

fn origin_log(scene: &Scene) -> String {
    scene.forward.log()
}

#[test]
fn after_a_change_nobody_sees_the_old_version_later_than_the_bound() {
    let scene = scene();
    let (_origin, link) = scene.origin();
    let small = link_to(&link, "small");
    scene.mirror.run(&["get", &small, "-o", "small"]).ok();
    let copy = scene.mirror.work("copy");
    std::fs::rename(scene.mirror.path().join("small"), copy.join("small")).unwrap();
    let _mirror = scene.mirror_of("copy", &[]);
    write(&scene.dir.join("small"), b"newer\n");
    // Quiet for 100 ms, a signed packet sent again for 1 s, fresh for 1 s in the cache.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    for _ in 0..5 {
        // Somebody who takes what there is must not make the old look fresh to the next.
        Home::new().run(&["cat", &small, "--offline"]).ok();
        assert_eq!(Home::new().run(&["cat", &small]).ok().bytes(), b"newer\n");
        scene.forget();
    }
}

#[test]
fn sign_writes_the_packets_and_the_key_stays_at_home() {
    let scene = scene();
    let dir = scene.dir.to_str().unwrap();
    let signed = scene.publisher.run(&["sign", dir, "--name", "/lab/d", "--json"]).ok().stdout();
    assert!(signed.contains("\"files\":4") && signed.contains("\"directories\":2"), "{signed}");
    let again = scene.publisher.run(&["sign", dir, "--name", "/lab/d", "--json"]).ok().stdout();
    assert!(again.contains("\"files\":0") && again.contains("\"unchanged\":4"), "{again}");
    let key = scene.publisher.run(&["key", "list", "--json"]).ok().stdout();
    let key: serde_json::Value = serde_json::from_str(key.lines().next().unwrap()).unwrap();
    let key = key["key"].as_str().or(key["id"].as_str()).unwrap().to_owned();
    // The mirror's user has no key, only the tree.
    let _mirror = scene.mirror_of(dir, &[]);
    let link = format!("byname:/lab/d?via={}&key={key}", scene.uri);
    scene.reader.run(&["get", "-r", &link, "-o", "out"]).ok();
    scene.assert_same(&scene.reader.path().join("out"));
    for name in ["small", "empty", "sub/medium", "large"] {
        scene.reader.run(&["stat", &link_to(&link, name)]).ok();
    }
    scene.reader.run(&["ls", "-l", &link]).ok();
}

#[test]
fn nothing_is_kept_unless_wanted() {
    let scene = scene();
    let (_origin, link) = scene.origin();
    let got = scene.mirror.run(&["get", "-r", &link, "-o", "copy", "--no-keep", "--json"]).ok();
    assert!(got.stdout().contains("\"packets_kept\":0"), "{}", got.stdout());
    let mirror = scene.mirror_of("copy", &[]);
    assert!(mirror.log().contains("nothing to serve yet"), "{}", mirror.log());
}
