//! What users, heads and disks of a site say to each other.

use byname_packet::{Data, DataBuilder, Interest, InterestBuilder, Name, NullSigner, types};
use byname_site::{
    Agree, Claim, CommandPacket, CopyAnswer, Drop, DropAnswer, Frame, Insert, InsertAnswer, Keep,
    List, ListAnswer, Prove, ProveAnswer, Recall, Reply, SignedReceipt, SiteName, SpeaksFor, Stamp,
    Ticket, frame,
};

/// In the order of the vectors.
const OPERATIONS: [&str; 42] = [
    "mkdir",
    "rmdir",
    "unlink",
    "rename",
    "link",
    "symlink",
    "setattr",
    "setxattr",
    "removexattr",
    "create",
    "extend",
    "commit",
    "abort",
    "replace-disk",
    "resolve",
    "hold",
    "release",
    "open-session",
    "renew-session",
    "end-session",
    "expire",
    "dropped",
    "set-user",
    "add-key",
    "remove-key",
    "add-disk",
    "set-disk",
    "remove-disk",
    "set-policy",
    "set-pattern",
    "set-limits",
    "make-tree",
    "trim-log",
    "raise-epoch",
    "restore-trash",
    "purge-trash",
    "set-trash",
    "set-versions",
    "set-door",
    "remove-door",
    "lend-key",
    "recall-key",
];
const STAMP: Stamp = Stamp { time_ms: 1, nonce: [1; 8] };

/// A whole packet, or one octet that says of which kind the rest is the content.
pub(crate) fn site(input: &[u8]) {
    let site = SiteName::new(Name::new().with_generic(b"cern").with_generic(b"cms"));
    let site = site.expect("a name");
    whole(&site, input);
    kept(input);
    let Some((kind, content)) = input.split_first() else { return };
    let kind = usize::from(*kind);
    if let Some(operation) = OPERATIONS.get(kind) {
        let name = site.command(operation);
        let mut wire = Vec::new();
        let builder = InterestBuilder::new(name.view()).application_parameters(content);
        builder.encode(&mut wire);
        if wire.len() <= byname_packet::MAX_PACKET_BYTES {
            whole(&site, &wire);
        }
        return;
    }
    let names = ["32=file/seq=300/v=7/32=claim", "32=disk/a/seq=1/32=receipt/seq=300/v=7"];
    let name: Name = format!("/cern/cms/{}", names[kind % 2]).parse().expect("a name");
    let mut wire = Vec::new();
    let encoded = DataBuilder::new(name.view()).encode(content, &NullSigner, &mut wire);
    encoded.expect("the Null signature cannot fail");
    whole(&site, &wire);
}

/// What a disk reads from a file of orders, or a head from a disk.
fn kept(octets: &[u8]) {
    let mut rest = octets;
    while let Frame::Order(order, behind) = Frame::first(rest) {
        assert_eq!([frame(order).as_slice(), behind].concat(), rest);
        rest = behind;
    }
    let kept = [frame(octets).as_slice(), octets].concat();
    match Frame::first(&kept) {
        Frame::Order(order, behind) => assert_eq!((order, behind), (octets, octets)),
        // Nothing, or more than a packet.
        Frame::Torn => assert!(octets.is_empty() || octets.len() > byname_packet::MAX_PACKET_BYTES),
        Frame::Cut => panic!("it is all there"),
    }
}

fn whole(site: &SiteName, wire: &[u8]) {
    match wire.first().copied().map(u32::from) {
        Some(types::INTEREST) => {
            if let Ok(interest) = Interest::decode(wire) {
                commands(site, &interest);
                orders(site, &interest);
            }
        }
        Some(types::DATA) => {
            if let Ok(data) = Data::decode(wire) {
                contents(site, &data);
            }
            if let Ok(ticket) = Ticket::decode(site, wire) {
                assert_eq!(ticket.wire(), wire);
                assert!(ticket.terms().disks.len() <= 16);
            }
        }
        _ => {}
    }
}

fn commands(site: &SiteName, interest: &Interest<'_>) {
    if let Ok(found) = Agree::decode(site, interest) {
        let again = found.encode(site, &NullSigner, STAMP).expect("it fits");
        let again = Interest::decode(&again).expect("our own");
        assert_eq!(again.application_parameters, interest.application_parameters);
    }
    let parameters = interest.application_parameters.unwrap_or_default();
    if let Ok((Some(speaks_for), question)) = SpeaksFor::split(parameters) {
        assert_eq!(speaks_for.asking(question), parameters);
    }
    let Ok(found) = CommandPacket::decode(site, interest) else { return };
    assert!(found.receipts.len() <= 16);
    // Nothing is lost and nothing passed over, so the parameters are the same octet for octet.
    let Ok(again) = found.encode(site, &NullSigner, STAMP) else { return };
    let again = Interest::decode(&again).expect("our own");
    assert_eq!(again.application_parameters, interest.application_parameters);
}

fn orders(site: &SiteName, interest: &Interest<'_>) {
    if let Ok((disk, order)) = Insert::decode(site, interest)
        && let Ok(again) = order.encode(site, &disk, &NullSigner, STAMP)
    {
        let again = Interest::decode(&again).expect("our own");
        assert_eq!(Insert::decode(site, &again), Ok((disk, order)));
    }
    if let Ok((disk, order)) = Drop::decode(site, interest) {
        assert!(order.contents.len() <= 256);
        let Ok(again) = order.encode(site, &disk, &NullSigner, STAMP) else { return };
        let again = Interest::decode(&again).expect("our own");
        assert_eq!(again.application_parameters, interest.application_parameters);
    }
    if let Ok((disk, order)) = Keep::decode(site, interest) {
        let Ok(again) = order.encode(site, &disk, &NullSigner, STAMP) else { return };
        let again = Interest::decode(&again).expect("our own");
        assert_eq!(again.application_parameters, interest.application_parameters);
    }
    if let Ok((disk, order)) = Recall::decode(site, interest) {
        let again = order.encode(site, &disk, &NullSigner, STAMP).expect("it fits");
        let again = Interest::decode(&again).expect("our own");
        assert_eq!(again.application_parameters, interest.application_parameters);
    }
    if let Ok((disk, order)) = Prove::decode(site, interest) {
        let again = order.encode(site, &disk, &NullSigner, STAMP).expect("it fits");
        let again = Interest::decode(&again).expect("our own");
        assert_eq!(again.application_parameters, interest.application_parameters);
    }
    if let Ok((disk, order)) = List::decode(site, interest) {
        let again = order.encode(site, &disk, &NullSigner, STAMP).expect("it fits");
        let again = Interest::decode(&again).expect("our own");
        assert_eq!(again.application_parameters, interest.application_parameters);
    }
}

/// What is accepted is written again and read back the same.
fn contents(site: &SiteName, data: &Data<'_>) {
    let same = |wire: &[u8], check: &dyn Fn(&Data<'_>)| {
        check(&Data::decode(wire).expect("our own"));
    };
    if let Ok(found) = Claim::decode(site, data) {
        let wire = found.encode(site, &NullSigner).expect("it fits");
        same(&wire, &|again| assert_eq!(Claim::decode(site, again), Ok(found)));
    }
    if let Ok(found) = SignedReceipt::decode(site, data) {
        let wire = found.encode(site, &NullSigner).expect("it fits");
        let found = Ok(found);
        same(&wire, &|again| assert_eq!(SignedReceipt::decode(site, again), found));
    }
    if let Ok(found) = Reply::decode(site, data) {
        let wire = found.encode(data.name, &NullSigner).expect("it fits");
        let found = Ok(found);
        same(&wire, &|again| assert_eq!(Reply::decode(site, again), found));
    }
    if let Ok(found) = InsertAnswer::decode(data) {
        let wire = found.encode(data.name, &NullSigner).expect("it fits");
        let found = Ok(found);
        same(&wire, &|again| assert_eq!(InsertAnswer::decode(again), found));
    }
    if let Ok(found) = DropAnswer::decode(data) {
        let wire = found.encode(data.name, &NullSigner).expect("it fits");
        let found = Ok(found);
        same(&wire, &|again| assert_eq!(DropAnswer::decode(again), found));
    }
    if let Ok(found) = CopyAnswer::decode(data) {
        let Ok(wire) = found.encode(data.name, &NullSigner) else { return };
        let found = Ok(found);
        same(&wire, &|again| assert_eq!(CopyAnswer::decode(again), found));
    }
    if let Ok(found) = ListAnswer::decode(data) {
        let wire = found.encode(data.name, &NullSigner).expect("it fits");
        let found = Ok(found);
        same(&wire, &|again| assert_eq!(ListAnswer::decode(again), found));
    }
    if let Ok(found) = ProveAnswer::decode(data) {
        let wire = found.encode(data.name, &NullSigner).expect("it fits");
        let found = Ok(found);
        same(&wire, &|again| assert_eq!(ProveAnswer::decode(again), found));
    }
}
