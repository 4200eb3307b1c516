//! Scrubbing: every unit that is there against the root that its entry is named by.
//!
//! Units whose nodes are not there cannot be judged without the network; a reader will judge them.
//! What is whole and sound is noted as verified, so that the kernel may read it by itself.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use byname_security::tree::{Check, Verifier};
use byname_transfer::verify::UnitSet;

use crate::entry::Entry;
use crate::layout::ContentKey;
use crate::names::Names;
use crate::place;
use crate::state::Shared;
use crate::whole::{self, DataState};

/// Nodes held while one entry is looked at.
const NODES_MAX: usize = 64;

/// Outcome of a scrub. Sums of all entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScrubReport {
    /// Entries looked at.
    pub entries: u64,
    /// Units that are what their root says.
    pub good_units: u64,
    /// Units that are not, and count as missing from now on.
    pub rotten_units: u64,
    /// Units that cannot be judged here.
    pub unproved_units: u64,
    /// Entries that the disk did not let be read.
    pub unreadable_entries: u64,
}

impl ScrubReport {
    pub(crate) fn add(&mut self, other: ScrubReport) {
        self.entries += other.entries;
        self.good_units += other.good_units;
        self.rotten_units += other.rotten_units;
        self.unproved_units += other.unproved_units;
        self.unreadable_entries += other.unreadable_entries;
    }
}

/// Looks at one entry; `None` if it is gone.
pub(crate) fn entry(
    shared: &Shared,
    key: ContentKey,
    path: &Path,
) -> io::Result<Option<ScrubReport>> {
    let Some(entry) = Entry::open(path, key, &shared.config.disk)? else { return Ok(None) };
    let units = entry.units()?;
    let before = settled(path);
    let mut verifier = Verifier::new(key.root, key.size, NODES_MAX);
    let mut report = ScrubReport { entries: 1, ..ScrubReport::default() };
    let mut rotten = UnitSet::default();
    for unit in units.iter() {
        match checked(&entry, &mut verifier, unit)? {
            Check::Verified => report.good_units += 1,
            Check::Need(_) => report.unproved_units += 1,
            Check::Bad => {
                report.rotten_units += 1;
                rotten.insert(unit);
            }
        }
    }
    if report.rotten_units > 0 {
        // A reader may have found one, and written it anew meanwhile.
        entry.unmark_wrong(&rotten, |unit| {
            Ok(matches!(checked(&entry, &mut verifier, unit)?, Check::Bad))
        })?;
        // It is no copy any more.
        place::withdraw(&shared.layout, path, &Names::load(path));
    }
    if report.good_units == verifier.shape().unit_count()
        && let Some(before) = before
        && settled(path).as_ref() == Some(&before)
    {
        before.save(path)?;
    }
    Ok(Some(report))
}

/// Checks a unit as it is on the disk now.
fn checked(entry: &Entry, verifier: &mut Verifier, unit: u64) -> io::Result<Check> {
    add_nodes(entry, verifier, unit)?;
    // A block that the disk cannot read is as bad as a wrong one.
    let bytes = entry.read_units(unit..unit + 1).unwrap_or_default();
    Ok(verifier.check(unit, &bytes))
}

/// State of the data of an entry, if it is on the disk and another change would show.
fn settled(path: &Path) -> Option<DataState> {
    let file = whole::open_data(path).ok()?;
    file.sync_data().ok()?;
    let state = DataState::of(&file).ok()??;
    state.unsettled(SystemTime::now()).is_zero().then_some(state)
}

/// Gives the verifier the nodes that prove a unit, as far as they are there and genuine.
fn add_nodes(entry: &Entry, verifier: &mut Verifier, unit: u64) -> io::Result<()> {
    let mut missing = Vec::new();
    let mut next = verifier.shape().node_of_unit(unit);
    while let Some(node) = next.filter(|node| !verifier.has_node(*node)) {
        missing.push(node);
        next = verifier.shape().parent(node);
    }
    while let Some(node) = missing.pop() {
        let Some(bytes) = entry.read_node(node)? else { return Ok(()) };
        if verifier.add_node(node, &bytes).is_err() {
            return Ok(());
        }
    }
    Ok(())
}
