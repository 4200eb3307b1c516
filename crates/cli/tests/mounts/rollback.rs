//! Older versions, rightly signed, after newer ones were seen through a mount.

use crate::harness::{Home, write};
use crate::scene::can_mount;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What a mount of `link` shows of the file, or the reason why it shows nothing.
fn shown(reader: &Home, link: &str, at: &Path, flags: &[&str]) -> Result<Vec<u8>, String> {
    let mount = reader.byname().args(["mount", link]).arg(at).args(flags).output().unwrap();
    if !mount.status.success() {
        return Err(String::from_utf8_lossy(&mount.stderr).into_owned());
    }
    let read = std::fs::read(at.join("a")).map_err(|error| error.to_string());
    reader.run(&["umount", at.to_str().unwrap()]).ok();
    read
}

/// The publisher has lost its memory and found an old file: all that it signs is right and old, as
/// if somebody replayed it.
#[test]
fn what_a_mount_has_shown_no_later_mount_goes_back_from() {
    if !can_mount("what_a_mount_has_shown_no_later_mount_goes_back_from") {
        return;
    }
    for flags in [&[][..], &["--no-cache"], &["--fresh"]] {
        let (home, reader) = (Home::new(), Home::new());
        let (dir, at) = (home.work("d"), reader.work("mnt"));
        write(&dir.join("a"), b"two");
        let mut up = home.up(&dir, "/lab/d");
        Home::new().run(&["stat", &up.link_to("a")]).ok();
        assert_eq!(shown(&reader, &up.link, &at, flags), Ok(b"two".to_vec()));
        assert_eq!(up.daemon.interrupt(), Some(0), "{}", up.daemon.log());
        std::fs::remove_dir_all(home.path().join("home/state")).unwrap();
        write(&dir.join("a"), b"one");
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let file = std::fs::File::options().write(true).open(dir.join("a")).unwrap();
        file.set_modified(old).unwrap();
        let up = home.up(&dir, "/lab/d");
        shown(&reader, &up.link, &at, flags).expect_err("older than what was seen");
        reader.run(&["trust", "forget", "/lab/d"]).ok();
        assert_eq!(shown(&reader, &up.link, &at, flags), Ok(b"one".to_vec()), "on demand");
    }
}
