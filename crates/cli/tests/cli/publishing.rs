//! Publishing: freshness, threads, roots on the files, and prepared mirrors.

use crate::harness::{Home, free_port, noise, write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Allowance beyond the bound for a delayed answer and the start of a process.
const SLACK: Duration = Duration::from_millis(500);

/// Asks again and again while a file changes; no question asked later than the bound after a
/// change may be answered with what was before.
fn holds_the_bound(freshness: &str, bound: Duration, rounds: u32) {
    let (home, reader) = (Home::new(), Home::new());
    let dir = home.work("d");
    write(&dir.join("f"), b"0");
    let up = home.up_with(&dir, "/lab/d", &["--freshness", freshness]);
    let link = up.link_to("f");
    reader.run(&["cat", &link]).ok();
    for round in 1..=rounds {
        let (old, new) = ((round - 1).to_string(), round.to_string());
        // The cache has just been filled with the old.
        assert_eq!(reader.run(&["cat", &link]).ok().bytes(), old.as_bytes());
        write(&dir.join("f"), new.as_bytes());
        let changed = Instant::now();
        loop {
            let asked = changed.elapsed();
            let found = reader.run(&["cat", &link]).ok();
            if found.bytes() == new.as_bytes() {
                if asked > bound + SLACK {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            assert_eq!(found.bytes(), old.as_bytes());
            assert!(asked <= bound + SLACK, "the old {asked:?} after the change");
        }
    }
}

#[test]
fn with_a_freshness_of_200_ms_nobody_sees_the_old_for_longer() {
    holds_the_bound("200ms", Duration::from_millis(200), 4);
}

#[test]
fn with_a_freshness_of_3_s_nobody_sees_the_old_for_longer() {
    holds_the_bound("3s", Duration::from_secs(3), 1);
}

#[test]
fn several_threads_read_one_large_file_as_one_does() {
    let (home, reader) = (Home::new(), Home::new());
    let dir = home.work("d");
    let content = noise(40_000_003, 6);
    write(&dir.join("big"), &content);
    let uri = format!("tcp://127.0.0.1:{}", free_port());
    let args = ["serve", dir.to_str().unwrap(), "--name", "/lab/d", "--listen", &uri];
    let server = home.start(&[&args[..], &["--workers", "3"]].concat(), "byname:/");
    let link = server.link_to("big");
    reader.run(&["get", &link]).ok();
    assert!(std::fs::read(reader.path().join("big")).unwrap() == content);
    home.run(&["serve", ".", "--name", "/x", "--workers", "0"]).fails_with(2, "--workers");
}

fn has_root(path: &Path) -> bool {
    let name = "user.byname.root";
    rustix::fs::getxattr(path, name, &mut [0; 256][..]).is_ok()
}

#[test]
fn roots_are_written_to_files_only_if_asked_for() {
    let (home, reader) = (Home::new(), Home::new());
    let dir = home.work("d");
    write(&dir.join("small"), b"small\n");
    write(&dir.join("large"), &noise(3_000_000, 7));
    let files = ["small", "large"].map(|name| dir.join(name));
    for attrs in [&[][..], &["--attrs=file"]] {
        let mut up = home.up_with(&dir, "/lab/d", attrs);
        for name in ["small", "large"] {
            // `stat` waits for the root.
            reader.run(&["stat", &up.link_to(name)]).ok();
        }
        assert_eq!(up.daemon.interrupt(), Some(0));
        let expected = !attrs.is_empty();
        assert!(files.iter().all(|file| has_root(file) == expected), "{attrs:?}");
    }
    let args = ["prepare", dir.to_str().unwrap(), "--name", "/lab/d", "--attrs=file", "--json"];
    let prepared = home.run(&args).ok().stdout();
    assert!(prepared.contains("\"known_files\":2"), "{prepared}");
}

#[test]
fn a_mirror_that_was_prepared_answers_at_once() {
    let (publisher, holder) = (Home::new(), Home::new());
    let dir = publisher.work("d");
    let content = noise(30_000_000, 8);
    write(&dir.join("big"), &content);
    let up = publisher.up(&dir, "/lab/d");
    holder.run(&["get", "-r", &up.link, "-o", "copy"]).ok();
    let args = ["prepare", "copy", "--name", "/lab/d", "--mirror", "--json"];
    let prepared = holder.run(&args).ok().stdout();
    assert!(prepared.contains("\"hashed_files\":1"), "{prepared}");
    let again = holder.run(&args).ok().stdout();
    assert!(again.contains("\"known_files\":1"), "{again}");
    // The mirror uses what was prepared: its state is locked while it runs.
    let uri = format!("tcp://127.0.0.1:{}", free_port());
    let serve = ["serve", "--mirror", "copy", "--name", "/lab/d", "--listen", &uri];
    let _mirror = holder.start(&serve, "byname:/");
    holder.run(&args).fails_with(7, "");
}
