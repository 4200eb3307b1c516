//! Processes that end in the middle of everything.

use byname_sim::random::Random;
use byname_sim::{Crash, Incident, MS, SECOND};

use super::scene::{FILE_SEED, SIZE, START_NS, Scene, order};

#[test]
fn a_download_is_a_file_in_place() {
    let mut scene = Scene::of_file(1, order());
    scene.assert_finishes();
    scene.assert_has("file", (FILE_SEED, SIZE));
    let tally = scene.tally();
    assert_eq!((tally.begun, tally.failed, tally.fetched, tally.files), (1, 0, SIZE, 1));
}

#[test]
fn what_a_killed_client_had_proved_is_not_fetched_again() {
    for seed in 1..=8 {
        let mut scene = Scene::of_file(seed, order());
        let mut random = Random::new(seed);
        let mut at_ns = START_NS;
        for _ in 0..4 {
            at_ns += 80 * MS + random.below(120 * MS);
            scene.kill(scene.client, at_ns, Crash::Process, 30 * MS);
        }
        scene.assert_finishes();
        scene.assert_has("file", (FILE_SEED, SIZE));
        let tally = scene.tally();
        assert!(tally.crashes > 0, "seed {seed}: {tally:?}");
        // Written data was verified, and verified data is found by its hash.
        assert_eq!(tally.fetched, SIZE, "seed {seed}: {tally:?}");
        assert!(tally.reused > 0, "seed {seed}: {tally:?}");
    }
}

#[test]
fn a_power_cut_costs_what_it_lost_and_nothing_else() {
    for seed in 1..=8 {
        let mut order = order();
        order.options.sync = true;
        let mut scene = Scene::of_file(seed, order);
        let mut random = Random::new(seed);
        let mut at_ns = START_NS;
        for _ in 0..3 {
            at_ns += 60 * MS + random.below(80 * MS);
            scene.kill(scene.client, at_ns, Crash::Power, 30 * MS);
        }
        scene.assert_finishes();
        scene.assert_has("file", (FILE_SEED, SIZE));
        let (tally, lost) = (scene.tally(), scene.client().disk().counters().lost);
        assert!(lost > 0, "seed {seed}: the cuts come in the middle");
        assert!(tally.fetched > SIZE, "seed {seed}: {tally:?}");
        // A page that is lost costs its unit, which has two.
        assert!(tally.fetched <= SIZE + 2 * lost, "seed {seed}: {tally:?}, {lost} lost");
    }
}

#[test]
fn a_client_outlives_its_forwarder() {
    for seed in 1..=4 {
        let mut scene = Scene::of_file(seed, order());
        let host = scene.topology.hosts[2];
        let at_ns = START_NS + 50 * MS + seed * 30 * MS;
        scene.world.plan(at_ns, Incident::Crash { host });
        scene.world.plan(at_ns + SECOND, Incident::Restart { host });
        scene.assert_finishes();
        let tally = scene.tally();
        assert_eq!((tally.failed, tally.fetched), (0, SIZE), "seed {seed}: {tally:?}");
        assert!(scene.client().finished_ns() > Some(at_ns + SECOND), "seed {seed}");
    }
}

#[test]
fn a_forwarder_that_stays_away_is_an_error_and_the_next_attempt_resumes() {
    let mut scene = Scene::of_file(3, order());
    let host = scene.topology.hosts[2];
    scene.world.plan(START_NS + 100 * MS, Incident::Crash { host });
    scene.world.plan(START_NS + 20 * SECOND, Incident::Restart { host });
    scene.assert_finishes();
    let (tally, errors) = (scene.tally(), scene.client().errors());
    assert!(tally.failed > 0 && errors[0].contains("lost"), "{errors:?}");
    assert_eq!(tally.fetched, SIZE, "{tally:?}");
}
