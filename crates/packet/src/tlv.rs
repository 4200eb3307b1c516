//! TYPE-LENGTH-VALUE: reading with bounds, writing in shortest form.
//!
//! spec: NDN Packet Format §1.2 "Variable-Size Encoding" and "NonNegativeInteger".

use crate::error::DecodeError;
use crate::types;

/// One element as it stands in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element<'a> {
    /// TLV-TYPE.
    pub typ: u32,
    /// TLV-VALUE.
    pub value: &'a [u8],
    /// The whole element with TYPE and LENGTH.
    pub wire: &'a [u8],
}

/// Reads elements one after the other.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    input: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader over `input`, which is usually the value of an enclosing element.
    pub fn new(input: &'a [u8]) -> Self {
        Self { input, at: 0 }
    }

    /// Octets consumed so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// True if nothing is left.
    pub fn is_empty(&self) -> bool {
        self.at >= self.input.len()
    }

    /// The octets not yet consumed.
    pub fn rest(&self) -> &'a [u8] {
        &self.input[self.at..]
    }

    /// The TYPE of the next element without consuming it; `None` at the end.
    ///
    /// # Errors
    /// `Truncated`, `NotShortest` or `InvalidType`.
    pub fn peek_type(&self) -> Result<Option<u32>, DecodeError> {
        if self.is_empty() {
            return Ok(None);
        }
        let mut at = self.at;
        read_type(self.input, &mut at).map(Some)
    }

    /// The next element; `None` at the end.
    ///
    /// # Errors
    /// `Truncated`, `NotShortest` or `InvalidType`.
    #[inline]
    pub fn read(&mut self) -> Result<Option<Element<'a>>, DecodeError> {
        // Nearly all elements have TYPE and LENGTH in one octet each.
        let rest = self.rest();
        if let [typ @ 1..=0xFC, len @ 0..=0xFC, ..] = *rest
            && let Some(wire) = rest.get(..2 + usize::from(len))
        {
            self.at += wire.len();
            return Ok(Some(Element { typ: u32::from(typ), value: &wire[2..], wire }));
        }
        if rest.is_empty() {
            return Ok(None);
        }
        self.read_any().map(Some)
    }

    #[inline(never)]
    fn read_any(&mut self) -> Result<Element<'a>, DecodeError> {
        let start = self.at;
        let mut at = start;
        let typ = read_type(self.input, &mut at)?;
        let len = read_var(self.input, &mut at)?;
        let left = self.input.len() - at;
        if len > left as u64 {
            return Err(DecodeError::Truncated { within: "element" });
        }
        let end = at + len as usize;
        self.at = end;
        Ok(Element { typ, value: &self.input[at..end], wire: &self.input[start..end] })
    }
}

/// Reads known elements in a fixed order and applies the evolvability rule to all others.
///
/// spec: NDN Packet Format §1.3: a critical element that is unknown, repeated or out of order
/// refuses the packet; a non-critical one is passed over.
#[derive(Debug, Clone)]
pub(crate) struct OrderedReader<'a> {
    reader: Reader<'a>,
    order: &'static [u32],
    /// Places in `order` below this one are taken or passed.
    place_min: usize,
    within: &'static str,
}

impl<'a> OrderedReader<'a> {
    pub(crate) fn new(input: &'a [u8], order: &'static [u32], within: &'static str) -> Self {
        Self { reader: Reader::new(input), order, place_min: 0, within }
    }

    /// Octets consumed so far: the end of the element read last.
    pub(crate) fn position(&self) -> usize {
        self.reader.position()
    }

    /// The next known element that stands in its place; `None` at the end.
    #[inline]
    pub(crate) fn read(&mut self) -> Result<Option<Element<'a>>, DecodeError> {
        while let Some(element) = self.reader.read()? {
            let typ = element.typ;
            let rest = &self.order[self.place_min..];
            if let Some(passed) = rest.iter().position(|known| *known == typ) {
                self.place_min += passed + 1;
                return Ok(Some(element));
            }
            if types::is_critical(typ) {
                return Err(self.refuse(typ));
            }
        }
        Ok(None)
    }

    fn refuse(&self, typ: u32) -> DecodeError {
        let within = self.within;
        if self.order.contains(&typ) {
            DecodeError::OutOfOrder { typ, within }
        } else {
            DecodeError::UnknownCritical { typ, within }
        }
    }

    /// The first element, which must be the first in the order: nothing may stand before a name.
    pub(crate) fn read_first(&mut self, name: &'static str) -> Result<Element<'a>, DecodeError> {
        let missing = DecodeError::Missing { element: name, within: self.within };
        let first = self.reader.read()?.ok_or(missing)?;
        if self.order.first() != Some(&first.typ) {
            return Err(missing);
        }
        self.place_min = 1;
        Ok(first)
    }
}

#[inline]
fn read_type(input: &[u8], at: &mut usize) -> Result<u32, DecodeError> {
    let typ = read_var(input, at)?;
    match u32::try_from(typ) {
        Ok(typ) if typ != 0 => Ok(typ),
        _ => Err(DecodeError::InvalidType { typ, within: "element" }),
    }
}

/// Reads a VAR-NUMBER at `at` and moves behind it.
#[inline]
fn read_var(input: &[u8], at: &mut usize) -> Result<u64, DecodeError> {
    let offset = *at;
    let truncated = DecodeError::Truncated { within: "element" };
    let first = *input.get(offset).ok_or(truncated)?;
    let (width, smallest) = match first {
        0xFD => (2, 0xFD),
        0xFE => (4, 0x1_0000),
        0xFF => (8, 0x1_0000_0000),
        small => {
            *at = offset + 1;
            return Ok(u64::from(small));
        }
    };
    let octets = input.get(offset + 1..offset + 1 + width).ok_or(truncated)?;
    let number = match *octets {
        // The length of a segment's content is of this kind.
        [a, b] => u64::from(u16::from_be_bytes([a, b])),
        _ => octets.iter().fold(0u64, |acc, octet| acc << 8 | u64::from(*octet)),
    };
    if number < smallest {
        return Err(DecodeError::NotShortest { offset });
    }
    *at = offset + 1 + width;
    Ok(number)
}

/// The length of the first element of a byte stream, TYPE and LENGTH included.
///
/// `Ok(None)` means that the TYPE and LENGTH are not there in full; the value need not be there.
///
/// # Errors
/// `NotShortest` or `InvalidType`: the stream cannot be resynchronised.
pub fn first_element_len(input: &[u8]) -> Result<Option<u64>, DecodeError> {
    let mut at = 0;
    let typ = read_type(input, &mut at);
    let len = typ.and_then(|_| read_var(input, &mut at));
    match len {
        Ok(len) => Ok(Some(len.saturating_add(at as u64))),
        Err(DecodeError::Truncated { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads exactly one element of TYPE `typ` that fills `wire`.
///
/// # Errors
/// As [`Reader::read`]; `Unexpected` for another TYPE, `Trailing` for octets after it.
pub fn read_only<'a>(
    wire: &'a [u8],
    typ: u32,
    within: &'static str,
) -> Result<Element<'a>, DecodeError> {
    let mut reader = Reader::new(wire);
    let element = reader.read()?.ok_or(DecodeError::Truncated { within })?;
    if element.typ != typ {
        return Err(DecodeError::Unexpected { typ: element.typ, within });
    }
    if !reader.is_empty() {
        return Err(DecodeError::Trailing { len: reader.rest().len(), within });
    }
    Ok(element)
}

/// Octets that [`write_var`] needs for `number`.
pub const fn var_len(number: u64) -> usize {
    match number {
        0..=0xFC => 1,
        0xFD..=0xFFFF => 3,
        0x1_0000..=0xFFFF_FFFF => 5,
        _ => 9,
    }
}

/// Octets of a whole element with a value of `len` octets.
pub const fn element_len(typ: u32, len: usize) -> usize {
    var_len(typ as u64) + var_len(len as u64) + len
}

/// Appends a VAR-NUMBER.
#[inline]
pub fn write_var(out: &mut Vec<u8>, number: u64) {
    match number {
        0..=0xFC => out.push(number as u8),
        0xFD..=0xFFFF => {
            out.push(0xFD);
            out.extend_from_slice(&(number as u16).to_be_bytes());
        }
        0x1_0000..=0xFFFF_FFFF => {
            out.push(0xFE);
            out.extend_from_slice(&(number as u32).to_be_bytes());
        }
        _ => {
            out.push(0xFF);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

/// Appends TYPE and LENGTH.
#[inline]
pub fn write_tl(out: &mut Vec<u8>, typ: u32, len: usize) {
    write_var(out, u64::from(typ));
    write_var(out, len as u64);
}

/// Appends an element with the given value.
#[inline]
pub fn write_element(out: &mut Vec<u8>, typ: u32, value: &[u8]) {
    write_tl(out, typ, value.len());
    out.extend_from_slice(value);
}

/// Octets of a NonNegativeInteger: 1, 2, 4 or 8.
pub const fn nni_len(number: u64) -> usize {
    match number {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    }
}

/// Octets of an element that holds a NonNegativeInteger.
pub const fn nni_element_len(typ: u32, number: u64) -> usize {
    element_len(typ, nni_len(number))
}

/// Appends an element that holds a NonNegativeInteger.
pub fn write_nni(out: &mut Vec<u8>, typ: u32, number: u64) {
    let len = nni_len(number);
    write_tl(out, typ, len);
    out.extend_from_slice(&number.to_be_bytes()[8 - len..]);
}

/// Reads the value of a NonNegativeInteger.
///
/// The packet format wants the shortest width; deployed file servers write fixed widths, so any of
/// 1, 2, 4 or 8 octets is taken here and shortness is checked only where a name depends on it.
///
/// # Errors
/// `BadLength` for another width.
#[inline]
pub fn read_nni(value: &[u8], element: &'static str) -> Result<u64, DecodeError> {
    match *value {
        [a] => Ok(u64::from(a)),
        [a, b] => Ok(u64::from(u16::from_be_bytes([a, b]))),
        [a, b, c, d] => Ok(u64::from(u32::from_be_bytes([a, b, c, d]))),
        [a, b, c, d, e, f, g, h] => Ok(u64::from_be_bytes([a, b, c, d, e, f, g, h])),
        _ => Err(DecodeError::BadLength { element, len: value.len() }),
    }
}
