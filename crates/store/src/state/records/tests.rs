//! Tests of the records: what is lost, broken or damaged while they are in use.

use byname_transfer::server::{FileState, Fingerprint, Record, RecordKey, Subject};
use redb::{ReadableTable as _, TableDefinition};

use super::{FRESH_MAX, META, NAMES, Records, RootRecord, name_key};

/// Later than any clock that a test sees.
const FUTURE: u64 = u64::MAX / 2;

fn key(name: u8) -> RecordKey {
    RecordKey { name: vec![name], listing: false }
}

fn print(state: u8) -> Fingerprint {
    Fingerprint::new([1; 16], [state; 24])
}

fn record(version: u64, state: u8) -> Record {
    Record { subject: Subject::File(print(state)), version }
}

fn opened(directory: &tempfile::TempDir) -> Records {
    Records::open(&directory.path().join("records.redb")).expect("records")
}

fn set_aside(directory: &tempfile::TempDir) -> usize {
    let entries = std::fs::read_dir(directory.path()).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names.filter(|name| name.to_string_lossy().contains(".broken-")).count()
}

#[test]
fn records_that_break_while_they_are_written_begin_anew_and_versions_above_the_floor() {
    let directory = tempfile::tempdir().expect("a directory");
    let records = opened(&directory);
    assert_eq!(records.commit(&[(key(1), record(5, 1))], &[]).expect("kept"), [true]);
    records.close();
    records.commit(&[(key(1), record(6, 1)), (key(2), record(FUTURE, 1))], &[]).expect_err("no");
    assert_eq!(set_aside(&directory), 1);
    for asked in [key(1), key(2)] {
        let (kept, floor) = records.name(&asked);
        assert_eq!(kept, None);
        assert!(floor >= FUTURE, "what may have been announced is not announced again: {floor}");
    }
    let floor = records.name(&key(1)).1;
    assert_eq!(records.commit(&[(key(1), record(floor, 1))], &[]).expect("kept"), [true]);
}

#[test]
fn roots_are_written_into_records_that_had_to_begin_anew() {
    let directory = tempfile::tempdir().expect("a directory");
    let records = opened(&directory);
    records.close();
    let root = RootRecord { fingerprint: print(1), root: [7; 32] };
    records.commit(&[], &[root]).expect("kept");
    assert_eq!(set_aside(&directory), 1);
    assert_eq!(records.root(&print(1)), Some([7; 32]));
}

#[test]
fn a_failure_that_the_content_is_not_to_blame_for_leaves_the_records_in_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let records = opened(&directory);
    records.commit(&[(key(1), record(5, 1))], &[]).expect("kept");
    let of_another_type: TableDefinition<'_, u64, u64> = TableDefinition::new("meta-1");
    let spoiled = records.with_database(|database| {
        let transaction = database.begin_write()?;
        transaction.delete_table(META)?;
        transaction.open_table(of_another_type)?;
        Ok(transaction.commit()?)
    });
    spoiled.expect("a table of another type");
    records.commit(&[(key(1), record(FUTURE, 1))], &[]).expect_err("it cannot be written");
    assert_eq!(set_aside(&directory), 0);
    assert_eq!(records.name(&key(1)).0, Some(record(5, 1)));
}

#[test]
fn of_two_records_of_one_name_the_first_counts_unless_the_other_is_later() {
    let directory = tempfile::tempdir().expect("a directory");
    let records = opened(&directory);
    let keep = |record| records.commit(&[(key(1), record)], &[]).expect("an answer")[0];
    assert!(keep(record(5, 1)));
    assert!(keep(record(5, 1)), "the same once more");
    assert!(!keep(record(5, 2)), "another state under the same version");
    assert!(!keep(record(4, 2)));
    assert_eq!(records.name(&key(1)).0, Some(record(5, 1)));
    assert!(keep(record(6, 2)));
    assert_eq!(records.name(&key(1)).0, Some(record(6, 2)));
}

#[test]
fn a_damaged_record_is_lost_and_raises_the_floor() {
    let asked = [(key(1), FileState { fingerprint: print(1), size: 0 })];
    let recalled = |records: &Records, of_many| match of_many {
        false => records.name(&key(1)),
        true => {
            let recalled = records.all(&asked)[0];
            (recalled.record, recalled.version_floor)
        }
    };
    // An octet of the checksum, and one of the version behind it.
    for (of_many, octet) in [(false, 0), (false, 15), (true, 0), (true, 15)] {
        let directory = tempfile::tempdir().expect("a directory");
        let records = opened(&directory);
        records.commit(&[(key(1), record(5, 1))], &[]).expect("kept");
        assert_eq!(recalled(&records, of_many), (Some(record(5, 1)), 0));
        flip(&records, octet);
        let (found, floor) = recalled(&records, of_many);
        assert_eq!(found, None);
        assert!(floor > 5, "{floor}");
    }
}

/// Alters an octet of the value of the first name.
fn flip(records: &Records, octet: usize) {
    let key = name_key(&key(1));
    let flipped = records.with_database(|database| {
        let transaction = database.begin_write()?;
        {
            let mut names = transaction.open_table(NAMES)?;
            let mut value = names.get(key.as_slice())?.expect("a record").value().to_vec();
            value[octet] ^= 2;
            names.insert(key.as_slice(), value.as_slice())?;
        }
        Ok(transaction.commit()?)
    });
    flipped.expect("an altered value");
}

#[test]
fn a_root_counts_for_its_state_alone_before_and_after_it_is_committed() {
    let directory = tempfile::tempdir().expect("a directory");
    let records = opened(&directory);
    let root = RootRecord { fingerprint: print(1), root: [7; 32] };
    let of_many = |state| {
        let asked = [(key(1), FileState { fingerprint: print(state), size: 0 })];
        records.all(&asked)[0].root
    };
    assert_eq!(records.root(&print(1)), None);
    records.remember(root);
    assert_eq!((records.root(&print(1)), of_many(1)), (Some([7; 32]), Some([7; 32])));
    records.commit(&[], &[root]).expect("kept");
    assert!(records.fresh().is_empty(), "what is on the disk is not in memory as well");
    assert_eq!((records.root(&print(1)), of_many(1)), (Some([7; 32]), Some([7; 32])));
    assert_eq!((records.root(&print(2)), of_many(2)), (None, None));
}

/// As on a full disk, to which nothing is written.
#[test]
fn roots_that_wait_to_be_written_are_bounded_and_the_last_is_there() {
    let home = tempfile::tempdir().unwrap();
    let records = Records::open(&home.path().join("records.redb")).unwrap();
    for number in 0..=FRESH_MAX as u64 {
        let mut state = [0; 24];
        state[..8].copy_from_slice(&number.to_be_bytes());
        let fingerprint = Fingerprint::new([1; 16], state);
        records.remember(RootRecord { fingerprint, root: [3; 32] });
        assert_eq!(records.root(&fingerprint), Some([3; 32]));
        let first = Fingerprint::new([1; 16], [0; 24]);
        assert_eq!(records.root(&first).is_some(), number < FRESH_MAX as u64);
    }
}

/// They are somebody's, and to start anew beside them would announce their versions again.
#[test]
fn records_that_are_in_use_are_refused_and_stay_where_they_are() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("records.redb");
    let records = Records::open(&path).unwrap();
    let entries = || std::fs::read_dir(home.path()).unwrap().count();
    let before = entries();
    assert!(Records::open(&path).is_err());
    assert_eq!(entries(), before, "nothing is set aside");
    drop(records);
    Records::open(&path).unwrap();
}
