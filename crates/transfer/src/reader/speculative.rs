//! Asking for the beginning of an object while its description is still being verified.
//!
//! The description and the certificate that proves it come one after the other, and over a long
//! path each takes a round trip. Meanwhile the first window of what the description tells of is
//! asked for. What comes is neither looked at nor handed out before the owner says that the
//! description counts: a forged one costs a window of requests.
//!
//! Invariant: at most [`SPECULATIVE_MAX`] packets of content are asked for and kept, and the
//! nodes that prove them.

use byname_packet::Data;

use super::{ObjectPlan, Reader, Selection};
use crate::fetch::FetchConfig;
use crate::request::Context;
use crate::verify::Output;

/// More than the first window, so that this bounds the memory and the window what is in flight.
pub const SPECULATIVE_MAX: usize = 32;

impl Reader {
    /// Will read all of the object, but keeps what comes until [`trust`](Reader::trust).
    pub fn speculative(plan: ObjectPlan, config: FetchConfig) -> Self {
        let mut reader = Reader::new(plan, Selection::All, config);
        reader.held = Some(Vec::new());
        reader
    }

    /// The plan is that of a description that counts: goes on with what has come.
    pub fn trust(&mut self, context: &mut Context<'_>, out: &mut Output<'_>) {
        let source = context.flow.source();
        for (sender, packet) in self.held.take().unwrap_or_default() {
            if let Ok(data) = Data::decode(&packet)
                && let Some(found) = self.find(data.name)
            {
                context.flow.set_source(sender);
                self.take(found, &data, context, out);
            }
        }
        context.flow.set_source(source);
        self.check_fetches();
    }

    /// True if the packet is kept for later.
    pub(super) fn hold(&mut self, data: &Data<'_>, source: usize) -> bool {
        let Some(held) = &mut self.held else { return false };
        held.push((source, data.wire().into()));
        true
    }

    /// Number of segments of content that may be in flight.
    pub(super) fn speculative_room(&self, room: usize) -> usize {
        match &self.held {
            Some(held) => room.min(SPECULATIVE_MAX.saturating_sub(held.len())),
            None => room,
        }
    }
}
