//! Answers for the segments and trees of what is being written, by the names of its contents.

use std::collections::BTreeMap;
use std::sync::Arc;

use byname_catalog::id::ContentId;
use byname_packet::{DataBuilder, Interest, Name, NullSigner, NumberComponent};
use byname_site::SiteName;
use byname_transfer::naming::{self, Aspect, Part, Request};

use crate::source::Source;

/// Contents being written, by their versioned names.
#[derive(Debug, Default)]
pub(crate) struct Producer {
    contents: BTreeMap<Name, Produced>,
}

#[derive(Debug)]
struct Produced {
    source: Arc<Source>,
    segment_size: u64,
}

impl Producer {
    pub(crate) fn add(&mut self, site: &SiteName, content: ContentId, source: Arc<Source>) {
        let segment_size = site.segment_size(content) as u64;
        self.contents.insert(site.content(content), Produced { source, segment_size });
    }

    pub(crate) fn remove(&mut self, site: &SiteName, content: ContentId) {
        self.contents.remove(&site.content(content));
    }

    /// The Data that an Interest asks for; `None` if there is none.
    pub(crate) fn answer(&self, interest: &Interest<'_>) -> Option<Vec<u8>> {
        let parsed = naming::parse(interest.name)?;
        let Request::Segment { aspect: Aspect::File, part, segment, .. } = parsed.request else {
            return None;
        };
        let Produced { source, segment_size } = self.contents.get(parsed.object.value())?;
        let size = match part {
            Part::Content => source.size(),
            Part::Tree(level) => source.level_bytes(level),
        };
        let is_tree = matches!(part, Part::Tree(_));
        let last = naming::last_segment(size, *segment_size);
        if segment > last || (is_tree && size == 0) {
            return None;
        }
        let offset = segment * segment_size;
        let len = (size - offset).min(*segment_size) as usize;
        let octets = match part {
            Part::Content => source.read(offset, len)?,
            Part::Tree(level) => source.read_level(level, offset, len)?,
        };
        let last = NumberComponent::segment(last);
        let mut wire = Vec::with_capacity(len + 256);
        // Nobody asks writers for what is fresh: a version never changes.
        let builder = DataBuilder::new(interest.name).final_block_id(last.as_component());
        builder.encode(&octets, &NullSigner, &mut wire).ok()?;
        Some(wire)
    }
}
