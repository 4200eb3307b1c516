//! Runs for each mutant the tests that come by its place.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::Verdict;
use super::build::{Built, Executable};

/// Number of the mutant that is asked for, in the environment of the tests.
pub(super) const MUTANT: &str = "BYNAME_MUTANT";
/// File to which tests add the numbers of mutants they came by.
const NOTED: &str = "BYNAME_MUTANTS_NOTED";
/// A mutant may make its tests slower, or go on for ever.
const CPU_SECONDS_MIN: u64 = 3;
const CPU_SECONDS_MAX: u64 = 60;
/// Asleep for ever, if it lasts this many times longer than its processor time may.
const WALL_RATIO_MAX: u64 = 6;
/// Of address space, for one that collects for ever.
const KIBIBYTES_MAX: u64 = 8 << 20;
const SIGXCPU: i32 = 24;
/// Of `/proc/self/stat`, on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// A test with the processor time that it takes.
struct Test {
    executable: usize,
    name: String,
    seconds: f64,
}

/// Tests that were built, and which of them come by which mutant.
pub(super) struct Tests {
    built: Built,
    tests: Vec<Test>,
    /// The quickest first.
    by_mutant: BTreeMap<usize, Vec<usize>>,
}

impl Tests {
    /// Runs each test without any mutant; one that fails then does not count.
    pub(super) fn of(built: Built) -> Result<Self> {
        let (mut tests, mut by_mutant) = (Vec::new(), BTreeMap::<usize, Vec<usize>>::new());
        for (executable, file) in built.executables.iter().enumerate() {
            for name in names(file)? {
                let Some((seconds, noted)) = visits(file, &name)? else {
                    println!("does not count, fails without any mutant: {name}");
                    continue;
                };
                for number in noted {
                    by_mutant.entry(number).or_default().push(tests.len());
                }
                tests.push(Test { executable, name, seconds });
            }
        }
        for visitors in by_mutant.values_mut() {
            visitors.sort_by(|a, b| tests[*a].seconds.total_cmp(&tests[*b].seconds));
        }
        let seconds = tests.iter().map(|test| test.seconds).sum::<f64>();
        eprintln!("{} tests, in {seconds:.1} s", tests.len());
        Ok(Self { built, tests, by_mutant })
    }

    /// The verdict of the tests that come by a mutant.
    pub(super) fn judge(&self, number: usize) -> Result<Verdict> {
        let visitors = self.by_mutant.get(&number).map_or(&[][..], Vec::as_slice);
        self.run_groups(&self.built, number, visitors)
    }

    /// The verdict of all tests on a mutant that was built on its own.
    pub(super) fn judge_other(&self, built: &Built) -> Result<Verdict> {
        let mut all: Vec<usize> = (0..self.tests.len()).collect();
        all.sort_by(|a, b| self.tests[*a].seconds.total_cmp(&self.tests[*b].seconds));
        self.run_groups(built, usize::MAX, &all)
    }

    /// Runs the tests in groups, the quickest ones first, until one fails.
    fn run_groups(&self, built: &Built, number: usize, visitors: &[usize]) -> Result<Verdict> {
        let (first, rest) = visitors.split_at(visitors.len().min(4));
        let (second, third) = rest.split_at(rest.len().min(20));
        for group in [first, second, third] {
            for (executable, file) in built.executables.iter().enumerate() {
                let of_group = group.iter().map(|index| &self.tests[*index]);
                let chosen: Vec<&Test> =
                    of_group.filter(|test| test.executable == executable).collect();
                let verdict = match chosen.is_empty() {
                    true => Verdict::Missed,
                    false => run(file, number, &chosen)?,
                };
                if verdict != Verdict::Missed {
                    return Ok(verdict);
                }
            }
        }
        Ok(Verdict::Missed)
    }
}

/// Names of the tests in an executable.
fn names(file: &Executable) -> Result<Vec<String>> {
    let listed = Command::new(&file.path)
        .args(["--list", "--format", "terse"])
        .current_dir(&file.folder)
        .output()
        .with_context(|| format!("cannot run {}", file.path.display()))?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    Ok(listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Processor seconds of all processes that have ended below this one; the clock says little on a
/// machine that has other work.
fn children_seconds() -> f64 {
    let status = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = status.rsplit(')').next().unwrap_or_default();
    let ticks = behind_name.split_whitespace().skip(13).take(2).flat_map(str::parse::<f64>);
    ticks.sum::<f64>() / TICKS_PER_SECOND
}

/// Seconds that a test takes, and the mutants it comes by; None if it fails.
fn visits(file: &Executable, name: &str) -> Result<Option<(f64, Vec<usize>)>> {
    let notes = file.folder.join("mutants-noted");
    let _ = std::fs::remove_file(&notes);
    let before = children_seconds();
    let status = Command::new(&file.path)
        .args(["--exact", name])
        .current_dir(&file.folder)
        .env(NOTED, &notes)
        .env_remove(MUTANT)
        .stdout(Stdio::null())
        .status()?;
    let noted = std::fs::read_to_string(&notes).unwrap_or_default();
    let _ = std::fs::remove_file(&notes);
    let noted = noted.lines().map(|line| Ok(line.parse()?)).collect::<Result<_>>()?;
    Ok(status.success().then(|| (children_seconds() - before, noted)))
}

fn run(file: &Executable, number: usize, tests: &[&Test]) -> Result<Verdict> {
    let usual = tests.iter().map(|test| test.seconds).sum::<f64>();
    let cpu_seconds = (CPU_SECONDS_MIN + (usual * 4.0) as u64).min(CPU_SECONDS_MAX);
    // The shell sets limits and becomes the tests.
    let limits = format!("ulimit -t {cpu_seconds} && ulimit -v {KIBIBYTES_MAX} && ulimit -c 0");
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(format!("{limits} && exec \"$0\" \"$@\""))
        .arg(&file.path)
        .arg("--exact")
        .args(tests.iter().map(|test| &test.name))
        .current_dir(&file.folder)
        .env(MUTANT, number.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot run sh")?;
    let end = Instant::now() + Duration::from_secs(cpu_seconds * WALL_RATIO_MAX);
    let mut pause = Duration::from_millis(2);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(verdict(status));
        }
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            return Ok(Verdict::TimedOut);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

fn verdict(status: ExitStatus) -> Verdict {
    match (status.success(), status.signal()) {
        (true, _) => Verdict::Missed,
        (false, Some(SIGXCPU)) => Verdict::TimedOut,
        (false, _) => Verdict::Caught,
    }
}
