//! Readers while somebody floods their server with questions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::flood::{Totals, flood};
use crate::harness::{Home, noise, write};

const SIZE: usize = 64 << 10;
/// What a server signs by default.
const SIGNATURES_PER_SECOND: u64 = 5_000;
const RATE: u64 = 8_000;

/// Runs `readers` while random names are asked for below the prefix.
fn while_flooded(address: &str, connections: usize, readers: impl FnOnce()) -> Totals {
    let ended = Arc::new(AtomicBool::new(false));
    let (address, flag) = (address.to_owned(), ended.clone());
    let flooding =
        std::thread::spawn(move || flood(&address, "/lab", (RATE, connections), &flag).unwrap());
    readers();
    ended.store(true, Ordering::Relaxed);
    flooding.join().unwrap()
}

#[test]
fn every_reader_is_answered_while_the_flood_is_refused() {
    let (publisher, reader) = (Home::new(), Home::new());
    let tree = publisher.work("tree");
    for number in 0..10 {
        write(&tree.join(format!("f{number}")), &noise(SIZE, number));
    }
    let up = publisher.up(&tree, "/lab");
    let out = reader.work("out").join("f");
    let address = format!("127.0.0.1:{}", up.port);
    for connections in [1, 16] {
        let begun = Instant::now();
        let totals = while_flooded(&address, connections, || {
            for number in 0..10 {
                // Nothing older than what the publisher says now.
                let link = up.link_to(&format!("f{number}"));
                let to = out.to_str().unwrap();
                reader.run(&["get", "--fresh", "--no-keep", &link, "-o", to]).ok();
                assert!(std::fs::read(&out).unwrap() == noise(SIZE, number));
                std::fs::remove_file(&out).unwrap();
                let gone = up.link_to(&format!("gone{number}"));
                reader.run(&["stat", "--fresh", &gone]).fails_with(3, "");
            }
        });
        // On a busy machine the flood may be slower than what the server signs.
        let signed_max = SIGNATURES_PER_SECOND * (begun.elapsed().as_secs() + 3);
        assert!(totals.data <= signed_max, "{totals:?}, at most {signed_max} signed");
        assert!(totals.nacks > 0 || totals.sent <= signed_max, "{totals:?}");
    }
}
