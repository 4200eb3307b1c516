//! Names: an owned one, a borrowed view, and the two textual forms.
//!
//! Both hold the TLV-VALUE, that is the components' TLVs one after the other. The canonical order
//! of names (type, then length, then octets of each component) is then plain byte order, because
//! TYPE and LENGTH are in shortest form and no component's TLV is a prefix of another's.

mod uri;

use std::borrow::Borrow;

pub use uri::escape_path_component;

use crate::component::{Component, NumberComponent};
use crate::error::DecodeError;
use crate::{tlv, types};

/// An owned name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Name {
    value: Vec<u8>,
}

/// Maps with names as keys can be asked by [`NameRef::value`].
impl Borrow<[u8]> for Name {
    fn borrow(&self) -> &[u8] {
        &self.value
    }
}

/// A borrowed name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NameRef<'a> {
    value: &'a [u8],
}

impl Name {
    /// The empty name, `/`.
    pub fn new() -> Self {
        Self::default()
    }

    /// The borrowed view.
    pub fn view(&self) -> NameRef<'_> {
        NameRef { value: &self.value }
    }

    /// Appends a component.
    pub fn push(&mut self, component: Component<'_>) {
        component.encode(&mut self.value);
    }

    /// Appends a generic component.
    pub fn push_generic(&mut self, value: &[u8]) {
        self.push(Component::generic(value));
    }

    /// Appends a keyword component.
    pub fn push_keyword(&mut self, value: &[u8]) {
        self.push(Component::keyword(value));
    }

    /// Appends a version.
    pub fn push_version(&mut self, version: u64) {
        self.push(NumberComponent::version(version).as_component());
    }

    /// Appends a segment number.
    pub fn push_segment(&mut self, segment: u64) {
        self.push(NumberComponent::segment(segment).as_component());
    }

    /// Appends all components of `other`.
    pub fn extend(&mut self, other: NameRef<'_>) {
        self.value.extend_from_slice(other.value);
    }

    /// Removes the last component; false when there is none.
    pub fn pop(&mut self) -> bool {
        let Some(last) = self.view().last() else { return false };
        let keep = self.value.len() - last.wire_len();
        self.value.truncate(keep);
        true
    }

    /// A copy with `component` appended.
    pub fn with(&self, component: Component<'_>) -> Name {
        self.view().with(component)
    }

    /// A copy with a generic component appended.
    pub fn with_generic(&self, value: &[u8]) -> Name {
        self.with(Component::generic(value))
    }

    /// A copy with a keyword component appended.
    pub fn with_keyword(&self, value: &[u8]) -> Name {
        self.with(Component::keyword(value))
    }

    /// A copy with a version appended.
    pub fn with_version(&self, version: u64) -> Name {
        self.with(NumberComponent::version(version).as_component())
    }

    /// A copy with a segment number appended.
    pub fn with_segment(&self, segment: u64) -> Name {
        self.with(NumberComponent::segment(segment).as_component())
    }
}

impl<'a> NameRef<'a> {
    /// Checks that `value` is a sequence of components and borrows it.
    ///
    /// # Errors
    /// [`DecodeError`] for malformed TLVs, component TYPEs outside 1..65535 and digest components
    /// that are not 32 octets long.
    pub fn from_value(value: &'a [u8]) -> Result<Self, DecodeError> {
        Self::from_counted_value(value).map(|(name, _)| name)
    }

    /// As [`NameRef::from_value`], with the number of parameters digests in the same pass.
    pub(crate) fn from_counted_value(value: &'a [u8]) -> Result<(Self, usize), DecodeError> {
        let mut reader = tlv::Reader::new(value);
        let mut parameters_digests = 0;
        while !reader.is_empty() {
            let Some(element) = reader.read()? else { break };
            let component = Component::from_element(element)?;
            parameters_digests += usize::from(component.typ == types::PARAMETERS_SHA256_DIGEST);
        }
        Ok((Self { value }, parameters_digests))
    }

    /// Reads the one Name element that fills `wire`.
    ///
    /// # Errors
    /// As [`NameRef::from_value`], and for anything that is not exactly one Name.
    pub fn decode(wire: &'a [u8]) -> Result<Self, DecodeError> {
        Self::from_value(tlv::read_only(wire, types::NAME, "Name")?.value)
    }

    /// The TLV-VALUE.
    pub fn value(&self) -> &'a [u8] {
        self.value
    }

    /// The components in order.
    pub fn components(&self) -> Components<'a> {
        Components { reader: tlv::Reader::new(self.value) }
    }

    /// Number of components.
    pub fn count(&self) -> usize {
        self.components().count()
    }

    /// True if this is `/`.
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// The component at `index`.
    pub fn get(&self, index: usize) -> Option<Component<'a>> {
        self.components().nth(index)
    }

    /// The last component.
    pub fn last(&self) -> Option<Component<'a>> {
        self.split_last().map(|(_, last)| last)
    }

    /// The name without its last component, and that component.
    pub fn split_last(&self) -> Option<(NameRef<'a>, Component<'a>)> {
        // Only the last one needs a look inside.
        let (mut reader, mut last) = (tlv::Reader::new(self.value), None);
        let mut start = 0;
        while let Ok(Some(element)) = reader.read() {
            last = Some((start, element));
            start = reader.position();
        }
        let (start, element) = last?;
        let component = Component::from_element(element).ok()?;
        Some((NameRef { value: &self.value[..start] }, component))
    }

    /// The segment number, if this is `parent` and a segment component, nothing more. Who knows
    /// the parent need not go through its components for each of its segments.
    pub fn segment_of(&self, parent: NameRef<'_>) -> Option<u64> {
        const SEGMENT: u8 = types::SEGMENT as u8;
        match self.value.strip_prefix(parent.value)? {
            [SEGMENT, len, value @ ..] if value.len() == usize::from(*len) => {
                Component { typ: types::SEGMENT, value }.segment()
            }
            _ => None,
        }
    }

    /// The first `count` components (all, when there are fewer).
    pub fn prefix(&self, count: usize) -> NameRef<'a> {
        let mut components = self.components();
        for _ in 0..count {
            if components.next().is_none() {
                break;
            }
        }
        NameRef { value: &self.value[..components.reader.position()] }
    }

    /// The components after the first `count`.
    pub fn suffix(&self, count: usize) -> NameRef<'a> {
        NameRef { value: &self.value[self.prefix(count).value.len()..] }
    }

    /// The name without its last `count` components.
    pub fn without_last(&self, count: usize) -> NameRef<'a> {
        self.prefix(self.count().saturating_sub(count))
    }

    /// True if `other` starts with all of this name's components.
    pub fn is_prefix_of(&self, other: NameRef<'_>) -> bool {
        other.value.starts_with(self.value)
    }

    /// An owned copy.
    pub fn to_name(&self) -> Name {
        Name { value: self.value.to_vec() }
    }

    /// An owned copy with `component` appended.
    pub fn with(&self, component: Component<'_>) -> Name {
        let mut value = Vec::with_capacity(self.value.len() + component.wire_len() + 16);
        value.extend_from_slice(self.value);
        component.encode(&mut value);
        Name { value }
    }

    /// Octets of the Name element.
    pub fn wire_len(&self) -> usize {
        tlv::element_len(types::NAME, self.value.len())
    }

    /// Appends the Name element.
    pub fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_element(out, types::NAME, self.value);
    }
}

impl<'a> From<&'a Name> for NameRef<'a> {
    fn from(name: &'a Name) -> Self {
        name.view()
    }
}

impl<'a> FromIterator<Component<'a>> for Name {
    fn from_iter<I: IntoIterator<Item = Component<'a>>>(components: I) -> Self {
        let mut name = Name::new();
        for component in components {
            name.push(component);
        }
        name
    }
}

/// Iterator over the components of a checked name.
#[derive(Debug, Clone)]
pub struct Components<'a> {
    reader: tlv::Reader<'a>,
}

impl<'a> Iterator for Components<'a> {
    type Item = Component<'a>;

    fn next(&mut self) -> Option<Component<'a>> {
        // A NameRef only ever holds checked octets, so errors cannot occur here.
        let element = self.reader.read().ok()??;
        Component::from_element(element).ok()
    }
}

#[cfg(test)]
mod tests;
