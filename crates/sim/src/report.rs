//! A page of answers: Markdown, and the plots as SVG files beside it.
//!
//! `FILE.md` has its plots in the folder `FILE/`. The page says when, where, by which command and
//! from which commit it was made, and what each section cost, because a number without these is
//! not a result.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use rustix::time::{ClockId, clock_gettime};

use crate::plot::{Plot, PlotError};
use crate::study::{Block, Effort, Section, Study, studies};

/// A study that was run.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Which.
    pub study: Study,
    /// Findings.
    pub section: Section,
    /// Time of all processors together.
    pub cpu_s: f64,
    /// Time on the clock.
    pub wall_s: f64,
}

/// Origin of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The day, as in 2026-11-21.
    pub date: String,
    /// The command that makes it again.
    pub command: String,
    /// Of the tree, shortened; empty if unknown.
    pub commit: String,
    /// Processor, cores, memory.
    pub machine: String,
}

/// A page that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A plot.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// A file.
    #[error("cannot write {path}", path = path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Runs one study and takes the time.
pub fn run(study: Study, effort: &Effort) -> Answer {
    let (cpu_before_s, began) = (cpu_s(), Instant::now());
    let section = (study.run)(effort);
    Answer { study, section, cpu_s: cpu_s() - cpu_before_s, wall_s: began.elapsed().as_secs_f64() }
}

/// Processor time of this process, and of those that it has started and that have ended.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let own_s = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    own_s + children_s(&fs::read_to_string("/proc/self/stat").unwrap_or_default())
}

/// From a line of proc_pid_stat(5): fields 16 and 17, in hundredths of a second. The name of the
/// program is the second field and may hold anything, but no later field holds a bracket.
fn children_s(stat: &str) -> f64 {
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = rest.split_whitespace().skip(13).take(2);
    ticks.filter_map(|it| it.parse::<u64>().ok()).sum::<u64>() as f64 / 100.0
}

impl Origin {
    /// This machine, now, with this command line.
    pub fn here(command: String) -> Self {
        Origin { date: today(), command, commit: commit(), machine: machine() }
    }
}

/// The command `study`: runs the studies of these names, or all, and prints the page or writes it.
/// False if it fails; the reason is on standard error.
pub fn answer(names: &[String], is_list: bool, effort: &Effort, path: Option<&Path>) -> bool {
    let all = studies();
    if let Some(name) = names.iter().find(|name| !all.iter().any(|it| it.name == **name)) {
        eprintln!("no study is called {name}; --list shows them");
        return false;
    }
    let is_wanted = |study: &Study| names.is_empty() || names.iter().any(|it| it == study.name);
    let mut answers = Vec::new();
    for study in all.into_iter().filter(is_wanted) {
        if is_list {
            println!("{:<12} {}", study.name, study.question);
            continue;
        }
        let answer = run(study, effort);
        eprintln!("{:<12} {:>7.1} s, {:>7.1} s of CPU", study.name, answer.wall_s, answer.cpu_s);
        answers.push(answer);
    }
    if is_list {
        return true;
    }
    let origin = Origin::here(command_line());
    match path.map(|path| write(path, &origin, effort, &answers)) {
        Some(Err(error)) => {
            eprintln!("{error}");
            return false;
        }
        Some(Ok(())) => {}
        None => println!("{}", page(&origin, effort, &answers, "plots")),
    }
    true
}

/// As it was given, the program without its folder.
fn command_line() -> String {
    let rest = std::env::args().skip(1);
    std::iter::once("byname-sim".to_owned()).chain(rest).collect::<Vec<_>>().join(" ")
}

/// Writes the page and its plots.
///
/// # Errors
/// [`ReportError`] if a plot cannot be drawn or a file cannot be written.
pub fn write(
    path: &Path,
    origin: &Origin,
    effort: &Effort,
    answers: &[Answer],
) -> Result<(), ReportError> {
    let folder = path.with_extension("");
    let put = |path: &Path, text: &str| {
        fs::write(path, text).map_err(|source| ReportError::Write { path: path.into(), source })
    };
    let plots: Vec<&Plot> = answers
        .iter()
        .flat_map(|answer| &answer.section.text)
        .filter_map(|block| if let Block::Plot(plot) = block { Some(plot) } else { None })
        .collect();
    if !plots.is_empty() {
        fs::create_dir_all(&folder)
            .map_err(|source| ReportError::Write { path: folder.clone(), source })?;
    }
    for plot in plots {
        put(&folder.join(format!("{}.svg", plot.name)), &plot.svg()?)?;
    }
    let folder = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    put(path, &page(origin, effort, answers, &folder.unwrap_or_default()))
}

/// The page, whose plots are in `folder`.
pub fn page(origin: &Origin, effort: &Effort, answers: &[Answer], folder: &str) -> String {
    let Origin { date, command, commit, machine } = origin;
    let extent = if effort.is_quick { ", quick: a part of the cells" } else { "" };
    let mut page = format!(
        "# The network in a process, {date}\n\n\
         The production code in virtual time. `{command}`, commit `{commit}`, seed {}{extent}.\n\
         Machine (it decides the time this takes, not what is found): {machine}.\n\n\
         | section | question | CPU s | wall s |\n|---|---|---:|---:|\n",
        effort.seed
    );
    // Writing to a String does not fail.
    for Answer { study, section, cpu_s, wall_s } in answers {
        let (name, title, question) = (study.name, &section.title, study.question);
        let _ = writeln!(
            page,
            "| [{title}](#{name}) (`{name}`) | {question} | {cpu_s:.1} | {wall_s:.1} |"
        );
    }
    for Answer { study, section, .. } in answers {
        let (name, text) = (study.name, markdown(section, folder));
        let _ = write!(page, "\n<a id=\"{name}\"></a>\n\n{text}");
    }
    page
}

/// One section.
pub fn markdown(section: &Section, folder: &str) -> String {
    let mut text = format!("## {}\n", section.title);
    for block in &section.text {
        text.push('\n');
        // Writing to a String does not fail.
        let _ = match block {
            Block::Paragraph(paragraph) => writeln!(text, "{paragraph}"),
            Block::Table { head, rows } => write!(text, "{}", table(head, rows)),
            Block::Plot(plot) => {
                writeln!(text, "![{}]({folder}/{}.svg)", plot.title, plot.name)
            }
        };
    }
    text
}

/// Numbers to the right, words to the left.
fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let is_number = |text: &String| text.starts_with(|c: char| c.is_ascii_digit() || c == '−');
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let sides: Vec<String> = (0..head.len())
        .map(|column| {
            let is_right = rows.iter().all(|row| row.get(column).is_none_or(is_number));
            if is_right { "---:" } else { "---" }.to_owned()
        })
        .collect();
    let mut text = line(head) + &line(&sides);
    rows.iter().for_each(|row| text.push_str(&line(row)));
    text
}

/// The day in UTC.
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The date so many days after 1970-01-01: whole years first, then whole months.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

fn commit() -> String {
    let output = std::process::Command::new("git").args(["log", "-1", "--format=%h"]).output();
    output.ok().map_or(String::new(), |it| String::from_utf8_lossy(&it.stdout).trim().to_owned())
}

fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.starts_with(key));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
    };
    let model = field(&read("/proc/cpuinfo"), "model name").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, |count| count.get());
    let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
    let memory_kib: u64 = memory.trim_end_matches(" kB").parse().unwrap_or(0);
    format!("{model}, {cores} processors, {} GiB", memory_kib >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, Series};

    const STUDY: Study =
        Study { name: "one", question: "What is one?", run: |_| Section::new("One") };

    #[test]
    fn processor_time_of_children_is_found_in_the_line() {
        let line = "7 (a b) c) S 1 7 7 0 -1 4194304 1 2 3 4 11 12 250 50 20 0 1 0 99";
        assert_eq!(children_s(line), 3.0);
        assert_eq!(children_s(""), 0.0);
    }

    fn answer() -> Answer {
        let mut answer = run(STUDY, &Effort::QUICK);
        let section = &mut answer.section;
        section.paragraph("It is a number.");
        section.table(&["what", "much"], vec![vec!["one".to_owned(), "1".to_owned()]]);
        section.plot(Plot {
            name: "ones".to_owned(),
            title: "Ones".to_owned(),
            x: Axis::linear("s"),
            y: Axis::linear("ones"),
            series: vec![Series::dots("one", vec![(1.0, 1.0)])],
        });
        answer
    }

    #[test]
    fn a_page_has_its_plots_beside_it_and_says_how_it_was_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.md");
        let origin = Origin { commit: "abc".to_owned(), ..Origin::here("make it".to_owned()) };
        write(&path, &origin, &Effort::QUICK, &[answer()]).unwrap();
        let page = fs::read_to_string(&path).unwrap();
        for text in ["`make it`", "`abc`", "seed 1", "quick", "What is one?", "## One"] {
            assert!(page.contains(text), "{text} is not in {page}");
        }
        assert!(page.contains("| what | much |\n| --- | ---: |\n| one | 1 |\n"), "{page}");
        assert!(page.contains("![Ones](page/ones.svg)"), "{page}");
        let svg = fs::read_to_string(folder.path().join("page/ones.svg")).unwrap();
        assert!(svg.starts_with("<svg"), "{svg}");
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_778), (2026, 11, 21));
        assert_eq!(civil(20_818), (2026, 12, 31));
    }
}
