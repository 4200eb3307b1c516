//! Where one packet ends in a byte stream.

use byname_packet::{DecodeError, tlv, types};

/// The length of the first frame of `stream`, known as soon as its TYPE and LENGTH are there;
/// `None` before that. The caller bounds the length.
///
/// # Errors
/// [`DecodeError`] when the stream does not continue with an Interest, Data or LpPacket: no later
/// frame could be found.
pub fn stream_frame_len(stream: &[u8]) -> Result<Option<usize>, DecodeError> {
    let Some(first) = stream.first() else { return Ok(None) };
    let typ = u32::from(*first);
    // All three TYPEs are one octet long, so one octet is enough to refuse anything else.
    if !matches!(typ, types::INTEREST | types::DATA | types::LP_PACKET) {
        return Err(DecodeError::Unexpected { typ, within: "stream" });
    }
    let len = tlv::first_element_len(stream)?;
    Ok(len.map(|len| usize::try_from(len).unwrap_or(usize::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_measured_as_soon_as_its_length_is_there() {
        assert_eq!(stream_frame_len(&[]), Ok(None));
        assert_eq!(stream_frame_len(&[0x05]), Ok(None));
        assert_eq!(stream_frame_len(&[0x06, 0xFD, 0x01]), Ok(None));
        assert_eq!(stream_frame_len(&[0x06, 0xFD, 0x01, 0x00]), Ok(Some(260)));
        assert_eq!(stream_frame_len(&[0x64, 0x02, 1, 2, 3]), Ok(Some(4)));
        let huge = [0x05, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
        assert_eq!(stream_frame_len(&huge), Ok(Some(usize::MAX)));
    }

    #[test]
    fn what_is_no_packet_is_refused_at_its_first_octet() {
        for octet in 0..=255u8 {
            let is_packet = [0x05, 0x06, 0x64].contains(&octet);
            assert_eq!(stream_frame_len(&[octet]).is_ok(), is_packet, "{octet:#x}");
        }
        assert!(matches!(
            stream_frame_len(&[0x05, 0xFD, 0x00, 0x10]),
            Err(DecodeError::NotShortest { .. })
        ));
    }
}
