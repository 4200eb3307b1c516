//! Which trees are mounted: one, several on the command line, or those of a table.

use crate::exit::{Failure, Outcome};
use byname_mount::TREES_MAX;
use std::io::Read;
use std::path::Path;

/// Octets of a table.
const TABLE_BYTES_MAX: u64 = 1 << 20;

/// A tree that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Its directory in the mount; `None` if it is the mount.
    pub(super) place: Option<String>,
    /// Name or link.
    pub(super) target: String,
}

/// The trees that arguments name; `is_table`: they are one table.
pub(super) fn wanted(targets: &[String], is_table: bool) -> Outcome<Vec<Wanted>> {
    let wanted = match targets {
        [table] if is_table => of_table(Path::new(table))?,
        _ if is_table => return Err(Failure::usage("--table takes one file")),
        [target] => vec![Wanted { place: None, target: target.clone() }],
        several => several.iter().map(|target| placed(target)).collect::<Outcome<_>>()?,
    };
    match wanted.len() {
        1..=TREES_MAX => Ok(wanted),
        count => Err(Failure::usage(format!("{count} trees: a mount has 1 to {TREES_MAX}"))),
    }
}

/// `LINK=PLACE`. Links have equals signs, too, but no place has a colon or a slash.
fn placed(text: &str) -> Outcome<Wanted> {
    let split = text.rsplit_once('=').filter(|(_, place)| !place.contains([':', '/', ',', '&']));
    let (target, place) = split.ok_or_else(|| {
        Failure::usage(format!(
            "{text}: of several trees each needs =DIRECTORY behind it, one name without a slash"
        ))
    })?;
    Ok(Wanted { place: Some(place.to_owned()), target: target.to_owned() })
}

/// A line for each tree: its directory, white space, its name or link. `#` begins a comment.
fn of_table(path: &Path) -> Outcome<Vec<Wanted>> {
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| Failure::disk(path, error))?;
    let read = file.take(TABLE_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| Failure::disk(path, error))?;
    let mut wanted = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        let (Some(place), Some(target), None) = (words.next(), words.next(), words.next()) else {
            let at = format!("{}:{}", path.display(), number + 1);
            return Err(Failure::usage(format!("{at}: a directory and a link are wanted")));
        };
        wanted.push(Wanted { place: Some(place.to_owned()), target: target.to_owned() });
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::placed;

    #[test]
    fn a_place_is_what_stands_behind_the_last_equals_sign() {
        let link = "byname:/lab?via=tcp://host&key=SHA256:abc";
        let found = placed(&format!("{link}=run 7")).unwrap();
        assert_eq!((found.target.as_str(), found.place.as_deref()), (link, Some("run 7")));
        for wrong in [link, "/lab", "byname:/lab,via=tcp://host,key=SHA256:abc"] {
            assert!(placed(wrong).is_err(), "{wrong}");
        }
    }
}
