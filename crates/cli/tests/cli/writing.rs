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
