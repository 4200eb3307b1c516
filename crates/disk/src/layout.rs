//! Names of files on a disk.
//!
//! | | |
//! |---|---|
//! | `label` `lock` `epoch` | what disk it is, who serves it, the highest epoch seen |
//! | `scrub` | how far it is in reading all contents anew, and what has rotted |
//! | `site.ndncert` | certificate of the site's key: whose orders count |
//! | `objects/xx/<id>-<version>` | contents |
//! | `records/xx/<id>-<version>` | what is known of them |
//! | `incoming/` | what is being written; emptied at each start |
//! | `dropped/<id>-<version>` | contents that are gone for good: empty files |
//! | `catalog/<edition>` | copies of the catalog's rows |
//! | `quarantine/` | what does not fit together; for people |
//! | `state/` | trees, kept by the file server |

use std::path::{Path, PathBuf};
use std::sync::Arc;

use byname_catalog::id::{ContentId, InodeId, Version};
use byname_transfer::naming::content_path;

use crate::error::DiskError;
use crate::files::Files;

/// Directories below `objects` and `records`.
const SHARDS: u16 = 256;

/// Paths of one disk.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) root: PathBuf,
    pub(crate) files: Arc<dyn Files>,
}

impl Layout {
    pub(crate) fn new(files: Arc<dyn Files>, root: &Path) -> Self {
        Self { root: root.to_owned(), files }
    }

    pub(crate) fn label(&self) -> PathBuf {
        self.root.join("label")
    }

    pub(crate) fn site_certificate(&self) -> PathBuf {
        self.root.join("site.ndncert")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    pub(crate) fn epoch(&self) -> PathBuf {
        self.root.join("epoch")
    }

    pub(crate) fn scrub(&self) -> PathBuf {
        self.root.join("scrub")
    }

    pub(crate) fn objects(&self) -> PathBuf {
        self.root.join("objects")
    }

    pub(crate) fn records(&self) -> PathBuf {
        self.root.join("records")
    }

    pub(crate) fn incoming(&self) -> PathBuf {
        self.root.join("incoming")
    }

    pub(crate) fn quarantine(&self) -> PathBuf {
        self.root.join("quarantine")
    }

    pub(crate) fn dropped(&self) -> PathBuf {
        self.root.join("dropped")
    }

    pub(crate) fn catalog(&self) -> PathBuf {
        self.root.join("catalog")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    pub(crate) fn object(&self, content: ContentId) -> PathBuf {
        self.objects().join(relative(content))
    }

    pub(crate) fn record(&self, content: ContentId) -> PathBuf {
        self.records().join(relative(content))
    }

    pub(crate) fn tombstone(&self, content: ContentId) -> PathBuf {
        self.dropped().join(file_name(content))
    }

    /// Where content is while it is being written.
    pub(crate) fn incoming_object(&self, content: ContentId) -> PathBuf {
        self.incoming().join(file_name(content))
    }

    pub(crate) fn incoming_record(&self, content: ContentId) -> PathBuf {
        self.incoming().join(format!("{}.record", file_name(content)))
    }

    /// Paths of all entries of one of its directories.
    pub(crate) fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, DiskError> {
        self.files.list(directory).map_err(DiskError::at(directory))
    }

    /// The directories of which all the others are made.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        let tops = [self.objects(), self.records()];
        let shards = tops.iter().flat_map(|top| (0..SHARDS).map(|n| top.join(format!("{n:02x}"))));
        let shards: Vec<PathBuf> = shards.collect();
        let others =
            [self.incoming(), self.dropped(), self.catalog(), self.quarantine(), self.state()];
        tops.into_iter().chain(shards).chain(others).collect()
    }
}

fn relative(content: ContentId) -> String {
    let path = content_path(content.inode.0, content.version.0);
    String::from_utf8_lossy(&path).into_owned()
}

pub(crate) fn file_name(content: ContentId) -> String {
    format!("{:016x}-{:016x}", content.inode.0, content.version.0)
}

/// The content that a file name is of; `None` for names that are not exactly of this form.
pub(crate) fn parse_file_name(name: &str) -> Option<ContentId> {
    let (id, version) = name.split_once('-')?;
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let content = ContentId { inode: InodeId(number(id)?), version: Version(number(version)?) };
    (file_name(content) == name).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_read_back_and_others_are_not() {
        let content = ContentId { inode: InodeId(0x203), version: Version(u64::MAX) };
        assert_eq!(parse_file_name(&file_name(content)), Some(content));
        for name in ["", "-", "203-1", "0000000000000203-0000000000000001.record"] {
            assert_eq!(parse_file_name(name), None, "{name}");
        }
        let upper = file_name(content).to_uppercase();
        assert_eq!(parse_file_name(&upper), None, "one name for each content");
    }

    #[test]
    fn objects_lie_where_the_file_server_looks_for_them() {
        let content = ContentId { inode: InodeId(0x203), version: Version(9) };
        let object =
            Layout::new(Arc::new(crate::files::SystemFiles), Path::new("/d")).object(content);
        assert_eq!(object, Path::new("/d/objects/03/0000000000000203-0000000000000009"));
    }
}
