//! Files that grow: flushed again and again, read meanwhile, and taken over when their writer dies.

use byname_catalog::{Caller, Place, Reader};
use byname_sim::site::Site;
use byname_sim::site::history::{Kind, Operation, Outcome};
use byname_sim::site::writer::Step;
use byname_sim::{Crash, Incident, MS, SECOND};

use super::sites::{outcomes, rest, shape};

/// States of a file that grows, one after the other.
fn growing(states: std::ops::Range<u64>) -> Vec<Step> {
    states.map(|state| Step::grown(0, (0, state), 300 * MS)).collect()
}

/// Octets of the file, if there is one.
fn size_of_f0(site: &Site) -> Option<u64> {
    let place = Place::path("f0").expect("a short name");
    let reader = Reader::new(&site.engine, &Caller::Head).expect("a snapshot");
    reader.entry(&place).ok().map(|entry| entry.inode.size())
}

#[test]
fn a_growing_file_is_read_while_it_is_written_and_each_reader_sees_a_whole_state() {
    let mut shape = shape(vec![growing(0..24)]);
    shape.readers = vec![(0..30).map(|_| (0, 250 * MS)).collect(); 2];
    for seed in 0..3 {
        let site = rest(Site::new(seed, &shape), &format!("seed {seed}"));
        assert_eq!(outcomes(&site), vec![Some(Outcome::Done); 24]);
        let reads = site.record.borrow().reads;
        assert!(reads[0] > 40, "{reads:?}");
        assert_eq!(size_of_f0(&site), Some(90_000 + 23 * 17_001));
    }
}

#[test]
fn what_a_growing_file_s_writer_was_told_is_there_whenever_it_dies() {
    for moment in 0..12 {
        let mut site = Site::new(moment, &shape(vec![growing(0..9)]));
        let program = site.writers[0].program;
        let at_ns = site.world.now_ns() + SECOND + moment * 170 * MS;
        site.world.plan(at_ns, Incident::CrashProgram { program, how: Crash::Process });
        site.world.run(at_ns + SECOND, &|_| false).unwrap();
        let told = outcomes(&site).iter().filter(|it| **it == Some(Outcome::Done)).count() as u64;
        let site = rest(site, &format!("moment {moment}"));
        let size = size_of_f0(&site).unwrap_or_default();
        // The one that it was not told of may have come through.
        let may_be = [told, told + 1].map(|count| match count {
            0 => 0,
            count => 90_000 + (count - 1) * 17_001,
        });
        assert!(may_be.contains(&size), "moment {moment}: {size} of {may_be:?}");
    }
}

/// State of the file, by its content: `None` if that is none that somebody wrote as a whole.
fn state_of_f0(site: &Site) -> Option<u64> {
    let place = Place::path("f0").expect("a short name");
    let reader = Reader::new(&site.engine, &Caller::Head).expect("a snapshot");
    let entry = reader.entry(&place).ok()?;
    let content = *site.record.borrow().contents.get(&entry.inode.content()?.root)?;
    let state = content & 0xff;
    (entry.inode.size() == 90_000 + state * 17_001).then_some(state)
}

/// Writes that were done, in the order of their ends.
fn writes_of_f0(site: &Site) -> Vec<Operation> {
    let record = site.record.borrow();
    let mut done: Vec<Operation> = record.operations.iter().flatten().copied().collect();
    done.retain(|it| it.outcome == Outcome::Done && matches!(it.kind, Kind::Put { .. }));
    done.sort_by_key(|it| it.until_ns);
    done
}

/// The states that were written.
fn states(writes: &[Operation]) -> Vec<u64> {
    let state = |write: &Operation| match write.kind {
        Kind::Put { content, .. } => Some(content & 0xff),
        _ => None,
    };
    writes.iter().filter_map(state).collect()
}

/// Leases end with their session, which somebody who is cut off cannot keep.
#[test]
fn who_takes_over_a_growing_file_goes_on_where_its_writer_was() {
    for moment in 0..4 {
        let mut site = Site::new(moment, &shape(vec![leased(growing(0..6)), later(growing(6..9))]));
        let link = site.writers[0].link;
        let at_ns = site.world.now_ns() + SECOND + moment * 300 * MS;
        let restored_ns = at_ns + 60 * SECOND;
        site.world.plan(at_ns, Incident::Cut { link, is_noticed: false });
        site.world.plan(restored_ns, Incident::Restore { link });
        site.world.run(restored_ns - SECOND, &|_| false).unwrap();
        let before = states(&writes_of_f0(&site));
        let of_first = before.len() - 3;
        let expected: Vec<u64> = (0..of_first as u64).chain(6..9).collect();
        assert!(of_first > 0 && before == expected, "moment {moment}: {before:?}");
        assert_eq!(state_of_f0(&site), Some(8), "moment {moment}");
        site.world.run(at_ns + 90 * SECOND, &|_| false).unwrap();
        let site = rest(site, &format!("moment {moment}"));
        // What he was told of is there for those after him: the history says so. What he had begun
        // before he was cut off does not come true when he is back.
        let writes = writes_of_f0(&site);
        assert_eq!(states(&writes[..before.len()]), expected, "moment {moment}");
        let came_back = &writes[before.len()..];
        assert!(came_back.iter().all(|it| it.from_ns >= at_ns + 40 * SECOND), "{came_back:?}");
        assert_eq!(state_of_f0(&site), states(&writes).last().copied(), "moment {moment}");
    }
}

fn leased(steps: Vec<Step>) -> Vec<Step> {
    steps.into_iter().map(|step| Step { has_lease: true, ..step }).collect()
}

/// Somebody else, who begins when the first has been cut off for a while.
fn later(mut steps: Vec<Step>) -> Vec<Step> {
    steps[0].pause_ns = 40 * SECOND;
    leased(steps)
}
