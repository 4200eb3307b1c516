//! Faces: their channels, their events, and the filter of queries.
#![allow(missing_docs, reason = "the fields are the elements of the specification")]

use super::{for_each_field, read_text, types, write_opt_nni, write_opt_text};
use crate::error::DecodeError;
use crate::tlv::{self, Reader};

/// Kinds of face events.
pub mod face_event {
    #![allow(missing_docs)]
    pub const CREATED: u64 = 1;
    pub const DESTROYED: u64 = 2;
    pub const UP: u64 = 3;
    pub const DOWN: u64 = 4;
}

/// An entry of `faces/channels`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChannelStatus {
    pub local_uri: String,
}

impl ChannelStatus {
    /// Appends the entry.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut value = Vec::new();
        tlv::write_element(&mut value, types::LOCAL_URI, self.local_uri.as_bytes());
        tlv::write_element(out, types::CHANNEL_STATUS, &value);
    }

    /// Reads a whole dataset.
    ///
    /// # Errors
    /// [`DecodeError`] when it is malformed.
    pub fn decode_all(payload: &[u8]) -> Result<Vec<Self>, DecodeError> {
        const WITHIN: &str = "ChannelStatus";
        let mut reader = Reader::new(payload);
        let mut list = Vec::new();
        while let Some(element) = reader.read()? {
            if element.typ != types::CHANNEL_STATUS {
                let typ = element.typ;
                return Err(DecodeError::Unexpected { typ, within: "faces/channels" });
            }
            let mut local_uri = None;
            for_each_field(element.value, WITHIN, None, |field| {
                if field.typ != types::LOCAL_URI {
                    return Ok(false);
                }
                local_uri = Some(read_text(field.value, "LocalUri")?);
                Ok(true)
            })?;
            let missing = DecodeError::Missing { element: "LocalUri", within: WITHIN };
            list.push(Self { local_uri: local_uri.ok_or(missing)? });
        }
        Ok(list)
    }
}

/// Notification of `faces/events`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaceEventNotification {
    /// See [`face_event`].
    pub kind: u64,
    pub face_id: u64,
    pub uri: String,
    pub local_uri: String,
    pub scope: u64,
    pub persistency: u64,
    pub link_type: u64,
    pub flags: u64,
}

impl FaceEventNotification {
    /// Appends the whole element.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut value = Vec::with_capacity(96);
        tlv::write_nni(&mut value, types::FACE_EVENT_KIND, self.kind);
        tlv::write_nni(&mut value, types::FACE_ID, self.face_id);
        tlv::write_element(&mut value, types::URI, self.uri.as_bytes());
        tlv::write_element(&mut value, types::LOCAL_URI, self.local_uri.as_bytes());
        tlv::write_nni(&mut value, types::FACE_SCOPE, self.scope);
        tlv::write_nni(&mut value, types::FACE_PERSISTENCY, self.persistency);
        tlv::write_nni(&mut value, types::LINK_TYPE, self.link_type);
        tlv::write_nni(&mut value, types::FLAGS, self.flags);
        tlv::write_element(out, types::FACE_EVENT_NOTIFICATION, &value);
    }

    /// Reads the whole element.
    ///
    /// # Errors
    /// [`DecodeError`] when it is malformed.
    pub fn decode(wire: &[u8]) -> Result<Self, DecodeError> {
        const WITHIN: &str = "FaceEventNotification";
        let outer = tlv::read_only(wire, types::FACE_EVENT_NOTIFICATION, WITHIN)?;
        let mut event = Self::default();
        for_each_field(outer.value, WITHIN, None, |element| {
            let value = element.value;
            match element.typ {
                types::FACE_EVENT_KIND => event.kind = tlv::read_nni(value, "FaceEventKind")?,
                types::FACE_ID => event.face_id = tlv::read_nni(value, "FaceId")?,
                types::URI => event.uri = read_text(value, "Uri")?,
                types::LOCAL_URI => event.local_uri = read_text(value, "LocalUri")?,
                types::FACE_SCOPE => event.scope = tlv::read_nni(value, "FaceScope")?,
                types::FACE_PERSISTENCY => {
                    event.persistency = tlv::read_nni(value, "FacePersistency")?;
                }
                types::LINK_TYPE => event.link_type = tlv::read_nni(value, "LinkType")?,
                types::FLAGS => event.flags = tlv::read_nni(value, "Flags")?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(event)
    }
}

/// The filter of `faces/query`: what is absent matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaceQueryFilter {
    pub face_id: Option<u64>,
    pub uri_scheme: Option<String>,
    pub uri: Option<String>,
    pub local_uri: Option<String>,
    pub scope: Option<u64>,
    pub persistency: Option<u64>,
    pub link_type: Option<u64>,
}

impl FaceQueryFilter {
    /// Appends the whole element.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut value = Vec::new();
        write_opt_nni(&mut value, types::FACE_ID, self.face_id);
        write_opt_text(&mut value, types::URI_SCHEME, self.uri_scheme.as_ref());
        write_opt_text(&mut value, types::URI, self.uri.as_ref());
        write_opt_text(&mut value, types::LOCAL_URI, self.local_uri.as_ref());
        write_opt_nni(&mut value, types::FACE_SCOPE, self.scope);
        write_opt_nni(&mut value, types::FACE_PERSISTENCY, self.persistency);
        write_opt_nni(&mut value, types::LINK_TYPE, self.link_type);
        tlv::write_element(out, types::FACE_QUERY_FILTER, &value);
    }

    /// Reads the whole element.
    ///
    /// # Errors
    /// [`DecodeError`] when it is malformed.
    pub fn decode(wire: &[u8]) -> Result<Self, DecodeError> {
        const WITHIN: &str = "FaceQueryFilter";
        let outer = tlv::read_only(wire, types::FACE_QUERY_FILTER, WITHIN)?;
        let mut filter = Self::default();
        for_each_field(outer.value, WITHIN, None, |element| {
            let value = element.value;
            let number = |name| tlv::read_nni(value, name).map(Some);
            let text = |name| read_text(value, name).map(Some);
            match element.typ {
                types::FACE_ID => filter.face_id = number("FaceId")?,
                types::URI_SCHEME => filter.uri_scheme = text("UriScheme")?,
                types::URI => filter.uri = text("Uri")?,
                types::LOCAL_URI => filter.local_uri = text("LocalUri")?,
                types::FACE_SCOPE => filter.scope = number("FaceScope")?,
                types::FACE_PERSISTENCY => filter.persistency = number("FacePersistency")?,
                types::LINK_TYPE => filter.link_type = number("LinkType")?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(filter)
    }
}
