//! `byname mount` and `umount` as commands: when they return, what they refuse and why.

use crate::harness::{Home, noise, wait_for, write};
use crate::scene::{Scene, can_mount, errno, is_root, sh, try_sh};
use std::fs;
use std::path::Path;

fn small(source: &Path) {
    write(&source.join("file"), b"content");
    fs::create_dir(source.join("sub")).unwrap();
    write(&source.join("sub/inner"), b"inner");
}

#[test]
fn a_mount_answers_when_the_command_returns_and_is_gone_when_umount_does() {
    if !can_mount("a_mount_answers_when_the_command_returns_and_is_gone_when_umount_does") {
        return;
    }
    let scene = Scene::new(small);
    for _ in 0..5 {
        assert_eq!(fs::read(scene.mount.join("file")).unwrap(), b"content");
        scene.umount();
        assert_eq!(errno(fs::read(scene.mount.join("file"))), 2);
        scene.mount(&[]);
    }
    scene.mount_command(&[]).fails_with(7, "something is mounted there already");
    // The processes of the mounts before this one did not unmount it.
    wait_for("the end of all others", || processes(&scene) == 1, || scene.log());
    assert_eq!(fs::read(scene.mount.join("file")).unwrap(), b"content");
}

/// Names of directories as `ls` prints them, put into a link.
#[test]
fn what_ls_prints_can_be_mounted() {
    if !can_mount("what_ls_prints_can_be_mounted") {
        return;
    }
    let names = ["a?b=c", "c#d&e", "f%25g", "h,via=i", "spaces and ä"];
    let scene = Scene::unmounted(&[], |source| {
        for name in names {
            fs::create_dir(source.join(name)).unwrap();
            write(&source.join(name).join("its name"), name.as_bytes());
        }
    });
    let listed = scene.reader.run(&["ls", &scene.up.link]).ok().stdout();
    let mut found = Vec::new();
    for line in listed.lines() {
        let link = scene.up.link_to(line.trim_end_matches('/'));
        scene.reader.run(&["mount", &link, scene.mount.to_str().unwrap()]).ok();
        found.push(fs::read_to_string(scene.mount.join("its name")).unwrap());
        scene.umount();
    }
    assert_eq!(found, names, "{listed}");
}

fn processes(scene: &Scene) -> usize {
    let listed = sh("pgrep -cf -- \"mount.*$1 --foreground --report\" || true", &[&scene.mount]);
    listed.trim().parse().unwrap()
}

#[test]
fn what_cannot_be_mounted_is_refused_with_the_reason() {
    if !can_mount("what_cannot_be_mounted_is_refused_with_the_reason") {
        return;
    }
    let scene = Scene::unmounted(&[], small);
    let home = &scene.reader;
    let mount = |target: &str, at: &str, more: &[&str]| {
        let mut args = vec!["mount", target, at];
        args.extend_from_slice(more);
        home.run(&args)
    };
    let at = scene.mount.to_str().unwrap();
    mount(&scene.up.link_to("file"), at, &[]).fails_with(1, "only directories can be mounted");
    mount(&scene.up.link_to("missing"), at, &[]).fails_with(3, "missing");
    mount(&scene.up.link, "no such directory", &[]).fails_with(7, "No such file");
    mount(&scene.up.link, "none", &[]).fails_with(7, "  mkdir -p none");
    write(&home.path().join("a file"), b"");
    mount(&scene.up.link, "a file", &[]).fails_with(7, "not a directory");
    mount(&scene.up.link, at, &["-o", "bogus"]).fails_with(2, "-o bogus: no such option");
    mount(&scene.up.link, at, &["-o", "freshness=soon"]).fails_with(2, "freshness=soon");
    mount("/lab/tree", at, &["--connect", "tcp://127.0.0.1:1"]).fails_with(4, "127.0.0.1:1");
    home.run(&["umount", at]).fails_with(7, "no tree is mounted there");
    assert_eq!(crate::harness::entries(&scene.mount), Vec::<String>::new());
}

#[test]
fn a_silent_publisher_is_given_up_within_ten_seconds() {
    if !can_mount("a_silent_publisher_is_given_up_within_ten_seconds") {
        return;
    }
    let scene = Scene::unmounted(&[], small);
    scene.stop_publisher();
    let begun = std::time::Instant::now();
    scene.mount_command(&["--timeout", "60"]).fails_with(4, "");
    assert!(begun.elapsed().as_secs() < 20, "a bound with room for a busy machine");
    crate::harness::signal(scene.up.daemon.pid(), "CONT");
}

#[test]
fn options_of_fstab_are_taken_as_mount_hands_them_on() {
    if !can_mount("options_of_fstab_are_taken_as_mount_hands_them_on") {
        return;
    }
    let options = "rw,noexec,_netdev,x-systemd.automount,freshness=0.2,timeout=7,offline";
    let scene = Scene::with(&[], &["-o", options], small);
    let table = sh("grep \" $1 \" /proc/self/mounts", &[&scene.mount]);
    assert!(table.contains("fuse.byname ro,nosuid,nodev,noexec"), "{table}");
    assert!(table.starts_with("/lab/tree "), "{table}");
}

/// mount(8) itself, in a mount namespace of its own: the helper as the package installs it, the
/// program where `make install` puts it, and a PATH in which neither is.
#[test]
fn mount_8_and_fstab_mount_it_without_a_path() {
    let test = "mount_8_and_fstab_mount_it_without_a_path";
    if !can_mount(test) || !is_root(test) {
        return;
    }
    let scene = Scene::unmounted(&[], small);
    let home = scene.reader.path();
    let link = scene.up.link.replacen(',', "?", 1).replace(',', "&");
    write(&home.join("link"), link.as_bytes());
    let entry = format!("{link} {} byname _netdev,noauto 0 0\n", scene.mount.display());
    write(&home.join("fstab"), entry.as_bytes());
    let script = "mkdir sbin bin && cp \"$3\" sbin/mount.byname && chmod 755 sbin/mount.byname && \
        ln -s mount.byname sbin/mount.fuse.byname && cp \"$2\" bin/byname && \
        mount -t overlay -o lowerdir=sbin:/usr/sbin overlay /usr/sbin && \
        mount -t overlay -o lowerdir=bin:/usr/local/bin overlay /usr/local/bin && \
        bare() { env -i HOME=\"$PWD/mounter\" PATH=/nowhere \"$@\"; } && \
        seen() { cat \"$1/sub/inner\" && /usr/local/bin/byname umount \"$1\"; } && \
        bare /usr/bin/mount -t byname \"$(cat link)\" \"$1\" && seen \"$1\" && \
        bare /usr/bin/mount -t fuse.byname \"$(cat link)\" \"$1\" && seen \"$1\" && \
        bare /usr/sbin/mount.byname \"$(cat link)\" \"$1\" && seen \"$1\" && \
        bare /usr/bin/mount --fstab fstab \"$1\" && seen \"$1\" && \
        ! bare BYNAME=missing /usr/bin/mount -t byname \"$(cat link)\" \"$1\"";
    let line = format!("cd \"$4\" && unshare --mount sh -ec '{script}' sh \"$@\" 2>&1");
    let helper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/mount.byname");
    let program = Path::new(env!("CARGO_BIN_EXE_byname"));
    let said = sh(&line, &[&scene.mount, program, &helper, home]);
    assert_eq!(said.matches("inner").count(), 4, "{said}");
    // mount(8) itself has set a PATH by then.
    assert!(said.contains("mount.byname: no program missing in /"), "{said}");
}

#[test]
fn a_mount_in_the_foreground_ends_with_its_signal() {
    if !can_mount("a_mount_in_the_foreground_ends_with_its_signal") {
        return;
    }
    let scene = Scene::unmounted(&[], small);
    let args = ["mount", &scene.up.link, scene.mount.to_str().unwrap(), "--foreground"];
    let mut daemon = scene.reader.start(&args, "is mounted at");
    assert_eq!(fs::read(scene.mount.join("sub/inner")).unwrap(), b"inner");
    assert_eq!(daemon.interrupt(), Some(0));
    assert!(!daemon.log().contains("will not be remembered"), "{}", daemon.log());
    assert_eq!(errno(fs::read(scene.mount.join("file"))), 2, "it is unmounted");
}

#[test]
fn other_users_see_nothing_unless_allowed_and_then_what_modes_allow() {
    let test = "other_users_see_nothing_unless_allowed_and_then_what_modes_allow";
    if !can_mount(test) || !is_root(test) {
        return;
    }
    let scene = Scene::with(&["--private"], &[], |source| {
        small(source);
        sh("chmod 755 \"$1\" && chmod 600 \"$1/file\" && chmod 644 \"$1/sub/inner\"", &[source]);
    });
    sh("chmod 755 \"$(dirname \"$1\")\"", &[&scene.mount]);
    let nobody = "setpriv --reuid=nobody --regid=nogroup --clear-groups cat \"$1/$(basename $2)\"";
    let inner = scene.mount.join("sub");
    assert!(!try_sh(nobody, &[&inner, Path::new("inner")]).status.success());
    scene.umount();
    scene.mount(&["--allow-other"]);
    assert_eq!(sh(nobody, &[&inner, Path::new("inner")]), "inner");
    let refused = try_sh(nobody, &[&scene.mount, Path::new("file")]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("Permission denied"));
    assert_eq!(fs::read(scene.mount.join("file")).unwrap(), b"content", "root may");
}

#[test]
fn who_is_not_root_mounts_with_fusermount() {
    let test = "who_is_not_root_mounts_with_fusermount";
    if !can_mount(test) || !is_root(test) {
        return;
    }
    let has_helper = std::process::Command::new("fusermount3").arg("--version").output().is_ok();
    let scene = Scene::unmounted(&[], small);
    let home = Home::new();
    fs::create_dir(home.path().join("mnt")).unwrap();
    sh("chmod 755 \"$1\" && chown -R nobody \"$1\"", &[home.path()]);
    let line = format!(
        "cd \"$1\" && export BYNAME_HOME=\"$1/home\" && \
         run() {{ setpriv --reuid=nobody --regid=nogroup --clear-groups \"$@\"; }} && \
         cp {} byname && run ./byname mount '{}' mnt && run cat mnt/sub/inner && \
         run ./byname umount mnt && run test ! -e mnt/sub",
        env!("CARGO_BIN_EXE_byname"),
        scene.up.link
    );
    let output = try_sh(&line, &[home.path()]);
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    match has_helper {
        true => assert_eq!((&*out, output.status.success()), ("inner", true), "{err}"),
        false => assert!(err.contains("fusermount3 is not installed"), "{err}"),
    }
}

#[test]
fn inodes_are_the_same_after_a_restart() {
    if !can_mount("inodes_are_the_same_after_a_restart") {
        return;
    }
    let scene = Scene::new(|source| {
        small(source);
        (0..50).for_each(|index| write(&source.join(format!("sub/f{index}")), &noise(10, index)));
    });
    let list = "cd \"$1\" && find . -printf '%i %p\\n' | sort && ls -ai sub | sort";
    let before = sh(list, &[&scene.mount]);
    scene.umount();
    scene.mount(&[]);
    assert_eq!(sh(list, &[&scene.mount]), before);
    let mut numbers: Vec<&str> =
        before.lines().filter_map(|line| line.split_once(" ./")).map(|it| it.0).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 53, "all different");
}
