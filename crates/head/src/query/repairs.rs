//! Questions that want replicas to be moved: they are repeated as long as somebody waits for it.

use byname_catalog::id::{ContentId, DiskId, InodeId, Version};
use byname_catalog::{Failure, LABEL_BYTES_MAX, Reader, Refusal};
use serde_json::json;

use super::lines::{Lines, number};
use crate::repair::{BalanceWish, Fill, RepairDesk, RepairReport, Wish};

/// Wants a replica of a content on a disk more, or on another one: `inode version from to had`. A
/// disk is `-` where it does not matter; `had` is the number of replicas that there were. The
/// answer says why it could not be done, if it was tried.
pub(super) fn replicate(
    reader: &Reader<'_>,
    desk: &RepairDesk,
    wish: &str,
) -> Result<Vec<u8>, Failure> {
    if !reader.is_operator() {
        return Err(Refusal::NotOperator.into());
    }
    let parts: Vec<&str> = wish.split(' ').collect();
    let [inode, version, from, to, had] = parts[..] else { return Err(Refusal::BadName.into()) };
    let disk = |text: &str| match text {
        "-" => Ok(None),
        text => number(text).map(|id| Some(DiskId(id))),
    };
    let content = ContentId { inode: InodeId(number(inode)?), version: Version(number(version)?) };
    let (from, to, had) = (disk(from)?, disk(to)?, number(had)?);
    let wish = Wish { content, from, to, had, is_rotten: false };
    [wish.from, wish.to].into_iter().flatten().try_for_each(|id| reader.disk(id).map(drop))?;
    let asked = desk.ask(wish);
    let failure = asked.unwrap_or(Some("too many replicas are asked for: try again later"));
    let mut lines = Lines::default();
    lines.push(&json!({ "failure": failure }));
    Ok(lines.0)
}

/// Wants the disks of a space to be as full as each other: `space percent rate`, the rate in octets
/// a second or `-`. The answer says how far that is.
pub(super) fn balance(
    reader: &Reader<'_>,
    desk: &RepairDesk,
    wish: &str,
) -> Result<Vec<u8>, Failure> {
    if !reader.is_operator() {
        return Err(Refusal::NotOperator.into());
    }
    let parts: Vec<&str> = wish.split(' ').collect();
    let [space, percent, rate] = parts[..] else { return Err(Refusal::BadName.into()) };
    let bytes_per_s = (rate != "-").then(|| number(rate)).transpose()?;
    let (fill, within_percent) = fill_of(reader, (space, percent))?;
    desk.ask_balance(BalanceWish { space: space.to_owned(), within_percent, bytes_per_s });
    Ok(levels(&fill, desk))
}

/// How full the disks of a space are: `space percent`.
pub(super) fn fill(
    reader: &Reader<'_>,
    desk: &RepairDesk,
    question: &str,
) -> Result<Vec<u8>, Failure> {
    let question = question.split_once(' ').ok_or(Refusal::BadName)?;
    Ok(levels(&fill_of(reader, question)?.0, desk))
}

fn fill_of(reader: &Reader<'_>, (space, percent): (&str, &str)) -> Result<(Fill, u64), Failure> {
    if space.len() > LABEL_BYTES_MAX {
        return Err(Refusal::BadLabel.into());
    }
    let within_percent = number(percent)?.min(100);
    Ok((Fill::of(reader, space, within_percent)?, within_percent))
}

fn levels(fill: &Fill, desk: &RepairDesk) -> Vec<u8> {
    let RepairReport { in_flight, balanced_bytes, is_balance_stuck, .. } = desk.report();
    let disks: Vec<_> = fill.percents().map(|(id, percent)| json!([id.0, percent])).collect();
    let mut lines = Lines::default();
    // More disks than have room in a packet are not listed.
    lines.push(&json!({
        "left_bytes": fill.left_bytes(),
        "moved_bytes": balanced_bytes,
        "in_flight": in_flight,
        "stuck": is_balance_stuck,
        "percent": fill.mean_percent(),
        "disks": if disks.len() <= 128 { disks } else { Vec::new() },
    }));
    lines.0
}
