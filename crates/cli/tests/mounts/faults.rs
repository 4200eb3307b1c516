//! Whatever dies or falls silent: no wrong byte, every call ends, and it goes on afterwards.

use crate::harness::{Daemon, Home, noise, signal, wait_for, write};
use crate::scene::{Scene, can_mount, errno, sh};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Rounds of random kills; `BYNAME_KILL_ROUNDS` for more, and `BYNAME_KILL_FIRST` for others.
const ROUNDS: u64 = 20;

fn files(source: &Path) {
    write(&source.join("big"), &noise(24 << 20, 5));
    fs::create_dir(source.join("small")).unwrap();
    (0..40).for_each(|index| {
        write(&source.join(format!("small/f{index}")), &noise(3000, 100 + index));
    });
}

fn list(directory: &Path) -> std::io::Result<()> {
    fs::read_dir(directory)?.try_for_each(|entry| entry.map(drop))
}

/// The publisher again, on the same port and with the same state.
pub(crate) fn restart(scene: &Scene) -> Daemon {
    let listen = format!("tcp://127.0.0.1:{}", scene.up.port);
    let source = scene.source.to_str().unwrap();
    let args = ["up", source, "--name", "/lab/tree", "--listen", &listen];
    scene.publisher.start(&args, "byname:/")
}

#[test]
fn a_killed_mount_is_replaced_by_the_next_one() {
    if !can_mount("a_killed_mount_is_replaced_by_the_next_one") {
        return;
    }
    let scene = Scene::new(files);
    let open = fs::File::open(scene.mount.join("big")).unwrap();
    scene.kill_mount();
    scene.mount(&[]);
    assert_eq!(fs::read(scene.mount.join("small/f3")).unwrap(), noise(3000, 103));
    assert!(open.read_at(&mut [0; 10], 20 << 20).is_err(), "what was open is gone");
}

#[test]
fn a_dead_mount_can_be_unmounted() {
    if !can_mount("a_dead_mount_can_be_unmounted") {
        return;
    }
    let scene = Scene::new(files);
    scene.kill_mount();
    scene.umount();
    assert_eq!(crate::harness::entries(&scene.mount), Vec::<String>::new());
}

#[test]
fn a_publisher_that_died_is_an_error_and_one_that_came_back_goes_on() {
    if !can_mount("a_publisher_that_died_is_an_error_and_one_that_came_back_goes_on") {
        return;
    }
    let mut scene = Scene::with(&[], &["--timeout", "2"], files);
    let open = fs::File::open(scene.mount.join("big")).unwrap();
    let mut bytes = vec![0; 5000];
    open.read_exact_at(&mut bytes, 0).unwrap();
    scene.up.daemon.kill();
    let error = open.read_exact_at(&mut bytes, 20 << 20).unwrap_err();
    assert!(error.raw_os_error().is_some(), "{error}");
    assert!(list(&scene.mount.join("small")).is_err());
    assert!(fs::metadata(&scene.mount).unwrap().is_dir(), "the mount point answers");
    open.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, noise(24 << 20, 5)[..5000], "pages that are here are read");
    wait_for("a line in the log", || scene.log().contains("a call failed"), || scene.log());
    let _daemon = restart(&scene);
    open.read_exact_at(&mut bytes, 20 << 20).unwrap();
    assert_eq!(bytes, noise(24 << 20, 5)[20 << 20..][..5000], "the same open file");
    assert_eq!(fs::read(scene.mount.join("small/f9")).unwrap(), noise(3000, 109));
}

#[test]
fn while_a_publisher_is_silent_the_mount_point_answers() {
    if !can_mount("while_a_publisher_is_silent_the_mount_point_answers") {
        return;
    }
    let scene = Scene::with(&[], &["--timeout", "60", "--freshness", "0.1"], files);
    let open = fs::File::open(scene.mount.join("big")).unwrap();
    scene.stop_publisher();
    let reader = std::thread::spawn(move || {
        let mut bytes = [0; 100];
        open.read_exact_at(&mut bytes, 10 << 20).map(|()| bytes)
    });
    // Long after everything has lost its freshness. That they succeed says that nobody was asked.
    std::thread::sleep(Duration::from_millis(500));
    sh("df \"$1\" && stat \"$1\" && stat -f \"$1\"", &[&scene.mount]);
    signal(scene.up.daemon.pid(), "CONT");
    assert_eq!(reader.join().unwrap().unwrap(), noise(24 << 20, 5)[10 << 20..][..100]);
}

#[test]
fn calls_to_a_silent_publisher_end_and_go_on_when_it_is_back() {
    if !can_mount("calls_to_a_silent_publisher_end_and_go_on_when_it_is_back") {
        return;
    }
    let scene = Scene::with(&[], &["--timeout", "2"], files);
    let open = fs::File::open(scene.mount.join("big")).unwrap();
    scene.stop_publisher();
    let mut bytes = [0; 100];
    assert!([110, 5].contains(&errno(open.read_exact_at(&mut bytes, 10 << 20))));
    assert!(list(&scene.mount.join("small")).is_err());
    signal(scene.up.daemon.pid(), "CONT");
    open.read_exact_at(&mut bytes, 10 << 20).unwrap();
    assert_eq!(bytes, noise(24 << 20, 5)[10 << 20..][..100]);
}

#[test]
fn a_mount_is_unmounted_while_calls_hang() {
    if !can_mount("a_mount_is_unmounted_while_calls_hang") {
        return;
    }
    let scene = Scene::with(&[], &["--timeout", "60"], files);
    let open = fs::File::open(scene.mount.join("big")).unwrap();
    scene.stop_publisher();
    let reader = std::thread::spawn(move || open.read_exact_at(&mut [0; 100], 10 << 20));
    std::thread::sleep(Duration::from_millis(300));
    scene.umount();
    assert_eq!(crate::harness::entries(&scene.mount), Vec::<String>::new());
    signal(scene.up.daemon.pid(), "CONT");
    reader.join().unwrap().unwrap();
}

#[test]
fn a_reader_of_pages_can_be_killed_while_it_waits() {
    if !can_mount("a_reader_of_pages_can_be_killed_while_it_waits") {
        return;
    }
    let scene = Scene::with(&[], &["--timeout", "60"], files);
    let open = fs::File::open(scene.mount.join("big")).unwrap();
    scene.stop_publisher();
    let mut reader = std::process::Command::new("cat").stdin(open).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(reader.try_wait().unwrap().is_none(), "it waits");
    reader.kill().unwrap();
    wait_for("its end", || reader.try_wait().unwrap().is_some(), || scene.log());
    signal(scene.up.daemon.pid(), "CONT");
}

/// Readers that go on whatever happens, and compare every byte they get.
struct Load {
    stop: Arc<AtomicBool>,
    good: Arc<AtomicU64>,
    /// Of those of the large file, reads that the kernel did by itself.
    passed_through: Arc<AtomicU64>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Load {
    fn start(mount: &Path) -> Self {
        let (stop, good, passed_through) =
            (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default(), Arc::default());
        let threads = (0..4).map(|seed| {
            let (mount, stop) = (mount.to_owned(), Arc::clone(&stop));
            let counts = (Arc::clone(&good), Arc::clone(&passed_through));
            std::thread::spawn(move || read_on(&mount, seed, &stop, &counts))
        });
        Load { threads: threads.collect(), stop, good, passed_through }
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (good, passed_through) = (count(&self.good), count(&self.passed_through));
        // bench/kills takes it from here.
        eprintln!("{good} good reads, {passed_through} of them passed through");
    }
}

type Counter = Arc<AtomicU64>;

/// True if the kernel reads an open file by itself.
fn is_passed_through(file: &fs::File) -> bool {
    let mut value = [0; 8];
    rustix::fs::fgetxattr(file, "user.byname.passed_through", &mut value[..]) == Ok(3)
}

fn read_on(mount: &Path, seed: u64, stop: &AtomicBool, (good, passed): &(Counter, Counter)) {
    let (big, mut at) = (noise(24 << 20, 5), seed as usize * 1_000_003);
    while !stop.load(Ordering::Relaxed) {
        at = (at * 31 + 7919) % (big.len() - 70_000);
        let mut bytes = vec![0; 70_000];
        let file = fs::File::open(mount.join("big"));
        if let Ok(file) = file
            && file.read_exact_at(&mut bytes, at as u64).is_ok()
        {
            assert_eq!(bytes, big[at..at + 70_000], "at {at}");
            good.fetch_add(1, Ordering::Relaxed);
            passed.fetch_add(u64::from(is_passed_through(&file)), Ordering::Relaxed);
        }
        let index = at as u64 % 40;
        let path: PathBuf = mount.join(format!("small/f{index}"));
        if let Ok(bytes) = fs::read(path) {
            assert_eq!(bytes, noise(3000, 100 + index));
            good.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A forwarder between the mount and the publisher.
pub(crate) struct Between {
    home: Home,
    socket: String,
    daemon: Daemon,
}

impl Between {
    pub(crate) fn start() -> Self {
        let home = Home::new();
        let socket = format!("unix://{}", home.work("run").join("f.sock").display());
        let daemon = home.start(&["forward", "--listen", &socket], "listening");
        Between { home, socket, daemon }
    }

    pub(crate) fn socket(&self) -> &str {
        &self.socket
    }

    fn restart(&mut self) {
        self.daemon.kill();
        self.daemon = self.home.start(&["forward", "--listen", &self.socket], "listening");
    }

    /// The way to the publisher, which either may have forgotten.
    pub(crate) fn route(&self, scene: &Scene) {
        let args = ["route", "add", "/lab/tree", &scene.up.uri(), "--connect", &self.socket];
        self.home.run(&args).ok();
    }
}

#[test]
fn random_kills_cost_errors_and_never_a_wrong_byte() {
    if !can_mount("random_kills_cost_errors_and_never_a_wrong_byte") {
        return;
    }
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first: u64 = number("BYNAME_KILL_FIRST").unwrap_or(0);
    let rounds = number("BYNAME_KILL_ROUNDS").unwrap_or(ROUNDS);
    let mut scene = Scene::unmounted(&[], files);
    let mut between = Between::start();
    between.route(&scene);
    let socket = between.socket.clone();
    let options = ["--timeout", "2", "--connect", &socket];
    scene.mount(&options);
    let load = Load::start(&scene.mount);
    for round in first..first + rounds {
        let chance = u64::from_le_bytes(noise(8, round + 77).try_into().unwrap()) % 150;
        let pause = Duration::from_millis(chance);
        std::thread::sleep(pause);
        match round % 5 {
            0 => {
                scene.kill_mount();
                scene.mount(&options);
            }
            1 => {
                scene.up.daemon.kill();
                std::thread::sleep(pause);
                scene.up.daemon = restart(&scene);
                between.route(&scene);
            }
            2 => {
                between.restart();
                between.route(&scene);
            }
            3 => {
                scene.stop_publisher();
                std::thread::sleep(2 * pause);
                signal(scene.up.daemon.pid(), "CONT");
            }
            _ => kill_while_warming(&scene, pause),
        }
        let before = load.good.load(Ordering::Relaxed);
        let goes_on = || load.good.load(Ordering::Relaxed) > before + 4;
        wait_for(&format!("reads after round {round}"), goes_on, || scene.log());
    }
    load.end();
    scene.reader.run(&["cache", "scrub"]).ok();
}

/// Another process that fills the cache of the mount, and is killed.
fn kill_while_warming(scene: &Scene, pause: Duration) {
    scene.reader.run(&["cache", "drop", "/lab/tree"]).ok();
    let mut warming = scene.reader.byname();
    warming.args(["cache", "warm", &scene.up.link]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut warming = warming.spawn().unwrap();
    std::thread::sleep(pause);
    let _ = warming.kill();
    warming.wait().unwrap();
}
