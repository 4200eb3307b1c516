//! `byname put`: local files are written to a site.

mod failure;
mod report;
mod spool;

use super::site::account::SiteArgs;
use super::writing::{Tree, without_umask};
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::target::{Session, watch_signals};
use byname_catalog::{EntryName, Place};
use byname_client::{FileKind, ListedEntry, Stop};
use byname_packet::Name;
use byname_profile::Paths;
use byname_site::SiteName;
use byname_writer::{
    Published, PublishedEntries, Source, Upload, UploadError, UploadEvent, Writer, WriterConfig,
};
use report::Report;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time for which caches keep what a site says, and a little more. A list that is older would let
/// pass for identical what was removed a moment ago.
const CACHED: Duration = Duration::from_millis(1100);

/// Write a local file to a site, or with -r a directory with everything in it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname put events.root /lab/run7/events.root
  byname put -r run7 /lab/run7                     run it again: only what changed is written
  tar c run7 | byname put - /lab/run7.tar

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
    #[command(flatten)]
    site: SiteArgs,
    /// One JSON object at the end.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, paths: &Paths, quiet: bool) -> Outcome {
    let stop = Stop::default();
    watch_signals(&stop)?;
    let source = Local::of(args, &stop)?;
    let (mut tree, names) = Tree::open(&args.site, std::slice::from_ref(&args.name), paths)?;
    let [name] = names.as_slice() else { return Err(Failure::usage("one name")) };
    let place = tree.place(name)?;
    if let Some((above, _)) = name.view().split_last().filter(|_| args.parents) {
        tree.make_path(&above.to_name(), without_umask(0o777))?;
    }
    let mut reader = tree.account.reader(name)?;
    let account = &tree.account;
    let config = WriterConfig {
        site: account.site.clone(),
        user: account.user.clone(),
        signer: account.identity.signer.clone(),
        trust: account.trust.clone(),
    };
    let is_stopped = || stop.is_requested();
    let mut writer = Writer::connect(account.connect()?, config, &is_stopped)
        .map_err(|error| failure::of(name, error))?;
    let published = match source {
        Local::File(_) => None,
        Local::Directory(_) => {
            // Caches know nothing then of what was there before this program was started.
            std::thread::sleep(CACHED);
            published(&mut reader)?
        }
    };
    let mut report = Report::new(quiet, args.recursive);
    let mut upload = Upload {
        writer: &mut writer,
        list: &mut |place| list(&mut reader, &account.site, place),
        on_event: &mut |event| report.handle(event),
        is_stopped: &is_stopped,
        reads_all: args.checksum,
    };
    let ended = match source {
        Local::File(source) => upload.source(*source, place, None),
        Local::Directory(local) => tree_of(&mut upload, (&local, name), &place, published),
    };
    report.finish(args.json);
    ended.map_err(|error| match error {
        UploadError::Writer(error) => failure::of(name, error),
        UploadError::List(failure) => failure,
    })?;
    report.outcome(name)
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
            let file = spool::spooled(std::io::stdin().lock(), stop)?;
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
