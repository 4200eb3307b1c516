//! A mount in the background: a second process of this program, and what the two tell each other.
//!
//! The second writes one line of JSON to its standard output when the mount answers or has failed.
//! Its log goes to a file of the state directory.

use super::Args;
use super::trees::{self, Wanted};
use crate::exit::{Code, Failure, Outcome, chain};
use crate::target::{Pace, Session};
use byname_profile::Paths;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Time in which a mount answers or has failed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Seconds of silence of the publisher, for the first question.
const SILENCE_S: u64 = 6;

/// What the second process says.
#[derive(Serialize, Deserialize)]
struct Report {
    /// `None` if the mount answers.
    failed: Option<Failed>,
}

#[derive(Serialize, Deserialize)]
struct Failed {
    code: u8,
    message: String,
    hint: Option<String>,
}

/// Says that the mount answers.
pub(super) fn report_ready() {
    report(&Report { failed: None });
}

/// Says why there is no mount; returns a failure about which nothing more need be said.
pub(super) fn report_failure(failure: &Failure) -> Failure {
    let (message, hint) = (failure.message.clone(), failure.hint.clone());
    report(&Report { failed: Some(Failed { code: failure.code as u8, message, hint }) });
    Failure::new(failure.code, "")
}

fn report(report: &Report) {
    let mut out = std::io::stdout().lock();
    // If the first process is gone there is nobody to tell.
    let _ = serde_json::to_writer(&mut out, report).map_err(std::io::Error::from);
    let _ = out.write_all(b"\n").and_then(|()| out.flush());
}

/// Starts the second process and waits for what it says.
pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    let begun = Instant::now();
    ask_first(args, paths)?;
    let log = log_file(args, paths)?;
    let file = File::create(&log).map_err(|error| Failure::disk(&log, error))?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(Code::Other, format!("this program: {error}")))?;
    let mut child = Command::new(program)
        .args(std::env::args_os().skip(1))
        .args(["--foreground", "--report"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(file)
        .spawn()
        .map_err(|error| Failure::new(Code::Other, chain(&error)))?;
    let answer = first_line(&mut child).recv_timeout(PATIENCE.saturating_sub(begun.elapsed()));
    let report = answer.ok().and_then(|line| serde_json::from_str::<Report>(&line).ok());
    match report {
        Some(Report { failed: None }) => Ok(()),
        Some(Report { failed: Some(failed) }) => {
            let _ = child.wait();
            let failure = Failure::new(code(failed.code), failed.message);
            Err(Failure { hint: failed.hint, ..failure })
        }
        None => {
            abandon(&mut child, &args.directory);
            let seconds = PATIENCE.as_secs();
            let message = format!("{}: no answer within {seconds} s", args.shown());
            Err(Failure::new(Code::NoRoute, message)
                .hint(format!("{} says how far it came", log.display())))
        }
    }
}

/// Asks for the trees as every command does: whoever is there may be asked about a key, and an
/// error is said before anything is mounted.
fn ask_first(args: &Args, paths: &Paths) -> Outcome {
    let read = args.read.clone().with_timeout_at_most(SILENCE_S);
    for Wanted { target, .. } in trees::wanted(&args.targets, args.table)? {
        let mut session = Session::open(&target, &read, Pace::default(), paths)?;
        let found = session.run(|client, name| client.lookup(name))?;
        if !found.metadata.is_directory() {
            return Err(byname_mount::MountError::TreeIsNoDirectory.into());
        }
    }
    Ok(())
}

/// The log of the mount at this directory.
fn log_file(args: &Args, paths: &Paths) -> Outcome<PathBuf> {
    let directory = paths.state.join("mounts");
    std::fs::create_dir_all(&directory).map_err(|error| Failure::disk(&directory, error))?;
    let path = std::path::absolute(&args.directory)
        .map_err(|error| Failure::disk(&args.directory, error))?;
    let hash = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex();
    let last = path.file_name().map_or("root".into(), |name| name.to_string_lossy().into_owned());
    let last: String = last.chars().take(64).collect();
    Ok(directory.join(format!("{last}-{}.log", &hash[..8])))
}

/// The first line that the process writes; nothing if it ends without one.
fn first_line(child: &mut Child) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(out) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut line = String::new();
            if BufReader::new(out).read_line(&mut line).is_ok() {
                let _ = sender.send(line);
            }
        });
    }
    receiver
}

fn abandon(child: &mut Child, directory: &Path) {
    let _ = child.kill();
    let _ = child.wait();
    // If it came so far as to mount, nobody answers there any more.
    if let Err(error) = byname_mount::unmount(directory) {
        tracing::debug!(%error, "there is nothing to unmount");
    }
}

fn code(number: u8) -> Code {
    let all = [
        Code::Usage,
        Code::NotFound,
        Code::NoRoute,
        Code::NotVerified,
        Code::UnknownKey,
        Code::LocalDisk,
        Code::SomeFailed,
        Code::Interrupted,
    ];
    all.into_iter().find(|code| *code as u8 == number).unwrap_or(Code::Other)
}
