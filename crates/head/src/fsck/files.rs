//! The second half: every file's replicas, and the names of those that have findings.

use std::collections::{BTreeMap, BTreeSet};

use byname_catalog::id::{ContentId, DiskId, InodeId};
use byname_catalog::{Detail, EntryName, Failure, Inode, NamedEntry, Reader};
use byname_packet::Name;
use byname_site::SiteName;

use super::finding::{Finding, Problem, Remedy};
use super::{Fsck, ROWS, Stage};

/// Entries by what they lead to: directories, and what has findings.
#[derive(Default)]
pub(crate) struct Names {
    wanted: BTreeSet<InodeId>,
    entries: BTreeMap<InodeId, (InodeId, EntryName)>,
}

impl Fsck {
    /// Looks at more of the catalog, once the disks have come to their end.
    pub(crate) fn step(&mut self, reader: &Reader<'_>, site: &SiteName) -> Result<(), Failure> {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Files { after } => {
                let inodes = reader.inodes(after, ROWS)?;
                for (id, inode) in &inodes {
                    self.files += u64::from(inode.content().is_some_and(|it| it.size > 0));
                    self.count_replicas(*id, inode);
                    self.count_versions(reader, *id, inode)?;
                }
                self.stage = match inodes.last() {
                    Some((last, _)) if inodes.len() == ROWS => Stage::Files { after: Some(*last) },
                    _ => {
                        let names = Names::of(self.findings.iter().map(|it| it.content.inode));
                        Stage::Names { after: None, names }
                    }
                };
            }
            Stage::Names { after, mut names } => {
                let entries = reader.entries(after.as_ref(), ROWS)?;
                let after = entries.last().filter(|_| entries.len() == ROWS).cloned();
                entries.into_iter().for_each(|entry| names.take(entry));
                match after {
                    Some(_) => self.stage = Stage::Names { after, names },
                    None => self.finish(&names, reader, site)?,
                }
            }
            other => self.stage = other,
        }
        Ok(())
    }

    /// Versions that a policy keeps have as many replicas as the file.
    fn count_versions(
        &mut self,
        reader: &Reader<'_>,
        id: InodeId,
        inode: &Inode,
    ) -> Result<(), Failure> {
        if inode.versions.bytes == 0 {
            return Ok(());
        }
        for (content, _) in reader.versions(id)? {
            let old = Inode { detail: Detail::File(content), ..inode.clone() };
            self.count_replicas(id, &old);
        }
        Ok(())
    }

    fn count_replicas(&mut self, id: InodeId, inode: &Inode) {
        // What was removed for good only waits for its disks.
        let content = inode.content().filter(|it| it.size > 0 && inode.link_count > 0);
        let Some(content) = content else { return };
        let of = ContentId { inode: id, version: content.version };
        let is_bad = |disk: &&DiskId| self.bad.contains(&(of, **disk));
        let is_seen = |disk: &DiskId| {
            self.scans.iter().any(|scan| scan.id == *disk && scan.end == Some(Ok(())))
        };
        let left: Vec<&DiskId> = content.replicas.iter().filter(|disk| !is_bad(disk)).collect();
        let seen = left.iter().filter(|disk| is_seen(disk)).count();
        let wanted = usize::from(inode.policy.replica_count);
        let problem = match (seen, left.len()) {
            (0, 0) => Problem::Lost,
            (0, _) => Problem::OutOfReach,
            (_, left) if left < wanted => Problem::Under,
            (_, left) if left > wanted => Problem::Over,
            _ => return,
        };
        let counts = if problem == Problem::OutOfReach { seen } else { left.len() };
        self.note(Finding {
            problem,
            content: of,
            disk: None,
            size: content.size,
            replicas: Some((counts as u64, wanted as u64)),
            name: None,
            owner: None,
            remedy: Remedy::People,
        });
    }

    fn finish(
        &mut self,
        names: &Names,
        reader: &Reader<'_>,
        site: &SiteName,
    ) -> Result<(), Failure> {
        let mut findings = std::mem::take(&mut self.findings);
        for finding in &mut findings {
            finding.name = names.name_of(finding.content.inode, site);
            finding.owner = reader.owner(finding.content.inode)?;
            let replicas = match reader.content(finding.content) {
                Ok(content) => content.replicas,
                Err(Failure::Refused(_)) => Vec::new(),
                Err(error) => return Err(error),
            };
            finding.remedy = self.remedy(finding, &replicas);
        }
        self.findings = findings;
        self.findings.sort_by_key(|it| (it.problem, it.name.clone(), it.content, it.disk));
        self.stage = Stage::Done;
        Ok(())
    }
}

impl Names {
    /// Of these.
    pub(crate) fn of(wanted: impl IntoIterator<Item = InodeId>) -> Self {
        Self { wanted: wanted.into_iter().collect(), entries: BTreeMap::new() }
    }

    pub(crate) fn take(&mut self, entry: NamedEntry) {
        if entry.is_directory || self.wanted.contains(&entry.id) {
            // Of several names of a file the first is as good as any.
            self.entries.entry(entry.id).or_insert((entry.directory, entry.name));
        }
    }

    pub(crate) fn name_of(&self, id: InodeId, site: &SiteName) -> Option<String> {
        let (mut id, mut parts) = (id, Vec::new());
        while id != InodeId::ROOT {
            // Entries are read page by page: while they are moved there may be a circle.
            if parts.len() > byname_catalog::PATH_NAMES_MAX {
                return None;
            }
            let (directory, name) = self.entries.get(&id)?;
            parts.push(name);
            id = *directory;
        }
        let mut name: Name = site.view().to_name();
        for part in parts.into_iter().rev() {
            name = name.with_generic(part.as_bytes());
        }
        Some(name.to_string())
    }
}
