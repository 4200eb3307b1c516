//! The messages between a program and the service: one packet of a `SOCK_SEQPACKET` socket each.
//!
//! A request has a fixed head: version, kind, root, size, a number, a level; units and nodes
//! follow. `Open` and `Map` have an answer, and the next request waits for it. Units and nodes
//! have none; but a service that lacks a node to prove them may say which ([`need`]).

use byname_security::tree::{Hash, NodeId, UNIT_BYTES};

use crate::layout::ContentKey;

/// Version of these messages.
const VERSION: u8 = 1;
pub(crate) const HEAD_BYTES: usize = 1 + 1 + 32 + 8 + 8 + 1;
/// Units of one message.
pub(crate) const UNITS_MAX: usize = 8;
/// The longest request.
pub(crate) const REQUEST_BYTES_MAX: usize = HEAD_BYTES + UNITS_MAX * UNIT_BYTES;
/// Octets of a map in one answer: the bits of 512 MiB.
pub(crate) const MAP_BYTES_MAX: usize = 8 << 10;
/// What stands before them: the first unit that the answer is about, and how many are there from it
/// on. So neither a hole nor a run takes more answers the longer it is.
const PIECE_HEAD_BYTES: usize = 8 + 8;
/// An answer: whether there is such an entry, and a piece of its map.
pub(crate) const ANSWER_BYTES_MAX: usize = 1 + PIECE_HEAD_BYTES + MAP_BYTES_MAX;
pub(crate) const ANSWER_NONE: u8 = 0;
pub(crate) const ANSWER_HERE: u8 = 1;
const ANSWER_NEED: u8 = 2;
/// The length of what says which node is needed.
pub(crate) const NEED_BYTES: usize = 1 + HEAD_BYTES;

/// What is asked about a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Descriptors of its data and of its tree.
    Open,
    /// Which units are there, from this one on, a multiple of eight: the first piece of the map
    /// that has any.
    Map { first: u64 },
    /// Keep these units, from this one on.
    Units { first: u64 },
    /// Keep this node.
    Node(NodeId),
}

impl Ask {
    fn parts(self) -> (u8, u64, u8) {
        match self {
            Ask::Open => (1, 0, 0),
            Ask::Map { first } => (2, first, 0),
            Ask::Units { first } => (3, first, 0),
            Ask::Node(node) => (4, node.index, node.level),
        }
    }
}

/// The head of a request.
pub(crate) fn head(key: &ContentKey, ask: Ask) -> [u8; HEAD_BYTES] {
    let (kind, number, level) = ask.parts();
    let mut head = [0; HEAD_BYTES];
    (head[0], head[1]) = (VERSION, kind);
    head[2..34].copy_from_slice(key.root.as_bytes());
    head[34..42].copy_from_slice(&key.size.to_be_bytes());
    head[42..50].copy_from_slice(&number.to_be_bytes());
    head[50] = level;
    head
}

/// A request, and what follows its head; `None` if it is none.
pub(crate) fn decode(request: &[u8]) -> Option<(ContentKey, Ask, &[u8])> {
    let (head, rest) = request.split_at_checked(HEAD_BYTES)?;
    let number = |at: usize| {
        let octets = head.get(at..at + 8).and_then(|octets| octets.try_into().ok());
        octets.map(u64::from_be_bytes)
    };
    let root = Hash(head.get(2..34)?.try_into().ok()?);
    let key = ContentKey { root, size: number(34)? };
    let (index, level) = (number(42)?, head[50]);
    let ask = match (head[0], head[1]) {
        (VERSION, 1) if rest.is_empty() => Ask::Open,
        (VERSION, 2) if rest.is_empty() => Ask::Map { first: index },
        (VERSION, 3) => Ask::Units { first: index },
        (VERSION, 4) => Ask::Node(NodeId { level, index }),
        _ => return None,
    };
    Some((key, ask, rest))
}

/// A piece of a map: the units from `first` on, a multiple of eight, of which the first
/// `run_units` are there; `octets` has the bits of those that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) first: u64,
    pub(crate) run_units: u64,
    pub(crate) octets: &'a [u8],
}

impl Piece<'_> {
    /// What follows the first octet of the answer.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Piece { first, run_units, octets } = self;
        [&first.to_be_bytes()[..], &run_units.to_be_bytes(), octets].concat()
    }

    /// The first unit that it says nothing of; `None` if there is no such number.
    pub(crate) fn end(&self) -> Option<u64> {
        let bits = self.octets.len() as u64 * 8;
        self.first.checked_add(self.run_units)?.checked_add(bits)
    }
}

/// The piece of a map in an answer; `None` if it has none.
pub(crate) fn decode_piece(answer: &[u8]) -> Option<Piece<'_>> {
    let (head, octets) = answer.split_at_checked(1 + PIECE_HEAD_BYTES)?;
    let number = |octets: &[u8]| octets.try_into().ok().map(u64::from_be_bytes);
    let (first, run_units) = (number(&head[1..9])?, number(&head[9..])?);
    let is_aligned = first.is_multiple_of(8) && run_units.is_multiple_of(8);
    (head[0] == ANSWER_HERE && is_aligned).then_some(Piece { first, run_units, octets })
}

/// What a service says that lacks a node for units that it was brought.
pub(crate) fn need(key: &ContentKey, node: NodeId) -> Vec<u8> {
    [&[ANSWER_NEED], &head(key, Ask::Node(node))[..]].concat()
}

/// The node that a service says it lacks.
pub(crate) fn decode_need(answer: &[u8]) -> Option<(ContentKey, NodeId)> {
    match (answer.split_first()?, decode(&answer[1..])?) {
        ((&ANSWER_NEED, _), (key, Ask::Node(node), [])) => Some((key, node)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn requests_come_back_as_they_were_sent(
            root: [u8; 32], size: u64, number: u64, level: u8, kind in 1u8..5, rest: Vec<u8>,
        ) {
            let key = ContentKey { root: Hash(root), size };
            let ask = match kind {
                1 => Ask::Open,
                2 => Ask::Map { first: number },
                3 => Ask::Units { first: number },
                _ => Ask::Node(NodeId { level, index: number }),
            };
            let rest = if kind < 3 { Vec::new() } else { rest };
            let message = [&head(&key, ask)[..], &rest].concat();
            prop_assert_eq!(decode(&message), Some((key, ask, &rest[..])));
        }

        #[test]
        fn answers_come_back_as_they_were_sent(
            root: [u8; 32], size: u64, index: u64, level: u8,
            first in 0..u64::MAX / 8, run in 0..u64::MAX / 8, octets: Vec<u8>,
        ) {
            let piece = Piece { first: first * 8, run_units: run * 8, octets: &octets };
            let answer = [&[ANSWER_HERE][..], &piece.encode()].concat();
            prop_assert_eq!(decode_piece(&answer), Some(piece));
            let (key, node) = (ContentKey { root: Hash(root), size }, NodeId { level, index });
            prop_assert_eq!(decode_need(&need(&key, node)), Some((key, node)));
            prop_assert_eq!(decode_need(&answer), None);
        }

        #[test]
        fn no_answer_is_taken_for_more_than_it_is(answer: Vec<u8>) {
            prop_assert_eq!(decode_need(&answer), None, "shorter than one");
            if let Some(piece) = decode_piece(&answer) {
                prop_assert!(piece.octets.len() < answer.len());
                prop_assert!(piece.end().is_none_or(|end| end >= piece.first));
            }
        }

        #[test]
        fn nothing_that_somebody_sends_is_taken_for_more_than_it_is(message: Vec<u8>) {
            if let Some((_, _, rest)) = decode(&message) {
                prop_assert_eq!(rest.len(), message.len() - HEAD_BYTES);
            }
        }
    }

    #[test]
    fn other_versions_and_kinds_are_none() {
        let key = ContentKey { root: Hash([1; 32]), size: 9 };
        let good = head(&key, Ask::Open);
        assert!(decode(&good).is_some());
        assert_eq!(decode(&good[..HEAD_BYTES - 1]), None, "too short");
        assert_eq!(decode(&[&good[..], &[0]].concat()), None, "too long");
        for (at, wrong) in [(0, 0), (0, 2), (1, 0), (1, 5)] {
            let mut bad = good;
            bad[at] = wrong;
            assert_eq!(decode(&bad), None);
        }
    }
}
