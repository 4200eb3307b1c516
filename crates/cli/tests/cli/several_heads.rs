//! Several heads of one site, over a database: one leads, the others answer what is read and take
//! over when it is killed.

use crate::cluster::Cluster;
use crate::disks::Site;
use crate::harness::{Daemon, wait_for};

/// What a head says that has the lease.
pub(crate) const LEADS: &str = "this head leads";

/// A site with so many disks whose catalog was moved to a database.
pub(crate) fn site_in(cluster: &Cluster, disks: usize) -> Site {
    let mut site = Site::new(disks, 1);
    site.head = None;
    let engine = format!("postgres:{}", cluster.database());
    site.home.run(&["site", "move-engine", "/lab", &engine, "--dir", "site"]).ok();
    site
}

/// A head; each has a directory of its own, as it would on a machine of its own.
fn start_head(site: &Site, number: usize) -> Daemon {
    let dir = format!("head-{number}");
    let engine = std::fs::read_to_string(site.home.path().join("site/engine")).unwrap();
    let mut command = site.home.byname();
    command.args(["catalog", "--dir", &dir, "--lease", "2s", "--keep-versions", "1s"]);
    command.args(["--connect", &site.socket]).env("BYNAME_ENGINE", engine.trim());
    site.home.start_command(command, "byname:/lab")
}

#[test]
fn a_head_that_does_not_lead_answers_what_is_read_and_takes_over() {
    let cluster = Cluster::shared();
    let site = site_in(&cluster, 1);
    let first = start_head(&site, 0);
    first.await_line(LEADS);
    let engine = std::fs::read_to_string(site.home.path().join("site/engine")).unwrap();
    // A forwarder of its own: only the second head is asked there.
    let socket = format!("unix://{}", site.home.work("run").join("other.sock").display());
    let _forwarder = site.home.start(&["forward", "--listen", &socket], "listening");
    let mut command = site.home.byname();
    command.args(["catalog", "--dir", "second", "--connect", &socket]);
    command.env("BYNAME_ENGINE", engine.trim());
    let second = site.home.start_command(command, "byname:/lab");
    site.home.run(&["mkdir", "/lab/new", "--connect", &site.socket]).ok();
    let listed = || site.home.run(&["ls", "/lab", "--fresh", "--connect", &socket]).stdout();
    wait_for("new directory at the second head", || listed().contains("new"), listed);
    let mkdir = ["mkdir", "/lab/other", "--connect", &socket];
    site.home.run(&[&mkdir[..], &["--timeout", "1"]].concat()).fails_with(4, "");
    // Whoever needs the catalog for himself is told that it is in use.
    site.home.run(&["site", "fsck", "--dir", "site"]).fails_with(7, "another process");
    drop(first);
    second.await_line(LEADS);
    site.home.run(&mkdir).ok();
}
