//! The audit log of a site: who did what, and who was refused.

use crate::disks;
use crate::harness::{Home, free_port, noise, wait_for};
use crate::mirrors::page;
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
    let op = users.iter().find(|of| of["name"] == "op").expect("the operator");
    assert_eq!(op["held_back_per_s"], 0.0);
    let time = |key: &str| op[key].as_u64().unwrap_or_default();
    assert!(time("mean_ns") > 0 && time("longest_ns") >= time("mean_ns"), "{op}");
    assert!(told["head"]["commands_in_flight"].as_u64() >= Some(1), "{told}");
    let table = site.run(&top).ok().stdout();
    assert!(table.contains("OPERATION") && table.contains("HELD/S"), "{table}");
    assert!(table.contains("commands waiting 0, in the batch "), "{table}");
    let top = [&["site"], &top[..], &["--site", "/lab"]].concat();
    anna.run(&top).fails_with(7, "only an operator");
}

#[test]
fn operators_see_errors_of_disks_and_what_waits_for_them() {
    let mut site = disks::Site::new(2, 2);
    let port = free_port();
    site.head.take().unwrap().kill();
    let metrics = format!("127.0.0.1:{port}");
    let args = ["catalog", "--dir", "site", "--keep-versions", "1s", "--metrics", &metrics];
    let args = [&args[..], &["--connect", &site.socket]].concat();
    site.head = Some(site.home.start(&args, "byname:/lab"));
    site.put("f", &noise(10_000, 3)).unwrap();
    let lines = |port| page(port).lines().map(str::to_owned).collect::<Vec<_>>();
    let has = |wanted: &str| lines(port).iter().any(|line| line == wanted);
    let shown = || lines(port).join("\n");
    let listed = site.run(&["disk", "ls", "--json"]).ok().stdout();
    let last: Value = serde_json::from_str(listed.lines().last().unwrap()).unwrap();
    let of_disk = |name: &str, more: &str, value: u64| {
        format!("byname_head_disk_{name}{{disk=\"{}\"{more}}} {value}", last["disk"])
    };
    for wanted in [
        "byname_head_operations_total{operation=\"commit\",outcome=\"done\"} 1".to_owned(),
        of_disk("errors_total", ",kind=\"replaced\"", 0),
        of_disk("well", "", 1),
        "byname_head_commands_waiting 0".to_owned(),
        "byname_head_replicas_in_flight 0".to_owned(),
    ] {
        wait_for(&wanted, || has(&wanted), shown);
    }
    let of_user = "byname_head_user_seconds_total{user=\"op\",door=\"\"} ";
    assert!(lines(port).iter().any(|line| line.starts_with(of_user)), "{}", shown());

    // One that is gone, and has something to drop.
    site.disks[1].take().unwrap().kill();
    site.home.run(&["rm", "/lab/f", "--connect", &site.socket]).ok();
    let top = || {
        let told = site.run(&["top", "--count", "1", "--every", "1", "--json"]).ok().stdout();
        serde_json::from_str::<Value>(&told).unwrap()
    };
    let is_told = || {
        let disk = &top()["disks"][1];
        disk["errors"]["unanswered"].as_u64() >= Some(1) && disk["to_drop"] == 1
    };
    wait_for("word of the disk that is gone", is_told, || top().to_string());
    // The other disk is rid of it, which its next answer says.
    let table = || site.run(&["top", "--count", "1", "--every", "1"]).ok().stdout();
    let is_shown = || table().contains("contents to drop 1, ended by time ");
    wait_for("contents to drop", is_shown, table);
    wait_for("such metric", || has(&of_disk("well", "", 0)), shown);
    assert!(has(&of_disk("contents_to_drop", "", 1)), "{}", shown());
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
