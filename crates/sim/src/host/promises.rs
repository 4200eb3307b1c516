//! Promises that hold at a host after every step: its tables are bounded, and its forwarder says
//! only what somebody asked for.

use std::collections::BTreeSet;

use byname_link::ReassemblyLimits;
use byname_packet::Name;

use super::Host;

/// Prefixes of which a forwarder measures round trips, by its README.
const MEASURED_MAX: usize = 16_384;
/// A link that sends lost frames again holds more of unfinished messages.
const RELIABLE_TIMES_MORE: usize = 8;

impl Host {
    /// Begins to watch who asks for what, before anybody does.
    pub(crate) fn keep_ledger(&mut self) {
        self.ports.ledger = Some(Box::default());
    }

    /// The fault in the forwarder, by its own tables and by what it said.
    pub(crate) fn forwarder_fault(&mut self, now_ns: u64) -> Option<String> {
        let forwarder = self.forwarder.as_ref()?;
        let pending = forwarder.pending_count();
        let limit = self.config.pit_entries_max;
        if pending > limit {
            return Some(format!("tables are bounded: {pending} Interests are pending of {limit}"));
        }
        let ledger = self.ports.ledger.as_mut()?;
        let asked = ledger.pending_max(now_ns);
        if pending > asked {
            let what = format!("{pending} Interests are pending, but only {asked} wait");
            return Some(format!("what is answered or expired is pending no more: {what}"));
        }
        ledger.fault.take()
    }

    /// Prefixes that should have routes. Counting them takes longer than anything else that is
    /// looked at, so it is done only after a change.
    fn prefix_count(&mut self) -> usize {
        // The face of a program that crashed took its routes along.
        let up = self.routes.iter().filter(|(_, port, _)| !self.down.contains(port));
        let count = || up.map(|(prefix, ..)| prefix).collect::<BTreeSet<&Name>>().len();
        *self.prefix_count.get_or_insert_with(count)
    }

    /// Which table of forwarder or links is fuller than allowed, or emptier than it should be.
    pub(crate) fn tables_fault(&mut self) -> Option<String> {
        let prefixes = self.prefix_count();
        let Some(forwarder) = &self.forwarder else { return None };
        let (now, config) = (forwarder.occupancy(), &self.config);
        let tables = [
            ("octets of pending Interests", now.pit_bytes, config.pit_bytes_max),
            ("packets in the content store", now.cs_entries, config.cs_entries_max),
            ("octets in the content store", now.cs_bytes, config.cs_bytes_max),
            ("places for nonces", now.dead_nonces, 2 * config.dead_nonces_max),
            ("prefixes with measurements", now.measured, MEASURED_MAX),
            ("prefixes with routes", now.rib_entries, prefixes),
            ("prefixes with next hops", now.fib_entries, prefixes),
        ];
        let full = tables.into_iter().find(|(_, count, max)| count > max);
        if let Some((what, count, max)) = full {
            return Some(format!("tables are bounded: {count} {what}, allowed are {max}"));
        }
        if now.rib_entries < prefixes || now.fib_entries < prefixes {
            return Some(format!("routes stay: {} of {prefixes}", now.fib_entries));
        }
        let limit = |port: usize| {
            let times = if self.ports.reliable.contains(&port) { RELIABLE_TIMES_MORE } else { 1 };
            ReassemblyLimits::default().bytes_max * times
        };
        let receivers = self.receivers.iter().enumerate();
        receivers.filter_map(|(port, it)| Some((port, it.as_ref()?.held_bytes()))).find_map(
            |(port, held)| {
                let max = limit(port);
                let what = format!("{held} octets of fragments at port {port}");
                (held > max).then(|| format!("tables are bounded: {what}, allowed are {max}"))
            },
        )
    }
}
