//! `byname verify`: does a local copy hold what is published?

use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::progress::{Meter, Metered};
use crate::target::{Pace, ReadArgs, Session};
use crate::walk::{self, Wanted};
use byname_client::{Client, ClientError};
use byname_packet::Name;
use byname_profile::Paths;
use byname_transfer::manifest::Entry;
use byname_transfer::metadata::{ContentRoot, Metadata};
use serde_json::json;
use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Links to directories that were copied, one in the other, that are looked into.
const LINKS_MAX: u8 = 8;

/// Compare a local file or directory with a published one; only hashes travel.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname verify run7 /lab/run7
  byname verify run7 'byname:/lab/run7,via=tcp://host,key=SHA256:…' --json")]
pub(crate) struct Args {
    /// Local file or directory.
    local: PathBuf,
    /// Name or link.
    target: String,
    #[command(flatten)]
    read: ReadArgs,
    /// Take files of the same size and time for the same; do not read them.
    #[arg(long)]
    quick: bool,
    /// One JSON object per difference.
    #[arg(long)]
    json: bool,
}

struct Comparison<'a> {
    args: &'a Args,
    same: u64,
    differences: u64,
    published: HashSet<PathBuf>,
    meter: Meter,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let kind = std::fs::metadata(&args.local).map_err(|e| Failure::disk(&args.local, e))?;
    let mut session = Session::open(&args.target, &args.read, Pace::default(), paths)?;
    let (published, meter) = (HashSet::new(), Meter::new());
    let mut comparison = Comparison { args, same: 0, differences: 0, published, meter };
    if kind.is_dir() {
        session.run(|client, name| comparison.tree(client, name))?;
        let local = walk::local(&args.local).map_err(|e| Failure::disk(&args.local, e))?;
        for (path, _) in local {
            if !comparison.published.contains(&path) {
                comparison.note(&path, "extra");
            }
        }
    } else {
        session.run(|client, name| comparison.file(client, (name, None), Path::new("")))?;
    }
    let are = if comparison.same == 1 { "is" } else { "are" };
    let same = format!("{} {are} as published", output::count(comparison.same, "file"));
    if comparison.differences == 0 {
        output::err_line(&same);
        return Ok(());
    }
    let differences = output::count(comparison.differences, "difference");
    Err(Failure::new(Code::NotVerified, format!("{differences}, {same}")))
}

/// Published facts of a file.
struct Published {
    size: Option<u64>,
    mtime_ns: Option<u64>,
    root: ContentRoot,
}

impl Published {
    fn of(metadata: &Metadata) -> Self {
        Self { size: metadata.size, mtime_ns: metadata.mtime_ns, root: metadata.root }
    }

    /// Facts from a manifest, if they are enough.
    fn of_entry(entry: &Entry<'_>) -> Option<Self> {
        let root = ContentRoot::Known(entry.version?.root?);
        Some(Self { size: entry.size, mtime_ns: entry.mtime_ns, root })
    }
}

fn mtime_ns(kind: &std::fs::Metadata) -> Option<u64> {
    let since = kind.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok()
}

impl Comparison<'_> {
    fn note(&mut self, path: &Path, difference: &str) {
        self.differences += 1;
        // A single file has no path below what was asked for.
        let path = if path.as_os_str().is_empty() { &self.args.local } else { path };
        let shown = output::path(path);
        if self.args.json {
            output::json_line(json!({ "path": shown, "difference": difference }));
        } else {
            output::out_line(&format!("{difference:<8} {shown}"));
        }
    }

    fn tree(&mut self, client: &mut Client, name: &Name) -> Result<(), ClientError> {
        walk::published(client, name, Wanted::Details, &mut |client, found| {
            let Some(path) = &found.path else { return Ok(false) };
            self.published.insert(path.clone());
            let local = self.args.local.join(path);
            let link_target = found.link_target();
            if let Some(target) = link_target
                && let Ok(there) = std::fs::read_link(&local)
            {
                if there.as_os_str().as_bytes() == target {
                    self.same += 1;
                } else {
                    self.note(path, "differs");
                }
                return Ok(false);
            }
            if link_target.is_some() && local.is_dir() {
                // A copy of what the link leads to.
                return Ok(found.links < LINKS_MAX);
            }
            if !found.is_directory {
                let known = found.details.as_ref().and_then(Published::of_entry);
                self.file(client, (&found.name, known), path)?;
            } else if !local.is_dir() {
                self.note(path, "missing");
            }
            Ok(found.is_directory)
        })
    }

    /// Compares a file with what is published, which is asked for unless it is known.
    fn file(
        &mut self,
        client: &mut Client,
        (name, known): (&Name, Option<Published>),
        path: &Path,
    ) -> Result<(), ClientError> {
        let local = if path.as_os_str().is_empty() {
            self.args.local.clone()
        } else {
            self.args.local.join(path)
        };
        let published = match known {
            Some(known) => known,
            None => Published::of(&client.lookup(name)?.metadata),
        };
        let failed = |source| ClientError::LocalDisk { path: local.clone(), source };
        let kind = match std::fs::metadata(&local) {
            Ok(kind) => kind,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.note(path, "missing");
                return Ok(());
            }
            Err(error) => return Err(failed(error)),
        };
        let ContentRoot::Known(root) = published.root else {
            self.note(path, "unsigned");
            return Ok(());
        };
        let same_size = published.size.is_none_or(|size| size == kind.len());
        let same = if !kind.is_file() || !same_size {
            false
        } else if self.args.quick {
            published.mtime_ns.is_none() || published.mtime_ns == mtime_ns(&kind)
        } else {
            let mut hasher = blake3::Hasher::new();
            let file = std::fs::File::open(&local).map_err(failed)?;
            let reader = Metered { meter: &self.meter, reader: file };
            hasher.update_reader(reader).map_err(failed)?;
            *hasher.finalize().as_bytes() == root
        };
        if same {
            self.same += 1;
        } else {
            self.note(path, "differs");
        }
        Ok(())
    }
}
