//! Programs that open links through `byname-profile`, against a publisher.

use crate::five_lines;
use crate::harness::{Home, noise, write};
use byname_client::ClientError;
use byname_profile::{Link, Profile, ProfileError, UnknownKey};

fn published(home: &Home) -> std::path::PathBuf {
    let dir = home.work("run7");
    write(&dir.join("events.root"), &noise(3_000_000, 1));
    write(&dir.join("log.txt"), b"all went well");
    dir
}

/// The profile of a home, as the binary would find it there.
fn profile(home: &Home) -> Profile {
    Profile::below(&home.path().join("home")).unwrap()
}

#[test]
fn five_lines_open_a_link_list_it_and_read_ranges() {
    let (a, b) = (Home::new(), Home::new());
    let dir = published(&a);
    let up = a.up(&dir, "/lab/run7");
    let (names, bytes) = five_lines::read(&profile(&b), &up.link, "events.root").unwrap();
    assert_eq!(names, [b"events.root".to_vec(), b"log.txt".to_vec()]);
    let content = noise(3_000_000, 1);
    assert_eq!(bytes, [&content[..16], &content[1_000_000..1_000_100]].concat());
    let (_, bytes) = five_lines::read(&profile(&b), &up.link, "log.txt").unwrap();
    assert_eq!(bytes, b"all went well", "there is nothing beyond the end");
}

#[test]
fn errors_have_facts_and_numbers() {
    let (a, b) = (Home::new(), Home::new());
    let dir = published(&a);
    let up = a.up(&dir, "/lab/run7");
    let errno = |error: &ClientError| rustix::io::Errno::from_raw_os_error(error.errno());
    let profile = profile(&b);
    let link = Link { key: None, ..up.link.parse().unwrap() };
    let error = profile.open(&link).unwrap().stat(&link.name).unwrap_err();
    assert_eq!(errno(&error), rustix::io::Errno::NOKEY);
    let unknown = UnknownKey::of(&error).unwrap();
    // The line to run is the one that the command line takes.
    let line = unknown.command();
    let argument = line.strip_prefix("byname trust add '").and_then(|it| it.strip_suffix('\''));
    b.run(&["trust", "add", argument.unwrap()]).ok();
    let session = profile.open(&link).unwrap();
    assert!(session.stat(&link.name).is_ok());
    let missing = session.open(&link.name.with_generic(b"no")).unwrap_err();
    assert_eq!(errno(&missing), rustix::io::Errno::NOENT);
    assert_eq!(errno(&session.open(&link.name).unwrap_err()), rustix::io::Errno::ISDIR);
    let file = link.name.with_generic(b"log.txt");
    assert_eq!(errno(&session.list(&file).unwrap_err()), rustix::io::Errno::NOTDIR);
    drop(up);
    let gone = profile.open(&link).unwrap_err();
    assert!(matches!(gone, ProfileError::Client(_)), "{gone:?}");
    assert_eq!(gone.errno(), rustix::io::Errno::CONNREFUSED.raw_os_error());
}

#[test]
fn a_session_keeps_the_versions_it_has_seen() {
    let (a, b) = (Home::new(), Home::new());
    let dir = published(&a);
    let up = a.up(&dir, "/lab/run7");
    let profile = profile(&b);
    let link: Link = up.link.parse().unwrap();
    let name = link.name.with_generic(b"log.txt");
    let kept = || std::fs::read_to_string(profile.seen_versions().path()).unwrap_or_default();
    let session = profile.open(&link).unwrap();
    session.stat(&name).unwrap();
    assert_eq!(kept(), "");
    session.keep_versions().unwrap();
    assert!(kept().trim_end().ends_with(" /lab/run7/log.txt"), "{}", kept());
    session.stat(&link.name.with_generic(b"events.root")).unwrap();
    drop(session);
    assert_eq!(kept().lines().count(), 2, "{}", kept());
}
