//! Makers of requests. Everything random comes from the generator that is handed in.

use std::ops::Range;

use super::ideal::zipf_shares;
use super::{Catalogue, Part, Published, Request};
use crate::random::Random;

/// Access pattern of an analysis that reads a few of the many columns of a file of measurements:
/// vectors of ranges, each vector a stretch further on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorShape {
    /// Vectors, one after the other.
    pub vectors: usize,
    /// Ranges in each.
    pub ranges: usize,
    /// Octets of a range, from and to.
    pub range_bytes: (u64, u64),
}

impl Default for VectorShape {
    /// Vectors as requested by ROOT's cache: some hundred baskets of some KiB.
    fn default() -> Self {
        VectorShape { vectors: 4, ranges: 200, range_bytes: (500, 16_000) }
    }
}

/// A whole file.
pub fn whole(file: &Published, start_ns: u64) -> Request {
    Request { start_ns, file: file.clone(), part: Part::Whole }
}

/// All files of a catalogue, wanted at one time.
pub fn everything(catalogue: &Catalogue, start_ns: u64) -> Vec<Request> {
    catalogue.files.iter().map(|file| whole(file, start_ns)).collect()
}

/// Sizes of small files, all magnitudes from 100 octets to 256 KiB equally often.
pub fn small_sizes(count: usize, random: &mut Random) -> Vec<u64> {
    let magnitudes = (262_144.0_f64 / 100.0).ln();
    (0..count).map(|_| (100.0 * (unit(random) * magnitudes).exp()) as u64).collect()
}

/// Ranges of one file after the given shape: none overlaps, each vector lies behind the one before.
pub fn vectors(size: u64, shape: VectorShape, random: &mut Random) -> Vec<Vec<Range<u64>>> {
    let places = (shape.vectors * shape.ranges).max(1) as u64;
    let stride = size / places;
    let range = |place: u64, random: &mut Random| {
        let (least, most) = shape.range_bytes;
        let len = (least + random.below(most.saturating_sub(least) + 1)).min(stride);
        let start = place * stride + random.below(stride - len + 1);
        start..start + len
    };
    let vector = |number: usize, random: &mut Random| {
        (0..shape.ranges).map(|one| range((number * shape.ranges + one) as u64, random)).collect()
    };
    (0..shape.vectors).map(|number| vector(number, random)).collect()
}

/// When requests come, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// None comes before.
    pub start_ns: u64,
    /// Mean of the exponentially distributed pauses; 0: all at the start, so that a consumer
    /// reads one after the other.
    pub mean_gap_ns: u64,
    /// Count.
    pub count: usize,
}

/// Whole files, picked independently with probabilities after Zipf's law: the file in place k with
/// one proportional to 1 / k^exponent.
pub fn popular(
    catalogue: &Catalogue,
    exponent: f64,
    arrivals: Arrivals,
    random: &mut Random,
) -> Vec<Request> {
    let shares = zipf_shares(catalogue.files.len(), exponent);
    let mut at_ns = arrivals.start_ns;
    let request = |_| {
        at_ns += (-unit(random).ln() * arrivals.mean_gap_ns as f64) as u64;
        let mut left = unit(random);
        let place = shares.iter().position(|share| {
            left -= share;
            left <= 0.0
        });
        let last = catalogue.files.len().saturating_sub(1);
        whole(&catalogue.files[place.unwrap_or(last)], at_ns)
    };
    (0..arrivals.count).map(request).collect()
}

/// One file, wanted at some time within `within_ns`: what a member of a crowd does.
pub fn sudden(file: &Published, start_ns: u64, within_ns: u64, random: &mut Random) -> Request {
    whole(file, start_ns + random.below(within_ns))
}

/// Above 0, at most 1.
fn unit(random: &mut Random) -> f64 {
    ((random.draw() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_packet::Name;

    fn catalogue() -> Catalogue {
        let prefix: Name = "/site".parse().unwrap();
        Catalogue::new(&prefix, [1000; 30])
    }

    #[test]
    fn the_first_file_is_asked_for_twice_as_often_as_the_second() {
        let arrivals = Arrivals { start_ns: 5, mean_gap_ns: 1000, count: 20_000 };
        let catalogue = catalogue();
        let requests = popular(&catalogue, 1.0, arrivals, &mut Random::new(1));
        let count = |place: usize| {
            let name = &catalogue.files[place].name;
            requests.iter().filter(|request| request.file.name == *name).count() as f64
        };
        let shares = zipf_shares(30, 1.0);
        for place in [0, 1, 9, 29] {
            let expected = shares[place] * 20_000.0;
            assert!((count(place) - expected).abs() < 4.0 * expected.sqrt(), "file {place}");
        }
        let last_ns = requests.last().unwrap().start_ns as f64;
        assert!((last_ns / 20_000_000.0 - 1.0).abs() < 0.05, "{last_ns} ns for 20000 pauses");
    }

    #[test]
    fn ranges_lie_apart_and_within_the_file() {
        let shape = VectorShape { vectors: 3, ranges: 100, range_bytes: (1, 20_000) };
        let vectors = vectors(4 << 20, shape, &mut Random::new(2));
        let ranges: Vec<_> = vectors.concat();
        assert_eq!((vectors.len(), ranges.len()), (3, 300));
        assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
        assert!(ranges.iter().all(|range| range.start < range.end && range.end <= 4 << 20));
    }

    #[test]
    fn small_files_are_small_and_differ() {
        let sizes = small_sizes(1000, &mut Random::new(3));
        assert!(sizes.iter().all(|size| (100..=262_144).contains(size)));
        let tiny = sizes.iter().filter(|size| **size < 5120).count();
        assert!((400..600).contains(&tiny), "{tiny} of 1000 are below the middle magnitude");
    }
}
