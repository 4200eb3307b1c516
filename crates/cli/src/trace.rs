//! Path traces in words and in JSON: where an answer came from, the nearest hop first.

use crate::output;
use byname_client::{AnswerHop, AnswerPath};
use byname_packet::lp::trace::{Hop, Origin, hops};
use serde_json::{Value, json};
use std::time::Duration;

/// The hops of a trace, turned round; none if it is malformed.
pub(crate) fn nearest_first(trace: &[u8]) -> Vec<Hop<'_>> {
    let mut hops = hops(trace).unwrap_or_default();
    hops.reverse();
    hops
}

/// A hop in words.
fn text(hop: &Hop<'_>) -> String {
    let is_server = matches!(hop.origin, Origin::Publisher | Origin::Mirror);
    let nameless = if is_server { "a file server" } else { "a forwarder" };
    let node = hop.node.unwrap_or(nameless);
    let waited =
        hop.waited_us.map(|us| format!(" after {}", output::short_time(Duration::from_micros(us))));
    let waited = waited.unwrap_or_default();
    match hop.origin {
        Origin::Cache => format!("{node}: from its cache"),
        Origin::Program => format!("{node}: from a program of its machine{waited}"),
        Origin::Neighbour => {
            let peer = hop.peer.unwrap_or("a neighbour that it does not name");
            format!("{node}: from {peer}{waited}")
        }
        Origin::Publisher => format!("{node}: the publisher"),
        Origin::Mirror => format!("{node}: a mirror"),
        Origin::Other(number) => format!("{node}: from something else (origin {number})"),
    }
}

/// Hops in words, and that it is not known how it goes on, if it is not.
pub(crate) fn texts(hops: &[Hop<'_>]) -> Vec<String> {
    let mut texts: Vec<String> = hops.iter().map(text).collect();
    if hops.last().is_some_and(|hop| hop.origin == Origin::Neighbour) {
        texts.push("that one does not report where it has it from".to_owned());
    }
    texts
}

/// A hop as an object.
pub(crate) fn json(hop: &Hop<'_>) -> Value {
    let origin = match hop.origin {
        Origin::Cache => "cache",
        Origin::Program => "program",
        Origin::Neighbour => "neighbour",
        Origin::Publisher => "publisher",
        Origin::Mirror => "mirror",
        Origin::Other(_) => "other",
    };
    json!({ "node": hop.node, "origin": origin, "peer": hop.peer, "waited_us": hop.waited_us })
}

/// A path that answers took, in words.
pub(crate) fn path_text(path: &AnswerPath) -> String {
    let hops: Vec<Hop<'_>> = path.hops.iter().map(AnswerHop::as_hop).collect();
    let hops = match &hops[..] {
        [] => "nobody on the path reports where they came from".to_owned(),
        hops => texts(hops).join("; "),
    };
    format!("{}: {hops}", output::count(path.answer_count, "answer"))
}

/// A path that answers took, as an object.
pub(crate) fn path_json(path: &AnswerPath) -> Value {
    let hops: Vec<Value> = path.hops.iter().map(|hop| json(&hop.as_hop())).collect();
    json!({ "count": path.answer_count, "hops": hops })
}
