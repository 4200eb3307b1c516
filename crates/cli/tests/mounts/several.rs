//! Several published trees in one mount, by different publishers.

use crate::harness::{Home, Up, wait_for, write};
use crate::scene::{Scene, can_mount};

/// The trees of two publishers.
struct Two {
    scene: Scene,
    other: Up,
    _home: Home,
}

impl Two {
    fn new() -> Self {
        let scene = Scene::unmounted(&[], |source| {
            std::fs::create_dir(source.join("d")).unwrap();
            write(&source.join("d/f"), b"of the first");
        });
        let home = Home::new();
        let dir = home.work("other");
        write(&dir.join("f"), b"of the other");
        let other = home.up_with(&dir, "/other/tree", &[]);
        Two { scene, other, _home: home }
    }

    fn mount(&self, trees: &[&str]) -> crate::harness::Finished {
        let mount = self.scene.mount.to_str().unwrap();
        self.scene.reader.run(&[&["mount"], trees, &[mount]].concat())
    }

    /// Looks at both trees, and at the directory above them.
    fn look(&self) {
        let mount = &self.scene.mount;
        let listed = std::fs::read_dir(mount).unwrap().map(|entry| entry.unwrap().file_name());
        let mut listed: Vec<_> = listed.collect();
        listed.sort();
        assert_eq!(listed, ["one", "two"]);
        assert_eq!(std::fs::read(mount.join("one/d/f")).unwrap(), b"of the first");
        assert_eq!(std::fs::read(mount.join("two/f")).unwrap(), b"of the other");
        let absent = std::fs::metadata(mount.join("three")).unwrap_err();
        assert_eq!(absent.kind(), std::io::ErrorKind::NotFound);
        let inside = std::fs::metadata(mount.join("one/d/../../two/f")).unwrap();
        assert_eq!(inside.len(), 12);
        let refused = std::fs::create_dir(mount.join("three")).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    }
}

#[test]
fn two_trees_are_two_directories_of_one_mount() {
    if !can_mount("two_trees_are_two_directories_of_one_mount") {
        return;
    }
    let mut two = Two::new();
    let trees = [format!("{}=one", two.scene.up.link), format!("{}=two", two.other.link)];
    two.mount(&[&trees[0], &trees[1]]).ok();
    two.look();
    // A change in one of them is seen; so are inodes of both, each with its own version.
    write(&two.scene.source.join("d/f"), b"changed in the first");
    let read = || std::fs::read(two.scene.mount.join("one/d/f")).unwrap();
    wait_for("the change", || read() == b"changed in the first", || format!("{:?}", read()));
    let counted = std::process::Command::new("find").arg(&two.scene.mount).output().unwrap();
    assert_eq!(String::from_utf8(counted.stdout).unwrap().lines().count(), 6);
    // While one publisher is gone, the other's tree and the directory above go on.
    two.other.daemon.kill();
    assert_eq!(std::fs::read_dir(&two.scene.mount).unwrap().count(), 2);
    assert_eq!(read(), b"changed in the first");
    two.scene.umount();
}

#[test]
fn a_table_says_what_is_mounted_where() {
    if !can_mount("a_table_says_what_is_mounted_where") {
        return;
    }
    let two = Two::new();
    let table = two.scene.reader.path().join("table");
    let lines = format!("# trees\n\none\t{}\n two  {}\n", two.scene.up.link, two.other.link);
    std::fs::write(&table, lines).unwrap();
    let table = table.to_str().unwrap();
    two.mount(&["--table", table]).ok();
    two.look();
    two.scene.umount();
    two.mount(&["-o", "table,_netdev", table]).ok();
    two.look();
    two.scene.umount();
    std::fs::write(table, "one\n").unwrap();
    two.mount(&["--table", table]).fails_with(2, "table:1: a directory and a link are wanted");
}

#[test]
fn trees_that_cannot_be_told_apart_are_refused() {
    if !can_mount("trees_that_cannot_be_told_apart_are_refused") {
        return;
    }
    let two = Two::new();
    let (first, other) = (&two.scene.up.link, &two.other.link);
    let one = format!("{first}=one");
    two.mount(&[&one, other]).fails_with(2, "=DIRECTORY");
    two.mount(&[&one, &format!("{other}=one")]).fails_with(2, "two trees have it");
    two.mount(&[&one, &format!("{other}=..")]).fails_with(2, "no name for a tree's directory");
    let below = two.scene.up.link_to("d");
    two.mount(&[&one, &format!("{below}=two")]).fails_with(2, "lie in one another");
}
