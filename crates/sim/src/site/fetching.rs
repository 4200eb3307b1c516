//! One content on its way, by the production engine of every client: verified, then in order.

use std::collections::BTreeMap;
use std::ops::Range;

use byname_packet::lp::LpPacket;
use byname_packet::{Interest, Packet};
use byname_security::trust::Validator;
use byname_transfer::congestion::{Congestion, WINDOW_MAX};
use byname_transfer::error::ReadError;
use byname_transfer::fetch::{FetchConfig, NackKind};
use byname_transfer::flow::Flow;
use byname_transfer::reader::{ObjectPlan, Reader, Selection};
use byname_transfer::request::Context;
use byname_transfer::versions::VersionMemory;

use crate::program::Now;
use crate::programs::interest;
use crate::random::Random;

/// See the module.
pub(super) struct Fetching {
    reader: Reader,
    flow: Flow,
    validator: Validator,
    versions: VersionMemory,
    /// Verified octets that wait for others before them, by offset.
    ahead: BTreeMap<u64, Vec<u8>>,
    next: u64,
}

impl Fetching {
    pub(super) fn new(plan: ObjectPlan, seed: u64) -> Self {
        Self::of_selection(plan, (Selection::All, 0), seed)
    }

    /// A range, which begins with a unit.
    pub(super) fn of_range(plan: ObjectPlan, range: Range<u64>, seed: u64) -> Self {
        let next = range.start;
        Self::of_selection(plan, (Selection::Bytes(range), next), seed)
    }

    fn of_selection(plan: ObjectPlan, (selection, next): (Selection, u64), seed: u64) -> Self {
        Self {
            reader: Reader::new(plan, selection, FetchConfig::default()),
            flow: Flow::new(Congestion::default().controller(WINDOW_MAX), seed),
            validator: Validator::default(),
            versions: VersionMemory::default(),
            ahead: BTreeMap::new(),
            next,
        }
    }

    /// Reads as a disk pulls: a small content is taken as a whole.
    pub(super) fn whole(plan: ObjectPlan, seed: u64) -> Self {
        let mut fetching = Self::new(plan, seed);
        fetching.reader.verify_whole();
        fetching
    }

    fn with<T>(
        &mut self,
        now: Now,
        with: impl FnOnce(&mut Reader, &mut Context<'_>, &mut BTreeMap<u64, Vec<u8>>) -> T,
    ) -> T {
        let Self { reader, flow, validator, versions, ahead, .. } = self;
        let (now_ns, unix_ns) = (now.now_ns, now.unix_ns);
        with(reader, &mut Context { now_ns, unix_ns, flow, validator, versions }, ahead)
    }

    /// Takes a frame, which may be about something else.
    pub(super) fn handle_frame(&mut self, link: &LpPacket<'_>, now: Now) {
        let Some(packet) = link.fragment else { return };
        let is_marked = link.header.congestion_mark.is_some();
        match (Packet::decode(packet), link.header.nack) {
            (Ok(Packet::Data(data)), None) => self.with(now, |reader, context, ahead| {
                reader.handle_data(&data, is_marked, context, &mut |offset, octets| {
                    ahead.insert(offset, octets.to_vec());
                });
            }),
            (Ok(Packet::Interest(Interest { name, .. })), Some(reason)) => {
                let kind = NackKind::from_reason(reason);
                self.with(now, |reader, context, _| reader.handle_nack(name, kind, context));
            }
            _ => {}
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Now) {
        self.with(now, |reader, context, _| reader.handle_timeout(context));
    }

    pub(super) fn poll_timeout(&mut self) -> Option<u64> {
        let own = self.reader.poll_deadline(&self.flow);
        own.into_iter().chain(self.flow.poll_deadline()).min()
    }

    pub(super) fn poll_interest(&mut self, random: &mut Random, now: Now) -> Option<Vec<u8>> {
        let request = self.with(now, |reader, context, _| reader.poll_request(context));
        request.map(|request| interest(&request, random))
    }

    /// The next octets in their order.
    pub(super) fn poll_octets(&mut self) -> Option<Vec<u8>> {
        let octets = self.ahead.remove(&self.next)?;
        self.next += octets.len() as u64;
        Some(octets)
    }

    /// How it ended, once it has.
    pub(super) fn outcome(&self) -> Option<Result<(), ReadError>> {
        match self.reader.failure() {
            Some(failure) => Some(Err(failure.clone())),
            None => self.reader.is_finished().then_some(Ok(())),
        }
    }

    pub(super) fn fault(&self) -> Option<String> {
        let (what, held, max) = self.reader.overfull()?;
        Some(format!("tables are bounded: {held} {what} at a reader, allowed are {max}"))
    }
}
