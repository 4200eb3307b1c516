//! Signals to programs that wait for a mount whose publisher is silent.

use crate::harness::{signal, wait_for, write};
use crate::scene::{Scene, can_mount};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Longer than any of these tests may take.
const TIMEOUT_S: &str = "600";

fn files(source: &Path) {
    std::fs::create_dir(source.join("sub")).unwrap();
    write(&source.join("sub/file"), b"content");
}

fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until a process waits for the mount.
fn wait_for_request(scene: &Scene, process: &Child) {
    let place = format!("/proc/{}/wchan", process.id());
    let waits =
        || std::fs::read_to_string(&place).is_ok_and(|place| place.contains("request_wait"));
    wait_for("a process in a call", waits, || scene.log());
}

fn wait_for_end(scene: &Scene, process: &mut Child) -> std::process::ExitStatus {
    wait_for("the end of a process", || process.try_wait().unwrap().is_some(), || scene.log());
    process.wait().unwrap()
}

#[test]
fn a_program_that_waits_for_a_silent_publisher_ends_when_it_is_interrupted() {
    if !can_mount("a_program_that_waits_for_a_silent_publisher_ends_when_it_is_interrupted") {
        return;
    }
    let scene = Scene::with(&[], &["--timeout", TIMEOUT_S], files);
    scene.stop_publisher();
    let (directory, file) = (scene.mount.join("sub"), scene.mount.join("sub/file"));
    let calls = [("ls", &directory, "INT"), ("cat", &file, "TERM"), ("stat", &file, "KILL")];
    for (program, path, name) in calls {
        let mut process = start(Command::new(program).arg(path));
        wait_for_request(&scene, &process);
        signal(process.id(), name);
        assert!(!wait_for_end(&scene, &mut process).success(), "{program}");
    }
    signal(scene.up.daemon.pid(), "CONT");
    assert_eq!(std::fs::read(file).unwrap(), b"content");
}

#[test]
fn a_program_that_handles_the_interrupt_goes_on() {
    if !can_mount("a_program_that_handles_the_interrupt_goes_on") {
        return;
    }
    let scene = Scene::with(&[], &["--timeout", TIMEOUT_S], files);
    scene.stop_publisher();
    let script = "import os, sys\ntry:\n    os.listdir(sys.argv[1])\n\
                  except KeyboardInterrupt:\n    print('interrupted')\n";
    let mut process = start(Command::new("python3").args(["-c", script]).arg(&scene.mount));
    wait_for_request(&scene, &process);
    signal(process.id(), "INT");
    wait_for_end(&scene, &mut process);
    let output = process.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "interrupted\n");
    signal(scene.up.daemon.pid(), "CONT");
}

#[test]
fn who_waits_for_the_answer_of_one_that_is_interrupted_gets_it() {
    if !can_mount("who_waits_for_the_answer_of_one_that_is_interrupted_gets_it") {
        return;
    }
    let scene = Scene::with(&[], &["--timeout", TIMEOUT_S], files);
    scene.stop_publisher();
    // Both ask for the same directory, so the mount asks once.
    let mut first = start(Command::new("ls").arg(&scene.mount));
    wait_for_request(&scene, &first);
    let mut second = start(Command::new("ls").arg(&scene.mount));
    wait_for_request(&scene, &second);
    signal(first.id(), "INT");
    wait_for_end(&scene, &mut first);
    assert!(second.try_wait().unwrap().is_none(), "it waits on");
    signal(scene.up.daemon.pid(), "CONT");
    let output = second.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "sub\n");
}
