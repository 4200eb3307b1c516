//! The newest version seen of each name, kept between commands, so that nobody can pass off an old
//! version as the current one.
//!
//! One line a name, `VERSION NAME`, rewritten whole and renamed into place. Two commands that end
//! at once may lose one another's additions; the rule then is as weak as for a name not seen yet.

use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::paths::Paths;
use byname_packet::Name;
use byname_transfer::versions::VersionMemory;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

fn file(paths: &Paths) -> PathBuf {
    paths.state.join("seen-versions")
}

fn read(paths: &Paths) -> Outcome<Vec<(Name, u64)>> {
    let file = file(paths);
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Failure::disk(&file, error)),
    };
    let mut seen = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let parsed = line
            .split_once(' ')
            .and_then(|(version, name)| Some((name.parse().ok()?, version.parse().ok()?)));
        seen.push(parsed.ok_or_else(|| {
            let place = format!("{}:{}", file.display(), index + 1);
            Failure::new(Code::LocalDisk, format!("{place}: not a version and a name"))
                .hint("remove the line, or the file to forget all versions seen")
        })?);
    }
    Ok(seen)
}

/// Fills a client's memory.
pub(crate) fn load(paths: &Paths, memory: &mut VersionMemory) -> Outcome {
    for (name, version) in read(paths)? {
        memory.insert(name, version);
    }
    Ok(())
}

/// Keeps a client's memory.
pub(crate) fn save(paths: &Paths, memory: &VersionMemory) -> Outcome {
    let mut text = String::new();
    for (name, version) in memory.iter() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{version} {name}");
    }
    write(paths, &text)
}

/// Forgets a name.
pub(crate) fn forget(paths: &Paths, name: &Name) -> Outcome {
    let mut seen = read(paths)?;
    let before = seen.len();
    seen.retain(|(known, _)| !name.view().is_prefix_of(known.view()));
    if seen.len() == before {
        let shown = output::name(name.view());
        return Err(Failure::new(Code::NotFound, format!("no version of {shown} was seen")));
    }
    let text = seen.iter().fold(String::new(), |mut text, (name, version)| {
        let _ = writeln!(text, "{version} {name}");
        text
    });
    write(paths, &text)
}

fn write(paths: &Paths, text: &str) -> Outcome {
    let target = file(paths);
    let result = std::fs::create_dir_all(&paths.state).and_then(|()| {
        let temporary = paths.state.join(format!(".seen-versions.{}", std::process::id()));
        let mut out = std::fs::File::create(&temporary)?;
        out.write_all(text.as_bytes())?;
        std::fs::rename(&temporary, &target)
    });
    result.map_err(|error| Failure::disk(&target, error))
}
