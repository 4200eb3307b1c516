//! Links and bookmarks as people paste them, and keys that are taken back.

use crate::harness::{Home, Up, below, write};

const NAMES: [&str; 9] =
    ["plain", "a?b", "c#d&e", "f%25g", "h,i", "spaces and ä", "j,via=k", "l?m=n", "o?"];

fn published(home: &Home) -> Up {
    let dir = home.work("d/sub");
    for name in NAMES {
        write(&dir.join(name), name.as_bytes());
    }
    home.up(&home.path().join("d"), "/lab/d")
}

fn key_of(link: &str) -> String {
    link[link.find("SHA256:").unwrap()..].to_owned()
}

/// An unquoted word in any shell.
#[test]
fn a_printed_link_needs_no_quotes() {
    let home = Home::new();
    let up = published(&home);
    let mut shell = std::process::Command::new("sh");
    let byname = home.byname();
    shell.arg("-c").arg(format!(
        "{} cat {}",
        env!("CARGO_BIN_EXE_byname"),
        up.link_to("sub/plain")
    ));
    for (key, value) in byname.get_envs() {
        match value {
            Some(value) => shell.env(key, value),
            None => shell.env_remove(key),
        };
    }
    let output = shell.current_dir(home.path()).output().unwrap();
    assert_eq!(output.stdout, b"plain", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_ls_prints_can_be_pasted_into_links_names_and_bookmarks() {
    let (home, reader) = (Home::new(), Home::new());
    let up = published(&home);
    reader.run(&["remote", "add", "lab", &up.link]).ok();
    let listed = reader.run(&["ls", "-R", "lab:"]).ok().stdout();
    let files: Vec<&str> = listed.lines().filter(|line| !line.ends_with('/')).collect();
    assert_eq!(files.len(), NAMES.len(), "{listed}");
    for file in files {
        let shown = file.strip_prefix("sub/").unwrap().replace("%25", "%");
        let content = shown.replace("f%g", "f%25g").replace("%2C", ",").replace("%3F", "?");
        let older = up.link.replacen(",via=", "?via=", 1).replacen(",key=", "&key=", 1);
        for target in [format!("lab:{file}"), below(&up.link, file), below(&older, file)] {
            let found = reader.run(&["cat", &target]).ok();
            assert!(NAMES.iter().any(|name| name.as_bytes() == found.bytes()), "{target}");
            assert!(content.contains('%') || found.bytes() == content.as_bytes(), "{target}");
        }
        reader.run(&["trust", "add", &up.link]).ok();
        let plain = format!("/lab/d/{file}");
        reader.run(&["cat", &plain, "--connect", &up.uri()]).ok();
    }
}

#[test]
fn bookmarks_are_listed_renamed_and_removed() {
    let (home, reader) = (Home::new(), Home::new());
    let up = published(&home);
    reader.run(&["trust", "add", &up.link, "--remote", "lab"]).ok();
    reader.run(&["remote", "add", "byname", &up.link]).fails_with(2, "neither byname nor ndn");
    reader.run(&["remote", "rename", "lab", "run7"]).ok();
    let listed = reader.run(&["remote", "list"]).ok().stdout();
    assert!(listed.contains("run7") && listed.contains(&up.link), "{listed}");
    reader.run(&["get", "-r", "run7:sub", "-o", "copy"]).ok();
    assert!(reader.path().join("copy/plain").exists());
    reader.run(&["ls", "lab:sub"]).fails_with(3, "no bookmark \"lab\"");
    reader.run(&["remote", "remove", "run7"]).ok();
    reader.run(&["ls", "run7:"]).fails_with(3, "no bookmark");
}

/// `byname get byname:/lab?via=…&key=…` without quotes: the key goes to the next command.
#[test]
fn a_link_that_a_shell_has_cut_is_explained() {
    let (home, reader) = (Home::new(), Home::new());
    let up = published(&home);
    let cut = format!("byname:/lab/d?via={}", up.uri());
    reader.run(&["ls", &cut]).fails_with(6, "put it between quotes");
    reader.run(&["trust", "add", &cut]).fails_with(2, "put it between quotes");
    reader.run(&["remote", "add", "lab", &cut]).fails_with(2, "put it between quotes");
}

#[test]
fn nobody_answers_at_two_addresses_names_both() {
    let reader = Home::new();
    let [one, two] = [(); 2].map(|()| format!("tcp://127.0.0.1:{}", crate::harness::free_port()));
    let link = format!("byname:/lab/d,via={one},via={two}");
    let said = reader.run(&["ls", &link]).fails_with(4, "nobody listens on").stderr();
    assert!(said.contains(&one) && said.contains(&two), "{said}");
}

/// The road of a reader when a key is taken back, and the way back from it.
#[test]
fn a_revoked_key_is_told_and_can_be_taken_back() {
    let (home, reader) = (Home::new(), Home::new());
    let up = published(&home);
    let key = key_of(&up.link);
    reader.run(&["trust", "revoke", &key]).ok();
    reader.run(&["trust", "add", &up.link]).fails_with(5, "trust unrevoke");
    reader.run(&["ls", &up.link]).fails_with(5, "revoked");
    reader.run(&["trust", "unrevoke", &key]).ok();
    reader.run(&["trust", "unrevoke", &key]).fails_with(3, "not revoked");
    reader.run(&["ls", &up.link]).ok();

    let said = home.run(&["key", "revoke", &key]).ok().stderr();
    assert!(said.contains(&format!("byname trust revoke {key}")), "{said}");
    assert!(said.contains("makes a new key") && said.contains("key unrevoke"), "{said}");
    home.run(&["key", "unrevoke", &key]).ok();
    home.run(&["key", "unrevoke", &key]).fails_with(3, "not revoked");
    let rotated = home.run(&["key", "rotate", "/lab/d"]).ok();
    let said = home.run(&["key", "revoke", &key]).ok().stderr();
    assert!(
        said.contains("byname trust add byname:/lab/d,key=SHA256:"),
        "{said}{}",
        rotated.stderr()
    );
}
