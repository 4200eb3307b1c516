//! `byname site disk balance`: has replicas moved until disks are as full as each other. The head
//! does it while this asks for it.

use crate::commands::site::session::SiteSession;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Pause between two questions; the head forgets what is not asked for within 15 s.
const PAUSE: Duration = Duration::from_secs(1);
/// Time between two lines that say how far it is.
const TOLD: Duration = Duration::from_secs(10);
/// Time after which it is given up when nothing more can be moved.
const STUCK: Duration = Duration::from_secs(12);

/// What is wanted.
pub(super) struct Wish<'a> {
    pub(super) space: &'a str,
    pub(super) within_percent: u64,
    pub(super) bytes_per_s: Option<u64>,
}

/// Waits until the disks of a space are within the bounds; only says how far they are from it if
/// `is_dry`.
pub(super) fn run(session: &mut SiteSession, wish: &Wish<'_>, is_dry: bool) -> Outcome {
    let rate = wish.bytes_per_s.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
    let question = format!("balance {} {} {rate}", wish.space, wish.within_percent);
    if is_dry {
        let question = format!("fill {} {}", wish.space, wish.within_percent);
        let now = session.query(&question)?.into_iter().next().unwrap_or_default();
        output::out_line(&levels(&now));
        let left = output::size(number(&now, "left_bytes"));
        output::out_line(&format!("{left} to move"));
        return Ok(());
    }
    let (begin, mut first) = (Instant::now(), None);
    let (mut told, mut stuck) = (begin, None);
    loop {
        let now = session.query(&question)?.into_iter().next().unwrap_or_default();
        let (left, moved) = (number(&now, "left_bytes"), number(&now, "moved_bytes"));
        // Another head begins to count anew.
        let first = *first.get_or_insert(moved);
        let moved = moved.checked_sub(first).unwrap_or(moved);
        if left == 0 {
            let moved = output::size(moved);
            output::err_line(&format!("balanced: {}; {moved} moved", levels(&now)));
            return Ok(());
        }
        let since = match now["stuck"] == true {
            true => *stuck.get_or_insert_with(Instant::now),
            false => Instant::now(),
        };
        stuck = (now["stuck"] == true).then_some(since);
        if since.elapsed() >= STUCK {
            let left = output::size(left);
            let text = format!("{}; {left} cannot be moved", levels(&now));
            return Err(Failure::new(Code::Other, text)
                .hint("replicas of a file stay on different disks of its space"));
        }
        if told.elapsed() >= TOLD {
            told = Instant::now();
            output::err_line(&progress((moved, left), begin.elapsed()));
        }
        std::thread::sleep(PAUSE);
    }
}

fn number(line: &Value, key: &str) -> u64 {
    line[key].as_u64().unwrap_or_default()
}

/// How full the fullest and the emptiest disk are.
fn levels(line: &Value) -> String {
    let disks = line["disks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let percents = || disks.iter().filter_map(|disk| disk[1].as_u64());
    match (percents().min(), percents().max()) {
        (Some(least), Some(most)) => format!("disks are {least} to {most} % full"),
        _ => format!("{} % full", number(line, "percent")),
    }
}

/// How far it is, and how long it takes if it goes on so.
fn progress((moved, left): (u64, u64), passed: Duration) -> String {
    let rate = u128::from(moved) * 1000 / passed.as_millis().max(1);
    let rest = u128::from(left).checked_div(rate).and_then(|it| u64::try_from(it).ok());
    let eta = rest.map_or_else(String::new, |s| format!(", {} to go", output::duration(s)));
    let rate = output::size(u64::try_from(rate).unwrap_or(u64::MAX));
    format!("{} moved, {} left, {rate}/s{eta}", output::size(moved), output::size(left))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn progress_says_what_is_left_and_how_long_that_takes() {
        let said = progress((50 << 20, 50 << 20), Duration::from_secs(10));
        assert!(said.contains("10 s to go"), "{said}");
        assert!(!progress((0, 5), Duration::from_secs(9)).contains("to go"));
        let levels = levels(&json!({ "disks": [[1, 30], [2, 70], [3, 50]] }));
        assert_eq!(levels, "disks are 30 to 70 % full");
    }
}
