//! Plans as text: one thing a line.
//!
//! ```text
//! # A publisher, a forwarder and a reader.
//! default host store=64Mi
//! default link rate=10G delay=5ms queue=4Mi
//! host a f b
//! link a f
//! link f b rate=1G loss=0.1%
//! publish /site/file at a size=4Mi
//! read /site/file at b start=2s
//! ```
//! Settings of a `default` line count for the lines below it. The README has a table of them.

mod settings;
mod write;

use std::collections::BTreeMap;

use byname_packet::Name;
use thiserror::Error;

use crate::topology::plan::{Plan, PlannedFile, PlannedHost, PlannedLink, PlannedRead, plain_link};
use crate::world::LinkConfig;

use settings::{HostSettings, Word};

/// Hosts of a plan; a text with more is refused.
pub const HOSTS_MAX: usize = 100_000;
/// Links of a plan; a text with more is refused.
pub const LINKS_MAX: usize = 1_000_000;
/// Size of a file that says none.
const FILE_BYTES: u64 = 1 << 20;

/// Why a text is no plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {what}; {hint}")]
pub struct Problem {
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// The fault.
    pub what: String,
    /// The remedy.
    pub hint: String,
}

/// Text read so far.
#[derive(Default)]
struct Reader {
    plan: Plan,
    places: BTreeMap<String, usize>,
    host: HostSettings,
    link: Option<LinkConfig>,
    line: usize,
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// The first [`Problem`].
    pub fn parse(text: &str) -> Result<Plan, Problem> {
        let mut reader = Reader::default();
        for (number, line) in text.lines().enumerate() {
            reader.line = number + 1;
            let line = line.split('#').next().unwrap_or_default();
            reader.take(&words(line), line.chars().count() + 1)?;
        }
        reader.check_reads()?;
        Ok(reader.plan)
    }
}

/// The words of a line and where they stand.
fn words(line: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut rest = line;
    let mut column = 1;
    loop {
        let trimmed = rest.trim_start();
        column += rest.chars().count() - trimmed.chars().count();
        let len = trimmed.find(char::is_whitespace).unwrap_or(trimmed.len());
        if len == 0 {
            return words;
        }
        words.push(Word { text: &trimmed[..len], column });
        column += trimmed[..len].chars().count();
        rest = &trimmed[len..];
    }
}

impl Reader {
    fn problem(&self, column: usize, what: String, hint: &str) -> Problem {
        Problem { line: self.line, column, what, hint: hint.to_owned() }
    }

    fn take(&mut self, words: &[Word<'_>], end: usize) -> Result<(), Problem> {
        let Some((first, rest)) = words.split_first() else { return Ok(()) };
        match first.text {
            "default" => self.take_default(rest, end),
            "host" => self.take_hosts(rest, end),
            "link" => self.take_link(rest, end),
            "publish" => self.take_file(rest, end),
            "read" => self.take_read(rest, end),
            other => Err(self.problem(
                first.column,
                format!("`{other}` is nothing that a line can begin with"),
                "lines begin with `host`, `link`, `default`, `publish` or `read`",
            )),
        }
    }

    fn take_default(&mut self, words: &[Word<'_>], end: usize) -> Result<(), Problem> {
        match words.split_first() {
            Some((kind, rest)) if kind.text == "host" => {
                self.host = settings::host(self.line, self.host.clone(), rest)?;
            }
            Some((kind, rest)) if kind.text == "link" => {
                let config = self.link.unwrap_or_else(plain_link);
                self.link = Some(settings::link(self.line, config, rest)?);
            }
            other => {
                let column = other.map_or(end, |(kind, _)| kind.column);
                let what = "defaults of what is not said".to_owned();
                return Err(self.problem(
                    column,
                    what,
                    "write `default host …` or `default link …`",
                ));
            }
        }
        Ok(())
    }

    fn take_hosts(&mut self, words: &[Word<'_>], end: usize) -> Result<(), Problem> {
        let count = words.iter().take_while(|word| !word.text.contains('=')).count();
        let (names, rest) = words.split_at(count);
        let settings = settings::host(self.line, self.host.clone(), rest)?;
        if names.is_empty() {
            let column = rest.first().map_or(end, |word| word.column);
            let what = "a host without a name".to_owned();
            return Err(self.problem(column, what, "write `host NAME…`, then settings"));
        }
        for name in names {
            if self.places.contains_key(name.text) {
                let what = format!("there is a host `{}` already", name.text);
                return Err(self.problem(name.column, what, "give each host its own name"));
            }
            if self.plan.hosts.len() == HOSTS_MAX {
                let what = format!("more than {HOSTS_MAX} hosts");
                return Err(self.problem(name.column, what, "leave some out"));
            }
            self.places.insert(name.text.to_owned(), self.plan.hosts.len());
            let HostSettings { store_bytes, strategy } = settings.clone();
            self.plan.hosts.push(PlannedHost { name: name.text.to_owned(), store_bytes, strategy });
        }
        Ok(())
    }

    fn take_link(&mut self, words: &[Word<'_>], end: usize) -> Result<(), Problem> {
        let [one, other, rest @ ..] = words else {
            let what = "a link without two ends".to_owned();
            return Err(self.problem(end, what, "write `link ONE OTHER`, then settings"));
        };
        let ends = (self.host(one)?, self.host(other)?);
        if ends.0 == ends.1 {
            let what = format!("`{}` would be joined to itself", one.text);
            return Err(self.problem(other.column, what, "name two hosts"));
        }
        if self.plan.links.len() == LINKS_MAX {
            let what = format!("more than {LINKS_MAX} links");
            return Err(self.problem(one.column, what, "leave some out"));
        }
        let config = self.link.unwrap_or_else(plain_link);
        let config = settings::link(self.line, config, rest)?;
        self.plan.links.push(PlannedLink { ends, config });
        Ok(())
    }

    fn host(&self, word: &Word<'_>) -> Result<usize, Problem> {
        self.places.get(word.text).copied().ok_or_else(|| {
            let what = format!("there is no host `{}`", word.text);
            let hint = format!("write `host {}` above", word.text);
            self.problem(word.column, what, &hint)
        })
    }

    /// `NAME at HOST`.
    fn placed<'a, 'w>(
        &self,
        words: &'a [Word<'w>],
        end: usize,
        hint: &str,
    ) -> Result<(Name, usize, &'a [Word<'w>]), Problem> {
        let [name, at, host, rest @ ..] = words else {
            return Err(self.problem(end, "something is missing".to_owned(), hint));
        };
        if at.text != "at" {
            let what = format!("`{}` where `at` should stand", at.text);
            return Err(self.problem(at.column, what, hint));
        }
        let parsed: Option<Name> = name.text.parse().ok().filter(|name: &Name| {
            // The last component is the file's, those before are published.
            name.view().count() > 1
        });
        let Some(parsed) = parsed else {
            let what = format!("`{}` is no name of a file", name.text);
            return Err(self.problem(name.column, what, "write a name such as `/site/file`"));
        };
        Ok((parsed, self.host(host)?, rest))
    }

    fn take_file(&mut self, words: &[Word<'_>], end: usize) -> Result<(), Problem> {
        let hint = "write `publish NAME at HOST size=…`";
        let (name, host, rest) = self.placed(words, end, hint)?;
        let size = settings::one(self.line, rest, "size", settings::bytes)?.unwrap_or(FILE_BYTES);
        self.plan.files.push(PlannedFile { name, host, size });
        Ok(())
    }

    fn take_read(&mut self, words: &[Word<'_>], end: usize) -> Result<(), Problem> {
        let hint = "write `read NAME at HOST start=…`";
        let (name, host, rest) = self.placed(words, end, hint)?;
        let start_ns = settings::one(self.line, rest, "start", settings::time_ns)?.unwrap_or(0);
        if !self.plan.files.iter().any(|file| file.name == name) {
            let what = format!("nobody publishes `{}`", words[0].text);
            return Err(self.problem(words[0].column, what, "write a `publish` line for it above"));
        }
        self.plan.reads.push(PlannedRead { name, host, start_ns });
        Ok(())
    }

    /// Copies of one file have one size.
    fn check_reads(&self) -> Result<(), Problem> {
        let mut sizes = BTreeMap::new();
        for file in &self.plan.files {
            if *sizes.entry(&file.name).or_insert(file.size) != file.size {
                let what = format!("`{}` is published in two sizes", file.name);
                return Err(self.problem(1, what, "give all copies the same size"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
