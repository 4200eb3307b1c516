//! A holder that dies without a word while a reader reads from it, and another one that has the
//! same: what that costs the reader with the default strategy.

use byname_forwarder::Config;
use byname_packet::Name;
use byname_sim::traffic::{FetchJob, Sink, ZeroSource};
use byname_sim::{
    Discipline, Faults, Incident, LineConfig, LinkConfig, LinkId, MS, ProgramId, QueueConfig,
    SECOND, World,
};

const SEGMENTS: u64 = 20_000;
const START_NS: u64 = SECOND;
const CUT_NS: u64 = 3 * SECOND;
const SEED: u64 = 14;

struct Site {
    world: World,
    /// From the router to the holder that costs less, and to the other.
    links: [LinkId; 2],
    holders: [ProgramId; 2],
    reader: ProgramId,
}

fn link(delay_ns: u64) -> LinkConfig {
    let discipline = Discipline::DropTail;
    let queue = QueueConfig { bits_per_s: 200_000_000, buffer_bytes: 1 << 20, discipline };
    let line = LineConfig { queue, delay_ns, jitter_ns: 0, faults: Faults::default() };
    LinkConfig { line, mtu_bytes: None }
}

/// A reader behind a router that has routes to two holders. Nothing is cached, no strategy chosen.
fn site() -> Site {
    let mut world = World::new(SEED);
    let config = Config { cs_entries_max: 0, cs_bytes_max: 0, ..Config::default() };
    let prefix: Name = "/site/data".parse().expect("a name");
    let [desk, router, near, far] =
        ["desk", "router", "near", "far"].map(|name| world.add_host(name, config.clone()));
    let up = world.add_link(desk, router, link(MS));
    let links = [near, far].map(|holder| world.add_link(router, holder, link(5 * MS)));
    world.route_over(desk, &prefix, up, 1);
    world.route_over(router, &prefix, links[0], 10);
    world.route_over(router, &prefix, links[1], 20);
    let holders = [near, far].map(|host| {
        let holder = world.add_program(host, ZeroSource::default());
        world.route_to(holder, &prefix);
        holder
    });
    let job = FetchJob { start_ns: START_NS, name: prefix, segments: SEGMENTS };
    let reader = world.add_program(desk, Sink::new([job], SEED));
    Site { world, links, holders, reader }
}

impl Site {
    /// Reads all of it; time that took.
    fn read_ns(&mut self) -> u64 {
        let reader = self.reader;
        let is_over = move |world: &World| {
            world.program::<Sink>(reader).is_some_and(|reader| reader.is_idle())
        };
        self.world.run(120 * SECOND, &is_over).expect("no promise is broken");
        let reader = self.world.program::<Sink>(reader).expect("the reader");
        let done = reader.done().first().expect("it ends in time");
        assert!(done.is_whole && done.segments == SEGMENTS, "{done:?}");
        done.end_ns - done.start_ns
    }

    fn answered(&self, holder: usize) -> u64 {
        let holder = self.world.program::<ZeroSource>(self.holders[holder]);
        holder.expect("a holder").answer_count()
    }
}

#[test]
fn a_holder_that_dies_silently_costs_less_than_two_seconds() {
    let undisturbed_ns = site().read_ns();
    assert!(undisturbed_ns > CUT_NS - START_NS + SECOND, "the cut comes amid the transfer");

    let mut site = site();
    site.world.plan(CUT_NS, Incident::Cut { link: site.links[0], is_noticed: false });
    let took_ns = site.read_ns();
    let lost_ms = took_ns.saturating_sub(undisturbed_ns) / MS;
    assert!(lost_ms < 2000, "{lost_ms} ms lost of {} ms", undisturbed_ns / MS);
    assert!(site.answered(0) > 0 && site.answered(1) > 0, "both were used");
}

#[test]
fn a_holder_that_comes_back_is_used_again() {
    let mut site = site();
    site.world.plan(CUT_NS, Incident::Cut { link: site.links[0], is_noticed: false });
    site.world.plan(CUT_NS + SECOND, Incident::Restore { link: site.links[0] });
    site.read_ns();
    // It is missing for about a second and until the next probe; the other one answers then.
    let share = site.answered(1) as f64 / SEGMENTS as f64;
    assert!((0.1..0.8).contains(&share), "the other holder answered {share:.2} of it");
}
