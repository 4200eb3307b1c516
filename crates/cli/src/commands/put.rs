//! `byname put`: local files are written to a site.

mod extra;
pub(super) mod failure;
mod plan;
mod report;

use super::filter::{Candidate, Filter, FilterArgs};
use super::site::account::SiteArgs;
use super::site::policy::PolicyArgs;
use super::writing::{CACHED, open_tree, without_umask};
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::target::{Session, watch_signals};
use byname_access::{Overdrawn, Tree, spool};
use byname_catalog::id::InodeId;
use byname_catalog::{Answer, Command, EntryName, Place, Refusal};
use byname_client::{FileKind, ListedEntry, Stop};
use byname_packet::Name;
use byname_profile::Paths;
use byname_site::SiteName;
use byname_writer::{
    LocalEntry, Published, PublishedEntries, Source, Upload, UploadError, UploadOptions, Writer,
    WriterError,
};
use extra::Removal;
use report::Report;
use std::path::{Path, PathBuf};

/// Write a local file to a site, or with -r a directory with everything in it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname put events.root /lab/run7/events.root
  byname put -r run7 /lab/run7                     run it again: only what changed is written
  byname put -r run7 /lab/run7 --exclude '*.tmp' --delete --dry-run   what would change
  tar c run7 | byname put - /lab/run7.tar
  byname put events.root /lab/run7/events.root --replicas 1
  byname put events.root /lab/run7/events.root --lease        nobody else writes it meanwhile

A file is there whole, on as many disks as the site asks for, or not at all.")]
pub(crate) struct Args {
    /// Local file, or directory with -r; `-` is stdin.
    #[arg(value_name = "FILE")]
    local: PathBuf,
    /// Exact name or link of the file; with -r of the directory for the contents.
    #[arg(value_name = "NAME")]
    name: String,
    /// Write a directory with everything in it.
    #[arg(short, long)]
    recursive: bool,
    /// Make what is missing above the name.
    #[arg(short, long)]
    parents: bool,
    /// With -r, compare the contents of files that have the same size and time too.
    #[arg(long, requires = "recursive")]
    checksum: bool,
    /// Leave alone what the site has already, whatever is in it.
    #[arg(long)]
    no_clobber: bool,
    /// Nobody else writes the file meanwhile: who begins to is told at once, who has begun when he
    /// comes to the end. Without it the first who comes to the end wins.
    #[arg(long, conflicts_with = "recursive")]
    lease: bool,
    /// With -r, only list what would change: new, changed and, with --delete, deleted entries.
    #[arg(long, requires = "recursive")]
    dry_run: bool,
    /// With -r, remove what the site has and the directory has not, and say what.
    #[arg(long, requires = "recursive")]
    delete: bool,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    site: SiteArgs,
    /// One JSON object at the end; before it one per entry that changes in ways to be told.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, paths: &Paths, quiet: bool) -> Outcome {
    let stop = Stop::default();
    watch_signals(&stop)?;
    let source = Local::of(args, &stop)?;
    let (mut tree, names) = open_tree(&args.site, std::slice::from_ref(&args.name), paths)?;
    let [name] = names.as_slice() else { return Err(Failure::usage("one name")) };
    let place = tree.place(name)?;
    if let Some((above, _)) = name.view().split_last().filter(|_| args.parents && !args.dry_run) {
        tree.make_path(&above.to_name(), without_umask(0o777))?;
    }
    let account = tree.account().clone();
    let mut reader = args.site.reader(&account, name)?;
    let is_stopped = || stop.is_requested();
    let mut writer = account.writer(name, &is_stopped)?;
    let published = match source {
        Local::File(_) => None,
        Local::Directory(_) => {
            // A list that is older than this program would let pass for identical what was removed
            // a moment ago.
            std::thread::sleep(CACHED);
            published(&mut reader)?
        }
    };
    let leased = match args.lease {
        true => lease(&mut writer, (&place, name), &is_stopped)?,
        false => None,
    };
    let mut filter = Filter::new(&args.filter)?;
    let options = options(args, &filter);
    let mut report = Report::new(quiet, args);
    let mut upload = Upload {
        writer: &mut writer,
        list: &mut |place| list(&mut reader, &account.site, place),
        accepts: &mut |entry| filter.accepts(candidate(&entry)),
        on_event: &mut |event| report.handle(event),
        is_stopped: &is_stopped,
        options,
    };
    let ended = match source {
        Local::File(source) => upload.source(*source, place, None),
        Local::Directory(local) => tree_of(&mut upload, (&local, name), &place, published),
    };
    if let Some(file) = leased {
        // What it was for is done or not; it ends with the session too.
        let _ = writer.execute(Command::EndLease { place: Place::inode(file) }, &|| false);
    }
    let removed = match ended {
        Ok(()) => remove(args, (&mut tree, &mut reader), &mut filter, &mut report),
        Err(_) => Ok(()),
    };
    report.finish();
    ended.map_err(|error| match error {
        UploadError::Writer(error) => failure::of(name, error),
        UploadError::List(failure) => failure,
    })?;
    removed?;
    report.outcome(name)?;
    if !quiet && !args.dry_run {
        warn_of_soft_limits(&mut tree, name);
    }
    Ok(())
}

/// Says what the writer has to do within some time. What was written is written, whatever the head
/// says to this.
fn warn_of_soft_limits(tree: &mut Tree, name: &Name) {
    let Ok(overdrawn) = tree.overdrawn(name) else { return };
    for Overdrawn { kind, name, grace_left_s } in overdrawn {
        let whose = match kind.as_str() {
            "tree" => "the tree".to_owned(),
            _ => format!("{kind} {}", output::one_line(&name)),
        };
        let left = match grace_left_s {
            0 => "nothing more can be added".to_owned(),
            left => format!("{} left to come below it", output::duration(left)),
        };
        output::err_line(&format!("{whose} is above the soft limit of its quota: {left}"));
    }
}

/// Has a file for writing alone, if it is there; its number, whatever it is called later.
fn lease(
    writer: &mut Writer,
    (place, name): (&Place, &Name),
    is_stopped: &dyn Fn() -> bool,
) -> Outcome<Option<InodeId>> {
    match writer.execute(Command::Lease { place: place.clone() }, is_stopped) {
        Ok(Answer::Entry(entry)) => Ok(Some(entry.id)),
        Ok(_) => Err(failure::of(name, WriterError::OtherAnswer)),
        Err(WriterError::Refused(Refusal::NotFound)) => Ok(None),
        Err(error) => Err(failure::of(name, error)),
    }
}

fn options(args: &Args, filter: &Filter) -> UploadOptions {
    UploadOptions {
        reads_all: args.checksum,
        no_clobber: args.no_clobber,
        prunes_empty: filter.is_active(),
        is_dry: args.dry_run,
        policy: args.policy.changes(),
    }
}

fn candidate<'a>(entry: &LocalEntry<'a>) -> Candidate<'a> {
    let modified = entry.metadata.modified().ok();
    let since = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    Candidate {
        path: entry.path,
        is_directory: entry.metadata.is_dir(),
        size: Some(entry.metadata.len()),
        mtime_ns: since.and_then(|since| u64::try_from(since.as_nanos()).ok()),
    }
}

/// Looks back at what was asked for by name, and with `--delete` removes what only the site has.
fn remove(
    args: &Args,
    (tree, reader): (&mut Tree, &mut Session),
    filter: &mut Filter,
    report: &mut Report,
) -> Outcome {
    for path in filter.missing() {
        report.fail(format!("{}: is not there", output::path(&path)));
    }
    filter.remarks().iter().for_each(|line| output::err_line(&output::one_line(line)));
    if !args.delete {
        return Ok(());
    }
    if !report.is_complete() {
        output::err_line("not everything could be written: nothing was deleted");
        return Ok(());
    }
    let (mut failed, top, extras) = (Vec::new(), reader.name.clone(), report.take_extras());
    let mut removal = Removal {
        tree,
        reader,
        filter,
        is_dry: args.dry_run,
        on_removed: &mut |path, is_directory| report.removed(path, is_directory),
        on_failed: &mut |line| failed.push(line),
    };
    let removed = extras.iter().try_for_each(|extra| removal.remove(&top, extra).map(drop));
    failed.into_iter().for_each(|line| report.fail(line));
    removed
}

/// What is to be written.
enum Local {
    File(Box<Source>),
    Directory(PathBuf),
}

impl Local {
    fn of(args: &Args, stop: &Stop) -> Outcome<Self> {
        let local = &args.local;
        let is_stopped = || stop.is_requested();
        let failed = |error| failure::local(local, error);
        if local == Path::new("-") {
            if args.recursive {
                return Err(Failure::usage("stdin is no directory"));
            }
            let file = spool::spooled(Path::new("stdin"), std::io::stdin().lock(), stop)?;
            let source = Source::of_file(local, file, &is_stopped).map_err(failed)?;
            return Ok(Self::File(Box::new(source.made_now(without_umask(0o666)))));
        }
        let kind = std::fs::metadata(local).map_err(|error| Failure::disk(local, error))?;
        match (kind.is_dir(), args.recursive) {
            (true, true) => Ok(Self::Directory(local.clone())),
            (true, false) => {
                let text = format!("{}: is a directory", local.display());
                Err(Failure::usage(text).hint("to write it with everything in it: byname put -r"))
            }
            (false, _) if !kind.is_file() => {
                let text = format!("{}: is no regular file", local.display());
                Err(Failure::usage(text).hint("what a pipe brings: byname put - NAME"))
            }
            (false, _) => {
                Ok(Self::File(Box::new(Source::open(local, &is_stopped).map_err(failed)?)))
            }
        }
    }
}

fn tree_of(
    upload: &mut Upload<'_, Failure>,
    (local, name): (&Path, &Name),
    place: &Place,
    published: Option<Published>,
) -> Result<(), UploadError<Failure>> {
    match published {
        None => upload.tree(local, place, false),
        Some(Published::Directory) => upload.tree(local, place, true),
        Some(_) => {
            let text = format!("{}: is no directory", output::name(name.view()));
            Err(UploadError::List(Failure::new(Code::Other, text)))
        }
    }
}

/// What the site has under the reader's name.
fn published(reader: &mut Session) -> Outcome<Option<Published>> {
    let stat = match reader.run(|client, name| client.stat(name)) {
        Err(failure) if failure.code == Code::NotFound => return Ok(None),
        stat => stat?,
    };
    Ok(Some(match stat.kind {
        FileKind::Directory => Published::Directory,
        FileKind::Symlink => Published::Symlink(Vec::new()),
        _ => Published::File {
            size: stat.size,
            modified_ns: stat.mtime_ns,
            root: stat.root.map(|root| *root.as_bytes()),
        },
    }))
}

/// Entries of a directory of the site.
fn list(reader: &mut Session, site: &SiteName, place: &Place) -> Outcome<PublishedEntries> {
    let names = place.names.iter().map(EntryName::as_bytes);
    let name = names.fold(site.view().to_name(), |name, entry| name.with_generic(entry));
    let listing = reader.run(|client, _| client.list_resolved(&name))?;
    let entry = |listed: ListedEntry<'_>| {
        let found = match listed.details {
            _ if listed.entry.is_directory => Published::Directory,
            None => Published::File { size: None, modified_ns: None, root: None },
            Some(entry) => match entry.attributes.link_target {
                Some(target) => Published::Symlink(target.to_vec()),
                None => Published::File {
                    size: entry.size,
                    modified_ns: entry.mtime_ns,
                    root: match entry.content {
                        Some(content) => content.version.root,
                        None => entry.version.and_then(|version| version.root),
                    },
                },
            },
        };
        (listed.entry.name.to_vec(), found)
    };
    Ok(listing.listed().map(entry).collect())
}
