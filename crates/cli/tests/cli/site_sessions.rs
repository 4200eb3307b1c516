//! Sessions at a site, with real processes: who ends them, and what goes on under their keys.

use crate::disks::Site;
use crate::harness::{wait_for, write};
use crate::puts::run;

/// How often the log has a command.
fn count(log: &str, command: &str) -> usize {
    log.matches(&format!("\"command\":\"{command}\"")).count()
}

fn log(site: &Site) -> String {
    site.run(&["log"]).ok().stdout()
}

fn are_all_ended(site: &Site) -> bool {
    let log = log(site);
    count(&log, "open-session") == count(&log, "end-session")
}

/// A user has a bound of sessions, which short programs would have reached.
#[test]
fn programs_that_end_leave_no_session() {
    let site = Site::new(1, 1);
    let local = site.home.path().join("local");
    write(&local, b"octets");
    run(&site, &["mkdir", "/lab/a", "/lab/b"]).ok();
    run(&site, &["put", &local.display().to_string(), "/lab/a/f"]).ok();
    run(&site, &["rm", "-r", "/lab/b"]).ok();
    run(&site, &["rm", "-r", "/lab/b"]).fails_with(3, "");
    assert!(count(&log(&site), "open-session") >= 4);
    wait_for("end of all sessions", || are_all_ended(&site), || log(&site));
    assert_eq!(site.put("g", b"more").map_err(|error| error.to_string()), Ok(()));
    wait_for("end of a writer's session", || are_all_ended(&site), || log(&site));
}

/// Many questions come under keys of a session that is there for that, and a head that was started
/// again, and has no keys, is asked under signatures.
#[test]
fn who_asks_much_goes_on_when_the_head_is_started_again() {
    let mut site = Site::new(0, 1);
    let opened = |site: &Site| count(&log(site), "open-session");
    let before = opened(&site);
    let socket = site.socket.clone();
    let args = ["site", "log", "--follow", "--connect", &socket];
    let follower = site.home.start(&args, "\"command\"");
    // Agreed upon when so much was asked that it is worth it.
    wait_for("a session for keys", || opened(&site) > before, || follower.log());
    run(&site, &["mkdir", "/lab/under-keys"]).ok();
    wait_for("its line", || count(&follower.log(), "mkdir") == 1, || follower.log());
    site.head.take().unwrap().interrupt();
    site.head = Some(site.start_head());
    run(&site, &["mkdir", "/lab/signed"]).ok();
    wait_for("the next line", || count(&follower.log(), "mkdir") == 2, || follower.log());
}

/// Who follows the log gets each change once, in order, as a line of JSON, as it happens.
#[test]
fn who_follows_the_log_gets_each_change_once_and_in_order() {
    let site = Site::new(0, 1);
    let socket = site.socket.clone();
    let follower =
        site.home.start(&["site", "log", "--follow", "--connect", &socket], "\"command\"");
    for number in 0..5 {
        run(&site, &["mkdir", &format!("/lab/d{number}")]).ok();
        let is_there = || count(&follower.log(), "mkdir") == number + 1;
        wait_for("the line of a change", is_there, || follower.log());
    }
    let followed = follower.log();
    let lines = followed.lines().filter(|line| line.starts_with('{'));
    let transactions: Vec<u64> = lines
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| line["transaction"].as_u64().unwrap())
        .collect();
    assert!(transactions.windows(2).all(|pair| pair[0] < pair[1]), "{followed}");
    // What was there before it began is in it, too.
    let all = log(&site);
    let missing = all.lines().take(transactions.len()).find(|line| !followed.contains(*line));
    assert_eq!(missing, None, "{followed}");
}
