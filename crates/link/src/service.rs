//! The two halves of a link in one.

use byname_packet::lp::LpHeader;

use crate::drop_reason::DropReason;
use crate::feedback::Feedback;
use crate::options::LinkOptions;
use crate::reassembly::ReassemblyLimits;
use crate::receiver::{LinkReceiver, Received};
use crate::sender::{LinkSender, SendError};

/// The link layer of one face.
///
/// Methods come in three kinds. *Handle*: [`LinkService::receive`] for each frame,
/// [`LinkService::handle_timeout`] when the time of [`LinkService::poll_timeout`] has come.
/// *Command*: [`LinkService::send`], [`LinkService::set_options`]. *Look*: the counters.
///
/// Whoever sends while a received packet is still borrowed uses the halves
/// ([`LinkService::split`]) and carries the [`Feedback`] from one to the other.
#[derive(Debug)]
pub struct LinkService {
    receiver: LinkReceiver,
    sender: LinkSender,
    feedback: Feedback,
}

impl LinkService {
    /// The link service of a stream: one frame is one packet.
    pub fn stream() -> Self {
        Self::new(None, 0, ReassemblyLimits::default())
    }

    /// The link service of datagrams of at most `mtu_bytes` (at least 128). `first_sequence` should
    /// be random, so that fragments of an earlier life are not mixed in.
    pub fn datagram(mtu_bytes: usize, first_sequence: u64, limits: ReassemblyLimits) -> Self {
        Self::new(Some(mtu_bytes), first_sequence, limits)
    }

    fn new(mtu_bytes: Option<usize>, first_sequence: u64, limits: ReassemblyLimits) -> Self {
        Self {
            receiver: LinkReceiver::new(mtu_bytes.is_none(), limits),
            sender: LinkSender::new(mtu_bytes, first_sequence, limits.fragments_max),
            feedback: Feedback::default(),
        }
    }

    /// The halves.
    pub fn split(self) -> (LinkReceiver, LinkSender) {
        (self.receiver, self.sender)
    }

    /// See [`LinkSender::set_options`].
    pub fn set_options(&mut self, options: &LinkOptions) {
        self.receiver.set_options(options);
        self.sender.set_options(options);
    }

    /// See [`LinkSender::send`].
    ///
    /// # Errors
    /// [`SendError::TooLarge`], with nothing emitted.
    pub fn send(
        &mut self,
        header: &LpHeader<'_>,
        packet: &[u8],
        now_ns: u64,
        emit: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), SendError> {
        self.sender.send(header, packet, now_ns, emit)
    }

    /// See [`LinkReceiver::receive`].
    ///
    /// # Errors
    /// [`DropReason`]; the link goes on.
    pub fn receive<'a>(
        &'a mut self,
        frame: &'a [u8],
        now_ns: u64,
    ) -> Result<Option<Received<'a>>, DropReason> {
        let result = self.receiver.receive(frame, now_ns, &mut self.feedback);
        if !self.feedback.is_empty() {
            self.sender.handle_feedback(&mut self.feedback, now_ns);
        }
        result
    }

    /// See [`LinkSender::take_returned_token`].
    pub fn take_returned_token(&mut self) -> Option<u64> {
        self.sender.take_returned_token()
    }

    /// See [`LinkSender::poll_timeout`].
    pub fn poll_timeout(&self) -> Option<u64> {
        self.sender.poll_timeout()
    }

    /// See [`LinkSender::handle_timeout`].
    pub fn handle_timeout(&mut self, now_ns: u64, emit: impl FnMut(&[u8], &[u8])) {
        self.sender.handle_timeout(now_ns, emit);
    }

    /// The receiving half, for its counters.
    pub fn receiver(&self) -> &LinkReceiver {
        &self.receiver
    }

    /// The sending half, for its counters.
    pub fn sender(&self) -> &LinkSender {
        &self.sender
    }
}

#[cfg(test)]
mod tests;
