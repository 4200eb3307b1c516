//! Congestion control: window (requests in flight) and pace of a path.
//!
//! In NDN the consumer alone decides the rate, so a controller counts requested segments, not
//! bytes. A [`Flow`](crate::flow::Flow) reports what was delivered and lost; the controller answers
//! with a window and, if it wants one, a pace. It knows neither names nor files.
//!
//! Signals carry the time at which the request they concern was sent: all requests of one window
//! that suffer from the same full queue are one event, and a request sent before the last
//! reduction says nothing new.

mod aimd;
mod bdp;
mod cubic;
mod filter;
mod fixed;
mod scavenger;
mod standing;

pub use aimd::Aimd;
pub use bdp::Bdp;
pub use cubic::Cubic;
pub use fixed::Fixed;
pub use scavenger::Scavenger;

use std::fmt;
use std::str::FromStr;

const MS: u64 = 1_000_000;

/// Window before anything is known. A local link answers within a scheduling quantum; sixteen
/// segments are what TCP would send (ten full-size segments are 14 KiB, these are 128 KiB, but
/// the forwarders in between queue packets, not bytes).
pub const WINDOW_INITIAL: usize = 16;
/// Largest window unless configured otherwise: 4 GiB in flight in segments of 8 KiB, 100 Gbit/s at
/// 200 ms with half as much again. What is in flight is in the network; here it takes 100 octets
/// a segment. Forwarders on the path may hold fewer (ours 131 072) and refuse the rest.
pub const WINDOW_MAX: usize = 1 << 19;
/// No configuration allows more: one entry of 64 octets each is kept.
pub const WINDOW_LIMIT: usize = 1 << 20;
/// A window never shrinks below this.
pub const WINDOW_MIN: usize = 2;

/// An answer that came in time.
#[derive(Clone, Copy, Debug)]
pub struct DataSample {
    /// When it came.
    pub now_ns: u64,
    /// When it was asked for.
    pub sent_ns: u64,
    /// Round trip; `None` if it was asked for more than once.
    pub rtt_ns: Option<u64>,
    /// Payload.
    pub bytes: u64,
    /// It carried an NDNLPv2 congestion mark.
    pub is_marked: bool,
    /// Requests in flight, this one no longer among them.
    pub in_flight: usize,
    /// The window or the pace, not the reader or the disk, kept us from asking for more.
    pub is_limiting: bool,
    /// Given with the answer that ends a round.
    pub round: Option<Round>,
}

/// Measurements between two answers at least one round trip apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Its length.
    pub duration_ns: u64,
    /// Payload delivered.
    pub bytes: u64,
    /// Segments delivered.
    pub segment_count: u64,
    /// Payload per second.
    pub bytes_per_s: u64,
    /// Mean of the round trips; 0 if there were none to measure.
    pub rtt_mean_ns: u64,
    /// Round trips measured.
    pub rtt_count: u64,
    /// The reader, not the path, decided how much was delivered.
    pub is_reader_limited: bool,
}

/// Evidence that a request was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// Later requests were answered, this one was not.
    Overtaken,
    /// No answer within the time-out.
    TimeOut,
    /// A forwarder refused with a Nack of reason Congestion.
    Nack,
}

/// A request that was not answered.
#[derive(Clone, Copy, Debug)]
pub struct LossSample {
    /// When that was found.
    pub now_ns: u64,
    /// When it was sent.
    pub sent_ns: u64,
    /// The evidence.
    pub kind: LossKind,
    /// Requests in flight, this one no longer among them.
    pub in_flight: usize,
    /// Something was answered since it was sent.
    pub is_path_alive: bool,
}

/// Decides the number of segments in flight on one path, and their pace.
pub trait CongestionController: Send {
    /// A segment arrived.
    fn on_data(&mut self, sample: &DataSample);

    /// A segment did not arrive.
    fn on_loss(&mut self, sample: &LossSample);

    /// Number of segments that may be in flight.
    fn window(&self) -> usize;

    /// Payload per second that may be asked for; `None` if the window alone decides.
    fn pacing_bytes_per_s(&self) -> Option<u64> {
        None
    }

    /// The word for it in configurations and reports.
    fn name(&self) -> &'static str;
}

/// Makes [`Congestion`] of one line a controller: a name here, its word in configurations.
macro_rules! controllers {
    ($($(#[$meta:meta])* $Kind:ident = $word:literal,)*) => {
        /// Choice of a controller, by its word or `fixed=N`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum Congestion {
            $($(#[$meta])* $Kind,)*
            /// [`Fixed`]: always this many.
            Fixed(usize),
        }

        /// All that need no number.
        const NAMED: &[(&str, Congestion)] = &[$(($word, Congestion::$Kind)),*];

        impl Congestion {
            /// A controller that never has more than `window_max` in flight.
            pub fn controller(self, window_max: usize) -> Box<dyn CongestionController> {
                let window_max = window_max.clamp(WINDOW_MIN, WINDOW_LIMIT);
                match self {
                    $(Congestion::$Kind => Box::new($Kind::new(window_max)),)*
                    Congestion::Fixed(window) => Box::new(Fixed::new(window.min(window_max))),
                }
            }
        }
    };
}

controllers! {
    /// [`Bdp`]: a model of the path.
    #[default]
    Bdp = "bdp",
    /// [`Cubic`]: RFC 9438.
    Cubic = "cubic",
    /// [`Aimd`]: what the first NDN consumers did.
    Aimd = "aimd",
    /// [`Scavenger`]: what others leave.
    Scavenger = "scavenger",
}

impl fmt::Display for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, NAMED.iter().find(|(_, named)| named == self)) {
            (Congestion::Fixed(window), _) => write!(f, "fixed={window}"),
            (_, Some((word, _))) => f.write_str(word),
            (_, None) => unreachable!("every kind but Fixed has a word"),
        }
    }
}

/// Text that names no controller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not one of {}, fixed=N (N from 1 to {WINDOW_LIMIT})", words())]
pub struct UnknownCongestion {
    /// The text.
    pub text: String,
}

fn words() -> String {
    NAMED.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ")
}

impl FromStr for Congestion {
    type Err = UnknownCongestion;

    fn from_str(text: &str) -> Result<Self, UnknownCongestion> {
        let fixed = |number: &str| number.parse().ok().filter(|n| (1..=WINDOW_LIMIT).contains(n));
        let named = NAMED.iter().find(|(word, _)| *word == text).map(|(_, named)| *named);
        let numbered = || text.strip_prefix("fixed=").and_then(fixed).map(Congestion::Fixed);
        named.or_else(numbered).ok_or_else(|| UnknownCongestion { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests;
