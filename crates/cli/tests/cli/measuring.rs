//! `byname site bench`: what is measured is done.

use crate::disks::Site;
use crate::puts::run;

#[test]
fn rates_of_a_catalog_are_measured_and_nothing_is_left() {
    let mut site = Site::new(0, 1);
    let bench = ["site", "bench", "/lab/rates", "--files", "70", "--json"];
    let many = [&bench[..], &["--clients", "3", "--in-flight", "64"]].concat();
    for (args, count) in [(&many[..], 210), (&bench[..], 70)] {
        let lines = run(&site, args).ok().stdout();
        let phases: Vec<serde_json::Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let names: Vec<_> = phases.iter().filter_map(|phase| phase["phase"].as_str()).collect();
        assert_eq!(names, ["create", "stat", "ask", "list", "rename", "remove"]);
        assert!(phases.iter().all(|phase| phase["count"] == count), "{lines}");
        run(&site, &["stat", "/lab/rates", "--fresh"]).fails_with(3, "");
    }
    let log = site.run(&["log"]).ok().stdout();
    let done = |what: &str| log.matches(&format!("\"command\":\"{what}\"")).count();
    assert_eq!((done("create"), done("rename"), done("unlink")), (280, 280, 280));
    run(&site, &["mkdir", "/lab/rates"]).ok();
    run(&site, &bench).fails_with(1, "there is something of this name");
    site.check();
}
