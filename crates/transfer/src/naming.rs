//! Names of requests: a path of generic components, then a suffix without generic components.
//!
//! | request | suffix |
//! |---|---|
//! | metadata of a file or directory | `32=metadata` |
//! | metadata of a directory's listing | `32=ls` `32=metadata` |
//! | segment of a file | `v=V` `seg=N` |
//! | segment of a listing | `32=ls` `v=V` `seg=N` |
//! | metadata and segments of a directory's manifest | the same after `32=manifest` |
//! | segment of tree level k of any | `v=V` `32=tree-k` `seg=N`, after `32=ls` or `32=manifest` |
//!
//! The first component that is not generic ends the path, so a file may have any name; only the two
//! components of a content's name ([`ContentName`]) may follow before the suffix of a file's
//! segment. Unlike the known ndn6 servers this reader insists on the order above, which makes one
//! name per object.

use byname_packet::{Component, Name, NameRef, NumberComponent, types};

use crate::numbers::{
    CONTENT_KEYWORD, LINK_RESERVE_BYTES, LISTING_KEYWORD, MANIFEST_KEYWORD, METADATA_KEYWORD,
    SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, TREE_KEYWORD_PREFIX, TREE_LEVELS_MAX,
};

/// Which of the objects under a path is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Aspect {
    /// The file, or whatever the path leads to.
    File,
    /// The directory's plain listing.
    Listing,
    /// The directory's manifest ([`crate::manifest`]).
    Manifest,
}

/// Aspect of a path that is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// The signed description of the current version.
    Metadata {
        /// Asked after `32=ls` or `32=manifest`: only a directory will do.
        aspect: Aspect,
    },
    /// One segment of an object that belongs to a version.
    Segment {
        /// Of what.
        aspect: Aspect,
        /// The version.
        version: u64,
        /// The content or a level of its hash tree.
        part: Part,
        /// Segment number.
        segment: u64,
    },
}

impl Request {
    fn is_of_file_segment(&self) -> bool {
        matches!(self, Self::Segment { aspect: Aspect::File, .. })
    }
}

/// The objects that make up a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The bytes of the file or listing.
    Content,
    /// Tree level `k`, 1 being the level of the units.
    Tree(u8),
}

/// A request taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedName<'a> {
    /// What precedes the suffix: generic components, or the name of a content
    /// ([`ContentName::parse`] tells them apart). The latter is no path of a mount.
    pub path: NameRef<'a>,
    /// For segments: the name up to and including the version; otherwise the path.
    pub object: NameRef<'a>,
    /// The request about it.
    pub request: Request,
}

/// Takes a request's name apart; `None` when it is none of the forms above.
pub fn parse(name: NameRef<'_>) -> Option<ParsedName<'_>> {
    let mut suffix = [Component { typ: 0, value: &[] }; 6];
    let (mut path_bytes, mut object_bytes, mut at, mut count) = (0, 0, 0, 0);
    for component in name.components() {
        at += component.wire_len();
        if component.typ == types::GENERIC {
            if count > 0 {
                return None;
            }
            path_bytes = at;
            continue;
        }
        *suffix.get_mut(count)? = component;
        count += 1;
        if component.typ == types::VERSION {
            object_bytes = at;
        }
    }
    let suffix = &suffix[..count];
    let request = match suffix {
        [keyword, id, rest @ ..] if keyword.is_keyword(CONTENT_KEYWORD) => {
            id.sequence()?;
            path_bytes += keyword.wire_len() + id.wire_len();
            // A content is a file's, and its description is the path's.
            parse_suffix(rest).filter(Request::is_of_file_segment)?
        }
        _ => parse_suffix(suffix)?,
    };
    let path = leading(name, path_bytes)?;
    let object = if object_bytes > 0 { leading(name, object_bytes)? } else { path };
    Some(ParsedName { path, object, request })
}

/// The components that make up the first `bytes` octets.
fn leading(name: NameRef<'_>, bytes: usize) -> Option<NameRef<'_>> {
    NameRef::from_value(&name.value()[..bytes]).ok()
}

fn parse_suffix(suffix: &[Component<'_>]) -> Option<Request> {
    let first = suffix.first()?;
    let aspect = match () {
        () if first.is_keyword(LISTING_KEYWORD) => Aspect::Listing,
        () if first.is_keyword(MANIFEST_KEYWORD) => Aspect::Manifest,
        () => Aspect::File,
    };
    match &suffix[usize::from(aspect != Aspect::File)..] {
        [word] if word.is_keyword(METADATA_KEYWORD) => Some(Request::Metadata { aspect }),
        [version, segment] => Some(Request::Segment {
            aspect,
            version: version.version()?,
            part: Part::Content,
            segment: segment.segment()?,
        }),
        [version, level, segment] => Some(Request::Segment {
            aspect,
            version: version.version()?,
            part: Part::Tree(tree_level(*level)?),
            segment: segment.segment()?,
        }),
        _ => None,
    }
}

/// `P/32=file/seq=<id>`: the name of a content that stays when its path is renamed. Its versions
/// are `P/32=file/seq=<id>/v=V`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentName<'a> {
    /// P, generic components.
    pub prefix: NameRef<'a>,
    /// Number of the content, never given twice.
    pub id: u64,
}

impl<'a> ContentName<'a> {
    /// Takes such a name, without version, apart; `None` if it is another one.
    pub fn parse(name: NameRef<'a>) -> Option<Self> {
        let id = name.last()?.sequence()?;
        let keyword = name.without_last(1).last()?;
        let prefix = name.without_last(2);
        let is_plain = prefix.components().all(|component| component.typ == types::GENERIC);
        (keyword.is_keyword(CONTENT_KEYWORD) && is_plain).then_some(ContentName { prefix, id })
    }

    /// The name, without version.
    pub fn to_name(&self) -> Name {
        let mut name = self.prefix.with(Component::keyword(CONTENT_KEYWORD));
        name.push(NumberComponent::new(types::SEQUENCE_NUM, self.id).as_component());
        name
    }

    /// True if a key of `identity` may lead from the path `asked` to this content: its prefix is
    /// one of the path and lies in the namespace of the key.
    pub fn is_within(&self, asked: NameRef<'_>, identity: NameRef<'_>) -> bool {
        self.prefix.is_prefix_of(asked) && identity.is_prefix_of(self.prefix)
    }
}

/// The level named by `32=tree-k`.
pub fn tree_level(component: Component<'_>) -> Option<u8> {
    if component.typ != types::KEYWORD {
        return None;
    }
    match component.value.strip_prefix(TREE_KEYWORD_PREFIX)? {
        [digit @ b'1'..=b'9'] if digit - b'0' <= TREE_LEVELS_MAX => Some(digit - b'0'),
        _ => None,
    }
}

/// `<path>/32=metadata`: what a client asks first.
pub fn metadata_name(path: NameRef<'_>) -> Name {
    path.with(Component::keyword(METADATA_KEYWORD))
}

/// `<path>/32=manifest`: the manifest of a directory, asked about and versioned like a path.
pub fn manifest_name(path: NameRef<'_>) -> Name {
    path.with(Component::keyword(MANIFEST_KEYWORD))
}

/// `<path>/v=V`, or `<path>/32=ls/v=V` for a listing.
pub fn versioned_name(path: NameRef<'_>, listing: bool, version: u64) -> Name {
    let mut name = path.to_name();
    if listing {
        name.push_keyword(LISTING_KEYWORD);
    }
    name.push_version(version);
    name
}

/// The name of which the segments of `part` are children.
pub fn part_name(versioned: NameRef<'_>, part: Part) -> Name {
    match part {
        Part::Content => versioned.to_name(),
        Part::Tree(level) => {
            let mut keyword = TREE_KEYWORD_PREFIX.to_vec();
            keyword.push(b'0' + level);
            versioned.with(Component::keyword(&keyword))
        }
    }
}

/// The name of segment `segment` of `part`.
pub fn segment_name(versioned: NameRef<'_>, part: Part, segment: u64) -> Name {
    let mut name = part_name(versioned, part);
    name.push(NumberComponent::segment(segment).as_component());
    name
}

/// Number of the last segment of an object of `size` octets; an empty object has segment 0.
pub fn last_segment(size: u64, segment_size: u64) -> u64 {
    size.div_ceil(segment_size.max(1)).saturating_sub(1)
}

/// The segment size for names whose versioned form has `versioned_bytes` octets (TLV-VALUE).
///
/// 8192, or the largest smaller power of two with which every packet of the version stays within
/// what NDN software accepts, link header included; `None` when not even 1024 octets fit.
pub fn segment_size_for(versioned_bytes: usize) -> Option<usize> {
    // Tree keyword 8, segment number 10, Name and Data headers 4 each, MetaInfo 2 +
    // FreshnessPeriod 6 + FinalBlockId 12, Content header 4, SignatureInfo 5, SignatureValue 2.
    const AROUND_BYTES: usize = 8 + 10 + 4 + 4 + 2 + 6 + 12 + 4 + 5 + 2;
    let room = byname_packet::MAX_PACKET_BYTES
        .checked_sub(LINK_RESERVE_BYTES + AROUND_BYTES + versioned_bytes)?;
    let mut size = SEGMENT_BYTES_MAX;
    while size > room {
        size /= 2;
    }
    (size >= SEGMENT_BYTES_MIN).then_some(size)
}

/// Octets kept in each packet of a content for a signature: whoever signs, the segment size is the
/// same.
const CONTENT_SIGNATURE_BYTES: usize = 256;

/// The segment size of a version of a content, which every server of it uses: that of names with
/// room for a signature. `versioned` is `P/32=file/seq=<id>/v=V`.
pub fn content_segment_size(versioned: NameRef<'_>) -> Option<usize> {
    segment_size_for(versioned.value().len() + CONTENT_SIGNATURE_BYTES)
}

/// Where a version of a content lies below a directory of contents: `<xx>/<id>-<version>`, in
/// hexadecimal digits, xx being the last two of the id.
pub fn content_path(id: u64, version: u64) -> Vec<u8> {
    format!("{:02x}/{id:016x}-{version:016x}", id & 0xFF).into_bytes()
}

/// True if a component can be the name of a directory entry: 1 to 255 octets, neither `.` nor `..`,
/// without NUL and `/`.
pub fn is_safe_entry(name: &[u8]) -> bool {
    let is_relative = matches!(name, b"." | b"..");
    let has_separator = name.iter().any(|octet| matches!(octet, 0 | b'/'));
    !name.is_empty() && name.len() <= 255 && !is_relative && !has_separator
}

/// True if a symbolic link may be made of `target` in a directory that lies `depth` directories
/// below the one that a copy is confined to, and cannot lead out of that one.
///
/// The target is relative, and all its `..` come first: there the directories above are real ones,
/// because copies make no other. Behind a name that may be a link itself, `..` would go up from
/// wherever that link leads, so no counting of components could bound it.
pub fn is_confined_link(depth: usize, target: &[u8]) -> bool {
    if target.is_empty() || target.starts_with(b"/") || target.contains(&0) {
        return false;
    }
    let (mut ups, mut is_below) = (0, false);
    for component in target.split(|octet| *octet == b'/') {
        match component {
            b"" | b"." => {}
            b".." if is_below => return false,
            b".." => ups += 1,
            name => {
                is_below = true;
                if name.len() > 255 {
                    return false;
                }
            }
        }
    }
    ups <= depth
}

/// The relative path (`a/b/c`, empty for the root) that generic components stand for.
///
/// `None` when a component is not generic or cannot be the name of a directory entry.
pub fn relative_path(components: NameRef<'_>) -> Option<Vec<u8>> {
    let mut path = Vec::with_capacity(components.value().len());
    for component in components.components() {
        if component.typ != types::GENERIC || !is_safe_entry(component.value) {
            return None;
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(component.value);
    }
    Some(path)
}

#[cfg(test)]
mod tests;
