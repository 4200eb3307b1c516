//! State that all jobs share: the path, the trust rules, the versions seen.

use byname_security::trust::Validator;
use byname_transfer::flow::Flow;
use byname_transfer::request::Context;
use byname_transfer::versions::VersionMemory;

use crate::config::ClientConfig;
use crate::engine::answers::Answers;
use crate::engine::path::PathReport;
use crate::engine::random::Random;

/// Time of a whole burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Nanoseconds of a clock that never goes back.
    pub now_ns: u64,
    /// Nanoseconds since the Unix epoch.
    pub unix_ns: u64,
}

/// State that all jobs of a client share.
pub(crate) struct Shared {
    pub(crate) flow: Flow,
    pub(crate) validator: Validator,
    pub(crate) versions: VersionMemory,
    /// Frames that made no packet.
    pub(crate) dropped_count: u64,
    /// The paths that answers took, if that is asked.
    pub(crate) answers: Option<Answers>,
}

impl Shared {
    /// Nothing seen yet.
    pub(crate) fn new(config: &ClientConfig, now_ns: u64, random: &mut Random) -> Self {
        Shared {
            flow: config.flow(now_ns, random.next_u64()),
            validator: Validator::new(config.trust.clone()),
            versions: VersionMemory::default(),
            dropped_count: 0,
            answers: config.traces.then(Answers::default),
        }
    }

    /// Transport statistics of the path to this endpoint.
    pub(crate) fn path(&self, endpoint: &str) -> PathReport {
        let answer_paths = self.answers.as_ref().map(Answers::paths).unwrap_or_default();
        PathReport { answer_paths, ..PathReport::new(endpoint, &self.flow, self.dropped_count) }
    }

    pub(crate) fn context(&mut self, now: Now) -> Context<'_> {
        Context {
            now_ns: now.now_ns,
            unix_ns: now.unix_ns,
            flow: &mut self.flow,
            validator: &mut self.validator,
            versions: &mut self.versions,
        }
    }
}
