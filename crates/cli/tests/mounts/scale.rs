//! Many files, many readers, huge files: memory stays bounded.

use crate::harness::{noise, write};
use crate::scene::{Scene, can_mount, sh};
use std::fs;
use std::os::unix::fs::FileExt;

/// Resident octets of the process behind a mount, at their highest, in MiB.
fn peak_mib(scene: &Scene) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", scene.mount_pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[test]
fn a_thousand_open_files_and_64_readers_take_bounded_memory() {
    if !can_mount("a_thousand_open_files_and_64_readers_take_bounded_memory") {
        return;
    }
    let scene = Scene::new(|source| {
        (0..1000).for_each(|index| write(&source.join(format!("f{index}")), &noise(20_000, index)));
        write(&source.join("big"), &noise(64 << 20, 7));
    });
    let open = |index: u64| (index, fs::File::open(scene.mount.join(format!("f{index}"))).unwrap());
    let files: Vec<(u64, fs::File)> = (0..1000).map(open).collect();
    let big = noise(64 << 20, 7);
    std::thread::scope(|scope| {
        for reader in 0..64usize {
            let (path, big, files) = (scene.mount.join("big"), &big, &files);
            scope.spawn(move || {
                let file = fs::File::open(path).unwrap();
                let mut bytes = vec![0; 1 << 20];
                file.read_exact_at(&mut bytes, (reader as u64) << 20).unwrap();
                assert_eq!(bytes, big[reader << 20..][..1 << 20]);
                for (index, file) in files.iter().skip(reader).step_by(64) {
                    let mut bytes = vec![0; 20_000];
                    file.read_exact_at(&mut bytes, 0).unwrap();
                    assert_eq!(bytes, noise(20_000, *index));
                }
            });
        }
    });
    let peak = peak_mib(&scene);
    assert!(peak < 250, "{peak} MiB");
}

#[test]
fn a_sparse_file_of_a_terabyte_is_read_here_and_there() {
    if !can_mount("a_sparse_file_of_a_terabyte_is_read_here_and_there") {
        return;
    }
    let terabyte = 1u64 << 40;
    let scene = Scene::new(|source| {
        let file = fs::File::create(source.join("huge")).unwrap();
        file.set_len(terabyte).unwrap();
        file.write_all_at(b"in the middle", terabyte / 2).unwrap();
        file.write_all_at(b"end", terabyte - 3).unwrap();
    });
    let path = scene.mount.join("huge");
    assert_eq!(fs::metadata(&path).unwrap().len(), terabyte);
    let file = fs::File::open(&path).unwrap();
    let read = |at: u64, length: usize| {
        let mut bytes = vec![1; length];
        file.read_exact_at(&mut bytes, at).unwrap();
        bytes
    };
    assert_eq!(read(terabyte / 2, 13), b"in the middle");
    assert_eq!(read(terabyte - 3, 3), b"end");
    assert_eq!(read(12_345_678_901, 100_000), vec![0; 100_000]);
    assert_eq!(file.read_at(&mut [0; 10], terabyte).unwrap(), 0);
    let peak = peak_mib(&scene);
    assert!(peak < 150, "{peak} MiB");
}

#[test]
fn the_kernel_lets_go_of_more_names_than_it_may_hold() {
    if !can_mount("the_kernel_lets_go_of_more_names_than_it_may_hold") {
        return;
    }
    let scene = Scene::with(&[], &["--inodes", "1000"], |source| {
        for directory in 0..5 {
            let directory = source.join(directory.to_string());
            fs::create_dir(&directory).unwrap();
            (0..2000).for_each(|index| write(&directory.join(index.to_string()), b""));
        }
    });
    let open = fs::File::open(scene.mount.join("3/7")).unwrap();
    // Named by nobody else: what `df -i` shows as used.
    let held = || rustix::fs::statvfs(&scene.mount).map(|it| it.f_files).unwrap();
    let walk = || {
        let counted = sh("find \"$1\" -type f -size 0 -printf . | wc -c", &[&scene.mount]);
        assert_eq!(counted, "10000\n");
        held() < 2500
    };
    crate::harness::wait_for("the kernel to let go", walk, || format!("{} held", held()));
    assert_eq!(open.metadata().unwrap().len(), 0, "what is open stays");
    assert_eq!(fs::read(scene.mount.join("4/1999")).unwrap(), b"");
}

#[test]
fn a_directory_of_a_hundred_thousand_entries_is_listed_and_looked_at() {
    if !can_mount("a_directory_of_a_hundred_thousand_entries_is_listed_and_looked_at") {
        return;
    }
    let scene = Scene::new(|source| {
        sh("cd \"$1\" && mkdir many && seq -f 'many/entry-%06g' 100000 | xargs touch", &[source]);
    });
    let many = scene.mount.join("many");
    let counted = sh("find \"$1\" -type f -size 0 -printf . | wc -c; ls \"$1\" | wc -l", &[&many]);
    assert_eq!(counted, "100000\n100000\n");
    assert!(fs::metadata(many.join("entry-077777")).unwrap().is_file());
    assert!(fs::metadata(many.join("entry-100001")).is_err());
    let peak = peak_mib(&scene);
    assert!(peak < 400, "{peak} MiB");
}
