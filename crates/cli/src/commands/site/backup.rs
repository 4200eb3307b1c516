//! `byname site backup`: all rows of a running head's catalog, in a file or a directory.

mod verify;

use super::account::SiteArgs;
use super::restore::until;
use super::session::SiteSession;
use crate::exit::{Code, Failure, Outcome, chain};
use crate::output;
use byname_catalog::id::TransactionNumber;
use byname_head::backup::{
    Backup, BackupError, BackupSource, Staged, Taken, Until, export_lines, take, take_into,
};
use byname_packet::Name;
use byname_profile::Paths;
use byname_site::SiteName;
use serde_json::{Value, json};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Pause between two words about how far it is.
const SHOWN_EVERY: Duration = Duration::from_secs(2);

/// Copy a site's catalog while its head goes on: for operators.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  byname site backup /backup/lab             a directory: all rows the first time, then changes
  byname site backup --full /backup/lab      all rows once more
  byname site backup lab.byname-backup       all rows in one file
  byname site backup verify /backup/lab      reads it, and makes a catalog of it for a trial

A directory has a file with all rows (`snapshot-…`) and what was changed after it (`log-…`), so that
`site restore --at` can go back to any change between. Older files may be removed: a file with
changes is of use with the files between it and the snapshot before. Contents of files are not in a
backup: they are on the site's disks."
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<BackupCommand>,
    /// Where it goes: a directory, which is made if it is not there, or a file if the name has a
    /// suffix.
    #[arg(value_name = "FILE|DIR", required = true)]
    to: Option<PathBuf>,
    /// All rows, although changes would do.
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    site: SiteArgs,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum BackupCommand {
    Verify(verify::Args),
}

/// A directory keeps what changes from one backup to the next, a file is replaced: so what is not
/// there yet is a directory, unless it is clearly not.
fn is_directory(to: &Path) -> bool {
    let says_so = to.as_os_str().as_encoded_bytes().ends_with(b"/");
    says_so || to.is_dir() || to.extension().is_none() && !to.exists()
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    if let Some(BackupCommand::Verify(args)) = &args.command {
        return verify::run(args, paths);
    }
    let Some(to) = &args.to else { return Err(Failure::usage("where to? Give FILE or DIR")) };
    let (is_directory, is_new) = (is_directory(to), !to.exists());
    if args.full && !is_directory {
        return Err(Failure::usage("--full is for directories: a file has all rows"));
    }
    let mut source = Asked(args.site.session(paths)?);
    let mut shown = Instant::now();
    let mut progress = |count| {
        if shown.elapsed() > SHOWN_EVERY && output::stderr_is_terminal() {
            shown = Instant::now();
            output::err_line(&format!("{} so far", output::count(count, "row")));
        }
    };
    let taken = match is_directory {
        true => take_into(&mut source, to, args.full, &mut progress).inspect_err(|_| {
            // Only if nothing is in it.
            let _ = is_new.then(|| std::fs::remove_dir(to));
        })?,
        false => take(&mut source, to, &mut progress)?,
    };
    if args.json {
        output::json_line(taken_line(&taken));
        return Ok(());
    }
    if let Some((path, staged)) = &taken.snapshot {
        let (path, rows) = (output::path(path), output::count(staged.rows, "row"));
        output::out_line(&format!("{path}: {rows} as of change {}", staged.through.0));
        output::out_line(&format!("digest {}", hex(&staged.digest)));
    }
    if let Some((path, after, through)) = &taken.segment {
        let changes = output::count(through.0 - after.0, "change");
        output::out_line(&format!("{}: {changes} up to {}", output::path(path), through.0));
    }
    if taken.snapshot.is_none() && taken.segment.is_none() {
        output::out_line("nothing was changed since the last time");
    }
    Ok(())
}

/// Print a site's catalog as lines of JSON, of its running head or of a backup.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname site export > lab.jsonl                     of the head, while it goes on: for operators
  byname site export --from /backup/lab > lab.jsonl  of a backup
  byname site import lab.jsonl --unsealed --no-disks --dir /tmp/look --yes

A line is a row: `kind`, what it says, and `row` with the row itself, which is what counts when it
is read again. The last line has the digest of all rows. docs/site.md has the fields.")]
pub(super) struct ExportArgs {
    /// A backup that is read, in place of the head.
    #[arg(long, value_name = "FILE|DIR")]
    from: Option<PathBuf>,
    /// As of this change, by its number in `site log`, or of this time.
    #[arg(long, value_name = "NUMBER|TIME", value_parser = until, requires = "from")]
    at: Option<Until>,
    #[command(flatten)]
    site: SiteArgs,
}

pub(super) fn export(args: &ExportArgs, paths: &Paths) -> Outcome {
    let directory = std::env::temp_dir();
    let mut out = BufWriter::new(std::io::stdout().lock());
    match &args.from {
        Some(from) => {
            let at = args.at.unwrap_or(Until::Latest);
            Backup::open(from)?.export(at, &directory, &mut out)?;
        }
        None => {
            let mut source = Asked(args.site.session(paths)?);
            export_lines(&mut source, &directory, &mut out)?;
        }
    }
    match out.flush() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(Code::LocalDisk, error.to_string()))
        }
        _ => Ok(()),
    }
}

fn taken_line(taken: &Taken) -> Value {
    let mut line = json!({ "snapshot": null, "log": null });
    if let Some((path, staged)) = &taken.snapshot {
        line["snapshot"] = staged_line(staged);
        line["snapshot"]["path"] = output::path(path).into();
    }
    if let Some((path, TransactionNumber(after), TransactionNumber(through))) = &taken.segment {
        line["log"] = json!({ "path": output::path(path), "after": after, "through": through });
    }
    line
}

pub(super) fn staged_line(staged: &Staged) -> Value {
    json!({
        "transaction": staged.through.0,
        "at_ns": staged.at_ns,
        "rows": staged.rows,
        "digest": hex(&staged.digest),
    })
}

pub(super) fn hex(digest: &[u8; 32]) -> String {
    digest.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The site that a backup is of.
pub(super) fn site_of(backup: &Backup) -> Outcome<SiteName> {
    let name = backup.site().parse::<Name>().ok().and_then(SiteName::new);
    name.ok_or_else(|| Failure::new(Code::LocalDisk, "the backup does not say of which site it is"))
}

/// A head that is asked by name.
struct Asked(SiteSession);

impl BackupSource for Asked {
    fn site(&self) -> String {
        self.0.site().view().to_string()
    }

    fn ask(&mut self, subject: &str, after: &str) -> Result<Vec<Value>, BackupError> {
        self.0.page(subject, after).map_err(|error| BackupError::Source(Box::new(error)))
    }

    fn seal(&mut self, sum: &[u8; 32]) -> Result<Vec<u8>, BackupError> {
        let sealed = self.0.answer_to("backup-seal", &hex(sum));
        sealed.map_err(|error| BackupError::Source(Box::new(error)))
    }
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Self {
        let text = chain(&error);
        match error {
            BackupError::Source(source) => match source.downcast::<byname_access::AccessError>() {
                Ok(error) => (*error).into(),
                Err(_) => Self::new(Code::Other, text),
            },
            // Who read the lines has seen enough.
            BackupError::File { source, .. } if source.kind() == ErrorKind::BrokenPipe => {
                Self::new(Code::Other, "")
            }
            BackupError::File { .. } => Self::new(Code::LocalDisk, text),
            BackupError::Empty { .. } | BackupError::OutOfRange { .. } => {
                Self::new(Code::NotFound, text)
            }
            BackupError::Damaged { .. } => Self::new(Code::NotVerified, text).hint(
                "what is torn or altered does not count: take another backup, or another file",
            ),
            BackupError::Unsealed { .. } => Self::new(Code::NotVerified, text).hint(
                "anybody who could write there may have made it: --unsealed takes it all the same",
            ),
            BackupError::Forged { .. } => Self::new(Code::NotVerified, text)
                .hint("somebody put it there in place of what the head has sealed"),
            BackupError::OtherSite { .. } => Self::usage(text),
            _ => Self::new(Code::Other, text),
        }
    }
}
