//! Roots that are kept on the files: written only if asked for, and believed only where nobody else
//! could have written them.

use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use byname_security::tree::Hash;
use byname_store::FileServerConfig;
use byname_store::backend::posix::ROOT_ATTRIBUTE;
use byname_transfer::metadata::{ContentRoot, Metadata};

use super::client::{Peer, World, pattern};

const SMALL: usize = 10 * 8192;
const LARGE: usize = 700 * 8192 + 5;

fn config(world: &World) -> FileServerConfig {
    FileServerConfig { attributes: true, ..world.config() }
}

fn attribute(path: &Path) -> Option<Vec<u8>> {
    let mut octets = [0; 256];
    let len = rustix::fs::getxattr(path, ROOT_ATTRIBUTE, &mut octets[..]).ok()?;
    Some(octets[..len].to_vec())
}

/// A tree of a small and a large file whose roots have been written to them.
fn marked() -> (World, Metadata) {
    let world = World::new();
    world.write("small", &pattern(SMALL));
    world.write("large", &pattern(LARGE));
    let mut peer = Peer::start_with(config(&world));
    for name in ["/t/small", "/t/large"] {
        peer.metadata(name);
    }
    let before = peer.metadata("/t/small");
    drop(peer);
    for name in ["small", "large"] {
        assert!(attribute(&world.path(name)).is_some(), "{name} has no attribute");
    }
    (world, before)
}

/// Puts other octets into a file that has the same size and times of change afterwards.
fn forge(path: &Path, octets: &[u8]) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(octets, 0).unwrap();
    file.set_modified(modified).unwrap();
}

fn announced(peer: &mut Peer, path: &str) -> [u8; 32] {
    let ContentRoot::Known(root) = peer.metadata(path).root else { panic!("no root") };
    root
}

#[test]
fn a_tree_that_moved_keeps_its_roots_and_none_of_it_is_read_again() {
    let (world, before) = marked();
    // What nobody should do shows that only the attribute was looked at.
    forge(&world.path("small"), b"forged");
    forge(&world.path("large"), b"forged");
    std::fs::rename(world.path("large"), world.path("moved")).unwrap();
    let mut peer = Peer::start_with(config(&world));
    assert_eq!(announced(&mut peer, "/t/small"), Hash::of(&pattern(SMALL)).0);
    assert_eq!(announced(&mut peer, "/t/moved"), Hash::of(&pattern(LARGE)).0);
    assert!(peer.metadata("/t/small").version() > before.version());
    drop(peer);
    // Without being asked to, a server looks at the content.
    let mut peer = Peer::start(&world);
    std::fs::set_permissions(world.path("small"), Permissions::from_mode(0o640)).unwrap();
    assert_ne!(announced(&mut peer, "/t/small"), Hash::of(&pattern(SMALL)).0);
}

#[test]
fn an_attribute_that_others_could_have_written_or_that_is_outdated_is_not_believed() {
    let (world, _) = marked();
    forge(&world.path("small"), b"forged");
    std::fs::set_permissions(world.path("small"), Permissions::from_mode(0o664)).unwrap();
    let large = OpenOptions::new().write(true).open(world.path("large")).unwrap();
    large.write_all_at(b"changed", 0).unwrap();
    let mut peer = Peer::start_with(config(&world));
    let (mut small, mut large) = (pattern(SMALL), pattern(LARGE));
    small[..6].copy_from_slice(b"forged");
    large[..7].copy_from_slice(b"changed");
    assert_eq!(announced(&mut peer, "/t/small"), Hash::of(&small).0);
    assert_eq!(announced(&mut peer, "/t/large"), Hash::of(&large).0);
    let old = attribute(&world.path("large")).unwrap();
    drop(peer);
    assert_ne!(attribute(&world.path("large")).unwrap(), old, "it is replaced");
}

#[test]
fn a_copy_with_attributes_has_its_roots_in_a_manifest_at_once() {
    let (world, _) = marked();
    let copy = world.path("copy");
    std::fs::write(&copy, pattern(SMALL)).unwrap();
    let (from, to) = (
        File::open(world.path("small")).unwrap(),
        File::options().write(true).open(&copy).unwrap(),
    );
    to.set_modified(from.metadata().unwrap().modified().unwrap()).unwrap();
    let octets = attribute(&world.path("small")).unwrap();
    rustix::fs::fsetxattr(&to, ROOT_ATTRIBUTE, &octets, rustix::fs::XattrFlags::empty()).unwrap();
    forge(&copy, b"forged");
    let mut peer = Peer::start_with(config(&world));
    assert_eq!(announced(&mut peer, "/t/copy"), Hash::of(&pattern(SMALL)).0);
}
