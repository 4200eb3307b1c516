//! Machines that join a site: users and disks, with nothing but its link.

use crate::disks::Site;
use crate::harness::{Home, noise, write};
use serde_json::Value;
use std::path::PathBuf;

/// What was printed, as a file that both sides can read.
fn file(home: &Home, name: &str, text: &str) -> String {
    let path: PathBuf = home.path().join(name);
    write(&path, text.as_bytes());
    path.to_str().unwrap().to_owned()
}

impl Site {
    /// A machine's request for a disk in a directory of it, as a file.
    fn request(&self, machine: &Home, link: &str, dir: &str) -> String {
        let join = ["site", "join", link, dir, "--capacity", "1G", "--server", "s9"];
        let asked = machine.run(&join).ok();
        assert!(asked.stderr().contains("byname site disk admit"), "{}", asked.stderr());
        file(machine, &format!("{dir}.request"), &asked.stdout())
    }

    /// An operator's answer, as a file.
    fn admit(&self, machine: &Home, request: &str) -> String {
        let admitted = self.run(&["disk", "admit", request]).ok();
        let said = admitted.stderr();
        assert!(said.contains("--allow-register 'ndn:/lab/32=disk/here/"), "{said}");
        file(machine, "admission", &admitted.stdout())
    }
}

#[test]
fn a_machine_joins_a_site_with_a_disk_and_no_operators_key() {
    let mut site = Site::new(1, 2);
    let (link, machine) = (site.link(), Home::new());
    site.put("f", b"one disk is too few").unwrap_err();
    let request = site.request(&machine, &link, "disk");
    assert_eq!(request, site.request(&machine, &link, "disk"), "asked again, it is the same");
    let admission = site.admit(&machine, &request);
    let done = machine.run(&["site", "join", &link, "disk", "--admitted", &admission]).ok();
    assert!(done.stderr().contains("byname disk disk"), "{}", done.stderr());
    let disk = ["disk", "disk", "--connect", &site.socket];
    let mut server = machine.start(&disk, "serving disk");
    // The link's key is trusted there now, for readers too.
    let stat = machine.run(&["stat", "/lab", "--connect", &site.socket]).ok().stdout();
    assert!(stat.contains("directory"), "{stat}");
    site.await_status("OK");
    let octets = noise(300_000, 1);
    site.put("f", &octets).unwrap();
    assert_eq!(site.contents(0).len(), 1);
    site.disks[0].take().unwrap().kill();
    assert!(site.read("f").ok().bytes() == octets, "it is on the disk that joined");
    site.disks[0] = Some(site.start_disk(0));
    let status = ["site", "status", "--site", &link, "--connect", &site.socket];
    machine.run(&status).fails_with(6, "there is no key of");
    // Killed and started again, it is the same disk.
    server.kill();
    let _server = machine.start(&disk, "serving disk");
    site.await_status("OK");
    site.run(&["fsck", "--disks", "--content"]).ok();
    let again = ["site", "join", &link, "disk", "--admitted", &admission];
    machine.run(&again).fails_with(7, "not empty");
    site.check();
}

#[test]
fn a_disk_moves_to_another_server_with_its_key() {
    let mut site = Site::new(1, 1);
    let (link, machine) = (site.link(), Home::new());
    let octets = noise(300_000, 1);
    site.put("f", &octets).unwrap();
    let listed = |site: &Site| -> Value {
        serde_json::from_str(&site.run(&["disk", "ls", "--json"]).ok().stdout()).unwrap()
    };
    let before = listed(&site);
    let number = before["disk"].as_u64().unwrap();
    site.disks[0].take().unwrap().kill();
    std::fs::rename(site.home.path().join("d0"), machine.path().join("disk")).unwrap();
    // Without its key it is nobody there.
    let serve = ["disk", "disk", "--connect", &site.socket];
    let key = format!("ndn:/lab/32=disk/here/seq={number}");
    let refused = machine.run(&serve);
    refused.fails_with(6, &format!("the key of {key}"));
    let secret = file(&machine, "secret", "a passphrase\n");
    let bag = ["key", "export", &key, "--format", "safebag", "--passphrase-file", &secret];
    let bag = file(&machine, "bag", &site.home.run(&bag).ok().stdout());
    machine.run(&["key", "import", &bag, "--passphrase-file", &secret]).ok();
    let _server = machine.start(&serve, "serving disk");
    site.await_status("OK");
    let of = number.to_string();
    site.run(&["disk", "set", &of]).fails_with(2, "--server");
    site.run(&["disk", "set", &of, "--server", "s9"]).ok();
    let after = listed(&site);
    assert_eq!(after["server"], "s9");
    assert_eq!((&after["disk"], &after["state"]), (&before["disk"], &before["state"]));
    let file = link.replacen("/lab", "/lab/f", 1);
    let read = machine.run(&["cat", &file, "--connect", &site.socket]);
    assert!(read.ok().bytes() == octets, "what it had is read there");
    site.check();
}

#[test]
fn a_user_joins_with_the_link_and_an_operators_word() {
    let site = Site::new(0, 1);
    let (link, anna) = (site.link(), Home::new());
    let joined = anna.run(&["site", "join", &link, "--user", "anna"]).ok();
    assert!(joined.stderr().contains("byname site user add anna --key"), "{}", joined.stderr());
    let certificate = file(&anna, "anna.cert", &joined.stdout());
    // From here on the name alone is enough: key and trust are there.
    let mkdir = ["mkdir", "/lab/anna", "--connect", &site.socket];
    anna.run(&mkdir).fails_with(6, "does not know the key");
    site.run(&["user", "add", "anna", "--operator", "--key", &certificate]).ok();
    anna.run(&mkdir).ok();
}

#[test]
fn requests_and_admissions_count_for_what_they_are_and_for_nobody_else() {
    let site = Site::new(0, 1);
    let (link, machine, other) = (site.link(), Home::new(), Home::new());
    machine.run(&["site", "join", "/lab", "disk"]).fails_with(2, "no key is trusted for /lab");
    write(&machine.work("full").join("file"), b"x");
    machine.run(&["site", "join", &link, "full"]).fails_with(7, "not empty");
    let request = site.request(&machine, &link, "disk");

    // A request for another site, one that nobody signed, and what is none.
    let elsewhere = link.replacen("/lab", "/elsewhere", 1);
    let foreign = site.request(&machine, &elsewhere, "disk2");
    site.run(&["disk", "admit", &foreign]).fails_with(2, "the request is for /elsewhere");
    let text = std::fs::read_to_string(&request).unwrap();
    let mut fields: Value = serde_json::from_str(&text).unwrap();
    let stolen: Value = serde_json::from_str(&std::fs::read_to_string(&foreign).unwrap()).unwrap();
    fields["certificate"] = stolen["certificate"].clone();
    let mixed = file(&machine, "mixed", &fields.to_string());
    site.run(&["disk", "admit", &mixed]).fails_with(2, "not for a new disk of /lab");
    let certificate = stolen["certificate"].as_str().unwrap();
    let (head, tail) = certificate.split_at(certificate.len() - 8);
    let changed: String = tail.chars().map(|c| if c == 'A' { 'B' } else { 'A' }).collect();
    fields["certificate"] = Value::String(format!("{head}{changed}"));
    let forged = file(&machine, "forged", &fields.to_string());
    site.run(&["disk", "admit", &forged]).fails_with(5, "not signed with its key");
    let nothing = file(&machine, "nothing", "{}");
    site.run(&["disk", "admit", &nothing]).fails_with(7, "no request of a disk");
    assert_eq!(site.run(&["disk", "ls", "--json"]).ok().stdout(), "", "nobody was admitted");

    // An admission is for one directory of one machine, and for the key that is trusted.
    let admission = site.admit(&machine, &request);
    let admitted = |home: &Home, link: &str, dir: &str| {
        home.run(&["site", "join", link, dir, "--admitted", &admission])
    };
    admitted(&other, &link, "disk").fails_with(6, "is not that of disk");
    admitted(&machine, &link, "disk3").fails_with(6, "is not that of disk3");
    let impostor = other.run(&["site", "init", "/lab", "--dir", "site"]).ok().stdout();
    admitted(&machine, impostor.trim(), "disk").fails_with(5, "another key than the one");
    admitted(&machine, &link, "disk").ok();

    // Whoever sends his request once more is no other disk, also if it is in use by now.
    let again = site.run(&["disk", "admit", &request]).ok();
    assert!(again.stderr().contains("it was admitted before, as disk"), "{}", again.stderr());
    assert_eq!(again.stdout(), std::fs::read_to_string(&admission).unwrap(), "what he had");
    assert_eq!(site.run(&["disk", "ls", "--json"]).ok().stdout().lines().count(), 1);
}
