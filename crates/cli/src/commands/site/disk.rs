//! `byname site disk`: the disks of a site.

mod admit;
mod balance;
mod drain;

use super::account::SiteArgs;
use super::session::SiteSession;
use super::user::add_key;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_access::AccessError;
use byname_catalog::id::DiskId;
use byname_catalog::{AddDisk, Answer, Command, DiskChanges, DiskState, KeyHolder, Refusal};
use byname_disk::{DiskDirectory, Label};
use byname_io::Clock;
use byname_keychain::Keychain;
use byname_profile::{Paths, units};
use byname_security::key::Algorithm;
use byname_site::{DiskName, SiteAnswer};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Place of a disk, unless another is given.
pub(super) const PLACE: &str = "here";
/// Space of a disk, unless another is given.
pub(super) const SPACE: &str = "main";

/// The disks of a site.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: DiskCommand,
}

#[derive(Debug, clap::Subcommand)]
enum DiskCommand {
    /// List disks.
    Ls {
        #[command(flatten)]
        site: SiteArgs,
        /// One JSON object per disk.
        #[arg(long)]
        json: bool,
    },
    /// Make a disk of an empty directory of this machine: registers it, makes its key and label.
    Add {
        /// The directory; `byname disk DIR` serves it.
        dir: PathBuf,
        /// Octets that content may take, such as 500G or 4T. Default: what the file system has.
        #[arg(long, value_name = "SIZE")]
        capacity: Option<String>,
        /// Disk server it is in; replicas go to different ones. Default: this machine's name.
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Rack, room or other place; replicas go to different ones if servers leave a choice.
        #[arg(long, value_name = "NAME", default_value = PLACE)]
        place: String,
        /// Space it belongs to.
        #[arg(long, value_name = "NAME", default_value = SPACE)]
        space: String,
        #[command(flatten)]
        site: SiteArgs,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Add the disk that another machine asks for (`byname site join LINK DIR`), and print its
    /// admission.
    Admit {
        /// The request.
        #[arg(value_name = "FILE")]
        request: PathBuf,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Have the replicas of a disk made elsewhere, and wait until it has none any more. If this is
    /// interrupted the head goes on; `disk set NUMBER --state ro` stops it.
    #[command(after_help = "Examples:
  byname site disk drain 3
  byname site disk drain 3 --rate 50M
  byname site disk drain 3 --pause           until it is drained again

Every 10 s a line says what is left, the rate and the time to go. Rate and pause are in the catalog:
they hold until the disk is drained again, whatever happens to heads.")]
    Drain {
        /// Its number.
        disk: u64,
        /// Octets a second that leave it, and no more than `byname catalog --repair-rate`.
        #[arg(long, value_name = "SIZE", value_parser = units::size)]
        rate: Option<u64>,
        /// Move nothing more for now. It takes nothing new, and serves what it has.
        #[arg(long, conflicts_with = "rate")]
        pause: bool,
        /// Do not wait.
        #[arg(long)]
        no_wait: bool,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Move replicas until the disks of a space are as full as each other, and wait for it. If this
    /// is interrupted the head stops, too; begun again it goes on.
    #[command(after_help = "Examples:
  byname site disk balance --dry-run
  byname site disk balance --space main --within 5 --rate 50M

Every 10 s a line says what was moved, what is left, the rate and the time to go. A file's replicas
stay on different servers and places as far as there are any, and clients notice nothing.")]
    Balance {
        /// The space.
        #[arg(long, value_name = "NAME", default_value = SPACE)]
        space: String,
        /// Hundredths of its capacity by which a disk may be fuller or emptier than all together.
        #[arg(long, value_name = "PERCENT", default_value_t = 5,
            value_parser = clap::value_parser!(u64).range(1..=100))]
        within: u64,
        /// Octets a second, and no more than `byname catalog --repair-rate`.
        #[arg(long, value_name = "SIZE", value_parser = units::size)]
        rate: Option<u64>,
        /// Say how full the disks are, and what would have to move.
        #[arg(short = 'n', long)]
        dry_run: bool,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Remove a disk that is off and has no content. Its number is not given again.
    Rm {
        /// Its number.
        disk: u64,
        /// Remove it. Without this nothing is changed.
        #[arg(short, long)]
        yes: bool,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Change a disk.
    #[command(group(clap::ArgGroup::new("what").required(true).multiple(true)))]
    Set {
        /// Its number.
        disk: u64,
        /// What is wanted of it: rw takes new content, ro serves, drain serves until its replicas
        /// are elsewhere, off is not asked.
        #[arg(long, value_enum, group = "what")]
        state: Option<StateArg>,
        /// Octets that content may take.
        #[arg(long, value_name = "SIZE", group = "what")]
        capacity: Option<String>,
        /// Disk server that it is in now, after it was moved.
        #[arg(long, value_name = "NAME", group = "what")]
        server: Option<String>,
        #[command(flatten)]
        site: SiteArgs,
    },
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum StateArg {
    Rw,
    Ro,
    Drain,
    Off,
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.command {
        DiskCommand::Ls { site, json } => list(&mut site.session(paths)?, *json),
        DiskCommand::Add { dir, capacity, server, place, space, site, json } => {
            DiskDirectory::prepare(dir)?;
            let (capacity, server) = (capacity.as_deref(), server.as_deref());
            let disk = Properties { capacity, server, place, space }.in_directory(dir)?;
            let id = add(&mut site.session(paths)?, dir, disk, paths)?;
            let dir = dir.display();
            if *json {
                output::json_line(json!({ "disk": id.0, "place": place, "dir": dir.to_string() }));
            } else {
                output::err_line(&format!("serve it with: byname disk {dir}"));
                output::out_line(&id.0.to_string());
            }
            Ok(())
        }
        DiskCommand::Admit { request, site } => admit::run(&mut site.session(paths)?, request),
        DiskCommand::Drain { disk, rate, pause, no_wait, site } => {
            let pace = drain::Pace { bytes_per_s: *rate, is_paused: *pause };
            drain::run(&mut site.session(paths)?, *disk, pace, *no_wait)
        }
        DiskCommand::Balance { space, within, rate, dry_run, site } => {
            let wish = balance::Wish { space, within_percent: *within, bytes_per_s: *rate };
            balance::run(&mut site.session(paths)?, &wish, *dry_run)
        }
        DiskCommand::Rm { disk, yes, site } => remove(&mut site.session(paths)?, *disk, *yes),
        DiskCommand::Set { disk, state, capacity, server, site } => {
            let capacity_bytes = capacity.as_deref().map(bytes).transpose()?;
            let state = state.map(|state| match state {
                StateArg::Rw => DiskState::ReadWrite,
                StateArg::Ro => DiskState::ReadOnly,
                StateArg::Drain => DiskState::Drain,
                StateArg::Off => DiskState::Off,
            });
            let server = server.clone();
            let changes = DiskChanges { state, capacity_bytes, server, ..DiskChanges::default() };
            let command = Command::SetDisk { disk: DiskId(*disk), changes };
            Ok(site.session(paths)?.run(command).map(drop)?)
        }
    }
}

/// Properties of a new disk, as far as they are given.
pub(super) struct Properties<'a> {
    pub(super) capacity: Option<&'a str>,
    pub(super) server: Option<&'a str>,
    pub(super) place: &'a str,
    pub(super) space: &'a str,
}

impl Default for Properties<'_> {
    fn default() -> Self {
        Self { capacity: None, server: None, place: PLACE, space: SPACE }
    }
}

impl Properties<'_> {
    /// With what a directory of this machine says of the others.
    pub(super) fn in_directory(&self, dir: &Path) -> Outcome<AddDisk> {
        let capacity_bytes = match self.capacity {
            Some(text) => bytes(text)?,
            None => file_system_bytes(dir)?,
        };
        let server = self.server.map_or_else(machine, str::to_owned);
        let (space, label) = (self.space.to_owned(), self.place.to_owned());
        Ok(AddDisk { space, server, label, capacity_bytes })
    }
}

/// Makes a disk of a directory; its number.
pub(super) fn add(
    session: &mut SiteSession,
    dir: &Path,
    disk: AddDisk,
    paths: &Paths,
) -> Outcome<DiskId> {
    let place = disk.label.clone();
    let id = disk_of(session, disk)?;
    let name = DiskName { place: place.clone(), id };
    let keychain = Keychain::open(&paths.keys)?;
    let prefix = session.site().disk(&name);
    let now_ns = Clock::new().unix_ns();
    let identity = keychain.create_identity(prefix.view(), Algorithm::default(), now_ns)?;
    add_key(session, KeyHolder::Disk(id), &identity.certificate)?;
    let site = session.site().view().to_name();
    let label = Label { site, place, disk: id, generation: 1 };
    let certificate = session.site_certificate()?;
    DiskDirectory::format(dir, &label, certificate.wire())?;
    let shown = output::name(prefix.view());
    output::err_line(&format!(
        "{} is {shown}; its key is in {}",
        dir.display(),
        paths.keys.display()
    ));
    Ok(id)
}

/// Has the site add a disk; its number.
fn disk_of(session: &mut SiteSession, disk: AddDisk) -> Outcome<DiskId> {
    match session.run(Command::AddDisk(disk))? {
        SiteAnswer::Plain(Answer::Disk(id)) => Ok(id),
        _ => Err(Failure::new(Code::Other, "the head answered something else")),
    }
}

/// Removes a disk, and says which one that is.
fn remove(session: &mut SiteSession, number: u64, is_sure: bool) -> Outcome {
    let disks = session.query("disks")?;
    let disk = disks.iter().find(|disk| disk["disk"] == number);
    let disk = disk.ok_or_else(|| {
        Failure::new(Code::NotFound, format!("the site has no disk {number}"))
            .hint("byname site disk ls")
    })?;
    let text = |key: &str| output::one_line(disk[key].as_str().unwrap_or_default());
    let used = output::size(disk["used_bytes"].as_u64().unwrap_or_default());
    let shown = format!("disk {number} in {} ({}), {used} used", text("server"), text("space"));
    if text("state") != "off" {
        return Err(Failure::usage(format!("{shown}: it is not off"))
            .hint(format!("byname site disk set {number} --state off")));
    }
    if !is_sure {
        return Err(Failure::usage(format!("{shown}: it was not removed")).hint("say --yes"));
    }
    let removed = session.run(Command::RemoveDisk { disk: DiskId(number) });
    removed.map_err(|error| match error {
        AccessError::Refused(Refusal::DiskInUse) => {
            Failure::new(Code::Other, format!("{shown}: it still has replicas, or is to get some"))
                .hint(
                    "what a disk that is off had is made elsewhere by itself an hour after \
                     (byname catalog --repair-after); replaced versions and files that are being \
                     written end before that. What no other disk has: byname site fsck --disks",
                )
        }
        error => error.into(),
    })?;
    output::err_line(&format!("removed {shown}"));
    Ok(())
}

/// Octets of the file system that a directory is in.
fn file_system_bytes(dir: &Path) -> Outcome<u64> {
    let room = rustix::fs::statvfs(dir);
    let room = room.map_err(|errno| Failure::disk(dir, std::io::Error::from(errno)))?;
    Ok(room.f_blocks.saturating_mul(room.f_frsize))
}

fn list(session: &mut SiteSession, json: bool) -> Outcome {
    let disks = session.query("disks")?;
    if json {
        disks.into_iter().for_each(output::json_line);
        return Ok(());
    }
    let now_s = Clock::new().unix_ns() / 1_000_000_000;
    let row = |disk: &Value| {
        let text = |key: &str| output::one_line(disk[key].as_str().unwrap_or_default());
        let size = |key: &str| output::size(disk[key].as_u64().unwrap_or_default());
        let seen = if disk["up"] == true { "up" } else { "down" };
        vec![
            disk["disk"].to_string(),
            text("state"),
            seen.to_owned(),
            size("used_bytes"),
            size("capacity_bytes"),
            text("server"),
            text("place"),
            text("space"),
            scrubbed(disk, now_s),
            text("answers"),
        ]
    };
    let header = [
        "DISK", "STATE", "", "USED", "CAPACITY", "SERVER", "PLACE", "SPACE", "SCRUBBED", "ANSWERS",
    ];
    output::table(&header, &disks.iter().map(row).collect::<Vec<_>>());
    Ok(())
}

/// How far a disk is in reading what it has, or when it was through, and what it has found.
fn scrubbed(disk: &Value, now_s: u64) -> String {
    let number = |key: &str| disk["scrub"][key].as_u64();
    let rotten = match number("rotten") {
        None => return "-".to_owned(),
        Some(0) => String::new(),
        Some(rotten) => format!(", {rotten} rotten"),
    };
    let (done, total) = (number("done_bytes").unwrap_or(0), number("total_bytes").unwrap_or(0));
    let shown = match number("ended_s") {
        _ if total > 0 => format!("{} %", (u128::from(done) * 100 / u128::from(total)).min(100)),
        Some(ended_s) => format!("{} ago", output::duration(now_s.saturating_sub(ended_s))),
        None => "-".to_owned(),
    };
    shown + &rotten
}

fn bytes(text: &str) -> Outcome<u64> {
    units::size(text).map_err(Failure::usage)
}

/// Name of this machine, if it can be one in a site.
fn machine() -> String {
    let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let is_plain = !node.is_empty() && !node.contains([' ', '/']);
    if is_plain { node } else { "server".to_owned() }
}
