//! An attacker: asks for the descriptions of random names below a prefix, as fast as it is told to.
//!
//! usage: metadata_flood ADDRESS PREFIX RATE CONNECTIONS
//! Connects by TCP that many times and sends RATE Interests a second in all, each with a name of
//! its own (`PREFIX/<random>/32=metadata`, CanBePrefix, MustBeFresh). It reads what comes back and
//! ends when its standard input does; then it prints what it sent and got, as one JSON object.

mod flood;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flood::Totals;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, prefix, rate, connections] = &arguments[..] else {
        return Err("usage: metadata_flood ADDRESS PREFIX RATE CONNECTIONS".into());
    };
    let (rate, connections): (u64, usize) = (rate.parse()?, connections.parse()?);
    let totals = flood::flood(address, prefix, (rate, connections), &ended())?;
    let Totals { sent, data, nacks, held_back } = totals;
    println!(
        "{{\"sent\": {sent}, \"data\": {data}, \"nacks\": {nacks}, \"held_back\": {held_back}}}"
    );
    Ok(())
}

/// Set once standard input has ended.
fn ended() -> Arc<AtomicBool> {
    let ended = Arc::new(AtomicBool::new(false));
    let flag = ended.clone();
    std::thread::spawn(move || {
        // An error is an end, too.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        flag.store(true, Ordering::Relaxed);
    });
    ended
}
