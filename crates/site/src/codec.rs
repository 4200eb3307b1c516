//! Elements in a fixed order: written one after the other, read with nothing left out.

use byname_packet::{DecodeError, tlv, types};

use crate::numbers::Tag;

/// Longest name of a person, group, space, server or label, in octets.
const TEXT_BYTES_MAX: usize = 255;

/// Appends elements.
#[derive(Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn octets(&mut self, tag: Tag, value: &[u8]) {
        tlv::write_element(&mut self.0, tag.typ, value);
    }

    pub(crate) fn number(&mut self, tag: Tag, value: impl Into<u64>) {
        tlv::write_nni(&mut self.0, tag.typ, value.into());
    }

    pub(crate) fn text(&mut self, tag: Tag, value: &str) {
        self.octets(tag, value.as_bytes());
    }

    /// Two octets, as metadata have them.
    pub(crate) fn pair(&mut self, tag: Tag, value: u16) {
        self.octets(tag, &value.to_be_bytes());
    }

    /// An empty element if `is_set`.
    pub(crate) fn flag(&mut self, tag: Tag, is_set: bool) {
        if is_set {
            self.octets(tag, &[]);
        }
    }

    pub(crate) fn nested(&mut self, tag: Tag, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.octets(tag, &inner.0);
    }
}

/// Takes elements in the order in which they must stand.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    reader: tlv::Reader<'a>,
    within: &'static str,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(value: &'a [u8], within: &'static str) -> Self {
        Self { reader: tlv::Reader::new(value), within }
    }

    /// The next element, whatever it is.
    pub(crate) fn peek(&self) -> Result<Option<u32>, DecodeError> {
        self.reader.peek_type()
    }

    /// The value of the next element if it is this one.
    pub(crate) fn optional(&mut self, tag: Tag) -> Result<Option<&'a [u8]>, DecodeError> {
        Ok(self.optional_wire(tag)?.map(|element| element.value))
    }

    /// The next element if it is this one.
    pub(crate) fn optional_wire(
        &mut self,
        tag: Tag,
    ) -> Result<Option<tlv::Element<'a>>, DecodeError> {
        if self.reader.peek_type()? == Some(tag.typ) { self.reader.read() } else { Ok(None) }
    }

    pub(crate) fn octets(&mut self, tag: Tag) -> Result<&'a [u8], DecodeError> {
        self.optional(tag)?.ok_or_else(|| self.missing(tag))
    }

    pub(crate) fn wire(&mut self, tag: Tag) -> Result<&'a [u8], DecodeError> {
        let element = self.optional_wire(tag)?;
        element.map(|element| element.wire).ok_or_else(|| self.missing(tag))
    }

    fn missing(&self, tag: Tag) -> DecodeError {
        DecodeError::Missing { element: tag.name, within: self.within }
    }

    /// An element that has elements.
    pub(crate) fn nested(&mut self, tag: Tag) -> Result<Fields<'a>, DecodeError> {
        Ok(Fields::new(self.octets(tag)?, tag.name))
    }

    pub(crate) fn optional_nested(&mut self, tag: Tag) -> Result<Option<Fields<'a>>, DecodeError> {
        Ok(self.optional(tag)?.map(|value| Fields::new(value, tag.name)))
    }

    pub(crate) fn number<T: TryFrom<u64>>(&mut self, tag: Tag) -> Result<T, DecodeError> {
        read_number(self.octets(tag)?, tag)
    }

    pub(crate) fn optional_number<T: TryFrom<u64>>(
        &mut self,
        tag: Tag,
    ) -> Result<Option<T>, DecodeError> {
        self.optional(tag)?.map(|value| read_number(value, tag)).transpose()
    }

    pub(crate) fn pair(&mut self, tag: Tag) -> Result<u16, DecodeError> {
        self.array(tag).map(u16::from_be_bytes)
    }

    pub(crate) fn optional_pair(&mut self, tag: Tag) -> Result<Option<u16>, DecodeError> {
        let value = self.optional(tag)?;
        value.map(|value| exact(value, tag).map(u16::from_be_bytes)).transpose()
    }

    pub(crate) fn array<const N: usize>(&mut self, tag: Tag) -> Result<[u8; N], DecodeError> {
        exact(self.octets(tag)?, tag)
    }

    pub(crate) fn flag(&mut self, tag: Tag) -> Result<bool, DecodeError> {
        match self.optional(tag)? {
            None => Ok(false),
            Some([]) => Ok(true),
            Some(value) => Err(bad_length(value, tag)),
        }
    }

    pub(crate) fn text(&mut self, tag: Tag) -> Result<String, DecodeError> {
        read_text(self.octets(tag)?, tag)
    }

    pub(crate) fn optional_text(&mut self, tag: Tag) -> Result<Option<String>, DecodeError> {
        self.optional(tag)?.map(|value| read_text(value, tag)).transpose()
    }

    /// Nothing may follow.
    pub(crate) fn end(mut self) -> Result<(), DecodeError> {
        match self.reader.read()? {
            None => Ok(()),
            Some(element) => Err(DecodeError::Unexpected { typ: element.typ, within: self.within }),
        }
    }

    /// Only elements that may be ignored may follow.
    pub(crate) fn end_of_known(mut self) -> Result<(), DecodeError> {
        while let Some(element) = self.reader.read()? {
            if types::is_critical(element.typ) {
                let within = self.within;
                return Err(DecodeError::UnknownCritical { typ: element.typ, within });
            }
        }
        Ok(())
    }
}

pub(crate) fn bad_length(value: &[u8], tag: Tag) -> DecodeError {
    DecodeError::BadLength { element: tag.name, len: value.len() }
}

fn exact<const N: usize>(value: &[u8], tag: Tag) -> Result<[u8; N], DecodeError> {
    value.try_into().map_err(|_| bad_length(value, tag))
}

fn read_number<T: TryFrom<u64>>(value: &[u8], tag: Tag) -> Result<T, DecodeError> {
    let number = tlv::read_nni(value, tag.name)?;
    if tlv::nni_len(number) != value.len() {
        return Err(bad_length(value, tag));
    }
    T::try_from(number).map_err(|_| bad_value(tag))
}

/// UTF-8 without control characters, never empty.
fn read_text(value: &[u8], tag: Tag) -> Result<String, DecodeError> {
    if value.is_empty() || value.len() > TEXT_BYTES_MAX {
        return Err(bad_length(value, tag));
    }
    let text = std::str::from_utf8(value).ok().filter(|text| !text.chars().any(char::is_control));
    text.map(str::to_owned).ok_or_else(|| bad_value(tag))
}

pub(crate) fn bad_value(tag: Tag) -> DecodeError {
    DecodeError::BadValue { element: tag.name }
}
