//! Theory of caches, to hold measurements against.
//!
//! Requests are taken for independent. A store that drops what was asked for longest ago is
//! described by the approximation of Che, Tung and Wang ("Hierarchical Web caching systems:
//! modeling, design and experimental results", IEEE JSAC 20(7), 2002; why it is so good: Fricker,
//! Robert and Roberts, ITC 24, 2012): an object is in a store of C objects if it was asked for
//! within the last t, where t is such that C objects are expected in the store. No store of that
//! size that does not know the future does better than one that always has the most popular.

/// Probabilities after Zipf's law, the most popular first.
pub fn zipf_shares(count: usize, exponent: f64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=count).map(|place| (place as f64).powf(-exponent)).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// Share of requests that a store with the `files` most popular answers; the rates in any order.
pub fn best_hit_share(rates: &[f64], files: f64) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_by(|one, other| other.total_cmp(one));
    let sum: f64 = sorted.iter().sum();
    let whole = files.max(0.0) as usize;
    let part = sorted.get(whole).map_or(0.0, |rate| rate * files.fract());
    (sorted.iter().take(whole).sum::<f64>() + part) / sum.max(f64::MIN_POSITIVE)
}

/// Rates of what a store of `files` objects does not answer and passes on, by Che's
/// approximation, if objects are asked for at these rates.
pub fn lru_miss_rates(rates: &[f64], files: f64) -> Vec<f64> {
    let wanted = rates.iter().filter(|rate| **rate > 0.0).count() as f64;
    if files <= 0.0 {
        return rates.to_vec();
    }
    if files >= wanted {
        // Everything that is ever asked for stays.
        return vec![0.0; rates.len()];
    }
    let held = |time: f64| rates.iter().map(|rate| 1.0 - (-rate * time).exp()).sum::<f64>();
    let (mut low, mut high) = (0.0, 1.0);
    while held(high) < files {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if held(middle) < files { low = middle } else { high = middle }
    }
    rates.iter().map(|rate| rate * (-rate * high).exp()).collect()
}

/// Share of requests that a store of `files` objects answers, by Che's approximation.
pub fn lru_hit_share(rates: &[f64], files: f64) -> f64 {
    let sum: f64 = rates.iter().sum();
    1.0 - lru_miss_rates(rates, files).iter().sum::<f64>() / sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hits of an LRU store, counted.
    fn counted(shares: &[f64], files: usize, requests: usize) -> f64 {
        let mut random = crate::random::Random::new(4);
        let (mut held, mut hits) = (Vec::new(), 0);
        for _ in 0..requests {
            let mut left = (random.draw() >> 11) as f64 / (1u64 << 53) as f64;
            let place = shares.iter().position(|share| {
                left -= share;
                left < 0.0
            });
            let place = place.unwrap_or(0);
            if let Some(at) = held.iter().position(|one| *one == place) {
                held.remove(at);
                hits += 1;
            }
            held.push(place);
            if held.len() > files {
                held.remove(0);
            }
        }
        hits as f64 / requests as f64
    }

    #[test]
    fn the_approximation_agrees_with_counting() {
        let shares = zipf_shares(30, 1.0);
        for files in [1, 3, 5, 10, 20, 29] {
            let (theory, counted) =
                (lru_hit_share(&shares, files as f64), counted(&shares, files, 100_000));
            assert!((theory - counted).abs() < 0.02, "{files}: {theory} and {counted}");
            assert!(best_hit_share(&shares, files as f64) > counted, "{files}");
        }
    }

    #[test]
    fn nothing_and_everything_are_exact() {
        let shares = zipf_shares(30, 1.0);
        assert_eq!(lru_hit_share(&shares, 0.0), 0.0);
        assert_eq!(lru_hit_share(&shares, 30.0), 1.0);
        assert_eq!(best_hit_share(&shares, 0.0), 0.0);
        assert!((best_hit_share(&shares, 30.0) - 1.0).abs() < 1e-12);
        assert!((best_hit_share(&shares, 0.5) - shares[0] / 2.0).abs() < 1e-12);
    }
}
