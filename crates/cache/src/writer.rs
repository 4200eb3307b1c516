//! The thread that writes: units into sparse files, then the bits that say so.
//!
//! It has a lower priority than the readers. Bits follow the bytes in the order of the calls, not
//! on the disk: after a power cut a bit may stand for bytes that were lost, which the next reader's
//! verifier finds out.

use std::collections::HashMap;
use std::io::{
    self,
    ErrorKind::{FileTooLarge, NotFound},
};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use byname_security::tree::{FANOUT, NodeId, UNIT_BYTES};

use crate::counters::add;
use crate::directories::Directories;
use crate::entry::Entry;
use crate::health::Direction;
use crate::known::{ContentState, lock, runs};
use crate::layout::{PACKET, USED};
use crate::names::{Names, Seen};
use crate::policy::Standing;
use crate::room::Room;
use crate::shares::Shares;
use crate::state::Shared;
use crate::version::{Description, DirectoryPacket};
use crate::writes::{Brought, Work};
use crate::{files, place, scan};

/// Nice value of the thread: on a busy machine it has what readers and publishers leave. What comes
/// faster than that is not kept.
const NICE: i32 = 19;
/// Work done before the bits of it are written.
const BATCH_BYTES: usize = 8 << 20;
/// Time after which the bits are written although more work waits: others see what is there.
const BATCH_AGE_MAX: Duration = Duration::from_millis(250);
/// Pause between two looks whether the nodes that prove units have come.
const PROOF_PAUSE: Duration = Duration::from_millis(5);
/// Time for which units wait for the node that proves them. On a busy machine whoever hands both on
/// may be held up between them.
const PROOF_PATIENCE: Duration = Duration::from_secs(1);
/// Share of the cache that one content may have.
const CONTENT_DIVISOR: u64 = 4;
/// Uses that follow each other faster are one.
const REUSE_NS: u64 = 60_000_000_000;

/// Units of one entry whose bits are still to be written.
struct Marks {
    content: Arc<ContentState>,
    entry: Arc<Entry>,
    runs: Vec<Range<u64>>,
    /// New bytes, by the user of a service who brought them.
    brought: HashMap<u32, u64>,
}

struct Writer<'a> {
    shared: &'a Shared,
    room: Room,
    directories: Directories,
    marks: HashMap<crate::layout::ContentKey, Marks>,
}

/// Queues a copy of some units, or counts them as refused.
pub(crate) fn push_units(shared: &Arc<Shared>, brought: Brought, first: u64, bytes: &[u8]) {
    if !shared.writes.push_units(brought, first, bytes) {
        add(&shared.counts.refused_bytes, bytes.len() as u64);
    }
    start(shared);
}

/// Queues anything else; false if there is no room.
pub(crate) fn push(shared: &Arc<Shared>, work: Work) -> bool {
    let is_taken = shared.writes.push(work);
    start(shared);
    is_taken
}

/// Starts the thread if there is work and no thread.
fn start(shared: &Arc<Shared>) {
    if !shared.writes.wants_thread() {
        return;
    }
    let own = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("byname-cache-w".to_owned());
    if let Err(error) = thread.spawn(move || run(&own)) {
        tracing::debug!(%error, "no thread to write the cache");
        shared.writes.end_thread();
    }
}

/// Runs until nothing more comes.
fn run(shared: &Arc<Shared>) {
    let _ = rustix::process::setpriority_process(None, NICE);
    let (room, directories, marks) = Default::default();
    let mut writer = Writer { shared, room, directories, marks };
    while let Some(work) = shared.writes.next() {
        if shared.service.is_some() {
            writer.bring_all(work);
            continue;
        }
        let cost = work.cost() + writer.carry_out(work);
        writer.write_marks();
        shared.writes.settle(cost);
    }
    writer.call(|writer| writer.room.settle(writer.shared));
    shared.writes.end_thread();
}

impl Writer<'_> {
    /// Carries out a piece of work and what follows it; returns the cost of what followed.
    fn carry_out(&mut self, work: Work) -> usize {
        let begun = Instant::now();
        self.carry_out_one(work);
        let mut cost = 0;
        while cost < BATCH_BYTES
            && begun.elapsed() < BATCH_AGE_MAX
            && let Some(work) = self.shared.writes.try_next()
        {
            cost += work.cost();
            self.carry_out_one(work);
        }
        cost
    }

    /// Brings a service what waits, until nothing does.
    ///
    /// It keeps only what is proved, and readers hand on units just before the node that proves
    /// them. So units wait for it.
    fn bring_all(&mut self, work: Work) {
        let mut batch = vec![(Instant::now(), work)];
        while !batch.is_empty() {
            std::thread::sleep(PROOF_PAUSE);
            self.take_waiting(&mut batch);
            for (since, work) in std::mem::take(&mut batch) {
                if since.elapsed() < PROOF_PATIENCE && self.is_unproved(&work) {
                    batch.push((since, work));
                    continue;
                }
                let cost = work.cost();
                self.carry_out_one(work);
                self.shared.writes.settle(cost);
            }
        }
    }

    fn take_waiting(&self, batch: &mut Vec<(Instant, Work)>) {
        let (mut cost, now) = (0, Instant::now());
        while cost < BATCH_BYTES
            && let Some(work) = self.shared.writes.try_next()
        {
            cost += work.cost();
            batch.push((now, work));
        }
    }

    /// True for units that a service would refuse now: the node that proves them has not come, and
    /// no neighbour is known to be there, which came with the same node.
    fn is_unproved(&self, work: &Work) -> bool {
        let (Some(service), Work::Units { brought, first, bytes }) = (&self.shared.service, work)
        else {
            return false;
        };
        let (content, count) = (&brought.content, bytes.len().div_ceil(UNIT_BYTES) as u64);
        let group = |unit: u64| {
            let start = unit / FANOUT as u64 * FANOUT as u64;
            start..start + FANOUT as u64
        };
        let ends = [*first, *first + count.saturating_sub(1)];
        let known = lock(&content.units);
        let are_there = ends.map(|unit| runs(&known.present, group(unit)).next().is_some());
        drop(known);
        are_there != [true; 2] && !service.can_prove(&content.key, *first, count)
    }

    fn carry_out_one(&mut self, work: Work) {
        let shared = self.shared;
        if !shared.health.is_usable(Direction::Write, &shared.counts) {
            return match &work {
                Work::Units { bytes, .. } => add(&shared.counts.refused_bytes, bytes.len() as u64),
                Work::Node { brought, .. } => brought.content.note_lost(),
                _ => {}
            };
        }
        self.call(|writer| match work {
            work if shared.service.is_some() => writer.bring(work),
            Work::Units { brought, first, bytes } => {
                let written = writer.write_units(&brought, first, &bytes);
                shared.writes.recycle(bytes);
                written
            }
            Work::Node { brought, node, bytes } => {
                let written = writer.write_node(&brought, node, &bytes);
                if !matches!(written, Ok(true)) {
                    brought.content.note_lost();
                }
                written.map(|_| ())
            }
            Work::Describe { content, description } => writer.describe(&content, description),
            Work::Directory { name, packet } => {
                writer.keep_directory(name, packet);
                Ok(())
            }
            Work::Touch { content } => match content.refresh(&shared.place())? {
                Some(entry) => touch(&entry),
                None => Ok(()),
            },
        });
    }

    /// Has the service keep it, which takes no names.
    fn bring(&self, work: Work) -> io::Result<()> {
        let Some(service) = &self.shared.service else { return Ok(()) };
        match work {
            Work::Units { brought, first, bytes } => {
                service.bring_units(&brought.content.key, first, &bytes)?;
                add(&self.shared.counts.written_bytes, bytes.len() as u64);
                self.shared.writes.recycle(bytes);
                Ok(())
            }
            // Nodes go with the units that they prove.
            Work::Node { .. }
            | Work::Describe { .. }
            | Work::Directory { .. }
            | Work::Touch { .. } => Ok(()),
        }
    }

    /// Asks the disk for something, and takes note of how that ended.
    fn call(&mut self, act: impl FnOnce(&mut Self) -> io::Result<()>) {
        let shared = self.shared;
        let call = shared.health.begin(0);
        let done = act(self);
        drop(call);
        match done {
            Ok(()) => shared.health.note_success(Direction::Write),
            // Files that this file system cannot have say nothing about others, nor do those that
            // somebody has just removed.
            Err(error) if matches!(error.kind(), FileTooLarge | NotFound) => {
                add(&shared.counts.failed_writes, 1);
            }
            Err(error) => {
                add(&shared.counts.failed_writes, 1);
                shared.health.note_error(Direction::Write, &error, &shared.counts);
            }
        }
    }

    fn write_units(&mut self, brought: &Brought, first: u64, bytes: &[u8]) -> io::Result<()> {
        let (shared, content) = (self.shared, &brought.content);
        let held = lock(&content.units).present.count() * UNIT_BYTES as u64;
        let is_too_much = held + bytes.len() as u64 > shared.config.bytes_max / CONTENT_DIVISOR;
        if is_too_much || !self.has_room(brought.owner, bytes.len())? {
            add(&shared.counts.refused_bytes, bytes.len() as u64);
            return Ok(());
        }
        let entry = self.entry_for(content)?;
        entry.write_units(first, bytes)?;
        let run = first..first + bytes.len().div_ceil(UNIT_BYTES) as u64;
        add(&shared.counts.written_bytes, bytes.len() as u64);
        let mut units = lock(&content.units);
        let before = units.present.count();
        units.add(run.clone());
        let new_bytes = (units.present.count() - before) * UNIT_BYTES as u64;
        drop(units);
        let marks = self.count(brought, entry, new_bytes);
        match marks.runs.last_mut() {
            Some(last) if last.end == run.start => last.end = run.end,
            _ => marks.runs.push(run),
        }
        Ok(())
    }

    /// True if so many bytes may be written, for this user of a service.
    fn has_room(&mut self, owner: Option<u32>, bytes: usize) -> io::Result<bool> {
        let has_room = self.room.make(self.shared, bytes as u64)?;
        Ok(has_room && !owner.is_some_and(|uid| self.room.is_full_for(uid)))
    }

    /// Counts new bytes of an entry; returns what is still to be marked of it.
    fn count(&mut self, brought: &Brought, entry: Arc<Entry>, new_bytes: u64) -> &mut Marks {
        self.room.take(new_bytes);
        let marks = self.marks.entry(brought.content.key).or_insert_with(|| {
            let (content, entry) = (Arc::clone(&brought.content), Arc::clone(&entry));
            Marks { content, entry, runs: Vec::new(), brought: HashMap::new() }
        });
        if !Arc::ptr_eq(&marks.entry, &entry) {
            // Somebody has removed the entry before: what was written there is not here.
            marks.entry = entry;
            marks.runs.clear();
            marks.brought.clear();
        }
        if let Some(uid) = brought.owner {
            *marks.brought.entry(uid).or_default() += new_bytes;
        }
        marks
    }

    /// The entry of a content, which is made if there is none.
    fn entry_for(&mut self, content: &ContentState) -> io::Result<Arc<Entry>> {
        if let Some(entry) = content.refresh(&self.shared.place())? {
            return Ok(entry);
        }
        let entry = content.create(&self.shared.place())?;
        self.room.take_entry();
        let now_ns = scan::now_ns();
        let is_main = self.room.is_ghost(&content.key);
        let standing = Standing::new(now_ns, is_main);
        files::replace(&entry.path.join(USED), standing.encode().as_bytes())?;
        let described = lock(&content.described).take();
        if let Some(description) = described {
            write_description(&entry, description)?;
        }
        Ok(entry)
    }

    /// False if there is no room for it.
    fn write_node(&mut self, brought: &Brought, node: NodeId, bytes: &[u8]) -> io::Result<bool> {
        // Without room for units there is no use for nodes either.
        if !self.has_room(brought.owner, bytes.len())? {
            return Ok(false);
        }
        let entry = self.entry_for(&brought.content)?;
        if entry.read_node(node)?.is_some_and(|there| there == bytes) {
            return Ok(true);
        }
        entry.write_node(node, bytes)?;
        self.count(brought, entry, bytes.len() as u64);
        Ok(true)
    }

    fn describe(&mut self, content: &ContentState, description: Description) -> io::Result<()> {
        let Some(entry) = content.refresh(&self.shared.place())? else {
            *lock(&content.described) = Some(description);
            return Ok(());
        };
        touch(&entry)?;
        let path = place::path_of(&self.shared.layout, description.name.view());
        let is_placed = path.is_none_or(|path| path.exists());
        let is_new = write_description(&entry, description)?;
        // A process that was killed may not have come to it.
        if (is_new || !is_placed) && content.is_whole() {
            self.publish(&entry);
        }
        Ok(())
    }

    /// Writes the bits of what was written, and places what is whole now.
    fn write_marks(&mut self) {
        for (_, Marks { content, entry, runs, brought }) in std::mem::take(&mut self.marks) {
            self.call(|writer| {
                entry.mark(&runs, true)?;
                if !brought.is_empty() && !entry.is_gone()? {
                    let mut shares = Shares::load(&entry.path);
                    brought.into_iter().for_each(|(uid, bytes)| shares.add(uid, bytes));
                    shares.save(&entry.path)?;
                }
                // The map may have been looked at after the bytes were written and before this.
                let mut units = lock(&content.units);
                runs.into_iter().for_each(|run| units.add(run));
                drop(units);
                if content.is_whole() {
                    writer.publish(&entry);
                }
                Ok(())
            });
        }
    }

    fn publish(&mut self, entry: &Entry) {
        let shared = self.shared;
        if shared.config.user_bytes_max.is_some() {
            // A service has no names of what it keeps.
            return;
        }
        let names = Names::load(&entry.path);
        place::publish(&shared.layout, &shared.config.copies, &entry.path, &names);
        for seen in names.iter() {
            let copies = &shared.config.copies;
            self.directories.attach_above(&shared.layout, copies, seen.name.view());
        }
    }

    fn keep_directory(&mut self, name: byname_packet::Name, packet: DirectoryPacket) {
        self.directories.keep(name.clone(), packet);
        let shared = self.shared;
        self.directories.attach_above(&shared.layout, &shared.config.copies, name.view());
    }
}

/// Notes one more use of an entry.
fn touch(entry: &Entry) -> io::Result<()> {
    let now_ns = scan::now_ns();
    let mut standing = scan::standing(&entry.path);
    if now_ns.saturating_sub(standing.used_ns) >= REUSE_NS {
        standing.touch(now_ns);
        files::replace(&entry.path.join(USED), standing.encode().as_bytes())?;
    }
    Ok(())
}

/// Writes a name, and the packet that goes with it. True if the name is a new one.
fn write_description(entry: &Entry, description: Description) -> io::Result<bool> {
    let Description { name, version, mtime_ns, mode, packet } = description;
    let mut names = Names::load(&entry.path);
    let is_new = names.add(Seen { name, version, mtime_ns, mode });
    if is_new {
        names.save(&entry.path)?;
    }
    if let Some(packet) = packet
        && (is_new || !entry.path.join(PACKET).exists())
    {
        files::replace(&entry.path.join(PACKET), &packet)?;
        return Ok(true);
    }
    Ok(is_new)
}
