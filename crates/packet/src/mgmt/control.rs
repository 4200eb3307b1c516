//! ControlParameters and ControlResponse.

use super::{for_each_field, read_name, read_nested_name, read_text, types};
use super::{write_nested_name, write_opt_nni, write_opt_text};
use crate::error::DecodeError;
use crate::name::Name;
use crate::tlv;

/// Status codes of responses.
pub mod status_code {
    #![allow(missing_docs)]
    pub const OK: u64 = 200;
    pub const BAD_REQUEST: u64 = 400;
    pub const UNAUTHORIZED: u64 = 403;
    pub const NOT_FOUND: u64 = 404;
    pub const NOT_SUPPORTED: u64 = 406;
    pub const CONFLICT: u64 = 409;
    pub const FACE_NOT_FOUND: u64 = 410;
    pub const PREFIX_TOO_LONG: u64 = 414;
    pub const SERVER_ERROR: u64 = 500;
    pub const NOT_IMPLEMENTED: u64 = 501;
    pub const GATEWAY_TIMEOUT: u64 = 504;
}

/// Parameters of a command, and the body of most responses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the elements of the specification")]
pub struct ControlParameters {
    pub name: Option<Name>,
    pub face_id: Option<u64>,
    pub uri: Option<String>,
    pub local_uri: Option<String>,
    pub origin: Option<u64>,
    pub cost: Option<u64>,
    pub capacity: Option<u64>,
    pub count: Option<u64>,
    pub flags: Option<u64>,
    pub mask: Option<u64>,
    pub strategy: Option<Name>,
    /// Milliseconds.
    pub expiration_period_ms: Option<u64>,
    pub face_persistency: Option<u64>,
    /// Nanoseconds.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Octets.
    pub default_congestion_threshold_bytes: Option<u64>,
    /// Octets.
    pub mtu: Option<u64>,
}

impl ControlParameters {
    /// Reads the whole element.
    ///
    /// # Errors
    /// [`DecodeError`] when it is malformed.
    pub fn decode(wire: &[u8]) -> Result<Self, DecodeError> {
        const WITHIN: &str = "ControlParameters";
        let outer = tlv::read_only(wire, types::CONTROL_PARAMETERS, WITHIN)?;
        let mut p = Self::default();
        for_each_field(outer.value, WITHIN, None, |element| p.take(element))?;
        Ok(p)
    }

    fn take(&mut self, element: tlv::Element<'_>) -> Result<bool, DecodeError> {
        let value = element.value;
        let number = |name| tlv::read_nni(value, name).map(Some);
        match element.typ {
            crate::types::NAME => self.name = Some(read_name(value)?),
            types::FACE_ID => self.face_id = number("FaceId")?,
            types::URI => self.uri = Some(read_text(value, "Uri")?),
            types::LOCAL_URI => self.local_uri = Some(read_text(value, "LocalUri")?),
            types::ORIGIN => self.origin = number("Origin")?,
            types::COST => self.cost = number("Cost")?,
            types::CAPACITY => self.capacity = number("Capacity")?,
            types::COUNT => self.count = number("Count")?,
            types::FLAGS => self.flags = number("Flags")?,
            types::MASK => self.mask = number("Mask")?,
            types::STRATEGY => self.strategy = Some(read_nested_name(value, "Strategy")?),
            types::EXPIRATION_PERIOD => self.expiration_period_ms = number("ExpirationPeriod")?,
            types::FACE_PERSISTENCY => self.face_persistency = number("FacePersistency")?,
            types::BASE_CONGESTION_MARKING_INTERVAL => {
                self.base_congestion_marking_interval_ns = number("BaseCongestionMarkingInterval")?;
            }
            types::DEFAULT_CONGESTION_THRESHOLD => {
                self.default_congestion_threshold_bytes = number("DefaultCongestionThreshold")?;
            }
            types::MTU => self.mtu = number("Mtu")?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Appends the whole element, in the order of ndn-cxx, in which NDNts loses nothing. python-ndn
    /// wants the marking interval, the threshold and the MTU before the flags, so who writes for it
    /// leaves them out.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut value = Vec::new();
        if let Some(name) = &self.name {
            name.view().encode(&mut value);
        }
        write_opt_nni(&mut value, types::FACE_ID, self.face_id);
        write_opt_text(&mut value, types::URI, self.uri.as_ref());
        write_opt_text(&mut value, types::LOCAL_URI, self.local_uri.as_ref());
        write_opt_nni(&mut value, types::ORIGIN, self.origin);
        write_opt_nni(&mut value, types::COST, self.cost);
        write_opt_nni(&mut value, types::CAPACITY, self.capacity);
        write_opt_nni(&mut value, types::COUNT, self.count);
        write_opt_nni(&mut value, types::FLAGS, self.flags);
        write_opt_nni(&mut value, types::MASK, self.mask);
        if let Some(strategy) = &self.strategy {
            write_nested_name(&mut value, types::STRATEGY, strategy);
        }
        write_opt_nni(&mut value, types::EXPIRATION_PERIOD, self.expiration_period_ms);
        write_opt_nni(&mut value, types::FACE_PERSISTENCY, self.face_persistency);
        write_opt_nni(
            &mut value,
            types::BASE_CONGESTION_MARKING_INTERVAL,
            self.base_congestion_marking_interval_ns,
        );
        write_opt_nni(
            &mut value,
            types::DEFAULT_CONGESTION_THRESHOLD,
            self.default_congestion_threshold_bytes,
        );
        write_opt_nni(&mut value, types::MTU, self.mtu);
        tlv::write_element(out, types::CONTROL_PARAMETERS, &value);
    }
}

/// The answer to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlResponse {
    /// See [`status_code`].
    pub status_code: u64,
    /// For people.
    pub status_text: String,
    /// One element, usually ControlParameters; empty when there is none.
    pub body: Vec<u8>,
}

impl ControlResponse {
    /// A response without a body.
    pub fn new(status_code: u64, status_text: impl Into<String>) -> Self {
        Self { status_code, status_text: status_text.into(), body: Vec::new() }
    }

    /// A response whose body is `parameters`.
    pub fn with_parameters(mut self, parameters: &ControlParameters) -> Self {
        self.body.clear();
        parameters.encode(&mut self.body);
        self
    }

    /// The body as ControlParameters.
    ///
    /// # Errors
    /// [`DecodeError`] when the body is something else.
    pub fn parameters(&self) -> Result<ControlParameters, DecodeError> {
        ControlParameters::decode(&self.body)
    }

    /// Reads the whole element.
    ///
    /// # Errors
    /// [`DecodeError`] when it is malformed.
    pub fn decode(wire: &[u8]) -> Result<Self, DecodeError> {
        const WITHIN: &str = "ControlResponse";
        let outer = tlv::read_only(wire, types::CONTROL_RESPONSE, WITHIN)?;
        let mut reader = tlv::Reader::new(outer.value);
        let mut next = |typ: u32, element: &'static str| match reader.read()? {
            Some(found) if found.typ == typ => Ok(found.value),
            _ => Err(DecodeError::Missing { element, within: WITHIN }),
        };
        let status_code = tlv::read_nni(next(types::STATUS_CODE, "StatusCode")?, "StatusCode")?;
        let status_text = read_text(next(types::STATUS_TEXT, "StatusText")?, "StatusText")?;
        let body = reader.read()?.map(|body| body.wire.to_vec()).unwrap_or_default();
        if !reader.is_empty() {
            return Err(DecodeError::Trailing { len: reader.rest().len(), within: WITHIN });
        }
        Ok(Self { status_code, status_text, body })
    }

    /// Appends the whole element, in the order of ndn-cxx, in which NDNts loses nothing. python-ndn
    /// wants the marking interval, the threshold and the MTU before the flags, so who writes for it
    /// leaves them out.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut value = Vec::new();
        tlv::write_nni(&mut value, types::STATUS_CODE, self.status_code);
        tlv::write_element(&mut value, types::STATUS_TEXT, self.status_text.as_bytes());
        value.extend_from_slice(&self.body);
        tlv::write_element(out, types::CONTROL_RESPONSE, &value);
    }
}
