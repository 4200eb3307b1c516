//! Room that is reserved for files that are not there yet, with real processes.

use crate::disks::{Site, site_name, writer_as};
use crate::harness::{Home, write};
use byname_catalog::{Command, Create, Place, PolicyChanges, Publish, Refusal};
use byname_writer::{Writer, WriterError};

const GIB: u64 = 1 << 30;

/// A user of the site with a key of her own.
fn member(site: &Site, name: &str) -> (Home, Writer) {
    let home = Home::new();
    home.run(&["trust", "add", &site.link()]).ok();
    let key = home.run(&["site", "user", "key", "--site", "/lab", "--user", name]).ok();
    let file = site.home.path().join(format!("{name}.cert"));
    write(&file, key.stdout().as_bytes());
    let file = file.to_str().unwrap();
    site.run(&["user", "add", name, "--group", "physics", "--key", file]).ok();
    let user = site_name().user(name);
    let writer = writer_as((&home, &site.home), (user, None), &site.socket);
    (home, writer)
}

/// Begins a file that is said to become so large; why not.
fn begin(writer: &mut Writer, path: &str, size_max: u64) -> Option<Refusal> {
    let create = Create {
        place: Place::path(path.as_bytes()).unwrap(),
        mode: 0o644,
        size_max,
        publish: Publish::AtCommit,
        exclusive: false,
        policy: PolicyChanges::default(),
    };
    match writer.execute(Command::Create(create), &|| false) {
        Err(WriterError::Refused(refusal)) => Some(refusal),
        // The answer is leave to write, which nobody makes use of.
        Err(WriterError::OtherAnswer) => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_user_without_a_quota_keeps_no_others_from_the_room_of_a_space() {
    let site = Site::new(1, 1);
    let listed = site.run(&["disk", "ls", "--json"]).ok().stdout();
    let row: serde_json::Value = serde_json::from_str(listed.trim()).unwrap();
    let capacity = (100 * GIB).to_string();
    site.run(&["disk", "set", &row["disk"].to_string(), "--capacity", &capacity]).ok();
    site.home.run(&["mkdir", "/lab/d", "--mode", "777", "--connect", &site.socket]).ok();
    let (anna_home, mut anna) = member(&site, "anna");
    let (bert_home, mut bert) = member(&site, "bert");
    let put = |home: &Home, local: &str, name: &str| {
        home.run(&["put", local, name, "--connect", &site.socket])
    };
    let local = anna_home.path().join("local");
    write(&local, b"small");
    let local = local.to_str().unwrap();

    assert_eq!(begin(&mut anna, "d/all", 99 * GIB), Some(Refusal::TooMuchReserved));
    assert_eq!(begin(&mut anna, "d/half", 50 * GIB), None);
    assert_eq!(begin(&mut bert, "d/other", 26 * GIB), Some(Refusal::TooMuchReserved));
    put(&bert_home, local, "/lab/d/small").ok();
    assert_eq!(begin(&mut bert, "d/other", 24 * GIB), None);
    // Whoever has his share is told what to do.
    let refused = put(&anna_home, local, "/lab/d/more");
    let refused = refused.fails_with(1, "more than a fair share of the space's room");
    assert!(refused.stderr().contains("byname site quota set"), "{}", refused.stderr());
    let quota = (60 * GIB).to_string();
    site.run(&["quota", "set", "user:anna", "--bytes", &quota]).ok();
    put(&anna_home, local, "/lab/d/more").ok();
    assert_eq!(begin(&mut anna, "d/more-yet", 9 * GIB), None);
    assert_eq!(begin(&mut anna, "d/too-much", 2 * GIB), Some(Refusal::TooMuchReserved));
}
