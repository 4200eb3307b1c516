//! `put --dry-run`: every change that the same command without it would make.
//!
//! A line an entry, itemised as rsync does: `<f+++++++++` is a new file, `<f.st......` one of
//! another size and time, `.f..t......` one that needs another time only, `cd+++++++++` a new
//! directory, `*deleting` one that would go.

use crate::output;
use byname_writer::Change;
use serde_json::json;
use std::path::Path;

/// Changes that were told, in numbers.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) new_count: u64,
    pub(super) changed_count: u64,
    pub(super) bytes: u64,
}

impl Plan {
    pub(super) fn change(&mut self, path: &Path, change: Change<'_>, as_json: bool) {
        let shown = output::path(path);
        let (itemised, word, kind, size) = match change {
            Change::Directory => ("cd+++++++++".to_owned(), "new", "directory", None),
            Change::File { size } => {
                self.new_count += 1;
                self.bytes += size;
                ("<f+++++++++".to_owned(), "new", "file", Some(size))
            }
            Change::Version { size, is_same_size, is_same_time } => {
                self.changed_count += 1;
                self.bytes += size;
                let mark = |is_same: bool, mark: char| if is_same { '.' } else { mark };
                let content = mark(!is_same_size, 'c');
                let (of_size, time) = (mark(is_same_size, 's'), mark(is_same_time, 't'));
                let itemised = format!("<f{content}{of_size}{time}......");
                (itemised, "changed", "file", Some(size))
            }
            Change::Time { size } => (".f..t......".to_owned(), "attributes", "file", Some(size)),
            Change::Link { target, replaces } => {
                return self.link(&shown, target, replaces, as_json);
            }
        };
        if as_json {
            output::json_line(json!({ "change": word, "type": kind, "path": shown, "size": size }));
        } else {
            let slash = if kind == "directory" { "/" } else { "" };
            output::out_line(&format!("{itemised} {shown}{slash}"));
        }
    }

    fn link(&mut self, shown: &str, target: &[u8], replaces: bool, as_json: bool) {
        let (itemised, word) = match replaces {
            true => ("cLc........", "changed"),
            false => ("cL+++++++++", "new"),
        };
        *(if replaces { &mut self.changed_count } else { &mut self.new_count }) += 1;
        let target = output::component_path(target);
        if as_json {
            output::json_line(json!({
                "change": word, "type": "symlink", "path": shown, "target": target,
            }));
        } else {
            output::out_line(&format!("{itemised} {shown} -> {target}"));
        }
    }
}

/// A line about something that was removed, or would be.
pub(super) fn removed(path: &Path, is_directory: bool, (as_json, is_dry): (bool, bool)) {
    let shown = output::path(path);
    let slash = if is_directory { "/" } else { "" };
    if as_json {
        let kind = if is_directory { "directory" } else { "file" };
        output::json_line(json!({ "change": "deleted", "type": kind, "path": shown }));
    } else if is_dry {
        output::out_line(&format!("*deleting   {shown}{slash}"));
    } else {
        output::err_line(&format!("deleted {shown}{slash}"));
    }
}

#[cfg(test)]
mod tests {
    use super::Plan;
    use byname_writer::Change;
    use std::path::Path;

    #[test]
    fn changes_are_counted() {
        let mut plan = Plan::default();
        let path = Path::new("a");
        plan.change(path, Change::Directory, true);
        plan.change(path, Change::File { size: 3 }, false);
        let version = Change::Version { size: 4, is_same_size: false, is_same_time: true };
        plan.change(path, version, false);
        plan.change(path, Change::Time { size: 9 }, false);
        plan.change(path, Change::Link { target: b"x", replaces: true }, true);
        assert_eq!((plan.new_count, plan.changed_count, plan.bytes), (1, 2, 7));
    }
}
