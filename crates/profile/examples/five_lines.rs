//! Opens a link, lists it, and reads two ranges of a file in it: `five_lines LINK FILE`.

use byname_profile::{Link, Profile};
use std::error::Error;

/// Names of the entries, and the bytes of the ranges one behind the other.
pub(crate) type Found = (Vec<Vec<u8>>, Vec<u8>);

pub(crate) fn read(profile: &Profile, link: &str, file: &str) -> Result<Found, Box<dyn Error>> {
    let (mut head, mut tail) = ([0; 16], [0; 100]);

    let link: Link = link.parse()?;
    let session = profile.open(&link)?;
    let listing = session.list(&link.name)?;
    let file = session.open(&link.name.with_generic(file.as_bytes()))?;
    let filled = file.read_ranges(&mut [(0, &mut head), (1_000_000, &mut tail)])?;

    let names = listing.entries().map(|entry| entry.name.to_vec()).collect();
    Ok((names, [&head[..filled[0]], &tail[..filled[1]]].concat()))
}

#[allow(dead_code, reason = "a test of the command line takes in the function above")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(link), Some(file)) = (words.next(), words.next()) else {
        return Err("usage: five_lines LINK FILE".into());
    };
    let (names, bytes) = read(&Profile::load()?, &link, &file)?;
    println!("{} entries; {} bytes read", names.len(), bytes.len());
    Ok(())
}
