//! Carries bytes between two processes over Unix sockets and does nothing else: the least that
//! anything between them can cost.
//!
//! usage: relay LISTEN_A LISTEN_B
//! Takes one connection on each socket, then passes on what comes, first from A to B, then from B
//! to A, in turn and with blocking calls: made for one exchange at a time.

use std::error::Error;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

const BUFFER_BYTES: usize = 64 << 10;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(a), Some(b), None) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err("usage: relay LISTEN_A LISTEN_B".into());
    };
    let (a, b) = (UnixListener::bind(a)?, UnixListener::bind(b)?);
    println!("listening");
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut producer = b.accept()?.0;
    // One consumer after the other.
    loop {
        let mut consumer = a.accept()?.0;
        while pass(&mut consumer, &mut producer, &mut buffer)?
            && pass(&mut producer, &mut consumer, &mut buffer)?
        {}
    }
}

/// Passes on what one read gives; false at the end.
fn pass(from: &mut UnixStream, to: &mut UnixStream, buffer: &mut [u8]) -> std::io::Result<bool> {
    let count = from.read(buffer)?;
    to.write_all(&buffer[..count])?;
    Ok(count > 0)
}
