//! What users of a site may ask besides paths: its state, disks, users, the change log.
//!
//! ```text
//! Interest  P/32=catalog/query/<digest>, MustBeFresh, signed by a user
//! parameters = [SpeaksFor] subject [SP after]          (text, behind for whom a door asks)
//! content    = lines of JSON, from one committed state
//! ```
//! Rows come in the order of their keys, as many as fit a packet; a last line `{"more":"<after>"}`
//! says how to ask for the rest. Subjects about a path (`place`) are followed by its name as a URI.

mod backup;
mod doors;
mod fsck;
mod limits;
mod lines;
mod loans;
mod place;
mod prove;
mod repairs;
mod top;
mod trash;
mod versions;

use byname_catalog::engine::Engine;
use byname_catalog::id::{DiskId, InodeId, TransactionNumber};
use byname_catalog::{
    Caller, Disk, DiskState, DiskUsage, Failure, KeyHolder, LogRecord, PAGE_ROWS_MAX, Reader,
    Refusal, Subject, User,
};
use byname_packet::{DataBuilder, Interest, NameRef, Signer};
use byname_security::base64;
use byname_security::cert::Certificate;
use byname_site::SiteName;
use serde_json::{Value, json};

use crate::activity::DiskActivity;
use crate::audit::Position;
use crate::commands::CommandAnswer;
use crate::observations::{Observation, Observations};

use lines::{Lines, ROWS_MAX, number};

/// The operation of queries.
const OPERATION: &str = "query";
/// The subject of which the answer is signed by the site in any case.
const SEAL: &str = "backup-seal";
/// Subjects by which operators have something done that outlasts the answer.
const DUTIES: [&str; 6] = [SEAL, "balance", "fsck-begin", "prove-disk", "prove-file", "replicate"];

/// True for the name of a query's Interest.
pub(crate) fn is_query(site: &SiteName, name: NameRef<'_>) -> bool {
    let prefix = site.command(OPERATION);
    prefix.view().is_prefix_of(name) && name.count() == prefix.view().count() + 1
}

/// True for a query whose answer others shall be shown, so that the site's key signs it.
pub(crate) fn is_for_others(interest: &Interest<'_>) -> bool {
    let parameters = interest.application_parameters.unwrap_or_default();
    parameters.strip_prefix(SEAL.as_bytes()).is_some_and(|rest| rest.starts_with(b" "))
}

/// What [`answer`] knows, besides seals, which are counted as such.
const SUBJECTS: [&str; 36] = [
    "access",
    "acl",
    "audit",
    "backup-log",
    "backup-rows",
    "balance",
    "content",
    "describe",
    "disk-of-key",
    "disks",
    "doors",
    "entries",
    "fill",
    "fsck",
    "fsck-begin",
    "fsck-state",
    "lease",
    "loans",
    "log",
    "patterns",
    "prove",
    "prove-disk",
    "prove-file",
    "prove-state",
    "quotas",
    "replicas",
    "replicate",
    "room",
    "status",
    "top",
    "trash",
    "trash-of",
    "users",
    "versions",
    "whoami",
    "xattrs",
];

/// What a query is about, as `top` counts it. Whoever makes one up is told apart from nobody, so
/// that users cannot fill the table.
pub(crate) fn subject(question: &[u8]) -> String {
    let text = std::str::from_utf8(question).unwrap_or_default();
    let subject = text.split(' ').next().unwrap_or_default();
    let is_known = subject == SEAL || SUBJECTS.contains(&subject);
    format!("{OPERATION} {}", if is_known { subject } else { "others" })
}

/// True for a question by which something is done: it is administration, and audited as such.
pub(crate) fn is_duty(question: &[u8]) -> bool {
    let end = question.iter().position(|octet| *octet == b' ').unwrap_or(question.len());
    DUTIES.iter().any(|duty| duty.as_bytes() == &question[..end])
}

/// What there is to answer from.
pub(crate) struct Known<'a> {
    pub(crate) engine: &'a dyn Engine,
    pub(crate) observations: &'a Observations,
    /// The head's time.
    pub(crate) unix_ns: u64,
}

/// The lines that answer a query.
pub(crate) fn answer(
    Known { engine, observations, unix_ns }: Known<'_>,
    (site, caller): (&SiteName, &Caller),
    question: &[u8],
) -> Result<Vec<u8>, Failure> {
    let text = std::str::from_utf8(question).map_err(|_| Refusal::BadName)?;
    let (subject, after) = text.split_once(' ').unwrap_or((text, ""));
    let reader = Reader::new(engine, caller)?;
    match subject {
        "status" => status(&reader, observations),
        "replicate" => repairs::replicate(&reader, &observations.repairs, after),
        "balance" => repairs::balance(&reader, &observations.repairs, after),
        "fill" => repairs::fill(&reader, &observations.repairs, after),
        "disks" => disks(&reader, observations, after),
        "disk-of-key" => disk_of_key(&reader, after),
        "users" => users(&reader, after),
        "doors" => doors::doors(&reader, after),
        "log" => log(&reader, after),
        "backup-rows" => backup::rows(&reader, engine, after),
        "backup-log" => backup::log(&reader, after),
        SEAL => backup::seal(&reader, after, unix_ns),
        "quotas" => limits::quotas(&reader, after, unix_ns),
        "trash" => trash::items(&reader, site, after),
        "trash-of" => trash::of_tree(&reader, &place::of(site, after)?),
        "patterns" => limits::patterns(&reader, after),
        "room" => place::room(&reader, &place::of(site, after)?, unix_ns),
        "replicas" => place::replicas(&reader, &place::of(site, after)?),
        "describe" => place::describe(&reader, site, after),
        "access" => {
            let (name, wanted) = after.split_once(' ').unwrap_or((after, "0"));
            place::access(&reader, site, (name, wanted))
        }
        "entries" => {
            let (name, after) = after.split_once(' ').unwrap_or((after, ""));
            place::entries(&reader, site, (name, after))
        }
        "versions" => {
            let (name, after) = after.split_once(' ').unwrap_or((after, ""));
            versions::of_file(&reader, site, (name, after))
        }
        "content" => place::content(&reader, &place::of(site, after)?),
        "lease" => place::lease(&reader, &place::of(site, after)?),
        "xattrs" => {
            let (name, after) = after.split_once(' ').unwrap_or((after, ""));
            place::xattrs(&reader, &place::of(site, name)?, after)
        }
        "top" => top::top(&reader, observations, after),
        "audit" => audit(&reader, observations, after),
        "loans" => {
            let (user, after) = after.split_once(' ').unwrap_or((after, ""));
            loans::of_user(&reader, site, (user, after))
        }
        "whoami" => whoami((&reader, engine), after),
        "acl" => place::acl(&reader, &place::of(site, after)?),
        "prove-disk" => prove::of_disk(&reader, &observations.proofs, after),
        "prove-file" => prove::of_file(&reader, &observations.proofs, &place::of(site, after)?),
        "prove-state" => prove::state(&reader, &observations.proofs),
        "prove" => prove::outcomes(&reader, &observations.proofs, after),
        "fsck-begin" => fsck::begin(&reader, &observations.fsck, after),
        "fsck-state" => fsck::state(&reader, &observations.fsck),
        "fsck" => fsck::findings(&reader, &observations.fsck, after),
        _ => Err(Refusal::NotFound.into()),
    }
}

/// The Data with an answer.
pub(crate) fn packet(
    interest: &Interest<'_>,
    content: &[u8],
    signer: &dyn Signer,
) -> CommandAnswer {
    let mut wire = Vec::new();
    match DataBuilder::new(interest.name).encode(content, signer, &mut wire) {
        Ok(_) => CommandAnswer::Data(wire),
        Err(error) => {
            tracing::warn!(%error, "cannot sign an answer");
            CommandAnswer::Nack
        }
    }
}

/// Who asks, as the catalog knows him; operators ask about others, too.
fn whoami((reader, engine): (&Reader<'_>, &dyn Engine), user: &str) -> Result<Vec<u8>, Failure> {
    let other = match user {
        "" => None,
        _ if !reader.is_operator() => return Err(Refusal::NotOperator.into()),
        user => Some(Reader::new(engine, &Caller::User(user.to_owned()))?),
    };
    let (user, groups, is_operator) = other.as_ref().unwrap_or(reader).who();
    let mut lines = Lines::default();
    lines.push(&json!({ "user": user, "groups": groups, "operator": is_operator }));
    Ok(lines.0)
}

/// Lines of the audit log behind a place, each with the place behind it, for operators.
fn audit(
    reader: &Reader<'_>,
    observations: &Observations,
    after: &str,
) -> Result<Vec<u8>, Failure> {
    if !reader.is_operator() {
        return Err(Refusal::NotOperator.into());
    }
    let after = Position::read(after).ok_or(Refusal::BadName)?;
    let (mut lines, mut last, mut is_more) = (Lines::default(), after, false);
    let Some(files) = &observations.audit else { return Ok(lines.0) };
    let read = files.read(after, |mut line, at| {
        line["at"] = at.to_string().into();
        is_more = !lines.push(&line);
        last = if is_more { last } else { at };
        !is_more
    });
    if let Err(error) = read {
        tracing::warn!(%error, "the audit log cannot be read");
    }
    if is_more {
        lines.push_more(&last.to_string());
    }
    Ok(lines.0)
}

fn status(reader: &Reader<'_>, observations: &Observations) -> Result<Vec<u8>, Failure> {
    let (usage, limits) = reader.usage(&Subject::Tree(InodeId::ROOT))?;
    let files = observations.repairs.report().files;
    let mut lines = Lines::default();
    lines.push(&json!({
        "transaction": reader.last_transaction()?.0,
        "inodes": usage.inodes,
        "bytes": usage.bytes,
        "reserved_bytes": usage.reserved_bytes,
        "inodes_max": limits.inodes,
        "bytes_max": limits.bytes,
        "disks": reader.disks()?.len(),
        "files_short": files.map(|files| files.short),
        "files_thin": files.map(|files| files.thin),
        "files_out_of_reach": files.map(|files| files.out_of_reach),
        "files_lost": files.map(|files| files.lost),
    }));
    Ok(lines.0)
}

fn disks(
    reader: &Reader<'_>,
    observations: &Observations,
    after: &str,
) -> Result<Vec<u8>, Failure> {
    let after: u64 = if after.is_empty() { 0 } else { number(after)? };
    let mut rows = Vec::new();
    for (id, disk) in reader.disks()?.into_iter().filter(|(id, _)| id.0 > after).take(ROWS_MAX) {
        let usage = reader.disk_usage(id)?;
        let mut line = disk_line(id, &disk, usage, observations.get(id));
        let activity = DiskActivity::of(observations, id);
        line["errors"] = top::errors_line(&activity);
        line["to_drop"] = activity.to_drop.into();
        if let Some(scrub) = observations.scrub(id) {
            line["scrub"] = json!({
                "done_bytes": scrub.done_bytes,
                "total_bytes": scrub.total_bytes,
                "ended_s": scrub.ended_s,
                "rotten": scrub.rotten_count,
            });
        }
        if let Some(copy) = observations.copy(id) {
            line["catalog"] = json!({
                "through": copy.through.0,
                "bytes": copy.stored_bytes,
                "problem": copy.problem,
            });
        }
        rows.push((id.0.to_string(), line));
    }
    Ok(Lines::of(rows.into_iter()))
}

/// The disk that the key with this digest signs for, and its certificate. Names of keys are what
/// whoever made them chose, so they say nothing.
fn disk_of_key(reader: &Reader<'_>, digest: &str) -> Result<Vec<u8>, Failure> {
    let (mut lines, mut after) = (Lines::default(), Vec::new());
    loop {
        let rows = reader.keys(&after, PAGE_ROWS_MAX)?;
        for (_, key) in &rows {
            let KeyHolder::Disk(disk) = key.holder else { continue };
            let certificate = Certificate::decode(&key.certificate).ok();
            if certificate.is_some_and(|certificate| certificate.key_id().to_string() == digest) {
                lines.push(&json!({
                    "disk": disk.0,
                    "place": reader.disk(disk)?.label,
                    "certificate": base64::encode_url(&key.certificate),
                }));
                return Ok(lines.0);
            }
        }
        match rows.last() {
            Some((name, _)) if rows.len() == PAGE_ROWS_MAX => after = name.clone(),
            _ => return Ok(lines.0),
        }
    }
}

fn disk_line(id: DiskId, disk: &Disk, usage: DiskUsage, observation: Option<Observation>) -> Value {
    json!({
        "disk": id.0,
        "space": disk.space,
        "server": disk.server,
        "place": disk.label,
        "generation": disk.generation,
        "state": state_name(disk.state),
        "up": disk.is_up,
        "answers": match observation {
            None => "nothing yet".to_owned(),
            Some(Observation::Well { .. }) => "well".to_owned(),
            Some(Observation::Silent) => "not at all".to_owned(),
            Some(Observation::Refuses(why)) => why.to_string(),
        },
        "load": match observation {
            Some(Observation::Well { load }) => Some(load as f64 / 100.0),
            _ => None,
        },
        "drain_bytes_per_s": Some(disk.drain_bytes_per_s).filter(|rate| *rate < u64::MAX),
        "capacity_bytes": disk.capacity_bytes,
        "used_bytes": usage.used_bytes,
        "reserved_bytes": usage.reserved_bytes,
    })
}

pub(crate) fn state_name(state: DiskState) -> &'static str {
    match state {
        DiskState::ReadWrite => "rw",
        DiskState::ReadOnly => "ro",
        DiskState::Drain => "drain",
        DiskState::Off => "off",
    }
}

fn users(reader: &Reader<'_>, after: &str) -> Result<Vec<u8>, Failure> {
    let users = reader.users(Some(after).filter(|after| !after.is_empty()), ROWS_MAX)?;
    let row = |(name, user): (String, User)| {
        let line = json!({ "user": name, "groups": user.groups, "operator": user.is_operator });
        (name, line)
    };
    Ok(Lines::of(users.into_iter().map(row)))
}

fn log(reader: &Reader<'_>, after: &str) -> Result<Vec<u8>, Failure> {
    let after = TransactionNumber(if after.is_empty() { 0 } else { number(after)? });
    let records = reader.log_after(after, ROWS_MAX)?;
    let row = |record: LogRecord| {
        let number = record.number.0;
        let line = json!({
            "transaction": number,
            "epoch": record.epoch.0,
            "at_ns": record.at_ns,
            "user": record.user,
            "command": record.command,
            "rows": record.writes.len(),
        });
        (number.to_string(), line)
    };
    Ok(Lines::of(records.into_iter().map(row)))
}
