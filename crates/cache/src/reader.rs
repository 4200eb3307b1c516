//! The threads that read.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use byname_security::tree::NodeId;

use crate::checker;
use crate::counters::add;
use crate::health::Direction;
use crate::known::{ContentState, lock};
use crate::pieces::Buffer;
use crate::reads::{Found, PieceWork, ReadWork, UnitsWork, WholeWork};
use crate::state::Shared;
use crate::whole::{self, Data};

/// Takes a request; false if there is no room for it.
pub(crate) fn push(shared: &Arc<Shared>, work: ReadWork) -> bool {
    if shared.reads.push(work).is_err() {
        return false;
    }
    let Some(caller) = shared.reads.wants_thread() else { return true };
    let own = Arc::clone(shared);
    let thread = std::thread::Builder::new().name(format!("byname-cache-{caller}"));
    match thread.spawn(move || run(&own, caller)) {
        Ok(_) => true,
        Err(error) => {
            tracing::debug!(%error, "no thread to read the cache");
            shared.reads.lose_thread()
        }
    }
}

fn run(shared: &Arc<Shared>, caller: usize) {
    while let Some(work) = shared.reads.next() {
        carry_out(shared, work, caller);
    }
}

fn carry_out(shared: &Arc<Shared>, work: ReadWork, caller: usize) {
    match work {
        ReadWork::Units(work) => read_units(shared, work, caller),
        ReadWork::Whole(work) => find_whole(shared, work, caller),
        ReadWork::Piece(work) => read_piece(shared, work, caller),
    }
}

/// Looks for the file that has all of a content; one that is not verified will be hashed.
fn find_whole(shared: &Arc<Shared>, work: WholeWork, caller: usize) {
    let WholeWork { content, answer } = work;
    let call = shared.health.begin(caller);
    let found = whole::find(&content, &shared.place());
    drop(call);
    let file = match found {
        Ok(Data::Verified(file)) => Some(file),
        Ok(Data::Unverified) => {
            checker::push(shared, &content);
            None
        }
        Ok(Data::Partial) => None,
        Err(error) => {
            add(&shared.counts.failed_reads, 1);
            shared.health.note_error(Direction::Read, &error, &shared.counts);
            None
        }
    };
    answer(file);
}

/// Fills a piece, and has the nodes that prove it in the kernel's memory.
fn read_piece(shared: &Shared, mut work: PieceWork, caller: usize) {
    let Some(buffer) = work.buffer.take() else { return };
    let call = shared.health.begin(caller);
    let filled = fill_piece(shared, &work, buffer);
    drop(call);
    match filled {
        Ok(()) => shared.health.note_success(Direction::Read),
        Err(error) => {
            add(&shared.counts.failed_reads, 1);
            shared.health.note_error(Direction::Read, &error, &shared.counts);
        }
    }
}

fn fill_piece(shared: &Shared, work: &PieceWork, buffer: Buffer) -> io::Result<()> {
    let PieceWork { content, piece, is_direct, .. } = work;
    let Some(entry) = content.refresh(&shared.place())? else { return Ok(()) };
    entry.bring_nodes(&piece.units)?;
    piece.fill(buffer, |place| {
        let count = entry.read_into(place, piece.units.start, *is_direct)?;
        add(&shared.counts.read_bytes, count as u64);
        Ok(count)
    })
}

fn read_units(shared: &Shared, work: UnitsWork, caller: usize) {
    let UnitsWork { content, units, nodes, answer } = work;
    let mut found = Found { units, ..Found::default() };
    let call = shared.health.begin(caller);
    match fill(shared, &content, &nodes, &mut found) {
        Ok(()) => shared.health.note_success(Direction::Read),
        Err(error) => {
            add(&shared.counts.failed_reads, 1);
            shared.health.note_error(Direction::Read, &error, &shared.counts);
        }
    }
    drop(call);
    answer(found);
}

/// Reads what is there; what was read before an error counts.
fn fill(
    shared: &Shared,
    content: &ContentState,
    nodes: &[NodeId],
    found: &mut Found,
) -> io::Result<()> {
    let Some(entry) = content.refresh(&shared.place())? else { return Ok(()) };
    for node in nodes {
        if let Some(bytes) = entry.read_node(*node)? {
            if let Some(service) = &shared.service {
                // What comes of the units below it has nothing else to wait for.
                service.keep_proof(&content.key, *node, &bytes);
            }
            found.nodes.push((*node, bytes));
        }
    }
    for run in present_runs(content, found.units.clone()) {
        let bytes = entry.read_units(run.clone())?;
        add(&shared.counts.read_bytes, bytes.len() as u64);
        found.runs.push((run.start, bytes));
    }
    Ok(())
}

fn present_runs(content: &ContentState, units: Range<u64>) -> Vec<Range<u64>> {
    let known = lock(&content.units);
    let end = units.end.min(content.shape.unit_count());
    let mut runs = Vec::new();
    let mut at = units.start;
    for missing in known.present.missing(at..end) {
        if at < missing.start {
            runs.push(at..missing.start);
        }
        at = missing.end;
    }
    if at < end {
        runs.push(at..end);
    }
    runs
}
