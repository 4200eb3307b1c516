//! Readers are told why they wait, and why nothing came.

use crate::harness::{Finished, Home, signal, wait_for, write};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

#[test]
fn who_fetches_a_tree_without_a_file_is_told() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    std::fs::create_dir(dir.join("empty")).unwrap();
    write(&dir.join("diary"), b"mine");
    std::fs::set_permissions(dir.join("diary"), PermissionsExt::from_mode(0o600)).unwrap();
    write(&dir.join(".hidden"), b"mine");
    let up = a.up(&dir, "/lab/d");
    up.daemon.await_line("1 are readable only by you");
    let get = ["get", "-r", &up.link, "-o", "copy"];
    let said = b.run(&get).fails_with(0, "there is no file").stderr();
    assert!(said.contains("or the publisher hides them all"), "{said}");
    write(&dir.join("public"), b"yours");
    // Lists are kept for a second.
    wait_for("file", || !b.run(&get).ok().stderr().contains("there is no file"), String::new);
    assert_eq!(std::fs::read(b.path().join("copy/public")).unwrap(), b"yours");
}

/// The server gets a few milliseconds of a processor at a time until the reader has said that it
/// is busy: as if it were much slower, or the directory much larger.
#[test]
fn a_server_that_is_busy_making_a_list_is_said_to_be_and_its_answer_is_fresh() {
    const ENTRIES: usize = 40_000;
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    for number in 0..ENTRIES {
        std::fs::File::create(dir.join(format!("entry-{number:06}"))).unwrap();
    }
    let up = a.up(&dir, "/lab/d");
    let mut command = b.byname();
    command.args(["ls", "-l", &up.link]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let listing = std::thread::spawn(move || {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut out, &mut text).map(|_| text)
    });
    let (first_line, heard) = std::sync::mpsc::channel();
    let said = std::thread::spawn(move || {
        let mut said = String::new();
        for line in BufReader::new(err).lines().map_while(Result::ok) {
            said.push_str(&line);
            said.push('\n');
            let _ = first_line.send(());
        }
        said
    });
    let pid = up.daemon.pid();
    loop {
        signal(pid, "STOP");
        let heard = heard.recv_timeout(Duration::from_millis(60));
        signal(pid, "CONT");
        if heard != Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            break;
        }
    }
    let said = said.join().unwrap();
    assert!(said.contains("the publisher is busy making its list; waiting"), "{said}");
    assert!(!said.contains("as of"), "what it answers then is new: {said}");
    assert!(child.wait().unwrap().success(), "{said}");
    assert_eq!(listing.join().unwrap().unwrap().lines().count(), ENTRIES);
    let again = Finished::of(b.byname().args(["ls", "-l", &up.link]).output().unwrap()).ok();
    assert_eq!(again.stdout().lines().count(), ENTRIES);
}
