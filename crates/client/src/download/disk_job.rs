//! Job that is one step at the local disk: it sends nothing and is done when the step is over.

use byname_packet::{Data, NameRef};
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::request::{Context, Request};

use crate::download::disk_queue::DiskTask;
use crate::engine::job::Job;

impl<T> Job for DiskTask<T> {
    fn handle_data(&mut self, _: &Data<'_>, _: bool, _: &mut Context<'_>) -> bool {
        false
    }

    fn handle_nack(&mut self, _: NameRef<'_>, _: NackKind, _: &mut Context<'_>) {}

    fn handle_timeout(&mut self, _: &mut Context<'_>) {}

    fn poll_request(&mut self, _: &mut Context<'_>) -> Option<Request> {
        self.is_ready();
        None
    }

    fn poll_deadline(&mut self, _: &Flow) -> Option<u64> {
        self.is_ready().then_some(0)
    }

    fn is_done(&self) -> bool {
        self.is_over()
    }

    /// The step goes on at the disk.
    fn abandon(&mut self, _: &mut Flow) {}
}
