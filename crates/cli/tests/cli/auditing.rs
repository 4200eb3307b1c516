//! The audit log of a site: who did what, and who was refused.

use crate::harness::{Home, wait_for};
use crate::writing::{User, site_with_directory};
use serde_json::Value;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn who_did_what_is_written_and_what_was_refused_too() {
    let mut site = site_with_directory();
    let mut head = site.head.take();
    let anna = User::new(&site, "anna", "physics");
    anna.run(&["mkdir", "/lab/physics/a"]).ok();
    anna.run(&["mkdir", "/lab/mine"]).fails_with(7, "the modes do not allow it");
    anna.run(&["setfacl", "-m", "u:eve:-", "/lab/physics/a"]).ok();
    anna.run(&["site", "audit", "--site", "/lab"]).fails_with(7, "only an operator");
    let eve = Home::new();
    eve.run(&["trust", "add", &site.link]).ok();
    eve.run(&["site", "user", "key", "--site", "/lab", "--user", "eve"]).ok();
    site.read(&eve, &["mkdir", "/lab/physics/b"]).fails_with(6, "does not know the key");

    let all = lines(&site.run(&["audit"]).ok().stdout());
    let is = |line: &Value, of: [&str; 4]| {
        let keys = ["user", "command", "name", "outcome"];
        keys.iter().zip(of).all(|(key, value)| line[*key] == value)
    };
    let find = |of: [&str; 4]| all.iter().position(|line| is(line, of));
    let made = find(["anna", "mkdir", "/lab/physics/a", "done"]).expect("made");
    let refused = find(["anna", "mkdir", "/lab/mine", "refused"]).expect("refused");
    let listed = find(["anna", "set-acl", "/lab/physics/a", "done"]).expect("listed");
    assert!(made < refused && refused < listed, "{all:?}");
    assert_eq!(all[refused]["reason"], "the modes do not allow it");
    assert!(all[listed]["acl"].as_str().unwrap().contains("u:eve:---"), "{}", all[listed]);
    assert!(find(["op", "mkdir", "/lab/physics", "done"]).is_some());
    let unknown = |line: &&Value| line["reason"].to_string().contains("does not know the key");
    assert!(all.iter().any(|line| unknown(&line) && line["user"].is_null()), "{all:?}");

    // What comes behind a line, also when the head was started again; the files are its owner's.
    let last = all.last().unwrap()["at"].as_str().unwrap().to_owned();
    head.take().unwrap().kill();
    let _head = site.start_head();
    let more = || lines(&site.run(&["audit", "--after", &last]).ok().stdout());
    anna.run(&["mkdir", "/lab/physics/c"]).ok();
    let is_there = || {
        let of = ["anna", "mkdir", "/lab/physics/c", "done"];
        more().iter().filter(|line| is(line, of)).count() == 1
    };
    wait_for("the line of c", is_there, || format!("{:?}", more()));
    let files = site.home.path().join("site/audit");
    for file in std::fs::read_dir(files).unwrap() {
        use std::os::unix::fs::PermissionsExt;
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }
    site.run(&["audit", "--after", "nonsense"]).fails_with(1, "");
}

#[test]
fn operators_see_what_a_site_is_doing_and_for_whom() {
    let site = site_with_directory();
    let anna = User::new(&site, "anna", "physics");
    let top = ["top", "--count", "1", "--every", "1"];
    let told = site.run(&[&top[..], &["--json"]].concat()).ok().stdout();
    let told: Value = serde_json::from_str(&told).unwrap();
    let operations = told["operations"].as_array().unwrap();
    assert!(operations.iter().any(|of| of["name"] == "query top"), "{told}");
    let users = told["users"].as_array().unwrap();
    assert!(users.iter().any(|of| of["name"] == "op" && of["held_back_per_s"] == 0.0), "{told}");
    let table = site.run(&top).ok().stdout();
    assert!(table.contains("OPERATION") && table.contains("HELD/S"), "{table}");
    let top = [&["site"], &top[..], &["--site", "/lab"]].concat();
    anna.run(&top).fails_with(7, "only an operator");
}

#[test]
fn a_user_who_asks_too_fast_waits_and_gets_everything_in_the_end() {
    let mut site = site_with_directory();
    site.head.as_mut().unwrap().kill();
    let args = ["catalog", "--dir", "site", "--user-rate", "20", "--connect", &site.socket];
    site.head = Some(site.home.start(&args, "byname:/lab"));
    let anna = User::new(&site, "anna", "physics");
    for number in 0..12 {
        anna.run(&["mkdir", &format!("/lab/physics/d{number}")]).ok();
        anna.run(&["ls", &format!("/lab/physics/d{number}")]).ok();
    }
    let listed = anna.run(&["ls", "/lab/physics"]).ok().stdout();
    assert_eq!(listed.lines().filter(|line| line.starts_with('d')).count(), 12, "{listed}");
}
