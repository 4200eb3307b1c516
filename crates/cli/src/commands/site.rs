//! `byname site`: making a site, and what its operators do.

pub(crate) mod account;
mod backup;
mod bench;
pub(crate) mod defaults;
mod disk;
mod door;
pub(crate) mod failure;
mod fsck;
mod init;
mod join;
mod lease;
mod loans;
mod moving;
pub(crate) mod policy;
mod prove;
mod quota;
mod rebuild;
mod replica;
mod report;
mod restore;
pub(crate) mod session;
mod space;
mod top;
mod trash;
mod up;
mod user;
mod whoami;

use crate::exit::{Failure, Outcome};
use byname_head::{AddressError, HeadError};
use byname_profile::Paths;

/// Make and administer a site: one name space on many disks.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname site init /lab                    a site, its key and its first operator
  byname catalog /lab &                    its head
  byname site join byname:/lab,via=tcp://host,key=SHA256:… > anna.cert   anna, on her machine
  byname site user add anna --group physics --key anna.cert
  byname site disk add /disks/1            a disk of this machine
  byname disk /disks/1 &                   its server
  byname site status

Commands after `init` go by name to the head, signed with the operator's key: from any machine that
reaches it. docs/site.md.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: SiteCommand,
}

#[derive(Debug, clap::Subcommand)]
enum SiteCommand {
    Up(up::Args),
    Init(init::Args),
    Join(join::Args),
    Status(report::StatusArgs),
    Top(top::Args),
    User(user::Args),
    Door(door::Args),
    Disk(disk::Args),
    Replica(replica::Args),
    Space(space::Args),
    Policy(policy::Args),
    Quota(quota::Args),
    Trash(trash::Args),
    Lease(lease::Args),
    Log(report::LogArgs),
    Audit(report::AuditArgs),
    Fsck(fsck::Args),
    Prove(prove::Args),
    Bench(bench::Args),
    Backup(backup::Args),
    #[command(visible_alias = "import")]
    Restore(restore::Args),
    Export(backup::ExportArgs),
    Rebuild(rebuild::Args),
    MoveEngine(moving::Args),
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.command {
        SiteCommand::Up(args) => up::run(args, paths),
        SiteCommand::Init(args) => init::run(args, paths),
        SiteCommand::Join(args) => join::run(args, paths),
        SiteCommand::Status(args) => report::status(args, paths),
        SiteCommand::Top(args) => top::run(args, paths),
        SiteCommand::User(args) => user::run(args, paths),
        SiteCommand::Door(args) => door::run(args, paths),
        SiteCommand::Disk(args) => disk::run(args, paths),
        SiteCommand::Replica(args) => replica::run(args, paths),
        SiteCommand::Space(args) => space::run(args, paths),
        SiteCommand::Policy(args) => policy::run(args, paths),
        SiteCommand::Quota(args) => quota::run(args, paths),
        SiteCommand::Trash(args) => trash::run(args, paths),
        SiteCommand::Lease(args) => lease::run(args, paths),
        SiteCommand::Log(args) => report::log(args, paths),
        SiteCommand::Audit(args) => report::audit(args, paths),
        SiteCommand::Fsck(args) => fsck::run(args, paths),
        SiteCommand::Prove(args) => prove::run(args, paths),
        SiteCommand::Bench(args) => bench::run(args, paths),
        SiteCommand::Backup(args) => backup::run(args, paths),
        SiteCommand::Export(args) => backup::export(args, paths),
        SiteCommand::Restore(args) => restore::run(args, paths),
        SiteCommand::Rebuild(args) => rebuild::run(args, paths),
        SiteCommand::MoveEngine(args) => moving::run(args, paths),
    }
}

impl From<AddressError> for Failure {
    fn from(error: AddressError) -> Self {
        use crate::exit::{Code, chain};
        let text = chain(&error);
        match error {
            AddressError::Malformed(_) => Self::usage(text),
            AddressError::Directory { .. } => Self::new(Code::LocalDisk, text),
            AddressError::File { .. } => {
                Self::new(Code::LocalDisk, text).hint("is another `byname catalog` running?")
            }
            AddressError::Database(_) => {
                Self::new(Code::LocalDisk, text).hint("docs/site.md says what it has to be")
            }
        }
    }
}

impl From<HeadError> for Failure {
    fn from(error: HeadError) -> Self {
        use crate::exit::{Code, chain};
        let text = chain(&error);
        match error {
            HeadError::NoSite { .. } => Self::new(Code::NotFound, text).hint(
                "`byname site init NAME` makes one; a catalog that was moved (`site \
                     move-engine`) is where it was moved to: --engine, or BYNAME_ENGINE",
            ),
            HeadError::LookOnly { .. } => Self::new(Code::LocalDisk, text).hint(
                "disks would obey it in place of the site's head: `byname site restore FILE DISK…` \
                 makes one to serve",
            ),
            HeadError::SiteExists { .. } => {
                Self::new(Code::LocalDisk, text).hint("`byname catalog` serves it")
            }
            HeadError::Engine(error) => error.into(),
            HeadError::Directory { .. } => Self::new(Code::LocalDisk, text),
            HeadError::Name { .. } => Self::usage(text),
            HeadError::Store(error) => error.into(),
            _ => Self::new(Code::Other, text),
        }
    }
}
