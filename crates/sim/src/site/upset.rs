//! Catalogs that are not what they were.
//!
//! A head whose term is over and that does not know: it has a copy of the catalog of its own, at
//! which files are removed, and tells disks to drop them. No disk may obey. Then, a catalog that is
//! put back to an older state, and one that is made again from its rows. And disks that are there
//! twice.

use byname_catalog::engine::{Engine, MemoryEngine};
use byname_catalog::id::LeaseEpoch;
use byname_catalog::{Catalog, Command, Place, Seen, export, rebuild};

use super::promises::{self, PATHS};
use super::writer::path;
use super::{Founder, Member, Site, SiteDisk, SiteHead};
use crate::program::{Crash, Now};
use crate::world::{Fault, Incident, MS, ProgramId, SECOND, START_UNIX_NS};

/// Later by this, versions that were replaced are kept no more.
const AHEAD_NS: u64 = 3 * 3600 * SECOND;
/// Time for the other head to be heard of by all disks.
const HEARD_NS: u64 = 120 * SECOND;
/// Rows of a catalog, at most.
const ROWS_MAX: usize = 1 << 16;
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
