//! Configuration of a client. Every limit has a default that suits an interactive user.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use byname_cache::Cache;
use byname_security::trust::TrustPolicy;
use byname_transfer::congestion::{Congestion, WINDOW_MAX};
use byname_transfer::discovery::DiscoveryConfig;
use byname_transfer::fetch::{FetchConfig, OUTAGE_SILENCES};
use byname_transfer::flow::Flow;
use byname_transfer::freshness::Freshness;

use crate::download::copies::Copies;
use crate::download::disk::Disk;

/// Transfers at the same time unless configured otherwise.
pub const TRANSFERS_DEFAULT: usize = 4;
/// Most transfers at the same time.
pub const TRANSFERS_MAX: usize = 64;

/// Configuration of a client.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Whose signatures count; with [`UnknownKeys::Insecure`](byname_security::trust::UnknownKeys)
    /// everything is read, verified or not.
    pub trust: TrustPolicy,
    /// Silence after which a request fails. What has begun (a listed tree, an open file) bears four
    /// times that, and "no route" for as long; before that "no route" is believed within a second.
    pub timeout: Duration,
    /// Time without a newly verified byte after which a transfer fails, although answers come.
    pub no_progress: Duration,
    /// Bytes per second, averaged over `no_progress`, below which a transfer fails too.
    pub min_bytes_per_second: u64,
    /// Attempts after the first for each request.
    pub retries: u32,
    /// Files fetched at the same time, at most [`TRANSFERS_MAX`].
    pub transfers: usize,
    /// Payload per second that is asked for; `None` for as fast as possible.
    pub bytes_per_second: Option<u64>,
    /// Congestion control: decides how many requests are in flight.
    pub congestion: Congestion,
    /// Most requests in flight, at most
    /// [`WINDOW_LIMIT`](byname_transfer::congestion::WINDOW_LIMIT).
    pub window_max: usize,
    /// All endpoints given to [`Client::connect`](crate::Client::connect) may be asked for the
    /// same: when one is gone, silent, refuses or sends what does not verify, the next is.
    pub asks_all: bool,
    /// Time to connect to one endpoint.
    pub connect_timeout: Duration,
    /// True if descriptions have to come from the publisher itself.
    pub freshness: Freshness,
    /// Forwarders and servers on the path are asked where each answer came from; see
    /// [`PathReport::answer_paths`](crate::PathReport::answer_paths).
    pub traces: bool,
    /// Keeps the publisher's packets with what is fetched.
    pub copies: Option<Arc<Copies>>,
    /// The site cache, in which verified units are looked for before they are asked for, and kept.
    pub cache: Option<Cache>,
    /// The disk that takes what is downloaded.
    pub disk: Disk,
    /// Ends every call early when set.
    pub stop: Stop,
}

impl Default for ClientConfig {
    fn default() -> Self {
        ClientConfig {
            trust: TrustPolicy::default(),
            timeout: Duration::from_secs(15),
            no_progress: Duration::from_secs(60),
            min_bytes_per_second: 0,
            retries: 5,
            transfers: TRANSFERS_DEFAULT,
            bytes_per_second: None,
            congestion: Congestion::default(),
            window_max: WINDOW_MAX,
            asks_all: false,
            connect_timeout: Duration::from_secs(5),
            freshness: Freshness::default(),
            traces: false,
            copies: None,
            cache: None,
            disk: Disk::default(),
            stop: Stop::default(),
        }
    }
}

impl ClientConfig {
    pub(crate) fn fetch(&self) -> FetchConfig {
        FetchConfig {
            retries: self.retries,
            silence_ns: nanoseconds(self.timeout),
            ..FetchConfig::default()
        }
    }

    /// Longest outage that a transfer bears once it has begun.
    pub(crate) fn outage(&self) -> Duration {
        self.timeout.saturating_mul(OUTAGE_SILENCES as u32)
    }

    /// For what belongs to a transfer that has begun.
    pub(crate) fn fetch_begun(&self) -> FetchConfig {
        self.fetch().begun()
    }

    /// The path through a new connection.
    pub(crate) fn flow(&self, now_ns: u64, jitter_seed: u64) -> Flow {
        let mut flow = Flow::new(self.congestion.controller(self.window_max), jitter_seed);
        if let Some(bytes_per_second) = self.bytes_per_second {
            flow.limit_rate(bytes_per_second, now_ns);
        }
        flow
    }

    /// Verified bytes within `no_progress` that count as progress.
    pub(crate) fn progress_bytes(&self) -> u64 {
        let window_ms = u64::try_from(self.no_progress.as_millis()).unwrap_or(u64::MAX);
        (self.min_bytes_per_second.saturating_mul(window_ms) / 1000).max(1)
    }

    pub(crate) fn discovery(&self) -> DiscoveryConfig {
        DiscoveryConfig {
            fetch: self.fetch(),
            freshness: self.freshness,
            being_written_ns: nanoseconds(self.no_progress),
            ..DiscoveryConfig::default()
        }
    }

    /// For who reads at once: begins although the publisher still computes the root.
    pub(crate) fn discovery_to_read(&self) -> DiscoveryConfig {
        DiscoveryConfig { takes_pending: true, ..self.discovery() }
    }
}

/// A flag that ends calls from a signal handler or another thread. Clones are the same flag.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    /// Ends them as well.
    other: Option<Arc<AtomicBool>>,
}

impl Stop {
    /// Ends what runs now and everything that is started later. Safe in a signal handler.
    pub fn request(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// True if [`request`](Stop::request) was called.
    pub fn is_requested(&self) -> bool {
        let other = self.other.as_ref();
        self.flag.load(Ordering::Relaxed) || other.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// The flag itself, for signal libraries that want one.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// Requested when this or `other` is.
    pub(crate) fn or(&self, other: &Stop) -> Stop {
        Stop { flag: self.flag(), other: Some(other.flag()) }
    }
}

pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
