//! Surroundings of generated traffic: a forwarder, its face towards us, and the user's patience.

use super::{CONNECT_TIMEOUT, connect};
use crate::commands::daemon;
use crate::exchange::Exchange;
use crate::exit::{Code, Failure, Outcome, chain};
use crate::output;
use byname_io::{Connection, Endpoint};
use byname_packet::mgmt::FaceStatus;
use byname_packet::{InterestBuilder, Name};
use byname_profile::Settings;
use byname_traffic::Stop;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A face that a packet makes is there as soon as the forwarder has read it.
const FACE_ATTEMPTS: u32 = 20;
const FACE_PAUSE: Duration = Duration::from_millis(50);

/// Ctrl-C and SIGTERM.
pub(super) struct Interruption {
    pub(super) stop: Stop,
    came: Arc<AtomicBool>,
}

impl Interruption {
    pub(super) fn watch() -> Outcome<Self> {
        let (stop, came) = (Stop::new(), Arc::new(AtomicBool::new(false)));
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])
            .map_err(|error| Failure::new(Code::Other, format!("signals: {error}")))?;
        let (on_signal, flag) = (stop.clone(), came.clone());
        std::thread::spawn(move || {
            if signals.forever().next().is_some() {
                flag.store(true, Ordering::Relaxed);
                on_signal.stop();
            }
        });
        Ok(Self { stop, came })
    }

    pub(super) fn came(&self) -> bool {
        self.came.load(Ordering::Relaxed)
    }
}

/// A forwarder on a thread of this process, on a socket of its own.
pub(super) struct Forwarder {
    pub(super) endpoint: Endpoint,
    directory: PathBuf,
    stop: byname_node::Stop,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Forwarder {
    pub(super) fn start(settings: &Settings) -> Outcome<Self> {
        let directory = std::env::temp_dir().join(format!("byname-bench-{}", std::process::id()));
        let endpoint = Endpoint::Unix(directory.join("forwarder.sock"));
        let mut node = daemon::node(settings, vec![endpoint.clone()])?;
        let stop = node.stop_handle();
        let handle = stop.clone();
        let thread = std::thread::spawn(move || {
            if let Err(error) = node.run(&handle) {
                output::err_line(&format!("the forwarder failed: {}", chain(&error)));
            }
        });
        Ok(Self { endpoint, directory, stop, thread: Some(thread) })
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_dir(&self.directory);
    }
}

/// The forwarder's number of the face at the other end of `connection`, asked for at `endpoint`.
/// An Interest makes the face known.
pub(super) fn face_of(
    connection: &mut Connection,
    prefixes: &[Name],
    endpoint: &Endpoint,
) -> Outcome<u64> {
    let lost = |error: &dyn std::error::Error| Failure::new(Code::NoRoute, chain(error));
    let mut wire = Vec::new();
    let name = prefixes.first().cloned().unwrap_or_default().with_keyword(b"hello");
    InterestBuilder::new(name.view()).nonce([0; 4]).lifetime_ms(1).encode(&mut wire);
    connection.queue(&[&wire]).map_err(|error| lost(&error))?;
    connection.flush().map_err(|error| lost(&error))?;
    let mut exchange = Exchange::new(connect(endpoint)?)?;
    for _ in 0..FACE_ATTEMPTS {
        let list = exchange.dataset("faces/list", CONNECT_TIMEOUT)?;
        let faces = FaceStatus::decode_all(&list)
            .map_err(|error| Failure::new(Code::Other, chain(&error)))?;
        if let Some(face) = faces.iter().find(|face| face.uri == connection.local_uri()) {
            return Ok(face.face_id);
        }
        std::thread::sleep(FACE_PAUSE);
    }
    let message = format!("the forwarder at {endpoint} knows no face {}", connection.local_uri());
    Err(Failure::new(Code::NoRoute, message))
}
