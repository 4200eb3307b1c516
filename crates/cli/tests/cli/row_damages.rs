//! Damages planted in the rows of a real catalog while no head runs, found and mended by `site
//! fsck`, in a file and in a database.

use crate::cluster::Cluster;
use crate::disks::Site;
use crate::harness::{Finished, noise};
use crate::several_heads::site_in;
use byname_catalog::engine::{EmbeddedEngine, Engine, Span, Table, Writes};

/// Name of the file whose entry is taken away.
const LONELY: &str = "lonely";
const FILES: u64 = 5;

/// Files, and nobody who has the catalog.
fn fill(site: &mut Site) {
    let mut writer = site.writer();
    for number in 0..FILES {
        site.put_by(&mut writer, &format!("f{number}"), &noise(10_000, number)).unwrap();
    }
    site.put_by(&mut writer, LONELY, &noise(10_000, FILES)).unwrap();
    site.check();
}

/// A look finds each damage and changes nothing, the next one mends it, and the last finds nothing.
/// `plant` takes away all rows of usage and of replicas by disk, and the entry of a file.
fn assert_mended(site: &mut Site, plant: impl FnOnce(&Site)) {
    plant(site);
    let fsck = |site: &Site, args: &[&str]| -> Finished {
        site.home.run(&[&["site", "fsck", "--dir", "site"], args].concat())
    };
    let found = fsck(site, &[]).fails_with(1, "").stdout();
    for table in ["usage ", "replica ", "inode "] {
        assert!(found.lines().any(|line| line.starts_with(table)), "{table}: {found}");
    }
    let dry = fsck(site, &["--repair"]).fails_with(0, "would be mended: say --yes").stdout();
    assert_eq!(fsck(site, &["--repair"]).ok().stdout(), dry, "nothing was changed");
    assert_eq!(fsck(site, &[]).fails_with(1, "").stdout(), found, "nothing was changed");
    let mended = fsck(site, &["--repair", "--yes"]).fails_with(0, "mended").stdout();
    assert_eq!(mended, format!("{dry}/lab: OK\n"));
    assert_eq!(fsck(site, &[]).ok().stdout(), "/lab: OK\n");
    fsck(site, &["--repair"]).fails_with(0, "nothing to mend");

    // It is the catalog of this site still: the files are there, and one is where people look.
    site.head = Some(site.start_head());
    for number in 0..FILES {
        assert!(site.read(&format!("f{number}")).ok().bytes() == noise(10_000, number));
    }
    let list = ["ls", "/lab/lost+found", "--fresh", "--connect", &site.socket];
    let name = site.home.run(&list).ok().stdout();
    let lonely = site.read(&format!("lost+found/{}", name.trim())).ok();
    assert!(lonely.bytes() == noise(10_000, FILES), "{name}");
    site.put("new", &noise(10_000, 7)).unwrap();
    site.await_status("OK");
    let disks = site.run(&["fsck", "--disks", "--content"]).ok().stdout();
    assert!(disks.ends_with(": OK\n"), "{disks}");
    let log = site.run(&["log"]).ok().stdout();
    assert!(log.contains("\"command\":\"fsck\""), "{log}");
    site.check();
}

#[test]
fn rows_of_a_file_that_were_damaged_are_found_and_mended() {
    let mut site = Site::new(2, 1);
    fill(&mut site);
    assert_mended(&mut site, |site| {
        let engine = EmbeddedEngine::open(&site.home.path().join("site/catalog.redb")).unwrap();
        let transaction = engine.begin().unwrap();
        let mut writes = Writes::default();
        for table in [Table::Usage, Table::Replica, Table::Dentry] {
            for (key, _) in transaction.range(table, Span::ALL, usize::MAX).unwrap() {
                if table != Table::Dentry || key.ends_with(LONELY.as_bytes()) {
                    writes.delete(table, key);
                }
            }
        }
        transaction.commit(&writes).unwrap();
    });
}

#[test]
fn rows_of_a_database_that_were_damaged_are_found_and_mended() {
    let cluster = Cluster::shared();
    let mut site = site_in(&cluster, 2);
    site.head = Some(site.start_head());
    fill(&mut site);
    assert_mended(&mut site, |site| {
        let engine = std::fs::read_to_string(site.home.path().join("site/engine")).unwrap();
        // A key begins with the number of its table; that of an entry, with its directory's then.
        let [usage, replica, dentry] =
            [Table::Usage, Table::Replica, Table::Dentry].map(|table| table as u8);
        let delete = format!(
            "DELETE FROM byname_row WHERE get_byte(key, 0) IN ({usage}, {replica}) \
                OR get_byte(key, 0) = {dentry} AND substring(key FROM 10) = '{LONELY}'"
        );
        cluster.psql(engine.trim().trim_start_matches("postgres:"), &delete);
    });
}
