//! Two homes that know nothing of each other, and a link.

use crate::harness::{Home, below, entries, noise, write};

fn published(home: &Home) -> std::path::PathBuf {
    let dir = home.work("run7");
    write(&dir.join("events.bin"), &noise(3_000_000, 1));
    write(&dir.join("empty"), b"");
    write(&dir.join("naïve file.txt"), b"spaces and UTF-8");
    std::fs::create_dir(dir.join("sub")).unwrap();
    write(&dir.join("sub/one"), b"1");
    dir
}

#[test]
fn the_link_is_all_a_stranger_needs() {
    let (a, b) = (Home::new(), Home::new());
    let dir = published(&a);
    let up = a.up(&dir, "/lab/run7");
    b.run(&["get", &up.link_to("events.bin"), "-o", "copy.bin"]).ok();
    assert_eq!(std::fs::read(b.path().join("copy.bin")).unwrap(), noise(3_000_000, 1));
    b.run(&["get", "-r", &up.link, "-o", "tree"]).ok();
    for file in ["events.bin", "empty", "naïve file.txt", "sub/one"] {
        let copy = std::fs::read(b.path().join("tree").join(file)).unwrap();
        assert_eq!(copy, std::fs::read(dir.join(file)).unwrap(), "{file}");
    }
    // The link was for those commands only.
    b.run(&["cat", "/lab/run7/sub/one", "--connect", &up.uri()]).fails_with(6, "byname trust add");
}

#[test]
fn without_the_link_refused_with_the_line_to_run() {
    let (a, b) = (Home::new(), Home::new());
    let dir = published(&a);
    let up = a.up(&dir, "/lab/run7");
    let uri = up.uri();
    let refused = b.run(&["get", "/lab/run7/sub/one", "--connect", &uri, "-o", "x"]);
    let refused = refused.fails_with(6, "SHA256:");
    assert!(refused.stderr().contains("byname trust add"), "{}", refused.stderr());
    assert!(!b.path().join("x").exists());
    b.run(&["trust", "add", &up.link]).ok();
    b.run(&["get", "/lab/run7/sub/one", "--connect", &uri, "-o", "x"]).ok();
    assert_eq!(std::fs::read(b.path().join("x")).unwrap(), b"1");
    // A key is trusted for its own prefix only.
    b.run(&["ls", "/other", "--connect", &uri]).fails_with(4, "");
}

#[test]
fn a_wrong_key_is_refused() {
    let (a, b) = (Home::new(), Home::new());
    let dir = published(&a);
    let up = a.up(&dir, "/lab/run7");
    b.run(&["key", "generate", "/lab/run7"]).ok();
    let listed = b.run(&["key", "list", "--json"]).ok().stdout();
    let other = &listed[listed.find("SHA256:").unwrap()..][..50];
    let at = up.link.find("SHA256:").unwrap();
    let forged = format!("{}{}", &up.link[..at], other);
    let c = Home::new();
    c.run(&["get", &below(&forged, "sub/one"), "-o", "x"]).fails_with(6, "key");
    assert_eq!(entries(c.path()).iter().filter(|name| *name != "home").count(), 0);
}

#[test]
fn scripts_may_trust_on_first_use_and_give_up_authentication() {
    let (a, b) = (Home::new(), Home::new());
    let dir = published(&a);
    let up = a.up(&dir, "/lab/run7");
    let uri = up.uri();
    b.run(&["cat", "--insecure", "/lab/run7/sub/one", "--connect", &uri]).ok();
    b.run(&["cat", "/lab/run7/sub/one", "--connect", &uri]).fails_with(6, "");
    b.run(&["cat", "--trust-on-first-use", "/lab/run7/sub/one", "--connect", &uri]).ok();
    b.run(&["cat", "/lab/run7/sub/one", "--connect", &uri]).ok();
}

#[test]
fn the_publisher_reads_its_own_without_ceremony() {
    let a = Home::new();
    let dir = published(&a);
    let _up = a.up(&dir, "/lab/run7");
    let out = a.run(&["cat", "/lab/run7/naïve file.txt"]).ok();
    assert_eq!(out.bytes(), b"spaces and UTF-8");
    let listed = a.run(&["ls", "/lab/run7"]).ok().stdout();
    assert_eq!(listed, "empty\nevents.bin\nnaïve file.txt\nsub/\n");
}
