//! Unpublished files stay unseen.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use byname_packet::{InterestBuilder, Name};
use byname_store::Exposure;
use byname_transfer::metadata::{Absence, Answer};
use byname_transfer::naming;

use super::client::{Peer, Reply, World};

fn chmod(path: impl AsRef<std::path::Path>, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn with(world: &World, exposure: Exposure) -> Peer {
    let mut config = world.config();
    config.mounts[0].source = world.source(exposure);
    Peer::start_with(config)
}

fn is_published(peer: &mut Peer, path: &str) -> bool {
    matches!(peer.discover(path), Answer::Metadata(_))
}

#[test]
fn links_are_followed_only_beneath_the_root() {
    let world = World::new();
    world.write("d/inner", b"inside");
    std::fs::write(world.beside("outside"), b"outside").unwrap();
    std::fs::create_dir(world.beside("elsewhere")).unwrap();
    std::fs::write(world.beside("elsewhere/file"), b"outside").unwrap();
    let link = |target: &str, name: &str| symlink(target, world.path(name)).unwrap();
    link("d/inner", "good-file");
    link("d", "good-directory");
    link("../d/../d/inner", "d/good-up");
    link("good-file", "good-chain");
    link("../outside", "bad-up");
    link("../tree/d/inner", "bad-out-and-in");
    link(world.beside("outside").to_str().unwrap(), "bad-absolute");
    link(world.path("d/inner").to_str().unwrap(), "bad-absolute-inside");
    link("../elsewhere", "bad-directory");
    link("bad-directory", "bad-chain");
    link("bad-loop", "bad-loop");
    link("missing", "bad-dangling");
    link("/proc/self/root/etc", "bad-magic");
    let mut peer = Peer::start(&world);
    for path in ["good-file", "good-directory/inner", "d/good-up", "good-chain"] {
        let metadata = peer.metadata(&format!("/t/{path}"));
        assert_eq!(peer.fetch(&metadata), b"inside", "{path}");
    }
    for path in [
        "bad-up",
        "bad-out-and-in",
        "bad-absolute",
        "bad-absolute-inside",
        "bad-directory",
        "bad-directory/file",
        "bad-chain/file",
        "bad-loop",
        "bad-dangling",
        "bad-magic",
        "bad-magic/passwd",
    ] {
        assert_eq!(peer.absence(&format!("/t/{path}")), Absence::NotFound, "{path}");
    }
    assert_eq!(peer.list("/t"), ["d/", "good-chain", "good-directory/", "good-file"]);
}

#[test]
fn links_that_close_a_circle_are_not_published() {
    let world = World::new();
    world.write("a/f", b"of a");
    world.write("b/deep/g", b"of b");
    let link = |target: &str, name: &str| symlink(target, world.path(name)).unwrap();
    link(".", "self");
    link("..", "a/parent");
    link("../b", "a/x");
    link("../a", "b/y");
    link("../../b", "b/deep/up");
    link("a/../b/..", "way-round");
    link("self/self/a/f", "through");
    let mut peer = Peer::start(&world);
    assert_eq!(peer.list("/t"), ["a/", "b/", "through"]);
    assert_eq!(peer.list("/t/a"), ["f", "x/"]);
    assert_eq!(peer.list("/t/a/x"), ["deep/"]);
    assert_eq!(peer.list("/t/a/x/deep"), ["g"]);
    assert_eq!(peer.list("/t/b"), ["deep/", "y/"]);
    assert_eq!(peer.list("/t/b/y"), ["f"]);
    for path in ["a/x/deep/g", "b/y/f", "through"] {
        assert!(is_published(&mut peer, &format!("/t/{path}")), "{path}");
    }
    for path in [
        "self",
        "self/a/f",
        "a/parent",
        "a/parent/b/deep/g",
        "a/x/y",
        "a/x/y/f",
        "b/y/x/deep/g",
        "b/deep/up/y/f",
        "way-round/a/f",
    ] {
        assert_eq!(peer.absence(&format!("/t/{path}")), Absence::NotFound, "{path}");
    }
}

#[test]
fn names_cannot_climb() {
    let world = World::new();
    world.write("d/f", b"x");
    std::fs::write(world.beside("outside"), b"outside").unwrap();
    let mut peer = Peer::start(&world);
    for components in [
        &[b"..".as_slice(), b"outside"][..],
        &[b"d", b"..", b"d", b"f"],
        &[b".", b"d"],
        &[b"d/f"],
        &[b"d", b""],
        &[b"d\0"],
        &[b"../outside"],
        &[&[b'x'; 256]],
    ] {
        let mut name: Name = "/t".parse().unwrap();
        components.iter().for_each(|component| name.push_generic(component));
        let name = naming::metadata_name(name.view());
        let reply = peer.ask(&InterestBuilder::new(name.view()).can_be_prefix(true));
        assert!(matches!(reply, Reply::Nack(0)), "{name}");
    }
}

#[test]
fn special_files_are_hidden_and_never_opened() {
    let world = World::new();
    world.write("f", b"");
    let fifo = world.path("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o644.into()).unwrap();
    let _socket = UnixListener::bind(world.path("socket")).unwrap();
    symlink("fifo", world.path("link")).unwrap();
    let mut peer = Peer::start(&world);
    for path in ["fifo", "socket", "link", "fifo/x"] {
        assert_eq!(peer.absence(&format!("/t/{path}")), Absence::NotFound, "{path}");
    }
    assert_eq!(peer.list("/t"), ["f"]);
}

#[test]
fn dot_files_are_published_only_if_asked_for() {
    let world = World::new();
    world.write(".hidden", b"");
    world.write(".dir/f", b"");
    world.write("plain", b"");
    symlink(".dir/f", world.path("way-in")).unwrap();
    let mut peer = Peer::start(&world);
    assert_eq!(peer.list("/t"), ["plain"]);
    for path in [".hidden", ".dir", ".dir/f", "way-in"] {
        assert!(!is_published(&mut peer, &format!("/t/{path}")), "{path}");
    }
    drop(peer);
    let mut peer = with(&world, Exposure { hidden: true, private: false });
    assert_eq!(peer.list("/t"), [".dir/", ".hidden", "plain", "way-in"]);
    assert!(is_published(&mut peer, "/t/way-in"));
}

#[test]
fn what_only_its_owner_can_read_is_published_only_if_asked_for() {
    let world = World::new();
    world.write("public", b"");
    world.write("group", b"");
    world.write("secret", b"");
    world.write("closet/f", b"");
    world.write("unlisted/f", b"");
    symlink("closet/f", world.path("way-in")).unwrap();
    chmod(world.path("group"), 0o640);
    chmod(world.path("secret"), 0o600);
    chmod(world.path("closet"), 0o700);
    chmod(world.path("unlisted"), 0o711);
    // The root itself was chosen by whoever publishes it.
    chmod(world.tree(), 0o700);
    let mut peer = Peer::start(&world);
    assert_eq!(peer.list("/t"), ["group", "public"]);
    for path in ["secret", "closet", "closet/f", "unlisted/f", "way-in"] {
        assert!(!is_published(&mut peer, &format!("/t/{path}")), "{path}");
    }
    drop(peer);
    let mut peer = with(&world, Exposure { hidden: false, private: true });
    let all = ["closet/", "group", "public", "secret", "unlisted/", "way-in"];
    assert_eq!(peer.list("/t"), all);
    assert!(is_published(&mut peer, "/t/closet/f"));
}

#[test]
fn a_state_directory_inside_the_tree_is_never_published() {
    let world = World::new();
    world.write("f", b"");
    let mut config = world.config();
    config.state_dir = world.path("state");
    config.mounts[0].source = world.source(Exposure { hidden: true, private: true });
    symlink("state", world.path("link")).unwrap();
    let mut peer = Peer::start_with(config);
    assert_eq!(peer.list("/t"), ["f"]);
    for path in ["state", "state/lock", "state/records.redb", "link/lock"] {
        assert_eq!(peer.absence(&format!("/t/{path}")), Absence::NotFound, "{path}");
    }
}

#[test]
fn nothing_is_written_into_the_published_tree() {
    let world = World::new();
    world.write("d/f", &[7; 3 << 20]);
    let about = |path: &str| {
        let about = std::fs::metadata(world.path(path)).unwrap();
        (about.modified().unwrap(), about.permissions().mode())
    };
    let before = ["", "d", "d/f"].map(about);
    let mut peer = Peer::start(&world);
    let metadata = peer.metadata("/t/d/f");
    peer.fetch(&metadata);
    peer.list("/t/d");
    assert_eq!(["", "d", "d/f"].map(about), before);
}

/// Runs `act` in a thread whose user may not read everything, as root may.
fn as_ordinary_user<T: Send>(world: &World, act: impl FnOnce() -> T + Send) -> T {
    use rustix::process::{Gid, Uid};
    let (nobody, nogroup) = (Uid::from_raw(65534), Gid::from_raw(65534));
    if !rustix::process::geteuid().is_root() {
        return act();
    }
    chmod(world.beside(""), 0o777);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            rustix::thread::set_thread_groups(&[]).unwrap();
            rustix::thread::set_thread_res_gid(nogroup, nogroup, nogroup).unwrap();
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            act()
        });
        thread.join().unwrap()
    })
}

#[test]
fn what_the_server_may_not_read_is_told_apart_from_what_does_not_exist() {
    let world = World::new();
    world.write("unreadable", b"x");
    world.write("closed/f", b"x");
    chmod(world.path("unreadable"), 0o040);
    chmod(world.path("closed"), 0o050);
    let config = world.config();
    let answers = as_ordinary_user(&world, || {
        let mut peer = Peer::start_with(config);
        ["unreadable", "closed", "closed/f", "missing"]
            .map(|path| peer.absence(&format!("/t/{path}")))
    });
    use Absence::{NoPermission, NotFound};
    assert_eq!(answers, [NoPermission, NoPermission, NoPermission, NotFound]);
}
