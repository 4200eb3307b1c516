//! What is done about findings. Nothing that may be the last of a file is ever given up, and what
//! the catalog has not given out is left to people.

use std::collections::BTreeMap;

use byname_catalog::Command;
use byname_catalog::id::{ContentId, DiskId};

use super::Fsck;
use super::finding::{Finding, Problem, Remedy};

/// Contents in one command, at most.
const DISCARDED_MAX: usize = 128;

impl Fsck {
    /// Replicas of a file that are on disks which have listed them, and are as they should be.
    fn proved<'a>(
        &'a self,
        content: ContentId,
        replicas: &'a [DiskId],
    ) -> impl Iterator<Item = DiskId> + 'a {
        let is_seen = |disk: &DiskId| {
            self.scans.iter().any(|scan| scan.id == *disk && scan.end == Some(Ok(())))
        };
        let is_bad = move |disk: &DiskId| self.bad.contains(&(content, *disk));
        replicas.iter().filter(move |disk| is_seen(disk) && !is_bad(disk)).copied()
    }

    /// What is done about a finding; `replicas` are those of its content by the catalog's word.
    pub(super) fn remedy(&self, finding: &Finding, replicas: &[DiskId]) -> Remedy {
        let content = finding.content;
        let is_proved = self.proved(content, replicas).next().is_some();
        match finding.problem {
            Problem::Missing | Problem::Size | Problem::Content if is_proved => Remedy::Replace,
            Problem::Under if is_proved => Remedy::Add,
            Problem::Over => match self.surplus(finding, replicas) {
                disks if disks.is_empty() => Remedy::People,
                disks => Remedy::Surplus(disks),
            },
            Problem::Orphaned => Remedy::Discard,
            Problem::Leaving => Remedy::Waits,
            _ => Remedy::People,
        }
    }

    /// Replicas that a file has too many of, while enough of the others are proved: those on the
    /// fullest disks, as a balance would take them first.
    fn surplus(&self, finding: &Finding, replicas: &[DiskId]) -> Vec<DiskId> {
        let wanted = finding.replicas.and_then(|(_, wanted)| usize::try_from(wanted).ok());
        let mut proved: Vec<DiskId> = self.proved(finding.content, replicas).collect();
        let bytes_on = |disk: &DiskId| {
            let scan = self.scans.iter().find(|scan| scan.id == *disk);
            scan.map_or(0, |scan| scan.listed_bytes)
        };
        proved.sort_by_key(|disk| (bytes_on(disk), disk.0));
        proved.split_off(wanted.unwrap_or(usize::MAX).max(1).min(proved.len()))
    }

    /// Commands for what was found, once all was compared.
    pub(crate) fn remedies(&self) -> Vec<Command> {
        let mut commands = Vec::new();
        let mut discarded: BTreeMap<DiskId, Vec<ContentId>> = BTreeMap::new();
        for finding in &self.findings {
            let content = finding.content;
            match (&finding.remedy, finding.disk) {
                (Remedy::Replace, Some(disk)) => {
                    commands.push(Command::DropReplica { content, disk });
                }
                (Remedy::Surplus(disks), _) => {
                    let drop_it = |disk: &DiskId| Command::DropReplica { content, disk: *disk };
                    commands.extend(disks.iter().map(drop_it));
                }
                (Remedy::Discard, Some(disk)) => discarded.entry(disk).or_default().push(content),
                _ => {}
            }
        }
        for (disk, contents) in discarded {
            for contents in contents.chunks(DISCARDED_MAX) {
                commands.push(Command::Discard { disk, contents: contents.to_vec() });
            }
        }
        commands
    }
}
