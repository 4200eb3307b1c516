//! The name space of a site, changed by commands of users.

use crate::harness::{Finished, Home, wait_for, write};
use crate::sites::Site;

/// A user of the site with a key of her own, and the site's key trusted.
pub(crate) struct User<'a> {
    pub(crate) home: Home,
    site: &'a Site,
}

impl<'a> User<'a> {
    pub(crate) fn new(site: &'a Site, name: &str, group: &str) -> Self {
        let home = Home::new();
        home.run(&["trust", "add", &site.link]).ok();
        let key = home.run(&["site", "user", "key", "--site", "/lab", "--user", name]).ok();
        let file = site.home.path().join(format!("{name}.cert"));
        write(&file, key.stdout().as_bytes());
        let file = file.to_str().unwrap();
        site.run(&["user", "add", name, "--group", group, "--key", file]).ok();
        Self { home, site }
    }

    /// A command of hers.
    pub(crate) fn run(&self, args: &[&str]) -> Finished {
        self.site.read(&self.home, args)
    }

    /// Waits until a directory has just these names: caches keep a list for a second.
    #[track_caller]
    pub(crate) fn lists(&self, name: &str, wanted: &[&str]) {
        let list = || self.run(&["ls", name, "--fresh"]).ok().stdout();
        wait_for("such list", || list().lines().collect::<Vec<_>>() == wanted, list);
    }

    /// Waits until the signed facts of a name have this one.
    #[track_caller]
    pub(crate) fn states(&self, name: &str, key: &str, wanted: impl Into<serde_json::Value>) {
        let wanted = wanted.into();
        let stat = || self.run(&["stat", name, "--fresh", "--json"]).ok().stdout();
        let fact = || serde_json::from_str::<serde_json::Value>(&stat()).unwrap()[key] == wanted;
        wait_for("such fact", fact, stat);
    }
}

/// A site, and a directory of it in which its group may write.
pub(crate) fn site_with_directory() -> Site {
    let site = Site::new();
    let home = &site.home;
    site.read(home, &["mkdir", "/lab/physics", "--mode", "775"]).ok();
    site.read(home, &["chown", ":physics", "/lab/physics"]).ok();
    site
}

#[test]
fn directories_and_names_are_made_moved_and_removed() {
    let site = site_with_directory();
    let anna = User::new(&site, "anna", "physics");
    anna.run(&["mkdir", "/lab/mine"]).fails_with(7, "/lab/mine: the modes do not allow it");
    anna.run(&["mkdir", "/lab/physics/a/b"]).fails_with(3, "no such file");
    anna.run(&["mkdir", "-p", "/lab/physics/a/b/c", "/lab/physics/d"]).ok();
    anna.run(&["mkdir", "-p", "/lab/physics/a/b/c"]).ok();
    anna.run(&["mkdir", "/lab/physics/a"]).fails_with(1, "/lab/physics/a: there is something");
    anna.lists("/lab/physics", &["a/", "d/"]);

    // Into a directory that is there; to a name that is not; never over a full one.
    anna.run(&["mv", "/lab/physics/d", "/lab/physics/a"]).ok();
    anna.run(&["mv", "/lab/physics/a/d", "/lab/physics/e"]).ok();
    anna.run(&["mv", "-T", "/lab/physics/e", "/lab/physics/a"]).fails_with(1, "is not empty");
    anna.run(&["mv", "/lab/physics/none", "/lab/physics/f"]).fails_with(3, "no such file");
    anna.run(&["mv", "/lab/physics/a", "/lab/physics/a/b"]).fails_with(1, "cannot move below");
    anna.lists("/lab/physics", &["a/", "e/"]);

    anna.run(&["ln", "-s", "a/b", "/lab/physics/link"]).ok();
    anna.run(&["ln", "/lab/physics/a", "/lab/physics/hard"]).fails_with(1, "has one name");
    anna.run(&["chmod", "750", "/lab/physics/e"]).ok();
    anna.states("/lab/physics/e", "mode", "750");
    anna.run(&["chown", "bert", "/lab/physics/e"]).fails_with(7, "only an operator");

    anna.run(&["rm", "/lab/physics/a"]).fails_with(1, "byname rm -r");
    anna.run(&["rm", "/lab/physics/none"]).fails_with(3, "no such file");
    anna.run(&["rm", "-f", "/lab/physics/none"]).ok();
    anna.run(&["rm", "-r", "/lab/physics/a", "/lab/physics/link", "/lab/physics/none"])
        .fails_with(8, "1 of 3 names failed");
    anna.lists("/lab/physics", &["e/"]);
}

#[test]
fn whoever_is_no_user_or_names_something_else_is_told_so() {
    let site = site_with_directory();
    let anna = User::new(&site, "anna", "physics");
    anna.run(&["mkdir", "/other/x"]).fails_with(6, "no key here for a site above /other/x");
    anna.run(&["mkdir", "/lab/physics/x", "/other/x"]).fails_with(2, "/other/x is not in the site");
    anna.run(&["mkdir", "/lab/physics/x", "--user", "bert"]).fails_with(6, "no key of bert");
    anna.run(&["mkdir", "ndn:/lab/physics/32=x"]).fails_with(1, "cannot have this name");

    // She has her key, and does not know that of the site; then she is given one that is not its.
    let stranger = Home::new();
    stranger.run(&["site", "user", "key", "--site", "/lab", "--user", "eve"]).ok();
    let make = ["mkdir", "/lab/physics/y"];
    site.read(&stranger, &make).fails_with(6, "byname trust add LINK");
    let key = site.link.find("key=").unwrap();
    let wrong = format!("{}key=SHA256:{}", &site.link[..key], "A".repeat(43));
    let at = [&make[..], &["--site", &wrong]].concat();
    site.read(&stranger, &at).fails_with(6, "byname trust add LINK");
    let at = [&make[..], &["--site", &site.link]].concat();
    site.read(&stranger, &at).fails_with(6, "does not know the key");
    anna.lists("/lab/physics", &[]);
}

#[test]
fn of_two_users_with_keys_here_the_one_of_this_machine_acts_and_is_named() {
    let site = site_with_directory();
    let anna = User::new(&site, "anna", "physics");
    anna.run(&["site", "user", "key", "--site", "/lab", "--user", "bert"]).ok();
    let make = |user: &str, name: &str| {
        let mut command = anna.home.byname();
        command.args(["mkdir", name, "--connect", &site.socket]).env("USER", user);
        Finished::of(command.output().unwrap())
    };
    make("anna", "/lab/physics/a").fails_with(0, "as anna");
    make("zoe", "/lab/physics/b").fails_with(2, "which user?");
    let chosen = anna.run(&["mkdir", "/lab/physics/c", "--user", "anna"]).ok();
    assert_eq!(chosen.stderr(), "");
    anna.lists("/lab/physics", &["a/", "c/"]);
}

#[test]
fn a_link_that_cannot_be_names_the_file_that_is_missing() {
    let site = site_with_directory();
    let anna = User::new(&site, "anna", "physics");
    anna.run(&["ln", "-s", "x", "/lab/physics/there"]).ok();
    anna.run(&["ln", "/lab/physics/none", "/lab/physics/new"])
        .fails_with(3, "/lab/physics/none: no such file");
    anna.run(&["ln", "/lab/physics/there", "/lab/physics/no/new"])
        .fails_with(3, "/lab/physics/no/new: no such file");
    anna.run(&["ln", "/lab/physics/there", "/lab/physics/there"])
        .fails_with(1, "/lab/physics/there: there is something");
}

#[test]
fn attributes_of_whole_trees_are_changed() {
    let site = site_with_directory();
    let anna = User::new(&site, "anna", "physics");
    anna.run(&["mkdir", "-p", "/lab/physics/a/b/c", "/lab/physics/a/d"]).ok();
    anna.run(&["ln", "-s", "b", "/lab/physics/a/link"]).ok();
    anna.run(&["chmod", "-R", "750", "/lab/physics/a"]).ok();
    anna.states("/lab/physics/a/b/c", "mode", "750");
    anna.states("/lab/physics/a/d", "mode", "750");
    // She takes her own right to walk through: what is below comes first.
    anna.run(&["chmod", "-R", "640", "/lab/physics/a"]).ok();
    for name in ["a", "a/b", "a/b/c", "a/d"] {
        anna.states(&format!("/lab/physics/{name}"), "mode", "640");
    }
    anna.run(&["chmod", "-R", "750", "/lab/physics/a"]).ok();
    anna.run(&["chown", "-R", "bert", "/lab/physics/a"]).fails_with(8, "5 of 5 entries failed");
    site.read(&site.home, &["chown", "-R", "bert:cms", "/lab/physics/a"]).ok();
    anna.run(&["chmod", "-R", "700", "/lab/physics/a"])
        .fails_with(8, "/lab/physics/a: only the owner");
}

/// They were asked for in vain: the first had no route, the second no answer.
#[test]
fn names_that_no_entry_can_have_are_refused_with_a_reason() {
    let site = site_with_directory();
    let long = format!("/lab/physics/{}", "x".repeat(256));
    let deep = format!("/lab/physics{}", "/x".repeat(500));
    let local = site.home.path().join("local");
    write(&local, b"x");
    let local = local.to_str().unwrap();
    for name in [&long, &deep] {
        for args in [&["mkdir", name][..], &["rm", name], &["put", local, name]] {
            site.read(&site.home, args).fails_with(1, "a name is too long");
        }
        for args in [&["stat", name][..], &["ls", name], &["cat", name]] {
            site.read(&site.home, args).fails_with(3, "");
        }
    }
}

/// It said that it wrote 0 files.
#[test]
fn a_file_that_cannot_be_put_is_told_by_its_error_alone() {
    let site = site_with_directory();
    let local = site.home.path().join("local");
    write(&local, b"x");
    let put = ["put", local.to_str().unwrap(), "/lab/physics/f"];
    let failed = site.read(&site.home, &put).fails_with(1, "not enough disks");
    assert!(!failed.stderr().contains("wrote"), "{}", failed.stderr());
}

#[test]
fn extended_attributes_are_set_read_and_removed() {
    let site = site_with_directory();
    let anna = User::new(&site, "anna", "physics");
    let name = "/lab/physics/a b";
    anna.run(&["mkdir", name]).ok();
    anna.run(&["xattr", "ls", name]).ok();
    anna.run(&["xattr", "set", name, "user.detector", "cms"]).ok();
    anna.run(&["xattr", "set", name, "user.detector", "x", "--create"]).fails_with(1, "there is");
    anna.run(&["xattr", "set", name, "user.none", "x", "--replace"]).fails_with(3, "no such");
    anna.run(&["xattr", "set", name, "trusted.x", "x"]).fails_with(1, "user.something");
    // As large as values may be, and any octets: `-` is stdin.
    let octets: Vec<u8> = (0..3800_u32).map(|at| (at * 7) as u8).collect();
    let file = anna.home.path().join("value");
    write(&file, &octets);
    let mut set = anna.home.byname();
    set.args(["xattr", "set", name, "user.large", "-", "--connect", &site.socket]);
    set.stdin(std::fs::File::open(&file).unwrap());
    Finished::of(set.output().unwrap()).ok();
    assert_eq!(anna.run(&["xattr", "get", name, "user.large"]).ok().bytes(), octets);
    assert_eq!(anna.run(&["xattr", "get", name, "user.detector"]).ok().bytes(), b"cms");
    anna.run(&["xattr", "set", name, "user.more", &"x".repeat(400)])
        .fails_with(1, "no room for more extended attributes");
    anna.run(&["xattr", "rm", name, "user.large"]).ok();
    anna.run(&["xattr", "rm", name, "user.large"]).fails_with(3, "no such extended attribute");
    anna.run(&["xattr", "get", name, "user.large"]).fails_with(3, "no such extended attribute");
    assert_eq!(anna.run(&["xattr", "ls", name]).ok().stdout(), "user.detector=cms\n");
    let listed = anna.run(&["xattr", "ls", name, "--json"]).ok().stdout();
    assert!(listed.contains("\"value\":\"cms\""), "{listed}");

    // What the modes keep from others are these, too.
    let bert = User::new(&site, "bert", "cms");
    anna.run(&["chmod", "710", name]).ok();
    bert.run(&["xattr", "set", name, "user.x", "x"]).fails_with(7, "the modes do not allow it");
    bert.run(&["xattr", "ls", name]).fails_with(7, "the modes do not allow it");
    anna.run(&["xattr", "ls", "/lab/physics/none"]).fails_with(3, "/lab/physics/none: no such");
}

#[test]
fn room_below_a_name_is_what_its_disks_have() {
    let site = site_with_directory();
    let anna = User::new(&site, "anna", "physics");
    let df = |name: &str| anna.run(&["df", name, "--json"]).ok().stdout();
    assert!(df("/lab").contains("\"free_bytes\":0"), "{}", df("/lab"));
    site.run(&["disk", "add", "d1", "--capacity", "1M", "--server", "s1"]).ok();
    let table = anna.run(&["df", "/lab", "/lab/physics"]).ok().stdout();
    assert_eq!(table.matches("1.00 MiB").count(), 4, "{table}");
    let of = df("/lab/physics");
    assert!(of.contains("\"size_bytes\":1048576") && of.contains("\"replicas\":1"), "{of}");
    // Her own quota is what she has room for; the operator has all that is there.
    site.run(&["quota", "set", "user:anna", "--bytes", "4K", "--entries", "7"]).ok();
    let own = df("/lab/physics");
    assert!(own.contains("\"size_bytes\":4096") && own.contains("\"entries_max\":7"), "{own}");
    let all = site.read(&site.home, &["df", "/lab/physics", "--json"]).ok().stdout();
    assert!(all.contains("\"size_bytes\":1048576"), "{all}");
    anna.run(&["df", "/lab/none"]).fails_with(3, "/lab/none: no such file");
}
