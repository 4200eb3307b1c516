//! Orders and outcomes by hand.

use byname_catalog::id::{InodeId, Version};
use byname_catalog::{Checksums, Resolution};
use byname_security::key::KeyId;

use super::*;
use crate::record::Record;

const CONTENT: ContentId = ContentId { inode: InodeId(5), version: Version(1) };
const EPOCH: LeaseEpoch = LeaseEpoch(7);

fn content(inode: u64) -> ContentId {
    ContentId { inode: InodeId(inode), version: Version(1) }
}

fn order(content: ContentId) -> Pull {
    Pull {
        content,
        name: "/site".parse().unwrap(),
        size: 10,
        root: [1; 32],
        segment_size: 8192,
        hint: "/writer".parse().unwrap(),
        writer: KeyId([0; 32]),
        ticket: vec![1],
        claim: vec![2],
        older: None,
    }
}

fn kept() -> Kept {
    Kept { size: 10, root: [1; 32], checksums: Checksums { adler32: 1, crc32c: 2 } }
}

fn machine() -> Machine {
    Machine::new(Limits::default(), &Scan { epoch: EPOCH, ..Scan::default() }, 0)
}

fn actions(machine: &mut Machine) -> Vec<Action> {
    std::iter::from_fn(|| machine.poll_action()).collect()
}

/// A machine on which a content is stored.
fn stored() -> Machine {
    let mut machine = machine();
    machine.handle_insert(order(CONTENT), 0);
    machine.handle_pulled(CONTENT, Ok(kept()), 0);
    actions(&mut machine);
    machine
}

#[test]
fn an_order_that_names_nothing_asks_how_the_disk_is() {
    let mut machine = Machine::new(Limits::default(), &Scan::default(), 0);
    let ask = |machine: &mut Machine| {
        let id = machine.handle_drop(LeaseEpoch(0), &[]).unwrap();
        let (done, outcome) = machine.poll_drop().unwrap();
        assert_eq!(done, id);
        outcome
    };
    assert_eq!(ask(&mut machine), Ok(LeaseEpoch(0)));
    machine.handle_probed(Err(StoreFailure::ReadOnly));
    assert_eq!(ask(&mut machine), Err(StoreFailure::ReadOnly));
    machine.handle_probed(Ok(()));
    assert_eq!(ask(&mut machine), Ok(LeaseEpoch(0)));
}

#[test]
fn a_content_is_called_stored_only_after_its_pull_has_ended_well() {
    let mut machine = machine();
    let again = Progress::Pulling { received_bytes: 0, again_ms: 200 };
    assert_eq!(machine.handle_insert(order(CONTENT), 0), again);
    assert_eq!(actions(&mut machine), [Action::Pull(Box::new(order(CONTENT)))]);
    machine.handle_progress(CONTENT, 10, 0);
    let all = Progress::Pulling { received_bytes: 10, again_ms: 200 };
    assert_eq!(machine.handle_insert(order(CONTENT), 0), all, "all is there, but not synced");
    assert_eq!(actions(&mut machine), [], "it is pulled once");
    machine.handle_pulled(CONTENT, Ok(kept()), 0);
    assert_eq!(machine.handle_insert(order(CONTENT), 0), Progress::Stored(kept()));
}

#[test]
fn another_claim_for_the_same_content_is_refused() {
    let other = || Pull { root: [9; 32], ..order(CONTENT) };
    let refused = Progress::Refused(Refusal::OtherClaim);
    let mut machine = machine();
    machine.handle_insert(order(CONTENT), 0);
    assert_eq!(machine.handle_insert(other(), 0), refused);
    machine.handle_pulled(CONTENT, Ok(kept()), 0);
    assert_eq!(machine.handle_insert(other(), 0), refused);
}

#[test]
fn a_failure_is_told_for_a_while_and_then_it_is_tried_again() {
    let mut machine = machine();
    machine.handle_insert(order(CONTENT), 0);
    machine.handle_pulled(CONTENT, Err(StoreFailure::Full), 0);
    let full = Progress::Refused(Refusal::Store(StoreFailure::Full));
    assert_eq!(machine.handle_insert(order(CONTENT), SECOND), full);
    assert_eq!(machine.health(), Some(StoreFailure::Full));
    actions(&mut machine);
    assert!(matches!(machine.handle_insert(order(CONTENT), 3 * SECOND), Progress::Pulling { .. }));
    assert_eq!(actions(&mut machine).len(), 1);
    machine.handle_pulled(CONTENT, Ok(kept()), 3 * SECOND);
    assert_eq!(machine.health(), None);
}

#[test]
fn pulls_wait_for_their_turn_and_beyond_a_bound_are_refused() {
    let limits = Limits { pulls_max: 2, waiting_max: 1, ..Limits::default() };
    let mut machine = Machine::new(limits, &Scan::default(), 0);
    let mut insert = |inode| machine.handle_insert(order(content(inode)), 0);
    assert!((1..=3).all(|inode| matches!(insert(inode), Progress::Pulling { .. })));
    assert_eq!(insert(4), Progress::Refused(Refusal::Busy));
    assert_eq!(actions(&mut machine).len(), 2);
    machine.handle_pulled(content(1), Err(StoreFailure::Unreachable), 0);
    assert_eq!(actions(&mut machine), [Action::Pull(Box::new(order(content(3))))]);
}

/// An order of one of several writers.
fn order_of(writer: u8, inode: u64) -> Pull {
    Pull { writer: KeyId([writer; 32]), size: 1 << 30, ..order(content(inode)) }
}

#[test]
fn a_writer_who_waits_has_his_turn_before_the_many_of_another() {
    let limits = Limits { pulls_max: 2, ..Limits::default() };
    let mut machine = Machine::new(limits, &Scan::default(), 0);
    for inode in 1..=9 {
        machine.handle_insert(order_of(1, inode), 0);
    }
    machine.handle_insert(order_of(2, 10), 0);
    actions(&mut machine);
    machine.handle_pulled(content(1), Err(StoreFailure::Unreachable), 0);
    assert_eq!(actions(&mut machine), [Action::Pull(Box::new(order_of(2, 10)))]);
    machine.handle_pulled(content(10), Ok(kept()), 0);
    assert_eq!(actions(&mut machine), [Action::Pull(Box::new(order_of(1, 3)))]);
}

#[test]
fn one_writer_who_drips_does_not_hold_all_places() {
    let limits = Limits { pulls_max: 3, ..Limits::default() };
    let mut machine = Machine::new(limits, &Scan::default(), 0);
    for inode in 1..=3 {
        machine.handle_insert(order_of(1, inode), 0);
        machine.handle_progress(content(inode), 1000 * (4 - inode), 0);
    }
    machine.handle_insert(order_of(2, 10), SECOND);
    actions(&mut machine);
    assert_eq!(machine.poll_timeout(), Some(6 * SECOND));
    machine.handle_timeout(6 * SECOND - 1);
    assert_eq!(actions(&mut machine), []);
    machine.handle_timeout(6 * SECOND);
    assert_eq!(actions(&mut machine), [Action::Stop(content(3))], "the slowest");
    machine.handle_timeout(7 * SECOND);
    assert_eq!(actions(&mut machine), [], "one place is enough");
    machine.handle_pulled(content(3), Err(StoreFailure::Stopped), 7 * SECOND);
    assert_eq!(actions(&mut machine), [Action::Pull(Box::new(order_of(2, 10)))]);
    let again = machine.handle_insert(order_of(1, 3), 7 * SECOND);
    assert!(matches!(again, Progress::Pulling { received_bytes: 0, .. }), "it waits: {again:?}");
    machine.handle_timeout(20 * SECOND);
    assert_eq!(actions(&mut machine), [], "whoever has places waits for one of his own");
}

#[test]
fn a_pull_that_brings_too_little_has_failed_and_one_that_is_all_there_has_time() {
    let Limits { floor_bytes, floor_ns, .. } = Limits::default();
    let mut machine = machine();
    machine.handle_insert(order_of(1, 1), 0);
    machine.handle_insert(order_of(1, 2), 0);
    machine.handle_insert(Pull { size: 10, ..order_of(1, 3) }, 0);
    machine.handle_progress(content(1), floor_bytes, floor_ns / 2);
    machine.handle_progress(content(2), floor_bytes - 1, floor_ns / 2);
    machine.handle_progress(content(3), 10, 0);
    actions(&mut machine);
    machine.handle_timeout(floor_ns / 2);
    assert_eq!(machine.poll_timeout(), Some(floor_ns));
    machine.handle_timeout(floor_ns);
    assert_eq!(actions(&mut machine), [Action::Stop(content(2))]);
    machine.handle_pulled(content(2), Err(StoreFailure::Stopped), floor_ns);
    let slow = Progress::Refused(Refusal::Store(StoreFailure::Slow));
    assert_eq!(machine.handle_insert(order_of(1, 2), floor_ns), slow);
    assert_eq!(machine.poll_timeout(), Some(floor_ns / 2 * 3));
    machine.handle_timeout(floor_ns / 2 * 3);
    assert_eq!(actions(&mut machine), [Action::Stop(content(1))]);
    // It came to its end before it was stopped.
    machine.handle_pulled(content(1), Ok(kept()), 2 * floor_ns);
    assert_eq!(machine.census().stored, 1);
    assert_eq!(machine.poll_timeout().filter(|at_ns| *at_ns < 60 * SECOND), None);
}

/// A disk of two places.
fn narrow() -> Machine {
    Machine::new(Limits { pulls_max: 2, ..Limits::default() }, &Scan::default(), 0)
}

const FAILING: Progress = Progress::Refused(Refusal::Store(StoreFailure::Failing));

fn is_on_the_way(progress: Progress) -> bool {
    matches!(progress, Progress::Pulling { .. })
}

#[test]
fn a_file_system_that_hangs_is_a_disk_that_fails_until_it_answers() {
    let Limits { floor_ns, ending_ns, .. } = Limits::default();
    let mut machine = narrow();
    let hangs = order_of(1, 1);
    for inode in 1..=3 {
        machine.handle_insert(order_of(1, inode), 0);
    }
    machine.handle_progress(content(2), 1 << 20, floor_ns);
    machine.handle_timeout(floor_ns);
    assert!(actions(&mut machine).contains(&Action::Stop(content(1))));
    let hung_ns = floor_ns + ending_ns;
    machine.handle_progress(content(2), 1 << 20, hung_ns - 1);
    machine.handle_timeout(hung_ns - 1);
    assert!(is_on_the_way(machine.handle_insert(hangs.clone(), hung_ns - 1)));
    assert_eq!((machine.health(), machine.poll_timeout()), (None, Some(hung_ns)));

    machine.handle_timeout(hung_ns);
    assert_eq!(machine.health(), Some(StoreFailure::Failing));
    for (writer, inode, why) in [(1, 1, "it hangs"), (1, 3, "it waits"), (2, 4, "it is new")] {
        assert_eq!(machine.handle_insert(order_of(writer, inode), hung_ns), FAILING, "{why}");
    }
    assert!(is_on_the_way(machine.handle_insert(order_of(1, 2), hung_ns)), "it goes on");
    // What else can be written does not say that it is well.
    machine.handle_probed(Ok(()));
    machine.handle_pulled(content(2), Ok(kept()), hung_ns);
    assert_eq!(machine.health(), Some(StoreFailure::Failing));
    assert!(actions(&mut machine).is_empty(), "nothing is begun that would hang as well");

    // It goes on as if nothing had been.
    machine.handle_pulled(content(1), Err(StoreFailure::Stopped), 2 * hung_ns);
    assert_eq!(machine.health(), None);
    assert_eq!(machine.census().stored, 1);
    assert_eq!(actions(&mut machine), [Action::Pull(Box::new(order_of(1, 3)))]);
    assert!(is_on_the_way(machine.handle_insert(order_of(2, 4), 2 * hung_ns)));
}

#[test]
fn a_sync_has_its_time_and_holds_up_others() {
    let Limits { floor_ns, ending_ns, sync_ns, .. } = Limits::default();
    let mut machine = narrow();
    let syncing = Pull { size: 1 << 20, ..order_of(1, 2) };
    machine.handle_insert(order_of(1, 1), 0);
    machine.handle_insert(syncing.clone(), 0);
    machine.handle_progress(content(2), 1 << 20, SECOND);
    assert!(machine.poll_timeout().is_some_and(|at_ns| at_ns <= SECOND), "it gets its time");
    machine.handle_timeout(SECOND);
    machine.handle_timeout(floor_ns);
    machine.handle_timeout(floor_ns + ending_ns);
    assert_eq!(machine.health(), None, "the other one waits for the same disk");
    assert_eq!(machine.poll_timeout(), Some(SECOND + sync_ns));
    machine.handle_timeout(SECOND + sync_ns);
    assert_eq!(machine.health(), Some(StoreFailure::Failing));
    assert_eq!(machine.handle_insert(syncing, SECOND + sync_ns), FAILING);
}

/// Whoever has given up what hangs had it dropped; and an empty content has nothing to wait for.
#[test]
fn what_nobody_wants_any_more_shows_as_well_that_the_file_system_hangs() {
    let Limits { ending_ns, sync_ns, .. } = Limits::default();
    let mut machine = narrow();
    machine.handle_insert(order_of(1, 1), 0);
    machine.handle_drop(machine.epoch(), &[content(1)]).unwrap();
    machine.handle_timeout(SECOND);
    machine.handle_timeout(SECOND + ending_ns);
    assert_eq!(machine.health(), Some(StoreFailure::Failing));

    let mut machine = narrow();
    machine.handle_insert(Pull { size: 0, ..order_of(1, 1) }, 0);
    machine.handle_timeout(SECOND);
    machine.handle_timeout(SECOND + sync_ns);
    assert_eq!(machine.health(), Some(StoreFailure::Failing));
}

/// A writer whose new version only seems to begin as the one before has all of it pulled twice.
#[test]
fn a_writer_who_is_asked_anew_makes_no_disk_fail() {
    let Limits { floor_ns, sync_ns, .. } = Limits::default();
    let mut machine = machine();
    machine.handle_insert(order_of(1, 1), 0);
    machine.handle_progress(content(1), 1 << 30, SECOND);
    machine.handle_again(content(1), 2 * SECOND);
    actions(&mut machine);
    machine.handle_timeout(2 * SECOND + floor_ns);
    assert_eq!(actions(&mut machine), [Action::Stop(content(1))], "he sends nothing");
    machine.handle_pulled(content(1), Err(StoreFailure::Stopped), 3 * SECOND + floor_ns);
    machine.handle_timeout(2 * sync_ns);
    assert_eq!(machine.health(), None);
}

#[test]
fn one_writer_does_not_fill_the_queue() {
    let limits = Limits { pulls_max: 1, waiting_max: 8, ..Limits::default() };
    let mut machine = Machine::new(limits, &Scan::default(), 0);
    let mut taken = |writer, first: u64| {
        let is_taken = |inode: &u64| {
            let progress = machine.handle_insert(order_of(writer, *inode), 0);
            matches!(progress, Progress::Pulling { .. })
        };
        (first..first + 20).filter(is_taken).count()
    };
    assert_eq!(taken(1, 100), 1 + 4, "one is being pulled");
    assert_eq!(taken(2, 200), 2);
    assert_eq!(taken(3, 300), 1);
}

#[test]
fn a_drop_waits_for_the_epoch_and_for_every_removal() {
    let mut machine = stored();
    let higher = LeaseEpoch(8);
    let id = machine.handle_drop(higher, &[CONTENT, content(9)]).unwrap();
    assert_eq!(actions(&mut machine), [Action::KeepEpoch(higher)], "nothing is removed before");
    machine.handle_epoch_kept(higher, Ok(()));
    let removals = [Action::Remove(CONTENT), Action::Remove(content(9))];
    assert_eq!(actions(&mut machine), removals);
    machine.handle_removed(CONTENT, Ok(()), 0);
    assert_eq!(machine.poll_drop(), None);
    machine.handle_removed(content(9), Ok(()), 0);
    assert_eq!(machine.poll_drop(), Some((id, Ok(higher))));
    let dropped = Progress::Refused(Refusal::Dropped);
    assert_eq!(machine.handle_insert(order(CONTENT), 0), dropped);
    assert_eq!(machine.handle_insert(order(content(9)), 0), dropped, "it does not come later");
}

#[test]
fn a_head_that_has_lost_the_lease_drops_nothing() {
    let mut machine = stored();
    assert_eq!(machine.handle_drop(LeaseEpoch(6), &[CONTENT]), Err(Refusal::OldEpoch));
    assert_eq!(actions(&mut machine), []);
    machine.handle_drop(LeaseEpoch(8), &[]).unwrap();
    assert_eq!(machine.handle_drop(EPOCH, &[CONTENT]), Err(Refusal::OldEpoch));
}

#[test]
fn an_epoch_that_could_not_be_kept_drops_nothing_and_is_kept_by_the_next_order() {
    let mut machine = stored();
    let higher = LeaseEpoch(8);
    let id = machine.handle_drop(higher, &[CONTENT]).unwrap();
    actions(&mut machine);
    machine.handle_epoch_kept(higher, Err(StoreFailure::ReadOnly));
    assert_eq!(machine.poll_drop(), Some((id, Err(StoreFailure::ReadOnly))));
    assert_eq!(actions(&mut machine), []);
    machine.handle_drop(higher, &[CONTENT]).unwrap();
    assert_eq!(actions(&mut machine), [Action::KeepEpoch(higher)]);
}

#[test]
fn a_content_that_is_being_pulled_is_stopped_and_its_drop_waits_for_that() {
    let mut machine = machine();
    machine.handle_insert(order(CONTENT), 0);
    actions(&mut machine);
    let id = machine.handle_drop(EPOCH, &[CONTENT]).unwrap();
    assert_eq!(actions(&mut machine), [Action::Stop(CONTENT)]);
    let dropped = Progress::Refused(Refusal::Dropped);
    assert_eq!(machine.handle_insert(order(CONTENT), 0), dropped);
    // It was stored just before it could be stopped.
    machine.handle_pulled(CONTENT, Ok(kept()), 0);
    assert_eq!(machine.handle_insert(order(CONTENT), 0), dropped, "no receipt any more");
    assert_eq!(actions(&mut machine), [Action::Remove(CONTENT)]);
    machine.handle_removed(CONTENT, Ok(()), 0);
    assert_eq!(machine.poll_drop(), Some((id, Ok(EPOCH))));
}

#[test]
fn a_removal_that_fails_is_told_and_the_content_never_counts_as_stored_again() {
    let mut machine = stored();
    let id = machine.handle_drop(EPOCH, &[CONTENT]).unwrap();
    machine.handle_removed(CONTENT, Err(StoreFailure::Failing), 0);
    assert_eq!(machine.poll_drop(), Some((id, Err(StoreFailure::Failing))));
    let dropped = Progress::Refused(Refusal::Dropped);
    assert_eq!(machine.handle_insert(order(CONTENT), 0), dropped);
}

/// Found by the simulator (sites, seed 1215): a full disk could not note that a content was gone,
/// and the content stayed although the head had been told that it was dropped.
#[test]
fn what_could_not_be_removed_is_tried_again_and_not_said_to_be_dropped() {
    let mut machine = stored();
    let first = machine.handle_drop(EPOCH, &[CONTENT]).unwrap();
    assert_eq!(actions(&mut machine), [Action::Remove(CONTENT)]);
    machine.handle_removed(CONTENT, Err(StoreFailure::Full), 0);
    assert_eq!(machine.poll_drop(), Some((first, Err(StoreFailure::Full))));
    let again = machine.handle_drop(EPOCH, &[CONTENT]).unwrap();
    assert_eq!(actions(&mut machine), [Action::Remove(CONTENT)], "the order is repeated");
    assert_eq!(machine.poll_drop(), None, "it is not gone");
    machine.handle_removed(CONTENT, Err(StoreFailure::Full), SECOND);
    assert_eq!(machine.poll_drop(), Some((again, Err(StoreFailure::Full))));
    let later_ns = SECOND + Limits::default().ask_again_ns;
    machine.handle_timeout(later_ns);
    assert_eq!(actions(&mut machine), [Action::Remove(CONTENT)], "without an order, too");
    machine.handle_removed(CONTENT, Ok(()), later_ns);
    let done = machine.handle_drop(EPOCH, &[CONTENT]).unwrap();
    assert_eq!(machine.poll_drop(), Some((done, Ok(EPOCH))));
    assert_eq!(machine.poll_timeout(), None, "nothing is left to be done");
}

/// The question that a stored content leads to.
fn ask(machine: &mut Machine, now_ns: u64) {
    machine.handle_timeout(now_ns);
    assert_eq!(actions(machine), [Action::Resolve(CONTENT)]);
}

#[test]
fn the_head_is_asked_later_and_only_aborted_removes() {
    let minute = 60 * SECOND;
    let mut machine = stored();
    assert_eq!(machine.poll_timeout(), Some(minute));
    machine.handle_timeout(minute - 1);
    assert_eq!(actions(&mut machine), []);
    ask(&mut machine, minute);
    machine.handle_resolved(CONTENT, None, minute);
    ask(&mut machine, 2 * minute);
    machine.handle_resolved(CONTENT, Some((EPOCH, Resolution::Wait)), 2 * minute);
    ask(&mut machine, 3 * minute);
    machine.handle_resolved(CONTENT, Some((EPOCH, Resolution::Unknown)), 3 * minute);
    assert_eq!(machine.census().unknown, 1);
    assert_eq!(machine.handle_insert(order(CONTENT), 0), Progress::Stored(kept()));
    ask(&mut machine, 24 * 60 * minute + 3 * minute);
    machine.handle_resolved(CONTENT, Some((EPOCH, Resolution::Drop)), 0);
    assert_eq!(actions(&mut machine), [Action::Remove(CONTENT)]);
}

#[test]
fn a_head_that_has_lost_the_lease_resolves_nothing() {
    let mut machine = stored();
    ask(&mut machine, 60 * SECOND);
    machine.handle_resolved(CONTENT, Some((LeaseEpoch(6), Resolution::Drop)), 60 * SECOND);
    assert_eq!(actions(&mut machine), []);
    ask(&mut machine, 120 * SECOND);
}

#[test]
fn a_committed_content_is_noted_and_not_asked_about_again() {
    let mut machine = stored();
    ask(&mut machine, 60 * SECOND);
    machine.handle_resolved(CONTENT, Some((EPOCH, Resolution::Keep)), 60 * SECOND);
    assert_eq!(actions(&mut machine), [Action::Settle(CONTENT)]);
    assert_eq!(machine.poll_timeout(), None);
}

#[test]
fn after_a_start_all_that_is_not_settled_is_asked_about_a_few_at_a_time() {
    let record = |is_settled| Record {
        size: 10,
        root: [1; 32],
        checksums: kept().checksums,
        is_settled,
        ticket: Vec::new(),
        claim: Vec::new(),
    };
    let replicas = (0..40).map(|inode| (content(inode), record(inode >= 20))).collect();
    let scan = Scan { replicas, ..Scan::default() };
    let limits = Limits { questions_max: 16, ..Limits::default() };
    let mut machine = Machine::new(limits, &scan, 0);
    machine.handle_timeout(0);
    assert_eq!(actions(&mut machine).len(), 16);
    assert_eq!(machine.poll_timeout(), None, "an answer makes room");
    let keep = Some((LeaseEpoch(0), Resolution::Keep));
    machine.handle_resolved(content(0), keep, 0);
    let next = [Action::Settle(content(0)), Action::Resolve(content(16))];
    assert_eq!(actions(&mut machine), next);
    assert_eq!(machine.handle_insert(order(content(30)), 0), Progress::Stored(kept()));
    assert_eq!(machine.census().stored, 40);
}

#[test]
fn what_is_remembered_is_bounded() {
    let limits = Limits { dropped_max: 10, refused_max: 10, ..Limits::default() };
    let mut machine = Machine::new(limits, &Scan::default(), 0);
    for inode in 0..100 {
        machine.handle_insert(order(content(inode)), 0);
        machine.handle_pulled(content(inode), Err(StoreFailure::Unreachable), 0);
        machine.handle_drop(LeaseEpoch(0), &[content(1000 + inode)]).unwrap();
        machine.handle_removed(content(1000 + inode), Ok(()), 0);
    }
    assert_eq!((machine.contents.len(), machine.dropped.len()), (10, 10));
}

#[test]
fn a_pull_knows_the_newest_stored_version_of_its_file() {
    let version = |version| ContentId { version: Version(version), ..CONTENT };
    let mut machine = machine();
    for number in [1, 3] {
        machine.handle_insert(order(version(number)), 0);
        machine.handle_pulled(version(number), Ok(kept()), 0);
    }
    machine.handle_insert(order(version(2)), 0);
    machine.handle_insert(order(version(5)), 0);
    machine.handle_insert(order(content(6)), 0);
    let older: Vec<_> = actions(&mut machine)
        .into_iter()
        .filter_map(|action| match action {
            Action::Pull(pull) => Some((pull.content, pull.older)),
            _ => None,
        })
        .skip(2)
        .collect();
    let expected =
        [(version(2), Some(version(1))), (version(5), Some(version(3))), (content(6), None)];
    assert_eq!(older, expected, "version 2 is not stored when 5 is pulled");
}

/// An old version becomes the current one again: the disk has all of it.
#[test]
fn a_version_with_the_same_content_is_taken_before_newer_ones() {
    let version = |version| ContentId { version: Version(version), ..CONTENT };
    let with_root = |number, root| Pull { root: [root; 32], ..order(version(number)) };
    let mut machine = machine();
    for (number, root) in [(1, 7), (3, 8), (4, 9)] {
        machine.handle_insert(with_root(number, root), 0);
        machine.handle_pulled(version(number), Ok(Kept { root: [root; 32], ..kept() }), 0);
    }
    machine.handle_insert(with_root(5, 7), 0);
    let last = actions(&mut machine).into_iter().rev().find_map(|action| match action {
        Action::Pull(pull) => Some((pull.content, pull.older)),
        _ => None,
    });
    assert_eq!(last, Some((version(5), Some(version(1)))));
}
