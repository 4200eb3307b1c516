//! One random scenario after another, each from its seed, until the time is over or a promise is
//! broken.

mod plan;
mod play;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use plan::Plan;
pub use play::{Report, play};

/// What a campaign is to do.
#[derive(Clone, Copy, Debug)]
pub struct CampaignOptions {
    /// How long, by the machine's clock.
    pub seconds: u64,
    /// Of the first scenario; the others follow.
    pub seed: u64,
    /// Scenarios at most.
    pub count: u64,
    /// Scenarios at a time.
    pub jobs: usize,
    /// Whether to print JSON.
    pub json: bool,
}

/// A seed that differs from run to run.
pub fn seed_of_the_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Short enough to be typed.
    since.as_millis() as u64 % 1_000_000_000
}

/// Runs scenarios; true if no promise was broken.
pub fn run(options: &CampaignOptions) -> bool {
    let end = Instant::now() + Duration::from_secs(options.seconds);
    println!("campaign: seed {}", options.seed);
    for number in 0..options.count {
        if Instant::now() >= end {
            break;
        }
        if !replay(options.seed + number, options.json) {
            return false;
        }
    }
    true
}

/// Plays the scenario of one seed; true if no promise was broken.
pub fn replay(seed: u64, _json: bool) -> bool {
    let report = play(&Plan::draw(seed));
    println!("{report:?}");
    report.fault.is_none()
}
