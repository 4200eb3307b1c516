//! Whatever dies in mid-transfer, nothing is lost and nothing looks whole that is not.

use crate::harness::{Daemon, Home, drain, free_port, noise, signal, wait_for, write};
use std::path::Path;
use std::process::{Child, Stdio};

const SIZE: usize = 48 << 20;

struct Scene {
    a: Home,
    b: Home,
    content: Vec<u8>,
    up: Daemon,
    port: u16,
    link: String,
}

fn scene() -> Scene {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    let content = noise(SIZE, 21);
    write(&dir.join("big"), &content);
    let port = free_port();
    let up = start_up(&a, port);
    let link = up.link_to("big");
    b.run(&["stat", &link]).ok();
    Scene { a, b, content, up, port, link }
}

fn start_up(home: &Home, port: u16) -> Daemon {
    let dir = home.path().join("d");
    let listen = format!("tcp://127.0.0.1:{port}");
    home.start(&["up", dir.to_str().unwrap(), "--name", "/lab/d", "--listen", &listen], "byname:/")
}

impl Scene {
    /// A `get` slow enough to be hit in the middle.
    fn slow_get(&self, extra: &[&str]) -> Child {
        let mut command = self.b.byname();
        command.args(["get", &self.link, "--bwlimit", "8000000"]).args(extra);
        command.stderr(Stdio::piped()).spawn().unwrap()
    }

    fn part(&self) -> std::path::PathBuf {
        self.b.path().join(".big.byname-part")
    }

    fn await_some_data(&self) {
        let written = || disk_bytes(&self.part()) > 2 << 20;
        wait_for("data in the part file", written, || self.up.log());
    }

    fn resume_and_check(&self) {
        assert!(!self.b.path().join("big").exists());
        let finished = self.b.run(&["get", &self.link, "--json"]).ok().stdout();
        assert_eq!(std::fs::read(self.b.path().join("big")).unwrap(), self.content);
        assert!(!self.part().exists());
        let value: serde_json::Value =
            serde_json::from_str(finished.lines().last().unwrap()).unwrap();
        let resumed = value["bytes_resumed"].as_u64().unwrap();
        assert!(resumed > 1 << 20, "only what was missing travels: {finished}");
    }
}

/// Waits until a part file has some data.
pub(crate) fn await_data(part: &Path, log: impl Fn() -> String) {
    wait_for("data in the part file", || disk_bytes(part) > 2 << 20, log);
}

/// Octets that were written: a part file is sparse, or has place where nothing is yet.
fn disk_bytes(path: &Path) -> u64 {
    use rustix::fs::SeekFrom;
    let Ok(file) = std::fs::File::open(path) else { return 0 };
    let (mut at, mut bytes) = (0, 0);
    while let Ok(start) = rustix::fs::seek(&file, SeekFrom::Data(at)) {
        at = rustix::fs::seek(&file, SeekFrom::Hole(start)).expect("data ends somewhere");
        bytes += at - start;
    }
    bytes
}

#[test]
fn the_client_by_sigkill() {
    let scene = scene();
    let mut get = scene.slow_get(&[]);
    scene.await_some_data();
    get.kill().unwrap();
    get.wait().unwrap();
    scene.resume_and_check();
}

#[test]
fn the_client_by_ctrl_c() {
    let scene = scene();
    let mut get = scene.slow_get(&[]);
    scene.await_some_data();
    signal(get.id(), "INT");
    assert_eq!(get.wait().unwrap().code(), Some(130));
    scene.resume_and_check();
}

#[test]
fn the_server_and_it_stays_dead() {
    let mut scene = scene();
    let mut get = scene.slow_get(&["--timeout", "2"]);
    scene.await_some_data();
    scene.up.kill();
    assert_eq!(get.wait().unwrap().code(), Some(4));
    scene.up = start_up(&scene.a, scene.port);
    scene.resume_and_check();
}

#[test]
fn the_server_and_it_comes_back() {
    let mut scene = scene();
    let mut get = scene.slow_get(&["--timeout", "20"]);
    scene.await_some_data();
    scene.up.kill();
    scene.up = start_up(&scene.a, scene.port);
    assert_eq!(get.wait().unwrap().code(), Some(0));
    assert_eq!(std::fs::read(scene.b.path().join("big")).unwrap(), scene.content);
}

#[test]
fn the_forwarder_between_file_server_and_client() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    let content = noise(SIZE, 22);
    write(&dir.join("big"), &content);
    let uri = format!("tcp://127.0.0.1:{}", free_port());
    let args = ["forward", "--listen", &uri, "--allow-register-loopback"];
    let mut forward = a.start(&args, "listening");
    let path = dir.to_str().unwrap();
    let serve = a.start(&["serve", path, "--name", "/lab/d", "--connect", &uri], "byname:/");
    let link = serve.link_to("big");
    let mut command = b.byname();
    command.args(["get", &link, "--bwlimit", "8000000", "--timeout", "20"]);
    let mut get = command.spawn().unwrap();
    let part = b.path().join(".big.byname-part");
    wait_for("data", || disk_bytes(&part) > 2 << 20, || serve.log());
    forward.kill();
    let _forward = a.start(&args, "listening");
    assert_eq!(get.wait().unwrap().code(), Some(0), "{}", serve.log());
    assert_eq!(std::fs::read(b.path().join("big")).unwrap(), content);
}

#[test]
fn a_file_replaced_in_mid_transfer_is_never_mixed() {
    let scene = scene();
    let mut get = scene.slow_get(&["--timeout", "10"]);
    scene.await_some_data();
    let dir = scene.a.path().join("d");
    let newer = noise(5_000_000, 99);
    write(&dir.join("new"), &newer);
    std::fs::rename(dir.join("new"), dir.join("big")).unwrap();
    let code = get.wait().unwrap().code();
    assert_eq!(code, Some(0));
    let got = std::fs::read(scene.b.path().join("big")).unwrap();
    assert!(got == newer || got == scene.content);
}

#[test]
fn a_file_changed_under_a_stream_ends_it_with_the_reason() {
    let scene = scene();
    let mut command = scene.b.byname();
    command.args(["cat", &scene.link]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut cat = command.spawn().unwrap();
    // The pipe and the window are full long before the end of the file.
    let mut start = vec![0; 1 << 20];
    std::io::Read::read_exact(cat.stdout.as_mut().unwrap(), &mut start).unwrap();
    assert_eq!(start, scene.content[..start.len()]);
    write(&scene.a.path().join("d/big"), &noise(SIZE, 77));
    let rest = drain(&mut cat);
    let output = cat.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("changed or removed"), "{said}");
    let got = [start, rest].concat();
    assert!(got.len() < SIZE && got == scene.content[..got.len()], "one version only");
}

#[test]
fn a_file_that_is_being_written_is_waited_for() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    write(&dir.join("log"), b"start\n");
    // Longer than a busy machine may keep the writer waiting.
    let config = a.work("home/config").join("config.toml");
    write(&config, b"[server]\nquiet_ms = 2000\n");
    let up = a.up(&dir, "/lab/d");
    let path = dir.join("log");
    let writer = std::thread::spawn(move || {
        let mut text = b"start\n".to_vec();
        for number in 0..60 {
            text.extend_from_slice(format!("{number}\n").as_bytes());
            write(&path, &text);
            std::thread::sleep(std::time::Duration::from_millis(40));
        }
        text
    });
    let said = b.run(&["get", &up.link_to("log")]).ok().stderr();
    assert!(said.contains("somebody is still writing it"), "{said}");
    let text = writer.join().unwrap();
    assert_eq!(std::fs::read(b.path().join("log")).unwrap(), text);
}

#[test]
fn a_reader_of_stdout_that_goes_away() {
    let scene = scene();
    let mut command = scene.b.byname();
    let mut cat = command.args(["cat", &scene.link]).stdout(Stdio::piped()).spawn().unwrap();
    drop(cat.stdout.take());
    assert!(cat.wait().unwrap().code() != Some(101), "a panic");
    let mut command = scene.b.byname();
    let mut cat = command.args(["cat", &scene.link]).stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(drain(&mut cat).len(), SIZE);
}
