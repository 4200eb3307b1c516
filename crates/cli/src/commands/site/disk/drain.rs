//! `byname site disk drain`: has a disk emptied, and shows how far that is.

use crate::commands::site::session::SiteSession;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_catalog::id::DiskId;
use byname_catalog::{Command, DiskChanges, DiskState};
use std::time::{Duration, Instant};

/// Pause between two looks.
const PAUSE: Duration = Duration::from_secs(1);
/// Time between two lines that say how far it is.
const TOLD: Duration = Duration::from_secs(10);

/// How a disk is emptied.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Octets a second, besides the bound on everything.
    pub(super) bytes_per_s: Option<u64>,
    /// Nothing leaves it until it is asked for again.
    pub(super) is_paused: bool,
}

/// Turns a disk to `drain`, and waits until it has nothing any more unless `is_told` is enough.
pub(super) fn run(session: &mut SiteSession, number: u64, pace: Pace, is_told: bool) -> Outcome {
    look(session, number)?;
    let rate = if pace.is_paused { 0 } else { pace.bytes_per_s.unwrap_or(u64::MAX) };
    let (state, drain_bytes_per_s) = (Some(DiskState::Drain), Some(rate));
    let changes = DiskChanges { state, drain_bytes_per_s, ..DiskChanges::default() };
    session.run(Command::SetDisk { disk: DiskId(number), changes })?;
    if is_told || pace.is_paused {
        return Ok(());
    }
    let (begin, first) = (Instant::now(), look(session, number)?.1);
    let mut told = begin;
    loop {
        let (state, left) = look(session, number)?;
        if left == 0 {
            output::err_line(&format!("disk {number} is empty"));
            return Ok(());
        }
        if state.name != "drain" {
            let text = format!("disk {number} is {} again", state.name);
            return Err(Failure::new(Code::Other, text));
        }
        if state.is_paused {
            let text = format!("disk {number} is paused, {} left", output::size(left));
            return Err(
                Failure::new(Code::Other, text).hint(format!("byname site disk drain {number}"))
            );
        }
        if told.elapsed() >= TOLD {
            told = Instant::now();
            output::err_line(&progress(number, (first, left), begin.elapsed()));
        }
        std::thread::sleep(PAUSE);
    }
}

/// What is wanted of a disk.
struct Wanted {
    name: String,
    is_paused: bool,
}

/// What is wanted of the disk, and octets on it.
fn look(session: &mut SiteSession, number: u64) -> Outcome<(Wanted, u64)> {
    let disks = session.query("disks")?;
    let disk = disks.iter().find(|disk| disk["disk"] == number);
    let disk = disk.ok_or_else(|| {
        Failure::new(Code::NotFound, format!("the site has no disk {number}"))
            .hint("byname site disk ls")
    })?;
    let bytes = |key: &str| disk[key].as_u64().unwrap_or_default();
    let left = bytes("used_bytes").saturating_add(bytes("reserved_bytes"));
    let name = disk["state"].as_str().map(output::one_line).unwrap_or_default();
    Ok((Wanted { name, is_paused: disk["drain_bytes_per_s"] == 0 }, left))
}

/// How far it is, and how long it takes if it goes on so.
fn progress(number: u64, (first, left): (u64, u64), passed: Duration) -> String {
    let gone = first.saturating_sub(left);
    let rate = u128::from(gone) * 1000 / passed.as_millis().max(1);
    let rest = u128::from(left).checked_div(rate).and_then(|it| u64::try_from(it).ok());
    let eta = rest.map_or_else(String::new, |s| format!(", {} to go", output::duration(s)));
    let rate = output::size(u64::try_from(rate).unwrap_or(u64::MAX));
    format!("disk {number}: {} left, {rate}/s{eta}", output::size(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_takes_as_long_as_what_is_gone_did() {
        let said = progress(7, (100 << 20, 50 << 20), Duration::from_secs(10));
        assert!(said.starts_with("disk 7: ") && said.contains("10 s to go"), "{said}");
        let said = progress(7, (1000, 1000), Duration::from_secs(10));
        assert!(!said.contains("to go"), "{said}");
    }
}
