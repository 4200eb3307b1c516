//! Opens a link, lists it, and reads from a file in it, with this crate alone:
//! `one_call LINK FILE`.

use std::process::ExitCode;

use byname_profile::{ProfileError, UnknownKey};

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (Some(link), Some(file)) = (words.next(), words.next()) else {
        eprintln!("usage: one_call LINK FILE");
        return ExitCode::FAILURE;
    };
    let Err(error) = read(&link, &file) else { return ExitCode::SUCCESS };
    let unknown = match &error {
        ProfileError::Client(error) => UnknownKey::of(error),
        _ => None,
    };
    match unknown {
        Some(unknown) => eprintln!("{unknown}"),
        None => eprintln!("{error}"),
    }
    ExitCode::FAILURE
}

fn read(link: &str, file: &str) -> Result<(), ProfileError> {
    let session = byname_profile::open(link)?;
    for entry in session.list(session.name())?.entries() {
        println!("{}", String::from_utf8_lossy(entry.name));
    }
    let file = session.open(&session.name().with_generic(file.as_bytes()))?;
    let (mut head, mut tail) = ([0; 16], [0; 100]);
    let filled = file.read_ranges(&mut [(0, &mut head), (2_999_950, &mut tail)])?;
    println!("{filled:?} {head:02x?}");
    Ok(())
}
