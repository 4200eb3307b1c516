//! When to tell receivers that a link is congested.
//!
//! A queue that is long for a moment is a burst; one that stays long for an interval is congestion.
//! Then one packet is marked, and while it stays long others follow, the n-th after the n-1-th by
//! interval/√(n-1): consumers slow down once per round trip, so marks come faster the longer they
//! have no effect. A queue that is short once ends it.
//!
//! The queue that counts is what the kernel has not taken: its own buffers are full then. Packets
//! that wait within a burst are no queue.
//!
//! spec: NDNLPv2 "Congestion marking" (after CoDel, RFC 8289).

use byname_packet::lp::{LpHeader, LpPacket, encode_header};

/// Default queue, in octets, above which a link may be congested.
pub const CONGESTION_THRESHOLD_BYTES: usize = 65_536;

/// Default time for which the queue must stay above it.
pub const CONGESTION_INTERVAL_NS: u64 = 100_000_000;

/// When the queue of a link is long, and how often that is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkingOptions {
    /// Octets above which it is long.
    pub threshold_bytes: usize,
    /// Time for which it has to stay so.
    pub interval_ns: u64,
}

impl Default for MarkingOptions {
    fn default() -> Self {
        Self { threshold_bytes: CONGESTION_THRESHOLD_BYTES, interval_ns: CONGESTION_INTERVAL_NS }
    }
}

/// Decides which packets of one link are marked.
///
/// Whoever has the header of a packet in hand calls [`CongestionMarker::mark`] for each; whoever
/// sends bursts that are framed elsewhere asks [`CongestionMarker::take_due`] for each burst and
/// reports queues in between by [`CongestionMarker::note_queue`].
#[derive(Debug, Clone)]
pub struct CongestionMarker {
    /// `None` while nothing is to be marked.
    options: Option<MarkingOptions>,
    /// When the next mark is due; `None` while the queue is short.
    next_ns: Option<u64>,
    /// Marks since the queue became long.
    marks: u32,
    /// The next packet gets a mark, whatever the queue is by then.
    is_owed: bool,
    marked: u64,
}

impl Default for CongestionMarker {
    fn default() -> Self {
        Self::new(Some(MarkingOptions::default()))
    }
}

impl CongestionMarker {
    /// A marker with these options; `None` marks nothing.
    pub fn new(options: Option<MarkingOptions>) -> Self {
        Self { options, next_ns: None, marks: 0, is_owed: false, marked: 0 }
    }

    /// The header that the next packet gets in place of `header`, if it is to be marked.
    pub fn mark<'a>(
        &mut self,
        header: &LpHeader<'a>,
        queue_bytes: usize,
        now_ns: u64,
    ) -> Option<LpHeader<'a>> {
        // A mark of somebody before us says as much.
        if !self.take_due(queue_bytes, now_ns) || header.congestion_mark.is_some() {
            return None;
        }
        Some(marked(header))
    }

    /// True if the packet about to be queued shall be marked.
    pub fn take_due(&mut self, queue_bytes: usize, now_ns: u64) -> bool {
        self.note_queue(queue_bytes, now_ns);
        let is_due = std::mem::take(&mut self.is_owed);
        self.marked += u64::from(is_due);
        is_due
    }

    /// Takes note of the queue between packets: one that was long until now counts, even if it
    /// empties before the next.
    pub fn note_queue(&mut self, queue_bytes: usize, now_ns: u64) {
        self.is_owed |= self.is_due(queue_bytes, now_ns);
    }

    fn is_due(&mut self, queue_bytes: usize, now_ns: u64) -> bool {
        let Some(options) = self.options else { return false };
        if queue_bytes <= options.threshold_bytes {
            self.next_ns = None;
            self.marks = 0;
            return false;
        }
        let due_ns = *self.next_ns.get_or_insert(now_ns.saturating_add(options.interval_ns));
        if now_ns < due_ns {
            return false;
        }
        self.marks = self.marks.saturating_add(1);
        let wait_ns = options.interval_ns as f64 / f64::from(self.marks).sqrt();
        // Nothing was sent for a while: what is overdue is not made up for at once.
        let from_ns = due_ns.max(now_ns.saturating_sub(options.interval_ns));
        self.next_ns = Some(from_ns.saturating_add(wait_ns as u64));
        true
    }

    /// Marks that were due so far.
    pub fn marked_count(&self) -> u64 {
        self.marked
    }
}

/// A framed packet once more, with a congestion mark; `None` if the frame is no whole packet.
pub fn marked_frame(frame: &[u8]) -> Option<Vec<u8>> {
    let packet = LpPacket::decode(frame).ok()?;
    let fragment = packet.fragment?;
    let mut out = Vec::with_capacity(frame.len() + 16);
    encode_header(&marked(&packet.header), None, fragment.len(), &mut out);
    out.extend_from_slice(fragment);
    Some(out)
}

fn marked<'a>(header: &LpHeader<'a>) -> LpHeader<'a> {
    LpHeader { congestion_mark: Some(1), ..*header }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const OPTIONS: MarkingOptions = MarkingOptions { threshold_bytes: 1000, interval_ns: 10 * MS };

    /// The times, in ms, of the marks of a queue that has `queue(ms)` octets.
    fn marks(marker: &mut CongestionMarker, ms: u64, queue: impl Fn(u64) -> usize) -> Vec<u64> {
        (0..ms).filter(|at| marker.take_due(queue(*at), at * MS)).collect()
    }

    #[test]
    fn a_lasting_queue_is_marked_by_the_formula() {
        let mut expected = Vec::new();
        let mut due = 100.0f64;
        for n in 1..=30u32 {
            expected.push(due.ceil() as u64);
            due += 100.0 / f64::from(n).sqrt();
        }
        let end = *expected.last().unwrap() + 1;
        assert_eq!(marks(&mut CongestionMarker::default(), end, |_| 65_537), expected);
    }

    #[test]
    fn bursts_and_queues_at_the_threshold_are_not_marked() {
        let mut marker = CongestionMarker::default();
        assert!(marks(&mut marker, 1000, |_| 65_536).is_empty());
        // Long for 99 ms, then empty for one.
        let burst = |at: u64| if at % 100 == 99 { 0 } else { 1 << 20 };
        assert!(marks(&mut marker, 1000, burst).is_empty());
        assert_eq!(marker.marked_count(), 0);
    }

    #[test]
    fn congestion_that_ended_starts_over() {
        let mut marker = CongestionMarker::new(Some(OPTIONS));
        let queue = |at: u64| if (50..60).contains(&at) { 0 } else { 2000 };
        let times = marks(&mut marker, 81, queue);
        assert_eq!(times, [10, 20, 28, 33, 38, 43, 47, 70, 80]);
        assert_eq!(marker.marked_count(), 9);
    }

    #[test]
    fn headers_are_marked_once_and_not_at_all_without_options() {
        let mut marker = CongestionMarker::new(Some(OPTIONS));
        let header = LpHeader::default();
        assert!(marker.mark(&header, 1001, 0).is_none(), "a burst");
        let marked = marker.mark(&header, 1001, 10 * MS).expect("a queue that stays");
        assert_eq!(marked.congestion_mark, Some(1));
        assert!(marker.mark(&marked, 1001, 20 * MS).is_none(), "there is one already");
        let mut none = CongestionMarker::new(None);
        assert!((0..100).all(|at| none.mark(&header, 1 << 20, at * 10 * MS).is_none()));
    }

    #[test]
    fn a_queue_that_was_long_between_packets_marks_the_next() {
        let mut marker = CongestionMarker::new(Some(OPTIONS));
        marker.note_queue(2000, 0);
        marker.note_queue(2000, 10 * MS);
        assert!(marker.take_due(0, 11 * MS));
        assert!(!marker.take_due(0, 12 * MS), "once");
    }

    #[test]
    fn a_frame_is_marked_whatever_else_its_header_says() {
        let packet = [0x05, 0x03, 0x07, 0x01, 0x08];
        for header in
            [LpHeader::default(), LpHeader { pit_token: Some(b"t"), ..LpHeader::default() }]
        {
            let mut frame = Vec::new();
            encode_header(&header, None, packet.len(), &mut frame);
            frame.extend_from_slice(&packet);
            let marked = marked_frame(&frame).expect("a packet");
            let decoded = LpPacket::decode(&marked).expect("a packet");
            assert_eq!(decoded.fragment, Some(&packet[..]));
            assert_eq!(decoded.header.congestion_mark, Some(1));
            assert_eq!(decoded.header.pit_token, header.pit_token);
        }
        assert_eq!(marked_frame(b"HTTP"), None);
    }
}
