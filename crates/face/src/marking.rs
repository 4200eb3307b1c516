//! Congestion marks on packets that are framed already.

use byname_io::Connection;
use byname_link::congestion::marked_frame;

use crate::frame_len;

/// Moves packets from one queue to another, the first with a congestion mark.
pub fn move_marked(from: &mut Connection, to: &mut Connection) {
    let mut is_first = true;
    let moved = from.recv_burst(frame_len, &mut |frame| {
        let marked = is_first.then(|| marked_frame(frame)).flatten();
        is_first = false;
        // Whoever queues has looked for room; what finds none is lost, as on the path.
        let _ = to.queue(&[marked.as_deref().unwrap_or(frame)]);
    });
    if let Err(error) = moved {
        tracing::warn!(%error, "packets were lost between queues");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_packet::lp::LpPacket;
    use byname_packet::{DataBuilder, Name, NullSigner};

    #[test]
    fn the_first_of_several_packets_is_marked() {
        let (mut wire, name) = (Vec::new(), "/a".parse::<Name>().unwrap());
        DataBuilder::new(name.view()).encode(b"content", &NullSigner, &mut wire).unwrap();
        let (mut from, mut to) = (Connection::held().unwrap(), Connection::held().unwrap());
        for _ in 0..3 {
            from.queue(&[&wire]).unwrap();
        }
        move_marked(&mut from, &mut to);
        assert_eq!(from.queued_bytes(), 0);
        let mut marks = Vec::new();
        to.recv_burst(frame_len, &mut |frame| {
            let packet = LpPacket::decode(frame).unwrap();
            assert_eq!(packet.fragment, Some(wire.as_slice()));
            marks.push(packet.header.congestion_mark);
        })
        .unwrap();
        assert_eq!(marks, [Some(1), None, None]);
    }
}
