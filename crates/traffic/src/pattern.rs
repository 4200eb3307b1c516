//! Patterns of Interests: a prefix, numbers below it, and the fields of the Interest.
//!
//! All Interests of a pattern have the same length and differ in a few octets at known places, so
//! one is encoded at the start and patched for each that is sent.

use byname_packet::lp::{self, LpHeader};
use byname_packet::{Component, Interest, InterestBuilder, MAX_PACKET_BYTES, Name, NameRef};
use byname_packet::{tlv, types};

use crate::error::TrafficError;
use crate::numbers::{Distribution, Numbers, mix};

/// Octets of our PIT tokens. One foreign forwarder takes tokens of this length only.
pub(crate) const TOKEN_BYTES: usize = 6;
/// Octets of a number as a component: TYPE, LENGTH and eight octets.
const NUMBER_COMPONENT_BYTES: usize = 10;
/// The first segment number whose shortest form has eight octets.
const WIDE_NUMBER: u64 = 1 << 32;

/// Which component carries the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberKind {
    /// A generic component of eight octets.
    Generic,
    /// A segment number, as in files; it must begin at 2^32 or above.
    Segment,
}

/// One part of a mix.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    /// Names begin with this.
    pub prefix: Name,
    /// Frequency, in proportion to the other parts.
    pub weight: u32,
    /// Number of different components between prefix and number, as if there were as many routes.
    pub spread: Option<u64>,
    /// The last component.
    pub numbers: Numbers,
    /// Its type.
    pub number_kind: NumberKind,
    /// True if Interests have CanBePrefix.
    pub can_be_prefix: bool,
    /// True if Interests have MustBeFresh.
    pub must_be_fresh: bool,
    /// InterestLifetime, and how long an answer is waited for.
    pub lifetime_ms: u64,
}

impl Pattern {
    /// Consecutive numbers below `prefix`, four seconds of lifetime.
    pub fn new(prefix: Name) -> Self {
        Self {
            prefix,
            weight: 1,
            spread: None,
            numbers: Numbers::sequential(0),
            number_kind: NumberKind::Generic,
            can_be_prefix: false,
            must_be_fresh: false,
            lifetime_ms: byname_packet::interest::DEFAULT_LIFETIME_MS,
        }
    }

    /// Checks what the fields allow by themselves.
    pub(crate) fn check(&self, window: usize) -> Result<(), TrafficError> {
        match self.numbers.range {
            Some(range) if range < window as u64 => {
                return Err(TrafficError::RangeBelowWindow { range, window });
            }
            None if self.numbers.distribution != Distribution::Sequential => {
                return Err(TrafficError::EndlessRange);
            }
            _ => {}
        }
        let is_segment = self.number_kind == NumberKind::Segment;
        if is_segment && self.numbers.first < WIDE_NUMBER {
            return Err(TrafficError::SegmentTooLow);
        }
        Ok(())
    }
}

/// The component of a route among `spread` routes below a prefix.
pub(crate) fn route_component(route: u64) -> [u8; 8] {
    route.to_be_bytes()
}

/// An encoded Interest with its link header, and where it differs from the next.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    frame: Vec<u8>,
    token_at: usize,
    nonce_at: usize,
    /// Where the value of the name begins, and its octets.
    name_at: usize,
    name_len: usize,
    spread: Option<u64>,
    can_be_prefix: bool,
}

impl Template {
    pub(crate) fn new(pattern: &Pattern) -> Result<Self, TrafficError> {
        let mut name = pattern.prefix.clone();
        if pattern.spread.is_some() {
            name.push_generic(&route_component(0));
        }
        let typ = match pattern.number_kind {
            NumberKind::Generic => types::GENERIC,
            NumberKind::Segment => types::SEGMENT,
        };
        name.push(Component { typ, value: &[0; 8] });
        let mut wire = Vec::new();
        InterestBuilder::new(name.view())
            .can_be_prefix(pattern.can_be_prefix)
            .must_be_fresh(pattern.must_be_fresh)
            .nonce([0; 4])
            .lifetime_ms(pattern.lifetime_ms)
            .encode(&mut wire);
        let too_long = || TrafficError::PrefixTooLong { prefix: pattern.prefix.clone() };
        if wire.len() > MAX_PACKET_BYTES / 2 {
            return Err(too_long());
        }
        let (name_in_wire, nonce_in_wire) = places(&wire).ok_or_else(too_long)?;
        let mut frame = Vec::new();
        let token = [0; TOKEN_BYTES];
        let header = LpHeader { pit_token: Some(&token), ..LpHeader::default() };
        lp::encode_header(&header, None, wire.len(), &mut frame);
        // The token is the only field, so it ends where Fragment's TYPE and LENGTH begin.
        let fragment_tl = tlv::element_len(types::LP_FRAGMENT, wire.len()) - wire.len();
        let wire_at = frame.len();
        frame.extend_from_slice(&wire);
        Ok(Self {
            token_at: wire_at - fragment_tl - TOKEN_BYTES,
            nonce_at: wire_at + nonce_in_wire,
            name_at: wire_at + name_in_wire,
            name_len: name.view().value().len(),
            frame,
            spread: pattern.spread,
            can_be_prefix: pattern.can_be_prefix,
        })
    }

    /// The frame for one number.
    #[inline]
    pub(crate) fn patch(&mut self, token: [u8; TOKEN_BYTES], nonce: u32, number: u64) -> &[u8] {
        let name_end = self.name_at + self.name_len;
        self.put(self.token_at, &token);
        self.put(self.nonce_at, &nonce.to_be_bytes());
        self.put(name_end - 8, &number.to_be_bytes());
        if let Some(spread) = self.spread {
            let route = route_component(mix(number) % spread);
            self.put(name_end - NUMBER_COMPONENT_BYTES - 8, &route);
        }
        &self.frame
    }

    #[inline]
    fn put(&mut self, at: usize, octets: &[u8]) {
        self.frame[at..at + octets.len()].copy_from_slice(octets);
    }

    /// True if Data of this name answers the Interest for `number`.
    #[inline]
    pub(crate) fn is_answered_by(&self, name: NameRef<'_>, number: u64) -> bool {
        let value = name.value();
        let own = &self.frame[self.name_at..self.name_at + self.name_len];
        let may_be_longer = self.can_be_prefix && value.len() > own.len();
        if value.len() != own.len() && !may_be_longer {
            return false;
        }
        let number_at = own.len() - 8;
        if value[number_at..own.len()] != number.to_be_bytes() {
            return false;
        }
        let Some(spread) = self.spread else { return value[..number_at] == own[..number_at] };
        let route_at = number_at - NUMBER_COMPONENT_BYTES;
        value[..route_at] == own[..route_at]
            && value[route_at..route_at + 8] == route_component(mix(number) % spread)
            && value[route_at + 8..number_at] == own[route_at + 8..number_at]
    }
}

/// Where the value of the name and that of the nonce begin in an Interest.
fn places(wire: &[u8]) -> Option<(usize, usize)> {
    let outer = tlv::read_only(wire, types::INTEREST, "Interest").ok()?;
    let value_at = wire.len() - outer.value.len();
    let mut reader = tlv::Reader::new(outer.value);
    let name = reader.read().ok()??;
    let name_at = value_at + name.wire.len() - name.value.len();
    while let Some(element) = reader.read().ok()? {
        if element.typ == types::NONCE {
            let nonce_at = value_at + reader.position() - element.value.len();
            return Interest::decode(wire).ok().map(|_| (name_at, nonce_at));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_packet::lp::LpPacket;

    fn patched(pattern: &Pattern, number: u64) -> (Template, Vec<u8>) {
        let mut template = Template::new(pattern).unwrap();
        let frame = template.patch([1, 2, 3, 4, 5, 6], 0xDEAD_BEEF, number).to_vec();
        (template, frame)
    }

    /// The packet's own decoder reads the octets that a patch writes.
    #[test]
    fn patches_reach_their_places() {
        for (spread, number_kind) in [
            (None, NumberKind::Generic),
            (Some(10), NumberKind::Generic),
            (None, NumberKind::Segment),
            (Some(1000), NumberKind::Segment),
        ] {
            let mut pattern = Pattern::new("/a/bc".parse().unwrap());
            (pattern.spread, pattern.number_kind) = (spread, number_kind);
            pattern.must_be_fresh = spread.is_some();
            pattern.can_be_prefix = number_kind == NumberKind::Segment;
            pattern.lifetime_ms = 700;
            let number = WIDE_NUMBER + 77;
            let (template, frame) = patched(&pattern, number);
            let packet = LpPacket::decode(&frame).unwrap();
            assert_eq!(packet.header.pit_token, Some(&[1, 2, 3, 4, 5, 6][..]));
            let interest = Interest::decode(packet.fragment.unwrap()).unwrap();
            assert_eq!(interest.nonce, Some(0xDEAD_BEEFu32.to_be_bytes()));
            assert_eq!(interest.lifetime_ms, Some(700));
            assert_eq!(interest.must_be_fresh, pattern.must_be_fresh);
            assert_eq!(interest.can_be_prefix, pattern.can_be_prefix);
            let mut name: Name = "/a/bc".parse().unwrap();
            if let Some(spread) = spread {
                name.push_generic(&(mix(number) % spread).to_be_bytes());
            }
            match number_kind {
                NumberKind::Generic => name.push_generic(&number.to_be_bytes()),
                NumberKind::Segment => name.push_segment(number),
            }
            assert_eq!(interest.name, name.view());
            assert!(template.is_answered_by(name.view(), number));
        }
    }

    #[test]
    fn only_the_name_asked_for_answers() {
        let mut pattern = Pattern::new("/a".parse().unwrap());
        pattern.spread = Some(4);
        let (template, _) = patched(&pattern, 9);
        let route = (mix(9) % 4).to_be_bytes();
        let name = |prefix: &str, route: &[u8], number: u64| {
            let name: Name = prefix.parse().unwrap();
            name.with_generic(route).with_generic(&number.to_be_bytes())
        };
        assert!(template.is_answered_by(name("/a", &route, 9).view(), 9));
        for other in [
            name("/b", &route, 9),
            name("/a", &[0xFF; 8], 9),
            name("/a", &route, 8),
            name("/a", &route, 9).with_generic(b"more"),
            "/a".parse().unwrap(),
        ] {
            assert!(!template.is_answered_by(other.view(), 9), "{other}");
        }
        pattern.can_be_prefix = true;
        let (template, _) = patched(&pattern, 9);
        let longer = name("/a", &route, 9).with_generic(b"more");
        assert!(template.is_answered_by(longer.view(), 9));
    }

    #[test]
    fn patterns_that_cannot_work_are_refused() {
        let mut pattern = Pattern::new("/a".parse().unwrap());
        assert!(pattern.check(64).is_ok());
        pattern.numbers.range = Some(10);
        assert!(matches!(pattern.check(64), Err(TrafficError::RangeBelowWindow { .. })));
        pattern.number_kind = NumberKind::Segment;
        assert!(matches!(pattern.check(10), Err(TrafficError::SegmentTooLow)));
        let long = Name::new().with_generic(&[0; 8000]);
        assert!(Template::new(&Pattern::new(long)).is_err());
    }
}
