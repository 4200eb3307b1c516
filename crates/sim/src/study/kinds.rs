//! Kinds of work: what it costs to read whole files, many small ones, and pieces of large ones.

use byname_forwarder::Config;

use super::{Effort, Section, on_all_processors};
use crate::random::Random;
use crate::topology::Topology;
use crate::workload::make::{self, VectorShape};
use crate::workload::{Catalogue, Part, Request, Scene, plain_link};
use crate::world::{MS, SECOND, World};

/// For the list of studies.
pub const QUESTION: &str = "What do large files, small files and vectors of ranges cost?";

const START_NS: u64 = 2 * SECOND;
const MBIT_PER_S: u64 = 1000;
/// One way, over both links.
const DELAY_NS: u64 = 10 * MS;

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Files of this size, four at a time.
    Bulk {
        /// Count.
        files: usize,
        /// Octets of each.
        size: u64,
    },
    /// Files of 100 octets to 256 KiB.
    Small {
        /// Count.
        files: usize,
        /// Number at a time.
        parallel: usize,
    },
    /// Vectors of ranges of one file.
    Vectors {
        /// Octets of the file.
        size: u64,
        /// Which ranges.
        shape: VectorShape,
    },
}

/// The cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Octets that were wanted.
    pub wanted_bytes: u64,
    /// Octets that came over the reader's link.
    pub link_bytes: u64,
    /// Interests that the reader sent.
    pub interests: u64,
    /// From the first request to the last octet.
    pub took_ns: u64,
    /// Requests, and those that failed.
    pub requests: (usize, usize),
}

/// Does the work once, over a router, without stores.
///
/// # Panics
/// If a promise of the code under test is broken.
pub fn work(kind: Kind, seed: u64) -> Cost {
    let mut random = Random::new(seed);
    let mut world = World::new(seed);
    let config = Config { cs_entries_max: 0, cs_bytes_max: 0, ..Config::default() };
    let link = plain_link(MBIT_PER_S, DELAY_NS / 2, None);
    let topology = Topology::chain(&mut world, 3, &config, link);
    let sizes = match kind {
        Kind::Bulk { files, size } => vec![size; files],
        Kind::Small { files, .. } => make::small_sizes(files, &mut random),
        Kind::Vectors { size, .. } => vec![size],
    };
    let prefix = "/lab".parse().expect("a name");
    let mut scene = Scene::new(world, topology, Catalogue::new(&prefix, sizes), 0);
    let all = make::everything(&scene.catalogue, START_NS);
    let (requests, parallel, wanted_bytes) = match kind {
        Kind::Bulk { .. } => (all, 4, scene.catalogue.bytes()),
        Kind::Small { parallel, .. } => (all, parallel, scene.catalogue.bytes()),
        Kind::Vectors { size, shape } => {
            let vectors = make::vectors(size, shape, &mut random);
            let wanted = vectors.iter().flatten().map(|range| range.end - range.start).sum();
            let (file, part) = (scene.catalogue.files[0].clone(), Part::Vectors(vectors));
            (vec![Request { start_ns: START_NS, file, part }], 1, wanted)
        }
    };
    let count = requests.len();
    let consumer = scene.add_consumer(2, requests, parallel);
    scene.run(START_NS + 3600 * SECOND).unwrap_or_else(|fault| panic!("{fault:?}"));
    Cost {
        wanted_bytes,
        link_bytes: scene.account().received_bytes(scene.topology.hosts[2]),
        interests: scene.consumer(consumer).sent_count(),
        took_ns: scene.took_ns(),
        requests: (count, scene.unfulfilled_count()),
    }
}

/// See the module.
pub fn run(effort: &Effort) -> Section {
    let mut section = Section::new("Kinds of work");
    let (files, size) = if effort.is_quick { (40, 4 << 20) } else { (400, 64 << 20) };
    let shape = |ranges| VectorShape { ranges, ..VectorShape::default() };
    let kinds = [
        ("large files, four at a time".to_owned(), Kind::Bulk { files: 4, size }),
        ("small files, one at a time".to_owned(), Kind::Small { files, parallel: 1 }),
        ("small files, 16 at a time".to_owned(), Kind::Small { files, parallel: 16 }),
        ("small files, 64 at a time".to_owned(), Kind::Small { files, parallel: 64 }),
        ("4 vectors of 20 ranges".to_owned(), Kind::Vectors { size, shape: shape(20) }),
        ("4 vectors of 200 ranges".to_owned(), Kind::Vectors { size, shape: shape(200) }),
    ];
    let costs = on_all_processors(&kinds, |(_, kind)| work(*kind, effort.seed));
    let rows = kinds.iter().zip(&costs).map(|((label, _), cost)| {
        let line_s = cost.wanted_bytes as f64 * 8.0 / (MBIT_PER_S as f64 * 1e6);
        vec![
            label.clone(),
            format!("{} ({} failed)", cost.requests.0, cost.requests.1),
            format!("{:.2} MB", cost.wanted_bytes as f64 / 1e6),
            format!("{:.2}", cost.link_bytes as f64 / cost.wanted_bytes.max(1) as f64),
            cost.interests.to_string(),
            format!("{:.3} s", cost.took_ns as f64 / 1e9),
            format!("{line_s:.3} s"),
        ]
    });
    section.paragraph(format!(
        "One reader, one router, {MBIT_PER_S} Mbit/s, a round trip of {} ms, no stores. Every file \
         is found by its own description first; a directory's manifest, which spares that, is not \
         used here. Large files have {} MiB, small ones 100 octets to 256 KiB (all magnitudes \
         equally often), vectors are of a file of {} MiB, their ranges of 500 to 16,000 octets. \
         A range costs whole units of 8 KiB.",
        2 * DELAY_NS / MS,
        size >> 20,
        size >> 20
    ));
    let head = [
        "work",
        "requests",
        "wanted",
        "on the link, × wanted",
        "Interests",
        "took",
        "wanted at line rate",
    ];
    section.table(&head, rows.collect());
    section
}
