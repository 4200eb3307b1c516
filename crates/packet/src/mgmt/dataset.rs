//! Entries of status datasets.
#![allow(missing_docs, reason = "the fields are the elements of the specification")]

use super::{for_each_field, read_name, read_nested_name, read_text, types};
use super::{write_nested_name, write_opt_nni};
use crate::error::DecodeError;
use crate::name::Name;
use crate::tlv::{self, Element, Reader};

/// `status/general`: a flat sequence of elements, without an enclosing one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GeneralStatus {
    pub version: String,
    /// Milliseconds since the Unix epoch.
    pub start_timestamp_ms: u64,
    /// Milliseconds since the Unix epoch.
    pub current_timestamp_ms: u64,
    pub name_tree_entry_count: u64,
    pub fib_entry_count: u64,
    pub pit_entry_count: u64,
    pub measurements_entry_count: u64,
    pub cs_entry_count: u64,
    pub in_interest_count: u64,
    pub in_data_count: u64,
    pub in_nack_count: u64,
    pub out_interest_count: u64,
    pub out_data_count: u64,
    pub out_nack_count: u64,
    pub satisfied_interest_count: u64,
    pub unsatisfied_interest_count: u64,
}

impl GeneralStatus {
    fn numbers(&mut self) -> [(u32, &mut u64); 15] {
        [
            (types::START_TIMESTAMP, &mut self.start_timestamp_ms),
            (types::CURRENT_TIMESTAMP, &mut self.current_timestamp_ms),
            (types::N_NAME_TREE_ENTRIES, &mut self.name_tree_entry_count),
            (types::N_FIB_ENTRIES, &mut self.fib_entry_count),
            (types::N_PIT_ENTRIES, &mut self.pit_entry_count),
            (types::N_MEASUREMENTS_ENTRIES, &mut self.measurements_entry_count),
            (types::N_CS_ENTRIES, &mut self.cs_entry_count),
            (types::N_IN_INTERESTS, &mut self.in_interest_count),
            (types::N_IN_DATA, &mut self.in_data_count),
            (types::N_IN_NACKS, &mut self.in_nack_count),
            (types::N_OUT_INTERESTS, &mut self.out_interest_count),
            (types::N_OUT_DATA, &mut self.out_data_count),
            (types::N_OUT_NACKS, &mut self.out_nack_count),
            (types::N_SATISFIED_INTERESTS, &mut self.satisfied_interest_count),
            (types::N_UNSATISFIED_INTERESTS, &mut self.unsatisfied_interest_count),
        ]
    }

    /// Appends the elements.
    pub fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_element(out, types::NFD_VERSION, self.version.as_bytes());
        for (typ, number) in self.clone().numbers() {
            tlv::write_nni(out, typ, *number);
        }
    }

    /// Reads the elements.
    ///
    /// # Errors
    /// [`DecodeError`] when they are malformed.
    pub fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut status = Self::default();
        for_each_field(payload, "GeneralStatus", None, |element| {
            if element.typ == types::NFD_VERSION {
                status.version = read_text(element.value, "NfdVersion")?;
                return Ok(true);
            }
            take_number(&mut status.numbers(), element)
        })?;
        Ok(status)
    }
}

fn take_number(numbers: &mut [(u32, &mut u64)], element: Element<'_>) -> Result<bool, DecodeError> {
    match numbers.iter_mut().find(|(typ, _)| *typ == element.typ) {
        Some((_, number)) => {
            **number = tlv::read_nni(element.value, "counter")?;
            Ok(true)
        }
        None => Ok(false),
    }
}

/// Reads a payload that is a sequence of elements of TYPE 128.
fn decode_list<T>(
    payload: &[u8],
    within: &'static str,
    decode: impl Fn(&[u8]) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let mut reader = Reader::new(payload);
    let mut list = Vec::new();
    while let Some(element) = reader.read()? {
        if element.typ != types::DATASET_ENTRY {
            return Err(DecodeError::Unexpected { typ: element.typ, within });
        }
        list.push(decode(element.value)?);
    }
    Ok(list)
}

/// Counters that are absent count as 0, as forwarders differ in what they count; an entry that does
/// not say which face it is about is of no use.
fn required_face_id(face_id: Option<u64>, within: &'static str) -> Result<u64, DecodeError> {
    face_id.ok_or(DecodeError::Missing { element: "FaceId", within })
}

/// An entry of `faces/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaceStatus {
    pub face_id: u64,
    pub uri: String,
    pub local_uri: String,
    /// Milliseconds.
    pub expiration_period_ms: Option<u64>,
    pub scope: u64,
    pub persistency: u64,
    pub link_type: u64,
    /// Nanoseconds.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Octets.
    pub default_congestion_threshold_bytes: Option<u64>,
    /// Octets.
    pub mtu: Option<u64>,
    pub in_interest_count: u64,
    pub in_data_count: u64,
    pub in_nack_count: u64,
    pub out_interest_count: u64,
    pub out_data_count: u64,
    pub out_nack_count: u64,
    pub in_bytes: u64,
    pub out_bytes: u64,
    pub flags: u64,
    /// The face has lost its link; its routes are not used until it has one again. Forwarders other
    /// than ours do not say so.
    pub is_down: bool,
}

impl FaceStatus {
    /// Numbers that stand before the MTU, and those that stand behind it.
    #[allow(clippy::type_complexity)]
    fn numbers(&mut self) -> ([(u32, &mut u64); 3], [(u32, &mut u64); 9]) {
        (
            [
                (types::FACE_SCOPE, &mut self.scope),
                (types::FACE_PERSISTENCY, &mut self.persistency),
                (types::LINK_TYPE, &mut self.link_type),
            ],
            [
                (types::N_IN_INTERESTS, &mut self.in_interest_count),
                (types::N_IN_DATA, &mut self.in_data_count),
                (types::N_IN_NACKS, &mut self.in_nack_count),
                (types::N_OUT_INTERESTS, &mut self.out_interest_count),
                (types::N_OUT_DATA, &mut self.out_data_count),
                (types::N_OUT_NACKS, &mut self.out_nack_count),
                (types::N_IN_BYTES, &mut self.in_bytes),
                (types::N_OUT_BYTES, &mut self.out_bytes),
                (types::FLAGS, &mut self.flags),
            ],
        )
    }

    /// Appends the entry.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut copy = self.clone();
        let (kinds, counters) = copy.numbers();
        let mut value = Vec::with_capacity(160);
        tlv::write_nni(&mut value, types::FACE_ID, self.face_id);
        tlv::write_element(&mut value, types::URI, self.uri.as_bytes());
        tlv::write_element(&mut value, types::LOCAL_URI, self.local_uri.as_bytes());
        write_opt_nni(&mut value, types::EXPIRATION_PERIOD, self.expiration_period_ms);
        for (typ, number) in kinds {
            tlv::write_nni(&mut value, typ, *number);
        }
        let interval_ns = self.base_congestion_marking_interval_ns;
        write_opt_nni(&mut value, types::BASE_CONGESTION_MARKING_INTERVAL, interval_ns);
        let threshold_bytes = self.default_congestion_threshold_bytes;
        write_opt_nni(&mut value, types::DEFAULT_CONGESTION_THRESHOLD, threshold_bytes);
        write_opt_nni(&mut value, types::MTU, self.mtu);
        for (typ, number) in counters {
            tlv::write_nni(&mut value, typ, *number);
        }
        if self.is_down {
            tlv::write_element(&mut value, types::FACE_DOWN, &[]);
        }
        tlv::write_element(out, types::DATASET_ENTRY, &value);
    }

    /// Reads a whole dataset.
    ///
    /// # Errors
    /// [`DecodeError`] when it is malformed.
    pub fn decode_all(payload: &[u8]) -> Result<Vec<Self>, DecodeError> {
        decode_list(payload, "faces/list", Self::from_value)
    }

    fn from_value(value: &[u8]) -> Result<Self, DecodeError> {
        let mut face = Self::default();
        let mut face_id = None;
        for_each_field(value, "FaceStatus", None, |element| {
            match element.typ {
                types::FACE_ID => face_id = Some(tlv::read_nni(element.value, "FaceId")?),
                types::URI => face.uri = read_text(element.value, "Uri")?,
                types::LOCAL_URI => face.local_uri = read_text(element.value, "LocalUri")?,
                types::EXPIRATION_PERIOD => {
                    let period = tlv::read_nni(element.value, "ExpirationPeriod")?;
                    face.expiration_period_ms = Some(period);
                }
                types::MTU => face.mtu = Some(tlv::read_nni(element.value, "Mtu")?),
                types::FACE_DOWN => face.is_down = true,
                types::BASE_CONGESTION_MARKING_INTERVAL => {
                    let interval = tlv::read_nni(element.value, "BaseCongestionMarkingInterval")?;
                    face.base_congestion_marking_interval_ns = Some(interval);
                }
                types::DEFAULT_CONGESTION_THRESHOLD => {
                    let threshold = tlv::read_nni(element.value, "DefaultCongestionThreshold")?;
                    face.default_congestion_threshold_bytes = Some(threshold);
                }
                _ => {
                    let (mut kinds, mut counters) = face.numbers();
                    return Ok(
                        take_number(&mut kinds, element)? || take_number(&mut counters, element)?
                    );
                }
            }
            Ok(true)
        })?;
        face.face_id = required_face_id(face_id, "FaceStatus")?;
        Ok(face)
    }
}

/// A next hop of a FIB entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NextHop {
    pub face_id: u64,
    pub cost: u64,
}

/// An entry of `fib/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FibEntry {
    pub name: Name,
    pub next_hops: Vec<NextHop>,
}

impl FibEntry {
    /// Appends the entry.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut value = Vec::new();
        self.name.view().encode(&mut value);
        for hop in &self.next_hops {
            let mut record = Vec::new();
            tlv::write_nni(&mut record, types::FACE_ID, hop.face_id);
            tlv::write_nni(&mut record, types::COST, hop.cost);
            tlv::write_element(&mut value, types::NEXT_HOP_RECORD, &record);
        }
        tlv::write_element(out, types::DATASET_ENTRY, &value);
    }

    /// Reads a whole dataset.
    ///
    /// # Errors
    /// [`DecodeError`] when it is malformed.
    pub fn decode_all(payload: &[u8]) -> Result<Vec<Self>, DecodeError> {
        decode_list(payload, "fib/list", |value| {
            let (name, routes) = decode_routes(value, "FibEntry")?;
            let hop = |route: &Route| NextHop { face_id: route.face_id, cost: route.cost };
            Ok(Self { name, next_hops: routes.iter().map(hop).collect() })
        })
    }
}

/// A route of a RIB entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Route {
    pub face_id: u64,
    pub origin: u64,
    pub cost: u64,
    pub flags: u64,
    /// Milliseconds.
    pub expiration_period_ms: Option<u64>,
}

impl Route {
    fn from_value(value: &[u8]) -> Result<Self, DecodeError> {
        let mut route = Self::default();
        let mut face_id = None;
        for_each_field(value, "Route", None, |element| {
            let number = tlv::read_nni(element.value, "Route field");
            match element.typ {
                types::FACE_ID => face_id = Some(number?),
                types::ORIGIN => route.origin = number?,
                types::COST => route.cost = number?,
                types::FLAGS => route.flags = number?,
                types::EXPIRATION_PERIOD => route.expiration_period_ms = Some(number?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        route.face_id = required_face_id(face_id, "Route")?;
        Ok(route)
    }
}

/// The name and the routes of a RIB entry, or of a FIB entry, whose next hops are routes with fewer
/// fields.
fn decode_routes(value: &[u8], within: &'static str) -> Result<(Name, Vec<Route>), DecodeError> {
    let (mut name, mut routes) = (None, Vec::new());
    for_each_field(value, within, Some(types::NEXT_HOP_RECORD), |element| {
        match element.typ {
            crate::types::NAME => name = Some(read_name(element.value)?),
            types::NEXT_HOP_RECORD => routes.push(Route::from_value(element.value)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((name.ok_or(DecodeError::Missing { element: "Name", within })?, routes))
}

/// An entry of `rib/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RibEntry {
    pub name: Name,
    pub routes: Vec<Route>,
}

impl RibEntry {
    /// Appends the entry.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut value = Vec::new();
        self.name.view().encode(&mut value);
        for route in &self.routes {
            let mut record = Vec::new();
            tlv::write_nni(&mut record, types::FACE_ID, route.face_id);
            tlv::write_nni(&mut record, types::ORIGIN, route.origin);
            tlv::write_nni(&mut record, types::COST, route.cost);
            tlv::write_nni(&mut record, types::FLAGS, route.flags);
            write_opt_nni(&mut record, types::EXPIRATION_PERIOD, route.expiration_period_ms);
            tlv::write_element(&mut value, types::NEXT_HOP_RECORD, &record);
        }
        tlv::write_element(out, types::DATASET_ENTRY, &value);
    }

    /// Reads a whole dataset.
    ///
    /// # Errors
    /// [`DecodeError`] when it is malformed.
    pub fn decode_all(payload: &[u8]) -> Result<Vec<Self>, DecodeError> {
        decode_list(payload, "rib/list", |value| {
            let (name, routes) = decode_routes(value, "RibEntry")?;
            Ok(Self { name, routes })
        })
    }
}

/// `cs/info`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CsInfo {
    pub capacity: u64,
    pub flags: u64,
    pub entry_count: u64,
    pub hit_count: u64,
    pub miss_count: u64,
}

impl CsInfo {
    /// Appends the dataset.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut value = Vec::new();
        tlv::write_nni(&mut value, types::CAPACITY, self.capacity);
        tlv::write_nni(&mut value, types::FLAGS, self.flags);
        tlv::write_nni(&mut value, types::N_CS_ENTRIES, self.entry_count);
        tlv::write_nni(&mut value, types::N_HITS, self.hit_count);
        tlv::write_nni(&mut value, types::N_MISSES, self.miss_count);
        tlv::write_element(out, types::DATASET_ENTRY, &value);
    }

    /// Reads the dataset.
    ///
    /// # Errors
    /// [`DecodeError`] when it is malformed.
    pub fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let outer = tlv::read_only(payload, types::DATASET_ENTRY, "cs/info")?;
        let mut info = Self::default();
        for_each_field(outer.value, "CsInfo", None, |element| {
            let number = tlv::read_nni(element.value, "CsInfo field");
            match element.typ {
                types::CAPACITY => info.capacity = number?,
                types::FLAGS => info.flags = number?,
                types::N_CS_ENTRIES => info.entry_count = number?,
                types::N_HITS => info.hit_count = number?,
                types::N_MISSES => info.miss_count = number?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(info)
    }
}

/// An entry of `strategy-choice/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StrategyChoice {
    pub name: Name,
    pub strategy: Name,
}

impl StrategyChoice {
    /// Appends the entry.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut value = Vec::new();
        self.name.view().encode(&mut value);
        write_nested_name(&mut value, types::STRATEGY, &self.strategy);
        tlv::write_element(out, types::DATASET_ENTRY, &value);
    }

    /// Reads a whole dataset.
    ///
    /// # Errors
    /// [`DecodeError`] when it is malformed.
    pub fn decode_all(payload: &[u8]) -> Result<Vec<Self>, DecodeError> {
        const WITHIN: &str = "StrategyChoice";
        decode_list(payload, "strategy-choice/list", |value| {
            let (mut name, mut strategy) = (None, None);
            for_each_field(value, WITHIN, None, |element| {
                match element.typ {
                    crate::types::NAME => name = Some(read_name(element.value)?),
                    types::STRATEGY => {
                        strategy = Some(read_nested_name(element.value, "Strategy")?)
                    }
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            let missing = |element| DecodeError::Missing { element, within: WITHIN };
            Ok(Self {
                name: name.ok_or(missing("Name"))?,
                strategy: strategy.ok_or(missing("Strategy"))?,
            })
        })
    }
}
