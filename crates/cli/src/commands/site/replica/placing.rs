//! `byname site replica add|drop|move`: replicas of single files, one after the other.

use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_access::Tree;
use byname_catalog::Command;
use byname_catalog::id::{ContentId, DiskId, InodeId, Version};
use byname_packet::Name;
use serde_json::Value;
use std::time::Duration;

/// Pause between two looks at how far the head is.
const PAUSE: Duration = Duration::from_millis(300);
const NO_REPLICA: &str = "an empty file is on no disk";

/// A file's replicas as the catalog has them.
struct Found {
    content: ContentId,
    disks: Vec<u64>,
}

fn look(tree: &mut Tree, name: &Name) -> Outcome<Option<Found>> {
    let lines = tree.query("replicas", name)?;
    let number = |line: &Value, key: &str| line[key].as_u64().unwrap_or_default();
    let Some(first) = lines.first() else { return Ok(None) };
    let (inode, version) = (number(first, "inode"), number(first, "version"));
    let content = ContentId { inode: InodeId(inode), version: Version(version) };
    Ok(Some(Found { content, disks: lines.iter().map(|line| number(line, "disk")).collect() }))
}

/// Has a replica made, and waits for it; `from` is the disk that it leaves.
pub(super) fn make(
    tree: &mut Tree,
    name: &Name,
    (from, to): (Option<u64>, Option<u64>),
) -> Outcome {
    let shown = output::name(name.view());
    let found =
        look(tree, name)?.ok_or_else(|| Failure::usage(format!("{shown}: {NO_REPLICA}")))?;
    if let Some(from) = from.filter(|from| !found.disks.contains(from)) {
        return Err(Failure::usage(format!("{shown}: it is not on disk {from}")));
    }
    if let Some(to) = to.filter(|to| found.disks.contains(to)) {
        return Err(Failure::usage(format!("{shown}: it is on disk {to} already")));
    }
    let disk = |disk: Option<u64>| disk.map_or_else(|| "-".to_owned(), |it| it.to_string());
    let ContentId { inode, version } = found.content;
    let (from_disk, to_disk, had) = (disk(from), disk(to), found.disks.len());
    let wish = format!("replicate {} {} {from_disk} {to_disk} {had}", inode.0, version.0);
    loop {
        let now = look(tree, name)?.filter(|now| now.content == found.content);
        let now = now.ok_or_else(|| {
            Failure::new(Code::Other, format!("{shown}: it was written again meanwhile"))
        })?;
        let new = now.disks.iter().find(|disk| !found.disks.contains(disk));
        let is_gone = from.is_none_or(|from| !now.disks.contains(&from));
        if let Some(new) = new.filter(|_| is_gone) {
            let left = from.map_or_else(String::new, |from| format!(" in place of disk {from}"));
            output::err_line(&format!("{shown}: on disk {new}{left}"));
            return Ok(());
        }
        let told = tree.ask(&wish)?;
        if let Some(failure) = told.first().and_then(|line| line["failure"].as_str()) {
            let failure = output::one_line(failure);
            return Err(Failure::new(Code::Other, format!("{shown}: {failure}")));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Lets a replica go.
pub(super) fn let_go(tree: &mut Tree, name: &Name, from: u64, is_sure: bool) -> Outcome {
    let shown = output::name(name.view());
    let found = look(tree, name)?.filter(|found| found.disks.contains(&from));
    let found =
        found.ok_or_else(|| Failure::usage(format!("{shown}: it is not on disk {from}")))?;
    let left = output::count(found.disks.len() as u64 - 1, "replica");
    if !is_sure {
        let text = format!("{shown}: disk {from} was not told to drop it; {left} would be left");
        return Err(Failure::usage(text).hint("say --yes"));
    }
    tree.run(name, Command::DropReplica { content: found.content, disk: DiskId(from) })?;
    output::err_line(&format!("{shown}: disk {from} is told to drop it; {left} left"));
    Ok(())
}
