//! Finding the current version of a name.
//!
//! Whoever has a copy that was fetched by a directory's manifest has no packet about any single
//! file, only the one that proves the manifest. So where nobody answers for a name (Nack NoRoute)
//! the manifest of its directory is asked for, and, should the name be a directory, its own. What
//! comes is proved by the publisher's signature like every other description: the manifest's packet
//! vouches for each entry.
//!
//! Invariant: what was asked first decides about errors; a fallback that fails leaves no trace.

use byname_packet::{Data, Name, NameRef, types};
use byname_security::trust::Trusted;
use byname_transfer::discovery::{Discovered, Discovery, DiscoveryConfig, Waiting};
use byname_transfer::error::ReadError;
use byname_transfer::fetch::{FetchConfig, NackKind};
use byname_transfer::flow::Flow;
use byname_transfer::naming::manifest_name;
use byname_transfer::reader::{ObjectPlan, Reader};
use byname_transfer::request::{Context, Request};

use crate::described::known;
use crate::job::Job;
use crate::list_job::ListJob;
use crate::listing::Listing;

/// Finds one version.
pub(crate) struct Finding {
    config: DiscoveryConfig,
    name: Name,
    /// Whether manifests may say it.
    falls_back: bool,
    state: State,
    /// How the object is read, if its beginning may be asked for before it is proved.
    reads: Option<FetchConfig>,
    ahead: Option<Box<Reader>>,
    outcome: Option<Result<Discovered, ReadError>>,
}

enum State {
    Asking(Box<Discovery>),
    Manifests(Box<Manifests>),
    Done,
}

/// What is asked for when nobody answers for the name.
struct Manifests {
    /// Of the directory that the name is in.
    parent: Option<ListJob>,
    /// Of the name itself.
    own: Option<Discovery>,
    /// What came of the name itself, should it be a directory.
    directory: Option<Discovered>,
    error: ReadError,
}

impl Finding {
    pub(crate) fn new(name: Name, config: DiscoveryConfig, now_ns: u64) -> Self {
        Finding { falls_back: true, ..Finding::without_manifests(name, config, now_ns) }
    }

    /// Finds a directory's manifest, of which only what it says of `about` counts.
    pub(crate) fn speaking_of(
        about: Name,
        manifest: Name,
        config: DiscoveryConfig,
        now_ns: u64,
    ) -> Self {
        let discovery = Discovery::new(manifest.clone(), config, now_ns).vouching_for(about);
        Finding {
            config,
            name: manifest,
            falls_back: false,
            state: State::Asking(Box::new(discovery)),
            reads: None,
            ahead: None,
            outcome: None,
        }
    }

    /// Finds what is described by a packet of its own and nothing else.
    pub(crate) fn without_manifests(name: Name, config: DiscoveryConfig, now_ns: u64) -> Self {
        let discovery = Discovery::new(name.clone(), config, now_ns);
        Finding {
            config,
            name,
            falls_back: false,
            state: State::Asking(Box::new(discovery)),
            reads: None,
            ahead: None,
            outcome: None,
        }
    }

    /// Asks for the beginning of the object as soon as its description has come, although that
    /// still has to be proved.
    pub(crate) fn asking_ahead(mut self, config: FetchConfig) -> Self {
        self.reads = Some(config);
        self
    }

    /// Who has asked ahead; to be used only for what was found.
    pub(crate) fn take_ahead(&mut self) -> Option<Box<Reader>> {
        self.ahead.take()
    }

    /// What was found, once.
    pub(crate) fn poll_outcome(&mut self) -> Option<Result<Discovered, ReadError>> {
        self.outcome.take()
    }

    /// What is being waited for.
    pub(crate) fn poll_waiting(&mut self, now_ns: u64) -> Option<Waiting> {
        match &mut self.state {
            State::Asking(discovery) => discovery.poll_waiting(now_ns),
            State::Manifests(_) | State::Done => None,
        }
    }

    pub(crate) fn handle_data(&mut self, data: &Data<'_>, context: &mut Context<'_>) -> bool {
        let was_taken = match &mut self.state {
            State::Asking(discovery) => {
                let ahead = self.ahead.as_mut();
                discovery.handle_data(data, context)
                    || ahead.is_some_and(|reader| {
                        reader.handle_data(data, false, context, &mut |_, _| {})
                    })
            }
            State::Manifests(manifests) => {
                let (parent, own) = (manifests.parent.as_mut(), manifests.own.as_mut());
                parent.is_some_and(|job| job.handle_data(data, false, context))
                    || own.is_some_and(|discovery| discovery.handle_data(data, context))
            }
            State::Done => false,
        };
        self.step(context);
        was_taken
    }

    pub(crate) fn handle_nack(
        &mut self,
        name: NameRef<'_>,
        kind: NackKind,
        context: &mut Context<'_>,
    ) {
        if let Some(reader) = &mut self.ahead {
            reader.handle_nack(name, kind, context);
        }
        match &mut self.state {
            State::Asking(discovery) => discovery.handle_nack(name, kind, context),
            State::Manifests(manifests) => {
                if let Some(job) = &mut manifests.parent {
                    job.handle_nack(name, kind, context);
                }
                if let Some(discovery) = &mut manifests.own {
                    discovery.handle_nack(name, kind, context);
                }
            }
            State::Done => {}
        }
        self.step(context);
    }

    pub(crate) fn handle_timeout(&mut self, context: &mut Context<'_>) {
        if let Some(reader) = &mut self.ahead {
            reader.handle_timeout(context);
        }
        match &mut self.state {
            State::Asking(discovery) => discovery.handle_timeout(context),
            State::Manifests(manifests) => {
                if let Some(job) = &mut manifests.parent {
                    job.handle_timeout(context);
                }
                if let Some(discovery) = &mut manifests.own {
                    discovery.handle_timeout(context);
                }
            }
            State::Done => {}
        }
        self.step(context);
    }

    pub(crate) fn poll_request(&mut self, context: &mut Context<'_>) -> Option<Request> {
        match &mut self.state {
            State::Asking(discovery) => {
                let request = discovery.poll_request(context);
                request.or_else(|| self.ahead.as_mut()?.poll_request(context))
            }
            State::Manifests(manifests) => {
                let Manifests { parent, own, .. } = &mut **manifests;
                let request = own.as_mut().and_then(|discovery| discovery.poll_request(context));
                request.or_else(|| parent.as_mut().and_then(|job| job.poll_request(context)))
            }
            State::Done => None,
        }
    }

    pub(crate) fn poll_deadline(&mut self, flow: &Flow) -> Option<u64> {
        match &mut self.state {
            State::Asking(discovery) => {
                let ahead = self.ahead.as_mut().and_then(|reader| reader.poll_deadline(flow));
                discovery.poll_deadline(flow).into_iter().chain(ahead).min()
            }
            State::Manifests(manifests) => {
                let Manifests { parent, own, .. } = &mut **manifests;
                let own = own.as_mut().and_then(|discovery| discovery.poll_deadline(flow));
                let parent = parent.as_mut().and_then(|job| job.poll_deadline(flow));
                own.into_iter().chain(parent).min()
            }
            State::Done => None,
        }
    }

    pub(crate) fn abandon(&mut self, flow: &mut Flow) {
        self.leave_ahead(flow);
        match &mut self.state {
            State::Asking(discovery) => discovery.abandon(flow),
            State::Manifests(manifests) => manifests.abandon(flow),
            State::Done => {}
        }
    }

    fn finish(&mut self, outcome: Result<Discovered, ReadError>) {
        self.state = State::Done;
        self.outcome = Some(outcome);
    }

    /// Begins to ask ahead when there is a description to be proved, and ends when it is refused.
    fn look_ahead(&mut self, context: &mut Context<'_>) {
        let (State::Asking(discovery), Some(config)) = (&self.state, self.reads) else { return };
        let plan = discovery.unverified().and_then(|it| ObjectPlan::new(&it, false).ok());
        match plan.filter(|plan| plan.root().is_some()) {
            Some(plan) if self.ahead.is_none() => {
                self.ahead = Some(Box::new(Reader::speculative(plan, config)));
            }
            Some(_) => {}
            None => self.leave_ahead(context.flow),
        }
    }

    fn leave_ahead(&mut self, flow: &mut Flow) {
        if let Some(mut reader) = self.ahead.take() {
            reader.abandon(flow);
        }
    }

    fn step(&mut self, context: &mut Context<'_>) {
        match &mut self.state {
            State::Asking(discovery) => match discovery.poll_outcome() {
                None => self.look_ahead(context),
                Some(Err(error @ ReadError::NoRoute { .. })) if self.falls_back => {
                    let manifests = Manifests::new(&self.name, self.config, error, context.now_ns);
                    self.state = State::Manifests(Box::new(manifests));
                }
                Some(outcome) => {
                    if outcome.is_err() {
                        self.leave_ahead(context.flow);
                    }
                    self.finish(outcome);
                }
            },
            State::Manifests(manifests) => {
                if let Some(outcome) = manifests.step(&self.name, context) {
                    manifests.abandon(context.flow);
                    self.finish(outcome);
                }
            }
            State::Done => {}
        }
    }
}

impl Manifests {
    fn new(name: &Name, config: DiscoveryConfig, error: ReadError, now_ns: u64) -> Self {
        let is_entry = name.view().last().is_some_and(|last| last.typ == types::GENERIC);
        let parent = is_entry.then(|| {
            let directory = name.view().without_last(1).to_name();
            ListJob::manifest_for(name, directory, config, now_ns)
        });
        let own = is_entry.then(|| Discovery::new(manifest_name(name.view()), config, now_ns));
        Manifests { parent, own, directory: None, error }
    }

    /// What it came to, if it did.
    fn step(
        &mut self,
        name: &Name,
        context: &mut Context<'_>,
    ) -> Option<Result<Discovered, ReadError>> {
        if let Some(outcome) = self.own.as_mut().and_then(Discovery::poll_outcome) {
            self.own = None;
            self.directory = outcome.ok().filter(|found| found.metadata.is_directory());
        }
        if let Some(job) = self.parent.take_if(|job| job.is_done())
            && let Ok(listing) = job.into_outcome()
        {
            match entry(&listing, name) {
                Entry::File(found) => return Some(not_older(*found, name, context)),
                Entry::Nothing => return Some(Err(self.error.clone())),
                Entry::Directory => {}
            }
        }
        if let Some(found) = self.directory.take() {
            return Some(Ok(found));
        }
        let is_over = self.parent.is_none() && self.own.is_none();
        is_over.then(|| Err(self.error.clone()))
    }

    fn abandon(&mut self, flow: &mut Flow) {
        if let Some(mut job) = self.parent.take() {
            job.abandon(flow);
        }
        if let Some(mut discovery) = self.own.take() {
            discovery.abandon(flow);
        }
    }
}

/// A manifest may be older than what is known of the file.
fn not_older(
    found: Discovered,
    name: &Name,
    context: &mut Context<'_>,
) -> Result<Discovered, ReadError> {
    let got = found.version;
    if let Err(older) = context.versions.check(name.view(), got) {
        return Err(ReadError::RolledBack { name: name.clone(), seen: older.seen, got });
    }
    if found.trust != Trusted::Insecure {
        context.versions.insert(name.clone(), got);
    }
    Ok(found)
}

/// What a manifest says of a name in its directory.
enum Entry {
    File(Box<Discovered>),
    Directory,
    Nothing,
}

fn entry(listing: &Listing, name: &Name) -> Entry {
    let last = name.view().last().map(|last| last.value);
    let found = listing.described().find(|described| Some(described.entry.name) == last);
    match found {
        Some(described) if described.entry.is_directory => Entry::Directory,
        Some(described) => match known(listing, &described) {
            Some(found) => Entry::File(Box::new(found)),
            None => Entry::Nothing,
        },
        None => Entry::Nothing,
    }
}
