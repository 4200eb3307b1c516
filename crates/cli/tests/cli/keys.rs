//! Identities, rotation, revocation, and clocks.

use crate::harness::{Home, write};

#[test]
fn a_rotated_key_is_vouched_for_by_the_old_one() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    write(&dir.join("x"), b"content");
    let mut up = a.up(&dir, "/lab/d");
    let old_link = up.link_to("x");
    up.daemon.kill();
    a.run(&["key", "rotate", "/lab/d"]).ok();
    let again = a.up(&dir, "/lab/d");
    assert_ne!(again.link_to("x"), old_link, "a new key");
    b.run(&["cat", &old_link, "--connect", &again.uri()]).ok();
    b.run(&["cat", &again.link_to("x")]).ok();
}

#[test]
fn a_revoked_key_is_refused_and_says_so() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    write(&dir.join("x"), b"content");
    let up = a.up(&dir, "/lab/d");
    let link = up.link_to("x");
    b.run(&["cat", &link]).ok();
    let key = &link[link.find("SHA256:").unwrap()..];
    b.run(&["trust", "revoke", key]).ok();
    b.run(&["cat", &link]).fails_with(5, "revoked");
}

#[test]
fn expired_and_wrong_clock_are_told_apart() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    write(&dir.join("x"), b"content");
    a.run(&["key", "generate", "/lab/d", "--not-after", "20200101T000000"]).ok();
    let up = a.up(&dir, "/lab/d");
    b.run(&["cat", &up.link_to("x")]).fails_with(5, "expired");
    let c = Home::new();
    let dir = c.work("d");
    write(&dir.join("x"), b"content");
    c.run(&["key", "generate", "/lab/d", "--not-before", "20900101T000000"]).ok();
    let up = c.up(&dir, "/lab/d");
    b.run(&["cat", &up.link_to("x")]).fails_with(5, "clock");
}

#[test]
fn an_ecdsa_key_signs_as_well() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    write(&dir.join("x"), b"content");
    a.run(&["key", "generate", "/lab/d", "--algorithm", "ecdsa-p256"]).ok();
    let up = a.up(&dir, "/lab/d");
    assert!(a.run(&["key", "list"]).ok().stdout().contains("ecdsa-p256"));
    assert_eq!(b.run(&["cat", &up.link_to("x")]).ok().bytes(), b"content");
    b.run(&["cat", &up.link_to("y")]).fails_with(3, "/lab/d/y");
    a.run(&["key", "export", "/lab/d"]).ok();
}

#[test]
fn trust_is_listed_and_taken_back() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    write(&dir.join("x"), b"content");
    let up = a.up(&dir, "/lab/d");
    b.run(&["trust", "add", &up.link]).ok();
    let listed = b.run(&["trust", "list"]).ok().stdout();
    assert!(listed.contains("/lab/d") && listed.contains("SHA256:"), "{listed}");
    b.run(&["cat", "/lab/d/x", "--connect", &up.uri()]).ok();
    b.run(&["trust", "remove", "/lab/d"]).ok();
    b.run(&["cat", "/lab/d/x", "--connect", &up.uri()]).fails_with(6, "");
    b.run(&["trust", "remove", "/lab/d"]).fails_with(3, "/lab/d");
}

#[test]
fn keys_with_open_permissions_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let a = Home::new();
    let dir = a.work("d");
    a.run(&["key", "generate", "/lab/d"]).ok();
    let keys = a.path().join("home/data/keys");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&keys, open).unwrap();
    a.run(&["up", dir.to_str().unwrap(), "--name", "/lab/d"]).fails_with(7, "chmod");
}

/// A file of other software.
fn foreign(name: &str) -> String {
    format!("{}/../../vectors/security/foreign/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn keys_of_other_software_sign_here() {
    let (a, b) = (Home::new(), Home::new());
    let dir = a.work("d");
    write(&dir.join("x"), b"content");
    let word = a.path().join("word");
    write(&word, b"opensesame\n");
    let word = word.to_str().unwrap();
    for (files, name) in [
        (vec!["ndnd-ed25519.key", "ndnd-ed25519.cert"], "/lab/ed"),
        (vec!["ndnd-ecdsa.key"], "/lab/ec"),
        (vec!["python-ndn-rsa.privkey", "python-ndn-rsa.ndncert"], "/mersa"),
        (vec!["openssl-ecdsa-sha256.safebag"], "/me"),
    ] {
        let mut args = vec!["key".to_owned(), "import".to_owned()];
        args.extend(files.iter().map(|file| foreign(file)));
        args.extend(["--passphrase-file".to_owned(), word.to_owned()]);
        let took = a.run(&args).ok();
        assert!(took.stderr().contains(&format!("took in {name}/KEY/")), "{}", took.stderr());
        let up = a.up(&dir, &format!("{name}/d"));
        assert_eq!(b.run(&["cat", &up.link_to("x")]).ok().bytes(), b"content", "{name}");
    }
    assert!(a.run(&["key", "list"]).ok().stdout().contains("rsa"));
    let nameless = foreign("python-ndn-ecdsa.privkey");
    b.run(&["key", "import", &nameless]).fails_with(1, "--name");
    b.run(&["key", "import", &nameless, "--name", "/b"]).ok();
    let bag = foreign("openssl-rsa-sha1.safebag");
    b.run(&["key", "import", &bag]).fails_with(2, "--passphrase-file");
    b.run(&["key", "import", &foreign("README.md")]).fails_with(1, "base64");
}

#[test]
fn a_key_moves_in_a_safe_bag_and_as_pem() {
    let (a, b, c) = (Home::new(), Home::new(), Home::new());
    let id = a.run(&["key", "generate", "/lab"]).ok().stdout();
    let word = a.path().join("word");
    write(&word, b"correct horse");
    let wrong = a.path().join("wrong");
    write(&wrong, b"battery staple");
    let bag = a.path().join("lab.safebag");
    let export = ["key", "export", "/lab", "--format"];
    let safebag = [&export[..], &["safebag", "--passphrase-file", word.to_str().unwrap()]].concat();
    write(&bag, a.run(&safebag).ok().bytes());
    let import = ["key", "import", bag.to_str().unwrap(), "--passphrase-file"];
    b.run(&[&import[..], &[wrong.to_str().unwrap()]].concat()).fails_with(1, "passphrase is wrong");
    b.run(&[&import[..], &[word.to_str().unwrap()]].concat()).ok();
    assert!(b.run(&["key", "show", "/lab"]).ok().stdout().contains(id.trim()));

    let public = a.run(&[&export[..], &["pem"]].concat()).ok().stdout();
    assert!(public.contains("NDN CERT") && !public.contains("NDN KEY"));
    let pem = a.path().join("lab.pem");
    write(&pem, a.run(&[&export[..], &["pem", "--private"]].concat()).ok().bytes());
    c.run(&["key", "import", pem.to_str().unwrap()]).ok();
    assert!(c.run(&["key", "show", "/lab"]).ok().stdout().contains(id.trim()));
    a.run(&[&export[..], &["base64", "--private"]].concat()).fails_with(2, "pem");
}
