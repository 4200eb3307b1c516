//! Records of what peers got, and of floods of what they did not get.

use std::sync::{Mutex, PoisonError};

use byname_packet::lp::{LpHeader, encode_header, nack_reason};
use byname_packet::{DataBuilder, InterestBuilder, NullSigner};

use super::*;

#[derive(Default)]
struct Collected(Mutex<Vec<AccessRecord>>);

impl AccessSink for Collected {
    fn one_in(&self) -> u64 {
        1
    }

    fn record(&self, record: &AccessRecord) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(record.clone());
    }
}

fn nack(uri: &str) -> Vec<u8> {
    let (name, mut interest, mut wire) = (uri.parse::<Name>().unwrap(), Vec::new(), Vec::new());
    InterestBuilder::new(name.view()).nonce([1; 4]).encode(&mut interest);
    let header = LpHeader { nack: Some(nack_reason::NO_ROUTE), ..LpHeader::default() };
    encode_header(&header, None, interest.len(), &mut wire);
    wire.extend_from_slice(&interest);
    wire
}

fn segment(uri: &str) -> Vec<u8> {
    let (name, mut wire) = (uri.parse::<Name>().unwrap(), Vec::new());
    DataBuilder::new(name.view()).encode(b"octets", &NullSigner, &mut wire).unwrap();
    wire
}

/// Notes a flood of refusals beside a file that is read; returns the records.
fn flooded(names: u64) -> Vec<AccessRecord> {
    let collected = Arc::new(Collected::default());
    let mut accesses = Accesses::new(collected.clone());
    let peer = |face| Peer { face: FaceId(face), uri: "tcp://192.0.2.1:1" };
    for number in 0..names {
        let now = Now { now_ns: number * 1000, unix_ns: 0 };
        accesses.note_packet(peer(1), &nack(&format!("/lab/nothing/{number}")), now);
        accesses.note_packet(peer(2), &segment(&format!("/lab/f/v=1/seg={number}")), now);
    }
    drop(accesses);
    let records = collected.0.lock().unwrap_or_else(PoisonError::into_inner);
    records.clone()
}

#[test]
fn a_flood_of_names_that_are_not_there_makes_few_records_and_all_of_it_is_counted() {
    let records = flooded(20_000);
    assert!(records.len() <= EMPTY_PER_S as usize + 2, "{}", records.len());
    assert_eq!(records.iter().map(|record| record.refusals).sum::<u64>(), 20_000);
    let root = Name::default();
    let rest = records.iter().find(|record| record.name == root).unwrap();
    assert_eq!(rest.refusals, 20_000 - u64::from(EMPTY_PER_S));
    let read: Name = "/lab/f".parse().unwrap();
    let file = records.iter().find(|record| record.name == read).unwrap();
    assert_eq!(file.segments, 20_000, "a reader's record is not touched by it");
}

#[test]
fn names_that_are_not_there_have_records_of_their_own_while_they_are_few() {
    let records = flooded(5);
    let refused: Vec<&AccessRecord> = records.iter().filter(|record| record.refusals > 0).collect();
    assert_eq!(refused.len(), 5);
    assert!(refused.iter().all(|record| record.refusals == 1 && !record.name.view().is_empty()));
}
