//! `get --dry-run`: every change that the same command without it would make.
//!
//! A line an entry, itemised as rsync does: `>f+++++++++` is a new file, `>f.st......` one of
//! another size and time, `.f..t......` one that needs another time only, `cd+++++++++` a new
//! directory, `*deleting` one that would go.

use super::Args;
use super::extra::{self, Extra};
use crate::commands::filter::{Candidate, Filter};
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::target::Session;
use crate::walk::{self, Found, Wanted};
use byname_client::{Client, ClientError};
use byname_packet::Name;
use byname_transfer::metadata::ContentRoot;
use byname_transfer::naming::is_confined_link;
use serde_json::json;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Links to directories that `get` follows, one in the other.
const LINKS_MAX: u8 = 8;

/// A change that would be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    New,
    Changed,
    /// The same content with another time or other permissions.
    Attributes,
}

/// Published facts of a file that decide.
struct Published {
    size: Option<u64>,
    mtime_ns: Option<u64>,
    mode: Option<u16>,
    root: Option<[u8; 32]>,
}

/// What would be done, in numbers, and directories that nothing was listed for yet.
struct Plan<'a> {
    args: &'a Args,
    target: &'a Path,
    new_count: u64,
    changed_count: u64,
    identical_count: u64,
    kept_count: u64,
    deleted_count: u64,
    failed_count: u64,
    bytes: u64,
    /// New directories that are shown with the first thing in them.
    ahead: Vec<PathBuf>,
}

pub(super) fn run(
    args: &Args,
    session: &mut Session,
    filter: &mut Filter,
    target: &Path,
) -> Outcome {
    let mut plan = Plan {
        args,
        target,
        new_count: 0,
        changed_count: 0,
        identical_count: 0,
        kept_count: 0,
        deleted_count: 0,
        failed_count: 0,
        bytes: 0,
        ahead: Vec::new(),
    };
    let is_tree = args.recursive && session.run(|client, name| plan.tree(client, name, filter))?;
    if !is_tree {
        session.run(|client, name| {
            let published = look_up(client, name)?;
            plan.file(Path::new(""), &published)
        })?;
    }
    let missing = filter.missing();
    for path in &missing {
        output::err_line(&output::one_line(&format!("{}: is not published", path.display())));
    }
    plan.failed_count += missing.len() as u64;
    if args.delete && is_tree && plan.failed_count == 0 {
        for Extra { path, is_directory } in extra::find(target, filter)? {
            plan.deleted_count += 1;
            plan.show("*deleting  ", "deleted", &path, (is_directory, None));
        }
    }
    filter.remarks().iter().for_each(|line| output::err_line(&output::one_line(line)));
    plan.finish()
}

fn look_up(client: &mut Client, name: &Name) -> Result<Published, ClientError> {
    let metadata = client.lookup(name)?.metadata;
    let root = match metadata.root {
        ContentRoot::Known(root) => Some(root),
        ContentRoot::Pending | ContentRoot::Absent => None,
    };
    let (size, mtime_ns, mode) = (metadata.size, metadata.mtime_ns, metadata.mode);
    Ok(Published { size, mtime_ns, mode, root })
}

impl Plan<'_> {
    /// False if it is no directory.
    fn tree(
        &mut self,
        client: &mut Client,
        name: &Name,
        filter: &mut Filter,
    ) -> Result<bool, ClientError> {
        let walked = walk::published(client, name, Wanted::Details, &mut |client, found| {
            self.entry(client, found, filter)
        });
        match walked {
            Err(error) if crate::failure::is_a_file(&error) => Ok(false),
            other => other.map(|()| true),
        }
    }

    /// True if it is a directory to look into.
    fn entry(
        &mut self,
        client: &mut Client,
        found: &Found<'_>,
        filter: &mut Filter,
    ) -> Result<bool, ClientError> {
        let Some(path) = &found.path else {
            self.failed_count += 1;
            let shown = output::name(found.name.view());
            output::err_line(&format!("{shown}: makes no safe file name: skipped"));
            return Ok(false);
        };
        let details = found.details.as_ref();
        let entry = Candidate {
            path,
            is_directory: found.is_directory,
            size: details.and_then(|details| details.size),
            mtime_ns: details.and_then(|details| details.mtime_ns),
        };
        if !filter.accepts(entry) {
            return Ok(false);
        }
        let is_filtered = filter.is_active();
        if let Some(target) = found.link_target() {
            let depth = path.components().count() - 1;
            if !self.args.copy_links && is_confined_link(depth, target) {
                self.link(path, target);
                return Ok(false);
            }
            if client.lookup(&found.name)?.metadata.is_directory() {
                return Ok(found.links < LINKS_MAX && self.directory(path, is_filtered));
            }
        }
        if found.is_directory {
            return Ok(self.directory(path, is_filtered));
        }
        let root = details.and_then(|details| details.version?.root);
        let published = match details.filter(|_| root.is_some()) {
            Some(details) => Published {
                size: details.size,
                mtime_ns: details.mtime_ns,
                mode: Some(details.mode),
                root,
            },
            None => look_up(client, &found.name)?,
        };
        self.file(path, &published)?;
        Ok(false)
    }

    fn directory(&mut self, path: &Path, is_filtered: bool) -> bool {
        match std::fs::symlink_metadata(self.target.join(path)) {
            Ok(found) if found.is_dir() => return true,
            Ok(_) => {
                self.in_the_way(&self.target.join(path), "something that is no directory");
                return false;
            }
            Err(_) => {}
        }
        self.ahead.retain(|above| path.starts_with(above));
        self.ahead.push(path.to_owned());
        if !is_filtered {
            self.show_ahead(path);
        }
        true
    }

    /// Shows the new directories above something that goes into them.
    fn show_ahead(&mut self, path: &Path) {
        for above in std::mem::take(&mut self.ahead) {
            if path.starts_with(&above) {
                self.show("cd+++++++++", "new", &above, (true, None));
            }
        }
    }

    fn link(&mut self, path: &Path, target: &[u8]) {
        let local = self.target.join(path);
        let found = std::fs::symlink_metadata(&local).ok();
        let there = std::fs::read_link(&local).ok();
        if there.is_some_and(|there| there.as_os_str().as_bytes() == target) {
            self.identical_count += 1;
            return;
        }
        if found.is_some() && self.args.no_clobber {
            self.kept_count += 1;
            return;
        }
        if found.as_ref().is_some_and(std::fs::Metadata::is_dir) {
            self.in_the_way(&local, "a directory");
            return;
        }
        self.show_ahead(path);
        let (word, itemised) = match found {
            Some(_) => ("changed", "cLc........"),
            None => ("new", "cL+++++++++"),
        };
        *(if word == "new" { &mut self.new_count } else { &mut self.changed_count }) += 1;
        let (shown, target) = (output::path(path), output::component_path(target));
        if self.args.json {
            let fields = json!({
                "change": word, "type": "symlink", "path": shown, "target": target,
            });
            output::json_line(fields);
        } else {
            output::out_line(&format!("{itemised} {shown} -> {target}"));
        }
    }

    fn in_the_way(&mut self, local: &Path, what: &str) {
        self.failed_count += 1;
        let shown = output::one_line(&local.display().to_string());
        output::err_line(&format!("{shown}: {what} is in the way"));
    }

    fn file(&mut self, path: &Path, published: &Published) -> Result<(), ClientError> {
        let local = match path.as_os_str().is_empty() {
            true => self.target.to_owned(),
            false => self.target.join(path),
        };
        let found = std::fs::symlink_metadata(&local).ok();
        if found.is_some() && self.args.no_clobber {
            self.kept_count += 1;
            return Ok(());
        }
        if found.as_ref().is_some_and(std::fs::Metadata::is_dir) {
            self.in_the_way(&local, "a directory");
            return Ok(());
        }
        let Some(found) = found.filter(std::fs::Metadata::is_file) else {
            self.change(path, Change::New, ">f+++++++++", published);
            return Ok(());
        };
        let has_size = published.size == Some(found.len());
        let mtime_ns = found.mtime().saturating_mul(1_000_000_000) + found.mtime_nsec();
        let has_time = published.mtime_ns.is_none_or(|ns| i64::try_from(ns) == Ok(mtime_ns));
        let has_mode = published.mode.is_none_or(|m| u32::from(m) & 0o777 == found.mode() & 0o777);
        // As `get` does: a file of this size and time is not read in a tree unless asked for.
        let reads = self.args.checksum || !has_time || !self.args.recursive;
        let has_content = has_size && (!reads || is_content(&local, published.root)?);
        let mark = |is_same: bool, mark: char| if is_same { '.' } else { mark };
        let (size, time) = (mark(has_size, 's'), mark(has_time, 't'));
        let mode = mark(has_mode, 'p');
        let content = mark(has_content || !has_size, 'c');
        let itemised = format!("f{content}{size}{time}{mode}.....");
        if !has_content {
            self.change(path, Change::Changed, &format!(">{itemised}"), published);
        } else if has_time && has_mode {
            self.identical_count += 1;
        } else {
            self.identical_count += 1;
            self.change(path, Change::Attributes, &format!(".{itemised}"), published);
        }
        Ok(())
    }

    fn change(&mut self, path: &Path, change: Change, itemised: &str, published: &Published) {
        self.show_ahead(path);
        let word = match change {
            Change::New => "new",
            Change::Changed => "changed",
            Change::Attributes => "attributes",
        };
        match change {
            Change::New => self.new_count += 1,
            Change::Changed => self.changed_count += 1,
            Change::Attributes => {}
        }
        if change != Change::Attributes {
            self.bytes += published.size.unwrap_or(0);
        }
        self.show(itemised, word, path, (false, published.size));
    }

    fn show(
        &self,
        itemised: &str,
        word: &str,
        path: &Path,
        (is_directory, size): (bool, Option<u64>),
    ) {
        // A single file has no path below what was asked for.
        let path = if path.as_os_str().is_empty() { self.target } else { path };
        let shown = output::path(path);
        if self.args.json {
            let kind = if is_directory { "directory" } else { "file" };
            output::json_line(json!({ "change": word, "type": kind, "path": shown, "size": size }));
        } else {
            let slash = if is_directory { "/" } else { "" };
            output::out_line(&format!("{itemised} {shown}{slash}"));
        }
    }

    fn finish(&self) -> Outcome {
        if self.args.json {
            output::json_line(json!({
                "dry_run": true,
                "files": self.new_count + self.changed_count,
                "files_new": self.new_count,
                "files_changed": self.changed_count,
                "files_skipped": self.identical_count + self.kept_count,
                "files_deleted": self.deleted_count,
                "files_failed": self.failed_count,
                "bytes": self.bytes,
            }));
        } else {
            let (new, changed) = (self.new_count, self.changed_count);
            let mut text = format!(
                "would fetch {} ({new} new, {changed} changed), {}; {} identical already",
                output::count(new + changed, "file"),
                output::size(self.bytes),
                self.identical_count,
            );
            if self.kept_count > 0 {
                text.push_str(&format!(", {} kept (--no-clobber)", self.kept_count));
            }
            if self.args.delete {
                text.push_str(&format!("; would delete {}", self.deleted_count));
            }
            output::err_line(&text);
        }
        if self.failed_count == 0 {
            return Ok(());
        }
        let message = format!("{} of the entries would fail", self.failed_count);
        Err(Failure::new(Code::SomeFailed, message))
    }
}

/// True if a local file has this content. Of what is not known nobody can say so.
fn is_content(local: &Path, root: Option<[u8; 32]>) -> Result<bool, ClientError> {
    let Some(root) = root else { return Ok(false) };
    let failed = |source| ClientError::LocalDisk { path: local.to_owned(), source };
    let mut hasher = blake3::Hasher::new();
    let file = std::fs::File::open(local).map_err(failed)?;
    hasher.update_reader(file).map_err(failed)?;
    Ok(*hasher.finalize().as_bytes() == root)
}
