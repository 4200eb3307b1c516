//! One random scenario after another, each from its seed, until the time is over or a promise is
//! broken.
//!
//! A scenario is drawn (`plan`), then played (`play`) with all checks; nothing but the seed decides
//! what happens, so the command printed with a broken promise repeats it.

mod plan;
mod play;

use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use plan::{Plan, Trouble};
pub use play::{Report, play};

use crate::site;
use crate::world::SECOND;

/// A line on standard output, unless nobody reads it any more.
macro_rules! say {
    ($($part:tt)*) => {{
        let _ = writeln!(std::io::stdout(), $($part)*);
    }};
}

/// While all is well, one line is printed so often.
const PROGRESS: Duration = Duration::from_secs(10);

/// Orders for a campaign.
#[derive(Clone, Copy, Debug)]
pub struct CampaignOptions {
    /// Duration, by the machine's clock.
    pub seconds: u64,
    /// Of the first scenario; the others follow.
    pub seed: u64,
    /// Scenarios at most.
    pub count: u64,
    /// Scenarios at a time.
    pub jobs: usize,
    /// What is played.
    pub kind: CampaignKind,
    /// Prints JSON.
    pub json: bool,
}

/// Kind of scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CampaignKind {
    /// Networks in which files are published and read.
    Networks,
    /// Sites to which files are written: a head, disks, writers, readers.
    Sites,
}

impl CampaignKind {
    /// Plays the scenario of a seed.
    fn play(self, seed: u64) -> Report {
        match self {
            Self::Networks => play(&Plan::draw(seed)),
            Self::Sites => site::play(&site::Scenario::draw(seed)),
        }
    }

    /// What it is asked for by.
    fn flag(self) -> &'static str {
        match self {
            Self::Networks => "",
            Self::Sites => " --sites",
        }
    }
}

/// Totals of a campaign so far.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Scenarios played.
    pub scenarios: u64,
    /// Events in them.
    pub events: u64,
    /// Virtual time in them.
    pub virtual_ns: u64,
    /// Readings that came to the end of their file.
    pub completed: u64,
    /// Readings that ended with an error, as they may while there is trouble.
    pub failed: u64,
    /// Scenarios in which a promise was broken, in the order of their end.
    pub broken: Vec<Report>,
}

impl Totals {
    fn add(&mut self, report: &Report) {
        self.scenarios += 1;
        self.events += report.events;
        self.virtual_ns += report.virtual_ns;
        self.completed += report.completed;
        self.failed += report.failed;
        if report.fault.is_some() {
            self.broken.push(report.clone());
        }
    }
}

/// The scenarios that are left, and what those that are over came to.
struct Progress {
    options: CampaignOptions,
    next: u64,
    began: Instant,
    told: Instant,
    totals: Totals,
}

/// A seed that differs from run to run.
pub fn seed_of_the_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Short enough to be typed.
    since.as_millis() as u64 % 1_000_000_000
}

/// Plays scenarios and prints what becomes of them; true if no promise was broken.
pub fn run(options: &CampaignOptions) -> bool {
    let now = Instant::now();
    if !options.json {
        say!("campaign: from seed {}, for {} s", options.seed, options.seconds);
    }
    let totals = Totals::default();
    let progress = Progress { options: *options, next: 0, began: now, told: now, totals };
    let progress = Mutex::new(progress);
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| work(&progress));
        }
    });
    let progress = progress.into_inner().expect("nobody panicked with it");
    progress.tell("ended");
    progress.totals.broken.is_empty()
}

fn work(progress: &Mutex<Progress>) {
    let kind = progress.lock().expect("nobody panics with it").options.kind;
    loop {
        let seed = progress.lock().expect("nobody panics with it").take();
        let Some(seed) = seed else { return };
        let report = kind.play(seed);
        progress.lock().expect("nobody panics with it").put(&report);
    }
}

impl Progress {
    /// The seed to play next, if there is reason to.
    fn take(&mut self) -> Option<u64> {
        let is_over = self.began.elapsed().as_secs() >= self.options.seconds
            || self.next >= self.options.count
            || !self.totals.broken.is_empty();
        self.next += 1;
        (!is_over).then(|| self.options.seed.wrapping_add(self.next - 1))
    }

    fn put(&mut self, report: &Report) {
        self.totals.add(report);
        if report.fault.is_some() || self.options.json {
            print(report, self.options.kind, self.options.json);
        }
        if self.told.elapsed() >= PROGRESS {
            self.told = Instant::now();
            self.tell("so far");
        }
    }

    fn tell(&self, word: &str) {
        let Totals { scenarios, events, virtual_ns, completed, failed, broken } = &self.totals;
        let seconds = self.began.elapsed().as_secs();
        let (virtual_s, broken) = (virtual_ns / SECOND, broken.len());
        if self.options.json {
            say!(
                "{{\"campaign\":\"{word}\",\"seed\":{},\"seconds\":{seconds},\
                 \"scenarios\":{scenarios},\"events\":{events},\"virtual_seconds\":{virtual_s},\
                 \"completed\":{completed},\"failed\":{failed},\"broken\":{broken}}}",
                self.options.seed
            );
        } else {
            say!(
                "campaign: {word}, after {seconds} s: {scenarios} scenarios, {virtual_s} virtual \
                 seconds, {events} events, {completed} files read, {failed} readings ended with \
                 an error, {broken} promises broken"
            );
        }
    }
}

/// Plays the scenario of one seed and says what it is; true if no promise was broken.
pub fn replay(seed: u64, kind: CampaignKind, json: bool) -> bool {
    match kind {
        _ if json => {}
        CampaignKind::Networks => describe(&Plan::draw(seed)),
        CampaignKind::Sites => say!("{:#?}", site::Scenario::draw(seed)),
    }
    let report = kind.play(seed);
    print(&report, kind, json);
    report.fault.is_none()
}

fn describe(plan: &Plan) {
    say!(
        "{} hosts, {:?}; stores keep {} packets, {} Interests may wait; trouble until {:.3} s",
        plan.hosts,
        plan.shape,
        plan.store_entries,
        plan.pit_entries,
        plan.storm_end_ns as f64 / SECOND as f64
    );
    for (number, link) in plan.links.iter().enumerate() {
        let line = &link.config.line;
        let (queue, delay_us) = (&line.queue, line.delay_ns / 1000);
        say!(
            "link {number}: h{} to h{}, {} Mbit/s, {delay_us} us + {} us, {} KiB of queue ({:?}), \
             MTU {:?}, reliable {}",
            link.ends.0,
            link.ends.1,
            queue.bits_per_s / 1_000_000,
            line.jitter_ns / 1000,
            queue.buffer_bytes / 1024,
            queue.discipline,
            link.config.mtu_bytes,
            link.is_reliable
        );
    }
    plan.sites.iter().enumerate().for_each(|(number, site)| say!("site {number}: {site:?}"));
    plan.readers.iter().enumerate().for_each(|(number, it)| say!("reader {number}: {it:?}"));
    plan.clients.iter().enumerate().for_each(|(number, it)| say!("client {number}: {it:?}"));
    plan.troubles.iter().for_each(|trouble| say!("{trouble:?}"));
}

fn print(report: &Report, kind: CampaignKind, json: bool) {
    let Report { seed, fault, events, virtual_ns, digest, completed, failed } = report;
    let virtual_s = *virtual_ns as f64 / SECOND as f64;
    if json {
        let broken = fault.as_ref().map_or("null".to_owned(), |fault| format!("{:?}", fault.what));
        say!(
            "{{\"seed\":{seed},\"broken\":{broken},\"events\":{events},\
             \"virtual_seconds\":{virtual_s:.3},\"digest\":\"{digest:016x}\",\
             \"completed\":{completed},\"failed\":{failed}}}"
        );
        return;
    }
    say!(
        "seed {seed}: {events} events in {virtual_s:.3} virtual seconds, {completed} files read, \
         {failed} readings ended with an error, history {digest:016x}"
    );
    if let Some(fault) = fault {
        let at_s = fault.at_ns as f64 / SECOND as f64;
        say!("seed {seed}: promise broken at {at_s:.6} s on {}: {}", fault.host, fault.what);
        say!("repeat it with: cargo run -p byname-sim -- replay{} {seed}", kind.flag());
    }
}
