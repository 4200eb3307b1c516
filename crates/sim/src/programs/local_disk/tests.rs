//! Disks that fail, and what must not come of it.

use super::*;

const VERSION: Content = (5, 20_000);

/// A disk, a target on it, and the file that is to get its name.
fn on_disk(must_sync: bool, size: u64) -> (tempfile::TempDir, LocalDisk, PathBuf, File) {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("f");
    let disk = LocalDisk::new(BTreeMap::from([(target.clone(), vec![VERSION])]), must_sync, 1);
    let mut octets = vec![0; size as usize];
    content(VERSION.0, 0, &mut octets);
    let file = File::create(part_path(&target)).expect("a part file");
    file.write_all_at(&octets, 0).expect("room");
    let step = DiskStep::Write { target: &target, offset: 0, len: octets.len() };
    assert_eq!(disk.before(step).expect("no faults"), octets.len());
    (directory, disk, target, file)
}

fn name(disk: &LocalDisk, target: &Path, file: &File) -> Option<String> {
    disk.before(DiskStep::Name { target, file }).expect("no faults");
    disk.fault()
}

#[test]
fn a_whole_file_may_have_its_name() {
    let (_directory, disk, target, file) = on_disk(false, VERSION.1);
    assert_eq!(name(&disk, &target, &file), None);
}

#[test]
fn a_name_before_the_file_is_whole_is_a_fault() {
    let (_directory, disk, target, file) = on_disk(false, VERSION.1 - 1);
    assert_eq!(name(&disk, &target, &file), Some("f is no published version".to_owned()));
}

#[test]
fn a_wrong_octet_is_a_fault() {
    let (_directory, disk, target, file) = on_disk(false, VERSION.1);
    file.write_all_at(&[0; 8], 9000).expect("room");
    assert_eq!(name(&disk, &target, &file), Some("f is no published version".to_owned()));
}

#[test]
fn a_name_before_the_content_is_durable_is_a_fault_if_that_is_promised() {
    let (_directory, disk, target, file) = on_disk(true, VERSION.1);
    assert!(name(&disk, &target, &file).is_some_and(|fault| fault.contains("durable")));
    let (_directory, disk, target, file) = on_disk(true, VERSION.1);
    disk.before(DiskStep::Sync { target: &target }).expect("no faults");
    assert_eq!(name(&disk, &target, &file), None);
}

#[test]
fn a_power_cut_takes_pages_that_are_not_durable_and_no_others() {
    let (_directory, disk, target, _file) = on_disk(false, VERSION.1);
    disk.cut_power();
    assert!(disk.counters().lost > 0);
    assert!(!is_whole(&File::open(part_path(&target)).expect("it stays"), VERSION));
    let (_directory, disk, target, _file) = on_disk(false, VERSION.1);
    disk.before(DiskStep::Sync { target: &target }).expect("no faults");
    disk.cut_power();
    assert_eq!(disk.counters().lost, 0);
    assert!(is_whole(&File::open(part_path(&target)).expect("it stays"), VERSION));
}
