//! What a mount shows when the published tree changes: open files stay what they are, everything
//! opened anew is current within the bound.

use crate::harness::{noise, wait_for, write};
use crate::scene::{Scene, age, can_mount, errno, sh};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::process::Command;

/// Puts new content in the place of a file, as editors do.
fn replace(path: &std::path::Path, content: &[u8]) {
    let beside = path.with_extension("new");
    write(&beside, content);
    fs::rename(&beside, path).unwrap();
}

#[test]
fn what_is_changed_added_and_removed_is_seen() {
    if !can_mount("what_is_changed_added_and_removed_is_seen") {
        return;
    }
    let scene = Scene::new(|source| {
        write(&source.join("changed"), b"old");
        write(&source.join("removed"), b"old");
        fs::create_dir(source.join("sub")).unwrap();
        write(&source.join("sub/inner"), b"old");
    });
    let (source, mount) = (&scene.source, &scene.mount);
    assert_eq!(fs::read(mount.join("changed")).unwrap(), b"old");
    assert_eq!(errno(fs::metadata(mount.join("added"))), 2);
    let (before, directory) =
        (fs::metadata(mount.join("changed")).unwrap(), fs::metadata(mount.join("sub")).unwrap());
    let mut shell = Command::new("sh")
        .args(["-c", "read wait; ls; cat inner"])
        .current_dir(mount.join("sub"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    replace(&source.join("changed"), b"new and longer");
    replace(&source.join("added"), b"new");
    fs::remove_file(source.join("removed")).unwrap();
    replace(&source.join("sub/inner"), b"new");
    let log = || scene.log();
    wait_for("new", || fs::read(mount.join("changed")).unwrap() == b"new and longer", log);
    wait_for("added", || fs::read(mount.join("added")).is_ok_and(|it| it == b"new"), log);
    wait_for("removed", || fs::metadata(mount.join("removed")).is_err(), log);
    wait_for("inner", || fs::read(mount.join("sub/inner")).unwrap() == b"new", log);
    let after = fs::metadata(mount.join("changed")).unwrap();
    assert_ne!(after.ino(), before.ino(), "another version is another inode");
    assert_eq!(after.len(), 14);
    assert_eq!(fs::metadata(mount.join("sub")).unwrap().ino(), directory.ino());
    drop(shell.stdin.take());
    let mut said = String::new();
    shell.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    shell.wait().unwrap();
    assert_eq!(said, "inner\nnew", "a working directory survives");
    sh("diff -r \"$1\" \"$2\"", &[source, mount]);
}

#[test]
fn an_open_file_stays_its_version_or_is_stale() {
    if !can_mount("an_open_file_stays_its_version_or_is_stale") {
        return;
    }
    let (old, new) = (noise(40 << 20, 1), noise(40 << 20, 2));
    let scene = Scene::new(|source| write(&source.join("big"), &old));
    let path = scene.mount.join("big");
    let open = fs::File::open(&path).unwrap();
    let mut head = vec![0; 100_000];
    open.read_exact_at(&mut head, 0).unwrap();
    replace(&scene.source.join("big"), &new);
    age(&scene.source);
    wait_for(
        "the new version",
        || {
            fs::File::open(&path).is_ok_and(|file| {
                let mut head = [0; 100];
                file.read_exact_at(&mut head, 0).is_ok() && head == new[..100]
            })
        },
        || scene.log(),
    );
    let mut stale = 0;
    for at in (0..old.len()).step_by(1 << 20) {
        let mut bytes = vec![0; 1000];
        match open.read_exact_at(&mut bytes, at as u64) {
            Ok(()) => assert_eq!(bytes, old[at..at + 1000], "at {at}"),
            Err(error) => {
                assert!([116, 5].contains(&error.raw_os_error().unwrap()), "{error}");
                stale += 1;
            }
        }
    }
    assert!(stale > 0, "most of it was never read, and nobody has it any more");
    assert_eq!(fs::read(&path).unwrap(), new);
}

#[test]
fn a_directory_that_is_read_stays_what_it_was_until_it_is_rewound() {
    if !can_mount("a_directory_that_is_read_stays_what_it_was_until_it_is_rewound") {
        return;
    }
    let scene = Scene::new(|source| {
        (0..3000).for_each(|index| write(&source.join(format!("entry number {index:05}")), b""));
    });
    let script = "import os, sys, time\n\
        d = os.scandir(sys.argv[1]); first = next(d).name\n\
        for i in range(0, 3000, 3): os.unlink('%s/entry number %05d' % (sys.argv[2], i))\n\
        open(sys.argv[2] + '/a new one', 'w').close()\n\
        names = [first] + [e.name for e in d]\n\
        assert len(names) == len(set(names)) == 3000, len(names)\n\
        end = time.time() + 20\n\
        while len(os.listdir(sys.argv[1])) != 2001 and time.time() < end: time.sleep(.05)\n\
        print(len(os.listdir(sys.argv[1])))\n";
    let said = sh(
        &format!("python3 - \"$1\" \"$2\" <<'END'\n{script}END"),
        &[&scene.mount, &scene.source],
    );
    assert_eq!(said, "2001\n");
}

#[test]
fn readers_of_a_file_that_keeps_being_replaced_get_one_version_or_an_error() {
    if !can_mount("readers_of_a_file_that_keeps_being_replaced_get_one_version_or_an_error") {
        return;
    }
    let content = |seed: u64| noise(600_000, seed);
    let scene = Scene::new(|source| write(&source.join("file"), &content(0)));
    let (source, path) = (scene.source.join("file"), scene.mount.join("file"));
    let writer = std::thread::spawn(move || {
        for seed in 1..40 {
            replace(&source, &content(seed));
            std::thread::sleep(std::time::Duration::from_millis(60));
        }
    });
    let known: Vec<Vec<u8>> = (0..40).map(content).collect();
    while !writer.is_finished() {
        if let Ok(bytes) = fs::read(&path) {
            assert!(known.contains(&bytes), "{} octets that nobody wrote", bytes.len());
        }
    }
    writer.join().unwrap();
    wait_for(
        "the last version",
        || fs::read(&path).is_ok_and(|it| it == known[39]),
        || scene.log(),
    );
}
