//! Random commands of several users, in batches, on every engine and on the plain model: the same
//! answers, the same tree, the same usage. Heads die before, during and after commits, another
//! takes over, and the commands are sent again.

use std::collections::BTreeMap;
use std::sync::Arc;

use byname_catalog::engine::{CommitFault, Engine};
use byname_catalog::id::InodeId;
use byname_catalog::{
    ATTEMPT_NS, AddDisk, Answer, AttributeChanges, Caller, Command, Create, Grant, Kind, Limits,
    Place, Policy, PolicyChanges, Publish, Refusal, Rename, RestoreTrash, SESSION_NS, SetDoor,
    Subject, Submission, Ticket, TrashPolicy,
};
use proptest::prelude::*;

use crate::model::{
    Ask, Counted, MAIN, Model, Node, NodeId, TOP, TRASH_BYTES_MAX, TRASH_KEEP_NS, TREE, Who,
};
use crate::support::{TestSite, commit, place, through};

pub(crate) type Names = Vec<&'static str>;

/// A second space.
const TAPE: &str = "tape";

/// The door that speaks for them, as far as it may.
const DOOR: &str = "d";
/// Groups that it says a user is in, when it says some.
const SAID: &[&str] = &["physics"];

const PEOPLE: [Who; 3] = [
    Who { user: "op", groups: &["ops"], by_door: false },
    Who { user: "anna", groups: &["users", "physics"], by_door: false },
    Who { user: "bert", groups: &["users"], by_door: false },
];

#[derive(Debug, Clone)]
pub(crate) enum Op {
    Mkdir(Names, u16),
    Rmdir(Names),
    Unlink(Names),
    RemoveAll(Names),
    Lease(Names),
    EndLease(Names),
    Rename(Names, Names, bool),
    Link(Names, Names),
    Symlink(Names),
    Chmod(Names, u16),
    Chown(Names, &'static str),
    Chgrp(Names, &'static str),
    Space(Names, &'static str),
    Versions(Names, u8),
    Empty(Names),
    Create {
        at: Names,
        mode: u16,
        size_max: u64,
        at_once: bool,
        exclusive: bool,
        space: Option<&'static str>,
    },
    Whole(Names, u16, bool),
    /// The attempt by its place among those that were opened.
    Commit(usize, u64),
    Abort(usize),
    /// What is in the trash by its place there, to where it was or elsewhere.
    Restore(usize, Option<Names>),
    Purge(usize),
}

/// What befalls the head that executes a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fate {
    Lives,
    Pauses(u64),
    /// It collects so much at a time, and somebody else takes over after each step.
    Collects(usize),
    Dies(CommitFault),
    /// Power fails after so many writes; what survives of the others.
    LosesPower(u64, u64),
}

fn names() -> impl Strategy<Value = Names> {
    let name = proptest::sample::select(vec!["a", "b", "t"]);
    proptest::collection::vec(name, 1..4)
}

fn op() -> impl Strategy<Value = Op> {
    let modes = || proptest::sample::select(vec![0o777, 0o755, 0o700, 0o1777, 0o2775, 0o6755, 0o1]);
    let user = proptest::sample::select(vec!["anna", "bert"]);
    let group = proptest::sample::select(vec!["users", "physics", "ops"]);
    let flags = any::<(bool, bool)>();
    let spaces = || proptest::sample::select(vec![MAIN, TAPE]);
    prop_oneof![
        4 => (names(), modes()).prop_map(|(at, mode)| Op::Mkdir(at, mode)),
        1 => names().prop_map(Op::Rmdir),
        2 => names().prop_map(Op::Unlink),
        2 => names().prop_map(Op::RemoveAll),
        2 => names().prop_map(Op::Lease),
        1 => names().prop_map(Op::EndLease),
        4 => (names(), names(), any::<bool>()).prop_map(|(a, b, flag)| Op::Rename(a, b, flag)),
        2 => (names(), names()).prop_map(|(a, b)| Op::Link(a, b)),
        1 => names().prop_map(Op::Symlink),
        1 => (names(), modes()).prop_map(|(at, mode)| Op::Chmod(at, mode)),
        1 => (names(), user).prop_map(|(at, user)| Op::Chown(at, user)),
        1 => (names(), group).prop_map(|(at, group)| Op::Chgrp(at, group)),
        1 => (names(), spaces()).prop_map(|(at, space)| Op::Space(at, space)),
        2 => (names(), 0..3_u8).prop_map(|(at, wanted)| Op::Versions(at, wanted)),
        1 => names().prop_map(Op::Empty),
        6 => (names(), modes(), 0..700_u64, flags, proptest::option::weighted(0.2, spaces()))
            .prop_map(|(at, mode, size_max, (at_once, exclusive), space)| Op::Create {
                at, mode, size_max, at_once, exclusive, space
            }),
        2 => (names(), modes(), any::<bool>())
            .prop_map(|(at, mode, exclusive)| Op::Whole(at, mode, exclusive)),
        6 => (any::<usize>(), 0..700_u64).prop_map(|(index, size)| Op::Commit(index, size)),
        1 => any::<usize>().prop_map(Op::Abort),
        3 => (any::<usize>(), proptest::option::of(names()))
            .prop_map(|(index, to)| Op::Restore(index, to)),
        1 => any::<usize>().prop_map(Op::Purge),
    ]
}

fn fate() -> impl Strategy<Value = Fate> {
    let fault = vec![CommitFault::Lost, CommitFault::Unanswered, CommitFault::Conflict];
    prop_oneof![
        6 => Just(Fate::Lives),
        1 => (0..2 * ATTEMPT_NS).prop_map(Fate::Pauses),
        2 => (1..4_usize).prop_map(Fate::Collects),
        2 => proptest::sample::select(fault).prop_map(Fate::Dies),
        2 => (0..12_u64, any::<u64>()).prop_map(|(after, bits)| Fate::LosesPower(after, bits)),
    ]
}

/// How a command of somebody comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    /// Through the door.
    Door,
    /// Through the door, which says in which groups he is.
    Said,
}

impl Way {
    fn of(number: usize) -> Self {
        [Self::Direct, Self::Door, Self::Said][number / PEOPLE.len()]
    }

    fn caller(self, user: &str) -> Caller {
        match self {
            Self::Direct => Caller::User(user.into()),
            Self::Door => through(DOOR, user, &[]),
            Self::Said => through(DOOR, user, SAID),
        }
    }

    /// What the door is told that was granted this.
    fn check(self, who: Who, grant: usize) -> Result<(), Refusal> {
        let speaks = match (grant, who.user) {
            _ if self == Self::Direct => return Ok(()),
            (1 | 2, "anna") | (2 | 3, "bert") | (4, "op") => Ok(()),
            (_, "op") => Err(Refusal::MayNotSpeakForOperator),
            _ => Err(Refusal::MayNotSpeakFor),
        };
        let is_in = self != Self::Said || who.user == "anna" || grant == 3;
        speaks.and(if is_in { Ok(()) } else { Err(Refusal::MayNotAssertGroup) })
    }

    fn acting(self, who: Who) -> Who {
        let by_door = self != Self::Direct;
        let groups = if self == Self::Said { SAID } else { who.groups };
        Who { groups, by_door, ..who }
    }
}

/// What the door is granted while these are executed: nothing, users of a group, all of them, one
/// with groups that it may say, an operator.
fn grant_of(ops: &[(usize, Op)]) -> (usize, Grant) {
    let number = ops.iter().map(|(who, _)| who).sum::<usize>() % 5;
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let grant = match number {
        0 => Grant::default(),
        1 => Grant { groups: names(&["physics"]), ..Grant::default() },
        2 => Grant { is_for_all: true, ..Grant::default() },
        3 => Grant { users: names(&["bert"]), asserted: names(SAID), ..Grant::default() },
        _ => Grant { users: names(&["op"]), ..Grant::default() },
    };
    (number, grant)
}

/// Commands of one transaction, each with the place of its user, and what befalls their head.
pub(crate) type Batch = (Vec<(usize, Op)>, Fate);

pub(crate) fn batches() -> impl Strategy<Value = Vec<Batch>> {
    // By themselves, through the door, and through the door with groups that it says.
    let ops = proptest::collection::vec((0..3 * PEOPLE.len(), op()), 1..5);
    proptest::collection::vec((ops, fate()), 1..30)
}

/// An engine that can be made to fail.
pub(crate) trait Fragile {
    fn engine(&self) -> Arc<dyn Engine>;
    /// Arranges for what the fate says.
    fn prepare(&self, fate: Fate);
    /// What the next head finds.
    fn restart(&mut self, fate: Fate);
}

struct Machine<F> {
    fragile: F,
    site: TestSite,
    model: Model,
    /// The directory with a quota of its own, even when it is gone.
    tree: InodeId,
    /// Tickets in the order of the model's attempts.
    tickets: Vec<Ticket>,
    /// Inodes of nodes, as far as they were ever seen.
    ids: BTreeMap<NodeId, InodeId>,
}

impl<F: Fragile> Machine<F> {
    fn new(fragile: F) -> Self {
        let mut site = TestSite::new(fragile.engine());
        site.run("op", Command::MakeDirectory { place: place("t"), mode: 0o777 }).unwrap();
        site.run("op", Command::MakeTree { place: place("t") }).unwrap();
        for path in ["/", "t"] {
            let changes = AttributeChanges { mode: Some(0o777), ..AttributeChanges::default() };
            site.run("op", Command::SetAttributes { place: place(path), changes }).unwrap();
        }
        let policy =
            TrashPolicy { is_on: true, keep_ns: TRASH_KEEP_NS, bytes_max: TRASH_BYTES_MAX };
        site.run("op", Command::SetTrash { place: place("t"), policy }).unwrap();
        let tree = site.entry("t").unwrap().id;
        for server in ["d", "e"] {
            let (space, label) = (TAPE.into(), "room".into());
            let disk = AddDisk { space, server: server.into(), label, capacity_bytes: 1 << 40 };
            site.run("op", Command::AddDisk(disk)).unwrap();
        }
        let hard = |inodes, bytes| Limits { inodes, bytes, ..Limits::NONE };
        let soft = |limits, (soft_inodes, soft_bytes), grace_ns| Limits {
            soft_inodes,
            soft_bytes,
            grace_ns,
            ..limits
        };
        let limits = vec![
            (Counted::User("anna"), soft(hard(7, 1500), (5, 1000), ATTEMPT_NS)),
            (Counted::Group("users"), hard(12, 2500)),
            (Counted::Tree(TREE), soft(hard(4, 900), (3, 700), 0)),
            (Counted::Space(TAPE), soft(hard(6, 1200), (3, 600), ATTEMPT_NS / 2)),
        ];
        for (counted, limits) in limits.clone() {
            let subject = subject(counted, tree);
            site.run("op", Command::SetLimits { subject, limits }).unwrap();
        }
        let (tickets, ids) = Default::default();
        Self { fragile, site, model: Model::new(limits), tree, tickets, ids }
    }

    /// What a batch is on both sides: submissions, and what the model says to each.
    fn batch(&mut self, ops: &[(usize, Op)]) -> (Vec<Submission>, Vec<Result<(), Refusal>>) {
        let known = self.tickets.len();
        let (mut submissions, mut expected) = (Vec::new(), Vec::new());
        let grant = grant_of(ops);
        if ops.iter().any(|(who, _)| *who >= PEOPLE.len()) {
            // The commands behind it are judged by it, in the same transaction.
            let set = Command::SetDoor(SetDoor { door: DOOR.into(), grant: grant.1 });
            submissions.push(self.site.submission_in("op", 0, set));
            expected.push(Ok(()));
        }
        for (number, op) in ops {
            let (who, way) = (PEOPLE[*number % PEOPLE.len()], Way::of(*number));
            let removed = self.removed(op);
            let Some(command) = command(op, &self.tickets, removed.map(|it| it.1)) else {
                continue;
            };
            // What is in flight together is in different slots.
            let slot = submissions.len() + 1;
            let submission = self.site.submission_of(&way.caller(who.user), slot, command);
            submissions.push(submission);
            if let Err(refusal) = way.check(who, grant.0) {
                expected.push(Err(refusal));
                continue;
            }
            let who = way.acting(who);
            let now_ns = self.site.now_ns;
            let node = removed.map_or(TOP, |(node, _)| node);
            let play =
                |model: &mut Model| play(model, who, op, &At { known, now_ns, removed: node });
            expected.push(self.model.try_do(now_ns, play));
        }
        (submissions, expected)
    }

    /// What an operation on the trash is about; none if nothing is there that was seen before.
    fn removed(&self, op: &Op) -> Option<(NodeId, InodeId)> {
        let (Op::Restore(index, _) | Op::Purge(index)) = op else { return None };
        let node = self.model.trash[index.checked_rem(self.model.trash.len())?].node;
        Some((node, *self.ids.get(&node)?))
    }

    fn step(&mut self, ops: &[(usize, Op)], fate: Fate) -> Result<(), TestCaseError> {
        if let Fate::Pauses(nanoseconds) = fate {
            self.pause(nanoseconds);
        }
        if let Fate::Collects(limit) = fate {
            self.collect(limit);
        }
        // Sessions are open before anything fails.
        let everybody = PEOPLE.map(|who| who.user.to_owned()).to_vec();
        self.site.grant(DOOR, Grant { users: everybody, ..Grant::default() });
        for way in [Way::Direct, Way::Door] {
            for who in PEOPLE {
                self.site.run_in_session(&way.caller(who.user), Command::RenewSession).unwrap();
            }
        }
        let (submissions, expected) = self.batch(ops);
        if submissions.is_empty() {
            return Ok(());
        }
        self.fragile.prepare(fate);
        let outcomes = match self.site.catalog.execute(self.site.now_ns, &submissions) {
            Ok(outcomes) => outcomes,
            Err(_) => {
                self.fragile.restart(fate);
                self.site.take_over(self.fragile.engine());
                self.site.catalog.execute(self.site.now_ns, &submissions).unwrap()
            }
        };
        if matches!(fate, Fate::LosesPower(..) | Fate::Dies(_)) {
            self.fragile.restart(fate);
            self.site.take_over(self.fragile.engine());
        }
        for ((outcome, expected), submission) in outcomes.into_iter().zip(expected).zip(submissions)
        {
            let answer = outcome.map_err(crate::support::refusal);
            let found = answer.as_ref().map(drop).map_err(|refusal| refusal.errno());
            prop_assert_eq!(found, expected.map_err(Refusal::errno), "{:?}", submission.command);
            if let Ok(Answer::Ticket(ticket)) = answer {
                self.tickets.push(ticket);
            }
        }
        self.site.assert_consistent();
        self.compare()
    }

    fn pause(&mut self, nanoseconds: u64) {
        self.site.pass(nanoseconds);
        self.model.expire_trash(self.site.now_ns);
        self.model.collect();
        if nanoseconds >= SESSION_NS {
            self.model.end_leases();
        }
        for attempt in &mut self.model.attempts {
            attempt.is_open &= attempt.expires_ns > self.site.now_ns;
        }
        self.model.look_at_soft_limits(self.site.now_ns);
    }

    fn collect(&mut self, limit: usize) {
        let collect = Command::Collect { limit };
        while self.site.run_as(Caller::Head, collect.clone()) != Ok(Answer::Count(0)) {
            self.site.take_over(self.fragile.engine());
        }
        self.model.collect();
        self.model.look_at_soft_limits(self.site.now_ns);
    }

    fn compare(&mut self) -> Result<(), TestCaseError> {
        let mut ids = BTreeMap::new();
        self.compare_node(TOP, InodeId::ROOT, &mut ids)?;
        self.ids.extend(ids);
        let in_trash = self.site.reader("op").trash(None, 1000).unwrap().items.len();
        prop_assert_eq!(in_trash, self.model.trash.len());
        let reader = self.site.reader("op");
        let groups = ["ops", "users", "physics"].map(Counted::Group);
        let users = PEOPLE.map(|who| Counted::User(who.user));
        let spaces = [MAIN, TAPE].map(Counted::Space);
        let trees = [TOP, TREE].map(Counted::Tree);
        for counted in groups.into_iter().chain(users).chain(trees).chain(spaces) {
            let quota = reader.quota(subject(counted, self.tree)).unwrap();
            prop_assert_eq!(quota.over, self.model.over(counted), "{:?}", counted);
            let usage = quota.usage;
            let found =
                ((usage.inodes, usage.bytes), (usage.reserved_inodes, usage.reserved_bytes));
            let expected = (self.model.used(counted), self.model.reserved(counted));
            prop_assert_eq!(found, expected, "{:?}", counted);
        }
        Ok(())
    }

    /// Names lead to the same, on both sides.
    fn compare_node(
        &self,
        node: NodeId,
        id: InodeId,
        ids: &mut BTreeMap<NodeId, InodeId>,
    ) -> Result<(), TestCaseError> {
        prop_assert_eq!(*ids.entry(node).or_insert(id), id, "one node, one inode");
        let reader = self.site.reader("op");
        let inode = reader.entry(&Place::inode(id)).unwrap().inode;
        let model: &Node = &self.model.nodes[node];
        prop_assert_eq!(
            (inode.kind(), inode.mode, inode.owner.as_str(), inode.group.as_str()),
            (model.kind, model.mode, model.owner, model.group)
        );
        let size = if model.kind == Kind::Symlink { 6 } else { model.size };
        prop_assert_eq!((inode.link_count, inode.size()), (self.model.links(node), size));
        let old = reader.versions(id).unwrap();
        let old: Vec<u64> = old.iter().map(|(content, _)| content.size).collect();
        prop_assert_eq!(&old, &model.old, "versions that stay, the oldest first");
        if model.kind != Kind::Directory {
            return Ok(());
        }
        let entries = reader.list(&Place::inode(id), None, 100).unwrap();
        let found: Vec<&[u8]> = entries.iter().map(|entry| entry.name.as_bytes()).collect();
        let expected: Vec<&[u8]> = model.entries.keys().map(|name| name.as_bytes()).collect();
        prop_assert_eq!(found, expected);
        for (entry, child) in entries.iter().zip(model.entries.values()) {
            self.compare_node(*child, entry.id, ids)?;
        }
        Ok(())
    }
}

fn subject(counted: Counted, tree: InodeId) -> Subject {
    match counted {
        Counted::User(user) => Subject::User(user.into()),
        Counted::Group(group) => Subject::Group(group.into()),
        Counted::Tree(TOP) => Subject::Tree(InodeId::ROOT),
        Counted::Tree(_) => Subject::Tree(tree),
        Counted::Space(space) => Subject::Space(space.into()),
    }
}

/// The command; none if it is about an attempt and there has been none.
fn command(op: &Op, tickets: &[Ticket], removed: Option<InodeId>) -> Option<Command> {
    let place = |names: &Names| Place::path(names.join("/")).unwrap();
    let set = |at: &Names, changes| Command::SetAttributes { place: place(at), changes };
    let none = AttributeChanges::default();
    let ticket = |index: &usize| index.checked_rem(tickets.len()).map(|index| &tickets[index]);
    Some(match op {
        Op::Mkdir(at, mode) => Command::MakeDirectory { place: place(at), mode: *mode },
        Op::Rmdir(at) => Command::RemoveDirectory { place: place(at) },
        Op::Unlink(at) => Command::Unlink { place: place(at) },
        Op::Lease(at) => Command::Lease { place: place(at) },
        Op::EndLease(at) => Command::EndLease { place: place(at) },
        Op::RemoveAll(at) => Command::RemoveAll { place: place(at) },
        Op::Rename(from, to, no_replace) => {
            let (from, to) = (place(from), place(to));
            Command::Rename(Rename { from, to, no_replace: *no_replace })
        }
        Op::Link(existing, at) => Command::Link { existing: place(existing), place: place(at) },
        Op::Symlink(at) => Command::MakeSymlink { place: place(at), target: b"target".to_vec() },
        Op::Chmod(at, mode) => set(at, AttributeChanges { mode: Some(*mode), ..none }),
        Op::Chown(at, owner) => set(at, AttributeChanges { owner: Some((*owner).into()), ..none }),
        Op::Chgrp(at, group) => set(at, AttributeChanges { group: Some((*group).into()), ..none }),
        Op::Space(at, space) => {
            let policy = Policy { space: (*space).into(), replica_count: 2, receipt_count: 2 };
            Command::SetPolicy { place: place(at), policy }
        }
        Op::Versions(at, wanted) => Command::SetVersions { place: place(at), wanted: *wanted },
        Op::Empty(at) => set(at, AttributeChanges { size: Some(0), ..none }),
        Op::Create { at, mode, size_max, at_once, exclusive, space } => Command::Create(Create {
            place: place(at),
            mode: *mode,
            size_max: *size_max,
            publish: if *at_once { Publish::AtOnce } else { Publish::AtCommit },
            exclusive: *exclusive,
            policy: PolicyChanges { space: space.map(str::to_owned), ..PolicyChanges::default() },
        }),
        Op::Whole(at, mode, exclusive) => Command::Create(Create {
            place: place(at),
            mode: *mode,
            size_max: 0,
            publish: Publish::Whole,
            exclusive: *exclusive,
            policy: PolicyChanges::default(),
        }),
        Op::Commit(index, size) => Command::Commit(commit(ticket(index)?, *size)),
        Op::Abort(index) => Command::Abort { content: ticket(index)?.content },
        Op::Restore(_, to) => {
            let to = to.as_ref().map(place);
            Command::RestoreTrash(RestoreTrash { item: removed?, to })
        }
        Op::Purge(_) => Command::PurgeTrash { item: removed? },
    })
}

/// What an operation on the model is about, beside what it says.
struct At {
    /// Attempts that were opened.
    known: usize,
    now_ns: u64,
    /// Something in the trash.
    removed: NodeId,
}

/// The same on the model.
fn play(model: &mut Model, who: Who, op: &Op, at: &At) -> Result<(), Refusal> {
    let At { known, now_ns, removed } = *at;
    match op {
        Op::Mkdir(at, mode) => model.mkdir(who, at, *mode),
        Op::Rmdir(at) => model.remove(who, (at, now_ns), Kind::Directory),
        Op::Unlink(at) => model.remove(who, (at, now_ns), Kind::File),
        Op::Lease(at) => model.lease(who, at),
        Op::EndLease(at) => model.end_lease(who, at),
        Op::RemoveAll(at) => model.remove_all(who, at, now_ns),
        Op::Rename(from, to, no_replace) => model.rename(who, (from, to), (*no_replace, now_ns)),
        Op::Link(existing, at) => model.link(who, existing, at),
        Op::Symlink(at) => model.symlink(who, at),
        Op::Chmod(at, mode) => model.chmod(who, at, *mode),
        Op::Chown(at, owner) => model.chown(who, at, owner),
        Op::Chgrp(at, group) => model.chgrp(who, at, group),
        Op::Space(at, space) => model.set_space(who, at, space),
        Op::Versions(at, wanted) => model.set_versions(who, at, *wanted),
        Op::Empty(at) => model.empty(who, at),
        Op::Create { at, mode, size_max, at_once, exclusive, space } => {
            let expires_ns = now_ns + ATTEMPT_NS;
            let (mode, size_max, space) = (*mode, *size_max, *space);
            let (at_once, exclusive) = (*at_once, *exclusive);
            model.create(who, at, Ask { mode, size_max, at_once, exclusive, expires_ns, space })
        }
        Op::Whole(at, mode, exclusive) => {
            let (mode, size_max, exclusive) = (*mode, 0, *exclusive);
            let (at_once, expires_ns, space) = (true, now_ns + ATTEMPT_NS, None);
            model.make_empty(who, at, Ask { mode, size_max, at_once, exclusive, expires_ns, space })
        }
        Op::Commit(index, size) => model.commit(who, index % known, *size),
        Op::Abort(index) => model.abort(who, index % known),
        Op::Restore(_, to) => model.restore(who, removed, to.as_deref()),
        Op::Purge(_) => model.purge(who, removed),
    }
}

/// Plays batches on an engine, which is given back.
pub(crate) fn run<F: Fragile>(fragile: F, batches: &[Batch]) -> Result<F, TestCaseError> {
    let mut machine = Machine::new(fragile);
    batches.iter().try_for_each(|(ops, fate)| machine.step(ops, *fate))?;
    Ok(machine.fragile)
}
