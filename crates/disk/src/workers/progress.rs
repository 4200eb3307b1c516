//! What a pull tells the serving thread while it goes on.

use byname_catalog::id::ContentId;
use byname_client::Stop;
use byname_security::tree::NodeId;

use super::{Event, Shared, TOLD_BYTES};
use crate::pull::Watch;
use crate::pulled_tree::PulledTree;

/// Tells how a pull goes.
pub(super) struct Progress<'a> {
    pub(super) shared: &'a Shared,
    pub(super) content: ContentId,
    pub(super) stop: &'a Stop,
    pub(super) size: u64,
    pub(super) untold_bytes: u64,
    pub(super) left_bytes: u64,
    pub(super) tree: PulledTree<'a>,
}

impl Watch for Progress<'_> {
    fn on_node(&mut self, node: NodeId, values: &[u8]) {
        self.tree.put(node, values);
    }

    fn on_again(&mut self) {
        (self.untold_bytes, self.left_bytes) = (0, self.size);
        let _ = self.shared.events.send(Event::Again(self.content));
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_requested()
    }

    fn on_waiting(&mut self, is_begin: bool) {
        match is_begin {
            true => self.shared.load.begin(),
            false => self.shared.load.end(),
        }
    }

    fn on_bytes(&mut self, bytes: u64) {
        self.untold_bytes += bytes;
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
        if self.untold_bytes >= TOLD_BYTES || self.left_bytes == 0 {
            let bytes = std::mem::take(&mut self.untold_bytes);
            // Nobody is woken for that: who asks next hears of it.
            let _ = self.shared.events.send(Event::Received(self.content, bytes));
        }
    }
}
