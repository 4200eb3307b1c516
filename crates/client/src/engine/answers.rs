//! The paths that answers took, as far as forwarders and servers report them (path traces).

use byname_packet::lp::trace::{self, Hop, Origin};

/// Paths that are told apart; answers that took yet others are left out.
const PATHS_MAX: usize = 16;

/// A node that an answer came through, as it reports itself. Nobody signs that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerHop {
    /// Name of the machine, if its operator lets it be told.
    pub node: Option<String>,
    /// Origin of the answer, seen from there.
    pub origin: Origin,
    /// FaceUri of the neighbour, if its operator lets it be told.
    pub peer: Option<String>,
}

/// A path, and the number of answers that took it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerPath {
    /// The nearest first. Empty if nobody on the path reports.
    pub hops: Vec<AnswerHop>,
    /// Answers that took it.
    pub answer_count: u64,
}

/// All paths so far.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    paths: Vec<AnswerPath>,
}

impl Answers {
    /// An answer has come, with this trace.
    pub(crate) fn note(&mut self, trace: Option<&[u8]>) {
        let hops = trace.and_then(|trace| trace::hops(trace).ok()).unwrap_or_default();
        if let Some(path) = self.paths.iter_mut().find(|path| is_same(&path.hops, &hops)) {
            path.answer_count += 1;
        } else if self.paths.len() < PATHS_MAX {
            let hops = hops.iter().rev().map(AnswerHop::from).collect();
            self.paths.push(AnswerPath { hops, answer_count: 1 });
        }
    }

    /// The paths, the most taken first.
    pub(crate) fn paths(&self) -> Vec<AnswerPath> {
        let mut paths = self.paths.clone();
        paths.sort_by_key(|path| std::cmp::Reverse(path.answer_count));
        paths
    }
}

impl AnswerHop {
    /// The same as the element of a trace.
    pub fn as_hop(&self) -> Hop<'_> {
        let (node, peer) = (self.node.as_deref(), self.peer.as_deref());
        Hop { node, origin: self.origin, peer, waited_us: None }
    }
}

impl From<&Hop<'_>> for AnswerHop {
    fn from(hop: &Hop<'_>) -> Self {
        AnswerHop {
            node: hop.node.map(str::to_owned),
            origin: hop.origin,
            peer: hop.peer.map(str::to_owned),
        }
    }
}

/// True if a trace, whose nearest hop is the last, reports this path.
fn is_same(path: &[AnswerHop], hops: &[Hop<'_>]) -> bool {
    let reported = hops.iter().rev();
    path.len() == hops.len()
        && path.iter().zip(reported).all(|(known, hop)| {
            (known.node.as_deref(), known.origin, known.peer.as_deref())
                == (hop.node, hop.origin, hop.peer)
        })
}

#[cfg(test)]
mod tests {
    use super::{Answers, PATHS_MAX};
    use byname_packet::lp::trace::{Hop, Origin};

    fn trace(peers: &[&str], waited_us: u64) -> Vec<u8> {
        let mut trace = Vec::new();
        for peer in peers {
            let (origin, waited_us) = (Origin::Neighbour, Some(waited_us));
            Hop { node: None, origin, peer: Some(peer), waited_us }.append(&mut trace);
        }
        trace
    }

    #[test]
    fn paths_are_told_apart_by_hops_and_not_by_time_and_are_bounded() {
        let mut answers = Answers::default();
        answers.note(Some(&trace(&["far", "near"], 1)));
        for waited_us in 0..3 {
            answers.note(Some(&trace(&["other", "near"], waited_us)));
        }
        answers.note(Some(&[129, 9]));
        answers.note(None);
        let paths = answers.paths();
        let counts: Vec<u64> = paths.iter().map(|path| path.answer_count).collect();
        assert_eq!(counts, [3, 2, 1], "what is malformed reports nothing");
        let peers: Vec<_> = paths[0].hops.iter().map(|hop| hop.peer.as_deref()).collect();
        assert_eq!(peers, [Some("near"), Some("other")]);
        assert!(paths[1].hops.is_empty());
        for number in 0..50 {
            answers.note(Some(&trace(&[&number.to_string()], 0)));
        }
        assert_eq!(answers.paths().len(), PATHS_MAX);
    }
}
