//! Whether what stands at the target is the published version already.

use std::fs::File;

use byname_security::tree::{Hash, TreeBuilder};
use byname_transfer::discovery::Discovered;
use byname_transfer::reader::ObjectPlan;
use rustix::fs::FileType;

use super::{FileJob, attributes};
use crate::config::Stop;
use crate::error::ClientError;
use crate::part_file::{Target, set_attributes};
use crate::progress::FileOutcome;

impl FileJob<'_> {
    /// What there is to say of the target if nothing has to be read.
    pub(super) fn look_at_target(
        &self,
        discovered: &Discovered,
        plan: &ObjectPlan,
    ) -> Result<Option<FileOutcome>, ClientError> {
        let Some(stat) = self.target.stat()? else { return Ok(None) };
        if self.context.options.no_clobber {
            return Ok(Some(FileOutcome::Kept));
        }
        let (Some(root), Some(size)) = (plan.root(), plan.size) else { return Ok(None) };
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_file || u64::try_from(stat.st_size) != Ok(size) {
            return Ok(None);
        }
        // A target that cannot be read may still be replaced.
        let Ok(file) = self.target.open() else { return Ok(None) };
        if hash_file(&self.target, &file, size, &self.context.config.stop) != Some(root) {
            return Ok(None);
        }
        set_attributes(&file, attributes(discovered)).map_err(|error| self.target.error(error))?;
        self.context.keep(&file, discovered);
        Ok(Some(FileOutcome::Identical))
    }
}

/// The root of the file at `target`, `None` if it has another size, cannot be read, or there is no
/// time for it.
pub(crate) fn hash_file(target: &Target, file: &File, size: u64, stop: &Stop) -> Option<Hash> {
    let mut builder = TreeBuilder::new(size);
    let mut buffer = vec![0; 1 << 20];
    let mut offset = 0;
    while !stop.is_requested() {
        match target.disk.read_at(file, &target.shown, &mut buffer, offset) {
            Ok(0) => return builder.finish().ok().map(|tree| tree.root),
            Ok(count) => {
                builder.push(&buffer[..count]).ok()?;
                offset += count as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    None
}
