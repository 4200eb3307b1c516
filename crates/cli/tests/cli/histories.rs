//! Clients of a site at the same time, with real processes: one order of events explains what all
//! of them were told, with the checker that the simulator uses.
//!
//! A file's content is told by its size.

use crate::disks::{Site, put_from, start_head};
use crate::harness::{Daemon, Home};
use byname_catalog::{Command, Place, Refusal, Rename};
use byname_sim::site::history::{Kind, Operation, Outcome, check};
use byname_writer::{Writer, WriterError};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const PATHS: u8 = 3;
const CLIENTS: u64 = 3;
const STEPS: u64 = 12;

struct Client<'a> {
    number: u64,
    home: &'a Home,
    socket: &'a str,
    /// Before the names of all files.
    prefix: &'a str,
    writer: &'a mut Writer,
    begin: Instant,
    told: &'a Mutex<Vec<Operation>>,
}

impl Client<'_> {
    fn path(&self, number: u8) -> String {
        format!("{}f{number}", self.prefix)
    }

    fn place(&self, number: u8) -> Place {
        Place::path(self.path(number).as_bytes()).unwrap()
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).unwrap()
    }

    /// The size of a file as the catalog has it, which no cache answers.
    fn size(&self, number: u8) -> Option<u64> {
        let name = format!("/lab/{}", self.path(number));
        let args = ["site", "replica", "ls", &name, "--json", "--timeout", "60", "--connect"];
        let listed = self.home.run(&[&args[..], &[self.socket]].concat());
        if listed.stderr().contains("no such file") {
            return None;
        }
        let line = listed.ok().stdout();
        let value: serde_json::Value = serde_json::from_str(line.lines().next()?).unwrap();
        Some(value["bytes"].as_u64().unwrap_or_else(|| panic!("no size: {line}")))
    }

    fn put(&mut self, number: u8, bytes: u64) -> Result<(), WriterError> {
        let local = self.home.path().join(format!("local{}", self.number));
        let octets = vec![7; usize::try_from(bytes).unwrap()];
        put_from(&local, self.writer, &self.path(number), &octets)
    }

    fn execute(&mut self, command: Command) -> Result<(), WriterError> {
        self.writer.execute(command, &|| false).map(drop)
    }

    fn step(&mut self, step: u64) {
        // Which operation and where: a multiplication spreads the numbers well enough.
        let random = (self.number * 1000 + step).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        let number = (random % u64::from(PATHS)) as u8;
        let to = (number + 1) % PATHS;
        let from_ns = self.now_ns();
        let (kind, result) = match random / 16 % 8 {
            0..=2 => {
                let content = 1 + self.number * STEPS + step;
                (Kind::Put { path: number, content }, self.put(number, content))
            }
            3 => {
                let rename =
                    Rename { from: self.place(number), to: self.place(to), no_replace: false };
                let done = self.execute(Command::Rename(rename));
                (Kind::Rename { from: number, to }, done)
            }
            4 => {
                let unlink = Command::Unlink { place: self.place(number) };
                (Kind::Unlink { path: number }, self.execute(unlink))
            }
            _ => (Kind::Read { path: number, content: self.size(number) }, Ok(())),
        };
        let is_put = matches!(kind, Kind::Put { .. });
        let outcome = match result {
            Ok(()) => Outcome::Done,
            Err(WriterError::Refused(Refusal::NotFound)) if !is_put => Outcome::Absent,
            // Somebody else was faster, so nothing was written.
            Err(WriterError::Refused(
                Refusal::BaseChanged | Refusal::NameTaken | Refusal::NotFound,
            )) => return,
            Err(error) => panic!("client {}, {kind:?}: {error}", self.number),
        };
        let until_ns = self.now_ns();
        self.told.lock().unwrap().push(Operation { kind, outcome, from_ns, until_ns });
    }
}

/// Lets clients act at the same time, below names of their own, while something happens.
pub(crate) fn history_during(
    (home, socket): (&Home, &str),
    writers: &mut [Writer],
    prefix: &str,
    disturb: impl FnOnce(),
) -> Vec<Operation> {
    let (told, begin) = (Mutex::new(Vec::new()), Instant::now());
    std::thread::scope(|scope| {
        for (number, writer) in (0..).zip(writers) {
            let told = &told;
            let mut client = Client { number, home, socket, prefix, writer, begin, told };
            scope.spawn(move || (0..STEPS).for_each(|step| client.step(step)));
        }
        disturb();
    });
    told.into_inner().unwrap()
}

/// The writers of a history.
pub(crate) fn writers(site: &Site) -> Vec<Writer> {
    (0..CLIENTS).map(|_| site.writer()).collect()
}

/// A history while the head is killed so many times.
fn history(kills: u32) -> Vec<Operation> {
    let mut site = Site::new(2, 1);
    let mut writers = writers(&site);
    let Site { home, socket, head, .. } = &mut site;
    let (home, socket): (&Home, &str) = (home, socket);
    history_during((home, socket), &mut writers, "", || {
        for _ in 0..kills {
            std::thread::sleep(Duration::from_millis(400));
            head.as_mut().map(Daemon::kill);
            *head = Some(start_head(home, socket));
        }
    })
}

/// Panics unless one order of events explains what clients were told.
pub(crate) fn explain(operations: &[Operation]) {
    let count = |is: fn(&Kind) -> bool| operations.iter().filter(|one| is(&one.kind)).count();
    let puts = count(|kind| matches!(kind, Kind::Put { .. }));
    let found = count(|kind| matches!(kind, Kind::Read { content: Some(_), .. }));
    assert!(puts > 4 && found > 2, "{puts} writes and {found} reads say little: {operations:?}");
    check(operations).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn one_order_of_events_explains_what_clients_at_the_same_time_are_told() {
    explain(&history(0));
}

#[test]
fn one_order_of_events_explains_it_while_the_head_is_killed() {
    explain(&history(3));
}
