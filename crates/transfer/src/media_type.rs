//! Media types by the extension of a name. No content is looked at: that would cost a read of every
//! file, and what it seems to be may be of its writer's choosing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The media type that files of such a name have; `None` if their extension has none.
pub fn of_name(name: &[u8]) -> Option<&'static str> {
    mime_guess::from_path(OsStr::from_bytes(name)).first_raw()
}

#[cfg(test)]
mod tests {
    use super::of_name;

    #[test]
    fn the_extension_says_the_media_type_and_nothing_else_does() {
        assert_eq!(of_name(b"notes.txt"), Some("text/plain"));
        assert_eq!(of_name(b"PICTURE.PNG"), Some("image/png"));
        assert_eq!(of_name(b"a.tar.gz"), Some("application/gzip"));
        for name in [&b"txt"[..], b".txt", b"run7.unknown", b"a.", b"a.\xff"] {
            assert_eq!(of_name(name), None, "{}", name.escape_ascii());
        }
    }
}
