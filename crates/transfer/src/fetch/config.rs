//! Limits of a fetch: before the first answer, and once a transfer has begun.

use super::Class;

const MS: u64 = 1_000_000;

/// Time for which a path may answer "no route" before that is believed. A forwarder says so for a
/// moment whenever a server restarts; users want to know within a second.
pub const NO_ROUTE_PATIENCE_NS: u64 = 700 * MS;
/// Longest outage that a transfer bears once it has begun, in silences: 60 s by default.
pub const OUTAGE_SILENCES: u64 = 4;

/// Limits of one fetch.
#[derive(Clone, Copy, Debug)]
pub struct FetchConfig {
    /// Attempts after the first before a segment may be given up; more while others are answered.
    pub retries: u32,
    /// Silence after which the fetch fails; also the age a segment must have before it is given up.
    pub silence_ns: u64,
    /// Time for which "no route" may be answered before the fetch fails.
    pub no_route_ns: u64,
    /// Times one segment may arrive with wrong content before the fetch fails. All together may be
    /// one in nine of those that came, and 64 more.
    pub refusals_max: u32,
    /// Who waits for it.
    pub class: Class,
}

impl Default for FetchConfig {
    fn default() -> Self {
        FetchConfig {
            retries: 5,
            silence_ns: 15_000 * MS,
            no_route_ns: NO_ROUTE_PATIENCE_NS,
            refusals_max: 5,
            class: Class::Bulk,
        }
    }
}

impl FetchConfig {
    /// For what belongs to a transfer that has begun: it bears an outage, whether that shows as
    /// silence or as "no route".
    pub fn begun(self) -> Self {
        let outage_ns = self.silence_ns.saturating_mul(OUTAGE_SILENCES);
        FetchConfig { silence_ns: outage_ns, no_route_ns: outage_ns, ..self }
    }
}
