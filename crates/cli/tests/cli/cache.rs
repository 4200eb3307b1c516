//! The site cache from the command line: what it holds, what is killed, and who is served from it.

use crate::harness::{Finished, Home, Up, free_port, noise, wait_for, write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

const LARGE: usize = 12_000_001;

/// A publisher of a small tree, and a reader with a cache.
struct Scene {
    _publisher: Home,
    reader: Home,
    dir: PathBuf,
    up: Up,
}

fn scene() -> Scene {
    let (publisher, reader) = (Home::new(), Home::new());
    let dir = publisher.work("d");
    std::fs::create_dir(dir.join("sub")).unwrap();
    write(&dir.join("small"), b"small\n");
    write(&dir.join("sub/large"), &noise(LARGE, 4));
    publisher.run(&["prepare", dir.to_str().unwrap(), "--name", "/lab/d"]).ok();
    let up = publisher.up(&dir, "/lab/d");
    Scene { _publisher: publisher, reader, dir, up }
}

impl Scene {
    /// `byname` that reads through the cache, on a disk of which all may be used.
    fn cached(&self, args: &[&str]) -> Command {
        let mut command = self.reader.byname();
        command.env("BYNAME_CACHE", "1").env("BYNAME_CACHE_FREE_MIB", "0").args(args);
        command
    }

    fn assert_cat(&self, path: &str) {
        let output = self.cached(&["cat", &self.up.link_to(path)]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout == std::fs::read(self.dir.join(path)).unwrap(), "{path}");
    }

    fn warm(&self) {
        let output = self.cached(&["cache", "warm", &self.up.link]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn data_files(&self) -> Vec<PathBuf> {
        let entries = self.reader.path().join("home/cache/entries");
        let groups = std::fs::read_dir(entries).unwrap();
        let entries = groups.flat_map(|group| std::fs::read_dir(group.unwrap().path()).unwrap());
        entries.map(|entry| entry.unwrap().path().join("data")).collect()
    }
}

#[test]
fn what_is_warm_is_listed_pinned_checked_and_removed() {
    let scene = scene();
    let home = &scene.reader;
    scene.warm();
    let listed = home.run(&["cache", "ls", "/lab", "--json"]).ok().stdout();
    assert_eq!(listed.matches("\"whole\":true").count(), 2, "{listed}");
    assert!(listed.contains(&format!("\"cached_bytes\":{LARGE}")), "{listed}");
    assert!(listed.contains("\"name\":\"/lab/d/sub/large\""), "{listed}");
    assert!(home.run(&["cache", "ls", "/elsewhere", "--json"]).ok().stdout().is_empty());
    home.run(&["cache", "pin", "/lab/d/sub"]).ok();
    let status = home.run(&["cache", "status", "--json"]).ok().stdout();
    assert!(status.contains("\"entries\":2") && status.contains("\"/lab/d/sub\""), "{status}");
    let listed = home.run(&["cache", "ls"]).ok().stdout();
    assert_eq!(listed.matches("pinned").count(), 1, "{listed}");
    home.run(&["cache", "verify", "/lab/d"]).ok();
    let nothing = home.run(&["cache", "verify", "/elsewhere"]);
    nothing.fails_with(3, "nothing of /elsewhere is in the cache");
    for data in scene.data_files() {
        if std::fs::metadata(&data).unwrap().len() == LARGE as u64 {
            let mut content = std::fs::read(&data).unwrap();
            content[5_000_000] ^= 4;
            std::fs::write(&data, content).unwrap();
        }
    }
    home.run(&["cache", "scrub"]).fails_with(5, "1 rotten unit");
    home.run(&["cache", "scrub"]).ok();
    scene.assert_cat("sub/large");
    home.run(&["cache", "unpin", "/lab/d/sub"]).ok();
    home.run(&["cache", "unpin", "/lab/d/sub"]).fails_with(3, "not pinned");
    home.run(&["cache", "limit", "/lab/d/sub", "1G"]).ok();
    let status = home.run(&["cache", "status"]).ok().stdout();
    assert!(status.contains("limited    /lab/d/sub to 1.00 GiB"), "{status}");
    home.run(&["cache", "limit", "/lab/d/sub", "much"]).fails_with(2, "much");
    home.run(&["cache", "limit", "/lab/d/sub", "none"]).ok();
    assert!(!home.run(&["cache", "status"]).ok().stdout().contains("limited"));
    home.run(&["cache", "drop", "/lab/d/sub"]).ok();
    let listed = home.run(&["cache", "ls", "--json"]).ok().stdout();
    assert_eq!(listed.lines().count(), 1, "{listed}");
}

#[test]
fn kill_9_at_any_moment_costs_no_byte() {
    let scene = scene();
    let link = scene.up.link_to("sub/large");
    for round in 0..20 {
        let mut child = scene
            .cached(&["cat", &link])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(40 + round * 13 % 200));
        let _ = child.kill();
        child.wait().unwrap();
        if round % 5 == 4 {
            scene.assert_cat("sub/large");
        }
        if round == 12 {
            scene.reader.run(&["cache", "drop", "--all"]).ok();
        }
    }
    scene.assert_cat("sub/large");
    scene.reader.run(&["cache", "scrub"]).ok();
}

#[test]
fn a_cache_is_a_copy_that_a_mirror_serves_when_the_publisher_is_gone() {
    let mut scene = scene();
    scene.warm();
    scene.up.daemon.kill();
    let uri = format!("tcp://127.0.0.1:{}", free_port());
    let tree = scene.reader.path().join("home/cache/tree/lab/d");
    assert!(tree.join("sub/large").exists());
    let tree = tree.to_str().unwrap();
    let args = ["serve", "--mirror", tree, "--name", "/lab/d", "--listen", &uri];
    let mirror = scene.reader.start(&args, "byname:/");
    let neighbour = Home::new();
    let key = scene.up.link.split("key=").nth(1).unwrap();
    for path in ["small", "sub/large"] {
        let link = format!("byname:/lab/d/{path},via={uri},key={key}");
        let mut read = Vec::new();
        wait_for(
            "copy",
            || {
                let output = neighbour.byname().args(["cat", &link]).output().unwrap();
                read = output.stdout;
                output.status.success()
            },
            || mirror.log(),
        );
        assert!(read == std::fs::read(scene.dir.join(path)).unwrap(), "{path}");
    }
}

#[test]
fn what_cannot_be_written_is_said_once_and_harms_no_reader() {
    let scene = scene();
    // A file stands where the directory would be made.
    write(&scene.reader.path().join("home-cache"), b"");
    let mut command = scene.cached(&["cat", &scene.up.link_to("sub/large")]);
    command.env("BYNAME_CACHE_DIR", scene.reader.path().join("home-cache"));
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(output.stdout == std::fs::read(scene.dir.join("sub/large")).unwrap());
    assert_eq!(stderr.matches("cache cannot be written").count(), 1, "{stderr}");
}

#[test]
fn a_disk_with_too_little_room_is_named_by_warm_and_status() {
    let scene = scene();
    let with_free = |mib: &str, args: &[&str]| {
        let mut command = scene.reader.byname();
        let output = command.env("BYNAME_CACHE_FREE_MIB", mib).args(args).output().unwrap();
        Finished { output }
    };
    // More than any disk has.
    let all = (1_u64 << 40).to_string();
    let warm = ["cache", "warm", &scene.up.link];
    let warmed = with_free(&all, &warm);
    let said = warmed.fails_with(7, "2 files not whole in the cache").stderr();
    assert!(said.contains("0 files, 0 B are in the cache"), "{said}");
    assert!(said.contains("cache.free_mib") && said.contains("home/cache has"), "{said}");
    let status = with_free(&all, &["cache", "status"]).ok().stdout();
    assert!(status.contains("nothing more is kept"), "{status}");
    let status = with_free("1", &["cache", "status"]).ok().stdout();
    assert!(status.contains("free, of which 1.00 MiB stay free"), "{status}");
    let told = with_free("1", &["cache", "status", "--json"]).ok().stdout();
    assert!(told.contains("\"free_bytes_min\":1048576"), "{told}");
    with_free("1", &warm).ok();
}

#[test]
fn a_service_that_does_not_answer_is_named_by_warm_and_status() {
    let scene = scene();
    let socket = scene.reader.path().join("socket");
    let with_service = |args: &[&str]| {
        let mut command = scene.reader.byname();
        let output = command.env("BYNAME_CACHE_SERVICE", &socket).args(args).output().unwrap();
        Finished { output }
    };
    let warm = ["cache", "warm", &scene.up.link_to("small")];
    let said = with_service(&warm).fails_with(7, "1 file not whole in the cache").stderr();
    assert!(said.contains("socket does not answer: No such file"), "{said}");
    let status = with_service(&["cache", "status"]).ok().stdout();
    assert!(status.contains("does not answer (No such file"), "{status}");
    let cached = ["cached", "--socket", socket.to_str().unwrap()];
    let _service = scene.reader.start_command(scene.cached(&cached), "is served at");
    with_service(&warm).ok();
    let status = with_service(&["cache", "status"]).ok().stdout();
    assert!(status.contains("used in place of a directory of one's own"), "{status}");
    let told = with_service(&["cache", "status", "--json"]).ok().stdout();
    assert!(told.contains("\"service_error\":null"), "{told}");
}
