//! Mixes and sizes as they stand on the command line.

use crate::exit::{Failure, Outcome};
use crate::typed;
use byname_packet::Name;
use byname_profile::units;
use byname_traffic::Sizes;
use std::time::Duration;

/// One part of a mix.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    pub(super) prefix: Name,
    pub(super) weight: u32,
}

/// `/a=3,/b=1`: a comma before `/` or `ndn:` separates, for names may hold commas.
pub(super) fn mix(text: &str) -> Outcome<Vec<Part>> {
    let mut parts: Vec<String> = Vec::new();
    for piece in text.split(',') {
        match parts.last_mut() {
            Some(last) if !piece.starts_with('/') && !piece.starts_with("ndn:") => {
                last.push(',');
                last.push_str(piece);
            }
            _ => parts.push(piece.to_owned()),
        }
    }
    parts.iter().map(|part| part_of(part)).collect()
}

fn part_of(text: &str) -> Outcome<Part> {
    let weighted = text.rsplit_once('=');
    let weighted = weighted.and_then(|(name, weight)| Some((name, weight.parse().ok()?)));
    let (prefix, weight) = weighted.unwrap_or((text, 1));
    Ok(Part { prefix: typed::name(prefix)?, weight })
}

/// `1000`, `100-8000`, `100=3,1000-8000=1`.
pub(super) fn sizes(text: &str) -> Outcome<Sizes> {
    let wrong = || Failure::usage(format!("{text:?} is not N, MIN-MAX or a list of RANGE=WEIGHT"));
    let ranges: Option<Vec<_>> = text.split(',').map(range_of).collect();
    Sizes::weighted(&ranges.ok_or_else(wrong)?).map_err(Failure::usage)
}

fn range_of(text: &str) -> Option<(usize, usize, u32)> {
    let (range, weight) = match text.split_once('=') {
        Some((range, weight)) => (range, weight.parse().ok()?),
        None => (text, 1),
    };
    let (shortest, longest) = range.split_once('-').unwrap_or((range, range));
    let bytes = |text| usize::try_from(units::size(text).ok()?).ok();
    Some((bytes(shortest)?, bytes(longest)?, weight))
}

pub(super) fn duration(seconds: f64) -> Outcome<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| Failure::usage(format!("{seconds} is not a number of seconds")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes() {
        let read = |text: &str| {
            let parts = mix(text).unwrap();
            let parts = parts.iter().map(|it| (it.prefix.view().to_user(), it.weight));
            parts.collect::<Vec<_>>()
        };
        let part = |name: &str, weight| (name.to_owned(), weight);
        assert_eq!(read("/a=3,/b=1"), [part("/a", 3), part("/b", 1)]);
        assert_eq!(read("/a"), [part("/a", 1)]);
        assert_eq!(read("/a,b=c,/d=2"), [part("/a,b=c", 1), part("/d", 2)]);
        assert_eq!(read("/a/v=1=1"), [part("/a/v=1", 1)]);
        assert!(mix("a").is_err());
    }

    #[test]
    fn size_lists() {
        assert_eq!(sizes("1000").unwrap(), Sizes::fixed(1000).unwrap());
        assert_eq!(sizes("1K").unwrap(), Sizes::fixed(1024).unwrap());
        let expected = Sizes::weighted(&[(100, 100, 3), (1000, 8000, 1)]).unwrap();
        assert_eq!(sizes("100=3,1000-8000=1").unwrap(), expected);
        for bad in ["", "x", "1-", "-1", "9-1", "10=x", "10=0", "1,,2", "99999"] {
            assert!(sizes(bad).is_err(), "{bad:?}");
        }
    }
}
