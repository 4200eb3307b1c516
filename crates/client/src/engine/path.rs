//! Transport statistics of the current path: window, RTT, losses.

use byname_transfer::flow::{Flow, Losses};

use crate::engine::answers::AnswerPath;

/// Transport statistics of the path to a source, over all calls so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathReport {
    /// The endpoint in use at this moment.
    pub endpoint: String,
    /// Congestion control: decides how many requests are in flight.
    pub controller: &'static str,
    /// Requests that may be in flight.
    pub window: usize,
    /// Smoothed round-trip time, if anything was measured.
    pub rtt_ns: Option<u64>,
    /// Octets a second that may be asked for, if the controller paces.
    pub pacing_bytes_per_s: Option<u64>,
    /// Requests sent, repeated ones included.
    pub request_count: u64,
    /// Requests that were not answered, by how that was found.
    pub losses: Losses,
    /// Answers with a congestion mark.
    pub marked_count: u64,
    /// Frames that made no packet: broken in transit, or no NDN.
    pub dropped_count: u64,
    /// The paths that answers took, if [`ClientConfig::traces`](crate::ClientConfig::traces) is
    /// set; where several sources are used at once,
    /// [`SourceReport`](crate::SourceReport) has those of the others.
    pub answer_paths: Vec<AnswerPath>,
}

impl PathReport {
    pub(crate) fn new(endpoint: &str, flow: &Flow, dropped_count: u64) -> Self {
        PathReport {
            endpoint: endpoint.to_owned(),
            controller: flow.controller_name(),
            window: flow.window(),
            rtt_ns: flow.smoothed_rtt_ns(),
            pacing_bytes_per_s: flow.pacing_bytes_per_s(),
            request_count: flow.sent_count(),
            losses: flow.losses(),
            marked_count: flow.marked_count(),
            dropped_count,
            answer_paths: Vec::new(),
        }
    }
}
