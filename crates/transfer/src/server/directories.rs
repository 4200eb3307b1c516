//! Directories: snapshots of their listings and manifests, and when they are read again.
//!
//! A manifest is a snapshot like a listing, kept under its own name (`<path>/32=manifest`).
//! A snapshot is the payload of one version, with its tree; the last two of a path are kept so that
//! running fetches finish. Its version depends on the payload's root, not on the directory's times:
//! changing an entry's permissions alters what is listed without touching the directory.

use byname_packet::lp::nack_reason;
use byname_packet::{Name, NameRef, NullSigner, NumberComponent, Signer};

use super::Server;
use super::arrival::Now;
use super::open_files::{Extent, segment_builder};
use super::ops::{ListFailure, Listing, Op};
use super::reply::{Echo, interest_name};
use super::snapshots::{FoundDirectory, Snapshot};
use super::state::{Recalled, Record, RecordKey, Subject};
use super::tasks::{FoundListing, Step};
use super::versions::next_version;
use super::waiters::Owner;
use crate::metadata::{Absence, ContentRoot, Metadata};
use crate::naming::{self, Part};
use crate::numbers::MANIFEST_KEYWORD;

/// The versioned name of a listing, or of a manifest if `path` names one.
fn versioned(path: &Name, version: u64) -> Name {
    let is_manifest = path.view().last().is_some_and(|last| last.is_keyword(MANIFEST_KEYWORD));
    match is_manifest {
        true => path.with_version(version),
        false => naming::versioned_name(path.view(), true, version),
    }
}

/// A segment of a kept snapshot or of its tree.
pub(super) struct ListingSegment {
    pub(super) version: u64,
    pub(super) part: Part,
    pub(super) segment: u64,
}

impl Server {
    pub(super) fn on_directory(&mut self, id: u64, found: &FoundDirectory, now: Now) {
        if self.is_mirrored(id) {
            return self.on_mirrored_directory(id, found.stat, now);
        }
        let Some(task) = self.tasks.get(id) else { return };
        let path = task.path.clone();
        let current = self.snapshots.current(path.view().value());
        if current.is_some_and(|kept| kept.is_current(found, now, &self.config)) {
            return self.finish_listing(id, now);
        }
        task.step = Step::Listing { asked: now };
        let is_manifest = task.is_manifest();
        let (mount, relative) = (task.place.mount, task.place.relative.clone());
        // Half, because the version before it may still be being fetched.
        let bytes_max = self.config.listing_bytes_max / 2;
        let op = if is_manifest {
            self.counters.manifests += 1;
            let name = path.view().without_last(1).to_name();
            let (quiet, path) = (self.config.quiet(), relative);
            let signature_bytes = self.segment_signature_bytes(mount);
            Op::Manifest { mount, path, name, bytes_max, quiet, signature_bytes }
        } else {
            self.counters.listings += 1;
            Op::List { mount, path: relative, bytes_max }
        };
        self.issue(op, Owner::Task(id));
        self.set_timer(id);
    }

    pub(super) fn on_listed(&mut self, id: u64, listed: Result<Listing, ListFailure>, now: Now) {
        let Some(task) = self.tasks.get(id) else { return };
        let Step::Listing { asked } = task.step else { return };
        let listing = match listed {
            Ok(listing) => listing,
            Err(ListFailure::NotFound) => return self.finish_absent(id, Absence::NotFound, now),
            Err(ListFailure::NoPermission) => {
                return self.finish_absent(id, Absence::NoPermission, now);
            }
            Err(ListFailure::TooLarge) => {
                return self.finish_absent(id, Absence::ListingTooLarge, now);
            }
            Err(ListFailure::Failed) => return self.finish_unreadable(id, now),
            Err(ListFailure::Unavailable) => return self.finish_silently(id),
        };
        let took_ns = now.now_ns.saturating_sub(asked.now_ns);
        if let Some(versioned) = &listing.versioned {
            let kept = self.snapshots.current(task.path.view().value());
            let same = kept.filter(|kept| kept.listing.root == listing.root);
            let version = same.map_or(versioned.version, |kept| kept.version);
            return self.keep_listing(id, FoundListing { listing, asked, took_ns }, version, now);
        }
        let key = RecordKey { name: task.path.view().value().to_vec(), listing: true };
        let found = Box::new(FoundListing { listing, asked, took_ns });
        task.step = Step::RecallingListing(found);
        self.issue(Op::Recall { key, state: None }, Owner::Task(id));
    }

    pub(super) fn on_listing_recalled(
        &mut self,
        id: u64,
        found: Box<FoundListing>,
        recalled: &Recalled,
        now: Now,
    ) {
        let Some(task) = self.tasks.get(id) else { return };
        let subject = Subject::Listing(found.listing.root);
        if let Some(record) = recalled.record.filter(|record| record.subject == subject) {
            return self.keep_listing(id, *found, record.version, now);
        }
        let version = next_version(found.listing.stat.mtime_ns, recalled);
        let key = RecordKey { name: task.path.view().value().to_vec(), listing: true };
        task.step = Step::AnnouncingListing(found, version);
        self.counters.versions += 1;
        self.issue(Op::Announce { key, record: Record { subject, version } }, Owner::Task(id));
    }

    pub(super) fn keep_listing(&mut self, id: u64, found: FoundListing, version: u64, now: Now) {
        let Some(task) = self.tasks.get(id) else { return };
        let path = task.path.clone();
        let versioned = versioned(&path, version);
        let (mount, versioned_bytes) = (task.place.mount, versioned.view().value().len());
        let Some(segment_size) = self.segment_size(mount, versioned_bytes) else {
            return self.finish_absent(id, Absence::NameTooLong, now);
        };
        let FoundListing { listing, asked, took_ns } = found;
        let snapshot = Snapshot { version, listing, segment_size, read: asked, took_ns };
        self.snapshots.keep(path.view().value(), snapshot);
        self.finish_listing(id, now);
    }

    /// Answers everybody from the current snapshot.
    fn finish_listing(&mut self, id: u64, now: Now) {
        let Some(task) = self.tasks.get(id) else { return };
        let path = task.path.clone();
        let Some(kept) = self.snapshots.current(path.view().value()) else {
            return self.finish_unreadable(id, now);
        };
        let stat = kept.listing.stat;
        let described = Metadata {
            mode: Some(stat.mode),
            ctime_ns: stat.ctime_ns,
            mtime_ns: Some(stat.mtime_ns),
            root: ContentRoot::Known(kept.listing.root),
            listing_size: Some(kept.listing.payload.len() as u64),
            listing_segment_size: Some(kept.segment_size as u64),
            extras: kept.listing.versioned.as_ref().map(|it| Box::new(it.extras.clone())),
            ..Metadata::new(versioned(&path, kept.version))
        };
        self.finish_described(id, &described, now);
    }

    /// Answers a segment request of a kept listing; false if the version is not kept.
    pub(super) fn serve_listing(
        &mut self,
        wire: &[u8],
        path: NameRef<'_>,
        asked: &ListingSegment,
        echo: Echo,
    ) -> bool {
        let signer = self.listing_signer(path);
        if signer.is_some() && !self.signing.may_sign(self.now_ns) {
            self.counters.signing_limited += 1;
            self.out.push_back(echo.nack(wire, nack_reason::CONGESTION));
            return true;
        }
        let Some(kept) = self.snapshots.version(path.value(), asked.version) else { return false };
        let object: &[u8] = match asked.part {
            Part::Content => &kept.listing.payload,
            Part::Tree(level) => match kept.listing.levels.get(usize::from(level) - 1) {
                Some(values) => values,
                None => {
                    self.nack_stale(wire, echo);
                    return true;
                }
            },
        };
        let extent = Extent::of(object.len() as u64, kept.segment_size, asked.segment);
        let (Some(extent), Some(name)) = (extent, interest_name(wire)) else {
            self.nack_stale(wire, echo);
            return true;
        };
        let start = extent.offset as usize;
        let last = NumberComponent::segment(extent.last_segment);
        let mut packet = Vec::new();
        let content = &object[start..start + extent.len];
        let signer: &dyn Signer = signer.as_ref().map_or(&NullSigner, |signer| &*signer.0);
        let built = segment_builder(name, &last).encode(content, signer, &mut packet);
        if built.is_ok() {
            self.counters.listing_segments += 1;
            self.out.push_back(echo.wrap(&packet));
        }
        true
    }
}
