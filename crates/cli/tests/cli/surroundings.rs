//! Effects of the machine on a command: other users, full disks, senseless flags.

use crate::harness::{Home, write};
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// `byname` of a user without `BYNAME_HOME` and `XDG_RUNTIME_DIR`.
fn without_runtime_dir(home: &Home) -> Command {
    let mut command = home.byname();
    command.env_remove("BYNAME_HOME").env("TMPDIR", home.work("tmp"));
    command
}

#[test]
fn a_socket_directory_that_another_user_may_have_made_is_not_used() {
    let home = Home::new();
    let (published, planted) = (
        home.work("d"),
        home.work("tmp").join(format!("byname-{}", rustix::process::geteuid().as_raw())),
    );
    std::fs::create_dir(&planted).unwrap();
    std::fs::set_permissions(&planted, Permissions::from_mode(0o777)).unwrap();
    for args in [vec!["up", published.to_str().unwrap()], vec!["forward"], vec!["ls", "/x"]] {
        let output = without_runtime_dir(&home).args(&args).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{args:?}: {stderr}");
        assert!(stderr.contains("others can write to it"), "{args:?}: {stderr}");
    }
    assert_eq!(std::fs::read_dir(&planted).unwrap().count(), 0);
}

#[test]
fn half_a_list_on_a_full_disk_is_a_failure() {
    let home = Home::new();
    let dir = home.work("d");
    write(&dir.join("x"), b"content");
    let up = home.up(&dir, "/lab/d");
    for args in [["ls", up.link.as_str()], ["stat", up.link.as_str()]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = home.byname().args(args).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write"), "{args:?}");
    }
}

#[test]
fn senseless_flags_are_refused_before_anything_happens() {
    let home = Home::new();
    let dir = home.work("d");
    for interval in ["nan", "inf", "-1", "1e300", "x"] {
        home.run(&["ping", "/x", &format!("--interval={interval}")]).fails_with(2, "--interval");
    }
    home.run(&["up", dir.to_str().unwrap(), "--via", "foo"]).fails_with(2, "foo");
}

#[test]
fn verify_names_the_single_file_that_differs() {
    let home = Home::new();
    let dir = home.work("d");
    write(&dir.join("x"), b"content");
    let up = home.up(&dir, "/lab/d");
    let local = home.path().join("copy");
    write(&local, b"another");
    let shown = home.run(&["verify", local.to_str().unwrap(), &up.link_to("x")]);
    assert_eq!(shown.fails_with(5, "").stdout().trim(), format!("differs  {}", local.display()));
}

#[test]
fn reading_needs_no_home() {
    let home = Home::new();
    let dir = home.work("d");
    write(&dir.join("x"), b"content");
    let up = home.up(&dir, "/lab/d");
    let mut command = home.byname();
    // Nobody, not even root, can make a directory there.
    command.env_remove("BYNAME_HOME").env("HOME", "/proc/nobody");
    let output = command.args(["cat", &up.link_to("x")]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"content"[..]));
    assert!(stderr.contains("will not be remembered"), "{stderr}");
}

#[test]
fn get_r_of_a_file_or_of_nothing_makes_no_directory() {
    let home = Home::new();
    let dir = home.work("d");
    write(&dir.join("x"), b"content");
    let up = home.up(&dir, "/lab/d");
    home.run(&["get", "-r", &up.link_to("nothing")]).fails_with(3, "does not exist");
    assert!(!home.path().join("nothing").exists());
    for _ in 0..2 {
        home.run(&["get", "-r", &up.link_to("x")]).ok();
        assert_eq!(std::fs::read(home.path().join("x")).unwrap(), b"content");
    }
}

#[test]
fn a_published_part_file_never_takes_the_place_of_ours() {
    let home = Home::new();
    let dir = home.work("d");
    write(&dir.join("x"), b"content");
    write(&dir.join(".x.byname-part"), b"half of something else");
    let up = home.up_with(&dir, "/lab/d", &["--hidden"]);
    let target = home.path().join("copy");
    let got = home.run(&["get", "-r", &up.link, "-o", target.to_str().unwrap()]);
    got.fails_with(8, ".x.byname-part makes no safe file name");
    assert_eq!(crate::harness::entries(&target), ["x"]);
    assert_eq!(std::fs::read(target.join("x")).unwrap(), b"content");
}

#[test]
fn names_that_strangers_chose_command_no_terminal() {
    let home = Home::new();
    let dir = home.work("d");
    write(&dir.join("a\x1b[31m\nbyname: all is well"), b"content");
    let up = home.up(&dir, "/lab/d");
    let target = home.work("copy");
    std::fs::create_dir(target.join("a\x1b[31m\nbyname: all is well")).unwrap();
    let target = target.to_str().unwrap();
    let got = home.run(&["get", "-r", &up.link, "-o", target]);
    let got = got.fails_with(8, "a%1B[31m%0Abyname: all is well");
    let planned = home.run(&["get", "-r", "--dry-run", &up.link, "-o", target]);
    let planned = planned.fails_with(8, "1 of the entries would fail");
    for text in [got.stderr(), planned.stdout()] {
        assert!(!text.contains('\x1b') && !text.contains("\nbyname: all"), "{text:?}");
    }
}
