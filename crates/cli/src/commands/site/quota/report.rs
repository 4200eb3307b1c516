//! Quotas as people and programs read them: what is used, the limits, and who is above which.

use super::super::session::SiteSession;
use crate::exit::Outcome;
use crate::output;
use serde_json::{Value, json};

/// Share of a hard limit from which on it is worth a word, in hundredths.
const NEARLY_FULL: u128 = 95;

/// One quota as the head tells it.
struct Line<'a> {
    quota: &'a Value,
    /// Name of the site, which names of trees are below.
    site: &'a str,
}

/// Inodes, or octets.
struct Part {
    used: u64,
    soft: Option<u64>,
    hard: Option<u64>,
}

impl Part {
    fn is_above_soft(&self) -> bool {
        self.soft.is_some_and(|soft| self.used > soft)
    }

    fn is_at_hard(&self) -> bool {
        self.hard.is_some_and(|hard| self.used >= hard)
    }

    fn hundredths(&self) -> Option<u128> {
        let hard = self.hard.filter(|hard| *hard > 0)?;
        Some(u128::from(self.used) * 100 / u128::from(hard))
    }

    /// What is used, with a mark if it is too much.
    fn marked(&self, text: fn(u64) -> String) -> String {
        let mark = match (self.is_at_hard(), self.is_above_soft()) {
            (true, _) => "!",
            (false, true) => "+",
            (false, false) => "",
        };
        format!("{mark}{}", text(self.used))
    }
}

impl Line<'_> {
    fn number(&self, key: &str) -> u64 {
        self.quota[key].as_u64().unwrap_or_default()
    }

    fn limit(&self, key: &str) -> Option<u64> {
        self.quota[key].as_u64().filter(|limit| *limit < u64::MAX)
    }

    fn part(&self, [used, reserved, soft, hard]: [&str; 4]) -> Part {
        let used = self.number(used).saturating_add(self.number(reserved));
        Part { used, soft: self.limit(soft), hard: self.limit(hard) }
    }

    fn bytes(&self) -> Part {
        self.part(["bytes", "reserved_bytes", "soft_bytes", "bytes_max"])
    }

    fn entries(&self) -> Part {
        self.part(["inodes", "reserved_inodes", "soft_inodes", "inodes_max"])
    }

    fn grace_left_s(&self) -> Option<u64> {
        self.quota["grace_left_s"].as_u64()
    }

    fn kind(&self) -> String {
        output::one_line(self.quota["kind"].as_str().unwrap_or_default())
    }

    fn name(&self) -> String {
        let (name, site) = (self.quota["name"].as_str().unwrap_or_default(), self.site);
        match self.quota["kind"].as_str() {
            Some("tree") if name == "/" => site.to_owned(),
            Some("tree") if name.starts_with('/') => format!("{site}{name}"),
            _ => output::one_line(name),
        }
    }

    /// What somebody should do something about.
    fn warning(&self) -> Option<String> {
        let whose = format!("{} {}", self.kind(), self.name());
        if let Some(left) = self.grace_left_s() {
            let left = match left {
                0 => "its grace time is over".to_owned(),
                left => format!("{} left", output::duration(left)),
            };
            return Some(format!("{whose} is above its soft limit, {left}"));
        }
        let share = [self.bytes(), self.entries()].iter().filter_map(Part::hundredths).max()?;
        (share >= NEARLY_FULL).then(|| format!("{whose} has used {share} % of its quota"))
    }

    fn as_json(&self) -> Value {
        json!({
            "kind": self.quota["kind"],
            "name": self.name(),
            "entries": self.quota["inodes"],
            "entries_reserved": self.quota["reserved_inodes"],
            "entries_soft": self.limit("soft_inodes"),
            "entries_max": self.limit("inodes_max"),
            "bytes": self.quota["bytes"],
            "bytes_reserved": self.quota["reserved_bytes"],
            "bytes_soft": self.limit("soft_bytes"),
            "bytes_max": self.limit("bytes_max"),
            "grace_s": self.number("grace_ns") / 1_000_000_000,
            "grace_left_s": self.grace_left_s(),
            "over": self.warning().is_some(),
        })
    }

    fn as_row(&self) -> Vec<String> {
        let (bytes, entries) = (self.bytes(), self.entries());
        let most = |limit: Option<u64>, text: fn(u64) -> String| {
            limit.map_or_else(|| "-".to_owned(), text)
        };
        let number = |number: u64| number.to_string();
        vec![
            self.kind(),
            bytes.marked(output::size),
            most(bytes.soft, output::size),
            most(bytes.hard, output::size),
            entries.marked(number),
            most(entries.soft, number),
            most(entries.hard, number),
            match self.grace_left_s() {
                None => "-".to_owned(),
                Some(0) => "over".to_owned(),
                Some(left) => output::duration(left),
            },
            self.name(),
        ]
    }
}

pub(super) fn list(session: &mut SiteSession, only_over: bool, json: bool) -> Outcome {
    let site = output::name(session.site().view());
    let quotas = session.query("quotas")?;
    let lines = quotas.iter().map(|quota| Line { quota, site: &site });
    let lines = lines.filter(|line| !only_over || line.warning().is_some());
    if json {
        lines.for_each(|line| output::json_line(line.as_json()));
        return Ok(());
    }
    let rows: Vec<_> = lines.map(|line| line.as_row()).collect();
    let header = ["OF", "SIZE", "SOFT", "LIMIT", "ENTRIES", "SOFT", "LIMIT", "GRACE", "NAME"];
    output::table(&header, &rows);
    Ok(())
}

/// Who is above a soft limit or near a hard one, of those that may be seen.
pub(in super::super) fn warnings(session: &mut SiteSession) -> Outcome<Vec<String>> {
    let site = output::name(session.site().view());
    let quotas = session.query("quotas")?;
    Ok(quotas.iter().filter_map(|quota| Line { quota, site: &site }.warning()).collect())
}
