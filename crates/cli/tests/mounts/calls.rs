//! System calls on a mount: those that read say what the published tree says, those that change
//! something are refused.

use crate::harness::{noise, write};
use crate::scene::{Scene, can_mount, is_root, sh};
use std::path::{Path, PathBuf};

/// Compiles a program of this directory.
fn compile(name: &str, directory: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mounts").join(name);
    let program = directory.join(name).with_extension("");
    sh("${CC:-cc} -O1 -Wall -Wextra -Werror -o \"$2\" \"$1\"", &[&source, &program]);
    program
}

fn tree(source: &Path) {
    std::fs::create_dir_all(source.join("sub/empty")).unwrap();
    for size in [0, 1, 4095, 4096, 8192, 8193, 70_000] {
        write(&source.join(format!("size {size}")), &noise(size, size as u64));
    }
    write(&source.join("file"), b"content");
    write(&source.join("sub/inner"), b"more");
    write(&source.join("sub").join("n".repeat(255)), b"long");
    std::fs::create_dir(source.join("many")).unwrap();
    for index in 0..1500 {
        write(&source.join(format!("many/entry {index}")), b"");
    }
    let modes = "cd \"$1\" && chmod 755 . sub many sub/empty && chmod 644 size* sub/* && \
                 chmod 640 'size 1' && chmod 755 'size 4096' && chmod 755 sub/empty && \
                 chmod 1775 many";
    sh(modes, &[source]);
}

#[test]
fn every_reading_call_says_what_the_published_tree_says() {
    if !can_mount("every_reading_call_says_what_the_published_tree_says") {
        return;
    }
    let scene = Scene::new(tree);
    let program = compile("reading.c", scene.reader.path());
    let seen = sh("\"$1\" \"$2\"", &[&program, &scene.mount]);
    let published = sh("\"$1\" \"$2\"", &[&program, &scene.source]);
    let (seen, published): (Vec<&str>, Vec<&str>) =
        (seen.lines().collect(), published.lines().collect());
    for (number, (seen, wanted)) in seen.iter().zip(&published).enumerate() {
        let before = &published[number.saturating_sub(12)..number];
        assert_eq!(seen, wanted, "line {number}, after {before:#?}");
    }
    assert_eq!(seen.len(), published.len());
    assert!(seen.len() > 10_000, "it looked at everything");
}

/// Calls on a descriptor that is open for reading fail as everywhere.
const OF_THE_DESCRIPTOR: [(&str, &str); 11] = [
    ("write", "EBADF"),
    ("pwrite", "EBADF"),
    ("writev", "EBADF"),
    ("pwritev", "EBADF"),
    ("sendfile", "EBADF"),
    ("splice", "EBADF"),
    ("ftruncate", "EINVAL"),
    ("fallocate", "EBADF"),
    ("punch a hole", "EBADF"),
    ("FICLONE", "EBADF"),
    ("copy_file_range", "EBADF"),
];

#[test]
fn every_changing_call_is_refused_as_on_a_read_only_file_system() {
    if !can_mount("every_changing_call_is_refused_as_on_a_read_only_file_system") {
        return;
    }
    let scene = Scene::new(tree);
    let program = compile("changing.c", scene.reader.path());
    let said = sh("\"$1\" \"$2\"", &[&program, &scene.mount]);
    let mut count = 0;
    for line in said.lines() {
        let (call, error) = line.rsplit_once(' ').unwrap();
        let of_descriptor = OF_THE_DESCRIPTOR.iter().find(|(name, _)| *name == call);
        let wanted = of_descriptor.map_or("EROFS", |(_, error)| *error);
        assert_eq!((call, error), (call, wanted));
        count += 1;
    }
    assert_eq!(count, 69);
}

/// What the kernel says by itself of a file system that may be written to.
const BY_THE_KERNEL: [(&str, &str); 5] = [
    ("open O_TMPFILE", "EOPNOTSUPP"),
    ("FS_IOC_SETFLAGS", "ENOTTY"),
    ("access W_OK", "worked"),
    ("faccessat W_OK", "worked"),
    ("access W_OK of a directory", "worked"),
];

#[test]
fn a_mount_made_writable_by_force_still_refuses_every_change() {
    let test = "a_mount_made_writable_by_force_still_refuses_every_change";
    if !can_mount(test) || !is_root(test) {
        return;
    }
    let scene = Scene::new(tree);
    let program = compile("changing.c", scene.reader.path());
    sh("mount -i -o remount,rw \"$1\"", &[&scene.mount]);
    let said = sh("\"$1\" \"$2\"", &[&program, &scene.mount]);
    for line in said.lines() {
        let (call, error) = line.rsplit_once(' ').unwrap();
        let by_kernel = BY_THE_KERNEL.iter().chain(&OF_THE_DESCRIPTOR);
        let known = by_kernel.clone().find(|(name, _)| *name == call);
        assert_eq!((call, error), (call, known.map_or("EROFS", |(_, error)| *error)));
    }
    let same = sh("diff -r \"$1\" \"$2\" && echo same", &[&scene.source, &scene.mount]);
    assert_eq!(same, "same\n");
}

#[test]
fn extended_attributes_say_version_root_and_publisher() {
    if !can_mount("extended_attributes_say_version_root_and_publisher") {
        return;
    }
    let scene = Scene::new(|source| write(&source.join("file"), &noise(100_000, 3)));
    let said = sh(
        "python3 - \"$1\" <<'END'\nimport os, sys\nroot = sys.argv[1]\n\
         for path in (root + '/file', root):\n \
         for name in os.listxattr(path): print(name, os.getxattr(path, name).decode())\nEND",
        &[&scene.mount],
    );
    let find = |name: &str| {
        let line = said.lines().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("no {name} in {said}")).rsplit_once(' ').unwrap().1
    };
    let file = scene.source.join("file");
    let sum = sh("b3sum --no-names \"$1\"", &[&file]);
    assert_eq!(find("user.byname.root"), sum.trim());
    assert_eq!(find("user.byname.verified"), "anchored");
    let link = scene.up.link.clone();
    assert!(link.contains(find("user.byname.publisher")), "{said}");
    let status = scene.reader.run(&["stat", &scene.up.link_to("file"), "--json"]).ok().stdout();
    assert!(status.contains(find("user.byname.version")), "{status}");
    let listed = said.lines().filter(|line| line.starts_with("user.byname.verified")).count();
    assert_eq!(listed, 2, "of the file and of the directory");
}

#[test]
fn symbolic_links_are_links_and_lead_where_they_lead() {
    if !can_mount("symbolic_links_are_links_and_lead_where_they_lead") {
        return;
    }
    let scene = Scene::new(|source| {
        tree(source);
        sh(
            "cd \"$1\" && ln -s file to-file && ln -s ../file sub/up && ln -s sub to-sub",
            &[source],
        );
    });
    let read = |path: &str| std::fs::read_link(scene.mount.join(path)).unwrap();
    assert_eq!(read("to-file"), Path::new("file"));
    assert_eq!(read("sub/up"), Path::new("../file"));
    assert_eq!(std::fs::read(scene.mount.join("to-sub/up")).unwrap(), b"content");
    let info = std::fs::symlink_metadata(scene.mount.join("to-file")).unwrap();
    assert!(info.is_symlink());
    assert_eq!(info.len(), 4);
    let list = "cd \"$1\" && find . -type l -printf '%p %l\\n' | sort";
    assert_eq!(sh(list, &[&scene.mount]), sh(list, &[&scene.source]));
}

#[test]
fn media_types_are_published_by_extension_and_shown_everywhere() {
    if !can_mount("media_types_are_published_by_extension_and_shown_everywhere") {
        return;
    }
    let scene = Scene::new(|source| {
        write(&source.join("notes.txt"), b"\x89PNG is no text");
        write(&source.join("run7"), b"text");
        std::fs::create_dir(source.join("dir.txt")).unwrap();
    });
    let of_mount = |name: &str| {
        let mut value = [0; 100];
        let length =
            rustix::fs::getxattr(scene.mount.join(name), "user.mime_type", &mut value[..])?;
        rustix::io::Result::Ok(String::from_utf8(value[..length].to_vec()).unwrap())
    };
    assert_eq!(of_mount("notes.txt").as_deref(), Ok("text/plain"));
    for name in ["run7", "dir.txt"] {
        assert_eq!(of_mount(name), Err(rustix::io::Errno::NODATA), "{name}");
    }
    let typed = "\"media_type\":\"text/plain\"";
    let stat = scene.reader.run(&["stat", &scene.up.link_to("notes.txt"), "--json"]).ok();
    assert!(stat.stdout().contains(typed), "{}", stat.stdout());
    let listed = scene.reader.run(&["ls", "-l", &scene.up.link, "--json"]).ok().stdout();
    assert_eq!(listed.matches("media_type").count(), 1, "{listed}");
    assert!(listed.lines().any(|line| line.contains("notes.txt") && line.contains(typed)));
}
