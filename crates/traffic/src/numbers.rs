//! Which number comes next: one after the other, evenly at random, or few often and many seldom.

use crate::error::TrafficError;

/// Distributions of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// One after the other, from the first again after the last.
    Sequential,
    /// Each as often as any other.
    Uniform,
    /// The k-th most frequent one is asked for in proportion to `1 / k^s`; 0 is the most frequent.
    Zipf(f64),
}

/// A range of numbers and how to draw from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbers {
    /// The first number.
    pub first: u64,
    /// Their count; `None` is without end and only for [`Distribution::Sequential`].
    pub range: Option<u64>,
    /// Their distribution.
    pub distribution: Distribution,
}

impl Numbers {
    /// Every number once, from `first` on.
    pub fn sequential(first: u64) -> Self {
        Self { first, range: None, distribution: Distribution::Sequential }
    }
}

/// Draws numbers.
#[derive(Debug, Clone)]
pub(crate) struct Sequence {
    first: u64,
    range: u64,
    drawn: u64,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Sequential,
    Uniform,
    Zipf(Zipf),
}

impl Sequence {
    pub(crate) fn new(numbers: &Numbers) -> Result<Self, TrafficError> {
        let Numbers { first, range, distribution } = *numbers;
        if range == Some(0) {
            return Err(TrafficError::EmptyRange);
        }
        let kind = match distribution {
            Distribution::Sequential => Kind::Sequential,
            _ if range.is_none() => return Err(TrafficError::EndlessRange),
            Distribution::Uniform => Kind::Uniform,
            Distribution::Zipf(s) if s.is_finite() && s > 0.0 => {
                Kind::Zipf(Zipf::new(range.unwrap_or(1), s))
            }
            Distribution::Zipf(s) => return Err(TrafficError::BadExponent(s)),
        };
        Ok(Self { first, range: range.unwrap_or(u64::MAX), drawn: 0, kind })
    }

    pub(crate) fn draw(&mut self, random: &mut Random) -> u64 {
        let offset = match &self.kind {
            Kind::Sequential => {
                let offset = self.drawn;
                self.drawn = if offset + 1 == self.range { 0 } else { offset + 1 };
                offset
            }
            Kind::Uniform => random.below(self.range),
            Kind::Zipf(zipf) => zipf.draw(random),
        };
        self.first.wrapping_add(offset)
    }

    /// The number after `number`, within the range.
    pub(crate) fn after(&self, number: u64) -> u64 {
        let offset = number.wrapping_sub(self.first).wrapping_add(1);
        self.first.wrapping_add(if offset >= self.range { 0 } else { offset })
    }

    /// True if the same number may be drawn again before all others were.
    pub(crate) fn repeats(&self) -> bool {
        !matches!(self.kind, Kind::Sequential)
    }
}

/// Zipf's law by rejection-inversion (Hörmann and Derflinger, 1996): constant time and memory.
#[derive(Debug, Clone)]
struct Zipf {
    count: f64,
    exponent: f64,
    /// Integral of the hat up to one half behind the first and the last rank.
    area_first: f64,
    area_last: f64,
    /// Ranks this close to where they were drawn need no second look.
    squeeze: f64,
}

impl Zipf {
    fn new(count: u64, exponent: f64) -> Self {
        let mut zipf =
            Self { count: count as f64, exponent, area_first: 0.0, area_last: 0.0, squeeze: 0.0 };
        zipf.area_first = zipf.area(1.5) - 1.0;
        zipf.area_last = zipf.area(zipf.count + 0.5);
        zipf.squeeze = 2.0 - zipf.area_inverse(zipf.area(2.5) - zipf.height(2.0));
        zipf
    }

    fn height(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    /// Integral of `height`.
    fn area(&self, x: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest.abs() < 1e-9 { x.ln() } else { (x.powf(rest) - 1.0) / rest }
    }

    fn area_inverse(&self, area: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest.abs() < 1e-9 { area.exp() } else { (1.0 + area * rest).powf(1.0 / rest) }
    }

    fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.area_last + random.fraction() * (self.area_first - self.area_last);
            let x = self.area_inverse(area);
            let rank = x.round().clamp(1.0, self.count);
            if rank - x <= self.squeeze || area >= self.area(rank + 0.5) - self.height(rank) {
                return rank as u64 - 1;
            }
        }
    }
}

/// SplitMix64: enough for traffic, and a few instructions.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// 0 ≤ number < `bound`. The bias is below `bound` / 2^64.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// 0 ≤ fraction < 1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A bijection that leaves no pattern of its argument.
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(numbers: Numbers, count: usize) -> Vec<u64> {
        let mut sequence = Sequence::new(&numbers).unwrap();
        let mut random = Random::new(1);
        (0..count).map(|_| sequence.draw(&mut random)).collect()
    }

    #[test]
    fn sequential_numbers_begin_again_after_the_last() {
        let numbers = Numbers { first: 7, range: Some(3), distribution: Distribution::Sequential };
        assert_eq!(drawn(numbers, 7), [7, 8, 9, 7, 8, 9, 7]);
        assert_eq!(drawn(Numbers::sequential(u64::MAX), 2), [u64::MAX, 0]);
        let sequence = Sequence::new(&numbers).unwrap();
        assert_eq!([sequence.after(8), sequence.after(9)], [9, 7]);
    }

    #[test]
    fn random_numbers_stay_in_their_range_and_reach_all_of_it() {
        for distribution in [Distribution::Uniform, Distribution::Zipf(0.8)] {
            let numbers = Numbers { first: 100, range: Some(10), distribution };
            let mut seen = [0u32; 10];
            for number in drawn(numbers, 10_000) {
                seen[usize::try_from(number - 100).unwrap()] += 1;
            }
            assert!(seen.iter().all(|count| *count > 0), "{distribution:?}: {seen:?}");
        }
    }

    /// Against the law itself: the frequency of rank k is k^-s over the sum of all.
    #[test]
    fn zipf_numbers_follow_the_law() {
        const DRAWS: usize = 200_000;
        for exponent in [0.7, 1.0, 1.4] {
            let distribution = Distribution::Zipf(exponent);
            let numbers = Numbers { first: 0, range: Some(50), distribution };
            let mut seen = [0f64; 50];
            for number in drawn(numbers, DRAWS) {
                seen[usize::try_from(number).unwrap()] += 1.0;
            }
            let sum: f64 = (1..=50).map(|k| f64::from(k).powf(-exponent)).sum();
            for (index, count) in seen.iter().enumerate() {
                let expected = ((index + 1) as f64).powf(-exponent) / sum * DRAWS as f64;
                let error = (count - expected).abs() / expected.sqrt();
                assert!(error < 5.0, "s={exponent} rank {index}: {count} for {expected}");
            }
        }
    }

    #[test]
    fn ranges_that_make_no_sense_are_refused() {
        let refused = |range, distribution| {
            Sequence::new(&Numbers { first: 0, range, distribution }).is_err()
        };
        assert!(refused(Some(0), Distribution::Sequential));
        assert!(refused(None, Distribution::Uniform));
        assert!(refused(Some(10), Distribution::Zipf(-1.0)));
        assert!(refused(Some(10), Distribution::Zipf(f64::NAN)));
    }
}
