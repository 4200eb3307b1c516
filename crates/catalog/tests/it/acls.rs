//! Access control lists: whom they let do what, and that they change and are inherited as those of
//! this system's file system.

use std::path::Path;

use byname_catalog::{
    Acl, Answer, AttributeChanges, Command, Create, Entry, EntryName, Place, PolicyChanges,
    Publish, Refusal, Rename, SetAcl,
};
use proptest::prelude::*;
use rustix::fs::{self as system, Mode, XattrFlags};

use crate::support::{TestSite, commit, place};

fn site() -> TestSite {
    TestSite::in_memory().0
}

fn set_acl(path: &str, is_default: bool, acl: Option<&str>) -> Command {
    let acl = acl.map(|acl| acl.parse().unwrap());
    Command::SetAcl(SetAcl { place: place(path), is_default, acl })
}

fn set(site: &mut TestSite, path: &str, acl: &str) {
    site.run("op", set_acl(path, false, Some(acl))).unwrap();
}

fn access(site: &TestSite, path: &str) -> String {
    site.entry(path).unwrap().inode.access_acl().to_string()
}

fn default_of(site: &TestSite, path: &str) -> Option<String> {
    site.entry(path).unwrap().inode.acls.default.map(|acl| acl.to_string())
}

/// The first class that fits decides, and the mask bounds all but the owner and others. Users are
/// `anna` (users, physics) and `bert` (users); directories belong to `op`.
#[test]
fn the_first_class_that_fits_decides() {
    let mut site = site();
    site.mkdir("op", "d").unwrap();
    for (acl, anna, bert) in [
        ("u::rwx,g::---,o::---", false, false),
        ("u::rwx,u:anna:rwx,g::---,m::rwx,o::---", true, false),
        ("u::rwx,u:anna:rwx,g::---,m::r-x,o::---", false, false),
        // Others have the right; who is named has not.
        ("u::rwx,u:anna:---,g::---,m::rwx,o::rwx", false, true),
        // In two groups, one of which grants all that is wanted.
        ("u::rwx,g::---,g:users:r--,g:physics:rwx,m::rwx,o::---", true, false),
        // In two groups, each of which grants a part: parts are not added.
        ("u::rwx,g::---,g:users:-w-,g:physics:r-x,m::rwx,o::rwx", false, false),
        ("u::rwx,g::---,g:cms:rwx,m::rwx,o::---", false, false),
        ("u::rwx,g::---,g:users:rwx,m::rwx,o::---", true, true),
        ("u::rwx,u:bert:r-x,g::---,g:users:rwx,m::rwx,o::---", true, false),
    ] {
        set(&mut site, "d", acl);
        for (user, may) in [("anna", anna), ("bert", bert)] {
            let made = site.mkdir(user, &format!("d/{user}"));
            assert_eq!(made.is_ok(), may, "{user} at {acl}: {made:?}");
            if may {
                let place = place(&format!("d/{user}"));
                site.run("op", Command::RemoveDirectory { place }).unwrap();
            } else {
                assert_eq!(made, Err(Refusal::AccessDenied), "{user} at {acl}");
            }
        }
    }
}

/// Searching, listing and writing files follow the lists, not only making of directories.
#[test]
fn a_list_denies_a_subtree_to_one_user() {
    let mut site = site();
    for path in ["t", "t/open", "t/shut", "t/shut/deep"] {
        site.mkdir("op", path).unwrap();
    }
    site.put("op", "t/shut/f", 10);
    set(&mut site, "t/shut", "u::rwx,u:anna:---,g::rwx,m::rwx,o::rwx");
    set(&mut site, "t/open", "u::rwx,u:anna:rwx,g::rwx,m::rwx,o::rwx");
    site.put("anna", "t/open/f", 10);
    let denied = Err(Refusal::AccessDenied);
    assert_eq!(site.create("anna", "t/shut/g", 1).map(drop), denied);
    assert_eq!(site.create("anna", "t/shut/f", 1).map(drop), denied);
    assert_eq!(site.mkdir("anna", "t/shut/deep/x").map(drop), denied);
    let refused = |failure| Err::<(), _>(crate::support::refusal(failure));
    let reader = site.reader("anna");
    let shut = reader.list(&place("t/shut"), None, 9);
    assert_eq!(shut.map(drop).or_else(refused), denied);
    assert_eq!(reader.entry(&place("t/shut/f")).map(drop).or_else(refused), denied);
    assert!(reader.list(&place("t/open"), None, 9).is_ok());
    drop(reader);
    assert!(site.reader("bert").entry(&place("t/shut/f")).is_ok());
    site.mkdir("bert", "t/shut/deep/x").unwrap_err();
    site.put("bert", "t/shut/h", 10);
}

#[test]
fn who_asks_before_he_reads_is_told_what_he_may() {
    let mut site = site();
    site.mkdir("op", "d").unwrap();
    site.put("op", "d/f", 10);
    set(&mut site, "d/f", "u::rw-,u:anna:-w-,u:bert:r--,g::r--,m::rw-,o::---");
    let may = |site: &TestSite, user: &str, wanted| {
        site.reader(user).resolve_for(&place("d/f"), wanted).is_ok()
    };
    let granted = |site: &TestSite, user: &str| -> Vec<u16> {
        (0..=7).filter(|wanted| may(site, user, *wanted)).collect()
    };
    assert_eq!(granted(&site, "anna"), [0, 2]);
    assert_eq!(granted(&site, "bert"), [0, 4]);
    assert_eq!(granted(&site, "op"), [0, 1, 2, 3, 4, 5, 6, 7], "an operator may everything");
    set(&mut site, "d", "u::rwx,u:bert:rw-,g::r-x,m::rwx,o::r-x");
    assert!(granted(&site, "bert").is_empty(), "he may not search what is above it");
}

/// The session stays open meanwhile: rights are looked up with each command.
#[test]
fn a_group_that_is_taken_away_counts_no_more_in_an_open_session() {
    let mut site = site();
    site.mkdir("op", "d").unwrap();
    set(&mut site, "d", "u::rwx,g::---,g:physics:rwx,m::rwx,o::---");
    site.mkdir("anna", "d/a").unwrap();
    let groups = |groups: &[&str]| Command::SetUser {
        user: "anna".into(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        is_operator: false,
    };
    site.run("op", groups(&["users"])).unwrap();
    assert_eq!(site.mkdir("anna", "d/b").map(drop), Err(Refusal::AccessDenied));
    site.run("op", groups(&["physics"])).unwrap();
    site.mkdir("anna", "d/b").unwrap();
}

/// Numbers are no secret: they are in the names of content, and are counted upwards.
#[test]
fn a_number_leads_past_no_directory_that_is_shut() {
    let mut site = site();
    for path in ["cms", "cms/open", "cms/open/deep"] {
        site.mkdir("op", path).unwrap();
        let changes = AttributeChanges { mode: Some(0o777), ..AttributeChanges::default() };
        site.run("op", Command::SetAttributes { place: place(path), changes }).unwrap();
    }
    let file = site.put("op", "cms/open/f", 10).inode;
    let mode = |bits| AttributeChanges { mode: Some(bits), ..AttributeChanges::default() };
    let set_mode = |path, bits| Command::SetAttributes { place: place(path), changes: mode(bits) };
    site.run("op", set_mode("cms/open/f", 0o666)).unwrap();
    let [open, deep] = ["cms/open", "cms/open/deep"].map(|path| site.entry(path).unwrap().id);
    let below = |id, name: &str| Place::entry(id, EntryName::new(name.as_bytes()).unwrap());
    let write = |place| {
        Command::Create(Create {
            place,
            mode: 0o644,
            size_max: 1,
            publish: Publish::AtCommit,
            exclusive: false,
            policy: PolicyChanges::default(),
        })
    };
    let rename = |from, to| Command::Rename(Rename { from, to, no_replace: false });
    let commands = [
        Command::MakeDirectory { place: below(open, "new"), mode: 0o755 },
        Command::RemoveAll { place: below(open, "deep") },
        Command::Unlink { place: below(open, "f") },
        write(below(open, "g")),
        write(below(deep, "g")),
        write(Place::inode(file)),
        rename(below(open, "f"), place("out/f")),
        rename(place("out/own"), below(deep, "own")),
        Command::Link { existing: Place::inode(file), place: place("out/l") },
        Command::Lease { place: Place::inode(file) },
    ];
    site.mkdir("op", "out").unwrap();
    site.run("op", set_mode("out", 0o777)).unwrap();
    site.put("anna", "out/own", 1);
    for shut in ["u::rwx,g::rwx,o::---", "u::rwx,u:anna:---,g::rwx,m::rwx,o::rwx"] {
        set(&mut site, "cms", shut);
        for command in &commands {
            let refused = site.run("anna", command.clone());
            assert_eq!(refused, Err(Refusal::AccessDenied), "{command:?} at {shut}");
        }
        assert!(site.reader("anna").list(&Place::inode(deep), None, 9).is_err());
    }
    // Who may go through acts by number as by name; by that of a file only who owns or leases it.
    set(&mut site, "cms", "u::rwx,g::rwx,o::r-x");
    site.run("anna", commands[0].clone()).unwrap();
    assert_eq!(site.run("anna", write(Place::inode(file))), Err(Refusal::AccessDenied));
    site.run("anna", Command::Lease { place: place("cms/open/f") }).unwrap();
    set(&mut site, "cms", "u::rwx,g::rwx,o::---");
    assert!(matches!(site.run("anna", write(Place::inode(file))), Ok(Answer::Ticket(_))));
    site.run("anna", Command::EndLease { place: Place::inode(file) }).unwrap();
    assert_eq!(site.run("anna", write(Place::inode(file))), Err(Refusal::AccessDenied));
    let own = site.entry("out/own").unwrap().id;
    assert!(matches!(site.run("anna", write(Place::inode(own))), Ok(Answer::Ticket(_))));
}

#[test]
fn owners_set_lists_and_nobody_else() {
    let mut site = site();
    site.mkdir("op", "d").unwrap();
    set(&mut site, "d", "u::rwx,u:anna:rwx,g::---,m::rwx,o::---");
    let list = "u::rwx,u:anna:r--,g::---,m::rwx,o::---";
    let asked = set_acl("d", false, Some(list));
    assert_eq!(site.run("anna", asked.clone()), Err(Refusal::NotOwner));
    site.mkdir("anna", "d/own").unwrap();
    site.run("anna", set_acl("d/own", true, Some(list))).unwrap();
    let file = site.put("anna", "d/own/f", 3);
    assert_eq!(site.run("anna", set_acl("d/own/f", true, Some(list))), Err(Refusal::DefaultOfFile));
    let link = Command::MakeSymlink { place: place("d/l"), target: b"own".to_vec() };
    site.run("op", link).unwrap();
    assert_eq!(site.run("op", set_acl("d/l", false, Some(list))), Err(Refusal::AclOfLink));
    // A list without order comes into it; one that is none is refused whoever made it.
    let mut acl: Acl = list.parse().unwrap();
    acl.mask = None;
    let at = Place::inode(file.inode);
    let bad = Command::SetAcl(SetAcl { place: at, is_default: false, acl: Some(acl) });
    assert_eq!(site.run("op", bad), Err(Refusal::BadAcl));
    assert_eq!(site.run("op", set_acl("d", false, Some("u::rwx,g::r-x,o::---"))).map(drop), Ok(()));
    assert_eq!(site.entry("d").unwrap().inode.acls.access, None, "a mode says all of it");
}

/// What an attempt began with is what the file has, whatever the directory has by then.
#[test]
fn a_file_has_the_list_of_when_it_was_begun() {
    let mut site = site();
    site.mkdir("op", "d").unwrap();
    let list = "u::rwx,u:anna:rw-,g::r-x,m::rwx,o::---";
    site.run("op", set_acl("d", true, Some(list))).unwrap();
    let begun = site.create("op", "d/f", 5).unwrap();
    site.run("op", set_acl("d", true, None)).unwrap();
    site.run("op", Command::Commit(commit(&begun, 5))).unwrap();
    assert_eq!(access(&site, "d/f"), "u::rw-,u:anna:rw-,g::r-x,m::r--,o::---");
    let named = site.open("op", "d/g", (5, Publish::AtOnce)).unwrap();
    site.run("op", Command::Commit(commit(&named, 5))).unwrap();
    assert_eq!(access(&site, "d/g"), "u::rw-,g::r--,o::r--");
    // A rewrite and a move keep the list.
    let again = site.create("anna", "d/f", 5);
    assert_eq!(again.map(drop), Err(Refusal::AccessDenied), "the mask lets nobody write");
    set(&mut site, "d/f", "u::rw-,u:anna:rw-,g::r-x,m::rw-,o::---");
    site.put("anna", "d/f", 6);
    assert_eq!(access(&site, "d/f"), "u::rw-,u:anna:rw-,g::r-x,m::rw-,o::---");
}

/// Users and groups of lists on the real side.
const IDS: [(&str, u32); 3] = [("anna", 3001), ("bert", 3002), ("cms", 3003)];

fn id_of(name: &str) -> u32 {
    IDS.iter().find(|(one, _)| *one == name).map_or(u32::MAX, |(_, id)| *id)
}

/// A list as the kernel has it: a version, then tag, rights and number of each entry in order.
fn octets(acl: &Acl) -> Vec<u8> {
    let mut octets = 2_u32.to_le_bytes().to_vec();
    let mut put = |tag: u16, rights: u8, id: u32| {
        octets.extend_from_slice(&tag.to_le_bytes());
        octets.extend_from_slice(&u16::from(rights).to_le_bytes());
        octets.extend_from_slice(&id.to_le_bytes());
    };
    put(0x01, acl.owner, u32::MAX);
    acl.named.users.iter().for_each(|(name, rights)| put(0x02, *rights, id_of(name)));
    put(0x04, acl.named.group, u32::MAX);
    acl.named.groups.iter().for_each(|(name, rights)| put(0x08, *rights, id_of(name)));
    acl.mask.iter().for_each(|mask| put(0x10, *mask, u32::MAX));
    put(0x20, acl.other, u32::MAX);
    octets
}

fn acl_of(octets: &[u8]) -> String {
    let entry = |entry: &[u8]| {
        let number = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
        let id = u32::from_le_bytes(entry[4..8].try_into().unwrap());
        let name = IDS.iter().find(|(_, one)| *one == id).map_or("", |(name, _)| *name);
        let kind = match number(0) {
            0x01 | 0x02 => "u",
            0x04 | 0x08 => "g",
            0x10 => "m",
            _ => "o",
        };
        format!("{kind}:{name}:{}", number(2))
    };
    let entries: Vec<String> = octets[4..].chunks(8).map(entry).collect();
    entries.join(",").parse::<Acl>().unwrap().to_string()
}

const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";

/// The list of a real file: from the attribute, or from the mode where there is none.
fn real(path: &Path, which: &str) -> Option<String> {
    let mut value = [0_u8; 1024];
    match system::getxattr(path, which, &mut value[..]) {
        Ok(length) => Some(acl_of(&value[..length])),
        Err(rustix::io::Errno::NODATA) if which == DEFAULT => None,
        Err(rustix::io::Errno::NODATA) => {
            let mode = system::stat(path).unwrap().st_mode;
            Some(Acl::of_bits((mode & 0o777) as u16).to_string())
        }
        Err(error) => panic!("{path:?}: {error}"),
    }
}

#[derive(Debug, Clone)]
enum Op {
    Mkdir(&'static str, u16),
    Create(&'static str, u16),
    Chmod(&'static str, u16),
    Set(&'static str, bool, Option<String>),
}

const PATHS: [&str; 6] = ["a", "b", "a/c", "a/d", "a/c/e", "a/c/f"];

fn op() -> impl Strategy<Value = Op> {
    let path = || proptest::sample::select(PATHS.to_vec());
    let mode = || proptest::sample::select(vec![0o700, 0o755, 0o1777, 0o750, 0o640, 0o664, 0o666]);
    let rights = || proptest::collection::vec(0..8_u8, 7);
    let list = (rights(), 0..16_u8).prop_map(|(rights, which)| {
        let mut entries = vec![format!("g::{}", rights[1]), format!("o::{}", rights[2])];
        let named = ["u:anna", "u:bert", "g:cms"];
        let is_there = |index: usize| which & 1 << index != 0;
        for (index, who) in named.iter().enumerate().filter(|(index, _)| is_there(*index)) {
            entries.push(format!("{who}:{}", rights[3 + index]));
        }
        if which != 0 {
            entries.push(format!("m::{}", rights[6]));
        }
        // Who runs the test has to go on below it.
        format!("u::7,{}", entries.join(","))
    });
    prop_oneof![
        3 => (path(), mode()).prop_map(|(path, mode)| Op::Mkdir(path, mode | 0o700)),
        3 => (path(), mode()).prop_map(|(path, mode)| Op::Create(path, mode | 0o600)),
        2 => (path(), mode()).prop_map(|(path, mode)| Op::Chmod(path, mode | 0o700)),
        4 => (path(), any::<bool>(), proptest::option::weighted(0.9, list))
            .prop_map(|(path, is_default, list)| Op::Set(path, is_default, list)),
    ]
}

fn apply_here(site: &mut TestSite, op: &Op) -> Result<(), i32> {
    let command = match op {
        Op::Mkdir(path, mode) => Command::MakeDirectory { place: place(path), mode: *mode },
        Op::Create(path, mode) => Command::Create(byname_catalog::Create {
            place: place(path),
            mode: *mode,
            size_max: 0,
            publish: Publish::Whole,
            exclusive: true,
            policy: Default::default(),
        }),
        Op::Chmod(path, mode) => {
            let changes = AttributeChanges { mode: Some(*mode), ..AttributeChanges::default() };
            Command::SetAttributes { place: place(path), changes }
        }
        Op::Set(path, is_default, acl) => set_acl(path, *is_default, acl.as_deref()),
    };
    match site.run("op", command) {
        Ok(Answer::Entry(Entry { .. }) | Answer::Done) => Ok(()),
        Ok(other) => panic!("{other:?}"),
        Err(refusal) => Err(refusal.errno()),
    }
}

fn apply_there(top: &Path, op: &Op) -> Result<(), i32> {
    let mode = |mode: u16| Mode::from_bits_retain(mode.into());
    match op {
        Op::Mkdir(path, bits) => system::mkdir(top.join(path), mode(*bits)),
        Op::Create(path, bits) => {
            let flags = system::OFlags::CREATE | system::OFlags::EXCL | system::OFlags::WRONLY;
            system::open(top.join(path), flags, mode(*bits)).map(drop)
        }
        Op::Chmod(path, bits) => system::chmod(top.join(path), mode(*bits)),
        Op::Set(path, is_default, acl) => {
            let which = if *is_default { DEFAULT } else { ACCESS };
            let path = top.join(path);
            match acl {
                Some(acl) => {
                    let octets = octets(&acl.parse().unwrap());
                    system::setxattr(path, which, &octets, XattrFlags::empty())
                }
                // Without a list there is nothing to be removed, which the catalog takes for done.
                None => match system::removexattr(path, which) {
                    Err(rustix::io::Errno::NODATA) => Ok(()),
                    done => done,
                },
            }
        }
    }
    .map_err(rustix::io::Errno::raw_os_error)
}

/// Held while the process's umask is none, so that the catalog, which has none, makes the same.
static UMASK: std::sync::Mutex<()> = std::sync::Mutex::new(());

proptest! {
    #![proptest_config(crate::support::cases(64))]

    #[test]
    fn lists_are_set_and_inherited_as_on_this_system(
        ops in proptest::collection::vec(op(), 1..60),
    ) {
        let _only = UMASK.lock().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        let (mut site, _) = TestSite::in_memory();
        let umask = rustix::process::umask(Mode::empty());
        let mut difference = None;
        for op in &ops {
            let outcomes = (apply_here(&mut site, op), apply_there(top, op));
            let lists = PATHS.iter().filter(|path| top.join(path).exists()).map(|path| {
                let here = (Some(access(&site, path)), default_of(&site, path));
                let there = (real(&top.join(path), ACCESS), real(&top.join(path), DEFAULT));
                let mode = site.entry(path).unwrap().inode.mode;
                let real_mode = (system::stat(top.join(path)).unwrap().st_mode & 0o7777) as u16;
                ((*path, mode, here), (*path, real_mode, there))
            });
            let (here, there): (Vec<_>, Vec<_>) = lists.unzip();
            if here != there || outcomes.0 != outcomes.1 {
                difference = Some((op.clone(), outcomes, here, there));
                break;
            }
        }
        rustix::process::umask(umask);
        prop_assert!(difference.is_none(), "{difference:#?}");
    }
}
