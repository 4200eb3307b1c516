//! Policies and quotas as an operator sets them and users meet them, with real processes.

use serde_json::Value;

use crate::disks::Site;
use crate::harness::{Finished, noise, write};

impl Site {
    /// A command about names, by the operator.
    fn op(&self, args: &[&str]) -> Finished {
        self.home.run(&[args, &["--connect", &self.socket]].concat())
    }

    /// Replicas of a file: how many there are and are wanted.
    fn replicas(&self, name: &str) -> (usize, u64) {
        let listed = self.run(&["replica", "ls", name, "--json"]).ok().stdout();
        let lines: Vec<Value> =
            listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (lines.len(), lines[0]["wanted"].as_u64().unwrap())
    }

    fn quota(&self, kind: &str, name: &str) -> Value {
        let listed = self.run(&["quota", "ls", "--json"]).ok().stdout();
        let mut lines = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.find(|line| line["kind"] == kind && line["name"] == name).unwrap_or_default()
    }
}

#[test]
fn replicas_follow_the_tree_the_pattern_and_the_command() {
    let mut site = Site::new(3, 2);
    let local = site.home.work("w").join("f");
    write(&local, &noise(20_000, 1));
    let local = local.to_str().unwrap();
    site.op(&["put", local, "/lab/plain"]).ok();
    assert_eq!(site.replicas("/lab/plain"), (2, 2));
    site.op(&["mkdir", "/lab/scratch"]).ok();
    site.run(&["policy", "set", "/lab/scratch", "--replicas", "1"]).ok();
    site.op(&["put", local, "/lab/scratch/f"]).ok();
    assert_eq!(site.replicas("/lab/scratch/f"), (1, 1));
    site.run(&["policy", "set", "--pattern", "*.raw", "--replicas", "3"]).ok();
    site.op(&["put", local, "/lab/scratch/f.raw"]).ok();
    assert_eq!(site.replicas("/lab/scratch/f.raw"), (3, 3));
    site.op(&["put", local, "/lab/scratch/g.raw", "--replicas", "2"]).ok();
    assert_eq!(site.replicas("/lab/scratch/g.raw"), (2, 2));
    site.run(&["policy", "set", "/lab/scratch", "--replicas", "2", "-R"]).ok();
    assert_eq!(site.replicas("/lab/scratch/f.raw"), (3, 2));
    site.op(&["put", local, "/lab/scratch/f.raw"]).ok();
    assert_eq!(site.replicas("/lab/scratch/f.raw"), (2, 2), "when it is written again");

    let shown = site.run(&["policy", "ls", "/lab", "/lab/scratch"]).ok().stdout();
    let rows: Vec<Vec<&str>> =
        shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows[1..],
        [["2", "2", "main", "/lab"].to_vec(), ["2", "2", "main", "/lab/scratch"].to_vec(),]
    );
    let patterns = site.run(&["policy", "ls", "--json"]).ok().stdout();
    let pattern: Value = serde_json::from_str(patterns.trim()).unwrap();
    assert_eq!((&pattern["pattern"], &pattern["replicas"]), (&"*.raw".into(), &3.into()));
    site.run(&["policy", "rm", "--pattern", "*.raw"]).ok();
    assert_eq!(site.run(&["policy", "ls", "--json"]).ok().stdout(), "");

    site.op(&["put", local, "/lab/f", "--space", "tape"]).fails_with(1, "not enough disks");
    for whose in [&["/lab/scratch"][..], &["--pattern", "*.tape"]] {
        let told = |space| {
            let words = [&["policy", "set"], whose, &["--space", space]].concat();
            site.run(&words).ok().stderr()
        };
        let (none, some) = (told("tape"), told("main"));
        assert!(none.contains("no disk is in the space tape yet"), "{none}");
        assert_eq!(some, "", "{whose:?}");
    }
    site.run(&["policy", "rm", "--pattern", "*.tape"]).ok();
    site.run(&["policy", "set", "/lab"]).fails_with(2, "--receipts, --space or --versions");
    site.run(&["policy", "set", "/lab", "--replicas", "17"]).fails_with(2, "17");
    let contradicts = ["policy", "set", "/lab", "--replicas", "1", "--receipts", "2"];
    site.run(&contradicts).ok();
    assert!(site.run(&["policy", "ls", "/lab"]).ok().stdout().contains("1         1"));
    site.run(&["policy", "set", "/lab/nothing", "--replicas", "1"]).fails_with(3, "/lab/nothing");
    let wants = site.run(&["fsck", "--disks"]).fails_with(1, "").stdout();
    assert!(wants.contains("under-replicated") && wants.contains("1 of 2"), "{wants}");
    site.op(&["put", local, "/lab/scratch/f"]).ok();
    site.run(&["fsck", "--disks", "--content"]).ok();
    site.check();
}

#[test]
fn quotas_are_set_listed_and_met() {
    let mut site = Site::new(2, 1);
    let local = site.home.work("w").join("f");
    write(&local, &noise(60_000, 1));
    let local = local.to_str().unwrap();
    site.run(&["quota", "set", "user:op", "--bytes", "100K"]).ok();
    site.op(&["put", local, "/lab/a"]).ok();
    let refused = site.op(&["put", local, "/lab/b"]).fails_with(1, "quota of the user");
    assert!(refused.stdout().is_empty());
    let op = site.quota("user", "op");
    assert_eq!((&op["bytes"], &op["bytes_max"]), (&60_000.into(), &102_400.into()));
    assert_eq!((&op["bytes_reserved"], &op["entries_max"]), (&0.into(), &Value::Null));
    site.run(&["quota", "set", "user:op", "--bytes", "none", "--entries", "4"]).ok();
    site.op(&["put", local, "/lab/b"]).ok();
    site.op(&["mkdir", "/lab/run8"]).ok();
    site.op(&["put", local, "/lab/c"]).fails_with(1, "quota of the user");
    site.run(&["quota", "set", "user:op", "--entries", "none"]).ok();

    // A tree counts for itself.
    site.run(&["quota", "set", "/lab/run8", "--bytes", "100K"]).ok();
    site.op(&["put", local, "/lab/run8/a"]).ok();
    site.op(&["put", local, "/lab/run8/b"]).fails_with(1, "quota of the tree");
    site.op(&["put", local, "/lab/c"]).ok();
    let tree = site.quota("tree", "/lab/run8");
    assert_eq!((&tree["bytes"], &tree["bytes_max"]), (&60_000.into(), &102_400.into()));
    site.run(&["quota", "set", "/lab/run8", "--entries", "9"]).ok();
    assert_eq!(site.quota("tree", "/lab/run8")["bytes_max"], 102_400, "what is not given stays");
    site.op(&["mkdir", "/lab/full"]).ok();
    site.op(&["put", local, "/lab/full/a"]).ok();
    let full = site.run(&["quota", "set", "/lab/full", "--bytes", "1M"]).fails_with(1, "not empty");
    assert!(full.stderr().contains("only an empty directory"), "{}", full.stderr());
    assert_eq!(site.quota("tree", "/lab")["bytes"], 240_000);
    let shown = site.run(&["quota", "ls"]).ok().stdout();
    let line = shown.lines().find(|line| line.ends_with("/lab/run8")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words, ["tree", "58.6", "KiB", "-", "100", "KiB", "2", "-", "9", "-", "/lab/run8"]);
    site.run(&["quota", "set", "user:op"]).fails_with(2, "--bytes");
    let early = site.run(&["quota", "set", "user:opp", "--bytes", "1G"]).ok();
    assert!(early.stderr().contains("no user opp yet"), "{}", early.stderr());
    site.run(&["user", "group", "opp", "physics"]).fails_with(3, "no user opp");
    let above = ["quota", "set", "user:op", "--bytes", "1G", "--soft-bytes", "5G"];
    site.run(&above).fails_with(2, "above the hard one");
    site.run(&["quota", "set", "user:op", "--entries", "many"]).fails_with(2, "many");
    site.check();
}

#[test]
fn a_user_above_a_soft_limit_is_warned_then_refused_and_let_in_again() {
    let mut site = Site::new(2, 1);
    let local = site.home.work("w").join("f");
    write(&local, &noise(60_000, 1));
    let local = local.to_str().unwrap();
    site.run(&["quota", "set", "user:op", "--soft-bytes", "100K", "--bytes", "200K"]).ok();
    let first = site.op(&["put", local, "/lab/a"]).ok();
    assert!(!first.stderr().contains("soft limit"), "{}", first.stderr());
    let second = site.op(&["put", local, "/lab/b"]).ok();
    assert!(
        second.stderr().contains("user op is above the soft limit of its quota: 6 days left"),
        "{}",
        second.stderr()
    );
    assert!(!site.op(&["put", "-q", local, "/lab/b"]).ok().stderr().contains("soft limit"));
    let op = site.quota("user", "op");
    assert_eq!((&op["bytes_soft"], &op["over"]), (&102_400.into(), &true.into()));
    assert_eq!(op["grace_s"], 604_800, "unless it is told");
    let listed = site.run(&["quota", "ls", "--over"]).ok().stdout();
    let rows: Vec<Vec<&str>> =
        listed.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows,
        [["user", "+117", "KiB", "100", "KiB", "200", "KiB", "3", "-", "-", "6", "days", "op"]
            .to_vec()]
    );
    let status = site.run(&["status"]).ok().stdout();
    assert!(status.contains("user op is above its soft limit, 6 days left"), "{status}");
    assert!(status.ends_with("OK\n"), "it is the user's affair, not the site's: {status}");

    // The hard limit holds within the grace time.
    site.op(&["put", local, "/lab/c"]).ok();
    let hard = site.op(&["put", local, "/lab/d"]).fails_with(1, "quota of the user is used up");
    assert!(hard.stderr().contains("byname rm"), "{}", hard.stderr());
    // Grace is over.
    site.run(&["quota", "set", "user:op", "--grace", "10ms"]).ok();
    let small = site.home.work("w").join("small");
    write(&small, b"fits below the hard limit");
    let small = small.to_str().unwrap();
    let over = site.op(&["put", "-p", small, "/lab/d"]).fails_with(1, "the grace time is over");
    assert!(over.stderr().contains("byname site quota ls"), "{}", over.stderr());
    assert_eq!(site.quota("user", "op")["grace_left_s"], 0);
    let free = site.op(&["df", "/lab", "--json"]).ok().stdout();
    let free: Value = serde_json::from_str(free.trim()).unwrap();
    assert_eq!(free["free_bytes"], 0);
    site.op(&["mkdir", "/lab/dir"]).ok();
    // Below it again.
    site.op(&["rm", "/lab/a", "/lab/b"]).ok();
    assert_eq!(site.quota("user", "op")["grace_left_s"], Value::Null);
    site.op(&["put", local, "/lab/a"]).ok();
    site.run(&["quota", "set", "user:op", "--grace", "soon"]).fails_with(2, "span of time");
    site.check();
}

#[test]
fn a_space_limits_whoever_writes_to_it_and_is_told_when_it_is_nearly_full() {
    let mut site = Site::new(2, 1);
    let local = site.home.work("w").join("f");
    write(&local, &noise(60_000, 1));
    let local = local.to_str().unwrap();
    site.op(&["put", local, "/lab/a"]).ok();
    site.op(&["put", local, "/lab/b"]).ok();
    site.run(&["quota", "set", "space:main", "--bytes", "150K", "--soft-files", "900"]).ok();
    site.op(&["put", local, "/lab/d"]).fails_with(1, "quota of the space");
    let space = site.quota("space", "main");
    assert_eq!((&space["bytes"], &space["entries_soft"]), (&120_000.into(), &900.into()));
    let free = site.op(&["df", "/lab", "--json"]).ok().stdout();
    let free: Value = serde_json::from_str(free.trim()).unwrap();
    assert_eq!(free["free_bytes"], 153_600 - 120_000);
    site.run(&["quota", "set", "space:main", "--bytes", "125K"]).ok();
    let status = site.run(&["status"]).ok().stdout();
    assert!(!status.contains("space main"), "93 % are no reason to worry: {status}");
    site.run(&["quota", "set", "space:main", "--bytes", "120K"]).ok();
    let status = site.run(&["status", "--json"]).ok().stdout();
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["quotas"][0], "space main has used 97 % of its quota");
    site.check();
}
