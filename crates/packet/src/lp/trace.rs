//! The path trace: how an answer came, told by those it came through.
//!
//! ```text
//! PathTrace = 936 LENGTH *Hop           empty on an Interest: its answer is to be traced
//! Hop       = 129 LENGTH [Node] Origin [Peer] [Waited]
//! Node      = 131 LENGTH *OCTET         UTF-8, at most 64 octets
//! Origin    = 133 LENGTH NonNegativeInteger
//! Peer      = 135 LENGTH *OCTET         UTF-8, at most 128 octets
//! Waited    = 137 LENGTH NonNegativeInteger   microseconds
//! ```
//! Hops stand in the order in which they are added: who had the Data first, the reader's own
//! forwarder last. Nobody signs them: a trace is for finding out, never for deciding.

use crate::error::DecodeError;
use crate::{tlv, types};

const WITHIN: &str = "PathTrace";
const HOP: &str = "Hop";

/// Octets of all hops together; one that finds no room is left out.
pub const TRACE_BYTES_MAX: usize = 512;
/// Octets of a node's name.
pub const NODE_BYTES_MAX: usize = 64;
/// Octets of a peer's FaceUri.
pub const PEER_BYTES_MAX: usize = 128;

/// The trace of an answer that comes from its publisher's file server.
pub const FROM_PUBLISHER: &[u8] = &[129, 3, 133, 1, 3];
/// The trace of an answer that comes from a file server with a copy.
pub const FROM_MIRROR: &[u8] = &[129, 3, 133, 1, 4];

/// Origin of an answer, as a hop saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Its content store.
    Cache,
    /// A program on the same machine.
    Program,
    /// A neighbour.
    Neighbour,
    /// It is the publisher's file server.
    Publisher,
    /// It is a file server that has a copy.
    Mirror,
    /// Something that this version does not know.
    Other(u64),
}

impl Origin {
    fn from_number(number: u64) -> Self {
        match number {
            0 => Self::Cache,
            1 => Self::Program,
            2 => Self::Neighbour,
            3 => Self::Publisher,
            4 => Self::Mirror,
            other => Self::Other(other),
        }
    }

    fn number(self) -> u64 {
        match self {
            Self::Cache => 0,
            Self::Program => 1,
            Self::Neighbour => 2,
            Self::Publisher => 3,
            Self::Mirror => 4,
            Self::Other(number) => number,
        }
    }
}

/// One that an answer came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop<'a> {
    /// Name of the machine, where its operator allows to tell it.
    pub node: Option<&'a str>,
    /// Origin of the answer, seen from there.
    pub origin: Origin,
    /// FaceUri of the neighbour, where the operator allows to tell it.
    pub peer: Option<&'a str>,
    /// Time from the question to the answer.
    pub waited_us: Option<u64>,
}

impl Hop<'_> {
    /// Appends this hop to a trace; false, with nothing appended, if it finds no room. Texts that
    /// are too long are left out.
    pub fn append(&self, trace: &mut Vec<u8>) -> bool {
        let node = self.node.filter(|text| text.len() <= NODE_BYTES_MAX);
        let peer = self.peer.filter(|text| text.len() <= PEER_BYTES_MAX);
        let text =
            |typ: u32, text: Option<&str>| text.map_or(0, |text| tlv::element_len(typ, text.len()));
        let origin = self.origin.number();
        let waited = |us: u64| tlv::nni_element_len(types::TRACE_WAITED, us);
        let len = text(types::TRACE_NODE, node)
            + tlv::nni_element_len(types::TRACE_ORIGIN, origin)
            + text(types::TRACE_PEER, peer)
            + self.waited_us.map_or(0, waited);
        if trace.len() + tlv::element_len(types::TRACE_HOP, len) > TRACE_BYTES_MAX {
            return false;
        }
        tlv::write_tl(trace, types::TRACE_HOP, len);
        if let Some(node) = node {
            tlv::write_element(trace, types::TRACE_NODE, node.as_bytes());
        }
        tlv::write_nni(trace, types::TRACE_ORIGIN, origin);
        if let Some(peer) = peer {
            tlv::write_element(trace, types::TRACE_PEER, peer.as_bytes());
        }
        if let Some(us) = self.waited_us {
            tlv::write_nni(trace, types::TRACE_WAITED, us);
        }
        true
    }
}

/// Decodes all hops of a trace. Unknown elements are ignored.
///
/// # Errors
/// [`DecodeError`] of the first rule broken.
pub fn hops(trace: &[u8]) -> Result<Vec<Hop<'_>>, DecodeError> {
    if trace.len() > TRACE_BYTES_MAX {
        return Err(DecodeError::BadLength { element: WITHIN, len: trace.len() });
    }
    let mut reader = tlv::Reader::new(trace);
    let mut hops = Vec::new();
    while let Some(element) = reader.read()? {
        if element.typ == types::TRACE_HOP {
            hops.push(hop(element.value)?);
        }
    }
    Ok(hops)
}

fn hop(value: &[u8]) -> Result<Hop<'_>, DecodeError> {
    let (mut node, mut origin, mut peer, mut waited_us) = (None, None, None, None);
    let mut reader = tlv::Reader::new(value);
    while let Some(element) = reader.read()? {
        match element.typ {
            types::TRACE_NODE => node = Some(text(element.value, NODE_BYTES_MAX, "Node")?),
            types::TRACE_ORIGIN => {
                origin = Some(Origin::from_number(tlv::read_nni(element.value, "Origin")?));
            }
            types::TRACE_PEER => peer = Some(text(element.value, PEER_BYTES_MAX, "Peer")?),
            types::TRACE_WAITED => waited_us = Some(tlv::read_nni(element.value, "Waited")?),
            _ => {}
        }
    }
    let origin = origin.ok_or(DecodeError::Missing { element: "Origin", within: HOP })?;
    Ok(Hop { node, origin, peer, waited_us })
}

fn text<'a>(value: &'a [u8], max: usize, element: &'static str) -> Result<&'a str, DecodeError> {
    if value.len() > max {
        return Err(DecodeError::BadLength { element, len: value.len() });
    }
    std::str::from_utf8(value).map_err(|_| DecodeError::BadValue { element })
}

#[cfg(test)]
mod tests {
    use super::{FROM_MIRROR, FROM_PUBLISHER, Hop, NODE_BYTES_MAX, Origin, TRACE_BYTES_MAX, hops};

    const NEAR: Hop<'_> = Hop {
        node: Some("right"),
        origin: Origin::Neighbour,
        peer: Some("tcp4://10.9.1.1:6363"),
        waited_us: Some(70_000),
    };

    #[test]
    fn hops_come_back_in_order() {
        let far = Hop { node: None, origin: Origin::Cache, peer: None, waited_us: None };
        let other = Hop { origin: Origin::Other(77), ..far };
        let mut trace = Vec::new();
        assert_eq!(hops(&trace).unwrap(), []);
        for hop in [far, other, NEAR] {
            assert!(hop.append(&mut trace));
        }
        assert_eq!(hops(&trace).unwrap(), [far, other, NEAR]);
    }

    #[test]
    fn what_file_servers_say_is_a_hop() {
        for (trace, origin) in [(FROM_PUBLISHER, Origin::Publisher), (FROM_MIRROR, Origin::Mirror)]
        {
            let hop = Hop { node: None, origin, peer: None, waited_us: None };
            assert_eq!(hops(trace).unwrap(), [hop]);
        }
    }

    #[test]
    fn a_trace_is_bounded_and_long_texts_are_left_out() {
        let long = "x".repeat(NODE_BYTES_MAX + 1);
        let mut trace = Vec::new();
        assert!(Hop { node: Some(&long), ..NEAR }.append(&mut trace));
        assert_eq!(hops(&trace).unwrap()[0].node, None);
        while NEAR.append(&mut trace) {}
        assert!(trace.len() <= TRACE_BYTES_MAX && hops(&trace).unwrap().len() > 10);
        assert!(hops(&[0; TRACE_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn what_is_malformed_is_refused_and_what_is_unknown_ignored() {
        // A hop without Origin, a name that is no UTF-8, one that is cut, a number of 3 octets.
        for bad in [
            &[129, 0][..],
            &[129, 6, 131, 1, 0xff, 133, 1, 0],
            &[129, 9, 133],
            &[129, 5, 133, 3, 0, 0, 0],
        ] {
            assert!(hops(bad).is_err(), "{bad:?}");
        }
        let found = hops(&[140, 1, 5, 129, 6, 133, 1, 0, 139, 1, 9]).unwrap();
        assert_eq!(found[0].origin, Origin::Cache);
    }
}
