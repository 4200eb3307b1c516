//! Sizes and spans of time as users write them: one syntax for every option.

use std::time::Duration;

/// Text that is no size or no span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitError {
    /// Not a size.
    Size,
    /// A size that no 64 bits hold.
    TooLarge,
    /// Not a span of time.
    Age,
    /// A span of no time.
    Zero,
}

impl std::fmt::Display for UnitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Size => {
                "a size is a number of bytes, or one with K, M, G or T behind it \
                 (powers of 1024): 512, 10K, 1.5G"
            }
            Self::TooLarge => "this is more than 16 EiB, and no size",
            Self::Age => {
                "a span of time is a number with ms, s, m, h, d or w behind it: \
                 200ms, 90s, 36h, 7d"
            }
            Self::Zero => "it has to be longer than nothing",
        })
    }
}

impl std::error::Error for UnitError {}

/// `512`, `10K`, `1.5G`, `3MiB`: bytes; units are powers of 1024, in either case.
///
/// # Errors
/// [`UnitError::Size`].
pub fn size(text: &str) -> Result<u64, UnitError> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "ki" | "kib" => 10,
        "m" | "mi" | "mib" => 20,
        "g" | "gi" | "gib" => 30,
        "t" | "ti" | "tib" => 40,
        _ => return Err(UnitError::Size),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(1 << shift).ok_or(UnitError::TooLarge);
    }
    let bytes = fraction(number).ok_or(UnitError::Size)? * (1u64 << shift) as f64;
    match bytes >= u64::MAX as f64 {
        true => Err(UnitError::TooLarge),
        // Half a byte is nothing that anybody means.
        false if shift == 0 => Err(UnitError::Size),
        false => Ok(bytes as u64),
    }
}

/// `200ms`, `90s`, `5m`, `36h`, `7d`, `2w`.
///
/// # Errors
/// [`UnitError::Age`].
pub fn age(text: &str) -> Result<Duration, UnitError> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).ok_or(UnitError::Age)?;
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "w" => 604_800.0,
        _ => return Err(UnitError::Age),
    };
    let span = fraction(number).ok_or(UnitError::Age)? * seconds;
    Duration::try_from_secs_f64(span).map_err(|_| UnitError::Age)
}

/// The same, or a number of seconds without a unit: `0.5`.
///
/// # Errors
/// [`UnitError::Age`].
pub fn seconds(text: &str) -> Result<Duration, UnitError> {
    let plain = fraction(text.trim()).and_then(|it| Duration::try_from_secs_f64(it).ok());
    plain.map_or_else(|| age(text), Ok)
}

/// Reads a span of time in whole seconds: seconds, or a number with a unit. A part of a second
/// counts as a whole one.
///
/// # Errors
/// [`UnitError`].
pub fn whole_seconds(text: &str) -> Result<u64, UnitError> {
    let span = seconds(text)?;
    match span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0)) {
        0 => Err(UnitError::Zero),
        seconds => Ok(seconds),
    }
}

/// A decimal number without sign or exponent.
fn fraction(text: &str) -> Option<f64> {
    let is_plain = text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|octet| octet.is_ascii_digit() || octet == b'.');
    text.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::{UnitError, age, seconds, size, whole_seconds};
    use std::time::Duration;

    #[test]
    fn whole_seconds_are_at_least_one() {
        for (text, expected) in [("15", 15), ("2m", 120), ("200ms", 1), ("1.5", 2)] {
            assert_eq!(whole_seconds(text), Ok(expected), "{text}");
        }
        for text in ["0", "0s", "0ms"] {
            assert_eq!(whole_seconds(text), Err(UnitError::Zero), "{text}");
        }
        assert_eq!(whole_seconds("-1"), Err(UnitError::Age));
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("512", 512),
            ("0", 0),
            ("10k", 10 << 10),
            ("3M", 3 << 20),
            ("3MiB", 3 << 20),
            ("1.5G", 3 << 29),
            ("2T", 2 << 40),
            ("7 B", 7),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "x", "K", "-1", "1.5", "1e3", "1.2.3K", "10X", ".5K"] {
            assert_eq!(size(text), Err(UnitError::Size), "{text}");
        }
        for text in ["99999999999G", "99999999999.5G", "18446744073709551616"] {
            assert_eq!(size(text), Err(UnitError::TooLarge), "{text}");
        }
    }

    #[test]
    fn ages() {
        for (text, ms) in [
            ("200ms", 200),
            ("90s", 90_000),
            ("1.5m", 90_000),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(age(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("200ms"), Ok(Duration::from_millis(200)));
        for text in ["", "-1", "1e3", "x", "99999999999999999999"] {
            assert_eq!(seconds(text), Err(UnitError::Age), "{text}");
        }
        for text in ["", "5", "s", "-1s", "1y", "1e9s", "99999999999999999999w"] {
            assert_eq!(age(text), Err(UnitError::Age), "{text}");
        }
    }
}
