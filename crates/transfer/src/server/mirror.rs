//! Serving copies: answering with the packets that their publisher signed, and no key at all.
//!
//! Name, version and root of a file are those of the packet that was kept with it, or of the kept
//! manifest of its directory, never of the local disk. The disk only has to agree: size, time of
//! last change and root. A file that does not agree is hidden. A mirror cannot state that a file
//! does not exist, nor that its copy is current; then it answers "no route", and the consumer tries
//! another source.
//!
//! Invariant: nothing is signed for a mount that is a mirror. Whatever would be a signed answer of
//! another mount becomes "no route" here.

use byname_packet::lp::nack_reason;
use byname_packet::{ContentType, Data, Interest, Name, NameRef};

use super::Server;
use super::arrival::Now;
use super::claims::{CERTIFICATES_MAX, Claim, MirrorOptions, described_by, segment_size};
use super::open_files::OpenFile;
use super::ops::{KeptObject, KeptOf, Op};
use super::reply::interest_name;
use super::snapshots::{FoundDirectory, Snapshot};
use super::state::{FileStat, Recalled, RecordKey};
use super::tasks::{FoundFile, Step};
use super::waiters::{Owner, Waiter, Wants};
use crate::manifest;
use crate::metadata::ContentRoot;
use crate::naming;

/// Octets of what is kept with a file.
const FILE_BYTES_MAX: usize = 64 << 10;
impl Server {
    /// Makes a mount a mirror: it serves copies with the packets kept with them, and signs nothing.
    pub fn mirror(&mut self, mount: usize, options: MirrorOptions) {
        self.mirrors.options.insert(mount, options);
    }

    pub(super) fn is_mirror(&self, mount: usize) -> bool {
        self.mirrors.options.contains_key(&mount)
    }

    pub(super) fn is_mirrored(&mut self, id: u64) -> bool {
        let mount = self.tasks.get(id).map(|task| task.place.mount);
        mount.is_some_and(|mount| self.is_mirror(mount))
    }

    /// A file was found; what was kept with it decides.
    pub(super) fn on_mirrored_file(&mut self, id: u64, found: FoundFile) {
        let of = KeptOf::File(found.handle);
        self.read_kept(id, Step::ReadingKept(found), of, FILE_BYTES_MAX);
    }

    /// A directory was found; its listing or manifest is what was kept, not what lies in it.
    pub(super) fn on_mirrored_directory(&mut self, id: u64, stat: FileStat, now: Now) {
        let Some(task) = self.tasks.get(id) else { return };
        let path = task.path.clone();
        let key = path.view().value();
        let found = FoundDirectory { stat, changes: None };
        let is_current = self.snapshots.current(key).is_some_and(|kept| {
            kept.listing.stat == stat && kept.is_current(&found, now, &self.config)
        });
        if is_current && let Some(packet) = self.mirrors.packets.get(key).cloned() {
            return self.finish_mirrored(id, Some(&packet), now);
        }
        let of = if self.tasks.get(id).is_some_and(|task| task.is_manifest()) {
            KeptOf::Manifest
        } else {
            KeptOf::Listing
        };
        let bytes_max = self.config.listing_bytes_max / 2;
        self.read_kept(id, Step::ReadingDirectory { asked: now }, of, bytes_max);
    }

    fn read_kept(&mut self, id: u64, step: Step, of: KeptOf, bytes_max: usize) {
        let Some(task) = self.tasks.get(id) else { return };
        let is_parent = matches!(step, Step::ReadingParent { .. });
        task.step = step;
        let (mount, mut path) = (task.place.mount, task.place.relative.clone());
        if is_parent {
            let end = path.iter().rposition(|octet| *octet == b'/').unwrap_or(0);
            path.truncate(end);
        }
        self.issue(Op::ReadKept { mount, path, of, bytes_max }, Owner::Task(id));
        self.set_timer(id);
    }

    pub(super) fn on_kept(&mut self, id: u64, kept: Option<KeptObject>, now: Now) {
        for certificate in kept.iter().flat_map(|kept| &kept.certificates) {
            self.learn_certificate(certificate);
        }
        let Some(task) = self.tasks.get(id) else { return };
        let path = task.path.clone();
        match std::mem::replace(&mut task.step, Step::Locating) {
            Step::ReadingKept(found) => {
                let claim = kept.and_then(|kept| Claim::of_packet(&kept.packet, path.view()));
                self.on_own_claim(id, found, claim, now);
            }
            Step::ReadingParent { found, own, asked } => {
                let directory = naming::manifest_name(path.view().without_last(1));
                if let Some(kept) = kept {
                    self.keep_mirrored(&directory, kept, asked, now);
                }
                let entry = self.claim_of_entry(path.view(), now);
                self.choose(id, found, [own.map(|own| *own), entry], now);
            }
            Step::ReadingDirectory { asked } => {
                let was_kept = kept.is_some();
                let packet = kept.and_then(|kept| self.keep_mirrored(&path, kept, asked, now));
                self.counters.mirror_changed += u64::from(was_kept && packet.is_none());
                self.finish_mirrored(id, packet.as_deref(), now);
            }
            _ => self.counters.strays += 1,
        }
    }

    /// Goes on with what a file's own packet claims, or looks into the manifest.
    fn on_own_claim(&mut self, id: u64, found: FoundFile, own: Option<Claim>, now: Now) {
        let Some(task) = self.tasks.get(id) else { return self.close(found.handle) };
        let wants_another = |own: &Claim| {
            task.waiters.iter().any(|waiter| match waiter.wants {
                Wants::Segment { version, .. } => version != own.version,
                Wants::Metadata { .. } => false,
            })
        };
        let is_enough =
            own.as_ref().is_some_and(|own| own.agrees(&found.stat) && !wants_another(own));
        let path = task.path.clone();
        if is_enough {
            return self.choose(id, found, [own, None], now);
        }
        if let Some(entry) = self.claim_of_entry(path.view(), now) {
            return self.choose(id, found, [own, Some(entry)], now);
        }
        let bytes_max = self.config.listing_bytes_max / 2;
        let step = Step::ReadingParent { found, own: own.map(Box::new), asked: now };
        self.read_kept(id, step, KeptOf::Manifest, bytes_max);
    }

    /// Takes the claim that somebody wants and the file agrees with, and asks for the file's root.
    fn choose(&mut self, id: u64, found: FoundFile, claims: [Option<Claim>; 2], now: Now) {
        let Some(task) = self.tasks.get(id) else { return self.close(found.handle) };
        let is_wanted = |claim: &Claim| {
            task.waiters.iter().any(|waiter| match waiter.wants {
                Wants::Segment { version, .. } => version == claim.version,
                Wants::Metadata { .. } => claim.packet.is_some(),
            })
        };
        let is_claimed = claims.iter().any(Option::is_some);
        let claims = claims.into_iter().flatten();
        let mut agreeing = claims.filter(|claim| claim.agrees(&found.stat)).peekable();
        let has_changed = is_claimed && agreeing.peek().is_none();
        let Some(claim) = agreeing.find(is_wanted) else {
            self.close(found.handle);
            self.counters.mirror_changed += u64::from(has_changed);
            return self.finish_mirrored(id, None, now);
        };
        let key = RecordKey { name: task.path.view().value().to_vec(), listing: false };
        task.step = Step::RecallingMirrored(found, Box::new(claim));
        self.issue(Op::Recall { key, state: Some(found.stat.state) }, Owner::Task(id));
    }

    /// The root of the file is known, or has to be computed first.
    pub(super) fn on_mirrored_recalled(
        &mut self,
        id: u64,
        (found, claim): (FoundFile, Box<Claim>),
        recalled: &Recalled,
        now: Now,
    ) {
        let Some(task) = self.tasks.get(id) else { return self.close(found.handle) };
        let (state, file, mount) = (found.stat.state, found.handle, task.place.mount);
        let Some(root) = recalled.root else {
            task.step = Step::Root { stat: found.stat, version: claim.version };
            if self.hash(file, state, Some(id)) {
                self.set_timer(id);
            } else {
                self.answer_pending(id, |_| true, now);
            }
            return self.close(file);
        };
        if root != claim.root {
            self.close(file);
            self.counters.mirror_changed += 1;
            return self.finish_mirrored(id, None, now);
        }
        let versioned = naming::versioned_name(task.path.view(), false, claim.version);
        let segment_size = claim.segment_size;
        self.open_version(&versioned, OpenFile { mount, state, file, tree: None, segment_size });
        self.finish_mirrored(id, claim.packet.as_deref(), now);
    }

    /// Keeps a directory's payload for those who ask for its segments; its packet, if they fit.
    fn keep_mirrored(
        &mut self,
        path: &Name,
        kept: KeptObject,
        asked: Now,
        now: Now,
    ) -> Option<Vec<u8>> {
        let metadata = described_by(&kept.packet, path.view())?;
        let listing = kept.listing?;
        let is_whole = metadata.root == ContentRoot::Known(listing.root)
            && metadata.listing_size == Some(listing.payload.len() as u64);
        let version = metadata.version().filter(|_| is_whole)?;
        let segment_size = segment_size(metadata.listing_segment_size?)?;
        let key = path.view().value().to_vec();
        let took_ns = now.now_ns.saturating_sub(asked.now_ns);
        let snapshot = Snapshot { version, listing, segment_size, read: asked, took_ns };
        self.snapshots.keep(&key, snapshot);
        self.mirrors.packets.insert(key, kept.packet.clone(), 1);
        Some(kept.packet)
    }

    /// The claim of the manifest at hand about a file.
    fn claim_of_entry(&mut self, path: NameRef<'_>, now: Now) -> Option<Claim> {
        let directory = naming::manifest_name(path.without_last(1));
        let key = directory.view().value();
        let kept = self.snapshots.current(key)?;
        if now.now_ns.saturating_sub(kept.read.now_ns) >= self.config.relist_ns
            && kept.listing.payload.len() <= FILE_BYTES_MAX
        {
            return None;
        }
        let payload = &kept.listing.payload;
        let is_indexed =
            self.mirrors.entries.peek(key).is_some_and(|(version, _)| *version == kept.version);
        if !is_indexed {
            let index = (kept.version, index(payload)?);
            self.mirrors.entries.insert(key.to_vec(), index, 1);
        }
        let (_, starts) = self.mirrors.entries.get(key)?;
        let wanted = path.last()?.value;
        let entry_at = |at: &u32| manifest::entry_at(payload, *at as usize).map(|(entry, _)| entry);
        let place = starts
            .binary_search_by(|at| entry_at(at).map_or(b"".as_slice(), |it| it.name).cmp(wanted))
            .ok()?;
        Claim::of_entry(&entry_at(&starts[place])?)
    }

    /// Ends a task of a mirror: with segments of what is open, with the publisher's packet for
    /// those whom it answers, and with "no route" for everybody else.
    pub(super) fn finish_mirrored(&mut self, id: u64, packet: Option<&[u8]>, now: Now) {
        let Some(mount) = self.tasks.get(id).map(|task| task.place.mount) else { return };
        for waiter in self.end_task(id) {
            match waiter.wants {
                Wants::Metadata { .. } => self.answer_mirrored(mount, &waiter, packet, now),
                Wants::Segment { .. } => {
                    let parsed = interest_name(&waiter.wire).and_then(naming::parse);
                    let is_served =
                        parsed.is_some_and(|it| self.serve_segment(&waiter.wire, &it, waiter.echo));
                    if !is_served {
                        self.look_elsewhere(&waiter);
                    }
                }
            }
        }
    }

    fn answer_mirrored(&mut self, mount: usize, waiter: &Waiter, packet: Option<&[u8]>, now: Now) {
        let interest = Interest::decode(&waiter.wire).ok();
        let data = packet.and_then(|packet| Data::decode(packet).ok());
        let (Some(interest), Some(data)) = (interest, data) else {
            return self.look_elsewhere(waiter);
        };
        let is_fresh = is_fresh(&data, now.unix_ns);
        let options = self.mirrors.options.get(&mount).copied().unwrap_or_default();
        if !interest.name.is_prefix_of(data.name) {
            return self.look_elsewhere(waiter);
        }
        if interest.must_be_fresh && !is_fresh && !options.answers_fresh {
            self.counters.mirror_unfresh += 1;
            return self.out.push_back(waiter.echo.nack(&waiter.wire, nack_reason::NO_ROUTE));
        }
        self.counters.mirror_metadata += 1;
        self.out.push_back(match is_fresh {
            true => waiter.echo.wrap(data.wire()),
            // A cache would take it for fresh from the moment it comes.
            false => waiter.echo.wrap_uncached(data.wire(), !interest.must_be_fresh),
        });
    }

    /// Nothing to be had here, which says nothing about others.
    pub(super) fn look_elsewhere(&mut self, waiter: &Waiter) {
        self.counters.mirror_elsewhere += 1;
        self.out.push_back(waiter.echo.nack(&waiter.wire, nack_reason::NO_ROUTE));
    }

    /// Roots of copies are computed like others. Who cannot wait asks again a little later.
    pub(super) fn postpone_mirrored(&mut self, id: u64, is_due: impl Fn(&Waiter) -> bool) {
        for waiter in self.take_waiters(id, is_due) {
            self.counters.root_pending += 1;
            self.out.push_back(waiter.echo.nack(&waiter.wire, nack_reason::CONGESTION));
        }
        if !self.end_if_alone(id) {
            self.set_timer(id);
        }
    }

    /// Serves a certificate that came with a copy: readers can check it when nobody else has it.
    fn learn_certificate(&mut self, wire: &[u8]) {
        let Ok(data) = Data::decode(wire) else { return };
        let is_known = self.fixed.iter().any(|(name, _)| name.view() == data.name);
        let is_certificate = data.meta.content_type == ContentType::KEY;
        if is_certificate && !is_known && self.mirrors.certificates < CERTIFICATES_MAX {
            self.mirrors.certificates += 1;
            self.fixed.push((data.name.to_name(), wire.to_vec()));
        }
    }
}

/// True if a packet (`…/v=T/seg=0`) is young enough to be its publisher's word of this moment.
fn is_fresh(data: &Data<'_>, unix_ns: u64) -> bool {
    const MS: u64 = 1_000_000;
    let signed_ns = data.name.without_last(1).last().and_then(|component| component.version());
    let period_ns = data.meta.freshness_ms.saturating_mul(MS);
    signed_ns.is_some_and(|signed_ns| unix_ns.saturating_sub(signed_ns) <= period_ns)
}

/// Where the entries of a manifest begin; nothing if it is malformed.
fn index(payload: &[u8]) -> Option<Vec<u32>> {
    let (_, mut at) = manifest::check(payload).ok()?;
    let mut starts = Vec::new();
    while let Some((_, next)) = manifest::entry_at(payload, at) {
        starts.push(u32::try_from(at).ok()?);
        at = next;
    }
    Some(starts)
}
