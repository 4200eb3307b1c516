//! `byname site backup verify`: a drill, without the head and without disks.
//!
//! Seals count by the certificate of the site's key: the one beside the key where that is here, or
//! one that is given. Where there is neither, rows are looked at and nobody says whose they are.

use super::{hex, site_of, staged_line};
use crate::exit::{Code, Failure, Outcome};
use crate::node_config;
use crate::output;
use byname_catalog::engine::EmbeddedEngine;
use byname_head::backup::{Backup, BackupError, SealCheck, Until};
use byname_head::rebuild::{Rebuild, RebuildReport};
use byname_io::Clock;
use byname_keychain::Keychain;
use byname_profile::Paths;
use byname_security::cert::Certificate;
use byname_site::SiteName;
use std::path::{Path, PathBuf};

/// Read all of a backup, make a catalog of it beside it, check that, and remove it again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname site backup verify /backup/lab                          where the site's key is
  byname key export /lab > lab.cert                              there; and elsewhere:
  byname site backup verify --certificate lab.cert /backup/lab

Seals say that the head of the site vouches for the files. Who has neither the site's key nor its
certificate sees that the files are whole, and not whose they are: `seals not checked`.")]
pub(super) struct Args {
    /// The backup.
    #[arg(value_name = "FILE|DIR")]
    from: PathBuf,
    /// The certificate of the site's key, as `byname key export` prints it. Default: the one beside
    /// the key, if that is here.
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// Outcome of a look at the seals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seals {
    /// The site's key has signed all.
    Verified,
    /// A file has none, which may be: one of before there were seals, or one of lines.
    Missing,
    /// Nobody knows the site's key here.
    Unchecked,
}

impl Seals {
    fn word(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Missing => "missing",
            Self::Unchecked => "unchecked",
        }
    }

    /// The verdict for people.
    fn verdict(self) -> &'static str {
        match self {
            Self::Verified => "OK",
            Self::Missing => "rows OK, no seal: anybody may have made them",
            Self::Unchecked => "rows OK, seals not checked",
        }
    }
}

/// A catalog is made of the backup as if all else were lost, without disks.
pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    let from = args.from.as_path();
    let backup = Backup::open(from)?;
    let (files, octets) = backup.verify()?;
    let site = site_of(&backup)?;
    let certificate = certificate(args, &site, paths)?;
    let seals = seals(&backup, (&site, certificate.as_ref()), from.is_dir())?;
    let report = trial((&backup, from), &site, certificate.as_ref())?;
    let staged = report.restored.unwrap_or_default();
    if args.json {
        let mut line = staged_line(&staged);
        line["site"] = output::name(site.view()).into();
        line["files"] = files.into();
        line["bytes"] = octets.into();
        line["inodes"] = report.inodes.into();
        line["seals"] = seals.word().into();
        output::json_line(line);
        return Ok(());
    }
    let (files, rows) = (output::count(files as u64, "file"), output::count(staged.rows, "row"));
    let size = output::size(octets);
    output::out_line(&format!("{files}, {size}: {rows} as of change {}", staged.through.0));
    output::out_line(&format!("digest {}", hex(&staged.digest)));
    output::out_line(&format!("{}: {}", output::name(site.view()), seals.verdict()));
    if seals == Seals::Unchecked {
        output::err_line("the site's key is not here: give --certificate to check the seals");
    }
    Ok(())
}

/// The certificate of the site's key, if anybody has it here.
fn certificate(args: &Args, site: &SiteName, paths: &Paths) -> Outcome<Option<Certificate>> {
    if let Some(file) = &args.certificate {
        let wire = node_config::certificate(file)?;
        return Ok(Some(Certificate::decode(&wire).map_err(Failure::usage)?));
    }
    let identity = Keychain::open(&paths.keys)?.identity(site.view())?;
    Ok(identity.map(|identity| identity.certificate))
}

fn seals(
    backup: &Backup,
    (site, certificate): (&SiteName, Option<&Certificate>),
    is_directory: bool,
) -> Outcome<Seals> {
    let Some(certificate) = certificate else { return Ok(Seals::Unchecked) };
    let now_s = Clock::new().unix_ns() / 1_000_000_000;
    match backup.check_seals(&SealCheck { site, certificate, now_s }) {
        Err(BackupError::Unsealed { .. }) if !is_directory => Ok(Seals::Missing),
        checked => Ok(checked.map(|()| Seals::Verified)?),
    }
}

/// Makes a catalog beside the backup, and removes it again.
fn trial(
    (backup, from): (&Backup, &Path),
    site: &SiteName,
    certificate: Option<&Certificate>,
) -> Outcome<RebuildReport> {
    let beside = if from.is_dir() { from } else { from.parent().unwrap_or(Path::new("")) };
    let trial = beside.join(format!(".byname-backup-trial.{}", std::process::id()));
    let report = match certificate {
        Some(certificate) => {
            let unix_ns = Clock::new().unix_ns();
            let rebuild = Rebuild { site, certificate, directory: &trial, unix_ns };
            let made = rebuild.restore((backup, Until::Latest), &mut []);
            made.and_then(|made| made.discard())
        }
        None => only_rows(backup, &trial).map_err(Into::into),
    };
    let removed = std::fs::remove_dir_all(&trial);
    let report = report?;
    removed.map_err(|error| Failure::new(Code::LocalDisk, error.to_string()))?;
    Ok(report)
}

/// Where the site's certificate is not here no catalog can be made: the rows are put together.
fn only_rows(backup: &Backup, trial: &Path) -> Result<RebuildReport, BackupError> {
    let failed = |source| BackupError::File { path: trial.to_owned(), source };
    std::fs::create_dir_all(trial).map_err(failed)?;
    let engine = EmbeddedEngine::open(&trial.join("rows.redb"))?;
    let restored = Some(backup.stage(&engine, Until::Latest)?);
    Ok(RebuildReport { restored, ..RebuildReport::default() })
}
