//! Which packets a full store takes in.
//!
//! Bulk that nobody else wants would drive out everything else as it passes, and copying it costs a
//! good part of what forwarding it does. So while what is kept is in use, a full store takes a
//! segment from the body of an object only on evidence that the object is wanted more than once
//! lately: one of its segments was answered from the store, went to several faces at once, or came
//! by a second time, and not because somebody repeats a request. Whoever follows a reader fetches
//! what lies between them once more, which is kept too, and is answered from the store from then on
//! if that is less than half of what it holds.
//!
//! Everything else is taken as ever: other packets, the beginnings of objects, and anything when
//! what would have to go has not been used for a while. On slow links nothing is ever refused.
//!
//! *Lately* is counted in packets that came by: not many more than the store keeps, for who is
//! further behind finds nothing in it, and reading a large object again from its beginning is no
//! reason to keep all of it. The tables are of bounded size, indexed by keyed hashes, and forget by
//! being written over. What they have wrong costs a copy or a miss.

use crate::face::FaceId;

/// Segments at the beginning of an object that are always taken: small objects are kept whole, and
/// who reads a large one soon after another reader is noticed at once.
const SEGMENTS_ALWAYS: u64 = 64;

/// A packet that has not been used for so long makes room for anything.
const IDLE_NS: u64 = 10_000_000_000;

/// The part of recent traffic within which a face that asks again for the same may well have lost
/// the answer.
const AGAIN_PART: u32 = 16;

/// Objects that are known to be wanted, at most.
const OBJECTS: usize = 1024;

/// Names that are remembered as refused, at most.
const REFUSED_MAX: usize = 1 << 20;

/// A segment that comes by, or is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    /// Of its name.
    pub(super) hash: u64,
    /// Of the name of its object.
    pub(super) object_hash: u64,
    pub(super) number: u64,
}

/// Time at which a packet was used, and by whom.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Use {
    tick: u32,
    /// Enough of a face's number to tell it from others.
    by: u32,
}

/// Which name, and when it was noted.
#[derive(Debug, Clone, Copy, Default)]
struct Note {
    tag: u32,
    used: Use,
}

/// Record of recent traffic.
#[derive(Debug)]
pub(super) struct Admission {
    /// Packets that came by; wraps around.
    tick: u32,
    /// Number of them that are recent.
    recent: u32,
    /// Names refused, each in the place that its hash says. Empty until the first.
    refused: Vec<Note>,
    /// Objects wanted, in the same way.
    wanted: Vec<Note>,
    segments_always: u64,
}

impl Default for Admission {
    fn default() -> Self {
        Self {
            tick: 0,
            recent: 0,
            refused: Vec::new(),
            wanted: Vec::new(),
            segments_always: SEGMENTS_ALWAYS,
        }
    }
}

/// The bits of a hash that choose no place.
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

fn place(hash: u64, places: usize) -> usize {
    hash as usize & (places - 1)
}

impl Admission {
    /// Takes everything.
    #[cfg(test)]
    pub(super) fn of_everything() -> Self {
        Self { segments_always: u64::MAX, ..Self::default() }
    }

    /// A packet has come by, while so many are kept. What time it is now.
    pub(super) fn count_packet(&mut self, kept: usize) {
        self.tick = self.tick.wrapping_add(1);
        self.recent = (2 * kept).min(REFUSED_MAX) as u32;
    }

    /// A use now.
    pub(super) fn used_by(&self, face: FaceId) -> Use {
        Use { tick: self.tick, by: face.0 as u32 }
    }

    /// Notes that something of an object is used again.
    pub(super) fn note_again(&mut self, object_hash: u64, before: Use, now: Use) {
        if self.is_sign(before, now) {
            self.note_wanted(object_hash);
        }
    }

    /// Returns whether two uses of one packet say that it is wanted more than once lately.
    fn is_sign(&self, before: Use, now: Use) -> bool {
        let distance = now.tick.wrapping_sub(before.tick);
        let is_repetition = before.by == now.by && distance < self.recent / AGAIN_PART;
        distance < self.recent && !is_repetition
    }

    /// Notes that an object is wanted by more than one.
    pub(super) fn note_wanted(&mut self, object_hash: u64) {
        if self.wanted.is_empty() {
            self.wanted = vec![Note::default(); OBJECTS];
        }
        let used = Use { tick: self.tick, by: 0 };
        let note = Note { tag: tag(object_hash), used };
        self.wanted[place(object_hash, OBJECTS)] = note;
    }

    /// Returns whether a segment is taken by a full store in which the packet that is the next to
    /// go has not been used for `idle_ns`.
    pub(super) fn takes(&mut self, segment: Segment, by: FaceId, idle_ns: u64) -> bool {
        if segment.number < self.segments_always || idle_ns >= IDLE_NS || self.is_wanted(segment) {
            return true;
        }
        let came_before = self.came_before(segment.hash, self.used_by(by));
        if came_before {
            self.note_wanted(segment.object_hash);
        }
        came_before
    }

    fn is_wanted(&self, segment: Segment) -> bool {
        let hash = segment.object_hash;
        let known = (!self.wanted.is_empty()).then(|| self.wanted[place(hash, OBJECTS)]);
        known.is_some_and(|note| {
            note.tag == tag(hash) && self.tick.wrapping_sub(note.used.tick) < self.recent
        })
    }

    /// Returns whether this name was refused lately; it counts as refused from now on.
    fn came_before(&mut self, hash: u64, used: Use) -> bool {
        let places = (self.recent as usize).next_power_of_two();
        if self.refused.len() < places {
            self.refused = vec![Note::default(); places];
        }
        let at = place(hash, self.refused.len());
        let note = Note { tag: tag(hash), used };
        let before = std::mem::replace(&mut self.refused[at], note);
        before.tag == note.tag && self.is_sign(before.used, used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: usize = 100;
    const RECENT: u64 = 2 * KEPT as u64;
    const ONE: FaceId = FaceId(1);
    const OTHER: FaceId = FaceId(2);

    fn segment(object: u64, number: u64) -> Segment {
        // Any mixing will do in place of the keyed hash.
        let mix = |x: u64| x.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        Segment { hash: mix(mix(object) ^ number), object_hash: mix(object), number }
    }

    fn taken_by(
        admission: &mut Admission,
        by: FaceId,
        object: u64,
        numbers: std::ops::Range<u64>,
    ) -> usize {
        let mut takes = |number| {
            admission.count_packet(KEPT);
            admission.takes(segment(object, number), by, 0)
        };
        numbers.filter(|number| takes(*number)).count()
    }

    fn taken(admission: &mut Admission, object: u64, numbers: std::ops::Range<u64>) -> usize {
        taken_by(admission, ONE, object, numbers)
    }

    #[test]
    fn of_what_passes_once_only_the_beginning_is_taken() {
        let mut admission = Admission::default();
        for object in 0..4 {
            let count = taken(&mut admission, object, 0..1000);
            assert_eq!(count, SEGMENTS_ALWAYS as usize);
        }
    }

    #[test]
    fn what_passes_again_soon_is_taken_from_then_on() {
        let mut admission = Admission::default();
        taken(&mut admission, 1, 900..1000);
        // The places of a few have been taken by others meanwhile.
        assert!(taken(&mut admission, 1, 950..960) > 5);
        assert_eq!(taken(&mut admission, 1, 1000..1100), 100, "the reader that is ahead");
        assert_eq!(taken(&mut admission, 2, 1000..1100), 0, "another object");
    }

    #[test]
    fn a_repeated_request_is_no_second_reader() {
        let mut admission = Admission::default();
        taken(&mut admission, 1, 900..1000);
        assert_eq!(taken(&mut admission, 1, 995..999), 0);
        assert!(taken_by(&mut admission, OTHER, 1, 990..995) > 2);
    }

    #[test]
    fn what_passes_again_late_is_not() {
        let mut admission = Admission::default();
        for _ in 0..10 {
            assert_eq!(taken(&mut admission, 1, 1000..1000 + RECENT), 0);
        }
        assert_eq!(admission.refused.len(), 256);
    }

    #[test]
    fn what_is_wanted_is_taken_while_that_is_recent() {
        let mut admission = Admission::default();
        admission.note_wanted(segment(7, 0).object_hash);
        let count = taken(&mut admission, 7, 5000..6000);
        assert_eq!(count as u64, RECENT - 1);
    }

    #[test]
    fn a_second_use_by_the_same_face_is_a_sign_only_after_a_while() {
        let mut admission = Admission::default();
        admission.count_packet(KEPT);
        let again = admission.recent / AGAIN_PART;
        let before = Use { tick: 1000, by: 1 };
        let is_sign = |distance, by| admission.is_sign(before, Use { tick: 1000 + distance, by });
        assert!(!is_sign(again - 1, 1) && is_sign(again, 1) && is_sign(0, 2));
        assert!(is_sign(RECENT as u32 - 1, 1) && !is_sign(RECENT as u32, 2));
    }

    #[test]
    fn what_nobody_uses_makes_room() {
        let mut admission = Admission::default();
        admission.count_packet(KEPT);
        assert!(!admission.takes(segment(1, 5001), ONE, IDLE_NS - 1));
        assert!(admission.takes(segment(1, 5000), ONE, IDLE_NS));
    }
}
