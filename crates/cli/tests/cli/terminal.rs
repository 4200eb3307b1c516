//! Small things that people at a terminal rely on.

use crate::bad_network::{Faults, relay_tcp};
use crate::harness::{Home, noise, write};
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;

#[test]
fn cat_into_a_closed_pipe_ends_quietly() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    write(&dir.join("large"), &noise(8 << 20, 1));
    let up = a.up(&dir, "/lab/d");
    let mut command = b.byname();
    command.args(["cat", &up.link_to("large")]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut first = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(first[..], noise(100, 1)[..]);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0), "as `ls | head` does");
}

#[test]
fn times_have_an_offset_and_sizes_a_unit() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    write(&dir.join("file"), &[0; 3 << 20]);
    let touch = ["-d", "2001-02-03T04:05:06Z"];
    let status = std::process::Command::new("touch").args(touch).arg(dir.join("file")).status();
    assert!(status.unwrap().success());
    let up = a.up(&dir, "/lab/d");
    let shown = |args: &[&str], zone: &str| {
        let output = b.byname().args(args).env("TZ", zone).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let listed = shown(&["ls", "-l", &up.link], "XYZ-5:30");
    assert!(listed.contains("3145728 2001-02-03 09:35:06 +05:30 file"), "{listed}");
    let listed = shown(&["ls", "-lh", "--utc", &up.link], "XYZ-5:30");
    assert!(listed.contains("3.00 MiB 2001-02-03 04:05:06 +00:00 file"), "{listed}");
    let stat = shown(&["stat", &up.link_to("file")], "XYZ-5:30");
    assert!(stat.contains("2001-02-03 09:35:06 +05:30"), "{stat}");
}

#[test]
fn sizes_are_written_alike_everywhere() {
    let (a, home) = (Home::new(), Home::new());
    for args in [
        &["get", "/a", "--bwlimit", "1.5Q"][..],
        &["forward", "--cs-size", "64Mb"],
        &["face", "update", "1", "--mtu", "1.5Q"],
    ] {
        home.run(args).fails_with(2, "a size is a number of bytes");
    }
    home.run(&["cat", "/a", "--range", "1Q+1"]).fails_with(2, "1M+64K");
    home.run(&["bench", "traffic", "produce", "--size", "1Q"]).fails_with(2, "1Q");
    let limited = |text: &str| {
        let mut command = home.byname();
        command.args(["config", "show", "--json"]).env("BYNAME_BWLIMIT", text);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let shown = limited("1.5M");
    let line = shown.lines().find(|line| line.contains("client.bwlimit")).unwrap_or(&shown);
    assert!(line.contains("\"value\":1572864"), "{line}");
    let dir = a.work("d");
    write(&dir.join("x"), &noise(3 << 20, 2));
    let up = a.up(&dir, "/lab/d");
    let part = home.run(&["cat", &up.link_to("x"), "--range", "1.5M+2K"]).ok();
    assert!(part.bytes() == &noise(3 << 20, 2)[3 << 19..(3 << 19) + 2048]);
}

/// Text as a terminal would show it, one string per repainting.
fn frames(raw: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut rest = raw.chars();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            plain.push(c);
            continue;
        }
        // A control sequence ends with a letter.
        rest.by_ref().find(char::is_ascii_alphabetic);
    }
    plain.split(['\r', '\n']).map(str::to_owned).filter(|line| !line.trim().is_empty()).collect()
}

/// The repaintings of `byname LINE` on a terminal of 40 columns, after a line for the shell.
fn on_terminal(home: &Home, first: &str, line: &str) -> Vec<String> {
    let byname = home.byname();
    let program = byname.get_program().to_string_lossy();
    let line = format!("stty rows 24 cols 40; {first} {program} {line}");
    let mut command = std::process::Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(home.path()).stdin(Stdio::null());
    for (key, value) in byname.get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    let output = command.env("TERM", "xterm").output().unwrap();
    let raw = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{raw}");
    frames(&raw)
}

/// Both hash a file: the one a local copy, the other what comes. The network takes longer for the
/// first answer than nothing is shown.
#[test]
fn verify_and_stat_show_how_far_they_are_within_40_columns() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    write(&dir.join("file"), &noise(3 << 20, 1));
    let up = a.up(&dir, "/lab/d");
    // The root is known then.
    a.run(&["stat", "--checksum", "b3", &up.link_to("file")]).ok();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let via = format!("tcp://{}", listener.local_addr().unwrap());
    let target = SocketAddr::from(([127, 0, 0, 1], up.port));
    let faults = Faults::parse(&["delay=700".to_owned()]).unwrap();
    std::thread::spawn(move || relay_tcp(&listener, target, faults).map_err(drop));
    let link = up.link_to("file").replace(&up.uri(), &via);
    let copy = dir.join("file");
    let verify = format!("verify '{}' '{link}'", copy.display());
    for line in [verify, format!("stat --checksum sha256 '{link}'")] {
        let all = on_terminal(&b, "", &line);
        let painted: Vec<&String> = all.iter().filter(|line| line.contains("iB/s")).collect();
        assert!(!painted.is_empty(), "{line}: {all:?}");
        let width =
            |line: &str| line.split_inclusive("iB/s").next().map_or(0, |it| it.chars().count());
        assert!(painted.iter().all(|line| width(line) <= 40), "{painted:?}");
    }
}

/// The bar of a slow `get` on a terminal of 40 columns that becomes one of 24 meanwhile.
#[test]
fn a_progress_bar_fits_a_terminal_of_40_columns_and_one_that_becomes_smaller() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    write(&dir.join("file"), &noise(3 << 20, 1));
    let up = a.up(&dir, "/lab/d");
    let line = format!("get '{}' --bwlimit 700K", up.link_to("file"));
    let all = on_terminal(&b, "(sleep 2.5; stty cols 24 </dev/tty) &", &line);
    let painted: Vec<&String> = all.iter().filter(|line| line.contains('%')).collect();
    let widths = |has_bar: bool| -> Vec<usize> {
        let of_kind = painted.iter().filter(|line| line.contains("/s") == has_bar);
        of_kind.map(|line| line.chars().count()).collect()
    };
    let (wide, narrow) = (widths(true), widths(false));
    assert!(wide.iter().max().is_some_and(|most| (30..=40).contains(most)), "{painted:?}");
    assert!(narrow.iter().max().is_some_and(|most| *most <= 24), "{painted:?}");
    assert_eq!(std::fs::read(b.path().join("file")).unwrap(), noise(3 << 20, 1));
}

#[test]
fn shells_and_man_know_every_command() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let text = home.run(&["completions", shell]).ok().stdout();
        assert!(text.contains("dry-run") && text.contains("mirror"), "{shell}");
    }
    home.run(&["man", "pages"]).ok();
    let page = std::fs::read_to_string(home.path().join("pages/byname-get.1")).unwrap();
    assert!(page.contains("copy\\-links"), "{page}");
    assert!(home.path().join("pages/byname.1").exists());
}

#[test]
fn an_installation_has_program_pages_and_completions() {
    let home = Home::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/install");
    let mut command = std::process::Command::new(script);
    command.arg(env!("CARGO_BIN_EXE_byname")).env("DESTDIR", home.path()).env("PREFIX", "/p");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    for file in [
        "bin/byname",
        "share/man/man1/byname.1",
        "share/man/man1/byname-get.1",
        "share/bash-completion/completions/byname",
        "share/zsh/site-functions/_byname",
        "share/fish/vendor_completions.d/byname.fish",
    ] {
        assert!(home.path().join("p").join(file).is_file(), "{file}");
    }
}
