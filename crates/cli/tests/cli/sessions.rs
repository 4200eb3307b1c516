//! Sessions of the client library against the real file server, over a socket pair: many files at
//! once, many threads, and a reader that takes its time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use byname_client::{Client, ClientConfig, RemoteFile, Session, SessionOptions};
use byname_io::Connection;
use byname_packet::{Name, ValidityPeriod};
use byname_security::cert::CertificateRequest;
use byname_security::key::{KeyPair, KeySigner};
use byname_store::{
    Exposure, FileServer, FileServerConfig, MountConfig, MountSource, ServerHandle, StoreError,
};

use crate::harness::noise;

const FILES: usize = 64;

/// A server in a thread of this process, and a session that trusts it.
struct World {
    session: Option<Session>,
    prefix: Name,
    handle: ServerHandle,
    thread: Option<JoinHandle<Result<(), StoreError>>>,
    _home: tempfile::TempDir,
}

impl World {
    fn new(files: &[Vec<u8>]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let tree = home.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        for (index, bytes) in files.iter().enumerate() {
            std::fs::write(tree.join(index.to_string()), bytes).unwrap();
        }
        let prefix: Name = "/lab".parse().unwrap();
        let key = Arc::new(KeyPair::ed25519_from_seed(&[7; 32]));
        let (key_id, public_key) = (key.key_id(), key.public_key());
        let key_name = prefix.with_generic(b"KEY").with_generic(b"7");
        let request = CertificateRequest {
            key_name: key_name.view(),
            public_key: &public_key,
            issuer_id: b"self",
            version: 1,
            validity: ValidityPeriod { not_before_s: 0, not_after_s: 4_000_000_000 },
        };
        let signer = KeySigner::new(key, request.certificate_name());
        let certificate = request.issue(&signer).unwrap();
        let mount = MountConfig {
            prefix: prefix.clone(),
            source: MountSource::Directory { directory: tree, exposure: Exposure::default() },
            signer: Arc::new(signer),
        };
        let config = FileServerConfig::new(vec![mount], home.path().join("state"));
        let server = FileServer::new(config).unwrap();
        let handle = server.handle();
        let (near, far) = Connection::pair().unwrap();
        let thread = Some(std::thread::spawn(move || server.run_direct(far)));
        let mut config =
            ClientConfig { timeout: Duration::from_secs(60), ..ClientConfig::default() };
        config.trust.add_anchor(prefix.clone(), key_id);
        let mut client = Client::with_connection(near, config).unwrap();
        client.add_certificate(certificate.wire()).unwrap();
        let session = Some(Session::start(client, SessionOptions::default()).unwrap());
        World { session, prefix, handle, thread, _home: home }
    }

    fn open(&self, index: usize) -> RemoteFile {
        let name = self.prefix.with_generic(index.to_string().as_bytes());
        self.session.as_ref().unwrap().open(&name).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.session = None;
        self.handle.stop();
        if let Some(thread) = self.thread.take().filter(|_| !std::thread::panicking()) {
            thread.join().unwrap().unwrap();
        }
    }
}

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn poll_until_done(mut poll: impl FnMut(&mut Context<'_>) -> bool) {
    let waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
    while !poll(&mut Context::from_waker(&waker)) {
        std::thread::park();
    }
}

#[test]
fn sixty_four_files_at_once_get_the_same_share() {
    let contents: Vec<Vec<u8>> = (0..FILES as u64).map(|seed| noise(1_500_000, seed)).collect();
    let world = World::new(&contents);
    let files: Vec<RemoteFile> = (0..FILES).map(|index| world.open(index)).collect();
    let mut reads: Vec<_> =
        files.iter().map(|file| file.read_at_later(vec![0; 1_500_000], 0)).collect();
    let mut buffers: Vec<Option<Vec<u8>>> = vec![None; FILES];
    let mut least_at_half = None;
    poll_until_done(|context| {
        for (read, buffer) in reads.iter_mut().zip(&mut buffers) {
            if buffer.is_none()
                && let Poll::Ready(done) = Pin::new(read).poll(context)
            {
                *buffer = Some(done.unwrap().buffer);
            }
        }
        // The engine has begun with the first one before the last is asked for, so a few may well
        // be far ahead. In turns, however, all would end at nearly the same time.
        if least_at_half.is_none() && buffers.iter().flatten().count() >= FILES / 2 {
            least_at_half = files.iter().map(|file| file.counters().received_bytes).min();
        }
        buffers.iter().all(Option::is_some)
    });
    for (buffer, content) in buffers.iter().zip(&contents) {
        assert!(buffer.as_ref().unwrap() == content);
    }
    let least = least_at_half.unwrap();
    assert!(least > 500_000, "a file was left behind: {least} of 1500000 bytes");
}

#[test]
fn threads_read_ranges_of_all_files_and_a_slow_one_holds_nobody_up() {
    let contents: Vec<Vec<u8>> =
        (0..FILES).map(|index| noise(20_000 + index * 9001, index as u64)).collect();
    let world = World::new(&contents);
    let files: Vec<RemoteFile> = (0..FILES).map(|index| world.open(index)).collect();
    // Never polled again after its first time: its answer waits, and nobody else does.
    let mut slow = files[0].read_at_later(vec![0; 5000], 0);
    let _ = Pin::new(&mut slow).poll(&mut Context::from_waker(Waker::noop()));
    std::thread::scope(|scope| {
        for thread in 0..8usize {
            let (files, contents) = (&files, &contents);
            scope.spawn(move || {
                for round in 0..100usize {
                    let index = (round * 37 + thread * 11) % FILES;
                    let content = &contents[index];
                    let mut buffers = vec![[0u8; 700]; 20];
                    let places = (0..20).map(|at| (at * 7919 + round * 13) % content.len());
                    let places: Vec<usize> = places.collect();
                    let mut ranges: Vec<(u64, &mut [u8])> = places
                        .iter()
                        .zip(&mut buffers)
                        .map(|(at, buffer)| (*at as u64, buffer.as_mut_slice()))
                        .collect();
                    let filled = files[index].read_ranges(&mut ranges).unwrap();
                    for ((at, buffer), filled) in places.iter().zip(&buffers).zip(filled) {
                        assert_eq!(filled, 700.min(content.len() - at));
                        assert!(buffer[..filled] == content[*at..at + filled]);
                    }
                }
            });
        }
    });
    let slow = slow.wait().unwrap();
    assert!(slow.buffer == contents[0][..5000]);
}
