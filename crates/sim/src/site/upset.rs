//! Catalogs that are not what they were.
//!
//! A head whose term is over and that does not know: it has a copy of the catalog of its own, at
//! which files are removed, and tells disks to drop them. No disk may obey. Then, a catalog that is
//! put back to an older state, and one that is made again from its rows. Disks that are there
//! twice. And a user whose key is removed while he writes, or whose door may not speak for him.

use byname_catalog::engine::{Engine, MemoryEngine};
use byname_catalog::id::LeaseEpoch;
use byname_catalog::{Catalog, Command, Grant, Place, Seen, SetDoor, export, rebuild};

use super::history::{Kind, Operation, Outcome};
use super::promises::{self, PATHS};
use super::writer::{Step, path};
use super::{DOOR, Founder, Member, Site, SiteDisk, SiteHead, SiteWriter};
use crate::program::{Crash, Now};
use crate::world::{Fault, Incident, MS, ProgramId, SECOND, START_UNIX_NS, World};

/// Later by this, versions that were replaced are kept no more.
const AHEAD_NS: u64 = 3 * 3600 * SECOND;
/// Time for the other head to be heard of by all disks.
const HEARD_NS: u64 = 120 * SECOND;
/// Rows of a catalog, at most.
const ROWS_MAX: usize = 1 << 16;
/// Commands by which a writer has keys of a session.
const SIGNED: usize = 8;
/// Time for a writer to do them, and for a key to be removed.
const REMOVAL_NS: u64 = 60 * SECOND;
/// Time for the deposed one to do harm.
const HARM_NS: u64 = 60 * SECOND;

impl Site {
    /// Deposes the head: one that has the catalog as it is now goes on by itself, while another
    /// takes over. Nothing follows if some disk does not hear of that one.
    ///
    /// # Errors
    /// The promise that was broken.
    pub fn depose_head(&mut self) -> Result<Option<ProgramId>, Fault> {
        let fork = self.engine.fork();
        let unix_ns = START_UNIX_NS + self.world.now_ns();
        let catalog = Catalog::lead(fork.clone(), "embedded", (unix_ns, u64::MAX));
        let catalog = catalog.expect("it is the head of its copy");
        let mut founder = Founder::new(&catalog);
        for number in 0..PATHS {
            let place = Place::path(path(number)).expect("a short name");
            // What is not there needs not be removed.
            let _ = founder.attempt(Command::Unlink { place });
        }
        let now = Now { now_ns: self.world.now_ns(), unix_ns };
        let mut deposed = SiteHead::new(&self.name, self.own.clone(), fork, (1, now));
        deposed.set_clock_ahead(AHEAD_NS);
        while self.epoch() <= deposed.epoch() {
            self.stop_head()?;
            self.start_head(self.engine.clone())?;
        }
        let (Some(epoch), disks) = (self.epoch(), self.disks.clone()) else { return Ok(None) };
        let end_ns = self.world.now_ns() + HEARD_NS;
        self.world.run(end_ns, &|world| {
            let disk = |member: &Member| world.program::<SiteDisk>(member.program);
            disks.iter().filter_map(disk).all(|disk| disk.kept_epoch() >= epoch)
        })?;
        if self.world.now_ns() >= end_ns {
            return Ok(None);
        }
        let program = self.world.add_program(self.spare, deposed);
        self.world.wake(program);
        let end_ns = self.world.now_ns() + HARM_NS;
        self.world.plan(end_ns, Incident::CrashProgram { program, how: Crash::Process });
        self.world.run(end_ns + MS, &|_| false)?;
        Ok(Some(program))
    }

    /// Another head over the same engine, which waits for the lease of the first.
    pub fn add_head(&mut self) -> ProgramId {
        let now_ns = self.world.now_ns();
        let now = Now { now_ns, unix_ns: START_UNIX_NS + now_ns };
        let (own, engine) = (self.own.clone(), self.engine.clone());
        let second = SiteHead::beside_another(&self.name, own, engine, (2, now));
        let second = second.noting(&self.record);
        let prefix = self.name.view().to_name();
        let program = self.world.add_program(self.spare, second);
        self.topology.route(&mut self.world, &prefix, self.spare);
        self.world.route_to(program, &prefix);
        if let Some(head) = self.world.program_mut::<SiteHead>(self.head.program) {
            head.set_name("head-1");
        }
        [self.head.program, program].into_iter().for_each(|program| self.world.wake(program));
        program
    }

    /// Stops the process of a head where it is, or lets it go on.
    pub fn pause_head(&mut self, program: ProgramId, is_paused: bool) {
        let now_ns = self.world.now_ns();
        let now = Now { now_ns, unix_ns: START_UNIX_NS + now_ns };
        if let Some(head) = self.world.program_mut::<SiteHead>(program) {
            if is_paused { head.pause() } else { head.resume(now) }
        }
        self.world.wake(program);
    }

    /// One writer, who has keys of a session by then, loses his own key by the word of another; or,
    /// if he writes through a door, that loses what it was granted. What he wants after that is not
    /// done.
    ///
    /// # Errors
    /// The promise that was broken.
    pub fn take_rights_of_writer(&mut self) -> Result<(), Fault> {
        let [victim, operator] = [0, 1].map(|number| self.writers[number].program);
        let unlink = |pause_ns| Step::new(Kind::Unlink { path: 0 }, pause_ns);
        let key = self.world.program::<SiteWriter>(victim).map(SiteWriter::key_name);
        let Some(name) = key else { return Ok(()) };
        let (by, promise) = match self.has_door {
            true => {
                let revoked = SetDoor { door: DOOR.to_owned(), grant: Grant::default() };
                (Command::SetDoor(revoked), "a door that is granted nothing does nothing")
            }
            false => (Command::RemoveKey { name }, "a key that was removed commands nothing"),
        };
        // Commands without a request id count by their time.
        if let Some(head) = self.world.program_mut::<SiteHead>(self.head.program) {
            head.set_clock_ahead(0);
        }
        self.give(victim, |writer| (0..SIGNED).for_each(|_| writer.add(unlink(100 * MS))));
        self.until(|world| world.program::<SiteWriter>(victim).is_none_or(SiteWriter::is_done))?;
        self.give(operator, |writer| writer.take_rights(by));
        self.until(|world| {
            let operator = world.program::<SiteWriter>(operator);
            operator.is_none_or(|writer| writer.rights_taken_ns().is_some())
        })?;
        let operator = self.world.program::<SiteWriter>(operator);
        let Some(removed_ns) = operator.and_then(SiteWriter::rights_taken_ns) else {
            return Ok(());
        };
        self.give(victim, |writer| (0..SIGNED).for_each(|_| writer.add(unlink(100 * MS))));
        self.until(|world| world.program::<SiteWriter>(victim).is_none_or(SiteWriter::is_done))?;
        // Whoever writes beside him has nothing to do any more: what began then is his.
        let is_done = |operation: &Operation| {
            operation.from_ns > removed_ns
                && matches!(operation.outcome, Outcome::Done | Outcome::Absent)
        };
        let obeyed = self.record.borrow().operations.iter().flatten().any(is_done);
        match obeyed {
            true => Err(Fault {
                at_ns: self.world.now_ns(),
                host: "the site".to_owned(),
                what: promise.to_owned(),
            }),
            false => Ok(()),
        }
    }

    fn give(&mut self, program: ProgramId, more: impl FnOnce(&mut SiteWriter)) {
        if let Some(writer) = self.world.program_mut::<SiteWriter>(program) {
            more(writer);
        }
        self.world.wake(program);
    }

    fn until(&mut self, is_over: impl Fn(&World) -> bool) -> Result<(), Fault> {
        let end_ns = self.world.now_ns() + REMOVAL_NS;
        self.world.run(end_ns, &is_over)
    }

    fn epoch(&self) -> Option<LeaseEpoch> {
        self.world.program::<SiteHead>(self.head.program)?.epoch()
    }

    /// A copy of a disk, octet by octet, as a copied block device: it has the disk's name and key,
    /// and is served beside it from now on. No label tells the two apart.
    pub fn clone_disk(&mut self, number: usize) -> ProgramId {
        let clone = self.disk(number).cloned(self.world.now_ns());
        let prefix = self.name.disk(clone.name());
        let program = self.world.add_program(self.spare, clone);
        self.topology.route(&mut self.world, &prefix, self.spare);
        self.world.route_to(program, &prefix);
        program
    }

    /// Puts the catalog back to an older state, and begins a new epoch of numbers.
    ///
    /// # Errors
    /// The promise that was broken.
    pub fn restore(&mut self, backup: MemoryEngine, epoch: u16) -> Result<(), Fault> {
        self.stop_head()?;
        let catalog = Catalog::lead(backup.clone(), "embedded", (START_UNIX_NS, u64::MAX));
        let catalog = catalog.expect("nobody else leads");
        Founder::new(&catalog).run(Command::RaiseEpoch { epoch });
        self.start_head(backup)
    }

    /// Makes the catalog again, from those of its rows from which others follow.
    ///
    /// # Errors
    /// The promise that was broken.
    pub fn rebuild(&mut self) -> Result<(), Fault> {
        let seen = Seen { number: 0, epoch: self.epoch().unwrap_or_default() };
        self.stop_head()?;
        let attempts = promises::attempts(&self.engine).expect("memory");
        self.unknown.extend(attempts);
        let rows = export(&*self.engine.snapshot().expect("memory"), None, ROWS_MAX);
        let mut rows = rows.expect("memory").into_iter();
        let (again, unix_ns) = (MemoryEngine::default(), START_UNIX_NS + self.world.now_ns());
        rebuild(&again, &mut rows, seen, unix_ns).expect("rows of a catalog");
        self.start_head(again)
    }

    fn stop_head(&mut self) -> Result<(), Fault> {
        let (program, now_ns) = (self.head.program, self.world.now_ns());
        self.world.plan(now_ns + MS, Incident::CrashProgram { program, how: Crash::Process });
        self.world.run(now_ns + 2 * MS, &|_| false)
    }

    /// Another head, with another engine.
    fn start_head(&mut self, engine: MemoryEngine) -> Result<(), Fault> {
        let (program, now_ns) = (self.head.program, self.world.now_ns());
        self.engine = engine.clone();
        if let Some(head) = self.world.program_mut::<SiteHead>(program) {
            head.set_engine(engine);
        }
        self.world.plan(now_ns + MS, Incident::RestartProgram { program });
        self.world.run(now_ns + 2 * MS, &|_| false)
    }
}
