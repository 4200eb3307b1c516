//! Programs that people use, on a mount and on what it shows.

use crate::harness::{noise, write};
use crate::scene::{Scene, can_mount, sh};
use std::io::Write;
use std::path::Path;

/// Some thousand files of all sizes around the units and pages, in directories of directories.
fn many_files(directory: &Path) {
    for outer in 0..6 {
        for inner in 0..6 {
            let below = directory.join(format!("d{outer}/e {inner}"));
            std::fs::create_dir_all(&below).unwrap();
            for index in 0..60usize {
                let size = [0, 1, 100, 4095, 4096, 4097, 8191, 8192, 8193, 20_000][index % 10];
                let seed = (outer * 1000 + inner * 100 + index) as u64;
                write(&below.join(format!("f{index:02}")), &noise(size, seed));
            }
        }
    }
    write(&directory.join("big"), &noise(9_000_001, 1));
    write(&directory.join("naïve name, with ünïcode"), b"x");
}

#[test]
fn archivers_copiers_and_checkers_see_what_was_published() {
    if !can_mount("archivers_copiers_and_checkers_see_what_was_published") {
        return;
    }
    let scene = Scene::new(many_files);
    let (source, mount, out) = (&*scene.source, &*scene.mount, scene.reader.work("out"));
    let listing = "cd \"$1\" && find . -printf '%y %m %s %T@ %p\\n' | grep -v '^d.* \\.$' | sort";
    let sizes_of_directories = |text: String| -> Vec<String> {
        // A directory's size is its file system's own affair.
        let strip = |line: &str| match line.strip_prefix("d ") {
            Some(rest) => {
                let mut words = rest.splitn(3, ' ');
                format!("d {} {}", words.next().unwrap(), words.nth(1).unwrap())
            }
            None => line.to_owned(),
        };
        text.lines().map(strip).collect()
    };
    let seen = sizes_of_directories(sh(listing, &[mount]));
    assert_eq!(seen, sizes_of_directories(sh(listing, &[source])));
    assert!(seen.len() > 2000, "{}", seen.len());
    let sums = "cd \"$1\" && find . -type f -print0 | sort -z | xargs -0 sha256sum";
    assert_eq!(sh(sums, &[mount]), sh(sums, &[source]));
    sh("cp -a \"$1\" \"$2/copy\" && diff -r \"$1\" \"$2/copy\"", &[mount, &out]);
    sh("tar -C \"$1\" -cf - . | tar -C \"$2\" -df -", &[mount, source]);
    let itemized = sh("rsync -ai --checksum \"$1/\" \"$2/copy/\"", &[source, &out]);
    assert_eq!(itemized, "", "cp -a from the mount left nothing to do");
    sh("mkdir \"$2/rsynced\" && rsync -a \"$1/\" \"$2/rsynced/\"", &[mount, &out]);
    sh("diff -r \"$1\" \"$2/rsynced\"", &[source, &out]);
}

#[test]
fn a_repository_is_cloned_and_looked_at() {
    if !can_mount("a_repository_is_cloned_and_looked_at") {
        return;
    }
    let scene = Scene::with(&["--hidden"], &[], |source| {
        sh(
            "cd \"$1\" && git init -q -b main . && git config user.email a@b.c && \
             git config user.name A && mkdir lib && for i in $(seq 200); do echo $i >lib/f$i; done \
             && git add . && git commit -qm one && echo more >>lib/f7 && git commit -qam two && \
             git update-index --refresh",
            &[source],
        );
    });
    let (mount, out) = (&*scene.mount, scene.reader.work("out"));
    sh(
        "git clone -q \"file://$1\" \"$2/clone\" && git -C \"$2/clone\" fsck --full && \
         test \"$(git -C \"$2/clone\" rev-parse HEAD)\" = \
         \"$(git -c safe.directory='*' -C \"$1\" rev-parse HEAD)\" && \
         diff -r --exclude=.git \"$1\" \"$2/clone\"",
        &[mount, &out],
    );
    let status = "GIT_OPTIONAL_LOCKS=0 git -c safe.directory='*' -C \"$1\" status --porcelain";
    assert_eq!(sh(status, &[mount]), "");
}

#[test]
fn a_program_is_built_out_of_the_tree() {
    if !can_mount("a_program_is_built_out_of_the_tree") {
        return;
    }
    let scene = Scene::new(|source| {
        let makefile = "VPATH = $(SRC)\nCFLAGS = -I$(SRC)\nprogram: main.o part.o\n\
                        \t$(CC) -o $@ $^\nmain.o part.o: part.h\n";
        write(&source.join("Makefile"), makefile.as_bytes());
        write(&source.join("part.h"), b"int part(void);\n");
        write(&source.join("part.c"), b"#include \"part.h\"\nint part(void) { return 42; }\n");
        let main = b"#include <stdio.h>\n#include \"part.h\"\n\
                     int main(void) { return printf(\"%d\\n\", part()) != 3; }\n";
        write(&source.join("main.c"), main);
    });
    let build = scene.reader.work("build");
    let made = sh(
        "cd \"$2\" && make -sj2 -f \"$1/Makefile\" SRC=\"$1\" && ./program",
        &[&scene.mount, &build],
    );
    assert_eq!(made, "42\n");
    let again = sh(
        "cd \"$2\" && make -q -f \"$1/Makefile\" SRC=\"$1\" && echo done",
        &[&scene.mount, &build],
    );
    assert_eq!(again, "done\n", "times say that nothing is to be done");
}

#[test]
fn a_database_is_queried_where_it_lies() {
    if !can_mount("a_database_is_queried_where_it_lies") {
        return;
    }
    let scene = Scene::new(|source| {
        sh(
            "sqlite3 \"$1/a.db\" 'create table t(a, b); create index i on t(b); with recursive \
             n(i) as (select 1 union all select i+1 from n where i < 20000) insert into t select \
             i, hex(i * 7919 % 20011) from n;'",
            &[source],
        );
    });
    let query = "sqlite3 \"file:$1/a.db?immutable=1\" \
                 'select count(*), sum(a), min(b), max(b) from t; \
                 select a from t where b = hex(7); pragma integrity_check;'";
    let seen = sh(query, &[&scene.mount]);
    assert_eq!(seen, sh(query, &[&scene.source]));
    assert!(seen.ends_with("ok\n"), "{seen}");
}

/// fio checks each block against the sum that it has written into it.
#[test]
fn fio_finds_in_all_its_patterns_what_it_has_written() {
    const TEST: &str = "fio_finds_in_all_its_patterns_what_it_has_written";
    if !can_mount(TEST) {
        return;
    }
    let has_fio = std::process::Command::new("fio").arg("--version").output().is_ok();
    if !has_fio {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {TEST}: there is no fio");
        return;
    }
    let written = "fio --name=w --filename=\"$1/data\" --size=8m --rw=write --bs=4k \
                   --ioengine=psync --verify=crc32c --do_verify=0 --verify_state_save=0 --minimal";
    let scene = Scene::new(|source| drop(sh(written, &[source])));
    for (pattern, engine) in [
        ("read", "psync"),
        ("randread", "psync"),
        ("read:16k", "psync"),
        ("read", "mmap"),
        ("randread", "mmap"),
    ] {
        let read = format!(
            "fio --name=r --filename=\"$1/data\" --size=8m --readonly --rw={pattern} --bs=4k \
             --ioengine={engine} --numjobs=2 --thread --verify=crc32c --minimal"
        );
        sh(&read, &[&scene.mount]);
    }
}
