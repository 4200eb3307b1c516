//! A head that stands still for a while.

use crate::disks::Site;
use crate::harness::{noise, signal};

/// Scenario 7, with the embedded engine: the lock on its file is the lease. While the head is
/// paused no other can take its place; when it goes on, what was sent meanwhile is done once.
#[test]
fn a_paused_head_keeps_its_place_and_does_what_it_was_sent_when_it_goes_on() {
    let mut site = Site::new(2, 2);
    let (first, second) = (noise(30_000, 1), noise(40_000, 2));
    site.put("f", &first).unwrap();
    let head = site.head.as_ref().unwrap().pid();
    signal(head, "STOP");
    let other = ["catalog", "--dir", "site", "--connect", &site.socket];
    site.home.run(&other).fails_with(7, "is another `byname catalog` running?");
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| site.put("h", &second));
        let moving = scope.spawn(|| {
            let mv = ["mv", "/lab/f", "/lab/g", "--timeout", "60", "--connect", &site.socket];
            site.home.run(&mv)
        });
        // A command that has no answer is sent again meanwhile.
        std::thread::sleep(std::time::Duration::from_secs(5));
        signal(head, "CONT");
        moving.join().unwrap().ok();
        writing.join().unwrap().unwrap();
    });
    assert!(site.read("g").ok().bytes() == first);
    assert!(site.read("h").ok().bytes() == second);
    let log = site.run(&["log"]);
    let log = log.ok().stdout();
    assert_eq!(log.matches("\"command\":\"rename\"").count(), 1, "{log}");
    site.await_status("OK");
    site.check();
}
