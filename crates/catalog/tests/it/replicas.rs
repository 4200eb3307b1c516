//! Replicas that change their disk: of exactly the file's content, in one transaction, and never
//! where they would be dropped.

use byname_catalog::id::{ContentId, DiskId};
use byname_catalog::{
    Answer, Caller, Command, Disk, DiskChanges, DiskState, MoveReplica, Receipt, Refusal,
    Resolution,
};

use crate::support::{TestSite, sums};

const SIZE: u64 = 1000;

fn moved(site: &TestSite, content: ContentId, (from, to): (DiskId, DiskId)) -> MoveReplica {
    let (root, checksums) = sums(content, SIZE);
    let name = site.reader("op").site().unwrap();
    let generation = site.reader("op").disk(to).unwrap().generation;
    let receipt =
        Receipt { site: name, disk: to, generation, content, size: SIZE, root, checksums };
    MoveReplica { receipt, from: Some(from) }
}

fn carry_out(site: &mut TestSite, moved: MoveReplica) -> Result<Answer, Refusal> {
    site.run_as(Caller::Head, Command::MoveReplica(moved))
}

fn resolve(site: &mut TestSite, disk: DiskId, content: ContentId) -> Answer {
    let generation = site.reader("op").disk(disk).unwrap().generation;
    site.run_as(Caller::Disk(disk), Command::Resolve { generation, content }).unwrap()
}

/// A site with a file; its content, a disk that has it, and one that has not.
fn site() -> (TestSite, ContentId, (DiskId, DiskId)) {
    let (mut site, _) = TestSite::in_memory();
    let content = site.put("op", "f", SIZE);
    let replicas = site.entry("f").unwrap().inode.content().unwrap().replicas.clone();
    let other = site.disks.iter().copied().find(|disk| !replicas.contains(disk)).unwrap();
    (site, content, (replicas[0], other))
}

#[test]
fn a_replica_that_moves_is_counted_where_it_comes_and_dropped_where_it_was() {
    let (mut site, content, (from, to)) = site();
    let before = site.entry("f").unwrap().inode;
    let move_it = moved(&site, content, (from, to));
    // Said twice, as when an answer was lost, it is done once.
    for _ in 0..2 {
        carry_out(&mut site, move_it.clone()).unwrap();
        site.assert_consistent();
    }
    let after = site.entry("f").unwrap().inode;
    let replicas = &after.content().unwrap().replicas;
    assert_eq!(replicas.len(), before.content().unwrap().replicas.len());
    assert!(replicas.contains(&to) && !replicas.contains(&from), "{replicas:?}");
    assert_eq!(after.times, before.times, "nobody changed the file");
    assert!(after.binding > before.binding, "readers are told where it is now");
    assert_eq!(site.reader("op").drops(from, 9).unwrap(), [content]);
    let back = moved(&site, content, (to, from));
    assert_eq!(carry_out(&mut site, back), Err(Refusal::UnknownDisk), "it is about to drop it");
}

#[test]
fn a_receipt_does_not_count_after_its_disk_was_told_to_drop() {
    let (mut site, content, (from, to)) = site();
    let receipt_on_its_way = moved(&site, content, (from, to));
    assert_eq!(resolve(&mut site, to, content), Answer::Resolved(Resolution::Drop));
    assert_eq!(site.reader("op").drops(to, 9).unwrap(), [content]);
    assert_eq!(carry_out(&mut site, receipt_on_its_way), Err(Refusal::UnknownDisk));
    site.assert_consistent();
    let replicas = site.entry("f").unwrap().inode.content().unwrap().replicas.clone();
    assert!(replicas.contains(&from) && !replicas.contains(&to), "{replicas:?}");
}

#[test]
fn only_the_heads_word_of_just_this_content_on_this_disk_moves_it() {
    let (mut site, content, (from, to)) = site();
    let right = moved(&site, content, (from, to));
    assert_eq!(
        site.run("op", Command::MoveReplica(right.clone())),
        Err(Refusal::NotOperator),
        "the head alone has seen the receipt"
    );
    let mut wrong: Vec<(MoveReplica, Refusal)> = vec![(right.clone(), Refusal::ForeignReceipt); 3];
    wrong[0].0.receipt.size += 1;
    wrong[1].0.receipt.root[0] ^= 1;
    wrong[2].0.receipt.site.push(1);
    wrong.push((right.clone(), Refusal::UnknownDisk));
    wrong[3].0.receipt.generation += 1;
    for (moved, refusal) in wrong {
        assert_eq!(carry_out(&mut site, moved), Err(refusal));
    }
    // The file was written again meanwhile.
    site.put("op", "f", SIZE);
    assert_eq!(carry_out(&mut site, right), Err(Refusal::NoContent));
    site.assert_consistent();
}

#[test]
fn a_home_is_a_disk_that_takes_content_and_neither_has_it_nor_leaves() {
    let (mut site, content, (from, to)) = site();
    let home = |site: &TestSite, without: &[DiskId]| {
        let reader = site.reader("op");
        let (found, policy) = reader.current(content).unwrap().unwrap();
        reader.home_for(content, (&found, &policy), without).unwrap().map(|(id, _)| id)
    };
    let others: Vec<DiskId> = site.disks.iter().copied().filter(|disk| *disk != to).collect();
    assert_eq!(home(&site, &others), Some(to));
    assert_eq!(home(&site, &site.disks), None, "nobody is left");
    let changes = DiskChanges { state: Some(DiskState::ReadOnly), ..DiskChanges::default() };
    site.run("op", Command::SetDisk { disk: to, changes }).unwrap();
    assert_eq!(home(&site, &others), None, "it takes nothing new");
    assert_ne!(home(&site, &[from]), Some(from));
}

#[test]
fn a_replica_is_dropped_only_while_another_disk_that_answers_has_the_content() {
    let (mut site, content, (from, _)) = site();
    let drop_it = |disk| Command::DropReplica { content, disk };
    let other = *site.entry("f").unwrap().inode.content().unwrap().replicas.last().unwrap();
    assert_eq!(site.run("anna", drop_it(from)), Err(Refusal::NotOperator));
    let down = |is_up| DiskChanges { is_up: Some(is_up), ..DiskChanges::default() };
    site.run("op", Command::SetDisk { disk: other, changes: down(false) }).unwrap();
    assert_eq!(site.run("op", drop_it(from)), Err(Refusal::LastReplica), "the other is away");
    site.run("op", Command::SetDisk { disk: other, changes: down(true) }).unwrap();
    site.run("op", drop_it(from)).unwrap();
    assert_eq!(site.entry("f").unwrap().inode.content().unwrap().replicas, [other]);
    assert_eq!(site.reader("op").drops(from, 9).unwrap(), [content]);
    assert_eq!(site.run("op", drop_it(other)), Err(Refusal::LastReplica));
    assert_eq!(site.run("op", drop_it(from)), Err(Refusal::NoContent), "it has none");
    // A version that was replaced may go in the same way.
    let old = site.put("op", "g", SIZE);
    let replicas = site.entry("g").unwrap().inode.content().unwrap().replicas.clone();
    site.put("op", "g", SIZE);
    site.run("op", Command::DropReplica { content: old, disk: replicas[0] }).unwrap();
    assert_eq!(site.reader("op").content(old).unwrap().replicas, replicas[1..]);
}

#[test]
fn what_nothing_leads_to_is_discarded_and_nothing_else() {
    let (mut site, content, (from, to)) = site();
    let gone = site.put("op", "g", SIZE);
    site.run("op", Command::Unlink { place: crate::support::place("g") }).unwrap();
    site.pass(2 * crate::support::HOUR_NS);
    for disk in site.disks.clone() {
        let dropped = Command::Dropped { disk, contents: vec![gone] };
        site.run_as(Caller::Head, dropped).unwrap();
    }
    let ticket = site.create("op", "h", SIZE).unwrap();
    let mut unknown = content;
    unknown.version.0 += 1 << 20;
    let discard =
        |disk| Command::Discard { disk, contents: vec![content, ticket.content, unknown, gone] };
    assert_eq!(site.run("op", discard(from)), Err(Refusal::NotOperator), "the head alone");
    assert_eq!(site.run_as(Caller::Head, discard(from)), Ok(Answer::Count(1)));
    assert_eq!(site.reader("op").drops(from, 9).unwrap(), [gone]);
    // On a disk that does not have it by the catalog's word, that is nobody's, too.
    assert_eq!(site.run_as(Caller::Head, discard(to)), Ok(Answer::Count(2)));
}

#[test]
fn a_disk_that_was_moved_shares_no_server_with_those_where_it_is_now() {
    let (mut site, _) = TestSite::in_memory();
    let [a, b, c] = site.disks[..] else { panic!("three disks") };
    let at = |server: &str| Some(server.to_owned());
    let set = |disk, server| {
        let changes = DiskChanges { server, ..DiskChanges::default() };
        Command::SetDisk { disk, changes }
    };
    assert_eq!(site.run("op", set(a, at("a/b"))), Err(Refusal::BadLabel));
    let old = site.reader("op").disk(a).unwrap();
    let there = site.reader("op").disk(b).unwrap().server;
    site.run("op", set(a, at(&there))).unwrap();
    let moved = site.reader("op").disk(a).unwrap();
    assert_eq!(moved, Disk { server: there, ..old });
    for index in 0..20 {
        let ticket = site.create("op", &format!("m{index}"), 100).unwrap();
        let disks: Vec<DiskId> = ticket.disks.iter().map(|disk| disk.disk).collect();
        assert!(disks.contains(&c), "{disks:?}: {a:?} and {b:?} are in one server");
    }
}
