//! The commands. Each reads through its execution and leaves its changes there.

mod acl;
mod admin;
mod attempt;
mod attributes;
mod commit;
mod content;
mod doors;
mod expiry;
mod keys;
mod lease;
mod namespace;
mod policy;
mod removal;
mod rename;
mod replicas;
mod room;
mod session;
mod trash;
mod versions;
mod xattr;

pub use attempt::ATTEMPT_NS;
pub use content::KEPT_NS;
pub use keys::LOAN_NS_MAX;
pub(crate) use policy::PATTERNS_MAX;
pub use session::{SESSION_IDLE_NS, SESSION_NS, SLOT_COUNT};

use crate::command::{Answer, Caller, Command, Request};
use crate::execution::Execution;
use crate::refusal::{Failure, Refusal};

/// Executes a command.
pub(crate) fn run(
    execution: &mut Execution<'_>,
    caller: &Caller,
    request: Option<&Request>,
    command: &Command,
) -> Result<Answer, Failure> {
    match (caller, command) {
        (Caller::Disk(disk), Command::Resolve { generation, content }) => {
            execution.resolve(*disk, *generation, *content)
        }
        (Caller::Head, Command::Expire { limit }) => execution.expire(*limit),
        (Caller::Head, Command::Collect { limit }) => execution.collect(*limit),
        (Caller::Head, Command::ExpireTrash { limit }) => execution.expire_trash(*limit),
        (Caller::Head, Command::MeasuredTrash(measured)) => execution.measured(measured),
        (Caller::Head, Command::Dropped { disk, contents }) => {
            Ok(execution.dropped(*disk, contents))
        }
        (Caller::Head, Command::MoveReplica(moved)) => execution.move_replica(moved),
        (Caller::Head, Command::DropReplica { content, disk }) => {
            execution.drop_replica(*content, *disk)
        }
        (Caller::Head, Command::Discard { disk, contents }) => execution.discard(*disk, contents),
        (Caller::Head, Command::TrimLog { below, limit }) => execution.trim_log(*below, *limit),
        (Caller::Head, Command::SetDisk { disk, changes }) => execution.set_disk(*disk, changes),
        (Caller::User(_) | Caller::Door(_), Command::OpenSession) => execution.open_session(),
        (Caller::User(_) | Caller::Door(_), command) => {
            let request = request.ok_or(Refusal::NeedsSession)?;
            run_for_user(execution, request, command)
        }
        _ => Err(Refusal::NotOperator.into()),
    }
}

fn run_for_user(
    execution: &mut Execution<'_>,
    request: &Request,
    command: &Command,
) -> Result<Answer, Failure> {
    match command {
        Command::MakeDirectory { place, mode } => execution.make_directory(place, *mode),
        Command::RemoveDirectory { place } => execution.remove_directory(place),
        Command::Unlink { place } => execution.unlink(place),
        Command::RemoveAll { place } => execution.remove_all(place),
        Command::RestoreTrash(restore) => execution.restore(restore),
        Command::PurgeTrash { item } => execution.purge(*item),
        Command::Rename(rename) => execution.rename(rename),
        Command::Link { existing, place } => execution.link(existing, place),
        Command::MakeSymlink { place, target } => execution.make_symlink(place, target),
        Command::SetAttributes { place, changes } => {
            execution.set_attributes(request.session, place, changes)
        }
        Command::SetXattr(set) => execution.set_xattr(set),
        Command::RemoveXattr { place, name } => execution.remove_xattr(place, name),
        Command::SetAcl(set) => execution.set_acl(set),
        Command::Create(create) => execution.create(request.session, create),
        Command::Extend { content } => execution.extend(*content),
        Command::Commit(commit) => execution.commit(request.session, commit),
        Command::Abort { content } => execution.abort(*content),
        Command::ReplaceDisk { content, disk } => execution.replace_disk(*content, *disk),
        Command::Hold { content } => execution.hold(request.session, *content),
        Command::Release { content } => execution.release(request.session, *content),
        Command::Lease { place } => execution.lease(request.session, place),
        Command::EndLease { place } => execution.end_lease(request.session, place),
        Command::LendKey(lend) => execution.lend_key(lend),
        Command::RecallKey { name } => execution.recall_key(name),
        Command::RenewSession => execution.renew_session(request.session),
        Command::EndSession => execution.close_session(request.session),
        command if execution.caller.is_operator && command.is_administration() => {
            run_for_operator(execution, command)
        }
        _ => Err(Refusal::NotOperator.into()),
    }
}

impl Command {
    /// True if it is for operators alone.
    pub fn is_administration(&self) -> bool {
        matches!(
            self,
            Self::SetUser { .. }
                | Self::AddKey(_)
                | Self::RemoveKey { .. }
                | Self::SetDoor(_)
                | Self::RemoveDoor { .. }
                | Self::AddDisk(_)
                | Self::SetDisk { .. }
                | Self::RemoveDisk { .. }
                | Self::DropReplica { .. }
                | Self::SetPolicy { .. }
                | Self::SetVersions { .. }
                | Self::SetTrash { .. }
                | Self::SetPattern { .. }
                | Self::SetLimits { .. }
                | Self::MakeTree { .. }
                | Self::TrimLog { .. }
                | Self::RaiseEpoch { .. }
        )
    }
}

fn run_for_operator(execution: &mut Execution<'_>, command: &Command) -> Result<Answer, Failure> {
    match command {
        Command::SetUser { user, groups, is_operator } => {
            execution.set_user(user, groups, *is_operator)
        }
        Command::AddKey(add) => execution.add_key(add),
        Command::RemoveKey { name } => execution.remove_key(name),
        Command::SetDoor(set) => execution.set_door(set),
        Command::RemoveDoor { door } => execution.remove_door(door),
        Command::AddDisk(disk) => execution.add_disk(disk),
        Command::SetDisk { disk, changes } => execution.set_disk(*disk, changes),
        Command::RemoveDisk { disk } => execution.remove_disk(*disk),
        Command::DropReplica { content, disk } => execution.drop_replica(*content, *disk),
        Command::SetPolicy { place, policy } => execution.set_policy(place, policy),
        Command::SetVersions { place, wanted } => execution.set_versions(place, *wanted),
        Command::SetTrash { place, policy } => execution.set_trash(place, *policy),
        Command::SetPattern { pattern, changes } => {
            execution.set_pattern(pattern, changes.as_ref())
        }
        Command::SetLimits { subject, limits } => execution.set_limits(subject, *limits),
        Command::MakeTree { place } => execution.make_tree(place),
        Command::TrimLog { below, limit } => execution.trim_log(*below, *limit),
        Command::RaiseEpoch { epoch } => execution.raise_epoch(*epoch),
        _ => Err(Refusal::NotOperator.into()),
    }
}
