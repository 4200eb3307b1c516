//! Congestion marking of one link, as the options of its face say.

use byname_forwarder::FaceOptions;
use byname_link::{CongestionMarker, MarkingOptions, congestion};
use byname_packet::lp::LpHeader;

/// The queue of one link, and when it is too long.
#[derive(Debug, Default)]
pub(crate) struct Marking {
    marker: CongestionMarker,
    /// Octets that waited after the last flush.
    pub(crate) queued_bytes: usize,
}

impl Marking {
    /// Does from now on what the options of the face say.
    pub(crate) fn set_options(&mut self, options: &FaceOptions) {
        let bytes = options.default_congestion_threshold_bytes;
        let threshold_bytes = bytes.map_or(congestion::CONGESTION_THRESHOLD_BYTES, |bytes| {
            usize::try_from(bytes).unwrap_or(usize::MAX)
        });
        let interval_ns = options
            .base_congestion_marking_interval_ns
            .unwrap_or(congestion::CONGESTION_INTERVAL_NS);
        let marking = MarkingOptions { threshold_bytes, interval_ns };
        self.marker = CongestionMarker::new(options.congestion_marking.then_some(marking));
    }

    /// The header that the next packet gets in place of `header`, if it is to be marked.
    /// `queued_bytes` is that of the socket it shares with others, or our own.
    pub(crate) fn mark<'a>(
        &mut self,
        header: &LpHeader<'a>,
        queued_bytes: usize,
        now_ns: u64,
    ) -> Option<LpHeader<'a>> {
        self.marker.mark(header, queued_bytes, now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_queues_are_marked_unless_options_say_otherwise() {
        let mut marking = Marking::default();
        let options = FaceOptions {
            base_congestion_marking_interval_ns: Some(10),
            default_congestion_threshold_bytes: Some(100),
            ..FaceOptions::default()
        };
        marking.set_options(&options);
        let header = LpHeader::default();
        assert!(marking.mark(&header, 101, 0).is_none(), "a burst");
        let marked = marking.mark(&header, 101, 10).expect("a queue that stays");
        assert_eq!(marked.congestion_mark, Some(1));
        marking.set_options(&FaceOptions { congestion_marking: false, ..options });
        assert!(marking.mark(&header, 1 << 20, 20).is_none());
        assert!(marking.mark(&header, 1 << 20, 40).is_none());
    }
}
