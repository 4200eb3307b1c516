//! Several heads of one site, over a database: one leads, the others answer what is read and take
//! over when it is killed.

use crate::cluster::Cluster;
use crate::disks::Site;
use crate::harness::{Daemon, Finished, noise, signal, wait_for, write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a head says that has the lease.
pub(crate) const LEADS: &str = "this head leads";

/// A site with so many disks whose catalog was moved to a database.
pub(crate) fn site_in(cluster: &Cluster, disks: usize) -> Site {
    moved_to(cluster, Site::new(disks, 1))
}

/// Moves the catalog of a site to a database.
pub(crate) fn moved_to(cluster: &Cluster, mut site: Site) -> Site {
    site.head = None;
    let engine = format!("postgres:{}", cluster.database());
    site.home.run(&["site", "move-engine", "/lab", &engine, "--dir", "site"]).ok();
    site
}

fn start_head(site: &Site, number: usize) -> Daemon {
    site.home.start_command(head_command(site, site.home.byname(), number), "byname:/lab")
}

/// What starts a head; each has a directory of its own, as it would on a machine of its own.
pub(crate) fn head_command(site: &Site, mut byname: Command, number: usize) -> Command {
    let dir = format!("head-{number}");
    let engine = std::fs::read_to_string(site.home.path().join("site/engine")).unwrap();
    byname.args(["catalog", "--dir", &dir, "--lease", "2s", "--keep-versions", "1s"]);
    byname.args(["--connect", &site.socket]).env("BYNAME_ENGINE", engine.trim());
    byname
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

/// Octets that the files of a directory take.
fn taken(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(facts) if facts.is_dir() => taken(&entry.path()),
        Ok(facts) => facts.blocks() * 512,
        Err(_) => 0,
    };
    entries.map(of).sum()
}

/// The disk hears of the new head while it pulls: what it was shown is a ticket of the old one.
#[test]
fn files_that_are_being_written_are_written_under_the_next_head() {
    const FILES: usize = 40;
    let cluster = Cluster::shared();
    let site = site_in(&cluster, 1);
    let mut first = start_head(&site, 0);
    first.await_line(LEADS);
    let second = start_head(&site, 1);
    site.await_status("OK");
    let (local, disk) = (site.home.work("many"), site.home.path().join("d0"));
    let octets = noise(8 << 20, 1);
    (0..FILES).for_each(|number| write(&local.join(format!("f{number}")), &octets));
    let before = taken(&disk);
    let mut put = site.home.byname();
    put.args(["put", "-r"]).arg(&local).args(["/lab/many", "--connect", &site.socket]);
    let put = put.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("disk that pulls", || taken(&disk) > before + (30 << 20), || site.log_of(0));
    signal(put.id(), "STOP");
    assert!(site.contents(0).len() < FILES, "they are there already: more are wanted");
    let epoch = || std::fs::read(disk.join("epoch")).unwrap_or_default();
    let before_that = epoch();
    first.kill();
    second.await_line(LEADS);
    wait_for("disk that has heard of the new head", || epoch() != before_that, || site.log_of(0));
    signal(put.id(), "CONT");
    let ended = Finished::of(put.wait_with_output().unwrap());
    ended.ok();
    let name = |number: usize| format!("many/f{number}");
    (0..FILES).for_each(|number| assert!(site.read(&name(number)).ok().bytes() == octets));
}

/// A standby that commits did not wait for takes the place of the database and lacks files that
/// were acknowledged: heads notice, give no number out again, and disks keep what the catalog does
/// not know any more.
#[test]
fn of_a_standby_that_lacks_the_last_files_nothing_is_deleted_and_no_number_is_given_again() {
    let cluster = Cluster::start();
    let site = site_in(&cluster, 2);
    let standby = Cluster::standby_of(&cluster);
    let file = site.home.path().join("site/engine");
    let engine = std::fs::read_to_string(&file).unwrap();
    let [one, other] = [&cluster, &standby].map(|server| server.path().display().to_string());
    let both = engine.replace(&format!("host={one}"), &format!("host={one},{other}"));
    std::fs::write(file, both).unwrap();
    let heads = [start_head(&site, 0), start_head(&site, 1)];
    let logs = || heads.iter().map(Daemon::log).collect::<String>();
    site.put("kept", b"kept").unwrap();
    let at = |server: &Cluster, host: &str| {
        let address = engine.trim().trim_start_matches("postgres:").replace(&one, host);
        server.psql(&address, "SELECT generation FROM byname_stand").parse::<u64>().unwrap()
    };
    let there = at(&cluster, &one);
    wait_for("standby that has the file", || at(&standby, &other) >= there, logs);
    standby.stop();
    (0..3).for_each(|number| site.put(&format!("lost{number}"), b"lost").unwrap());
    let contents = || site.contents(0).len() + site.contents(1).len();
    assert_eq!(contents(), 4);
    cluster.kill();
    standby.start_again();
    standby.promote();
    let status = || site.run(&["status", "--timeout", "60"]).stdout();
    wait_for("new epoch of numbers", || status().contains("of epoch 1"), || status() + &logs());
    site.put("new", b"new").unwrap();
    assert_eq!(site.read("kept").ok().bytes(), b"kept");
    assert_eq!(site.read("new").ok().bytes(), b"new");
    site.read("lost0").fails_with(3, "");
    // A comparison, and what heads tell disks by themselves, leave the contents that are lost.
    site.run(&["fsck", "--disks"]).stdout();
    assert_eq!(contents(), 5, "{}", logs());
}

/// A new version of the program, over the tables of the one before.
#[test]
fn tables_of_a_version_before_are_migrated_by_the_first_head_and_serve() {
    let cluster = Cluster::shared();
    let site = site_in(&cluster, 1);
    let mut before = start_head(&site, 0);
    before.await_line(LEADS);
    site.put("before", b"before").unwrap();
    assert_eq!(before.terminate(), Some(0));
    let engine = std::fs::read_to_string(site.home.path().join("site/engine")).unwrap();
    let psql = |text: &str| cluster.psql(engine.trim().trim_start_matches("postgres:"), text);
    let version = || psql("SELECT version FROM byname_schema");
    let now = version();
    psql(
        "ALTER TABLE byname_stand DROP COLUMN timeline, DROP COLUMN is_synchronous; \
            DROP FUNCTION byname_timeline(); UPDATE byname_schema SET version = 1",
    );
    let mut heads = [0, 1].map(|number| start_head(&site, number));
    assert_eq!(version(), now);
    site.put("after", b"after").unwrap();
    let leads = || heads.iter().position(|head| head.log().contains(LEADS));
    wait_for("head that leads", || leads().is_some(), || heads[0].log() + &heads[1].log());
    let leader = leads().unwrap();
    heads[leader].kill();
    site.put("later", b"later").unwrap();
    for name in ["before", "after", "later"] {
        assert_eq!(site.read(name).ok().bytes(), name.as_bytes());
    }
}
