//! `byname site rebuild`: a catalog made again from the disks of a site.

use super::defaults::directory;
use crate::exit::{Code, Failure, Outcome, chain};
use crate::output;
use crate::typed::{endpoint, name};
use crate::{forwarders, settings};
use byname_catalog::id::{ContentId, DiskId};
use byname_disk::{DiskDirectory, Editions, Scan, StoreFailure};
use byname_head::HeadError;
use byname_head::rebuild::{
    DiskSource, Finding, Rebuild, RebuildError, RebuildReport, RebuiltDisk, RemoteDisk, SourceError,
};
use byname_io::{Clock, Connection};
use byname_keychain::Keychain;
use byname_packet::Name;
use byname_profile::Paths;
use byname_security::cert::Certificate;
use byname_security::key::KeySigner;
use byname_site::{CopyState, DiskName, KeptRecord, Listed, SiteName};
use serde_json::{Value, json};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Contents in a page of a disk.
const PAGE: usize = 1024;

/// Make a site's catalog again from its disks, after the head's state was lost.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname site rebuild /lab /disks/1 /disks/2           looks, and says what would be made
  byname site rebuild /lab /disks/1 /disks/2 --yes     makes it
  byname site rebuild /lab --disk here/2 --disk here/3     of disks that are served, by name

The site's key has to be here. Disks are directories of this machine, without their servers, or are
served somewhere (--disk PLACE/NUMBER); all that there are should be given, the old head be ended.
A catalog that is there already stays as it is. Interrupted, it can be run again.

Findings of files: lost, out-of-reach (on disks that were not given), missing (one replica of
several), different, lost+found (its directory is not known), new-file and new-version (newer than
the rows, proved by ticket and claim). Of contents: not-committed, superseded, unproved; disks keep
these.")]
pub(super) struct Args {
    /// The site.
    #[arg(value_name = "SITE")]
    site: String,
    #[command(flatten)]
    disks: DiskArgs,
    /// Where its catalog is kept. Default: a directory of the user's state.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Make it. Without this nothing is changed.
    #[arg(short, long)]
    yes: bool,
    /// A JSON object for each disk and each finding, and one for the whole.
    #[arg(long)]
    json: bool,
}

/// Disks that are read.
#[derive(Debug, clap::Args)]
pub(super) struct DiskArgs {
    /// Directories of its disks.
    #[arg(value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// A disk that is served, by the place and number in its name (repeatable).
    #[arg(long = "disk", value_name = "PLACE/NUMBER", value_parser = disk_name)]
    disks: Vec<DiskName>,
    /// Forwarder to ask disks by.
    #[arg(long, value_name = "URI")]
    connect: Option<String>,
}

impl DiskArgs {
    /// True if none is given.
    pub(super) fn is_none(&self) -> bool {
        self.dirs.is_empty() && self.disks.is_empty()
    }

    /// All of them, ready to be read.
    pub(super) fn open(
        &self,
        site: &SiteName,
        (identity, paths): (&Identity, &Paths),
    ) -> Outcome<Vec<Box<dyn DiskSource>>> {
        let mut disks = open_all(&self.dirs, site)?;
        for disk in &self.disks {
            let connection = self.connection(paths)?;
            let names = (site.clone(), disk.clone());
            let remote = RemoteDisk::new(names, identity.signer.clone(), connection);
            let remote = remote.map_err(|error| Failure::new(Code::NoRoute, chain(&error)))?;
            take(&mut disks, Box::new(remote))?;
        }
        Ok(disks)
    }

    fn connection(&self, paths: &Paths) -> Outcome<Connection> {
        let endpoints = match &self.connect {
            Some(uri) => vec![endpoint(uri)?],
            None => settings::profile(paths)?.forwarders(false)?,
        };
        let connected = forwarders::connect_first(&endpoints);
        Ok(connected.map_err(forwarders::failure)?.0)
    }
}

/// The site's key, and the certificate that is believed.
pub(super) struct Identity {
    pub(super) certificate: Certificate,
    signer: Arc<KeySigner>,
}

/// The identity of a site whose key is here.
pub(super) fn identity(site: &SiteName, paths: &Paths) -> Outcome<Identity> {
    let keychain = Keychain::open(&paths.keys)?;
    let identity = keychain.identity(site.view())?.ok_or_else(|| {
        let (shown, dir) = (output::name(site.view()), keychain.dir().display());
        Failure::new(Code::UnknownKey, format!("the key of {shown} is not in {dir}"))
            .hint("without the site's key nothing that its disks have can be proved")
    })?;
    Ok(Identity { certificate: identity.certificate, signer: Arc::new(identity.signer) })
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    let site = SiteName::new(name(&args.site)?)
        .ok_or_else(|| Failure::usage(format!("{} is no name of a site", args.site)))?;
    let at = directory(Some(&args.site), args.dir.as_deref(), paths)?;
    if args.disks.is_none() {
        return Err(Failure::usage("which disks? Give their directories, or --disk PLACE/NUMBER"));
    }
    let identity = identity(&site, paths)?;
    let mut disks = args.disks.open(&site, (&identity, paths))?;
    let unix_ns = Clock::new().unix_ns();
    let certificate = &identity.certificate;
    let rebuild = Rebuild { site: &site, certificate, directory: &at, unix_ns };
    let rebuilt = rebuild.prepare(&mut disks)?;
    let report = if args.yes { rebuilt.place()? } else { rebuilt.discard()? };
    let losses = report.findings.iter().filter(|finding| finding.kind.is_loss()).count();
    let problems = report.disks.iter().filter(|disk| disk.problem.is_some()).count();
    if args.json {
        report.disks.iter().map(disk_line).for_each(output::json_line);
        report.findings.iter().map(finding_line).for_each(output::json_line);
        output::json_line(json!({
            "site": output::name(site.view()),
            "made": args.yes,
            "through": report.through.0,
            "source": report.source.map(|disk| disk.0),
            "inodes": report.inodes,
            "files": report.files,
            "losses": losses,
        }));
    } else {
        show(&report, &site);
    }
    if !args.yes {
        return Err(Failure::usage("nothing was made").hint("say --yes to make this catalog"));
    }
    if !args.json {
        let shown = output::name(site.view());
        output::err_line(&format!("made the catalog in {}", at.display()));
        output::err_line(&format!("serve it: byname catalog {shown}; then: site fsck --disks"));
    }
    match losses + problems {
        0 => Ok(()),
        _ => Err(Failure::new(Code::Other, "")),
    }
}

fn open_all(dirs: &[PathBuf], site: &SiteName) -> Outcome<Vec<Box<dyn DiskSource>>> {
    let mut disks: Vec<Box<dyn DiskSource>> = Vec::new();
    for dir in dirs {
        take(&mut disks, Box::new(LocalDisk::open(dir, site)?))?;
    }
    Ok(disks)
}

/// One more disk, which is given once.
fn take(disks: &mut Vec<Box<dyn DiskSource>>, disk: Box<dyn DiskSource>) -> Outcome {
    let id = disk.name().id;
    if disks.iter().any(|other| other.name().id == id) {
        return Err(Failure::usage(format!("disk {} is given twice", id.0)));
    }
    disks.push(disk);
    Ok(())
}

/// Reads the place and number of a disk.
fn disk_name(text: &str) -> Result<DiskName, BadDiskName> {
    let (place, number) = text.rsplit_once('/').ok_or(BadDiskName)?;
    let id = DiskId(number.parse().map_err(|_| BadDiskName)?);
    match place.is_empty() || place.contains(['/', ' ']) {
        true => Err(BadDiskName),
        false => Ok(DiskName { place: place.to_owned(), id }),
    }
}

/// A text that names no disk.
#[derive(Debug, thiserror::Error)]
#[error("place and number of a disk are wanted, such as here/3")]
struct BadDiskName;

fn show(report: &RebuildReport, site: &SiteName) {
    let row = |disk: &RebuiltDisk| {
        let is_source = report.source == Some(disk.name.id);
        let state = match (&disk.problem, is_source) {
            (Some(problem), _) => output::one_line(problem),
            (None, true) => "its rows were taken".to_owned(),
            (None, false) => String::new(),
        };
        let id = disk.name.id.0.to_string();
        vec![id, disk.through.to_string(), disk.contents.to_string(), state]
    };
    let rows: Vec<Vec<String>> = report.disks.iter().map(row).collect();
    output::table(&["DISK", "CHANGES", "CONTENTS", ""], &rows);
    show_findings(&report.findings);
    let shown = output::name(site.view());
    output::out_line(&format!(
        "{shown}: {}, {}, all changes up to {}",
        output::count(report.inodes, "inode"),
        output::count(report.files, "file"),
        report.through,
    ));
    output::out_line("what was changed after that is known only as far as findings say");
}

/// A row for each.
pub(super) fn show_findings(findings: &[Finding]) {
    let row = |finding: &Finding| {
        let disks: Vec<String> = finding.disks.iter().map(|disk| disk.0.to_string()).collect();
        let ContentId { inode, version } = finding.content;
        let content = format!("content {} version {}", inode.0, version.0);
        let name = finding.name.as_ref().and_then(|name| name.parse::<Name>().ok());
        vec![
            finding.kind.name().to_owned(),
            disks.join(" "),
            output::size(finding.size),
            name.map_or(content, |name| output::name(name.view())),
        ]
    };
    let rows: Vec<Vec<String>> = findings.iter().map(row).collect();
    if !rows.is_empty() {
        output::table(&["FINDING", "DISKS", "SIZE", "NAME"], &rows);
    }
}

fn disk_line(disk: &RebuiltDisk) -> Value {
    json!({
        "disk": disk.name.id.0,
        "place": disk.name.place,
        "through": disk.through.0,
        "verified": disk.verified.0,
        "contents": disk.contents,
        "problem": disk.problem,
    })
}

pub(super) fn finding_line(finding: &Finding) -> Value {
    json!({
        "finding": finding.kind.name(),
        "inode": finding.content.inode.0,
        "version": finding.content.version.0,
        "bytes": finding.size,
        "disks": finding.disks.iter().map(|disk| disk.0).collect::<Vec<_>>(),
        "confirmed": finding.is_confirmed,
        "name": finding.name,
    })
}

/// A disk whose directory is here and which nobody serves.
struct LocalDisk {
    name: DiskName,
    directory: DiskDirectory,
    scan: Scan,
}

impl LocalDisk {
    fn open(dir: &Path, site: &SiteName) -> Outcome<Self> {
        let (directory, scan) = DiskDirectory::open(dir)?;
        let label = directory.label();
        if label.site.view() != site.view() {
            let (own, shown) = (output::name(label.site.view()), output::name(site.view()));
            let text = format!("{}: a disk of {own}, not of {shown}", dir.display());
            return Err(Failure::new(Code::LocalDisk, text));
        }
        for quarantined in &scan.quarantined {
            let (path, why) = (quarantined.path.display(), quarantined.why);
            output::err_line(&format!("put into quarantine: {path}: {why}"));
        }
        let name = DiskName { place: label.place.clone(), id: label.disk };
        Ok(Self { name, directory, scan })
    }
}

impl DiskSource for LocalDisk {
    fn name(&self) -> &DiskName {
        &self.name
    }

    fn state(&mut self) -> Result<CopyState, SourceError> {
        let Editions { complete, building } = self.directory.editions();
        let seen = self.scan.replicas.keys().chain(&self.scan.dropped);
        let highest = seen.map(|content| content.inode.0.max(content.version.0)).max();
        Ok(CopyState {
            epoch: self.scan.epoch,
            generation: self.directory.label().generation,
            highest: highest.unwrap_or_default(),
            complete,
            building,
        })
    }

    fn read_copy(&mut self, edition: u64, offset: u64) -> Result<Vec<u8>, SourceError> {
        let octets = self.directory.read_copy(edition, offset);
        octets.map_err(|failure| SourceError(Box::new(failure)))
    }

    fn contents(&mut self, after: Option<ContentId>) -> Result<(Vec<Listed>, bool), SourceError> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut behind = self.scan.replicas.range((from, Bound::Unbounded));
        let page = behind.by_ref().take(PAGE).map(|(content, record)| Listed {
            content: *content,
            size: record.size,
            root: record.root,
        });
        let page: Vec<Listed> = page.collect();
        Ok((page, behind.next().is_none()))
    }

    fn record(&mut self, content: ContentId) -> Result<KeptRecord, SourceError> {
        let record = self.scan.replicas.get(&content);
        let record = record.ok_or_else(|| SourceError(Box::new(StoreFailure::Failing)))?;
        Ok(KeptRecord {
            is_settled: record.is_settled,
            checksums: record.checksums,
            ticket: record.ticket.clone(),
            claim: record.claim.clone(),
        })
    }
}

impl From<RebuildError> for Failure {
    fn from(error: RebuildError) -> Self {
        let text = chain(&error);
        match error {
            RebuildError::Head(HeadError::SiteExists { .. }) => Self::new(Code::LocalDisk, text)
                .hint("nothing was changed; a catalog that is to be replaced is moved away first"),
            RebuildError::Head(error) => error.into(),
            RebuildError::Backup(error) => error.into(),
            RebuildError::Address(error) => error.into(),
            RebuildError::NoCopy { .. } => Self::new(Code::NotFound, text)
                .hint("give all disks of the site: a copy of the catalog is on up to 8 of them"),
            RebuildError::Source { .. }
            | RebuildError::Changed { .. }
            | RebuildError::File { .. } => Self::new(Code::LocalDisk, text),
            RebuildError::OtherSite => Self::new(Code::NotVerified, text),
            _ => Self::new(Code::Other, text),
        }
    }
}
