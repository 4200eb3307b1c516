//! Sending: what the engine answers at once, and segments, read here or by others.
//!
//! Segments go in bursts. The serving thread reads a burst straight into the face's queue, or hands
//! it to another thread ([`Executor::hand_over`]) and sends what comes back; what has to wait for
//! the disk comes back too. All of it is counted by the engine when it is on its way.
//!
//! [`Executor::hand_over`]: crate::executor::Executor::hand_over

use byname_face::{frame_len, move_marked};
use byname_transfer::server::{Now, SegmentBurst, SegmentSent};

use super::FileServer;
use super::access::{Peer, peer_uri};

impl FileServer {
    /// Carries out what the engine asks for and sends what it answers.
    pub(super) fn pump(&mut self, now: Now) {
        loop {
            let of_service = self.service.as_mut().and_then(|service| service.poll_transmit());
            if let Some(packet) = of_service.or_else(|| self.engine.poll_transmit()) {
                let face = self.faces.get_mut(packet.face);
                if let (Some(accesses), Some(face)) = (&mut self.accesses, &face) {
                    let peer = Peer { face: packet.face, uri: &peer_uri(face) };
                    accesses.note_packet(peer, &packet.wire, now);
                }
                if face.is_some_and(|face| !face.send(&packet.wire, now.now_ns)) {
                    tracing::debug!(face = packet.face.0, "an answer found no room");
                }
            } else if let Some(burst) = self.engine.poll_segments() {
                self.send_burst(burst, now);
            } else if let Some((id, op)) = self.engine.poll_op() {
                if let Some(completion) = self.executor.execute(id, op) {
                    self.engine.handle_completion(id, completion, now);
                }
            } else {
                return;
            }
        }
    }

    fn send_burst(&mut self, burst: SegmentBurst, now: Now) {
        let Some(face) = self.faces.get_mut(burst.face()) else {
            // Nobody is there any more to whom it could be sent.
            return self.engine.handle_segments(burst, SegmentSent::Sent);
        };
        let is_marked = face.is_mark_due(now.now_ns);
        let burst = match is_marked || !face.sends_from_place() {
            true => burst,
            false => match self.executor.hand_over(burst) {
                Some(burst) => burst,
                None => return,
            },
        };
        let Some(outlet) = face.outlet() else {
            return self.engine.handle_segments(burst, SegmentSent::Sent);
        };
        if is_marked {
            self.executor.send(burst, &mut self.marking, &mut self.sent);
            move_marked(&mut self.marking, outlet);
        } else {
            self.executor.send(burst, outlet, &mut self.sent);
        }
        self.settle_sent(now);
    }

    /// Tells the engine what was sent.
    fn settle_sent(&mut self, now: Now) {
        let mut all = std::mem::take(&mut self.sent);
        for (burst, sent) in all.drain(..) {
            self.settle(burst, sent, now);
        }
        self.sent = all;
    }

    fn settle(&mut self, burst: SegmentBurst, sent: SegmentSent, now: Now) {
        if let (Some(accesses), Some(face)) = (&mut self.accesses, self.faces.get(burst.face())) {
            accesses.note_burst(&peer_uri(face), &burst, sent, now);
        }
        self.engine.handle_segments(burst, sent);
    }

    /// Sends what was read by others: from the disk, or by other threads from memory.
    pub(super) fn send_read(&mut self, now: Now) {
        while let Some(read) = self.executor.take_read() {
            let face = self.faces.get_mut(read.face());
            let (burst, sent) =
                self.executor.finish_read(read, face.and_then(|face| face.outlet()));
            self.settle(burst, sent, now);
        }
        while let Some(mut framed) = self.executor.take_framed() {
            if let Some(face) = self.faces.get_mut(framed.face()) {
                face.send_all(&mut framed.packets, now.now_ns);
            }
            // What nobody is there for any more is dropped: the queue is used again.
            let _ = framed.packets.recv_burst(frame_len, &mut |_| {});
            self.executor.finish_framed(framed, &mut self.sent);
            self.settle_sent(now);
        }
    }
}
