//! memif with both ends in this process, and with peers that do not mean well.

mod client;
mod pair;
mod raw;
mod server;

use std::thread;

use byname_io::{Connection, Endpoint, Interest, Limits, Listener};
use tempfile::TempDir;

use super::{PATIENCE, endpoint, wait_for};

/// A listener at a socket of its own.
struct Place {
    listener: Listener,
    _directory: TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let uri = format!("memif://{}/socket", directory.path().display());
        Place { listener: Listener::bind(&endpoint(&uri)).unwrap(), _directory: directory }
    }

    fn endpoint(&self) -> Endpoint {
        self.listener.local_endpoint().clone()
    }

    fn path(&self) -> std::path::PathBuf {
        match self.endpoint() {
            Endpoint::Memif { path, .. } => path,
            other => panic!("{other}"),
        }
    }

    /// Serves the listener until a connection is ready.
    fn accept(&self) -> Connection {
        loop {
            wait_for(&self.listener, Interest::READ);
            if let Some(connection) = self.listener.accept().unwrap() {
                return connection;
            }
        }
    }

    /// Two ends of a fresh connection, made as two processes would.
    fn connected(&self) -> (Connection, Connection) {
        self.connected_with(self.endpoint(), Limits::default())
    }

    fn connected_with(&self, endpoint: Endpoint, limits: Limits) -> (Connection, Connection) {
        let connect = move || Connection::connect_with(&endpoint, PATIENCE, limits).unwrap();
        let client = thread::spawn(connect);
        let server = self.accept();
        (client.join().unwrap(), server)
    }
}
