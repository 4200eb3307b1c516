//! Networks between places on Earth.
//!
//! A link's delay is that of light in glass along the great circle: the distance by the haversine
//! formula (R. W. Sinnott, "Virtues of the Haversine", Sky & Telescope 68(2), 1984) on a sphere of
//! 6371 km, at two thirds of the speed of light in vacuum (fibre has a group index of 1.47 to 1.5;
//! ITU-T G.652 fibres). Real cables make detours, so real delays are longer, never shorter.

use crate::topology::plan::{Plan, link};

const EARTH_RADIUS_KM: f64 = 6371.0;
/// Two thirds of 299 792.458 km/s.
const GLASS_KM_PER_S: f64 = 199_861.639;
const GBIT: u64 = 1_000_000_000;

/// A place: name, latitude, longitude in degrees.
type Site = (&'static str, f64, f64);

/// From one place to another, in nanoseconds, in steps of 10 µs.
pub fn delay_ns(one: (f64, f64), other: (f64, f64)) -> u64 {
    let haversine = |angle: f64| (angle.to_radians() / 2.0).sin().powi(2);
    let across = haversine(other.0 - one.0)
        + one.0.to_radians().cos() * other.0.to_radians().cos() * haversine(other.1 - one.1);
    let km = 2.0 * EARTH_RADIUS_KM * across.sqrt().min(1.0).asin();
    // Coordinates of cities are not more exact; and no two machines are in the same place.
    ((km / GLASS_KM_PER_S * 1e5).round() as u64).max(1) * 10_000
}

/// The NDN-DPDK file-server benchmark (Shi, Pesavento and Benmohamed): consumer and file server
/// A and B, forwarder F in the middle, 100 Gbit/s. Which sites stand for it: `local` is one site,
/// `near` Dallas and Austin, `far` College Park, Kansas City and San Diego.
pub fn a_f_b(distance: &str) -> Option<Plan> {
    let sites: [Site; 3] = match distance {
        "local" => [("A", 25.76, -80.37), ("F", 25.76, -80.37), ("B", 25.76, -80.37)],
        "near" => [("A", 32.80, -96.80), ("F", 32.80, -96.80), ("B", 30.39, -97.73)],
        "far" => [("A", 38.99, -76.94), ("F", 39.10, -94.58), ("B", 32.88, -117.24)],
        _ => return None,
    };
    let mut plan = Plan::default();
    for (name, ..) in sites {
        plan.add_host(name, None);
    }
    for (one, other) in [(0, 1), (1, 2)] {
        let place = |at: usize| (sites[at].1, sites[at].2);
        plan.join(one, other, link(100 * GBIT, delay_ns(place(one), place(other))));
    }
    Some(plan)
}

const TIER_0: Site = ("cern", 46.23, 6.05);

/// Tier 1 centres of the LHC computing grid, at their cities.
const TIER_1: [Site; 13] = [
    ("t1-ral", 51.57, -1.31),
    ("t1-in2p3", 45.78, 4.87),
    ("t1-kit", 49.10, 8.43),
    ("t1-cnaf", 44.50, 11.34),
    ("t1-pic", 41.50, 2.11),
    ("t1-nlt1", 52.36, 4.95),
    ("t1-ndgf", 55.67, 12.57),
    ("t1-jinr", 56.75, 37.19),
    ("t1-bnl", 40.87, -72.87),
    ("t1-fnal", 41.84, -88.26),
    ("t1-triumf", 49.25, -123.23),
    ("t1-kisti", 36.37, 127.36),
    ("t1-asgc", 25.04, 121.61),
];

/// Links between Tier 1 centres besides those to CERN: paths around.
const TIER_1_LINKS: [(usize, usize); 10] =
    [(0, 5), (1, 2), (2, 3), (1, 4), (5, 6), (6, 7), (0, 8), (8, 9), (9, 10), (11, 12)];

/// Tier 2 centres, a selection, and the place of the Tier 1 next to them.
const TIER_2: [(Site, usize); 20] = [
    (("t2-glasgow", 55.87, -4.29), 0),
    (("t2-imperial", 51.50, -0.18), 0),
    (("t2-desy", 53.58, 9.88), 2),
    (("t2-prague", 50.12, 14.47), 2),
    (("t2-rome", 41.90, 12.51), 3),
    (("t2-ljubljana", 46.04, 14.49), 6),
    (("t2-madrid", 40.45, -3.73), 4),
    (("t2-lisbon", 38.76, -9.14), 4),
    (("t2-mit", 42.36, -71.09), 8),
    (("t2-florida", 29.65, -82.35), 9),
    (("t2-nebraska", 40.82, -96.70), 9),
    (("t2-wisconsin", 43.07, -89.40), 9),
    (("t2-purdue", 40.42, -86.92), 9),
    (("t2-caltech", 34.14, -118.13), 9),
    (("t2-ucsd", 32.88, -117.24), 9),
    (("t2-saopaulo", -23.56, -46.73), 9),
    (("t2-tokyo", 35.71, 139.76), 11),
    (("t2-beijing", 39.91, 116.25), 12),
    (("t2-mumbai", 18.91, 72.81), 1),
    (("t2-melbourne", -37.80, 144.96), 12),
];

/// Sites like those that store the data of the LHC: CERN in the middle, each Tier 1 at 100 Gbit/s
/// from it and some from each other, Tier 2 at 40 Gbit/s below a Tier 1. Places are real, the
/// choice of links and rates is ours.
pub fn lhc() -> Plan {
    let mut plan = Plan::default();
    let place = |site: Site| (site.1, site.2);
    let cern = plan.add_host(TIER_0.0, None);
    let first: Vec<usize> = TIER_1.iter().map(|site| plan.add_host(site.0, None)).collect();
    for (site, host) in TIER_1.iter().zip(&first) {
        plan.join(cern, *host, link(100 * GBIT, delay_ns(place(TIER_0), place(*site))));
    }
    for (one, other) in TIER_1_LINKS {
        let delay_ns = delay_ns(place(TIER_1[one]), place(TIER_1[other]));
        plan.join(first[one], first[other], link(100 * GBIT, delay_ns));
    }
    for (site, near) in TIER_2 {
        let host = plan.add_host(site.0, None);
        plan.join(first[near], host, link(40 * GBIT, delay_ns(place(TIER_1[near]), place(site))));
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_those_of_light_in_glass() {
        // Geneva to Chicago: 7070 km by any atlas, 35 ms; a quarter of the equator is 10 008 km.
        let chicago = delay_ns((46.23, 6.05), (41.84, -88.26));
        assert!((35_000_000..36_000_000).contains(&chicago), "{chicago}");
        assert_eq!(delay_ns((0.0, 0.0), (0.0, 90.0)), 50_070_000);
        assert_eq!(delay_ns((10.0, 10.0), (10.0, 10.0)), 10_000);
    }

    #[test]
    fn everything_is_joined() {
        let plan = lhc();
        assert_eq!((plan.hosts.len(), plan.links.len()), (34, 43));
        assert!(a_f_b("far").is_some() && a_f_b("elsewhere").is_none());
    }
}
