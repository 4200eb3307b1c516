//! Context of a download: its options, and what is common to all files of a call.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use byname_packet::NameRef;
use byname_retry::BackOff;
use byname_transfer::discovery::Discovered;
use byname_transfer::error::ReadError;
use byname_transfer::request::Context;

use crate::config::{ClientConfig, nanoseconds};
use crate::download::disk_queue::DiskAccess;
use crate::download::part_file::{Attributes, Target};
use crate::download::progress::{Event, Progress};
use crate::engine::source_names::SourceNames;
use crate::error::ClientError;
use crate::lookup::listing::ListedEntry;

/// Pauses before a lookup is begun anew during an outage.
const OUTAGE_PAUSES: BackOff = BackOff { min_ns: 100_000_000, max_ns: 800_000_000 };

/// Options of a download.
#[derive(Clone, Copy, Debug, Default)]
pub struct DownloadOptions {
    /// Leave files that exist alone.
    pub no_clobber: bool,
    /// Make sure that finished files survive a power cut.
    pub sync: bool,
    /// In a tree, do not take a file for the published one because size and time are the same.
    pub checksum: bool,
    /// In a tree, leave no directories behind for which the filter let nothing through.
    pub prune_empty: bool,
    /// In a tree, fetch what a symbolic link leads to in place of making the link.
    pub copy_links: bool,
}

/// Context that all files of a call share.
pub(crate) struct FileContext<'a> {
    pub(crate) config: ClientConfig,
    pub(crate) options: DownloadOptions,
    progress: RefCell<Box<dyn Progress + 'a>>,
    pub(crate) source_names: Arc<SourceNames>,
    /// Whole files are placed by the caller, many after one sync.
    pub(crate) is_batched: bool,
    pub(crate) disk: DiskAccess,
    /// The publisher, or who stands in for it, has answered: an outage is borne from now on.
    has_begun: Cell<bool>,
}

impl<'a> FileContext<'a> {
    pub(crate) fn new(
        config: &ClientConfig,
        options: DownloadOptions,
        progress: Box<dyn Progress + 'a>,
        disk: DiskAccess,
        source_names: Arc<SourceNames>,
    ) -> Self {
        let (config, progress) = (config.clone(), RefCell::new(progress));
        FileContext {
            config,
            options,
            progress,
            is_batched: false,
            disk,
            source_names,
            has_begun: Cell::new(false),
        }
    }

    /// Teaches the memory the version of what stands at the target, if a packet was kept with it.
    pub(crate) fn learn(&self, target: &Target, name: NameRef<'_>, context: &mut Context<'_>) {
        if let Some(copies) = &self.config.copies
            && let Ok(file) = target.open()
        {
            copies.learn(&file, name, context);
        }
    }

    /// Somebody has answered.
    pub(crate) fn begin(&self) {
        self.has_begun.set(true);
    }

    /// When a lookup that ended with `error` is to be begun anew, if the call bears that: it has
    /// begun, and the outage has not lasted too long since `since_ns`.
    pub(crate) fn again_ns(
        &self,
        error: &ClientError,
        since_ns: u64,
        tries: u32,
        context: &mut Context<'_>,
    ) -> Option<u64> {
        let is_outage = matches!(
            error,
            ClientError::Read(ReadError::NoRoute { .. } | ReadError::TimeOut { .. })
        );
        let is_over = context.now_ns.saturating_sub(since_ns) >= nanoseconds(self.config.outage());
        if !is_outage || is_over || !self.has_begun.get() {
            return None;
        }
        let pause_ns = OUTAGE_PAUSES.pause_ns(tries + 1, context.flow.jitter().next_u64());
        Some(context.now_ns.saturating_add(pause_ns))
    }

    pub(crate) fn report(&self, event: Event<'_>) {
        self.progress.borrow_mut().on_event(event);
    }
}

/// Attributes that the publisher announces for a file.
pub(crate) fn attributes(discovered: &Discovered) -> Attributes {
    Attributes { mode: discovered.metadata.mode, mtime_ns: discovered.metadata.mtime_ns }
}

/// Attributes that a manifest announces for a file.
pub(crate) fn listed_attributes(listed: &ListedEntry<'_>) -> Attributes {
    let details = listed.details;
    Attributes {
        mode: details.map(|details| details.mode),
        mtime_ns: details.and_then(|details| details.mtime_ns),
    }
}
