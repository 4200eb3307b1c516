//! `truncate` to sizes other than 0: new versions, written from what was there.

use crate::disks::Site;
use crate::harness::{noise, write};
use crate::puts::{expect, json, run};
use std::sync::atomic::{AtomicBool, Ordering};

fn stat(site: &Site, name: &str, key: &str) -> serde_json::Value {
    json(site, &["stat", name, "--fresh"])[key].clone()
}

#[test]
fn files_become_shorter_and_longer() {
    let site = Site::new(2, 2);
    let octets = noise(300_000, 1);
    site.put("f", &octets).unwrap();
    run(&site, &["chmod", "640", "/lab/f"]).ok();
    run(&site, &["xattr", "set", "/lab/f", "user.x", "kept"]).ok();
    run(&site, &["truncate", "-s", "100K", "/lab/f"]).ok();
    expect(&site, "/lab/f", &octets[..102_400]);
    run(&site, &["truncate", "-s", "200K", "/lab/f"]).ok();
    let mut longer = octets[..102_400].to_vec();
    longer.resize(204_800, 0);
    expect(&site, "/lab/f", &longer);
    assert_eq!(stat(&site, "/lab/f", "mode"), "640");
    assert_eq!(run(&site, &["xattr", "get", "/lab/f", "user.x"]).ok().stdout(), "kept");
    let version = stat(&site, "/lab/f", "version");
    run(&site, &["truncate", "-s", "200K", "/lab/f"]).ok();
    assert_eq!(stat(&site, "/lab/f", "version"), version, "it has this size");

    run(&site, &["touch", "/lab/empty"]).ok();
    run(&site, &["truncate", "-s", "10000", "/lab/empty"]).ok();
    expect(&site, "/lab/empty", &[0; 10_000]);
    run(&site, &["truncate", "/lab/empty", "/lab/f"]).ok();
    expect(&site, "/lab/empty", b"");
    expect(&site, "/lab/f", b"");
    run(&site, &["mkdir", "/lab/d"]).ok();
    run(&site, &["truncate", "-s", "10", "/lab/d"]).fails_with(1, "it is a directory");
    run(&site, &["truncate", "-s", "10", "/lab/none"]).fails_with(3, "no such file");
    run(&site, &["truncate", "-s", "2G", "/lab/empty"]).fails_with(1, "not enough disks");
    let status = site.run(&["status", "--json"]).stdout();
    assert!(status.contains("\"reserved_bytes\":0"), "{status}");
}

/// A file is rewritten while others make it shorter: what was written last is not lost to who has
/// read what was there before.
#[test]
fn who_makes_a_file_shorter_brings_nothing_back_that_was_rewritten() {
    let site = Site::new(1, 1);
    site.put("f", &[1; 3000]).unwrap();
    let is_over = AtomicBool::new(false);
    let mut last = 1;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // It may be rewritten too often for it.
                run(&site, &["truncate", "-s", "1000", "/lab/f"]);
            }
        });
        let local = site.home.path().join("version");
        for round in 2..12_u8 {
            write(&local, &[round; 3000]);
            // Whoever commits first wins; who is told so has written nothing.
            if run(&site, &["put", local.to_str().unwrap(), "/lab/f"]).stderr().contains("wrote 1")
            {
                last = round;
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    run(&site, &["truncate", "-s", "1000", "/lab/f"]).ok();
    expect(&site, "/lab/f", &[last; 1000]);
    assert!(last > 1);
}
