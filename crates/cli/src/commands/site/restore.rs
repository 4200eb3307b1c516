//! `byname site restore`: a catalog made of a backup.

use super::backup::{hex, site_of, staged_line};
use super::defaults::directory;
use super::rebuild::{DiskArgs, finding_line, identity, show_findings};
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_catalog::id::TransactionNumber;
use byname_head::backup::{Backup, SealCheck, Until};
use byname_head::rebuild::{Rebuild, RebuildReport};
use byname_head::{EngineAddress, move_engine, refuse_site};
use byname_io::Clock;
use byname_profile::Paths;
use byname_site::SiteName;
use serde_json::json;
use std::path::PathBuf;

/// Make a site's catalog of a backup, after the head's state was lost or spoilt.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname site restore /backup/lab /disks/1 /disks/2          looks, and says what would be made
  byname site restore /backup/lab /disks/1 /disks/2 --yes    makes it
  byname site restore /backup/lab --disk here/2 --yes        of disks that are served, by name
  byname site restore /backup/lab /disks/1 --at 2026-11-24T15:30:00Z --yes
  byname site restore /backup/lab --no-disks --dir /tmp/look --yes    to look at it only

The site's key has to be here, and the old head be ended. All disks should be given: the numbers of
the new catalog are above what they have seen, and files that are newer than the backup are found on
them. These become part of the site, unless --at asks for a time before: then they are named
(`later`) and stay on the disks. Nothing is deleted. A catalog that is there already stays as it is.

Each file has to have the seal of the site's head. What `site export` has printed has none:
`import`, which is the same command, and `restore` read it with --unsealed.")]
pub(super) struct Args {
    /// The backup.
    #[arg(value_name = "FILE|DIR")]
    from: PathBuf,
    #[command(flatten)]
    disks: DiskArgs,
    /// There are no disks: numbers may be given out twice, so it is not for serving.
    #[arg(long, conflicts_with_all = ["dirs", "disks"])]
    no_disks: bool,
    /// Go back to this change, by its number in `site log`, or to this time (UTC, by the clock of
    /// the head).
    #[arg(long, value_name = "NUMBER|TIME", value_parser = until)]
    at: Option<Until>,
    /// Take what the head of the site does not vouch for: lines of JSON, and backups of before
    /// there were seals. Whoever could write to it has made these rows.
    #[arg(long)]
    unsealed: bool,
    /// Where its catalog is kept. Default: a directory of the user's state.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Its engine: `embedded`, or `postgres:` and a database that is empty. Default: the one that
    /// the directory has the address of.
    #[arg(long, value_name = "ENGINE")]
    engine: Option<EngineAddress>,
    /// Make it. Without this nothing is changed.
    #[arg(short, long)]
    yes: bool,
    /// A JSON object for each finding, and one for the whole.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    let backup = Backup::open(&args.from)?;
    let site = site_of(&backup)?;
    if args.disks.is_none() && !args.no_disks {
        return Err(Failure::usage("which disks does the site have?").hint(
            "give their directories, or --disk PLACE/NUMBER; --no-disks is for a look only",
        ));
    }
    let shown = output::name(site.view());
    let at = directory(Some(&shown), args.dir.as_deref(), paths)?;
    let noted = EngineAddress::of(&at)?;
    let engine = args.engine.clone().or(noted).unwrap_or(EngineAddress::Embedded);
    let identity = identity(&site, paths)?;
    if !args.unsealed {
        let (certificate, unix_ns) = (&identity.certificate, Clock::new().unix_ns());
        let now_s = unix_ns / 1_000_000_000;
        backup.check_seals(&SealCheck { site: &site, certificate, now_s })?;
    }
    if args.yes {
        refuse_site((&at, &engine))?;
    }
    let mut disks = args.disks.open(&site, (&identity, paths))?;
    let (certificate, unix_ns) = (&identity.certificate, Clock::new().unix_ns());
    let rebuild = Rebuild { site: &site, certificate, directory: &at, unix_ns };
    let until = args.at.unwrap_or(Until::Latest);
    let made = rebuild.restore((&backup, until), &mut disks)?;
    let report = if args.yes { made.place()? } else { made.discard()? };
    if args.yes && engine != EngineAddress::Embedded {
        move_engine(&at, &engine, &mut |_| {})?;
    }
    show(&report, (&site, args));
    if !args.yes {
        return Err(Failure::usage("nothing was made").hint("say --yes to make this catalog"));
    }
    if !args.json {
        output::err_line(&format!("made the catalog in {}", at.display()));
        output::err_line(&match args.no_disks {
            true => "it is for a look only: no head serves it".to_owned(),
            false => format!("serve it: byname catalog {shown}; then: site fsck --disks"),
        });
    }
    match losses(&report) {
        0 => Ok(()),
        _ => Err(Failure::new(Code::Other, "")),
    }
}

fn losses(report: &RebuildReport) -> usize {
    let losses = report.findings.iter().filter(|finding| finding.kind.is_loss()).count();
    losses + report.disks.iter().filter(|disk| disk.problem.is_some()).count()
}

fn show(report: &RebuildReport, (site, args): (&SiteName, &Args)) {
    let staged = report.restored.unwrap_or_default();
    let shown = output::name(site.view());
    if args.json {
        report.findings.iter().map(finding_line).for_each(output::json_line);
        let mut line = staged_line(&staged);
        line["site"] = shown.into();
        line["made"] = args.yes.into();
        line["inodes"] = report.inodes.into();
        line["files"] = report.files.into();
        line["losses"] = losses(report).into();
        line["disks_through"] = known_through(report).0.into();
        line["disks"] = json!(report.disks.iter().map(|disk| disk.name.id.0).collect::<Vec<_>>());
        output::json_line(line);
        return;
    }
    for disk in &report.disks {
        if let Some(problem) = &disk.problem {
            let problem = output::one_line(problem);
            output::out_line(&format!("disk {}: {problem}", disk.name.id.0));
        }
    }
    show_findings(&report.findings);
    output::out_line(&format!(
        "{shown}: {}, {}, all changes up to {} ({})",
        output::count(report.inodes, "inode"),
        output::count(report.files, "file"),
        staged.through.0,
        output::time_utc(staged.at_ns),
    ));
    output::out_line(&format!("digest of the rows {}", hex(&staged.digest)));
    let known = known_through(report);
    if known > staged.through {
        output::out_line(&format!(
            "by the disks' word there were changes up to {}, {} after these: `byname site rebuild` \
             has them, if no other backup does",
            known.0,
            known.0 - staged.through.0,
        ));
    }
}

/// The last change that any disk says to have the rows of: a backup that was put in the place of a
/// newer one ends before it.
fn known_through(report: &RebuildReport) -> TransactionNumber {
    report.disks.iter().map(|disk| disk.through).max().unwrap_or_default()
}

/// Reads the number of a change, or a time.
pub(super) fn until(text: &str) -> Result<Until, BadTime> {
    if let Ok(number) = text.parse() {
        return Ok(Until::Transaction(TransactionNumber(number)));
    }
    let time: jiff::Timestamp = text.parse().map_err(|_| BadTime)?;
    Ok(Until::Time(time.as_nanosecond().try_into().map_err(|_| BadTime)?))
}

/// A text that is neither.
#[derive(Debug, thiserror::Error)]
#[error("the number of a change is wanted, or a time such as 2026-11-24T15:30:00Z")]
pub(super) struct BadTime;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_numbers_are_read_and_other_texts_refused() {
        assert_eq!(until("17").unwrap(), Until::Transaction(TransactionNumber(17)));
        let second = Until::Time(1_795_534_201_000_000_000);
        assert_eq!(until("2026-11-24T15:30:01Z").unwrap(), second);
        assert_eq!(until("2026-11-24T16:30:01+01:00").unwrap(), second);
        for text in ["", "yesterday", "2026-11-24", "2026-13-01T00:00:00Z", "1969-01-01T00:00:00Z"]
        {
            assert!(until(text).is_err(), "{text}");
        }
    }
}
