//! A head's terms: waiting for the lease, leading with it, and waiting again.
//!
//! [`Candidate`] takes the lease when it may; [`Term`] is what a head does while it has it. All of
//! it is the catalog's thread's.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use byname_catalog::engine::Engine;
use byname_catalog::{Caller, Catalog, CatalogError, Command, Lease, Reader};
use byname_io::Clock;
use byname_site::SiteName;
use byname_transfer::server::SharedSigner;

use crate::audit::AuditFiles;
use crate::commands::{CommandAnswer, Waiting};
use crate::counters::HeadCounters;
use crate::execute::Executor;
use crate::losses::Losses;
use crate::own::OwnCommands;
use crate::pulse::{Pulses, RENEWALS};
use crate::repair::RepairConfig;
use crate::succession::Succession;
use crate::traffic::Rates;
use crate::watch::{Watch, WatchTerm};

/// The head's own commands in one transaction, at most.
const OWN_COMMANDS_MAX: usize = 256;
/// Pause between two looks at what is due.
const EXPIRE_PAUSE_NS: u64 = 1_000_000_000;
/// A lease that is never over: of an engine that one head has.
pub(crate) const FOREVER_NS: u64 = u64::MAX;

/// Hears that a head leads, or that another does.
pub type OnRole = Box<dyn FnMut(bool) + Send>;

/// The time by two clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clocks {
    /// Since 1970.
    pub(crate) unix_ns: u64,
    /// Of a clock that never goes back.
    pub(crate) now_ns: u64,
}

/// A head that wants to lead.
pub(crate) struct Candidate {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) site: SiteName,
    pub(crate) signer: SharedSigner,
    pub(crate) certificates: Vec<Vec<u8>>,
    /// Its name in the lease, which no other head has.
    pub(crate) name: String,
    pub(crate) kept_ns: u64,
    pub(crate) reserved_percent: u8,
    pub(crate) repair: RepairConfig,
    /// Commands and questions that may be sent a second.
    pub(crate) rates: Rates,
    /// Where it is written who asked for what.
    pub(crate) audit: Arc<AuditFiles>,
    /// Where others see what it counts.
    pub(crate) counters: HeadCounters,
    pub(crate) lease_ns: u64,
    pub(crate) succession: Succession,
    pub(crate) losses: Losses,
    pub(crate) clock: Clock,
    pub(crate) on_role: OnRole,
    /// Where it stands, if others may take its place.
    pub(crate) pulses: Option<Arc<Pulses>>,
    /// To whoever looks after the disks.
    pub(crate) terms: Sender<WatchTerm>,
}

impl Candidate {
    /// Takes the lease if it may be taken.
    ///
    /// # Errors
    /// [`CatalogError`]; another head may have come first.
    pub(crate) fn try_lead(&mut self, clocks: Clocks) -> Result<Option<Term>, CatalogError> {
        let seen = Reader::new(&*self.engine, &Caller::Head)?.head_lease()?;
        self.losses.handle(seen.as_ref(), self.engine.setbacks());
        if let Some(pulses) = &self.pulses {
            // First this: routes are registered again by who has an engine.
            pulses.engine.beat();
            if !pulses.forwarder.is_there() {
                return Ok(None);
            }
        }
        let has_claim = self.engine.claim()?;
        if !self.succession.handle(seen.clone(), has_claim, clocks.now_ns) {
            return Ok(None);
        }
        let until_ns = clocks.unix_ns.saturating_add(self.lease_ns);
        let mut catalog = self.take_over(seen.as_ref(), until_ns)?;
        if !has_claim {
            self.take_claim();
        }
        catalog.keep_versions(self.kept_ns);
        catalog.bound_reserved(self.reserved_percent);
        (self.on_role)(true);
        Ok(Some(self.term(catalog, clocks)))
    }

    /// Takes the claim from whoever has not renewed the lease, and would hide from others who
    /// leads. Only after the lease is taken: what was read of it may be of a moment ago, and a head
    /// that renews it keeps both.
    fn take_claim(&self) {
        let claimed = self.engine.end_claim().and_then(|()| self.engine.claim());
        if let Err(error) = claimed {
            tracing::info!(%error, "the engine is told later who leads");
        }
    }

    /// Takes the lease; above all numbers that were lost, if the engine may have an earlier state
    /// than one that was acknowledged.
    fn take_over(
        &mut self,
        seen: Option<&Lease>,
        until_ns: u64,
    ) -> Result<Catalog<Arc<dyn Engine>>, CatalogError> {
        let engine = self.engine.clone();
        let catalog = match self.losses.above() {
            None => Catalog::take_over(engine, &self.name, seen, until_ns)?,
            Some(highest) => {
                tracing::warn!("the database may lack what was acknowledged: numbers begin anew");
                let above = (until_ns, highest);
                Catalog::take_over_after_loss(engine, &self.name, seen, above)?
            }
        };
        if !self.losses.handle_term(catalog.epoch(), catalog.setbacks()) {
            return Err(CatalogError::LeaseLost);
        }
        Ok(catalog)
    }

    /// True if the lease is another head's. Routes of a head that asks so stay.
    pub(crate) fn has_successor(&self) -> Result<bool, CatalogError> {
        let seen = Reader::new(&*self.engine, &Caller::Head)?.head_lease()?;
        if let Some(pulses) = &self.pulses {
            pulses.engine.beat();
        }
        Ok(seen.is_none_or(|lease| lease.head != self.name))
    }

    fn term(&self, catalog: Catalog<Arc<dyn Engine>>, clocks: Clocks) -> Term {
        let (site, signer) = (self.site.clone(), self.signer.clone());
        let mut executor = Executor::new(catalog, site.clone(), signer.clone());
        executor.audit_in(self.audit.clone());
        executor.limit_rates(self.rates);
        executor.report_in(&self.counters);
        let own = (signer, &self.certificates[..]);
        let watch = Watch::new(site, self.engine.clone(), own, &executor).repairing(self.repair);
        let (commands, to_carry_out) = channel();
        let life = Arc::new(());
        let own = OwnCommands { commands, term: Arc::downgrade(&life) };
        // Nobody looks after disks where that was not started.
        let _ = self.terms.send(WatchTerm { watch, own });
        Term {
            executor,
            pulses: self.pulses.clone(),
            audit: self.audit.clone(),
            own: to_carry_out,
            clock: self.clock,
            _life: life,
            lease_ns: self.lease_ns,
            renew_ns: clocks.now_ns.saturating_add(self.lease_ns / RENEWALS),
            expire_ns: clocks.now_ns,
        }
    }

    /// The head leads no more: another has the lease.
    pub(crate) fn stand_down(&mut self) {
        self.counters.set_term(None);
        (self.on_role)(false);
        self.succession = Succession::new(self.lease_ns);
        // Its own only: whoever leads now keeps his.
        if let Err(error) = self.engine.release_claim() {
            tracing::info!(%error, "the claim is not given back yet");
        }
    }
}

/// The time in which a head leads.
pub(crate) struct Term {
    executor: Executor,
    pulses: Option<Arc<Pulses>>,
    audit: Arc<AuditFiles>,
    own: Receiver<Command>,
    clock: Clock,
    /// Others see by it that the term is not over.
    _life: Arc<()>,
    lease_ns: u64,
    renew_ns: u64,
    expire_ns: u64,
}

impl Term {
    /// Answers a batch.
    pub(crate) fn execute(&mut self, batch: &[Waiting], unix_ns: u64) -> Vec<CommandAnswer> {
        let began_ns = self.clock.now_ns();
        let answers = self.executor.execute(batch, unix_ns);
        self.executor.end_batch(self.clock.now_ns().saturating_sub(began_ns));
        let lines = self.executor.take_audit();
        if !lines.is_empty()
            && let Err(error) = self.audit.write(&lines)
        {
            tracing::warn!(%error, count = lines.len(), "lines of the audit log are lost");
        }
        answers
    }

    /// What the head does by itself: renews the lease, notes what the disks say, ends what is due.
    /// False if the term is over.
    pub(crate) fn do_duties(&mut self, clocks: Clocks, engine: &dyn Engine) -> bool {
        if clocks.now_ns >= self.renew_ns {
            self.renew_ns = clocks.now_ns.saturating_add(self.lease_ns / RENEWALS);
            let until_ns = clocks.unix_ns.saturating_add(self.lease_ns);
            let renewed = noted(self.executor.renew(until_ns), "the lease is not renewed");
            if let Some(pulses) = self.pulses.as_ref().filter(|_| renewed.is_some()) {
                pulses.engine.beat();
            }
            // The connection that shows that this head is there may have broken.
            noted(engine.claim(), "the engine cannot be told who leads");
        }
        let commands: Vec<Command> = self.own.try_iter().take(OWN_COMMANDS_MAX).collect();
        if !commands.is_empty() {
            let carried = self.executor.carry_out(commands, clocks.unix_ns);
            noted(carried, "what the disks say is not noted");
        }
        if clocks.now_ns >= self.expire_ns {
            let looked = noted(self.executor.expire(clocks.unix_ns), "cannot end what is due");
            // If there is more, commands come between two looks.
            let pause_ns = if looked == Some(true) { 0 } else { EXPIRE_PAUSE_NS };
            self.expire_ns = clocks.now_ns.saturating_add(pause_ns);
        }
        !self.executor.is_over() && self.is_reached()
    }

    /// False if nobody can reach this head any more: another one shall lead.
    fn is_reached(&self) -> bool {
        let is_reached = self.pulses.as_ref().is_none_or(|pulses| {
            // Without its engine it lets its routes end itself, and waits for it.
            pulses.forwarder.is_there() || !pulses.engine.is_there()
        });
        if !is_reached {
            tracing::warn!("no forwarder has this head's routes: another head may lead");
        }
        is_reached
    }

    /// When there is something to do.
    pub(crate) fn due_ns(&self) -> u64 {
        self.expire_ns.min(self.renew_ns)
    }
}

/// The outcome, if there is one; what failed is tried again.
fn noted<T, E: Into<CatalogError>>(result: Result<T, E>, what: &'static str) -> Option<T> {
    match result.map_err(Into::into) {
        Ok(value) => Some(value),
        Err(CatalogError::LeaseLost) => None,
        Err(error) => {
            tracing::warn!(%error, "{what}");
            None
        }
    }
}
