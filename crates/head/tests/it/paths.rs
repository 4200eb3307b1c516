//! What the catalog says of paths.

use byname_catalog::id::{ContentId, DiskId};
use byname_catalog::{
    AttributeChanges, Checksums, Command, Commit, Create, DiskChanges, DiskState, PolicyChanges,
    Publish, Rename,
};
use byname_head::{Described, Describer};
use byname_security::tree::Tree;
use byname_site::{SignedReceipt, SiteAnswer};
use byname_transfer::listing;
use byname_transfer::manifest;
use byname_transfer::metadata::{ContentRoot, Metadata};
use byname_transfer::server::Listing;

use crate::support::{Holder, TestHead, done, place};

const BYTES_MAX: usize = 1 << 20;

fn object(head: &TestHead, path: &str) -> Metadata {
    let reader = head.reader();
    match Describer::new(&head.site, &reader).path(path.as_bytes()).unwrap() {
        Described::Object(metadata) => *metadata,
        Described::Directory(stat) => panic!("{stat:?}"),
    }
}

fn listed(head: &TestHead, path: &str) -> Listing {
    let reader = head.reader();
    Describer::new(&head.site, &reader).listing(path.as_bytes(), BYTES_MAX).unwrap()
}

fn manifest_of(head: &TestHead, path: &str) -> Listing {
    let reader = head.reader();
    Describer::new(&head.site, &reader).manifest(path.as_bytes(), BYTES_MAX).unwrap()
}

fn version(listing: &Listing) -> u64 {
    listing.versioned.as_ref().unwrap().version
}

fn mkdir(head: &mut TestHead, path: &str) {
    head.done(Command::MakeDirectory { place: place(path), mode: 0o755 });
}

fn rename(head: &mut TestHead, from: &str, to: &str) {
    let rename = Rename { from: place(from), to: place(to), no_replace: false };
    head.done(Command::Rename(rename));
}

/// Puts a file of some size on both disks.
pub(crate) fn put(head: &mut TestHead, path: &str, size: u64) -> ContentId {
    let create = Create {
        place: place(path),
        mode: 0o640,
        size_max: size,
        publish: Publish::AtCommit,
        exclusive: false,
        policy: PolicyChanges::default(),
    };
    let SiteAnswer::Ticket(ticket) = head.done(Command::Create(create)) else { panic!() };
    let content = ticket.terms().content;
    let commit = Commit {
        content,
        size,
        root: if size == 0 { *Tree::of(b"").root.as_bytes() } else { [7; 32] },
        checksums: match size {
            0 => Checksums { adler32: 1, crc32c: 0 },
            _ => Checksums { adler32: 0x0102_0304, crc32c: 5 },
        },
        modified_ns: Some(44),
        receipts: Vec::new(),
    };
    let seeds = if size == 0 { Vec::new() } else { vec![10, 11] };
    let mut receipts = Vec::new();
    for (seed, (name, _)) in seeds.into_iter().zip(&head.disks) {
        let receipt = byname_catalog::Receipt {
            site: head.site.octets().to_vec(),
            disk: name.id,
            generation: 1,
            content,
            size,
            root: commit.root,
            checksums: commit.checksums,
        };
        let signer = Holder::new(seed, &head.site.disk(name)).signer;
        let signed = SignedReceipt { disk: name.clone(), receipt };
        receipts.push(signed.encode(&head.site, &signer).unwrap());
    }
    let request = Some(head.request(true));
    let packet = byname_site::CommandPacket {
        speaks_for: None,
        request,
        command: Command::Commit(commit),
        receipts,
    };
    let wire = head.signed(true, &packet);
    done(head.send(&wire));
    content
}

#[test]
fn a_file_is_described_with_its_content_s_name_and_the_disks_that_have_it() {
    let mut head = TestHead::new();
    mkdir(&mut head, "d");
    let content = put(&mut head, "d/f", 8193);
    let found = object(&head, "d/f");
    assert_eq!(found.name, head.site.content(content));
    assert_eq!((found.size, found.last_segment), (Some(8193), Some(1)));
    assert_eq!(found.segment_size, Some(8192));
    assert_eq!((found.mode, found.mtime_ns), (Some(0o100_640), Some(44)));
    assert_eq!(found.root, ContentRoot::Known([7; 32]));
    let names: Vec<_> = head.disks.iter().map(|(name, _)| head.site.disk(name)).collect();
    let mut hint = found.forwarding_hint().to_vec();
    hint.sort();
    assert_eq!(hint, names);
    let attributes = found.attributes();
    assert_eq!((attributes.owner, attributes.group), (Some("op"), Some("ops")));
    assert_eq!(attributes.checksums.adler32, Some([1, 2, 3, 4]));
    // What is encoded is what readers take, and a rename changes the path alone.
    let mut encoded = Vec::new();
    found.encode(&mut encoded);
    assert_eq!(Metadata::decode(&encoded).unwrap(), found);
    rename(&mut head, "d/f", "g");
    let moved = object(&head, "g");
    assert_eq!(moved.name, found.name);
    assert!(moved.attributes().binding > attributes.binding);
    let reader = head.reader();
    assert!(Describer::new(&head.site, &reader).path(b"d/f").is_err());
}

#[test]
fn disks_that_do_not_answer_are_left_out_while_there_are_others() {
    let mut head = TestHead::new();
    put(&mut head, "f", 10);
    let ids: Vec<DiskId> = head.disks.iter().map(|(name, _)| name.id).collect();
    let down = DiskChanges { is_up: Some(false), ..DiskChanges::default() };
    head.done(Command::SetDisk { disk: ids[0], changes: down });
    let other = head.site.disk(&head.disks[1].0);
    assert_eq!(object(&head, "f").forwarding_hint(), [other]);
    let off = DiskChanges { state: Some(DiskState::Off), ..DiskChanges::default() };
    head.done(Command::SetDisk { disk: ids[1], changes: off });
    assert_eq!(object(&head, "f").forwarding_hint().len(), 2);
}

#[test]
fn links_and_empty_files_are_contents_without_disks() {
    let mut head = TestHead::new();
    let target = b"some/where".to_vec();
    head.done(Command::MakeSymlink { place: place("l"), target: target.clone() });
    let content = put(&mut head, "empty", 0);
    let link = object(&head, "l");
    assert_eq!(link.attributes().link_target, Some(target.as_slice()));
    assert_eq!((link.mode, link.size), (Some(0o100_444), Some(10)));
    assert_eq!(link.root, ContentRoot::Known(*Tree::of(&target).root.as_bytes()));
    let reader = head.reader();
    let describer = Describer::new(&head.site, &reader);
    let of_link = head.site.parse_content(link.name.view()).unwrap();
    assert_eq!(describer.own_content(of_link).unwrap(), target);
    let empty = object(&head, "empty");
    assert_eq!(empty.name, head.site.content(content));
    assert_eq!((empty.size, empty.forwarding_hint()), (Some(0), [].as_slice()));
    assert_eq!(describer.own_content(content).unwrap(), b"");
    drop(reader);
    let full = put(&mut head, "full", 5);
    let reader = head.reader();
    assert!(Describer::new(&head.site, &reader).own_content(full).is_err());
}

/// A version names one payload; a payload that changes gets a later one, a change elsewhere does
/// not touch it.
#[test]
fn listings_and_manifests_have_the_versions_of_what_they_show() {
    let mut head = TestHead::new();
    mkdir(&mut head, "d");
    mkdir(&mut head, "e");
    put(&mut head, "d/b", 10);
    mkdir(&mut head, "d/a");
    let (names, full) = (listed(&head, "d"), manifest_of(&head, "d"));
    let found: Vec<_> = listing::entries(&names.payload).map(Result::unwrap).collect();
    assert_eq!(found.iter().map(|entry| entry.name).collect::<Vec<_>>(), [b"a", b"b"]);
    assert_eq!(manifest::check(&full.payload).unwrap().0, 2);
    put(&mut head, "e/x", 1);
    assert_eq!(version(&listed(&head, "d")), version(&names));
    assert_eq!(version(&manifest_of(&head, "d")), version(&full));
    let mode = AttributeChanges { mode: Some(0o600), ..AttributeChanges::default() };
    head.done(Command::SetAttributes { place: place("d/b"), changes: mode });
    assert_eq!(version(&listed(&head, "d")), version(&names), "names are the same");
    let changed = manifest_of(&head, "d");
    assert!(version(&changed) > version(&full));
    rename(&mut head, "d/b", "e/b");
    let after = manifest_of(&head, "d");
    assert!(version(&after) > version(&changed));
    assert!(version(&listed(&head, "d")) > version(&names));
}

#[test]
fn a_manifest_says_of_each_entry_what_its_metadata_say() {
    let mut head = TestHead::new();
    mkdir(&mut head, "d");
    let content = put(&mut head, "f", 9000);
    head.done(Command::MakeSymlink { place: place("l"), target: b"f".to_vec() });
    let full = manifest_of(&head, "");
    let (count, mut at) = manifest::check(&full.payload).unwrap();
    assert_eq!(count, 3);
    let mut seen = Vec::new();
    while let Some((entry, next)) = manifest::entry_at(&full.payload, at) {
        at = next;
        let name = std::str::from_utf8(entry.name).unwrap();
        seen.push(name.to_owned());
        if entry.is_directory() {
            assert_eq!(entry.attributes.owner, Some("op"));
            continue;
        }
        let metadata = object(&head, name);
        assert_eq!(entry.attributes, metadata.attributes());
        assert_eq!((Some(entry.mode), entry.mtime_ns), (metadata.mode, metadata.mtime_ns));
        if let Some(it) = entry.content {
            assert_eq!(it.name.to_name().with_version(it.version.number), metadata.name);
            assert_eq!(Some(it.version.segment_bytes), metadata.segment_size);
            assert_eq!(metadata.root, ContentRoot::Known(it.version.root.unwrap()));
            assert_eq!(metadata.name, head.site.content(content));
        }
    }
    assert_eq!(seen, ["d", "f", "l"]);
}
