//! Replicas that are made elsewhere: disks that are busy are asked again, so many at a time, and no
//! more octets a second than somebody has said.

use byname_catalog::id::{ContentId, DiskId};
use byname_catalog::{Command, Commit, DiskChanges, DiskState};
use byname_head::Watch;
use byname_packet::Interest;
use byname_site::{DiskName, DiskRefusal, Insert, InsertAnswer};

use crate::commands::{commit, create_of, receipt, send_commit};
use crate::fsck::query;
use crate::support::{NOW_NS, TestHead, done};

const SECOND_NS: u64 = 1_000_000_000;
const STEP_NS: u64 = SECOND_NS / 10;
/// Contents that are on their way at a time.
const IN_FLIGHT_MAX: usize = 32;

/// A file on the first two disks.
fn put(head: &mut TestHead, path: &str, size: u64) {
    let content = create_of(head, path, size).terms().content;
    let commit = Commit { size, ..commit(content) };
    let of_disk = |disk: usize| receipt(head, disk, &head.disks[disk].1, &commit);
    let receipts = (0..2).map(of_disk).collect();
    done(send_commit(head, &commit, receipts));
}

/// What a disk answers.
#[derive(Clone, Copy)]
enum Says {
    Pulling,
    /// So much has come.
    Received(u64),
    Stored,
    Refused(DiskRefusal),
}

/// An order that was sent: the disk, the content, and all of it.
type Sent = (DiskName, ContentId, Vec<u8>);

/// A head that looks after its disks, at a time that passes only as the test wants.
struct Scene {
    head: TestHead,
    watch: Watch,
    now_ns: u64,
}

impl Scene {
    /// So many files on two disks; a third one has nothing.
    fn new(files: u64, size: u64) -> Self {
        let mut head = TestHead::new();
        for number in 0..files {
            put(&mut head, &format!("f{number}"), size);
        }
        head.add_disk(12);
        let watch = head.watch();
        Self { head, watch, now_ns: SECOND_NS }
    }

    fn set_disk(&mut self, index: usize, changes: DiskChanges) {
        let disk = self.id(index);
        self.head.done(Command::SetDisk { disk, changes });
    }

    fn id(&self, index: usize) -> DiskId {
        self.head.disks[index].0.id
    }

    fn pass(&mut self, nanoseconds: u64) {
        self.now_ns += nanoseconds;
        self.head.later_ns += nanoseconds;
    }

    /// Contents that a disk has by the catalog.
    fn has(&self, index: usize) -> usize {
        self.head.reader().replicas(self.id(index), None, 10_000).unwrap().len()
    }

    /// What is sent now, and answered so.
    fn turn(&mut self, says: impl Fn(&Sent) -> Says) -> Vec<Sent> {
        let clocks = (self.now_ns, NOW_NS + self.head.later_ns);
        let orders = self.watch.repair_orders(&mut || self.head.stamp(), clocks).unwrap();
        let Some(orders) = orders else { return Vec::new() };
        let sent: Vec<Sent> = orders.wires().into_iter().map(|wire| self.sent(wire)).collect();
        let answers: Vec<_> = sent.iter().map(|it| Some(self.answer(it, says(it)))).collect();
        let commands = self.watch.handle_repairs(orders, answers, clocks).unwrap();
        self.head.carry_out(commands);
        sent
    }

    fn sent(&self, wire: Vec<u8>) -> Sent {
        let interest = Interest::decode(&wire).unwrap();
        let (disk, order) = Insert::decode(&self.head.site, &interest).unwrap();
        (disk, order.ticket.terms().content, wire)
    }

    fn answer(&self, (disk, content, wire): &Sent, says: Says) -> Vec<u8> {
        let index = self.head.disks.iter().position(|(name, _)| name == disk).unwrap();
        let holder = &self.head.disks[index].1;
        let answer = match says {
            Says::Pulling => InsertAnswer::Pulling { received_bytes: 0, again_ms: 200 },
            Says::Received(received_bytes) => {
                InsertAnswer::Pulling { received_bytes, again_ms: 200 }
            }
            Says::Refused(why) => InsertAnswer::Refused(why),
            Says::Stored => {
                let size = self.head.reader().content(*content).unwrap().size;
                let commit = Commit { size, ..commit(*content) };
                InsertAnswer::Stored(receipt(&self.head, index, holder, &commit))
            }
        };
        let interest = Interest::decode(wire).unwrap();
        answer.encode(interest.name, &holder.signer).unwrap()
    }
}

fn drained() -> DiskChanges {
    DiskChanges { state: Some(DiskState::Drain), ..DiskChanges::default() }
}

#[test]
fn a_disk_that_is_busy_is_asked_again_until_it_has_what_it_was_to_take() {
    let mut scene = Scene::new(1, 1000);
    scene.set_disk(0, drained());
    let first = scene.turn(|_| Says::Refused(DiskRefusal::Busy));
    let [(disk, ..)] = first.as_slice() else { panic!("{first:?}") };
    assert_eq!(disk.id, scene.id(2));
    for says in [
        Says::Refused(DiskRefusal::Busy),
        Says::Refused(DiskRefusal::Unreachable),
        Says::Pulling,
        Says::Refused(DiskRefusal::Busy),
        Says::Stored,
    ] {
        assert_eq!((scene.has(0), scene.has(2)), (1, 0), "nothing leaves before it is there");
        scene.pass(STEP_NS);
        assert!(scene.turn(|_| says) == first, "the same order again");
    }
    assert_eq!((scene.has(0), scene.has(2)), (0, 1));
    scene.pass(10 * SECOND_NS);
    assert!(scene.turn(|_| Says::Pulling).is_empty(), "there is nothing left to do");
}

#[test]
fn a_disk_that_is_busy_for_long_is_asked_anew_and_one_that_refuses_another_time() {
    for says in [Says::Refused(DiskRefusal::Busy), Says::Refused(DiskRefusal::Full)] {
        let mut scene = Scene::new(1, 1000);
        scene.set_disk(0, drained());
        let first = scene.turn(|_| says);
        assert_eq!(first.len(), 1);
        // Another ticket, since the first one is over, or has been refused.
        let again = (0..3000).find_map(|_| {
            scene.pass(STEP_NS);
            let sent = scene.turn(|_| says);
            (!sent.is_empty() && sent != first).then_some(sent)
        });
        assert_eq!(again.expect("it is asked again")[0].0, first[0].0);
        (0..300).for_each(|_| {
            scene.pass(STEP_NS);
            scene.turn(|_| Says::Stored);
        });
        assert_eq!((scene.has(0), scene.has(2)), (0, 1));
    }
}

/// A large content takes its time: nobody else is asked for it while it comes, and somebody is when
/// it comes no more.
#[test]
fn a_pull_lasts_for_as_long_as_something_comes() {
    let size = 20 << 30;
    let mut scene = Scene::new(1, size);
    scene.set_disk(0, drained());
    let first = scene.turn(|_| Says::Pulling);
    assert_eq!(first.len(), 1);
    for minute in 1..30 {
        scene.pass(60 * SECOND_NS);
        let sent = scene.turn(|_| Says::Received(minute << 29));
        assert!(sent == first, "the same order in minute {minute}");
    }
    let stalled = |scene: &mut Scene| {
        scene.pass(50 * SECOND_NS);
        scene.turn(|_| Says::Received(29 << 29))
    };
    assert!(stalled(&mut scene) == first && stalled(&mut scene) == first);
    let again = (0..10).find_map(|_| Some(stalled(&mut scene)).filter(|sent| *sent != first));
    assert!(again.is_some(), "it is given up when nothing comes for two minutes");
}

#[test]
fn disks_that_are_busy_hold_up_so_many_contents_and_no_more_are_begun() {
    let mut scene = Scene::new(2 * IN_FLIGHT_MAX as u64, 1000);
    scene.set_disk(0, drained());
    for _ in 0..20 {
        assert_eq!(scene.turn(|_| Says::Refused(DiskRefusal::Busy)).len(), IN_FLIGHT_MAX);
        scene.pass(STEP_NS);
    }
    assert_eq!(scene.has(0), 2 * IN_FLIGHT_MAX);
    // As soon as there is room the rest is begun.
    let mut sent = 0;
    while scene.has(0) > 0 {
        sent += scene.turn(|_| Says::Stored).len();
        scene.pass(STEP_NS);
        assert!(sent <= 2 * IN_FLIGHT_MAX, "each is asked for once when nobody is busy");
    }
    assert_eq!(sent, 2 * IN_FLIGHT_MAX);
}

/// The third disk is empty. In each second no more goes there than was asked for, and hardly less.
#[test]
fn disks_are_balanced_at_the_rate_that_was_asked_for() {
    const FILES: u64 = 200;
    const SIZE: u64 = 10_000;
    const RATE: u64 = 50_000;
    let mut scene = Scene::new(FILES, SIZE);
    for index in 0..3 {
        let capacity_bytes = Some(2 * FILES * SIZE);
        scene.set_disk(index, DiskChanges { capacity_bytes, ..DiskChanges::default() });
    }
    let (mut moved, began_ns) = (0, scene.now_ns);
    let mut after_s = Vec::new();
    for step in 1..=200 {
        if step % 50 == 1 {
            // Whoever wants it says so again and again.
            query(&mut scene.head, &format!("balance main 5 {RATE}"));
        }
        let sent = scene.turn(|_| Says::Stored);
        assert!(sent.iter().all(|(disk, ..)| disk.id == scene.id(2)));
        moved += sent.len() as u64 * SIZE;
        scene.pass(STEP_NS);
        if (scene.now_ns - began_ns).is_multiple_of(SECOND_NS) {
            after_s.push(moved);
        }
    }
    assert_eq!(scene.has(2) as u64 * SIZE, moved);
    for (second, moved) in (1..).zip(&after_s) {
        let wanted = RATE * second;
        let is_near = *moved <= wanted + RATE + SIZE && moved * 10 >= wanted * 8;
        assert!(is_near, "{moved} of {wanted} after {second} s: {after_s:?}");
    }
}
