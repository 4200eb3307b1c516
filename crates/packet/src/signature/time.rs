//! The 15-character time of certificates, `YYYYMMDDThhmmss` in UTC.
//!
//! Days are counted with the civil-calendar arithmetic in which a year starts in March, so that the
//! leap day is the last of its year. The range is that of the format: years 0000 to 9999; moments
//! before the epoch read as 0.

const DAY_S: i64 = 86_400;
/// The last second of the year 9999.
const LAST_S: u64 = 253_402_300_799;

/// Days from 1970-01-01 to the given date of the proleptic Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Reads `YYYYMMDDThhmmss`; `None` when it is not a moment of the calendar.
pub fn parse_iso(text: &[u8]) -> Option<u64> {
    if text.len() != 15 || text[8] != b'T' {
        return None;
    }
    let number = |range: std::ops::Range<usize>| -> Option<i64> {
        text[range].iter().try_fold(0i64, |acc, octet| {
            octet.is_ascii_digit().then(|| acc * 10 + i64::from(octet - b'0'))
        })
    };
    let (year, month, day) = (number(0..4)?, number(4..6)?, number(6..8)?);
    let (hour, minute, second) = (number(9..11)?, number(11..13)?, number(13..15)?);
    let days = days_from_civil(year, month, day);
    let is_date = (1..=12).contains(&month) && civil_from_days(days) == (year, month, day);
    // 60 is a leap second.
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days * DAY_S + hour * 3600 + minute * 60 + second;
    Some(u64::try_from(seconds).unwrap_or(0).min(LAST_S))
}

/// Writes `YYYYMMDDThhmmss`; moments after the year 9999 are written as its last second.
pub fn format_iso(unix_s: u64) -> String {
    let seconds = unix_s.min(LAST_S) as i64;
    let (year, month, day) = civil_from_days(seconds.div_euclid(DAY_S));
    let of_day = seconds.rem_euclid(DAY_S);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use super::{format_iso, parse_iso};

    #[test]
    fn known_moments() {
        for (text, unix_s) in [
            ("19700101T000000", 0),
            ("20000229T235959", 951_868_799),
            ("20261121T073200", 1_795_246_320),
            ("99991231T235959", 253_402_300_799),
        ] {
            assert_eq!(parse_iso(text.as_bytes()), Some(unix_s), "{text}");
            assert_eq!(format_iso(unix_s), text);
        }
        assert_eq!(format_iso(u64::MAX), "99991231T235959");
        assert_eq!(parse_iso(b"19691231T235959"), Some(0));
        let leap = parse_iso(b"99991231T235960").unwrap();
        assert_eq!(parse_iso(format_iso(leap).as_bytes()), Some(leap));
    }

    #[test]
    fn not_moments() {
        for text in ["20230229T000000", "20231301T000000", "2023010aT000000", "20230101 000000"] {
            assert_eq!(parse_iso(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_iso(b"20230101T240000"), None);
        assert_eq!(parse_iso(b"2023"), None);
    }
}
