//! Later additions to scenarios: links that flap, networks that fall apart, queues that CoDel
//! keeps short, trees of small files, publishers with a real state directory that are killed.
//!
//! It has chance of its own, so that scenarios without it stay what they were: a seed that once
//! found something goes on meaning what it meant ([`Plan::draw_plain`]).

use super::{
    ClientPlan, Plan, STORM_START_NS, TreePlan, Trouble, TroublePlan, UNIT, draw_client, pick,
};
use crate::queue::Discipline;
use crate::random::Random;
use crate::world::{MS, SECOND};

/// Told apart from what else is made from a seed.
const OWN_CHANCE: u64 = 0x5749_4445_525f_5f31;
/// Share of scenarios that are widened.
const SHARE: f64 = 0.5;
/// Probability of each addition to a widened scenario, independently.
const EACH_SHARE: f64 = 0.35;
const TREE_FILES_MAX: u64 = 40;

/// Adds to a scenario, or not.
pub(super) fn widen(plan: &mut Plan) {
    let random = &mut Random::new(plan.seed ^ OWN_CHANCE);
    if !random.chance(SHARE) {
        return;
    }
    if random.chance(EACH_SHARE) {
        for link in &mut plan.links {
            let disciplines = [Discipline::DropTail, Discipline::Codel, Discipline::CodelMarks];
            link.config.line.queue.discipline = pick(&disciplines, random);
        }
    }
    if random.chance(EACH_SHARE) {
        let trouble = Trouble::Flap {
            link: random.below(plan.links.len() as u64) as usize,
            down_ns: 10 * MS + random.below(500 * MS),
            up_ns: 10 * MS + random.below(SECOND),
            is_noticed: random.chance(0.5),
        };
        add(plan, trouble, random);
    }
    if random.chance(EACH_SHARE) {
        // Somebody is on this side, and somebody on the other.
        let hosts = 1 + random.below((1 << plan.hosts.min(16)) - 2);
        let trouble = Trouble::Partition { hosts, is_noticed: random.chance(0.5) };
        add(plan, trouble, random);
    }
    for site in 0..plan.sites.len() {
        if random.chance(EACH_SHARE) {
            plan.sites[site].has_state_directory = true;
            add(plan, Trouble::Kill(site), random);
        }
    }
    if random.chance(EACH_SHARE) {
        plant_tree(plan, random);
    }
}

fn add(plan: &mut Plan, trouble: Trouble, random: &mut Random) {
    let end_ns = plan.storm_end_ns;
    let from_ns = STORM_START_NS + random.below(end_ns - STORM_START_NS);
    let until_ns = from_ns + random.below(end_ns - from_ns + 1);
    plan.troubles.push(TroublePlan { from_ns, until_ns, trouble });
}

/// A directory of small files, and a client that fetches all of it.
fn plant_tree(plan: &mut Plan, random: &mut Random) {
    let site = random.below(plan.sites.len() as u64) as usize;
    let directories = ["tree", "tree/a", "tree/a/b", "tree/c"];
    let count = 1 + random.below(TREE_FILES_MAX);
    let files = (0..count).map(|number| {
        let path = format!("{}/{number:02}", pick(&directories, random));
        let size_max = pick(&[100, UNIT, 3 * UNIT], random);
        (path, random.draw(), random.below(size_max))
    });
    plan.sites[site].tree = Some(TreePlan { files: files.collect() });
    let storm_ns = plan.storm_end_ns - STORM_START_NS;
    let client = draw_client(plan.hosts, plan.sites.len(), storm_ns, random);
    plan.clients.push(ClientPlan { site, is_tree: true, ..client });
}
