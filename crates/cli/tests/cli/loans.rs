//! Keys that users lend for a while, for jobs elsewhere.

use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use crate::harness::wait_for;
use crate::sites::Site;
use crate::writing::{User, site_with_directory};

/// A command with what is in a directory that was lent, and nothing else.
fn by_lent(site: &Site, user: &User<'_>, dir: &str, args: &[&str]) -> Output {
    let mut byname = user.home.byname();
    byname.env("BYNAME_HOME", user.home.path().join(dir));
    byname.args(args).args(["--connect", &site.socket]).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_lent_key_acts_as_its_user_until_it_is_recalled() {
    let site = site_with_directory();
    let anna = User::new(&site, "anna", "physics");
    let bert = User::new(&site, "bert", "physics");
    let key = anna.run(&["site", "user", "lend", "job", "--for", "1h", "--site", "/lab"]).ok();
    let key = key.stdout().trim().to_owned();
    let mode = anna.home.path().join("job").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "only hers");
    let made = by_lent(&site, &anna, "job", &["mkdir", "/lab/physics/by-job"]);
    assert!(made.status.success(), "{}", said(&made));
    let owner = anna.run(&["getfacl", "/lab/physics/by-job"]).ok().stdout();
    assert!(owner.contains("# owner: anna"), "{owner}");

    // It lends none itself, and nobody else ends the loan or sees it.
    let lent = ["site", "user", "lend", "another", "--site", "/lab"];
    let refused = by_lent(&site, &anna, "job", &lent);
    assert!(said(&refused).contains("only a key that operators added lends"), "{}", said(&refused));
    assert!(!anna.home.path().join("another").exists(), "nothing is left of it");
    anna.run(&["site", "user", "lend", "another", "--for", "1h", "--site", "/lab"]).ok();
    let recall = ["site", "user", "recall", "another", "--site", "/lab"];
    let refused = by_lent(&site, &anna, "job", &recall);
    assert!(said(&refused).contains("nor ends other loans"), "{}", said(&refused));
    anna.run(&recall).ok();
    let loans = ["site", "user", "loans", "--site", "/lab"];
    assert!(anna.run(&loans).ok().stdout().contains(&key));
    assert!(!bert.run(&loans).ok().stdout().contains(&key));
    bert.run(&[&loans[..], &["--as", "anna"]].concat()).fails_with(7, "only an operator");
    assert!(site.run(&["user", "loans", "--as", "anna", "--json"]).ok().stdout().contains(&key));
    bert.run(&["site", "user", "recall", &key, "--site", "/lab"]).fails_with(2, "no key");

    anna.run(&["site", "user", "recall", "job", "--site", "/lab"]).ok();
    let late = by_lent(&site, &anna, "job", &["mkdir", "/lab/physics/late"]);
    assert!(said(&late).contains("does not know the key"), "{}", said(&late));
    anna.run(&["site", "user", "recall", "job", "--site", "/lab"]).fails_with(2, "no key");
}

#[test]
fn a_loan_ends_by_itself() {
    let site = site_with_directory();
    let anna = User::new(&site, "anna", "physics");
    anna.run(&["site", "user", "lend", "job", "--for", "8d", "--site", "/lab"]).fails_with(2, "7");
    anna.run(&["site", "user", "lend", "job", "--for", "1s", "--site", "/lab"]).ok();
    let try_it = || by_lent(&site, &anna, "job", &["mkdir", "-p", "/lab/physics/x"]);
    let is_over = || said(&try_it()).contains("lent for a time that is over");
    wait_for("the end of the loan", is_over, || said(&try_it()));
    anna.run(&["site", "user", "lend", "job", "--for", "1h", "--site", "/lab"]).ok();
    let again = try_it();
    assert!(again.status.success(), "{}", said(&again));
}
