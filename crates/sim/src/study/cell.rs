//! Single cells of studies, by words of the command line: the other side of
//! [`apart`](super::apart), and for who wants a cell again, or its profile.

use super::cluster::Outcome;
use super::{Effort, cluster, goodput, scale};

/// Plays a cell and prints what it found. False if there is no such cell.
pub fn answer(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = match words[..] {
        ["names", kept, count, lookups] => fill(kept, count, lookups),
        ["nodes", hosts, seconds, seed] => nodes(hosts, seconds, seed),
        ["goodput", ref words @ ..] => goodput::cell(words).map(|share| share.to_string()),
        ["cluster", seed] => seed.parse().ok().and_then(|seed| {
            let effort = Effort { is_quick: false, seed };
            cluster::play(&cluster::room(&effort)).ok().map(|it| it.line())
        }),
        _ => None,
    };
    said.iter().for_each(|line| println!("{line}"));
    said.is_some()
}

fn fill(kept: &str, count: &str, lookups: &str) -> Option<String> {
    let kept = scale::Kept::from_word(kept)?;
    let (count, lookups): (u64, u64) = (count.parse().ok()?, lookups.parse().ok()?);
    Some(scale::names(kept, count.max(1), lookups.max(1)).line())
}

fn nodes(hosts: &str, seconds: &str, seed: &str) -> Option<String> {
    let (hosts, seconds) = (hosts.parse().ok()?, seconds.parse().ok()?);
    Some(scale::nodes(hosts, seconds, seed.parse().ok()?).line())
}

/// Outcomes that cross from one process to the other.
impl Outcome {
    /// All of it, in the order of the fields.
    pub(super) fn line(&self) -> String {
        let Outcome { machines, hosts, seconds, events, packets, segments, saved, .. } = self;
        let (cpu, cpu_setup) = (self.cpu.as_secs_f64(), self.cpu_setup.as_secs_f64());
        let ((whole, failed), (median, slowest)) = (self.blocks, self.block_ms);
        let (resident, digest) = (self.resident_bytes, self.digest);
        format!(
            "{machines} {hosts} {seconds} {cpu} {cpu_setup} {events} {packets} {whole} {failed} \
             {segments} {median} {slowest} {saved} {resident} {digest}"
        )
    }

    /// Parses the output of [`Outcome::line`].
    pub(super) fn from_line(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let mut word = || words.next();
        Some(Outcome {
            machines: word()?.parse().ok()?,
            hosts: word()?.parse().ok()?,
            seconds: word()?.parse().ok()?,
            cpu: std::time::Duration::try_from_secs_f64(word()?.parse().ok()?).ok()?,
            cpu_setup: std::time::Duration::try_from_secs_f64(word()?.parse().ok()?).ok()?,
            events: word()?.parse().ok()?,
            packets: word()?.parse().ok()?,
            blocks: (word()?.parse().ok()?, word()?.parse().ok()?),
            segments: word()?.parse().ok()?,
            block_ms: (word()?.parse().ok()?, word()?.parse().ok()?),
            saved: word()?.parse().ok()?,
            resident_bytes: word()?.parse().ok()?,
            digest: word()?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_comes_out_of_its_process_as_it_was() {
        let outcome = scale::nodes(10, 6, 3);
        let told = Outcome::from_line(&outcome.line()).expect("a whole line");
        assert_eq!(Outcome { cpu: outcome.cpu, cpu_setup: outcome.cpu_setup, ..told }, outcome);
        let off = told.cpu.abs_diff(outcome.cpu) + told.cpu_setup.abs_diff(outcome.cpu_setup);
        assert!(off.as_nanos() < 10, "{off:?}");
        assert_eq!(Outcome::from_line("10 9"), None);
    }

    #[test]
    fn there_are_no_other_cells() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(!answer(&words("nodes many 10 1")));
        assert!(!answer(&words("names dreams 10 10")));
        assert!(!answer(&words("everything")));
        assert!(answer(&words("names routes 10 10")));
    }
}
