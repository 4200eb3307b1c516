//! The same commands on the catalog and on a directory of this system: the same errors, and the
//! same tree after each.
//!
//! The directory's own calls take an open parent, reached without following symbolic links, since
//! the catalog follows none either. Modes leave the owner all rights, so that it does not matter
//! who runs the test. Sizes stand for content.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use byname_catalog::{
    Answer, AttributeChanges, Command, Create, Detail, Kind, Place, PolicyChanges, Publish,
    Refusal, Rename, SetXattr,
};
use proptest::prelude::*;
use rustix::fd::OwnedFd;
use rustix::fs::{self as system, AtFlags, Mode, OFlags, RenameFlags, ResolveFlags, XattrFlags};
use rustix::io::Errno;

use crate::support::{TestSite, commit};

/// Names from the top; the last is the entry.
type Names = Vec<&'static str>;

#[derive(Debug, Clone)]
enum Op {
    Mkdir(Names),
    Rmdir(Names),
    Unlink(Names),
    Rename { from: Names, to: Names, no_replace: bool },
    Link { existing: Names, to: Names },
    Symlink { at: Names, target: &'static str },
    Create { at: Names, exclusive: bool },
    Write { at: Names, size: u16 },
    Empty(Names),
    Chmod { at: Names, mode: u16 },
    SetXattr { at: Names, name: &'static str, must_exist: Option<bool> },
    RemoveXattr { at: Names, name: &'static str },
}

fn names() -> impl Strategy<Value = Names> {
    proptest::collection::vec(proptest::sample::select(vec!["a", "b", "c"]), 1..4)
}

fn op() -> impl Strategy<Value = Op> {
    let mode = proptest::sample::select(vec![0o700, 0o755, 0o1777, 0o2750, 0o777]);
    let target = proptest::sample::select(vec!["a", "b/c", "/nowhere", ""]);
    let xattr = || proptest::sample::select(vec!["user.x", "user.y", "bad.x"]);
    prop_oneof![
        4 => names().prop_map(Op::Mkdir),
        1 => names().prop_map(Op::Rmdir),
        2 => names().prop_map(Op::Unlink),
        4 => (names(), names(), any::<bool>())
            .prop_map(|(from, to, no_replace)| Op::Rename { from, to, no_replace }),
        2 => (names(), names()).prop_map(|(existing, to)| Op::Link { existing, to }),
        1 => (names(), target).prop_map(|(at, target)| Op::Symlink { at, target }),
        2 => (names(), any::<bool>()).prop_map(|(at, exclusive)| Op::Create { at, exclusive }),
        3 => (names(), 0..500_u16).prop_map(|(at, size)| Op::Write { at, size }),
        1 => names().prop_map(Op::Empty),
        1 => (names(), mode).prop_map(|(at, mode)| Op::Chmod { at, mode }),
        1 => (names(), xattr(), any::<Option<bool>>())
            .prop_map(|(at, name, must_exist)| Op::SetXattr { at, name, must_exist }),
        1 => (names(), xattr()).prop_map(|(at, name)| Op::RemoveXattr { at, name }),
    ]
}

/// Everything of an inode that both sides have.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    kind: Kind,
    mode: u16,
    links: u64,
    size: u64,
    target: Vec<u8>,
    xattrs: Vec<Vec<u8>>,
}

type Tree = BTreeMap<PathBuf, Seen>;

/// The real side.
struct Real {
    top: PathBuf,
    has_xattrs: bool,
    /// True if a directory has a link for each directory in it, as most file systems have it.
    counts_directories: bool,
    may_set_group: bool,
}

impl Real {
    fn new(top: &Path) -> Self {
        let probe = system::setxattr(top, "user.probe", b"1", XattrFlags::empty());
        let _ = system::removexattr(top, "user.probe");
        system::chmod(top, Mode::from_bits_retain(0o755)).unwrap();
        let counts_directories = system::stat(top).unwrap().st_nlink == 2;
        Self {
            top: top.to_owned(),
            has_xattrs: probe.is_ok(),
            counts_directories,
            may_set_group: rustix::process::geteuid().is_root(),
        }
    }

    /// The directory that the last name is in, and the name.
    fn parent(&self, names: &Names) -> Result<(OwnedFd, &'static str), Errno> {
        let (last, way) = names.split_last().unwrap();
        let way: PathBuf = [".", &way.join("/")].iter().collect();
        let top = system::open(&self.top, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        Ok((system::openat2(top, way, flags, Mode::empty(), resolve)?, last))
    }

    fn path(&self, names: &Names) -> PathBuf {
        self.top.join(names.join("/"))
    }

    fn apply(&self, op: &Op) -> Result<(), Errno> {
        match op {
            Op::Mkdir(at) => {
                let (parent, name) = self.parent(at)?;
                system::mkdirat(parent, name, Mode::RWXU)
            }
            Op::Rmdir(at) => {
                let (parent, name) = self.parent(at)?;
                system::unlinkat(parent, name, AtFlags::REMOVEDIR)
            }
            Op::Unlink(at) => {
                let (parent, name) = self.parent(at)?;
                system::unlinkat(parent, name, AtFlags::empty())
            }
            Op::Rename { from, to, no_replace } => {
                let ((from, old), (to, new)) = (self.parent(from)?, self.parent(to)?);
                let flags = if *no_replace { RenameFlags::NOREPLACE } else { RenameFlags::empty() };
                system::renameat_with(from, old, to, new, flags)
            }
            Op::Link { existing, to } => {
                let (from, old) = self.parent(existing)?;
                system::statat(&from, old, AtFlags::SYMLINK_NOFOLLOW)?;
                let (to, new) = self.parent(to)?;
                system::linkat(from, old, to, new, AtFlags::empty())
            }
            Op::Symlink { at, target } => {
                if target.is_empty() {
                    return Err(Errno::NOENT);
                }
                let (parent, name) = self.parent(at)?;
                system::symlinkat(*target, parent, name)
            }
            Op::Create { at, exclusive } => {
                let (parent, name) = self.parent(at)?;
                let exclusive = if *exclusive { OFlags::EXCL } else { OFlags::empty() };
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | exclusive;
                system::openat(parent, name, flags, Mode::RUSR | Mode::WUSR).map(drop)
            }
            Op::Write { at, size } => {
                let (parent, name) = self.parent(at)?;
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::TRUNC;
                let file = system::openat(parent, name, flags, Mode::RUSR | Mode::WUSR)?;
                system::ftruncate(file, u64::from(*size))
            }
            Op::Empty(at) => {
                let (parent, name) = self.parent(at)?;
                let found = system::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
                match kind_of(&found) {
                    Kind::Symlink => Err(Errno::INVAL),
                    _ => {
                        let file = system::openat(parent, name, OFlags::WRONLY, Mode::empty())?;
                        system::ftruncate(file, 0)
                    }
                }
            }
            attributes => self.apply_attributes(attributes),
        }
    }

    fn apply_attributes(&self, op: &Op) -> Result<(), Errno> {
        let (Op::Chmod { at, .. } | Op::SetXattr { at, .. } | Op::RemoveXattr { at, .. }) = op
        else {
            unreachable!("the rest of the operations");
        };
        let (parent, name) = self.parent(at)?;
        let found = system::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match op {
            Op::Chmod { mode, .. } if kind_of(&found) != Kind::Symlink => {
                let mode = Mode::from_bits_retain((*mode).into());
                system::chmodat(parent, name, mode, AtFlags::empty())
            }
            Op::Chmod { .. } => Err(Errno::OPNOTSUPP),
            Op::SetXattr { name, must_exist, .. } => {
                let flags = match must_exist {
                    None => XattrFlags::empty(),
                    Some(true) => XattrFlags::REPLACE,
                    Some(false) => XattrFlags::CREATE,
                };
                system::lsetxattr(self.path(at), *name, b"1", flags)
            }
            Op::RemoveXattr { name, .. } => system::lremovexattr(self.path(at), *name),
            _ => unreachable!("the rest of the operations"),
        }
    }

    fn tree(&self, at: &Path, tree: &mut Tree) {
        let path = self.top.join(at);
        let found = system::lstat(&path).unwrap();
        let kind = kind_of(&found);
        let mut target = Vec::new();
        if kind == Kind::Symlink {
            target = system::readlink(&path, Vec::new()).unwrap().into_bytes();
        }
        let counts = kind != Kind::Directory || self.counts_directories;
        let seen = Seen {
            kind,
            mode: (found.st_mode & 0o7777) as u16,
            links: if counts { found.st_nlink as _ } else { 0 },
            size: if kind == Kind::Directory { 0 } else { found.st_size as u64 },
            target,
            xattrs: if self.has_xattrs { xattrs_of(&path) } else { Vec::new() },
        };
        tree.insert(at.to_owned(), seen);
        if kind == Kind::Directory {
            for entry in std::fs::read_dir(&path).unwrap() {
                self.tree(&at.join(entry.unwrap().file_name()), tree);
            }
        }
    }
}

fn xattrs_of(path: &Path) -> Vec<Vec<u8>> {
    let mut names = vec![0_u8; 4096];
    let length = system::llistxattr(path, &mut names[..]).unwrap();
    let names = names[..length].split(|octet| *octet == 0);
    let mut names: Vec<Vec<u8>> =
        names.filter(|name| name.starts_with(b"user.")).map(<[u8]>::to_vec).collect();
    names.sort();
    names
}

fn kind_of(found: &system::Stat) -> Kind {
    match system::FileType::from_raw_mode(found.st_mode) {
        system::FileType::Directory => Kind::Directory,
        system::FileType::Symlink => Kind::Symlink,
        _ => Kind::File,
    }
}

/// The catalog's side.
fn apply(site: &mut TestSite, op: &Op) -> Result<(), Refusal> {
    let place = |names: &Names| Place::path(names.join("/")).unwrap();
    let create = |at: &Names, size: u64, exclusive| {
        let publish = if size == 0 { Publish::AtOnce } else { Publish::AtCommit };
        let (place, mode, size_max) = (place(at), 0o600, size);
        Command::Create(Create {
            place,
            mode,
            size_max,
            publish,
            exclusive,
            policy: PolicyChanges::default(),
        })
    };
    let command = match op {
        Op::Mkdir(at) => Command::MakeDirectory { place: place(at), mode: 0o700 },
        Op::Rmdir(at) => Command::RemoveDirectory { place: place(at) },
        Op::Unlink(at) => Command::Unlink { place: place(at) },
        Op::Rename { from, to, no_replace } => {
            let (from, to) = (place(from), place(to));
            Command::Rename(Rename { from, to, no_replace: *no_replace })
        }
        Op::Link { existing, to } => Command::Link { existing: place(existing), place: place(to) },
        Op::Symlink { at, target } => {
            Command::MakeSymlink { place: place(at), target: target.as_bytes().to_vec() }
        }
        // One command that leaves nothing to be done.
        Op::Create { at, exclusive: true } => {
            let Command::Create(create) = create(at, 0, true) else { panic!("no create") };
            Command::Create(Create { publish: Publish::Whole, ..create })
        }
        Op::Create { at, exclusive } => {
            let Answer::Ticket(ticket) = site.run("op", create(at, 0, *exclusive))? else {
                panic!("no ticket")
            };
            return site.run("op", Command::Abort { content: ticket.content }).map(drop);
        }
        Op::Write { at, size } => {
            let Answer::Ticket(ticket) = site.run("op", create(at, (*size).into(), false))? else {
                panic!("no ticket")
            };
            Command::Commit(commit(&ticket, (*size).into()))
        }
        Op::Empty(at) => {
            let changes = AttributeChanges { size: Some(0), ..AttributeChanges::default() };
            Command::SetAttributes { place: place(at), changes }
        }
        Op::Chmod { at, mode } => {
            let changes = AttributeChanges { mode: Some(*mode), ..AttributeChanges::default() };
            Command::SetAttributes { place: place(at), changes }
        }
        Op::SetXattr { at, name, must_exist } => Command::SetXattr(SetXattr {
            place: place(at),
            name: name.as_bytes().to_vec(),
            value: b"1".to_vec(),
            must_exist: *must_exist,
        }),
        Op::RemoveXattr { at, name } => {
            Command::RemoveXattr { place: place(at), name: name.as_bytes().to_vec() }
        }
    };
    site.run("op", command).map(drop)
}

fn tree(site: &TestSite, real: &Real, at: &Path, tree_of: &mut Tree) {
    let reader = site.reader("op");
    let place = Place::path(at.to_str().unwrap()).unwrap();
    let inode = reader.entry(&place).unwrap().inode;
    let counts = !inode.is_directory() || real.counts_directories;
    let target = match &inode.detail {
        Detail::Symlink { target } => target.clone(),
        _ => Vec::new(),
    };
    let seen = Seen {
        kind: inode.kind(),
        mode: inode.mode,
        links: if counts { inode.link_count.into() } else { 0 },
        size: inode.size(),
        target,
        xattrs: if real.has_xattrs { reader.xattrs(&place).unwrap() } else { Vec::new() },
    };
    tree_of.insert(at.to_owned(), seen);
    if inode.is_directory() {
        // Page by page, as long as there is something.
        let mut after = None;
        while let Some(entry) = reader.list(&place, after.as_ref(), 1).unwrap().pop() {
            tree(site, real, &at.join(str::from_utf8(entry.name.as_bytes()).unwrap()), tree_of);
            after = Some(entry.name);
        }
    }
}

proptest! {
    #![proptest_config(crate::support::cases(64))]

    #[test]
    fn commands_mean_what_they_mean_on_this_system(
        ops in proptest::collection::vec(op(), 1..80),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let real = Real::new(directory.path());
        let (mut site, _) = TestSite::in_memory();
        for op in ops {
            let needs_xattrs = matches!(op, Op::SetXattr { .. } | Op::RemoveXattr { .. });
            let sets_group = matches!(op, Op::Chmod { mode, .. } if mode & 0o2000 != 0);
            if needs_xattrs && !real.has_xattrs || sets_group && !real.may_set_group {
                continue;
            }
            let expected = real.apply(&op).map_err(Errno::raw_os_error);
            let found = apply(&mut site, &op).map_err(Refusal::errno);
            prop_assert_eq!(found, expected, "{:?}", op);
            let (mut here, mut there) = (Tree::new(), Tree::new());
            tree(&site, &real, Path::new(""), &mut here);
            real.tree(Path::new(""), &mut there);
            prop_assert_eq!(here, there, "after {:?}", op);
        }
    }
}
