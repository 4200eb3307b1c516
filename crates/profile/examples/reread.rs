//! Reads one file in vectors of ranges, one call after the other for a while, and writes what came
//! to standard output in the order of the file. A restart on the way must not show.
//!
//! ```text
//! reread LINK [MILLISECONDS BETWEEN CALLS]
//! ```

use std::error::Error;
use std::io::Write;
use std::time::Duration;

use byname_profile::{Link, Profile};

/// Ranges of one call, and octets of each.
const RANGES: usize = 16;
const RANGE_BYTES: usize = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let link = Link::from_user(&args.next().ok_or("a link is wanted")?)?;
    let pause_ms = args.next().map(|text| text.parse()).transpose()?.unwrap_or(0);
    let session = Profile::load()?.open(&link)?;
    let file = session.open(&link.name)?;
    let size = file.size().ok_or("the publisher does not say how large the file is")?;
    let mut buffers = vec![[0; RANGE_BYTES]; RANGES];
    let mut out = std::io::stdout().lock();
    for call in 0..size.div_ceil((RANGES * RANGE_BYTES) as u64) {
        let first = call * (RANGES * RANGE_BYTES) as u64;
        let mut ranges: Vec<(u64, &mut [u8])> = buffers
            .iter_mut()
            .enumerate()
            .map(|(place, buffer)| (first + (place * RANGE_BYTES) as u64, &mut buffer[..]))
            .collect();
        let filled = file.read_ranges(&mut ranges)?;
        for (buffer, filled) in buffers.iter().zip(filled) {
            out.write_all(&buffer[..filled])?;
        }
        std::thread::sleep(Duration::from_millis(pause_ms));
    }
    Ok(())
}
