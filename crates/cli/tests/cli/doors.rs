//! Doors that act for users, with real processes: by the flags that try one.

use crate::harness::{Finished, Home, wait_for, write};
use crate::sites::Site;
use crate::writing::{User, site_with_directory};
use serde_json::Value;

/// The machine of a door, whose key the site knows.
pub(crate) struct Door<'a> {
    pub(crate) home: Home,
    site: &'a Site,
}

impl<'a> Door<'a> {
    pub(crate) fn new(site: &'a Site, grant: &[&str]) -> Self {
        let home = Home::new();
        home.run(&["trust", "add", &site.link]).ok();
        let key = home.run(&["site", "door", "key", "xrd1", "--site", "/lab"]).ok();
        let file = site.home.path().join("xrd1.cert");
        write(&file, key.stdout().as_bytes());
        let add = ["door", "add", "xrd1", "--key", file.to_str().unwrap()];
        site.run(&[&add[..], grant].concat()).ok();
        Self { home, site }
    }

    /// A command of the door for somebody.
    fn run(&self, user: &str, args: &[&str]) -> Finished {
        self.site.read(&self.home, &[args, &["--door", "xrd1", "--user", user]].concat())
    }

    fn grant(&self, grant: &[&str]) {
        self.site.run(&[&["door", "add", "xrd1"], grant].concat()).ok();
    }
}

const LIES: &str = "the door may not speak for this user";

#[test]
fn a_door_acts_for_whom_it_may_and_is_told_when_it_lies() {
    let site = site_with_directory();
    let anna = User::new(&site, "anna", "physics");
    let _carl = User::new(&site, "carl", "cms");
    let door = Door::new(&site, &["--may-speak-for-group", "physics"]);
    door.run("anna", &["mkdir", "/lab/physics/a"]).ok();
    let owner = |name: &str| {
        let shown = anna.run(&["getfacl", name, "--json"]).ok().stdout();
        serde_json::from_str::<Value>(&shown).unwrap()["owner"].clone()
    };
    assert_eq!(owner("/lab/physics/a"), "anna");
    // What anna may not do, her door may not.
    door.run("anna", &["mkdir", "/lab/mine"]).fails_with(7, "the modes do not allow it");
    door.run("carl", &["mkdir", "/lab/physics/b"]).fails_with(7, LIES);
    door.run("op", &["mkdir", "/lab/physics/b"]).fails_with(7, "operator");
    door.run("zoe", &["mkdir", "/lab/physics/b"]).fails_with(6, "does not know this user");
    let bare = &["mkdir", "/lab/physics/b", "--door", "xrd1"];
    site.read(&door.home, bare).fails_with(2, "--user USER");
    site.read(&door.home, &["mkdir", "/lab/b", "--door", "web", "--user", "anna"])
        .fails_with(6, "site door key web");
    anna.lists("/lab/physics", &["a/"]);

    // Groups that it says, and that it may not say.
    door.run("anna", &["mkdir", "/lab/physics/b", "--said-group", "ops"])
        .fails_with(7, "the door may not say");
    door.grant(&["--may-speak-for", "carl", "--may-say-group", "physics"]);
    door.run("anna", &["mkdir", "/lab/physics/b"]).fails_with(7, LIES);
    door.run("carl", &["mkdir", "/lab/physics/b"]).fails_with(7, "the modes do not allow it");
    door.run("carl", &["mkdir", "/lab/physics/b", "--said-group", "physics"]).ok();
    assert_eq!(owner("/lab/physics/b"), "carl");

    // Who did it, for whom, and who was refused.
    let audit = site.run(&["audit"]).ok().stdout();
    let has =
        |words: [&str; 3]| audit.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(has(["\"user\":\"anna\"", "\"door\":\"xrd1\"", "\"done\""]), "{audit}");
    assert!(has(["\"user\":\"carl\"", "\"door\":\"xrd1\"", LIES]), "{audit}");
    assert!(has(["\"command\":\"set-door\"", "\"of_door\":\"xrd1\"", "carl"]), "{audit}");
}

#[test]
fn what_a_door_does_is_seen_and_ends_when_it_is_removed() {
    let site = site_with_directory();
    let _anna = User::new(&site, "anna", "physics");
    let door = Door::new(&site, &["--all"]);
    let listed = site.run(&["door", "ls"]).ok().stdout();
    assert!(listed.contains("xrd1") && listed.contains("all users"), "{listed}");
    let listed = site.run(&["door", "ls", "--json"]).ok().stdout();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&listed["door"], &listed["all"]), (&"xrd1".into(), &true.into()));
    // Rates are of what comes between two looks: the door goes on meanwhile.
    let top = std::thread::scope(|scope| {
        let looks = || site.run(&["top", "--count", "1", "--every", "5", "--json"]).ok().stdout();
        let looking = scope.spawn(looks);
        let mut number = 0;
        while !looking.is_finished() {
            door.run("anna", &["mkdir", &format!("/lab/physics/d{number}")]).ok();
            number += 1;
        }
        looking.join().unwrap()
    });
    assert!(top.contains("\"anna through xrd1\"") && top.contains("\"door xrd1\""), "{top}");
    site.run(&["door", "rm", "xrd1"]).fails_with(2, "say --yes");
    site.run(&["door", "rm", "web", "--yes"]).fails_with(3, "no door web");
    site.run(&["door", "rm", "xrd1", "--yes"]).ok();
    door.run("anna", &["mkdir", "/lab/physics/c"]).fails_with(6, "does not know the key");
    assert!(!site.run(&["door", "ls"]).ok().stdout().contains("xrd1"));
}

/// What users write through a door counts for them, and obeys lists that are about them.
#[test]
fn files_that_are_written_through_a_door_are_the_users() {
    let site = Site::new();
    site.run(&["disk", "add", "d1", "--capacity", "1G", "--server", "s1"]).ok();
    let _disk = site.home.start(&["disk", "d1", "--connect", &site.socket], "serving d1");
    let _anna = User::new(&site, "anna", "physics");
    let _bert = User::new(&site, "bert", "physics");
    let op = |args: &[&str]| site.read(&site.home, args).ok();
    op(&["mkdir", "/lab/open", "/lab/shut", "--mode", "777"]);
    op(&["setfacl", "-m", "u:bert:-", "/lab/shut"]);
    let door = Door::new(&site, &["--all"]);
    let local = door.home.path().join("local");
    write(&local, &[7; 50_000]);
    let local = local.to_str().unwrap();
    door.run("anna", &["put", local, "/lab/open/a"]).ok();
    door.run("anna", &["put", local, "/lab/shut/a"]).ok();
    door.run("bert", &["put", local, "/lab/open/b"]).ok();
    door.run("bert", &["put", local, "/lab/shut/b"]).fails_with(7, "the modes do not allow it");
    site.run(&["quota", "set", "user:bert", "--bytes", "80K"]).ok();
    door.run("bert", &["put", local, "/lab/open/c"]).fails_with(1, "the quota of the user");
    let used = || {
        let listed = site.run(&["quota", "ls", "--json"]).ok().stdout();
        let rows = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.into_iter().find(|row| row["name"] == "bert").map(|row| row["bytes"].clone())
    };
    wait_for("what bert has", || used() == Some(50_000.into()), || format!("{:?}", used()));
}

#[test]
fn a_table_says_who_somebody_is_and_by_which_row() {
    let home = Home::new();
    let file = home.path().join("who.toml");
    let table = "[[map]]\nmethod = \"krb5\"\nname = \"*@CERN.CH\"\nuser = \"$1\"\n\n[[map]]\n\
        method = \"gsi\"\nvo = \"cms\"\nrole = \"production\"\nuser = \"cmsprod\"\n\
        groups = [\"cms\"]\n";
    write(&file, table.as_bytes());
    let file = file.to_str().unwrap();
    let who = |args: &[&str]| {
        home.run(&[&["site", "user", "whoami", "--table", file, "--as"], args].concat())
    };
    let anna = who(&["krb5:anna@CERN.CH"]).ok().stdout();
    assert!(anna.contains("anna") && anna.contains("row 1 (line 1)"), "{anna}");
    let told = who(&["gsi:/DC=ch/CN=x", "--vo", "cms", "--role", "production", "--json"]);
    let told: Value = serde_json::from_str(&told.ok().stdout()).unwrap();
    let told = ["user", "groups", "row", "line"].map(|key| told[key].clone());
    assert_eq!(told, ["cmsprod".into(), serde_json::json!(["cms"]), 2.into(), 6.into()]);
    who(&["gsi:/DC=ch/CN=x", "--vo", "cms"]).fails_with(6, "no row fits");
    let told = who(&["krb5:root/x@CERN.CH", "--json"]).fails_with(6, "no user or group").stdout();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["user"], &told["line"]), (&Value::Null, &1.into()));
    who(&["anna"]).fails_with(2, "METHOD:NAME");
    write(std::path::Path::new(file), b"[[map]]\nmethod = \"krb5\"\nusr = \"x\"\n");
    who(&["krb5:anna@CERN.CH"]).fails_with(2, "line 3: a row has no \"usr\"");
    let missing = ["site", "user", "whoami", "--as", "krb5:a", "--table", "nowhere"];
    home.run(&missing).fails_with(7, "nowhere");
}
