//! Settings in the text: `key=value`.

use byname_packet::Name;

use super::Problem;
use crate::queue::Discipline;
use crate::world::LinkConfig;

/// A word of a line, and the column of its first character.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) column: usize,
}

/// Settings of hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct HostSettings {
    pub(super) store_bytes: Option<u64>,
    pub(super) strategy: Option<String>,
}

const HOST_KEYS: &str = "hosts have `store` and `strategy`";
const LINK_KEYS: &str = "links have `rate`, `delay`, `jitter`, `queue`, `discipline`, `mtu`, \
    `loss`, `burst`, `bad-begin`, `bad-end`, `duplication`, `disorder`, `late` and `corruption`";

/// A key, its value, and where the value stands.
struct Setting<'a> {
    key: &'a str,
    value: &'a str,
    key_column: usize,
    column: usize,
}

fn split<'a>(line: usize, word: &Word<'a>) -> Result<Setting<'a>, Problem> {
    let Some((key, value)) = word.text.split_once('=') else {
        return Err(Problem {
            line,
            column: word.column,
            what: format!("`{}` is no setting", word.text),
            hint: "settings are written `key=value`, without spaces".to_owned(),
        });
    };
    let column = word.column + key.chars().count() + 1;
    Ok(Setting { key, value, key_column: word.column, column })
}

fn unknown(line: usize, setting: &Setting<'_>, hint: &str) -> Problem {
    let what = format!("there is no setting `{}`", setting.key);
    Problem { line, column: setting.key_column, what, hint: hint.to_owned() }
}

/// Value of a setting, or a hint at the value expected.
type Parsed<T> = Result<T, &'static str>;

fn value<T>(line: usize, setting: &Setting<'_>, parsed: Parsed<T>) -> Result<T, Problem> {
    parsed.map_err(|hint| Problem {
        line,
        column: setting.column,
        what: format!("`{}` is no value of `{}`", setting.value, setting.key),
        hint: hint.to_owned(),
    })
}

/// The only setting that may stand there, if it does.
pub(super) fn one<T>(
    line: usize,
    words: &[Word<'_>],
    key: &str,
    parse: fn(&str) -> Parsed<T>,
) -> Result<Option<T>, Problem> {
    let mut found = None;
    for word in words {
        let setting = split(line, word)?;
        if setting.key != key {
            return Err(unknown(line, &setting, &format!("only `{key}` can be set here")));
        }
        found = Some(value(line, &setting, parse(setting.value))?);
    }
    Ok(found)
}

pub(super) fn host(
    line: usize,
    mut host: HostSettings,
    words: &[Word<'_>],
) -> Result<HostSettings, Problem> {
    for word in words {
        let setting = split(line, word)?;
        match setting.key {
            "store" => host.store_bytes = Some(value(line, &setting, bytes(setting.value))?),
            "strategy" => host.strategy = Some(value(line, &setting, strategy(setting.value))?),
            _ => return Err(unknown(line, &setting, HOST_KEYS)),
        }
    }
    Ok(host)
}

pub(super) fn link(
    line: usize,
    mut link: LinkConfig,
    words: &[Word<'_>],
) -> Result<LinkConfig, Problem> {
    for word in words {
        let setting = split(line, word)?;
        let text = setting.value;
        let faults = &mut link.line.faults;
        match setting.key {
            "rate" => link.line.queue.bits_per_s = value(line, &setting, rate(text))?,
            "delay" => link.line.delay_ns = value(line, &setting, time_ns(text))?,
            "jitter" => link.line.jitter_ns = value(line, &setting, time_ns(text))?,
            "queue" => link.line.queue.buffer_bytes = value(line, &setting, bytes(text))?,
            "discipline" => link.line.queue.discipline = value(line, &setting, discipline(text))?,
            "mtu" => link.mtu_bytes = value(line, &setting, mtu(text))?,
            "loss" => faults.loss = value(line, &setting, probability(text))?,
            "burst" => faults.burst = value(line, &setting, count(text))?,
            "bad-begin" => faults.bursts.begin = value(line, &setting, probability(text))?,
            "bad-end" => faults.bursts.end = value(line, &setting, probability(text))?,
            "duplication" => faults.duplication = value(line, &setting, probability(text))?,
            "disorder" => faults.disorder = value(line, &setting, probability(text))?,
            "late" => faults.late_ns = value(line, &setting, time_ns(text))?,
            "corruption" => faults.corruption = value(line, &setting, probability(text))?,
            _ => return Err(unknown(line, &setting, LINK_KEYS)),
        }
    }
    Ok(link)
}

/// A number with one of some suffixes, each with its factor.
fn scaled(text: &str, suffixes: &[(&str, f64)]) -> Option<u64> {
    let start = text.find(|it: char| it.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(start);
    let (_, factor) = suffixes.iter().find(|(known, _)| *known == suffix)?;
    let number: f64 = number.parse().ok().filter(|it: &f64| *it >= 0.0)?;
    let scaled = (number * factor).round();
    (scaled < 9e18).then_some(scaled as u64)
}

fn rate(text: &str) -> Parsed<u64> {
    let suffixes = [("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)];
    let rate = scaled(text, &suffixes).filter(|rate| *rate > 0);
    rate.ok_or("write bits per second, such as `10G`, `100M` or `1.5M`")
}

pub(super) fn bytes(text: &str) -> Parsed<u64> {
    let step = 1024.0f64;
    let suffixes = [
        ("", 1.0),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("Ki", step),
        ("Mi", step.powi(2)),
        ("Gi", step.powi(3)),
        ("Ti", step.powi(4)),
    ];
    scaled(text, &suffixes).ok_or("write octets, such as `64Mi`, `4G` or `9000`")
}

pub(super) fn time_ns(text: &str) -> Parsed<u64> {
    let suffixes = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    scaled(text, &suffixes).ok_or("write a time with its unit, such as `5ms`, `20us` or `1.5s`")
}

fn probability(text: &str) -> Parsed<f64> {
    let (number, factor) = match text.strip_suffix('%') {
        Some(number) => (number, 0.01),
        None => (text, 1.0),
    };
    let number: Option<f64> = number.parse().ok().map(|it: f64| it * factor);
    let number = number.filter(|it| (0.0..=1.0).contains(it));
    number.ok_or("write a share from `0` to `1`, or a percentage such as `0.1%`")
}

fn count(text: &str) -> Parsed<u64> {
    text.parse().map_err(|_| "write a whole number")
}

fn mtu(text: &str) -> Parsed<Option<usize>> {
    const HINT: &str = "write octets of a frame, 128 or more, or `stream`";
    match text {
        "stream" => Ok(None),
        _ => text.parse().ok().filter(|mtu| *mtu >= 128).map(Some).ok_or(HINT),
    }
}

fn discipline(text: &str) -> Parsed<Discipline> {
    let known = DISCIPLINES.iter().find(|(name, _)| *name == text);
    known.map(|(_, it)| *it).ok_or("write `drop-tail`, `codel` or `codel-marks`")
}

pub(super) const DISCIPLINES: [(&str, Discipline); 3] = [
    ("drop-tail", Discipline::DropTail),
    ("codel", Discipline::Codel),
    ("codel-marks", Discipline::CodelMarks),
];

fn strategy(text: &str) -> Parsed<String> {
    const HINT: &str = "write the name of a strategy, as `asf`, parameters after a `/`";
    let name: Option<Name> = crate::host::strategy_name(text);
    let chosen = name.and_then(|name| byname_forwarder::strategy::by_name(name.view()));
    chosen.map(|_| text.to_owned()).ok_or(HINT)
}
