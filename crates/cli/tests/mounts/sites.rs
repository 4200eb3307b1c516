//! Sites that are mounted: what `df` shows, and what rights mean there.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::harness::{Daemon, Finished, Home, noise, signal, wait_for, write};
use crate::scene::{can_mount, errno, is_root};

/// Octets of the site's one disk.
const CAPACITY: u64 = 1 << 30;

/// A forwarder, a head, and a disk.
struct Site {
    head: Daemon,
    _disk: Daemon,
    _forwarder: Daemon,
    socket: String,
    link: String,
    home: Home,
}

impl Site {
    fn new() -> Self {
        let home = Home::new();
        let socket = format!("unix://{}", home.work("run").join("f.sock").display());
        let forwarder = home.start(&["forward", "--listen", &socket], "listening");
        let init = ["site", "init", "/lab", "--operator", "op", "--dir", "site", "--replicas", "1"];
        let link = home.run(&init).ok().stdout().trim().to_owned();
        let connect = ["--connect", &socket];
        let catalog = ["catalog", "--dir", "site", "--keep-versions", "1s"];
        let head = home.start(&[&catalog[..], &connect].concat(), "byname:/lab");
        let add = ["site", "disk", "add", "d", "--capacity", "1G", "--server", "s"];
        home.run(&[&add[..], &connect].concat()).ok();
        let disk = home.start(&["disk", "d", "--connect", &socket], "serving d");
        Self { head, _disk: disk, _forwarder: forwarder, socket, link, home }
    }

    /// An operator's command.
    fn run(&self, args: &[&str]) -> Finished {
        self.home.run(&[args, &["--connect", &self.socket]].concat())
    }

    /// Somebody of a group, with a mount of the site.
    fn user(&self, name: &str, group: &str) -> User<'_> {
        let home = Home::new();
        home.run(&["trust", "add", &self.link]).ok();
        let key = home.run(&["site", "user", "key", "--site", "/lab", "--user", name]).ok();
        let file = self.home.path().join(format!("{name}.cert"));
        write(&file, key.stdout().as_bytes());
        let file = file.to_str().unwrap();
        self.run(&["site", "user", "add", name, "--group", group, "--key", file]).ok();
        User::mounting(self, home)
    }

    /// A directory in which a group may write.
    fn directory(&self, name: &str, group: &str) {
        self.run(&["mkdir", name, "--mode", "775"]).ok();
        self.run(&["chown", &format!(":{group}"), name]).ok();
    }
}

/// Somebody who has mounted a site.
struct User<'a> {
    home: Home,
    mount: PathBuf,
    site: &'a Site,
}

impl<'a> User<'a> {
    fn mounting(site: &'a Site, home: Home) -> Self {
        let mount = home.work("mnt");
        let user = User { home, mount, site };
        user.run(&["mount", "/lab", user.mount.to_str().unwrap()]).ok();
        user
    }

    fn run(&self, args: &[&str]) -> Finished {
        self.home.run(&[args, &["--connect", &self.site.socket]].concat())
    }

    fn put(&self, name: &str, octets: &[u8]) -> Finished {
        let local = self.home.path().join("local");
        fs::write(&local, octets).unwrap();
        self.run(&["put", local.to_str().unwrap(), name])
    }

    fn path(&self, path: &str) -> PathBuf {
        self.mount.join(path)
    }

    /// Octets in all, not used, and free, as `df` shows them.
    fn room(&self) -> (u64, u64, u64) {
        let found = rustix::fs::statvfs(&self.mount).unwrap();
        let octets = |blocks: u64| blocks * found.f_frsize;
        (octets(found.f_blocks), octets(found.f_bfree), octets(found.f_bavail))
    }

    #[track_caller]
    fn await_room(&self, wanted: impl Fn((u64, u64, u64)) -> bool) {
        let log = || format!("{:?}\n{}", self.room(), self.log());
        wait_for("such room", || wanted(self.room()), log);
    }

    fn log(&self) -> String {
        let directory = self.home.path().join("home/state/mounts");
        let files = fs::read_dir(directory).into_iter().flatten().flatten();
        files.map(|file| fs::read_to_string(file.path()).unwrap_or_default()).collect()
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("log of the mount:\n{}", self.log());
        }
        let _ = self.home.byname().arg("umount").arg(&self.mount).output();
    }
}

fn blocks(octets: u64) -> u64 {
    octets / 4096 * 4096
}

#[test]
fn df_of_a_mounted_site_shows_what_is_one_s_own() {
    if !can_mount("df_of_a_mounted_site_shows_what_is_one_s_own") {
        return;
    }
    let site = Site::new();
    site.directory("/lab/physics", "physics");
    let anna = site.user("anna", "physics");
    let all = blocks(CAPACITY);
    // All of the disk is free, and not hers alone.
    anna.await_room(|room| room == (all, all, all));
    anna.put("/lab/physics/f", &noise(3_000_000, 1)).ok();
    anna.await_room(|(size, unused, free)| (size, unused) == (all, free) && free < all - 2_900_000);

    // What counts is the least of what counts for her: her quota, and that of entries.
    site.run(&["site", "quota", "set", "user:anna", "--bytes", "8M", "--entries", "9"]).ok();
    let shown = anna.run(&["df", "/lab", "--json"]).ok().stdout();
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let of = |key: &str| blocks(shown[key].as_u64().unwrap());
    assert_eq!(of("free_bytes"), blocks((8 << 20) - 3_000_000));
    anna.await_room(|room| room == (of("size_bytes"), of("free_bytes"), of("free_bytes")));
    let entries = rustix::fs::statvfs(&anna.mount).unwrap();
    assert_eq!((entries.f_files, entries.f_ffree), (9, 8));
    // The quota is not that of others.
    let bert = site.user("bert", "physics");
    bert.await_room(|(size, ..)| size == all);

    // Who has no key there mounts what nobody tells him the room of, as any tree.
    let home = Home::new();
    home.run(&["trust", "add", &site.link]).ok();
    let stranger = User::mounting(&site, home);
    assert_eq!(fs::read(stranger.path("physics/f")).unwrap().len(), 3_000_000);
    assert_eq!(stranger.room(), (0, 0, 0));
}

/// The mount of whoever asks goes on, however silent the head is: what was known is shown for a
/// while, then nothing, and then what is so again.
#[test]
fn df_of_a_mounted_site_ends_while_its_head_is_silent() {
    if !can_mount("df_of_a_mounted_site_ends_while_its_head_is_silent") {
        return;
    }
    let site = Site::new();
    let anna = site.user("anna", "physics");
    anna.await_room(|(size, ..)| size > 0);
    signal(site.head.pid(), "STOP");
    anna.await_room(|room| room == (0, 0, 0));
    signal(site.head.pid(), "CONT");
    anna.await_room(|(size, ..)| size > 0);
}

#[test]
fn at_a_mount_of_a_site_rights_bind_changes_alone_and_nothing_changes() {
    if !can_mount("at_a_mount_of_a_site_rights_bind_changes_alone_and_nothing_changes") {
        return;
    }
    let site = Site::new();
    site.directory("/lab/physics", "physics");
    let (anna, bert) = (site.user("anna", "physics"), site.user("bert", "physics"));
    let octets = noise(100_000, 2);
    anna.run(&["mkdir", "-p", "/lab/physics/open", "/lab/physics/shut"]).ok();
    anna.run(&["chmod", "777", "/lab/physics/open", "/lab/physics/shut"]).ok();
    for name in ["/lab/physics/open/f", "/lab/physics/shut/f"] {
        anna.put(name, &octets).ok();
    }
    let reads = |user: &User<'_>, half: &str| {
        let path = user.path(&format!("physics/{half}/f"));
        wait_for("the file", || path.exists(), || user.log());
        assert_eq!(fs::read(&path).unwrap(), octets, "{half}");
    };

    // A list that denies half of the tree denies what he asks the head for, and no reading by name.
    anna.run(&["setfacl", "-R", "-m", "u:bert:-", "/lab/physics/shut"]).ok();
    let denied = "the modes do not allow it";
    bert.run(&["getfacl", "/lab/physics/shut/f"]).fails_with(7, denied);
    bert.run(&["touch", "/lab/physics/shut/b"]).fails_with(7, denied);
    bert.run(&["touch", "/lab/physics/open/b"]).ok();
    for half in ["open", "shut"] {
        reads(&bert, half);
        changes_nothing(&bert, half);
    }

    // Somebody who is over his quota reads on; here too he is told of a mount that changes nothing.
    site.run(&["site", "quota", "set", "user:bert", "--bytes", "1"]).ok();
    bert.put("/lab/physics/open/c", &octets).fails_with(1, "the quota of the user is used up");
    bert.await_room(|(_, _, free)| free == 0);
    reads(&bert, "open");
    changes_nothing(&bert, "open");

    // He leaves his group, with a file open: what he may no more are changes.
    let mut open = File::open(bert.path("physics/open/f")).unwrap();
    site.run(&["chmod", "770", "/lab/physics"]).ok();
    site.run(&["site", "user", "group", "bert", "cms"]).ok();
    bert.run(&["touch", "/lab/physics/open/b"]).fails_with(7, denied);
    let mut again = Vec::new();
    open.rewind().unwrap();
    open.read_to_end(&mut again).unwrap();
    assert_eq!(again, octets);
    changes_nothing(&bert, "open");

    // What is a lie of a door is not there, for its own mount neither.
    let home = Home::new();
    home.run(&["trust", "add", &site.link]).ok();
    let key = home.run(&["site", "door", "key", "xrd1", "--site", "/lab"]).ok();
    let file = site.home.path().join("xrd1.cert");
    write(&file, key.stdout().as_bytes());
    let file = file.to_str().unwrap();
    site.run(&["site", "door", "add", "xrd1", "--key", file, "--may-speak-for", "bert"]).ok();
    let door = User::mounting(&site, home);
    let lie = ["mkdir", "/lab/physics/open/lie", "--door", "xrd1", "--user", "anna"];
    door.run(&lie).fails_with(7, "the door may not speak for this user");
    anna.run(&["mkdir", "/lab/physics/open/true"]).ok();
    wait_for("what anna made", || door.path("physics/open/true").exists(), || door.log());
    assert!(!door.path("physics/open/lie").exists());
    changes_nothing(&door, "open");
    assert_eq!(door.room(), (0, 0, 0), "a door is nobody by itself");
}

/// Everything that would change half of the tree is refused as on a read-only file system: whoever
/// may not change it anyway is told the same.
#[track_caller]
fn changes_nothing(user: &User<'_>, half: &str) {
    // To others than root modes of directories come first.
    if !is_root("changes of a mounted site") {
        return;
    }
    let (file, new) =
        (user.path(&format!("physics/{half}/f")), user.path(&format!("physics/{half}/new")));
    let rofs = rustix::io::Errno::ROFS.raw_os_error();
    let write = |path: &Path| OpenOptions::new().append(true).open(path).map(drop);
    assert_eq!(errno(write(&file)), rofs);
    assert_eq!(errno(File::create(&new)), rofs);
    assert_eq!(errno(fs::create_dir(&new)), rofs);
    assert_eq!(errno(fs::remove_file(&file)), rofs);
    assert_eq!(errno(fs::rename(&file, &new)), rofs);
    assert_eq!(errno(fs::set_permissions(&file, fs::Permissions::from_mode(0o600))), rofs);
}
