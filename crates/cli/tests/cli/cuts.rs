//! A Unix socket that leads to another one, and can be cut: both ends stay connected, and nothing
//! comes through any more, as when a network in between is gone.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Pause of what waits for the cut to be mended.
const PAUSE: Duration = Duration::from_millis(5);

/// See the module. Its threads end with the test's process.
pub(crate) struct Cut {
    is_cut: Arc<AtomicBool>,
}

impl Cut {
    /// A socket at `here` that leads to the one at `there`.
    pub(crate) fn between(here: &Path, there: PathBuf) -> Self {
        let listener = UnixListener::bind(here).unwrap();
        let is_cut = Arc::new(AtomicBool::new(false));
        let shared = is_cut.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                // Whoever is behind the cut is not reached by new connections either.
                let (there, is_cut) = (there.clone(), shared.clone());
                std::thread::spawn(move || join(near, &there, &is_cut));
            }
        });
        Self { is_cut }
    }

    /// Cuts the path, or mends it.
    pub(crate) fn set(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Relaxed);
    }
}

fn join(near: UnixStream, there: &Path, is_cut: &Arc<AtomicBool>) {
    wait(is_cut);
    let Ok(far) = UnixStream::connect(there) else { return };
    let (from_near, to_far) = (near.try_clone().unwrap(), far.try_clone().unwrap());
    let shared = is_cut.clone();
    std::thread::spawn(move || copy(from_near, to_far, &shared));
    copy(far, near, is_cut);
}

fn copy(mut from: UnixStream, mut to: UnixStream, is_cut: &AtomicBool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(len) = from.read(&mut buffer) {
        wait(is_cut);
        if len == 0 || to.write_all(&buffer[..len]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
    let _ = from.shutdown(std::net::Shutdown::Both);
}

fn wait(is_cut: &AtomicBool) {
    while is_cut.load(Ordering::Relaxed) {
        std::thread::sleep(PAUSE);
    }
}
