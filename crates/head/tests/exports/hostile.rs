//! Lines that somebody has made who knows the format: sums are right, rows are not.

use std::sync::Arc;

use byname_catalog::engine::{Engine, MemoryEngine, Table};
use byname_catalog::id::InodeId;
use byname_catalog::{
    BaseRow, Caller, Command, EntryName, KnownRow, Place, Reader, RowChange, check,
};
use byname_head::rebuild::RebuildError;
use byname_security::base64;
use proptest::prelude::*;
use serde_json::json;

use crate::round::{import, lines_of, rows};
use crate::support::{TestSite, cases, place};

/// A site with files, a link, a removed file and a kept version.
fn site() -> Arc<dyn Engine> {
    let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::default());
    let mut site = TestSite::new(engine.clone());
    site.mkdir("op", "dir").unwrap();
    site.run("op", Command::MakeTree { place: place("dir") }).unwrap();
    site.run("op", Command::SetVersions { place: place("dir"), wanted: 2 }).unwrap();
    for size in [50, 60] {
        site.put("op", "dir/file", size);
    }
    site.put("op", "removed", 30);
    site.run("op", Command::Unlink { place: place("removed") }).unwrap();
    let target = b"dir/file".to_vec();
    site.run("op", Command::MakeSymlink { place: place("link"), target }).unwrap();
    engine
}

fn is_counters(row: &BaseRow) -> bool {
    (row.table, row.key.as_slice()) == (Table::Meta, b"counters")
}

/// The last change that rows know of.
fn last_change(rows: &[BaseRow]) -> Option<u64> {
    let known = rows.iter().rfind(|row| is_counters(row))?.known();
    match known {
        Ok(KnownRow::Counters(transaction, _)) => Some(transaction.0),
        _ => None,
    }
}

/// Lines of these rows, with the sum that they have.
fn lines(change: u64, rows: &[BaseRow]) -> String {
    let first = json!({
        "schema": 1, "kind": "catalog", "site": "/test/site", "transaction": change, "at_ns": 7,
    });
    let mut text = format!("{first}\n");
    for row in rows {
        let (key, value) = (base64::encode_url(&row.key), base64::encode_url(&row.value));
        let row = json!({ "table": row.table as u8, "key": key, "value": value });
        text += &format!("{}\n", json!({ "schema": 1, "kind": "x", "row": row }));
    }
    // Of two rows with one key the last one counts.
    let mut sorted: Vec<BaseRow> = Vec::new();
    for row in rows {
        sorted.retain(|it| (it.table, &it.key) != (row.table, &row.key));
        sorted.push(row.clone());
    }
    sorted.sort_by(|a, b| (a.table, &a.key).cmp(&(b.table, &b.key)));
    let mut hasher = blake3::Hasher::new();
    for row in &sorted {
        let mut octets = Vec::new();
        RowChange::from(row.clone()).encode(&mut octets);
        hasher.update(&octets);
    }
    let digest = hasher.finalize().to_hex().to_string();
    let end = json!({ "schema": 1, "kind": "end", "rows": sorted.len(), "digest": digest });
    text + &format!("{end}\n")
}

fn imported(rows: &[BaseRow]) -> Result<(), RebuildError> {
    let directory = tempfile::tempdir().unwrap();
    let change = last_change(rows).unwrap_or_default();
    let engine = import(&lines(change, rows), directory.path())?;
    assert_sound(&engine);
    Ok(())
}

/// Whatever was imported can be walked, and every name in it is one.
fn assert_sound(engine: &dyn Engine) {
    assert_eq!(check(&*engine.snapshot().unwrap()).unwrap(), []);
    let reader = Reader::new(engine, &Caller::Head).unwrap();
    let (mut left, mut seen) = (vec![InodeId::ROOT], 0);
    while let Some(id) = left.pop() {
        seen += 1;
        assert!(seen < 1000, "a directory is in itself");
        for entry in reader.list(&Place::inode(id), None, 1000).unwrap() {
            assert!(EntryName::new(entry.name.as_bytes()).is_ok(), "{:?}", entry.name);
            if entry.inode.is_directory() {
                left.push(entry.id);
            }
        }
    }
}

#[test]
fn lines_that_are_nobodys_work_are_taken() {
    imported(&rows(&*site())).unwrap();
}

/// An entry is put beside that of `dir/file`, whose inode gets a link more.
fn with_entry(name: &[u8]) -> Vec<BaseRow> {
    let mut rows = rows(&*site());
    let is_file = |row: &BaseRow| row.table == Table::Dentry && row.key.ends_with(b"file");
    let entry = rows.iter_mut().find(|row| is_file(row)).unwrap();
    entry.key.truncate(8);
    entry.key.extend_from_slice(name);
    rows
}

#[test]
fn entries_with_names_that_nobody_could_give_are_refused() {
    imported(&with_entry(b"other")).unwrap();
    for name in [&b""[..], b".", b"..", b"a/b", b"../../etc/passwd", b"a\0b", &[b'x'; 300]] {
        let refused = imported(&with_entry(name));
        assert!(refused.is_err(), "{:?}", String::from_utf8_lossy(name));
    }
}

#[test]
fn lines_of_another_site_and_lines_without_one_are_refused() {
    let own = rows(&*site());
    let headless: Vec<BaseRow> =
        own.iter().filter(|row| row.table != Table::Meta).cloned().collect();
    assert!(imported(&headless).is_err());
    let directory = tempfile::tempdir().unwrap();
    let mut other = own.clone();
    let name = other.iter_mut().find(|row| row.value.windows(4).any(|it| it == b"site")).unwrap();
    let at = name.value.windows(4).position(|it| it == b"site").unwrap();
    name.value[at] = b'S';
    let text = lines(last_change(&other).unwrap(), &other);
    assert!(matches!(import(&text, directory.path()), Err(RebuildError::OtherSite)));
}

#[test]
fn a_file_that_ends_anywhere_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let text = lines_of(&*site(), directory.path());
    for end in (0..text.len() - 1).step_by(97).chain([text.len() - 1]) {
        assert!(import(&text[..end], directory.path()).is_err(), "{end}");
    }
    let line = text.lines().nth(3).unwrap();
    for (from, to) in [
        ("\"table\":", "\"table\":9999"),
        ("\"key\":\"", "\"key\":\"!"),
        ("\"value\":\"", "\"value\":[\""),
        ("{", "[{"),
    ] {
        let altered = text.replacen(line, &line.replacen(from, to, 1), 1);
        assert!(import(&altered, directory.path()).is_err(), "{to}");
    }
    let long = text.replacen(line, &"x".repeat(2 << 20), 1);
    assert!(import(&long, directory.path()).is_err());
}

/// Numbers of the new catalog begin above what is said here.
#[test]
fn whoever_says_another_change_than_the_rows_do_is_refused() {
    let rows = rows(&*site());
    let change = last_change(&rows).unwrap();
    let imported = |change, rows: &[BaseRow]| {
        let directory = tempfile::tempdir().unwrap();
        import(&lines(change, rows), directory.path()).map(drop)
    };
    imported(change, &rows).unwrap();
    for other in [0, change - 1, change + 1, u64::MAX >> 1, u64::MAX - 1, u64::MAX] {
        let refused = imported(other, &rows).unwrap_err().to_string();
        assert!(refused.contains("as of another change"), "{other}: {refused}");
    }
    // The rows say so too.
    let mut used_up = rows;
    let counters = used_up.iter_mut().find(|row| is_counters(row)).unwrap();
    // Behind the version of the row: a number has seven bits of each octet, up to one without the
    // eighth.
    let end = 1 + counters.value[1..].iter().position(|octet| octet & 0x80 == 0).unwrap();
    let (version, rest) = (&counters.value[..1], &counters.value[end + 1..]);
    counters.value = [version, &[255; 9], &[1], rest].concat();
    assert_eq!(last_change(&used_up), Some(u64::MAX));
    let refused = imported(u64::MAX, &used_up).unwrap_err().to_string();
    assert!(refused.contains("no numbers left"), "{refused}");
}

/// What is done to rows.
#[derive(Debug, Clone)]
enum Harm {
    Key(usize, usize, u8),
    Value(usize, usize, u8),
    /// Numbers become as large as they can be.
    Huge(usize, usize),
    Cut(usize, usize),
    Table(usize, u8),
    Remove(usize),
    /// One row's value under another one's key, twice.
    Twice(usize, usize),
}

fn harm() -> impl Strategy<Value = Harm> {
    let (row, at) = (any::<usize>(), any::<usize>());
    let place = (row, at);
    prop_oneof![
        (place, any::<u8>()).prop_map(|((row, at), to)| Harm::Key(row, at, to)),
        (place, any::<u8>()).prop_map(|((row, at), to)| Harm::Value(row, at, to)),
        place.prop_map(|(row, at)| Harm::Huge(row, at)),
        place.prop_map(|(row, at)| Harm::Cut(row, at)),
        (any::<usize>(), 0..40_u8).prop_map(|(row, to)| Harm::Table(row, to)),
        any::<usize>().prop_map(Harm::Remove),
        place.prop_map(|(row, other)| Harm::Twice(row, other)),
    ]
}

fn do_harm(rows: &mut Vec<BaseRow>, harm: &Harm) {
    let count = rows.len();
    let set = |octets: &mut Vec<u8>, at: usize, to: u8| {
        if let Some(at) = at.checked_rem(octets.len()) {
            octets[at] = to;
        }
    };
    match *harm {
        Harm::Key(row, at, to) => set(&mut rows[row % count].key, at, to),
        Harm::Value(row, at, to) => set(&mut rows[row % count].value, at, to),
        Harm::Huge(row, at) => {
            let value = &mut rows[row % count].value;
            let from = at.checked_rem(value.len()).unwrap_or_default();
            value[from..].iter_mut().take(8).for_each(|octet| *octet = 255);
        }
        Harm::Cut(row, at) => {
            let value = &mut rows[row % count].value;
            value.truncate(at.checked_rem(value.len()).unwrap_or_default());
        }
        Harm::Table(row, to) => {
            if let Some(table) = Table::from_number(to) {
                rows[row % count].table = table;
            }
        }
        Harm::Remove(row) => drop(rows.remove(row % count)),
        Harm::Twice(row, other) => {
            let value = rows[other % count].value.clone();
            let twice = BaseRow { value, ..rows[row % count].clone() };
            rows.push(twice);
        }
    }
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn whatever_rows_are_a_catalog_that_is_made_of_them_is_sound(
        harms in proptest::collection::vec(harm(), 1..4)
    ) {
        let mut rows = rows(&*site());
        for harm in &harms {
            do_harm(&mut rows, harm);
        }
        // Refused, or sound; neither panics.
        let _ = imported(&rows);
    }

    #[test]
    fn whatever_octets_are_altered_in_lines_are_refused_or_say_the_same(
        at in any::<usize>(), to in any::<u8>()
    ) {
        let directory = tempfile::tempdir().unwrap();
        let mut text = lines_of(&*site(), directory.path()).into_bytes();
        let at = at % text.len();
        text[at] = to;
        if let Ok(text) = String::from_utf8(text)
            && let Ok(engine) = import(&text, directory.path())
        {
            assert_sound(&engine);
        }
    }
}
