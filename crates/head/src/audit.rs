//! Who asked for what, and what came of it: a line of JSON for each command, refused ones too.
//!
//! Lines of commands whose sender is known are all written. Of what proves no sender there are so
//! many a second at most, with the number of others: a stranger cannot fill the log, nor drive out
//! of it what others did.

mod files;

pub(crate) use files::{AuditFiles, Position};

use std::collections::VecDeque;

use byname_catalog::id::{InodeId, LeaseEpoch};
use byname_catalog::{
    AddKey, Answer, AttributeChanges, Caller, Command, Create, Failure, Grant, KeyHolder, LendKey,
    Place, Rename, RestoreTrash, SetAcl, SetDoor, SetXattr, SpokenFor, Subject, Submission,
};
use byname_packet::{Name, NameRef};
use byname_site::{HeadFailure, SiteName};
use serde_json::{Map, Value, json};

/// Lines of nobody knows whom, in one second.
const UNKNOWN_PER_S: u32 = 10;
/// Characters of one value, at most: all of a line has to fit a packet.
const VALUE_CHARS_MAX: usize = 1000;
const SECOND_NS: u64 = 1_000_000_000;
/// Questions that are known again.
const ASKED_MAX: usize = 64;
/// Time after which the same question is another one.
const AGAIN_NS: u64 = 60 * SECOND_NS;

/// Lines that are to be written.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    lines: Vec<Value>,
    /// The second, lines of it about nobody knows whom, and how many more there were.
    unknown: (u64, u32, u64),
    /// The last questions by which something is done, the latest first, and when they came.
    asked: VecDeque<((Caller, String), u64)>,
}

impl Audit {
    /// Notes what came of a command.
    pub(crate) fn executed(
        &mut self,
        (site, epoch, at_ns): (&SiteName, LeaseEpoch, u64),
        submission: &Submission,
        outcome: Result<&Result<Answer, Failure>, &str>,
    ) {
        // Those of disks and of sessions that go on are many and change nothing that anybody asks.
        if matches!(submission.caller, Caller::Head)
            || matches!(submission.command, Command::RenewSession | Command::Resolve { .. })
        {
            return;
        }
        let mut line = Map::new();
        line.insert("at_ns".into(), at_ns.into());
        line.insert("term".into(), epoch.0.into());
        name_caller(&submission.caller, &mut line);
        if let Some(request) = &submission.request {
            line.insert("session".into(), request.session.0.into());
        }
        line.insert("command".into(), submission.command.name().into());
        describe(site, &submission.command, &mut line);
        let (outcome, reason) = match outcome {
            Ok(Ok(_)) => ("done", None),
            Ok(Err(Failure::Refused(refusal))) => ("refused", Some(refusal.to_string())),
            Ok(Err(failure)) => ("failed", Some(failure.to_string())),
            Err(reason) => ("failed", Some(reason.to_owned())),
        };
        line.insert("outcome".into(), outcome.into());
        if let Some(reason) = reason {
            line.insert("reason".into(), bounded(reason).into());
        }
        self.lines.push(Value::Object(line));
    }

    /// Notes what came of a question by which something is done. Who waits for it asks it again and
    /// again, which is noted as one.
    pub(crate) fn asked(
        &mut self,
        (epoch, at_ns): (LeaseEpoch, u64),
        (caller, question): (&Caller, &[u8]),
        outcome: &Result<Vec<u8>, Failure>,
    ) {
        let question = String::from_utf8_lossy(question).into_owned();
        let (subject, about) = question.split_once(' ').unwrap_or((&question, ""));
        let mut line = Map::new();
        line.insert("at_ns".into(), at_ns.into());
        line.insert("term".into(), epoch.0.into());
        name_caller(caller, &mut line);
        line.insert("command".into(), subject.into());
        line.insert("about".into(), bounded(about.to_owned()).into());
        let reason = outcome.as_ref().err().map(ToString::to_string);
        line.insert("outcome".into(), if reason.is_none() { "done" } else { "refused" }.into());
        if let Some(reason) = reason {
            line.insert("reason".into(), bounded(reason).into());
        }
        let asked = (caller.clone(), question);
        let known = self.asked.iter().position(|(known, _)| *known == asked);
        let last_ns = known.and_then(|at| self.asked.remove(at)).map(|(_, last_ns)| last_ns);
        self.asked.push_front((asked, at_ns));
        self.asked.truncate(ASKED_MAX);
        if last_ns.is_none_or(|last_ns| at_ns.saturating_sub(last_ns) > AGAIN_NS) {
            self.lines.push(Value::Object(line));
        }
    }

    /// Notes what was refused before anybody knew whose it was.
    pub(crate) fn unknown(
        &mut self,
        (epoch, at_ns): (LeaseEpoch, u64),
        name: String,
        (failure, reason): (HeadFailure, &str),
    ) {
        // These are asked for again by clients themselves, with other keys or at another head.
        if matches!(failure, HeadFailure::NoKeys | HeadFailure::NotLeading) {
            return;
        }
        let second = at_ns / SECOND_NS;
        let (of, count, more) = &mut self.unknown;
        if *of != second {
            (*of, *count) = (second, 0);
        }
        if *count >= UNKNOWN_PER_S {
            *more += 1;
            return;
        }
        *count += 1;
        let mut line = json!({
            "at_ns": at_ns,
            "term": epoch.0,
            "name": bounded(name),
            "outcome": "refused",
            "reason": bounded(reason.to_owned()),
        });
        if *more > 0 {
            line["not_shown"] = std::mem::take(more).into();
        }
        self.lines.push(line);
    }

    /// What is to be written.
    pub(crate) fn take(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.lines)
    }
}

fn name_caller(caller: &Caller, line: &mut Map<String, Value>) {
    match caller {
        Caller::User(user) => line.insert("user".into(), user.as_str().into()),
        Caller::Door(SpokenFor { door, user, groups }) => {
            line.insert("user".into(), user.as_str().into());
            if !groups.is_empty() {
                line.insert("said_groups".into(), groups.clone().into());
            }
            line.insert("door".into(), door.as_str().into())
        }
        Caller::Disk(disk) => line.insert("disk".into(), disk.0.into()),
        Caller::Head => None,
    };
}

fn bounded(text: String) -> String {
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A place as the name by which it is read, or, below a number, as far as it is known.
fn shown(site: &SiteName, place: &Place) -> Value {
    let is_path = place.base == InodeId::ROOT;
    let mut name = if is_path { site.view().to_name() } else { Name::default() };
    for entry in &place.names {
        name = name.with_generic(entry.as_bytes());
    }
    match (is_path, place.names.is_empty()) {
        (true, _) => bounded(name.to_string()).into(),
        (false, true) => format!("inode {}", place.base.0).into(),
        (false, false) => bounded(format!("inode {}{name}", place.base.0)).into(),
    }
}

/// The name of a key.
fn key_text(name: &[u8]) -> String {
    bounded(NameRef::from_value(name).map(|name| name.to_string()).unwrap_or_default())
}

/// What a command is about.
fn describe(site: &SiteName, command: &Command, line: &mut Map<String, Value>) {
    let mut put = |key: &str, value: Value| drop(line.insert(key.to_owned(), value));
    match command {
        Command::MakeDirectory { place, mode } => {
            put("name", shown(site, place));
            put("mode", format!("{mode:o}").into());
        }
        Command::RemoveDirectory { place }
        | Command::Unlink { place }
        | Command::RemoveAll { place }
        | Command::Lease { place }
        | Command::EndLease { place }
        | Command::MakeTree { place }
        | Command::SetPolicy { place, .. }
        | Command::MakeSymlink { place, .. }
        | Command::SetXattr(SetXattr { place, .. })
        | Command::RemoveXattr { place, .. } => put("name", shown(site, place)),
        Command::RestoreTrash(RestoreTrash { item, to }) => {
            put("of_inode", item.0.into());
            if let Some(to) = to {
                put("to", shown(site, to));
            }
        }
        Command::PurgeTrash { item } => put("of_inode", item.0.into()),
        Command::Rename(Rename { from, to, .. }) | Command::Link { existing: from, place: to } => {
            put("name", shown(site, from));
            put("to", shown(site, to));
        }
        Command::SetAttributes { place, changes } => {
            put("name", shown(site, place));
            describe_changes(changes, &mut put);
        }
        Command::SetAcl(SetAcl { place, is_default, acl }) => {
            put("name", shown(site, place));
            let acl = acl.as_ref().map(|acl| bounded(acl.to_string()));
            put(if *is_default { "default_acl" } else { "acl" }, acl.into());
        }
        Command::SetVersions { place, wanted } => {
            put("name", shown(site, place));
            put("versions", (*wanted).into());
        }
        Command::SetTrash { place, policy } => {
            put("name", shown(site, place));
            put("trash", policy.is_on.into());
            put("keep_ns", policy.keep_ns.into());
            put("bytes_max", policy.bytes_max.into());
        }
        Command::Create(Create { place, size_max, .. }) => {
            put("name", shown(site, place));
            put("size_max", (*size_max).into());
        }
        Command::Commit(commit) => {
            put(
                "content",
                format!("{}/{}", commit.content.inode.0, commit.content.version.0).into(),
            );
            put("size", commit.size.into());
        }
        Command::Extend { content } | Command::Abort { content } => {
            put("content", format!("{}/{}", content.inode.0, content.version.0).into());
        }
        administration => describe_administration(administration, &mut put),
    }
}

fn describe_changes(changes: &AttributeChanges, put: &mut impl FnMut(&str, Value)) {
    let AttributeChanges { mode, owner, group, size, .. } = changes;
    if let Some(mode) = mode {
        put("mode", format!("{mode:o}").into());
    }
    for (key, value) in [("owner", owner), ("group", group)] {
        if let Some(value) = value {
            put(key, value.as_str().into());
        }
    }
    if let Some(size) = size {
        put("size", (*size).into());
    }
}

fn describe_administration(command: &Command, put: &mut impl FnMut(&str, Value)) {
    match command {
        Command::SetUser { user, groups, is_operator } => {
            put("of_user", user.as_str().into());
            put("groups", groups.clone().into());
            put("operator", (*is_operator).into());
        }
        Command::AddKey(AddKey { holder, .. }) => match holder {
            KeyHolder::User(user) => put("of_user", user.as_str().into()),
            KeyHolder::Disk(disk) => put("of_disk", disk.0.into()),
            KeyHolder::Door(door) => put("of_door", door.as_str().into()),
        },
        Command::SetDoor(SetDoor { door, grant }) => {
            let Grant { is_for_all, users, groups, asserted } = grant;
            put("of_door", door.as_str().into());
            put("for_all", (*is_for_all).into());
            for (key, names) in
                [("for_users", users), ("for_groups", groups), ("may_say_groups", asserted)]
            {
                put(key, bounded(names.join(",")).into());
            }
        }
        Command::RemoveDoor { door } => put("of_door", door.as_str().into()),
        Command::LendKey(LendKey { name, expires_ns, .. }) => {
            put("key", key_text(name).into());
            put("until_ns", (*expires_ns).into());
        }
        Command::RemoveKey { name } | Command::RecallKey { name } => {
            put("key", key_text(name).into());
        }
        Command::AddDisk(disk) => put("server", disk.server.as_str().into()),
        Command::SetDisk { disk, .. } | Command::RemoveDisk { disk } => {
            put("of_disk", disk.0.into());
        }
        Command::DropReplica { disk, .. } => put("of_disk", disk.0.into()),
        Command::SetPattern { pattern, .. } => put("pattern", pattern.as_str().into()),
        Command::SetLimits { subject, limits } => {
            match subject {
                Subject::User(user) => put("of_user", user.as_str().into()),
                Subject::Group(group) => put("of_group", group.as_str().into()),
                Subject::Tree(inode) => put("of_inode", inode.0.into()),
                Subject::Space(space) => put("of_space", space.as_str().into()),
            }
            put("inodes_max", limits.inodes.into());
            put("bytes_max", limits.bytes.into());
            put("soft_inodes", limits.soft_inodes.into());
            put("soft_bytes", limits.soft_bytes.into());
            put("grace_ns", limits.grace_ns.into());
        }
        Command::RaiseEpoch { epoch } => put("epoch", (*epoch).into()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use byname_catalog::Refusal;

    use super::*;

    #[test]
    fn strangers_have_a_bounded_share_and_are_counted() {
        let mut audit = Audit::default();
        let mut note = |at_ns: u64| {
            let at = (LeaseEpoch(1), at_ns);
            audit.unknown(at, "/x".into(), (HeadFailure::NotAuthentic, "no"));
        };
        (0..500).for_each(|n| note(7 * SECOND_NS + n));
        note(8 * SECOND_NS);
        let lines = audit.take();
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[10]["not_shown"], 490);
        assert!(audit.take().is_empty());
    }

    #[test]
    fn what_is_done_by_a_question_has_a_line_and_who_waits_for_it_no_more() {
        let mut audit = Audit::default();
        let mut ask = |at_s: u64, user: &str, question: &str, outcome| {
            let at = (LeaseEpoch(1), at_s * SECOND_NS);
            audit.asked(at, (&Caller::User(user.into()), question.as_bytes()), &outcome);
            audit.take()
        };
        let first = ask(1, "op", "replicate 5 6 - 2 1", Ok(Vec::new()));
        assert_eq!((first.len(), &first[0]["user"]), (1, &json!("op")));
        assert_eq!(first[0]["command"], "replicate");
        assert_eq!(first[0]["about"], "5 6 - 2 1");
        for at_s in [2, 61, 120] {
            assert_eq!(ask(at_s, "op", "replicate 5 6 - 2 1", Ok(Vec::new())), [] as [Value; 0]);
        }
        let refused = ask(120, "anna", "replicate 5 6 - 2 1", Err(Refusal::NotOperator.into()));
        assert_eq!(refused[0]["outcome"], "refused");
        assert_eq!(ask(120, "op", "fsck-begin repair", Ok(Vec::new())).len(), 1);
        assert_eq!(ask(181, "op", "replicate 5 6 - 2 1", Ok(Vec::new())).len(), 1, "another one");
    }

    #[test]
    fn long_names_are_cut_so_that_a_line_fits_a_packet() {
        let text = bounded("ä".repeat(5000));
        assert_eq!(text.chars().count(), VALUE_CHARS_MAX + 1);
    }
}
