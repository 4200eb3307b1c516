//! Names below the site's prefix that are no paths: contents that the catalog has itself, and the
//! certificates of the keys it knows.
//!
//! Links and empty files have no disk, and readers that know neither ask for their only segment
//! all the same. Content that lies on disks is asked for here by readers who send no hint: the
//! gateway asks a disk in their place. What nobody has gets Nack NoRoute, because another way may
//! lead there.

use std::collections::VecDeque;
use std::sync::Arc;

use byname_catalog::engine::Engine;
use byname_catalog::id::ContentId;
use byname_catalog::{Caller, Reader};
use byname_packet::lp::nack_reason;
use byname_packet::{
    Component, Data, DataBuilder, Interest, Name, NameRef, NullSigner, NumberComponent, types,
};
use byname_site::SiteName;
use byname_transfer::naming;
use byname_transfer::numbers::SEGMENT_FRESHNESS_MS;
use byname_transfer::server::{Arrival, Echo, Now, Outgoing};

use crate::describe::Describer;
use crate::gateway::{Gateway, segment_of};
use crate::keys::key_name;

const CATALOG: &[u8] = b"catalog";
const FILE: &[u8] = b"file";
const USER: &[u8] = b"user";
const DISK: &[u8] = b"disk";

/// Answers from the catalog what needs no path walk.
pub struct Contents {
    site: SiteName,
    engine: Arc<dyn Engine>,
    out: VecDeque<Outgoing>,
    gateway: Gateway,
}

impl Contents {
    /// Contents of a site.
    pub fn new(site: SiteName, engine: Arc<dyn Engine>) -> Self {
        Self { site, engine, out: VecDeque::new(), gateway: Gateway::default() }
    }

    /// True for names of commands and queries.
    pub(crate) fn is_command(&self, name: NameRef<'_>) -> bool {
        self.keyword(name).is_some_and(|keyword| keyword == CATALOG)
    }

    /// True for other names that are answered here.
    pub(crate) fn answers(&self, name: NameRef<'_>) -> bool {
        self.keyword(name).is_some_and(|keyword| [FILE, USER, DISK].contains(&keyword))
    }

    /// The keyword that follows the site's prefix.
    fn keyword<'a>(&self, name: NameRef<'a>) -> Option<&'a [u8]> {
        let prefix = self.site.view();
        let next: Component<'a> = name.get(prefix.count())?;
        let is_below = prefix.is_prefix_of(name) && next.typ == types::KEYWORD;
        is_below.then_some(next.value)
    }

    /// Takes an Interest with such a name.
    pub(crate) fn handle_interest(&mut self, arrival: &Arrival<'_>, now: Now) {
        let (echo, interest) = (Echo::of(arrival), arrival.interest);
        let found = match self.keyword(interest.name) {
            Some(FILE) => self.segment(interest),
            _ => self.certificate(interest),
        };
        if found.is_none()
            && let Some((content, segment, disks)) = self.elsewhere(interest.name)
        {
            let wanted = (content, segment);
            return self.gateway.handle_interest(arrival, wanted, disks, now.now_ns);
        }
        self.out.push_back(match found {
            Some(packet) => echo.wrap(&packet),
            None => echo.nack(interest.wire(), nack_reason::NO_ROUTE),
        });
    }

    /// Content and segment that a name is of, if disks have it, and the names of these.
    fn elsewhere(&self, name: NameRef<'_>) -> Option<(ContentId, u64, Vec<Name>)> {
        let (content, segment) = segment_of(&self.site, name)?;
        let reader = Reader::new(&*self.engine, &Caller::Head).ok()?;
        let replicas = reader.content(content).ok()?.replicas;
        let disks = Describer::new(&self.site, &reader).replicas(&replicas).ok()?;
        Some((content, segment, disks))
    }

    /// Takes what was asked for at disks.
    pub(crate) fn handle_data(&mut self, data: &Data<'_>) {
        self.gateway.handle_data(data);
    }

    /// Takes the Nack of one.
    pub(crate) fn handle_nack(&mut self, name: NameRef<'_>, now: Now) {
        self.gateway.handle_nack(name, now.now_ns);
    }

    /// Asks other disks where one has not answered.
    pub(crate) fn handle_timeout(&mut self, now: Now) {
        self.gateway.handle_timeout(now.now_ns);
    }

    pub(crate) fn poll_timeout(&self) -> Option<u64> {
        self.gateway.poll_timeout()
    }

    fn segment(&self, interest: &Interest<'_>) -> Option<Vec<u8>> {
        let name = interest.name;
        let content = self.site.parse_content(name.without_last(1))?;
        let segment = name.last()?.segment()?;
        let reader = Reader::new(&*self.engine, &Caller::Head).ok()?;
        let describer = Describer::new(&self.site, &reader);
        let octets = describer.own_content(content).ok()?;
        let segment_bytes = describer.segment_bytes(content);
        let last_segment = naming::last_segment(octets.len() as u64, segment_bytes);
        if segment > last_segment {
            return None;
        }
        let start = (segment * segment_bytes) as usize;
        let end = octets.len().min(start + segment_bytes as usize);
        let last = NumberComponent::segment(last_segment);
        let mut packet = Vec::new();
        DataBuilder::new(name)
            .freshness_ms(SEGMENT_FRESHNESS_MS)
            .final_block_id(last.as_component())
            .encode(&octets[start..end], &NullSigner, &mut packet)
            .ok()?;
        Some(packet)
    }

    /// The certificate of a key, by the key's name or one that begins with it.
    fn certificate(&self, interest: &Interest<'_>) -> Option<Vec<u8>> {
        let name = key_name(interest.name)?;
        let reader = Reader::new(&*self.engine, &Caller::Head).ok()?;
        let wire = reader.key(name.value()).ok()??.certificate;
        let is_wanted = Data::decode(&wire).is_ok_and(|data| interest.matches(&data));
        is_wanted.then_some(wire)
    }

    /// The next packet to send.
    pub(crate) fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.out.pop_front().or_else(|| self.gateway.poll_transmit())
    }
}
