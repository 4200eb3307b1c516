//! Disks that fail, fall short, or are full, on either side.

use std::path::Path;

use byname_packet::Name;
use byname_sim::disk::Trouble;
use byname_sim::programs::{Client, DiskFaults, Publisher};
use byname_sim::world::START_UNIX_NS;
use byname_sim::{Crash, MS, SECOND, World};
use byname_transfer::server::RecordKey;

use super::scene::{FILE_SEED, SIZE, START_NS, Scene, order};

const NEXT_SEED: u64 = 78;

#[test]
fn short_reads_and_writes_change_nothing() {
    for seed in 1..=4 {
        let mut scene = Scene::of_file(seed, order());
        let faults = DiskFaults { short_read: 0.5, short_write: 0.5, ..DiskFaults::default() };
        scene.client().disk().set_faults(faults);
        scene.assert_finishes();
        scene.assert_has("file", (FILE_SEED, SIZE));
        let tally = scene.tally();
        assert_eq!((tally.failed, tally.fetched), (0, SIZE), "seed {seed}: {tally:?}");
        assert!(scene.client().disk().counters().faults > 10, "seed {seed}");
    }
}

/// Whatever step fails, the user is told, and the next attempt goes on from what is there.
#[test]
fn a_disk_that_fails_ends_in_an_error_and_never_in_a_wrong_file() {
    for seed in 1..=8 {
        let mut order = order();
        order.options.sync = seed % 2 == 0;
        let mut scene = Scene::of_file(seed, order);
        let faults = DiskFaults {
            short_write: 0.1,
            read_error: 0.002,
            write_error: 0.02,
            other_error: 0.3,
            name_error: 0.7,
            ..DiskFaults::default()
        };
        scene.client().disk().set_faults(faults);
        scene.kill(scene.client, START_NS + 1500 * MS, Crash::Power, 20 * MS);
        scene.assert_finishes();
        scene.assert_has("file", (FILE_SEED, SIZE));
        let (tally, errors) = (scene.tally(), scene.client().errors());
        assert!(tally.failed > 0, "seed {seed}: {tally:?}");
        let is_told = |error: &String| error.contains("os error 5");
        assert!(errors.iter().all(is_told), "seed {seed}: {errors:?}");
        assert_eq!(scene.client().disk().counters().named, 1, "seed {seed}");
    }
}

#[test]
fn a_full_disk_is_told_and_the_download_goes_on_when_there_is_room() {
    let mut scene = Scene::of_file(1, order());
    let free = SIZE / 2;
    let full = DiskFaults { octets_free: Some(free), ..DiskFaults::default() };
    scene.client().disk().set_faults(full);
    let client = scene.client;
    let failed_thrice = move |world: &World| {
        world.program::<Client>(client).is_some_and(|client| client.tally().failed >= 3)
    };
    scene.world.run(60 * SECOND, &failed_thrice).expect("no promise is broken");
    let errors = scene.client().errors();
    assert!(errors[0].contains("os error 28"), "{errors:?}");
    assert!(!scene.client().directory().join("file").exists());
    scene.client().disk().set_faults(DiskFaults::default());
    scene.assert_finishes();
    let tally = scene.tally();
    assert!(tally.fetched < SIZE + 3 * (128 << 10), "what was written counts: {tally:?}");
}

/// The publisher's disk is slow and fails now and then, and the publisher is killed; its records
/// and trees are what it finds again, so the version stays the same.
#[test]
fn a_publisher_in_trouble_costs_time() {
    for seed in 1..=6 {
        let mut scene = Scene::of_file(seed, order());
        let trouble = Trouble {
            read_error: 0.05,
            other_error: 0.05,
            slow: 0.05,
            slow_ns: 40 * MS,
            is_full: false,
        };
        let publisher = scene.publisher;
        let program = scene.world.program_mut::<Publisher>(publisher).expect("a publisher");
        program.disk_mut().trouble = trouble;
        let at_ns = START_NS + 100 * MS + seed * 20 * MS;
        scene.kill(publisher, at_ns, Crash::Process, 200 * MS);
        scene.kill(publisher, at_ns + 500 * MS, Crash::Process, 200 * MS);
        scene.assert_finishes();
        scene.assert_has("file", (FILE_SEED, SIZE));
        let tally = scene.tally();
        assert!(tally.fetched <= SIZE + SIZE / 100, "seed {seed}: one version, {tally:?}");
    }
}

/// Without room for records no version can be announced: nothing is served rather than something
/// that could be called otherwise after a crash.
#[test]
fn a_full_state_directory_is_an_error_and_passes() {
    let mut scene = Scene::of_file(1, order());
    let publisher = scene.publisher;
    let set_full = |scene: &mut Scene, is_full| {
        let program = scene.world.program_mut::<Publisher>(publisher).expect("a publisher");
        program.disk_mut().trouble.is_full = is_full;
    };
    set_full(&mut scene, true);
    scene.world.run(START_NS + 20 * SECOND, &|_| false).expect("no promise is broken");
    let tally = scene.tally();
    assert!(tally.failed > 0 && tally.fetched == 0, "{tally:?} {:?}", scene.client().errors());
    set_full(&mut scene, false);
    scene.assert_finishes();
    scene.assert_has("file", (FILE_SEED, SIZE));
}

/// The file is replaced, or rewritten in its place, while it is read: the old one or the new one
/// arrives, and in the end the new one.
#[test]
fn a_file_that_changes_while_it_is_read_arrives_as_one_version() {
    for seed in 1..=6 {
        let mut scene = Scene::of_file(seed, order());
        let next = (NEXT_SEED, SIZE / 2 + seed);
        let client = scene.client;
        let program = scene.world.program_mut::<Client>(client).expect("a client");
        program.publish(Path::new("file"), next);
        let at_ns = START_NS + 60 * MS + seed * 40 * MS;
        scene.world.run(at_ns, &|_| false).expect("no promise is broken");
        let publisher = scene.publisher;
        let program = scene.world.program_mut::<Publisher>(publisher).expect("a publisher");
        let unix_ns = START_UNIX_NS + at_ns;
        match seed % 2 {
            0 => drop(program.disk_mut().put("file", next.0, next.1, unix_ns)),
            _ => program.disk_mut().rewrite("file", next.0, next.1, unix_ns),
        }
        scene.kill(client, at_ns + 30 * MS, Crash::Process, 10 * MS);
        scene.assert_finishes();
        let again_ns = scene.world.now_ns() + SECOND;
        let program = scene.world.program_mut::<Client>(client).expect("a client");
        program.order_again(again_ns);
        scene.world.wake(client);
        scene.assert_finishes();
        scene.assert_has("file", next);
    }
}

/// The same state directory as in production, found as a killed server leaves it: nothing announced
/// is forgotten, so the version stays the same and nothing is fetched twice.
#[test]
fn a_killed_publisher_finds_its_real_state_directory() {
    for seed in 1..=4 {
        let mut scene = Scene::of_file(seed, order());
        let publisher = scene.publisher;
        let program = scene.world.program_mut::<Publisher>(publisher).expect("a publisher");
        program.disk_mut().use_state_directory().expect("a directory");
        for number in 0..3 {
            let at_ns = START_NS + (60 + 20 * seed + 300 * number) * MS;
            scene.kill(publisher, at_ns, Crash::Process, 150 * MS);
        }
        scene.assert_finishes();
        scene.assert_has("file", (FILE_SEED, SIZE));
        let tally = scene.tally();
        assert!(tally.fetched <= SIZE + SIZE / 100, "seed {seed}: one version, {tally:?}");
        // Killed once more: record, root and tree are there before anybody asks.
        let program = scene.world.program_mut::<Publisher>(publisher).expect("a publisher");
        let disk = program.disk_mut();
        disk.crash().expect("a directory");
        let identity = disk.find(b"file").expect("a file").stat().state;
        let name: Name = "/site/file".parse().expect("a name");
        let key = RecordKey { name: name.view().value().to_vec(), listing: false };
        let found = disk.recall(&key, Some(&identity));
        assert!(found.record.is_some() && found.root.is_some(), "seed {seed}: {found:?}");
        assert!(disk.levels(&identity).is_some(), "seed {seed}");
    }
}
