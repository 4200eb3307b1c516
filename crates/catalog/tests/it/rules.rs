//! Rules that the model and the real directory do not have: bindings and times, pages, limits of
//! size, who may administer, where content goes.

use byname_catalog::engine::{Engine, Table};
use byname_catalog::id::{ContentId, DiskId, InodeId};
use byname_catalog::{
    AddDisk, AddKey, Answer, AttributeChanges, Caller, Command, Create, DISK_LOAD_MAX, DiskChanges,
    DiskState, EntryName, KEPT_NS, Key, KeyHolder, Limits, Place, Policy, PolicyChanges, Publish,
    Reader, Refusal, Rename, SetXattr, Subject, TimeChange,
};

use crate::support::{TestSite, commit, place, refusal};

fn site() -> TestSite {
    TestSite::in_memory().0
}

fn attributes(path: &str, changes: AttributeChanges) -> Command {
    Command::SetAttributes { place: place(path), changes }
}

fn rename(from: &str, to: &str) -> Command {
    Command::Rename(Rename { from: place(from), to: place(to), no_replace: false })
}

/// Binding and time of last modification of what each command changes, and of nothing else.
#[test]
fn entries_and_attributes_move_bindings_and_times() {
    let mut site = site();
    for path in ["d", "e", "other"] {
        site.mkdir("op", path).unwrap();
    }
    site.put("op", "d/f", 10);
    let state = |site: &TestSite, path: &str| {
        let inode = site.entry(path).unwrap().inode;
        (inode.binding, inode.times.modified_ns, inode.times.changed_ns)
    };
    let other = state(&site, "other");
    let link = Command::Link { existing: place("d/f"), place: place("e/l") };
    let commands = [
        (Command::MakeDirectory { place: place("d/n"), mode: 0o755 }, vec!["d"]),
        (link, vec!["e"]),
        (rename("d/n", "e/n"), vec!["d", "e"]),
        (Command::RemoveDirectory { place: place("e/n") }, vec!["e"]),
        (Command::Unlink { place: place("e/l") }, vec!["e"]),
    ];
    for (command, directories) in commands {
        let before: Vec<_> = directories.iter().map(|path| state(&site, path)).collect();
        site.now_ns += 1;
        site.run("op", command.clone()).unwrap();
        for (path, before) in directories.iter().zip(before) {
            let after = state(&site, path);
            assert!(after.0 > before.0, "{command:?}");
            assert_eq!((after.1, after.2), (site.now_ns, site.now_ns), "{command:?}");
        }
    }
    let before = state(&site, "d/f");
    site.now_ns += 1;
    let mode = AttributeChanges { mode: Some(0o600), ..AttributeChanges::default() };
    site.run("op", attributes("d/f", mode)).unwrap();
    let after = state(&site, "d/f");
    assert!(after.0 > before.0 && after.2 > before.2 && after.1 == before.1);
    let time = Some(TimeChange::At(77));
    let time = AttributeChanges { modified: time, ..AttributeChanges::default() };
    site.run("op", attributes("d/f", time)).unwrap();
    assert_eq!(state(&site, "d/f").1, 77);
    assert_eq!(state(&site, "other"), other);
}

#[test]
fn listings_come_in_pages_in_order() {
    let mut site = site();
    let mut names: Vec<Vec<u8>> = (0..25_u8).map(|n| vec![b'a' + n % 5, n + 1]).collect();
    names.push(vec![0xff; 255]);
    for name in &names {
        let at = Place::entry(InodeId::ROOT, EntryName::new(name.clone()).unwrap());
        site.run("op", Command::MakeDirectory { place: at, mode: 0o755 }).unwrap();
    }
    names.sort();
    let reader = site.reader("anna");
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut after = None;
    loop {
        let page = reader.list(&place("/"), after.as_ref(), 7).unwrap();
        found.extend(page.iter().map(|entry| entry.name.as_bytes().to_vec()));
        after = page.last().map(|entry| entry.name.clone());
        if page.len() < 7 {
            break;
        }
    }
    assert_eq!(found, names);
}

#[test]
fn what_modes_hide_is_not_read() {
    let mut site = site();
    site.mkdir("op", "d").unwrap();
    site.mkdir("op", "d/in").unwrap();
    let hide = |mode| AttributeChanges { mode: Some(mode), ..AttributeChanges::default() };
    site.run("op", attributes("d", hide(0o711))).unwrap();
    let reader = site.reader("anna");
    assert_eq!(reader.list(&place("d"), None, 9).map_err(refusal), Err(Refusal::AccessDenied));
    assert!(reader.entry(&place("d/in")).is_ok());
    drop(reader);
    site.run("op", attributes("d", hide(0o744))).unwrap();
    let reader = site.reader("anna");
    assert!(reader.list(&place("d"), None, 9).is_ok());
    assert_eq!(reader.entry(&place("d/in")).map_err(refusal), Err(Refusal::AccessDenied));
    let nobody = Reader::new(site.catalog.engine(), &Caller::User("carl".into()));
    assert_eq!(nobody.err().map(refusal), Some(Refusal::UnknownUser));
}

#[test]
fn extended_attributes_are_few_and_the_owner_s() {
    let mut site = site();
    site.mkdir("op", "d").unwrap();
    let set = |name: &str, size: usize| {
        let (place, name, value) = (place("d"), name.as_bytes().to_vec(), vec![7; size]);
        Command::SetXattr(SetXattr { place, name, value, must_exist: None })
    };
    assert_eq!(site.run("anna", set("user.a", 1)), Err(Refusal::AccessDenied));
    assert_eq!(site.run("op", set("user.a", 4091)), Err(Refusal::AttributesFull));
    site.run("op", set("user.a", 4090)).unwrap();
    assert_eq!(site.run("op", set("user.b", 1)), Err(Refusal::AttributesFull));
    site.run("op", set("user.a", 2)).unwrap();
    site.run("op", set("user.b", 1)).unwrap();
    assert_eq!(site.reader("anna").xattr(&place("d"), b"user.a").unwrap(), [7, 7]);
    assert_eq!(site.reader("anna").xattrs(&place("d")).unwrap(), [b"user.a", b"user.b"]);
    let id = site.entry("d").unwrap().id;
    site.run("op", Command::RemoveDirectory { place: place("d") }).unwrap();
    let key = [id.0.to_be_bytes().as_slice(), b"user.a"].concat();
    let left = site.catalog.engine().snapshot().unwrap().get(Table::Xattr, &key);
    assert_eq!(left.unwrap(), None, "they go with it");
}

#[test]
fn users_administer_nothing_and_disks_only_ask_for_their_own() {
    let mut site = site();
    let content = site.put("op", "f", 10);
    let user =
        Command::SetUser { user: "anna".into(), groups: vec!["ops".into()], is_operator: true };
    let subject = Subject::User("anna".into());
    let policy = Policy { space: "main".into(), replica_count: 1, receipt_count: 1 };
    let disk =
        AddDisk { space: "main".into(), server: "x".into(), label: "y".into(), capacity_bytes: 1 };
    let commands = [
        user,
        Command::AddDisk(disk),
        Command::SetDisk { disk: site.disks[0], changes: DiskChanges::default() },
        Command::SetPolicy { place: place("/"), policy },
        Command::SetLimits { subject, limits: Limits::NONE },
        Command::MakeTree { place: place("/") },
        Command::TrimLog { below: 9, limit: 9 },
        Command::RaiseEpoch { epoch: 9 },
        Command::Expire { limit: 9 },
        Command::Collect { limit: 9 },
        Command::Dropped { disk: DiskId(1), contents: Vec::new() },
        Command::Resolve { generation: 1, content },
    ];
    for command in commands {
        assert_eq!(site.run("anna", command), Err(Refusal::NotOperator));
    }
    let from_disk = Caller::Disk(site.disks[0]);
    let unlink = Command::Unlink { place: place("f") };
    assert_eq!(site.run_as(from_disk, unlink), Err(Refusal::NotOperator));
    let stranger = Caller::Disk(DiskId(9999));
    let ask = Command::Resolve { generation: 1, content };
    assert_eq!(site.run_as(stranger, ask), Err(Refusal::NoSuchDisk));
    assert_eq!(
        site.run_as(Caller::User("carl".into()), Command::OpenSession),
        Err(Refusal::UnknownUser)
    );
}

#[test]
fn content_goes_to_disks_of_the_policy_that_take_it() {
    let mut site = site();
    let [a, b, c] = site.disks[..] else { panic!("three disks") };
    let set = |disk, changes| Command::SetDisk { disk, changes };
    let state = |state| DiskChanges { state: Some(state), ..DiskChanges::default() };
    site.run("op", set(a, state(DiskState::ReadOnly))).unwrap();
    for index in 0..10 {
        let ticket = site.create("op", &format!("f{index}"), 100).unwrap();
        let mut disks: Vec<DiskId> = ticket.disks.iter().map(|disk| disk.disk).collect();
        disks.sort();
        assert_eq!(disks, [b, c]);
    }
    // A busy one gets less, and what it gets is the same whoever executes the command again.
    let busy = DiskChanges { load: Some(200), ..DiskChanges::default() };
    site.run("op", set(a, state(DiskState::ReadWrite))).unwrap();
    site.run("op", set(c, busy)).unwrap();
    assert_eq!(site.reader("op").disk(c).unwrap().load, DISK_LOAD_MAX, "no step beyond the last");
    let mut on_busy = 0;
    for index in 0..60 {
        let ticket = site.create("op", &format!("l{index}"), 100).unwrap();
        on_busy += ticket.disks.iter().filter(|disk| disk.disk == c).count();
        site.run("op", Command::Abort { content: ticket.content }).unwrap();
    }
    assert!((1..20).contains(&on_busy), "{on_busy} of 60, and not 40");
    site.run("op", set(c, DiskChanges { load: Some(0), ..DiskChanges::default() })).unwrap();
    site.run("op", set(a, state(DiskState::ReadOnly))).unwrap();
    let small = DiskChanges { capacity_bytes: Some(1100), ..DiskChanges::default() };
    site.run("op", set(b, small)).unwrap();
    assert_eq!(site.create("op", "g", 101), Err(Refusal::NoSpace), "1000 are reserved");
    let ticket = site.create("op", "g", 100).unwrap();
    let replace = Command::ReplaceDisk { content: ticket.content, disk: b };
    assert_eq!(site.run("op", replace.clone()), Err(Refusal::NoSpace));
    site.run("op", set(a, state(DiskState::ReadWrite))).unwrap();
    let Ok(Answer::Ticket(ticket)) = site.run("op", replace) else { panic!("there is a now") };
    assert!(ticket.disks.iter().any(|disk| disk.disk == a));
    site.commit("op", &ticket, 100).unwrap();
    let policy = Policy { space: "other".into(), replica_count: 1, receipt_count: 1 };
    site.mkdir("op", "d").unwrap();
    site.run("op", Command::SetPolicy { place: place("d"), policy: policy.clone() }).unwrap();
    site.mkdir("op", "d/below").unwrap();
    assert_eq!(site.create("op", "d/below/f", 1), Err(Refusal::NoSpace), "a space without disks");
    for (replica_count, receipt_count) in [(2, 3), (2, 0), (17, 1), (0, 0)] {
        let policy = Policy { replica_count, receipt_count, ..policy.clone() };
        let set = Command::SetPolicy { place: place("d"), policy };
        assert_eq!(site.run("op", set), Err(Refusal::BadPolicy));
    }
}

/// Fewer receipts than replicas, where the policy says so; the disk that was late drops its copy.
#[test]
fn a_policy_may_be_content_with_fewer_receipts() {
    let mut site = site();
    let policy = Policy { space: "main".into(), replica_count: 3, receipt_count: 2 };
    site.run("op", Command::SetPolicy { place: place("/"), policy }).unwrap();
    let ticket = site.create("op", "f", 100).unwrap();
    let mut two = commit(&ticket, 100);
    let late = two.receipts.pop().unwrap();
    site.run("op", Command::Commit(two)).unwrap();
    let content = site.entry("f").unwrap().inode.content().unwrap().clone();
    assert_eq!(content.replicas.len(), 2);
    let ask = Command::Resolve { generation: late.generation, content: ticket.content };
    let answer = site.run_as(Caller::Disk(late.disk), ask).unwrap();
    assert_eq!(answer, Answer::Resolved(byname_catalog::Resolution::Drop));
}

#[test]
fn a_disk_made_anew_has_no_replicas_any_more() {
    let mut site = site();
    let contents: Vec<ContentId> =
        (0..6).map(|index| site.put("op", &format!("f{}", index / 2), 100)).collect();
    let anew = DiskChanges { is_new_generation: true, ..DiskChanges::default() };
    for disk in site.disks.clone() {
        site.run("op", Command::SetDisk { disk, changes: anew.clone() }).unwrap();
        for content in &contents {
            let replicas = site.reader("op").content(*content).unwrap().replicas;
            assert!(!replicas.contains(&disk), "current or kept");
        }
    }
}

#[test]
fn a_disk_is_removed_once_it_is_off_and_has_nothing() {
    let mut site = site();
    let (holder, certificate) = (|disk| KeyHolder::Disk(disk), b"certificate".to_vec());
    let add = AddDisk {
        space: "main".into(),
        server: "more".into(),
        label: "hall".into(),
        capacity_bytes: 1 << 40,
    };
    let Ok(Answer::Disk(unused)) = site.run("op", Command::AddDisk(add)) else { panic!("a disk") };
    let remove = |disk| Command::RemoveDisk { disk };
    let turn_off = |disk| {
        let changes = DiskChanges { state: Some(DiskState::Off), ..DiskChanges::default() };
        Command::SetDisk { disk, changes }
    };
    let name = b"/more/KEY/1".to_vec();
    let key = AddKey { holder: holder(unused), name: name.clone(), certificate };
    site.run("op", Command::AddKey(key)).unwrap();
    assert_eq!(site.run("op", remove(unused)), Err(Refusal::DiskInUse), "it takes content");
    site.run("op", turn_off(unused)).unwrap();
    site.run("op", remove(unused)).unwrap();
    assert_eq!(site.run("op", remove(unused)), Err(Refusal::NoSuchDisk));
    assert_eq!(site.reader("op").key(&name).unwrap(), None, "its key is nobody's");
    // One that has replicas stays, also while they are kept for readers of before.
    let content = site.put("op", "f", 100);
    let used = site.reader("op").content(content).unwrap().replicas[0];
    site.run("op", turn_off(used)).unwrap();
    assert_eq!(site.run("op", remove(used)), Err(Refusal::DiskInUse));
    site.run("op", Command::Unlink { place: place("f") }).unwrap();
    assert_eq!(site.run("op", remove(used)), Err(Refusal::DiskInUse), "for ten minutes");
    site.pass(2 * KEPT_NS);
    assert_ne!(site.reader("op").drops(used, 10).unwrap(), [], "it would be told");
    site.run("op", remove(used)).unwrap();
    assert!(site.reader("op").disks().unwrap().iter().all(|(disk, _)| *disk != used));
}

#[test]
fn a_tree_has_a_quota_of_its_own_and_keeps_it_when_it_moves() {
    let mut site = site();
    for path in ["d", "t", "full"] {
        site.mkdir("op", path).unwrap();
    }
    site.mkdir("op", "full/x").unwrap();
    let make = |path| Command::MakeTree { place: place(path) };
    assert_eq!(site.run("op", make("full")), Err(Refusal::NotEmpty));
    site.run("op", make("t")).unwrap();
    let tree = Subject::Tree(site.entry("t").unwrap().id);
    let limits = Limits { inodes: 3, bytes: 100, ..Limits::NONE };
    let limit = Command::SetLimits { subject: tree.clone(), limits };
    site.run("op", limit).unwrap();
    let plain = Subject::Tree(site.entry("d").unwrap().id);
    let limit = Command::SetLimits { subject: plain, limits };
    assert_eq!(site.run("op", limit), Err(Refusal::NotDirectory), "a tree it is not");
    site.put("op", "t/f", 60);
    assert_eq!(site.create("op", "t/g", 41), Err(Refusal::TreeQuota));
    site.put("op", "g", 41);
    assert_eq!(site.run("op", rename("g", "t/g")), Err(Refusal::TreeQuota));
    site.run("op", rename("t", "d/t")).unwrap();
    assert_eq!(site.run("op", rename("d/t/f", "f")).map(drop), Ok(()));
    site.run("op", rename("g", "d/t/g")).unwrap();
    let (usage, limit) = site.reader("op").usage(&tree).unwrap();
    assert_eq!((usage.inodes, usage.bytes, limit), (2, 41, limits));
    site.mkdir("op", "d/t/sub").unwrap();
    assert_eq!(site.run("op", rename("d/t/sub", "sub")), Err(Refusal::OtherTree));
    let link = Command::Link { existing: place("d/t/g"), place: place("h") };
    assert_eq!(site.run("op", link), Err(Refusal::OtherTree));
}

/// A file counts for its owner as long as it has a name, so not everybody gives it another one.
#[test]
fn who_may_not_read_and_write_a_file_gives_it_no_other_name() {
    let mut site = site();
    for path in ["d", "hers"] {
        site.mkdir("op", path).unwrap();
        let changes = AttributeChanges { mode: Some(0o777), ..AttributeChanges::default() };
        site.run("op", Command::SetAttributes { place: place(path), changes }).unwrap();
    }
    site.put("anna", "d/f", 10);
    let target = Command::MakeSymlink { place: place("d/s"), target: b"f".to_vec() };
    site.run("anna", target).unwrap();
    let link = |of: &str| Command::Link { existing: place(of), place: place("hers/l") };
    for (user, mode, may) in [
        ("bert", 0o644, false),
        ("bert", 0o622, false),
        ("bert", 0o666, true),
        ("bert", 0o4666, false),
        ("bert", 0o2666, false),
        ("anna", 0o000, true),
        ("op", 0o000, true),
    ] {
        let changes = AttributeChanges { mode: Some(mode), ..AttributeChanges::default() };
        site.run("op", Command::SetAttributes { place: place("d/f"), changes }).unwrap();
        let made = site.run(user, link("d/f"));
        if may {
            made.unwrap();
            site.run("op", Command::Unlink { place: place("hers/l") }).unwrap();
        } else {
            assert_eq!(made, Err(Refusal::NotOwner), "{user} at {mode:o}");
        }
    }
    assert_eq!(site.run("bert", link("d/s")), Err(Refusal::NotOwner), "a link of anna's");
    site.run("anna", link("d/s")).unwrap();
}

/// Truncation to nothing is a version; anything else is content.
#[test]
fn truncating_makes_a_version_without_octets() {
    let mut site = site();
    let old = site.put("op", "f", 100);
    let size = |size| AttributeChanges { size: Some(size), ..AttributeChanges::default() };
    assert_eq!(site.run("op", attributes("f", size(50))), Err(Refusal::SizeNeedsContent));
    site.run("op", attributes("f", size(0))).unwrap();
    let content = site.entry("f").unwrap().inode.content().unwrap().clone();
    assert!(content.version > old.version && content.replicas.is_empty());
    assert_eq!(site.reader("op").content(old).unwrap().size, 100, "kept for its readers");
    let root = content.root;
    assert_eq!(root, *blake3::hash(b"").as_bytes());
}

/// What a writer says of content without octets is checked too.
#[test]
fn empty_content_needs_no_disk_and_no_invention() {
    let mut site = site();
    let ticket = site.create("op", "f", 0).unwrap();
    assert_eq!((ticket.disks.len(), ticket.receipt_count), (0, 0));
    let mut false_root = commit(&ticket, 0);
    false_root.root[0] ^= 1;
    assert_eq!(site.run("op", Command::Commit(false_root)), Err(Refusal::ForeignReceipt));
    site.commit("op", &ticket, 0).unwrap();
    // Reserved for more, and empty in the end.
    let ticket = site.create("op", "g", 100).unwrap();
    site.commit("op", &ticket, 0).unwrap();
    assert_eq!(site.entry("g").unwrap().inode.content().unwrap().replicas, []);
}

#[test]
fn symbolic_links_are_not_followed() {
    let mut site = site();
    site.mkdir("op", "d").unwrap();
    let target = b"d".to_vec();
    site.run("op", Command::MakeSymlink { place: place("l"), target }).unwrap();
    assert_eq!(site.mkdir("op", "l/x"), Err(Refusal::SymbolicLink));
    assert_eq!(site.create("op", "l", 1), Err(Refusal::SymbolicLink));
    let long = Command::MakeSymlink { place: place("m"), target: vec![b'x'; 1025] };
    assert_eq!(site.run("op", long), Err(Refusal::TargetTooLong));
    let create = Create {
        place: Place::inode(InodeId::ROOT),
        mode: 0o644,
        size_max: 1,
        publish: Publish::AtOnce,
        exclusive: false,
        policy: PolicyChanges::default(),
    };
    assert_eq!(site.run("op", Command::Create(create.clone())), Err(Refusal::IsDirectory));
    let exclusive = Create { exclusive: true, ..create };
    assert_eq!(site.run("op", Command::Create(exclusive)), Err(Refusal::Exists));
}

/// One command and one transaction, and nothing is left open.
#[test]
fn a_file_without_octets_is_made_at_once() {
    let mut site = site();
    let create = |path: &str, exclusive, size_max| {
        Command::Create(Create {
            place: place(path),
            mode: 0o640,
            size_max,
            publish: Publish::Whole,
            exclusive,
            policy: PolicyChanges::default(),
        })
    };
    let Ok(Answer::Entry(made)) = site.run("op", create("f", true, 0)) else { panic!("no entry") };
    assert_eq!((made.inode.size(), made.inode.mode), (0, 0o640));
    assert_eq!(site.entry("f").unwrap(), made);
    assert_eq!(site.run("op", create("f", true, 0)), Err(Refusal::Exists));
    assert_eq!(site.run("op", create("g", true, 1)), Err(Refusal::TooLarge));
    // Another version without octets; whoever is writing one knows that he has lost.
    site.put("op", "f", 10);
    let writing = site.create("op", "f", 10).unwrap();
    let Ok(Answer::Entry(emptied)) = site.run("op", create("f", false, 0)) else { panic!() };
    assert_eq!((emptied.id, emptied.inode.size()), (made.id, 0));
    assert_eq!(site.commit("op", &writing, 10), Err(Refusal::BaseChanged));
    let (usage, _) = site.reader("op").usage(&Subject::User("op".into())).unwrap();
    assert_eq!((usage.bytes, usage.reserved_bytes, usage.reserved_inodes), (0, 0, 0));
}

/// A directory with older entries takes the place of one with newer ones: readers of a path in it
/// must not take the entry for one from before.
#[test]
fn the_binding_of_a_place_never_goes_back() {
    let mut site = site();
    for path in ["old", "new"] {
        site.mkdir("op", path).unwrap();
    }
    site.put("op", "old/f", 10);
    site.put("op", "new/f", 10);
    let binding = |site: &TestSite, path: &str| {
        let resolved = site.reader("op").resolve(&place(path)).unwrap();
        (resolved.binding(), resolved.inode.binding)
    };
    let before = binding(&site, "new/f");
    site.run("op", rename("new", "away")).unwrap();
    site.run("op", rename("old", "new")).unwrap();
    let after = binding(&site, "new/f");
    assert!(after.1 < before.1, "the inode is the older one");
    assert!(after.0 > before.0, "the place has changed since");
    let listed = site.reader("op").list(&place("new"), None, 9).unwrap();
    assert!(listed[0].placed < after.0, "the entry itself was not moved");
    let link = Command::Link { existing: place("new/f"), place: place("l") };
    site.run("op", link).unwrap();
    assert!(binding(&site, "l").0 > after.0);
}

#[test]
fn keys_are_added_and_removed_by_operators() {
    let mut site = site();
    let add = |holder: KeyHolder| {
        let (name, certificate) = (b"name".to_vec(), b"certificate".to_vec());
        Command::AddKey(AddKey { holder, name, certificate })
    };
    let of_anna = KeyHolder::User("anna".into());
    assert_eq!(site.run("anna", add(of_anna.clone())), Err(Refusal::NotOperator));
    assert_eq!(site.run("op", add(KeyHolder::User("nobody".into()))), Err(Refusal::UnknownUser));
    assert_eq!(site.run("op", add(KeyHolder::Disk(DiskId(999)))), Err(Refusal::NoSuchDisk));
    site.run("op", add(of_anna.clone())).unwrap();
    let of_bert = KeyHolder::User("bert".into());
    assert_eq!(site.run("op", add(of_bert)), Err(Refusal::KeyOfAnother));
    site.run("op", add(of_anna.clone())).unwrap();
    let key = Key { holder: of_anna, certificate: b"certificate".to_vec(), loan: None };
    assert_eq!(site.reader("op").key(b"name").unwrap(), Some(key.clone()));
    assert_eq!(site.reader("op").keys(b"", 9).unwrap(), [(b"name".to_vec(), key)]);
    let remove = Command::RemoveKey { name: b"name".to_vec() };
    assert_eq!(site.run("anna", remove.clone()), Err(Refusal::NotOperator));
    site.run("op", remove.clone()).unwrap();
    assert_eq!(site.reader("op").key(b"name").unwrap(), None);
    assert_eq!(site.run("op", remove), Err(Refusal::UnknownKey));
    let long = AddKey {
        holder: KeyHolder::User("anna".into()),
        name: vec![0; 1025],
        certificate: b"c".to_vec(),
    };
    assert_eq!(site.run("op", Command::AddKey(long)), Err(Refusal::BadKey));
}
