//! Interests: what is asked, and whether it can be answered at once.

use byname_packet::lp::nack_reason;
use byname_packet::{Data, NameRef};

use super::Server;
use super::arrival::{Arrival, Now};
use super::config::Mount;
use super::lookups::QueuedLookup;
use super::reply::Echo;
use super::tasks::Place;
use super::waiters::{Waiter, Wants};
use crate::naming::{self, Aspect, ContentName, ParsedName, Request};

/// Components of a certificate's name from `KEY` on.
const AFTER_IDENTITY: usize = 4;

impl Server {
    /// Takes an Interest. It is answered through `poll_transmit` or `poll_segments`, now or
    /// after further calls.
    pub fn handle_interest(&mut self, arrival: &Arrival<'_>, now: Now) {
        self.counters.interests += 1;
        self.now_ns = now.now_ns;
        if self.answer_fixed(arrival) {
            return;
        }
        let Some(parsed) = naming::parse(arrival.interest.name) else {
            return self.refuse(arrival);
        };
        match parsed.request {
            Request::Metadata { .. } if !arrival.interest.can_be_prefix => self.refuse(arrival),
            Request::Metadata { aspect } => {
                let wants = Wants::Metadata { listing: aspect != Aspect::File };
                self.join(arrival, &parsed, wants, now);
            }
            Request::Segment { aspect, version, .. } => {
                let listing = aspect != Aspect::File;
                if !self.serve_segment(arrival.interest.wire(), &parsed, Echo::of(arrival)) {
                    self.join(arrival, &parsed, Wants::Segment { listing, version }, now);
                }
            }
        }
    }

    fn answer_fixed(&mut self, arrival: &Arrival<'_>) -> bool {
        let interest = arrival.interest;
        let found = self.fixed.iter().find(|(name, wire)| {
            // Without this a plain prefix of everything published would be answered by a
            // certificate.
            let is_near = interest.name.count() + AFTER_IDENTITY > name.view().count();
            let may_match =
                interest.name.is_prefix_of(name.view()) || name.view().is_prefix_of(interest.name);
            is_near && may_match && Data::decode(wire).is_ok_and(|data| interest.matches(&data))
        });
        let Some((_, wire)) = found else { return false };
        self.counters.fixed += 1;
        self.out.push_back(Echo::of(arrival).wrap(wire));
        true
    }

    /// The mount with the longest name that starts `path`, and what follows it.
    pub(super) fn place(&self, path: NameRef<'_>) -> Option<Place> {
        let (mount, prefix) = (self.mounts.iter().enumerate())
            .filter(|(_, mount)| !mount.contents)
            .map(|(place, mount)| (place, mount.prefix.view()))
            .filter(|(_, prefix)| prefix.is_prefix_of(path))
            .max_by_key(|(_, prefix)| prefix.value().len())?;
        let relative = naming::relative_path(path.suffix(prefix.count()))?;
        Some(Place { mount, relative })
    }

    /// Where a version of a content lies.
    fn content_place(&self, content: &ContentName<'_>, request: &Request) -> Option<Place> {
        let Request::Segment { version, .. } = request else { return None };
        let is_its = |mount: &Mount| mount.contents && mount.prefix.view() == content.prefix;
        let mount = self.mounts.iter().position(is_its)?;
        Some(Place { mount, relative: naming::content_path(content.id, *version) })
    }

    fn join(&mut self, arrival: &Arrival<'_>, parsed: &ParsedName<'_>, wants: Wants, now: Now) {
        let content = ContentName::parse(parsed.path);
        let place = match &content {
            Some(content) => self.content_place(content, &parsed.request),
            None => self.place(parsed.path),
        };
        let Some(place) = place else { return self.refuse(arrival) };
        // A manifest is made apart from the listing: it takes longer and is asked for less.
        let object = match parsed.request {
            Request::Metadata { aspect: Aspect::Manifest }
            | Request::Segment { aspect: Aspect::Manifest, .. } => {
                naming::manifest_name(parsed.path)
            }
            // Each version of a content is a file of its own.
            _ if content.is_some() => parsed.object.to_name(),
            _ => parsed.path.to_name(),
        };
        let waiter = Waiter::new(arrival, wants, now);
        let asker = waiter.echo.asker();
        // Nobody holds more than is free, so there is room for whoever comes next.
        let free = self.config.pending_max.saturating_sub(self.waiting);
        let is_full = free == 0 || self.tasks.len() >= self.config.pending_max;
        if is_full || self.lookups.held_by(asker) > free {
            self.counters.pending_full += 1;
            return self.nack_now(arrival, nack_reason::CONGESTION);
        }
        if let Some(task) = self.tasks.by_path(object.view().value()) {
            task.waiters.push(waiter);
            let id = task.id;
            self.set_timer(id);
        } else if !self.queue_lookup(QueuedLookup { object, place, waiter }) {
            self.counters.signing_limited += 1;
            return self.nack_now(arrival, nack_reason::CONGESTION);
        }
        self.waiting += 1;
        self.lookups.note_waiting(asker);
        self.begin_lookups(now);
    }

    /// Nacks what is not a request to this server.
    fn refuse(&mut self, arrival: &Arrival<'_>) {
        self.counters.not_understood += 1;
        self.nack_now(arrival, nack_reason::NONE);
    }

    pub(super) fn nack_now(&mut self, arrival: &Arrival<'_>, reason: u64) {
        let packet = Echo::of(arrival).nack(arrival.interest.wire(), reason);
        self.out.push_back(packet);
    }
}
