//! Context of a download: its options, and what is common to all files of a call.

use std::cell::RefCell;
use std::sync::Arc;

use byname_packet::NameRef;
use byname_transfer::discovery::Discovered;
use byname_transfer::request::Context;

use crate::config::ClientConfig;
use crate::download::disk_queue::DiskAccess;
use crate::download::part_file::{Attributes, Target};
use crate::download::progress::{Event, Progress};
use crate::engine::source_names::SourceNames;
use crate::lookup::listing::ListedEntry;

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
        FileContext { config, options, progress, is_batched: false, disk, source_names }
    }

    /// Teaches the memory the version of what stands at the target, if a packet was kept with it.
    pub(crate) fn learn(&self, target: &Target, name: NameRef<'_>, context: &mut Context<'_>) {
        if let Some(copies) = &self.config.copies
            && let Ok(file) = target.open()
        {
            copies.learn(&file, name, context);
        }
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
