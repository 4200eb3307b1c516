//! A plan as the text that gives the same plan.

use std::fmt;

use super::settings::DISCIPLINES;
use crate::topology::plan::{Plan, PlannedLink};

impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for host in &self.hosts {
            write!(out, "host {}", host.name)?;
            if let Some(bytes) = host.store_bytes {
                write!(out, " store={}", Bytes(bytes))?;
            }
            if let Some(strategy) = &host.strategy {
                write!(out, " strategy={strategy}")?;
            }
            writeln!(out)?;
        }
        for link in &self.links {
            let (one, other) = (&self.hosts[link.ends.0].name, &self.hosts[link.ends.1].name);
            writeln!(out, "link {one} {other}{}", Settings(link))?;
        }
        for file in &self.files {
            let host = &self.hosts[file.host].name;
            writeln!(out, "publish {} at {host} size={}", file.name, Bytes(file.size))?;
        }
        for read in &self.reads {
            let host = &self.hosts[read.host].name;
            writeln!(out, "read {} at {host} start={}", read.name, Time(read.start_ns))?;
        }
        Ok(())
    }
}

/// A number in the largest unit in which it is whole.
fn whole(out: &mut fmt::Formatter<'_>, number: u64, units: &[(&str, u64)]) -> fmt::Result {
    let fits = units.iter().rev().find(|(_, unit)| number > 0 && number.is_multiple_of(*unit));
    let (name, unit) = fits.or(units.first()).copied().unwrap_or(("", 1));
    write!(out, "{}{name}", number / unit)
}

struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        whole(out, self.0, &[("", 1), ("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30)])
    }
}

struct Rate(u64);

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        whole(out, self.0, &[("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)])
    }
}

struct Time(u64);

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        whole(out, self.0, &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)])
    }
}

/// The settings of a link: rate, delay and queue always, the rest where there is something.
struct Settings<'a>(&'a PlannedLink);

impl fmt::Display for Settings<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.0.config.line;
        let (queue, faults) = (line.queue, line.faults);
        write!(out, " rate={} delay={}", Rate(queue.bits_per_s), Time(line.delay_ns))?;
        write!(out, " queue={}", Bytes(queue.buffer_bytes))?;
        if let Some((name, _)) =
            DISCIPLINES[1..].iter().find(|(_, known)| *known == queue.discipline)
        {
            write!(out, " discipline={name}")?;
        }
        if let Some(mtu) = self.0.config.mtu_bytes {
            write!(out, " mtu={mtu}")?;
        }
        for (key, ns) in [("jitter", line.jitter_ns), ("late", faults.late_ns)] {
            if ns > 0 {
                write!(out, " {key}={}", Time(ns))?;
            }
        }
        if faults.burst > 0 {
            write!(out, " burst={}", faults.burst)?;
        }
        let shares = [
            ("loss", faults.loss),
            ("bad-begin", faults.bursts.begin),
            ("bad-end", faults.bursts.end),
            ("duplication", faults.duplication),
            ("disorder", faults.disorder),
            ("corruption", faults.corruption),
        ];
        for (key, share) in shares.into_iter().filter(|(_, share)| *share > 0.0) {
            write!(out, " {key}={share}")?;
        }
        Ok(())
    }
}
