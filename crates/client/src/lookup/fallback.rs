//! Fallback lookups in manifests, where nobody answers for a name itself.
//!
//! Whoever has a copy that was fetched by a directory's manifest has no packet about any single
//! file, only the one that proves the manifest. So the manifest of the name's directory is asked
//! for and, should the name be a directory, its own. What comes is verified by the publisher's
//! signature like every other description: the manifest's packet vouches for each entry.
//!
//! Invariant: what was asked first decides about errors; a fallback that fails leaves no trace.

use byname_packet::{Data, Name, NameRef, types};
use byname_transfer::discovery::{Discovered, Discovery, DiscoveryConfig};
use byname_transfer::error::{ProtocolProblem, ReadError};
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::naming::manifest_name;
use byname_transfer::request::{Context, Request};
use byname_transfer::versions::Older;

use crate::engine::job::Job;
use crate::error::ClientError;
use crate::lookup::list_job::ListJob;
use crate::lookup::listing::{ListedEntry, Listing};

/// Lookups that are made when nobody answers for the name.
pub(super) struct Manifests {
    /// Of the directory that the name is in.
    parent: Option<ListJob>,
    /// Of the name itself.
    own: Option<Discovery>,
    /// The manifest of the name itself, should it be a directory.
    directory: Option<Discovered>,
    error: ReadError,
}

impl Manifests {
    pub(super) fn new(name: &Name, config: DiscoveryConfig, error: ReadError, now_ns: u64) -> Self {
        let is_entry = name.view().last().is_some_and(|last| last.typ == types::GENERIC);
        let parent = is_entry.then(|| {
            let directory = name.view().without_last(1).to_name();
            ListJob::manifest_for(name, directory, config, now_ns)
        });
        let own = is_entry.then(|| Discovery::new(manifest_name(name.view()), config, now_ns));
        Manifests { parent, own, directory: None, error }
    }

    /// The outcome, if there is one.
    pub(super) fn step(&mut self, name: &Name) -> Option<Result<Discovered, ReadError>> {
        if let Some(outcome) = self.own.as_mut().and_then(Discovery::poll_outcome) {
            self.own = None;
            self.directory = outcome.ok().filter(|found| found.metadata.is_directory());
        }
        if let Some(job) = self.parent.take_if(|job| job.is_done()) {
            match job.into_outcome().map(|listing| entry(&listing, name)) {
                Ok(NamedEntry::File(found)) => return Some(Ok(*found)),
                Ok(NamedEntry::Older(Older { seen, got })) => {
                    let name = name.clone();
                    return Some(Err(ReadError::RolledBack { name, seen, got }));
                }
                Ok(NamedEntry::Link(target)) => {
                    let (name, problem) = (name.clone(), ProtocolProblem::Link { target });
                    return Some(Err(ReadError::Protocol { name, problem }));
                }
                Ok(NamedEntry::Nothing) => return Some(Err(self.error.clone())),
                // Why there is no answer: what holds it cannot be read.
                Err(ClientError::Read(error @ ReadError::Manifest { .. })) => self.error = error,
                Ok(NamedEntry::Directory) | Err(_) => {}
            }
        }
        if let Some(found) = self.directory.take() {
            return Some(Ok(found));
        }
        let is_over = self.parent.is_none() && self.own.is_none();
        is_over.then(|| Err(self.error.clone()))
    }

    pub(super) fn handle_data(&mut self, data: &Data<'_>, context: &mut Context<'_>) -> bool {
        let (parent, own) = (self.parent.as_mut(), self.own.as_mut());
        parent.is_some_and(|job| job.handle_data(data, false, context))
            || own.is_some_and(|discovery| discovery.handle_data(data, context))
    }

    pub(super) fn handle_nack(
        &mut self,
        name: NameRef<'_>,
        kind: NackKind,
        context: &mut Context<'_>,
    ) {
        if let Some(job) = &mut self.parent {
            job.handle_nack(name, kind, context);
        }
        if let Some(discovery) = &mut self.own {
            discovery.handle_nack(name, kind, context);
        }
    }

    pub(super) fn handle_timeout(&mut self, context: &mut Context<'_>) {
        if let Some(job) = &mut self.parent {
            job.handle_timeout(context);
        }
        if let Some(discovery) = &mut self.own {
            discovery.handle_timeout(context);
        }
    }

    pub(super) fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        let request = self.own.as_mut().and_then(|discovery| discovery.poll_request(context));
        request.or_else(|| self.parent.as_mut().and_then(|job| job.poll_request(context)))
    }

    pub(super) fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        let own = self.own.as_mut().and_then(|discovery| discovery.poll_deadline(flow));
        let parent = self.parent.as_mut().and_then(|job| job.poll_deadline(flow));
        own.into_iter().chain(parent).min()
    }

    pub(super) fn abandon(&mut self, flow: &mut Flow) {
        if let Some(mut job) = self.parent.take() {
            job.abandon(flow);
        }
        if let Some(mut discovery) = self.own.take() {
            discovery.abandon(flow);
        }
    }
}

/// A name, as the manifest of its directory has it.
enum NamedEntry {
    File(Box<Discovered>),
    /// A manifest may be older than what is known of the file.
    Older(Older),
    Directory,
    /// Whoever described it alone could answer what it leads to.
    Link(Vec<u8>),
    Nothing,
}

fn entry(listing: &Listing, name: &Name) -> NamedEntry {
    let last = name.view().last().map(|last| last.value);
    let found = listing.listed().find(|listed| Some(listed.entry.name) == last);
    match found {
        Some(listed) if listed.entry.is_directory => NamedEntry::Directory,
        Some(listed) => match (listing.older(listed.entry.name), listing.resolve(&listed)) {
            (Some(older), _) => NamedEntry::Older(older),
            (None, Some(found)) => NamedEntry::File(Box::new(found.into_parts().1)),
            (None, None) => link_target(&listed).map_or(NamedEntry::Nothing, NamedEntry::Link),
        },
        None => NamedEntry::Nothing,
    }
}

fn link_target(listed: &ListedEntry<'_>) -> Option<Vec<u8>> {
    listed.details?.attributes.link_target.map(<[u8]>::to_vec)
}
