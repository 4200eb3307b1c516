//! A line that says how much is published and how much is hidden, counted in the background.

use super::daemon::{Publication, state_dir};
use crate::output;
use byname_profile::Paths;
use byname_store::{Census, Exposure, census};

/// Counts on a thread of its own, and says what was found.
pub(crate) fn in_background(publication: &Publication, exposure: Exposure, paths: &Paths) {
    let state = state_dir(paths, &publication.name);
    let (directory, name) = (publication.directory.clone(), publication.name.clone());
    std::thread::spawn(move || match census(&directory, exposure, &state) {
        Ok(counted) => {
            output::err_line(&format!("{}: {}", output::name(name.view()), line(&counted)));
        }
        Err(error) => tracing::warn!("{}: {error}", directory.display()),
    });
}

fn line(counted: &Census) -> String {
    let Census { files, bytes, dotted, private, others, unreadable, is_cut } = *counted;
    let more = if is_cut { "more than " } else { "" };
    let mut text = match files {
        0 => "0 files are published".to_owned(),
        1 => format!("1 file is published, {}", output::size(bytes)),
        _ => format!("{more}{files} files are published, {}", output::size(bytes)),
    };
    let hidden = [
        (dotted, "begin with a dot (--hidden publishes them)"),
        (private, "are readable only by you (--private publishes them)"),
        (others, "are links that leave the directory, or no files"),
        (unreadable, "are directories that cannot be read"),
    ];
    let shown = hidden.iter().filter(|(count, _)| *count > 0);
    let shown: Vec<String> = shown.map(|(count, why)| format!("{count} {why}")).collect();
    if !shown.is_empty() {
        text.push_str(&format!("; hidden: {}", shown.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_nothing_is_published_is_said() {
        let counted = Census { private: 25, ..Census::default() };
        let expected = "0 files are published; hidden: 25 are readable only by you \
                        (--private publishes them)";
        assert_eq!(line(&counted), expected);
        let counted = Census { files: 2, bytes: 2048, dotted: 1, ..Census::default() };
        assert!(line(&counted).starts_with("2 files are published, 2.00 KiB; hidden: 1 begin"));
    }
}
