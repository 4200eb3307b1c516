//! A site in a network: a head, disks, writers and readers with the production cores, joined by
//! one forwarder in the middle.
//!
//! What survives a crash is the catalog's rows and the disks' file systems ([`files`]). Clients
//! write down what they were told ([`record::Record`]); [`history`] says whether one order of
//! events explains it, [`promises`] compares the catalog with what the disks have. [`play()`] is a
//! scenario from a seed.

mod disk;
mod fetching;
pub mod files;
mod head;
pub mod history;
mod identity;
mod play;
pub mod promises;
mod reader;
pub mod record;
mod serving;
mod thief;
mod upset;
pub mod writer;

pub use disk::SiteDisk;
pub use head::{LEASE_NS as HEAD_LEASE_NS, SiteHead};
pub use play::{Scenario, come_to_rest, play};
pub use reader::SiteReader;
pub use thief::SiteThief;
pub use writer::SiteWriter;

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use byname_catalog::engine::MemoryEngine;
use byname_catalog::id::{ContentId, InodeId, SessionId};
use byname_catalog::{
    AddDisk, AddKey, Answer, Caller, Catalog, Command, EntryName, Failure, Grant, KeyHolder, Place,
    Policy, SetDoor, Setup, Submission, TrashPolicy, initialise,
};
use byname_forwarder::Config;
use byname_packet::Name;
use byname_security::trust::TrustPolicy;
use byname_site::{DiskName, SiteName, SpeaksFor};
use byname_writer::WriterConfig;

use crate::line::{Faults, LineConfig};
use crate::program::Now;
use crate::queue::{Discipline, QueueConfig};
use crate::topology::Topology;
use crate::world::{HostId, LinkConfig, LinkId, MS, ProgramId, START_UNIX_NS, World};
use identity::Identity;
use record::SharedRecord;
use writer::Step;

const PREFIX: &str = "/cern/cms";
const OPERATOR: &str = "op";
const SPACE: &str = "main";
const DOOR: &str = "d";
/// First numbers of keys.
const DISK_KEYS: u8 = 20;
const USER_KEYS: u8 = 60;

/// Sizes of a site, and what its clients do.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Disks.
    pub disk_count: usize,
    /// Replicas of each file, and receipts that a commit needs.
    pub policy: (u8, u8),
    /// What each writer does.
    pub writers: Vec<VecDeque<Step>>,
    /// Paths that each reader reads, each after a pause.
    pub readers: Vec<VecDeque<(u8, u64)>>,
    /// A user claims with his tickets what they are not for.
    pub has_thief: bool,
    /// There is a directory with so many symbolic links, which writers may remove as a whole.
    pub tree: Option<u64>,
    /// The first writer is a door's, which writes for a user.
    pub has_door: bool,
    /// What is removed goes to the trash, for as short as that may be.
    pub has_trash: bool,
}

/// A program with its host's link to the middle.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// The program.
    pub program: ProgramId,
    /// Its host.
    pub host: HostId,
    /// Its link.
    pub link: LinkId,
}

/// See the module.
pub struct Site {
    /// The network.
    pub world: World,
    /// The host in the middle.
    pub hub: HostId,
    /// The head.
    pub head: Member,
    /// The disks, in the order of their numbers.
    pub disks: Vec<Member>,
    /// The writers.
    pub writers: Vec<Member>,
    /// The readers.
    pub readers: Vec<Member>,
    /// The user who claims what his tickets are not for.
    pub thief: Option<Member>,
    /// A host that is joined and has nobody yet.
    spare: HostId,
    topology: Topology,
    /// Contents that a catalog which was made again cannot know: their disks keep them.
    unknown: BTreeSet<ContentId>,
    name: SiteName,
    own: Identity,
    /// What clients were told.
    pub record: SharedRecord,
    /// Rows of the catalog.
    pub engine: MemoryEngine,
    /// Receipts that a commit needs.
    pub receipt_count: u8,
    /// The first writer is a door's.
    has_door: bool,
}

/// A link of 1 Gbit/s and 2 ms without faults.
pub fn good_link() -> LinkConfig {
    let queue = QueueConfig {
        bits_per_s: 1_000_000_000,
        buffer_bytes: 1 << 20,
        discipline: Discipline::DropTail,
    };
    let faults = Faults::default();
    let line = LineConfig { queue, delay_ns: 2 * MS, jitter_ns: 0, faults };
    LinkConfig { line, mtu_bytes: None }
}

/// What everybody in a site needs.
struct Founding {
    site: SiteName,
    own: Identity,
    trust: TrustPolicy,
    engine: MemoryEngine,
    disks: Vec<(DiskName, Identity)>,
    /// Whose key each user's writer has: his own, or that of a door.
    users: Vec<(Name, Option<SpeaksFor>, Identity)>,
}

/// A catalog with disks and users, who are all operators: rights are tested elsewhere.
fn found(shape: &Shape) -> Founding {
    let name: Name = PREFIX.parse().expect("a name");
    let site = SiteName::new(name.clone()).expect("a site's name");
    let own = Identity::new(1, &name, None);
    let engine = MemoryEngine::default();
    let (replica_count, receipt_count) = shape.policy;
    let setup = Setup {
        site: site.octets().to_vec(),
        operator: OPERATOR.to_owned(),
        group: "ops".to_owned(),
        key: None,
        policy: Policy { space: SPACE.to_owned(), replica_count, receipt_count },
    };
    initialise(&engine, &setup, START_UNIX_NS).expect("an empty engine");
    let catalog = Catalog::lead(engine.clone(), "founder", (START_UNIX_NS, START_UNIX_NS + 1));
    let catalog = catalog.expect("nobody else leads");
    let mut founder = Founder::new(&catalog);
    let mut disks = Vec::new();
    for number in 0..shape.disk_count {
        let disk = AddDisk {
            space: SPACE.to_owned(),
            server: format!("server{number}"),
            label: "hall".to_owned(),
            capacity_bytes: 1 << 30,
        };
        let Answer::Disk(id) = founder.run(Command::AddDisk(disk)) else { continue };
        let name = DiskName { place: "hall".to_owned(), id };
        let identity = Identity::new(DISK_KEYS + number as u8, &site.disk(&name), Some(&own));
        founder.add_key(KeyHolder::Disk(id), &identity);
        disks.push((name, identity));
    }
    let mut users = Vec::new();
    for number in 0..shape.writers.len() + usize::from(shape.has_thief) {
        let user = format!("u{number}");
        let groups = vec!["ops".to_owned()];
        founder.run(Command::SetUser { user: user.clone(), groups, is_operator: true });
        let (namespace, holder, speaks_for) = match shape.has_door && number == 0 {
            true => {
                let grant = Grant { users: vec![user.clone()], ..Grant::default() };
                founder.run(Command::SetDoor(SetDoor { door: DOOR.to_owned(), grant }));
                let speaks_for = SpeaksFor { user, groups: Vec::new() };
                (site.door(DOOR), KeyHolder::Door(DOOR.to_owned()), Some(speaks_for))
            }
            false => (site.user(&user), KeyHolder::User(user), None),
        };
        let identity = Identity::new(USER_KEYS + number as u8, &namespace, Some(&own));
        founder.add_key(holder, &identity);
        users.push((namespace, speaks_for, identity));
    }
    if let Some(link_count) = shape.tree {
        founder.make_tree(link_count);
    }
    if shape.has_trash {
        let keep_ns = TrashPolicy::KEEP_NS_MIN;
        let policy = TrashPolicy { is_on: true, keep_ns, bytes_max: u64::MAX };
        founder.run(Command::SetTrash { place: Place::inode(InodeId::ROOT), policy });
    }
    let mut trust = TrustPolicy::default();
    trust.add_anchor(name, own.issued.key_id());
    Founding { site, own, trust, engine, disks, users }
}

/// The first operator, who makes a site what it is.
struct Founder<'a> {
    catalog: &'a Catalog<MemoryEngine>,
    session: SessionId,
    sequence: u64,
}

impl<'a> Founder<'a> {
    fn new(catalog: &'a Catalog<MemoryEngine>) -> Self {
        let mut founder = Self { catalog, session: SessionId(0), sequence: 0 };
        let opened = founder.submit(None, Command::OpenSession);
        if let Ok(Answer::Session { session, .. }) = opened {
            founder.session = session;
        }
        founder
    }

    fn submit(
        &self,
        request: Option<byname_catalog::Request>,
        command: Command,
    ) -> Result<Answer, Failure> {
        let caller = Caller::User(OPERATOR.to_owned());
        let submission = Submission { caller, request, command };
        let outcomes = self.catalog.execute(START_UNIX_NS, &[submission]).expect("it leads");
        outcomes.into_iter().next().expect("one command, one outcome")
    }

    fn run(&mut self, command: Command) -> Answer {
        self.attempt(command).expect("the operator may do it")
    }

    fn attempt(&mut self, command: Command) -> Result<Answer, Failure> {
        self.sequence += 1;
        let (session, sequence) = (self.session, self.sequence);
        let request = byname_catalog::Request { session, slot: 0, sequence, digest: [0; 32] };
        self.submit(Some(request), command)
    }

    /// A directory with links; they make it worth more than one step to be taken apart.
    fn make_tree(&mut self, link_count: u64) {
        let place = writer::tree();
        self.run(Command::MakeDirectory { place: place.clone(), mode: 0o755 });
        for number in 0..link_count {
            let mut place = place.clone();
            let name = EntryName::new(format!("link{number}").into_bytes());
            place.names.push(name.expect("a short name"));
            self.run(Command::MakeSymlink { place, target: b"f0".to_vec() });
        }
    }

    fn add_key(&mut self, holder: KeyHolder, identity: &Identity) {
        let name = identity.issued.key_name().value().to_vec();
        let certificate = identity.certificate().to_vec();
        self.run(Command::AddKey(AddKey { holder, name, certificate }));
    }
}

impl Site {
    /// A site at the beginning of a world.
    pub fn new(seed: u64, shape: &Shape) -> Self {
        let founding = found(shape);
        let record: SharedRecord = Rc::new(RefCell::default());
        let mut world = World::new(seed);
        let clients = shape.writers.len() + shape.readers.len() + usize::from(shape.has_thief);
        let leaf_count = 2 + shape.disk_count + clients;
        let mut network = Network::new(&mut world, leaf_count);
        let Founding { site, own, trust, engine, disks, users } = founding;
        let prefix = site.view().to_name();
        let now = Now { now_ns: world.now_ns(), unix_ns: START_UNIX_NS + world.now_ns() };
        let head = SiteHead::new(&site, own.clone(), engine.clone(), (seed, now));
        let head = head.noting(&record);
        let head = network.add(&mut world, head, Some(&prefix));
        let disks = disks.into_iter().map(|(name, identity)| {
            let route = site.disk(&name);
            let disk_seed = seed ^ (name.id.0 << 8);
            let disk = SiteDisk::new((&site, &name), identity, own.certificate(), disk_seed);
            network.add(&mut world, disk, Some(&route))
        });
        let disks = disks.collect();
        let mut users = users.into_iter().map(|(namespace, speaks_for, identity)| {
            let (site, trust) = (site.clone(), trust.clone());
            let (signer, route) = (identity.key_signer, namespace.clone());
            let waits_for_head = false;
            (WriterConfig { site, namespace, speaks_for, signer, trust, waits_for_head }, route)
        });
        let writers = shape.writers.iter().zip(users.by_ref()).zip(1_u64..);
        let writers = writers.map(|((steps, (config, route)), number)| {
            let writer_seed = seed ^ (number << 16);
            let writer = SiteWriter::new(config, record.clone(), steps.clone(), writer_seed);
            network.add(&mut world, writer, Some(&route))
        });
        let writers = writers.collect();
        let readers = shape.readers.iter().zip(1_u64..).map(|(steps, number)| {
            let told = (record.clone(), steps.clone());
            let reader = SiteReader::new(&prefix, trust.clone(), told, seed ^ (number << 24));
            network.add(&mut world, reader, None)
        });
        let readers = readers.collect();
        let thief = users.next().map(|(config, route)| {
            network.add(&mut world, SiteThief::new(config, seed ^ (1 << 32)), Some(&route))
        });
        let (hub, spare) = (network.topology.hosts[0], network.topology.hosts[network.next]);
        let has_door = shape.has_door;
        let (receipt_count, name, topology) = (shape.policy.1, site, network.topology);
        Self {
            world,
            hub,
            head,
            disks,
            writers,
            readers,
            thief,
            spare,
            topology,
            unknown: BTreeSet::new(),
            name,
            own,
            record,
            engine,
            receipt_count,
            has_door,
        }
    }

    /// Everybody.
    pub fn members(&self) -> impl Iterator<Item = Member> + '_ {
        let others = self.disks.iter().chain(&self.writers).chain(&self.readers);
        let others = others.chain(&self.thief);
        std::iter::once(self.head).chain(others.copied())
    }

    /// What looks after the disks, if the head leads.
    pub fn leader(&self) -> Option<&byname_head::Watch> {
        self.world.program::<SiteHead>(self.head.program)?.watch()
    }

    /// A disk.
    pub fn disk(&self, number: usize) -> &SiteDisk {
        self.world.program(self.disks[number].program).expect("it is a disk")
    }
}

/// Hosts around a hub.
struct Network {
    topology: Topology,
    next: usize,
}

impl Network {
    fn new(world: &mut World, leaf_count: usize) -> Self {
        let mut topology = Topology::hosts(world, leaf_count + 1, &Config::default());
        for leaf in 1..=leaf_count {
            topology.join(world, 0, leaf, good_link());
        }
        Self { topology, next: 1 }
    }

    /// Starts a program on the next host, to which a prefix leads from everywhere.
    fn add(
        &mut self,
        world: &mut World,
        program: impl crate::program::Program,
        prefix: Option<&Name>,
    ) -> Member {
        let host = self.topology.hosts[self.next];
        let link = self.topology.links[self.next - 1].2;
        self.next += 1;
        let program = world.add_program(host, program);
        if let Some(prefix) = prefix {
            self.topology.route(world, prefix, host);
            world.route_to(program, prefix);
        }
        Member { program, host, link }
    }
}
