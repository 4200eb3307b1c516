//! CPU time that the serving thread takes for a file, without a reader that checks or stores it.
//!
//! `cargo run --release -p byname-store --example serving -- FILE [memif|unix] [WINDOW] [TIMES]`
//!
//! The file should be in the page cache, or, to look at the disk, not (`vmtouch -e FILE`).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use byname_face::frame_len;
use byname_io::{Connection, Interest, Poller, Token};
use byname_packet::lp::{self, LpHeader, LpPacket};
use byname_packet::{Data, DigestSigner, InterestBuilder, Name, Packet};
use byname_store::{Exposure, FileServer, FileServerConfig, MountConfig, MountSource};
use byname_transfer::metadata::{Answer, Metadata};
use byname_transfer::naming::{self, Part};
use rustix::time::{ClockId, clock_gettime};

struct Reader {
    connection: Connection,
    poller: Poller,
}

impl Reader {
    fn ask(&mut self, builder: &InterestBuilder<'_>, token: u64) {
        let mut wire = Vec::new();
        builder.clone().nonce([1, 2, 3, 4]).encode(&mut wire);
        let token = token.to_be_bytes();
        let header = LpHeader { pit_token: Some(&token), ..LpHeader::default() };
        let mut front = Vec::new();
        lp::encode_header(&header, None, wire.len(), &mut front);
        self.connection.queue(&[&front, &wire]).expect("measuring ends here");
    }

    fn receive(&mut self, mut on_data: impl FnMut(&Data<'_>)) {
        self.connection.flush().expect("measuring ends here");
        let mut events = Vec::new();
        self.poller
            .wait(&mut events, Some(Duration::from_millis(100)))
            .expect("measuring ends here");
        self.connection
            .recv_burst(frame_len, &mut |frame| {
                let link = LpPacket::decode(frame).expect("measuring ends here");
                assert_eq!(link.header.nack, None);
                let Ok(Packet::Data(data)) =
                    Packet::decode(link.fragment.expect("measuring ends here"))
                else {
                    return;
                };
                on_data(&data);
            })
            .expect("measuring ends here");
    }

    fn discover(&mut self, name: &Name) -> Metadata {
        let name = naming::metadata_name(name.view());
        loop {
            let builder = InterestBuilder::new(name.view());
            self.ask(&builder.can_be_prefix(true).must_be_fresh(true).lifetime_ms(4000), 0);
            let mut found = None;
            while found.is_none() {
                self.receive(|data| {
                    found = Some(Answer::decode(data).expect("measuring ends here"))
                });
            }
            if let Some(Answer::Metadata(found)) = found {
                return found;
            }
        }
    }

    fn read(&mut self, found: &Metadata, window: u64) {
        let last = found.last_segment.expect("measuring ends here");
        let (mut next, mut received) = (0, 0u64);
        while received <= last {
            while next <= last && next - received < window {
                let name = naming::segment_name(found.name.view(), Part::Content, next);
                self.ask(&InterestBuilder::new(name.view()), next);
                next += 1;
            }
            self.receive(|_| received += 1);
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = PathBuf::from(arguments.next().expect("a file"));
    let link = arguments.next().unwrap_or("unix".to_owned());
    let window = arguments.next().map_or(512, |text| text.parse().expect("measuring ends here"));
    let times: u32 = arguments.next().map_or(3, |text| text.parse().expect("measuring ends here"));
    let state = tempfile::tempdir().expect("measuring ends here");
    let mount = MountConfig {
        prefix: "/t".parse().expect("measuring ends here"),
        source: MountSource::Directory {
            directory: file.parent().expect("measuring ends here").to_path_buf(),
            exposure: Exposure { hidden: true, private: true },
        },
        signer: Arc::new(DigestSigner),
    };
    let config = FileServerConfig::new(vec![mount], state.path().to_path_buf());
    let (theirs, ours) = match link.as_str() {
        "memif" => Connection::pair_in_memory().expect("measuring ends here"),
        _ => Connection::pair().expect("measuring ends here"),
    };
    let server = FileServer::new(config).expect("measuring ends here");
    let handle = server.handle();
    let thread =
        std::thread::spawn(move || server.run_direct(theirs).expect("measuring ends here"));
    let clock = others_clock();
    let poller = Poller::new().expect("measuring ends here");
    poller.add(&ours, Token(0), Interest::READ).expect("measuring ends here");
    let mut reader = Reader { connection: ours, poller };
    let name = Name::from_path("/t")
        .expect("measuring ends here")
        .with_generic(file.file_name().expect("measuring ends here").as_encoded_bytes());
    let found = reader.discover(&name);
    let gib = found.size.expect("measuring ends here") as f64 / f64::from(1 << 30);
    // Hashing may be in progress; it is not what is measured.
    std::thread::sleep(Duration::from_millis(1500));
    for _ in 0..times {
        let (before, begin) = (clock(), Instant::now());
        reader.read(&found, window);
        let (cpu, wall) = (clock() - before, begin.elapsed());
        println!(
            "{link} window {window}: {:.3} CPU-s/GiB of the serving thread, {:.2} GiB/s",
            cpu.as_secs_f64() / gib,
            gib / wall.as_secs_f64()
        );
    }
    handle.stop();
    drop(thread.join());
}

/// CPU time of the process without this thread: that of the server.
fn others_clock() -> impl Fn() -> Duration {
    let time = |id| {
        let time = clock_gettime(id);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    move || time(ClockId::ProcessCPUTime) - time(ClockId::ThreadCPUTime)
}
