//! Output for people and programs: lines that harm no terminal, sizes, tables, JSON lines.

use crate::exit::Code;
use byname_packet::NameRef;
use byname_profile::link::for_links;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// Version of the JSON that commands print; raised when a field changes its meaning.
const JSON_SCHEMA: u64 = 1;

/// Prints one JSON object on a line of its own, with the schema first.
pub(crate) fn json_line(value: Value) {
    out_line(&json_text(value));
}

/// The line.
pub(crate) fn json_text(value: Value) -> String {
    let mut object = json!({ "schema": JSON_SCHEMA });
    if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), value) {
        object.extend(fields);
    }
    object.to_string()
}

/// Prints a line on stdout. A reader that went away ends the process quietly, as for any filter;
/// a full disk does not: half a list must not look like a whole one.
pub(crate) fn out_line(line: &str) {
    let mut out = std::io::stdout().lock();
    let Err(error) = writeln!(out, "{}", harmless(line)) else { return };
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    err_line(&format!("byname: cannot write the output: {error}"));
    std::process::exit(Code::LocalDisk as i32);
}

/// Prints a line on stderr; nobody can be told if that fails.
pub(crate) fn err_line(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", harmless(line));
}

/// Escapes what would command a terminal: messages carry names that strangers chose. Line ends
/// stay; who has them in a name calls [`one_line`].
fn harmless(text: &str) -> std::borrow::Cow<'_, str> {
    let is_harmful = |c: char| c.is_control() && c != '\n';
    if !text.contains(is_harmful) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_harmful(c) {
            let mut octets = [0; 4];
            c.encode_utf8(&mut octets).bytes().for_each(|b| escaped.push_str(&format!("%{b:02X}")));
        } else {
            escaped.push(c);
        }
    }
    escaped.into()
}

/// Escapes line ends, so that a name cannot pass for a line of its own.
pub(crate) fn one_line(text: &str) -> String {
    text.replace('\n', "%0A")
}

/// True if progress bars and colours make sense on stderr.
pub(crate) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Width of the terminal on stderr, if there is one and it says so.
pub(crate) fn stderr_columns() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}

/// A name as it can be pasted back.
pub(crate) fn name(name: NameRef<'_>) -> String {
    for_links(&name.to_user())
}

/// One component or file name, escaped.
pub(crate) fn component(value: &[u8]) -> String {
    let mut text = String::new();
    byname_packet::name::escape_path_component(value, &mut text);
    for_links(&text)
}

/// A path below a directory, escaped, so that it can be put behind a name.
pub(crate) fn path(path: &std::path::Path) -> String {
    component_path(path.as_os_str().as_encoded_bytes())
}

/// The same of octets.
pub(crate) fn component_path(path: &[u8]) -> String {
    path.split(|octet| *octet == b'/').map(component).collect::<Vec<_>>().join("/")
}

/// `1 file`, `3 files`.
pub(crate) fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A short time with the unit that suits it.
pub(crate) fn short_time(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 1000.0 {
        format!("{micros:.0} µs")
    } else if micros < 1e6 {
        format!("{:.1} ms", micros / 1e3)
    } else {
        format!("{:.1} s", micros / 1e6)
    }
}

/// Octets in binary units with three significant digits.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64;
    let mut unit = "";
    for name in UNITS {
        if value < 1023.5 {
            break;
        }
        value /= 1024.0;
        unit = name;
    }
    let digits = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{value:.digits$} {unit}")
}

/// A time span, as coarse as people say it.
pub(crate) fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// How times are shown.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct TimeArgs {
    /// Show times in UTC, not in the local zone.
    #[arg(long)]
    utc: bool,
}

/// `YYYY-MM-DD hh:mm:ss +hh:mm`: local time with its offset.
pub(crate) fn time(unix_ns: u64, args: TimeArgs) -> String {
    let zone = if args.utc { jiff::tz::TimeZone::UTC } else { jiff::tz::TimeZone::system() };
    let shown = jiff::Timestamp::from_nanosecond(unix_ns.into())
        .map(|time| time.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S %:z").to_string());
    // Nothing that a clock shows.
    shown.unwrap_or_else(|_| "-".to_owned())
}

/// `YYYY-MM-DDThh:mm:ss.sssZ`, for programs.
pub(crate) fn time_utc(unix_ns: u64) -> String {
    let shown = jiff::Timestamp::from_nanosecond(unix_ns.into())
        .map(|time| time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string());
    shown.unwrap_or_else(|_| "-".to_owned())
}

/// Permission bits as `ls -l` prints them.
pub(crate) fn mode(mode: u32) -> String {
    let kind = if mode & 0o170_000 == 0o040_000 { 'd' } else { '-' };
    let mut text = String::from(kind);
    for shift in [6, 3, 0] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(if bits & 1 != 0 { 'x' } else { '-' });
    }
    text
}

/// Prints rows in columns; numbers are the caller's to align by padding.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) {
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> =
            cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        out_line(padded.join("  ").trim_end());
    };
    line(&mut header.iter().copied());
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
}

#[cfg(test)]
mod tests {
    use super::{TimeArgs, harmless, mode, size, time, time_utc};

    #[test]
    fn sizes() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (10 * 1024, "10.0 KiB"),
            (1024 * 1024 - 1, "1.00 MiB"),
            (1 << 30, "1.00 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn terminals_are_not_commanded() {
        assert_eq!(harmless("a\x1b[31m\u{9b}b\tc\r"), "a%1B[31m%C2%9Bb%09c%0D");
        assert_eq!(harmless("über\nnext"), "über\nnext");
    }

    #[test]
    fn modes_and_times() {
        assert_eq!(mode(0o100_640), "-rw-r-----");
        assert_eq!(mode(0o040_755), "drwxr-xr-x");
        let utc = TimeArgs { utc: true };
        assert_eq!(time(0, utc), "1970-01-01 00:00:00 +00:00");
        assert_eq!(time(1_795_385_106_625_866_715, utc), "2026-11-22 22:05:06 +00:00");
        assert_eq!(time_utc(1_795_385_106_625_866_715), "2026-11-22T22:05:06.625Z");
        assert_eq!(time(u64::MAX, utc), "2554-07-21 23:34:33 +00:00");
    }
}
