//! The thread that hashes whole contents, so that the kernel may read them by itself.
//!
//! It has a lower priority than the readers, takes one content after the other, and ends when there
//! is none left.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use byname_security::tree::Shape;

use crate::counters::add;
use crate::disk::Step;
use crate::entry::Entry;
use crate::health::Direction;
use crate::known::ContentState;
use crate::layout::ContentKey;
use crate::scrub;
use crate::state::Shared;
use crate::whole::{self, Data, DataState};

/// Number of the thread among those that call the disk.
const CALLER: usize = 7;
/// Nice value of the thread.
const NICE: i32 = 10;

/// Has a whole content hashed, sooner or later.
pub(crate) fn push(shared: &Arc<Shared>, content: &Arc<ContentState>) {
    if !shared.checks.push(content) {
        return;
    }
    let own = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("byname-cache-v".to_owned());
    if let Err(error) = thread.spawn(move || run(&own)) {
        tracing::debug!(%error, "no thread to hash what is in the cache");
        shared.checks.end();
    }
}

fn run(shared: &Shared) {
    let _ = rustix::process::setpriority_process(None, NICE);
    while let Some(content) = shared.checks.next() {
        if shared.health.is_usable(Direction::Read, &shared.counts)
            && let Err(error) = check(shared, &content)
            // What is removed meanwhile need not be hashed.
            && error.kind() != io::ErrorKind::NotFound
        {
            add(&shared.counts.failed_reads, 1);
            shared.health.note_error(Direction::Read, &error, &shared.counts);
        }
        shared.checks.settle();
    }
}

fn check(shared: &Shared, content: &ContentState) -> io::Result<()> {
    let found = {
        let _call = shared.health.begin(CALLER);
        whole::find(content, &shared.place())?
    };
    match found {
        Data::Unverified => verify(shared, content.key, &shared.layout.entry(&content.key)),
        Data::Verified(_) | Data::Partial => Ok(()),
    }
}

/// Hashes the data of an entry that has all of its content, and notes the state in which it was
/// genuine. Of what is not, the rotten units count as missing from then on.
fn verify(shared: &Shared, key: ContentKey, path: &Path) -> io::Result<()> {
    let file = whole::open_data(path)?;
    // What could not be written to the disk must not be taken for what is on it.
    file.sync_data()?;
    let Some(before) = DataState::of(&file)? else { return Ok(()) };
    std::thread::sleep(before.unsettled(SystemTime::now()));
    let mut read = |piece: &mut [u8]| {
        if shared.checks.is_over() {
            return Ok(None);
        }
        let _call = shared.health.begin(CALLER);
        shared.config.disk.announce(Step::Read, path)?;
        (&file).read(piece).map(Some)
    };
    match whole::is_genuine(&key, &mut read)? {
        None => Ok(()),
        Some(false) => disown(shared, key, path),
        // Somebody may have written to it meanwhile; then it is hashed another time.
        Some(true) if DataState::of(&file)?.as_ref() != Some(&before) => Ok(()),
        Some(true) => before.save(path),
    }
}

/// Takes the bits of rotten units away; all of them if it cannot be told which those are.
fn disown(shared: &Shared, key: ContentKey, path: &Path) -> io::Result<()> {
    tracing::warn!(%key, "what is whole in the cache is not what was signed; it is fetched anew");
    let report = scrub::entry(shared, key, path)?.unwrap_or_default();
    add(&shared.counts.rotten_units, report.rotten_units);
    let all = 0..Shape::new(key.size).unit_count();
    // A reader may have found what is rotten before, and written it anew.
    if report.rotten_units > 0 || report.good_units == all.end {
        return Ok(());
    }
    match Entry::open(path, key, &shared.config.disk)? {
        Some(entry) => entry.mark(std::slice::from_ref(&all), false),
        None => Ok(()),
    }
}
