//! Segments of one source that are read and sent together, to one face.
//!
//! Whatever belongs to a burst (what stands before and after each content, and the request, should
//! a Nack be needed) lies in one buffer, and bursts that are over are used again: a segment costs
//! no allocation. A burst wanders: the engine forms it, the executor reads and sends, perhaps much
//! later and in parts, and gives each part back with what became of it.

use std::collections::VecDeque;
use std::ops::Range;

use byname_packet::NameRef;

use super::ops::{FaceId, Handle};
use super::reply::Echo;

/// Segments in a burst.
pub const BURST_SEGMENTS_MAX: usize = 64;

/// Bursts kept for being used again.
const SPARE_MAX: usize = 32;

/// Data packets to be completed with octets of one open file or tree and sent.
#[derive(Debug, Default)]
pub struct SegmentBurst {
    face: FaceId,
    source: Handle,
    octets: Vec<u8>,
    segments: Vec<Planned>,
}

#[derive(Debug, Clone, Copy)]
struct Planned {
    offset: u64,
    len: usize,
    /// Where its header begins; trailer and request follow.
    at: usize,
    header_len: usize,
    trailer_len: usize,
    request_len: usize,
    echo: Echo,
}

/// One packet of a burst: `header`, `len` octets of the source from `offset` on, `trailer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentPlan<'a> {
    /// Where its content begins in the source.
    pub offset: u64,
    /// Number of octets of content; fewer at the end of the source mean that it changed.
    pub len: usize,
    /// Octets before them, link header included.
    pub header: &'a [u8],
    /// Octets after them.
    pub trailer: &'a [u8],
}

impl SegmentPlan<'_> {
    /// Octets of the whole packet.
    pub fn packet_len(&self) -> usize {
        self.header.len() + self.len + self.trailer.len()
    }
}

impl SegmentBurst {
    /// To whom the packets go.
    pub fn face(&self) -> FaceId {
        self.face
    }

    /// Where the octets are.
    pub fn source(&self) -> Handle {
        self.source
    }

    /// Number of segments.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// One of them.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn segment(&self, index: usize) -> SegmentPlan<'_> {
        let planned = &self.segments[index];
        let (header, rest) = self.octets[planned.at..].split_at(planned.header_len);
        let trailer = &rest[..planned.trailer_len];
        SegmentPlan { offset: planned.offset, len: planned.len, header, trailer }
    }

    /// All of them, in the order of the requests.
    pub fn segments(&self) -> impl Iterator<Item = SegmentPlan<'_>> {
        (0..self.len()).map(|index| self.segment(index))
    }

    /// Number of segments from `start` on follow one another in the source without a gap.
    pub fn run_from(&self, start: usize) -> Range<usize> {
        let follow = self.segments[start..]
            .windows(2)
            .take_while(|pair| pair[1].offset == pair[0].offset + pair[0].len as u64)
            .count();
        start..self.len().min(start + 1 + follow)
    }

    /// Name that the first of its requests asks for; all are of one object.
    pub fn name(&self) -> Option<NameRef<'_>> {
        let (request, _) = self.requests().next()?;
        super::reply::interest_name(request)
    }

    /// Takes some of the segments out, as a burst of their own.
    pub fn take_out(&mut self, range: Range<usize>) -> Self {
        let mut taken = Self { face: self.face, source: self.source, ..Self::default() };
        for mut planned in self.segments.drain(range) {
            let len = planned.header_len + planned.trailer_len + planned.request_len;
            let octets = &self.octets[planned.at..planned.at + len];
            planned.at = taken.octets.len();
            taken.octets.extend_from_slice(octets);
            taken.segments.push(planned);
        }
        taken
    }

    /// The requests, with what their answers carry.
    pub(super) fn requests(&self) -> impl Iterator<Item = (&[u8], Echo)> {
        self.segments.iter().map(|planned| {
            let at = planned.at + planned.header_len + planned.trailer_len;
            (&self.octets[at..at + planned.request_len], planned.echo)
        })
    }

    fn begin(&mut self, (face, source): (FaceId, Handle)) {
        (self.face, self.source) = (face, source);
        self.octets.clear();
        self.segments.clear();
    }
}

/// A segment to be added to a burst.
pub(super) struct NewSegment<'a> {
    pub(super) source: Handle,
    pub(super) offset: u64,
    pub(super) len: usize,
    /// Data packet up to the content.
    pub(super) front: &'a [u8],
    pub(super) trailer: &'a [u8],
    pub(super) request: &'a [u8],
    pub(super) echo: Echo,
}

/// Bursts being formed, handed out in turn.
///
/// Faces with work take turns, a burst a turn, whatever each of them has waiting; and so do the
/// files that are asked for within a face's turns.
#[derive(Debug, Default)]
pub(super) struct Forming {
    /// Never without a line; the first one's turn is next.
    faces: VecDeque<(FaceId, VecDeque<Line>)>,
    spare: Vec<SegmentBurst>,
}

/// Bursts of one file for one face; never empty.
#[derive(Debug)]
struct Line {
    source: Handle,
    bursts: VecDeque<SegmentBurst>,
}

impl Forming {
    /// Adds a segment to the last burst of its source, or to a new one.
    pub(super) fn add(&mut self, segment: &NewSegment<'_>) {
        let burst = self.burst_for(segment.echo.face(), segment.source);
        let octets = &mut burst.octets;
        let at = octets.len();
        let packet_len = segment.front.len() + segment.len + segment.trailer.len();
        segment.echo.write(packet_len, octets);
        octets.extend_from_slice(segment.front);
        let header_len = octets.len() - at;
        octets.extend_from_slice(segment.trailer);
        octets.extend_from_slice(segment.request);
        burst.segments.push(Planned {
            offset: segment.offset,
            len: segment.len,
            at,
            header_len,
            trailer_len: segment.trailer.len(),
            request_len: segment.request.len(),
            echo: segment.echo,
        });
    }

    /// The burst that a segment goes into.
    fn burst_for(&mut self, face: FaceId, source: Handle) -> &mut SegmentBurst {
        // From behind: what comes together belongs together.
        let lines = match self.faces.iter().rposition(|(of, _)| *of == face) {
            Some(at) => &mut self.faces[at].1,
            None => {
                self.faces.push_back((face, VecDeque::new()));
                &mut self.faces.back_mut().expect("it was pushed").1
            }
        };
        let bursts = match lines.iter().rposition(|line| line.source == source) {
            Some(at) => &mut lines[at].bursts,
            None => {
                lines.push_back(Line { source, bursts: VecDeque::new() });
                &mut lines.back_mut().expect("it was pushed").bursts
            }
        };
        if bursts.back().is_none_or(|burst| burst.len() >= BURST_SEGMENTS_MAX) {
            let mut burst = self.spare.pop().unwrap_or_default();
            burst.begin((face, source));
            bursts.push_back(burst);
        }
        bursts.back_mut().expect("one was pushed unless there was one")
    }

    /// The next burst. After it, all other faces with work have their turns before this one has
    /// another.
    pub(super) fn pop(&mut self) -> Option<SegmentBurst> {
        let (face, mut lines) = self.faces.pop_front()?;
        let mut line = lines.pop_front()?;
        let burst = line.bursts.pop_front();
        if !line.bursts.is_empty() {
            lines.push_back(line);
        }
        if !lines.is_empty() {
            self.faces.push_back((face, lines));
        }
        burst
    }

    /// Faces with segments that wait.
    pub(super) fn face_count(&self) -> usize {
        self.faces.len()
    }

    /// Keeps the memory of a burst that is over.
    pub(super) fn recycle(&mut self, burst: SegmentBurst) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(burst);
        }
    }
}

#[cfg(test)]
mod tests {
    use byname_packet::lp::LpPacket;
    use byname_packet::{Interest, InterestBuilder, Name};

    use super::super::Arrival;
    use super::*;

    fn add(forming: &mut Forming, face: u64, source: u64, segment: u64) {
        let name: Name = format!("/f/seg={segment}").parse().unwrap();
        let mut wire = Vec::new();
        InterestBuilder::new(name.view()).encode(&mut wire);
        let interest = Interest::decode(&wire).unwrap();
        let face = FaceId(face);
        let arrival = Arrival {
            interest: &interest,
            pit_token: Some(b"t"),
            congestion_mark: None,
            face,
            incoming_face_id: None,
            path_trace: None,
        };
        forming.add(&NewSegment {
            source: Handle(source),
            offset: segment * 100,
            len: 100,
            front: format!("<{source}.{segment}>").as_bytes(),
            trailer: b"</>",
            request: &wire,
            echo: Echo::of(&arrival),
        });
    }

    fn offsets(burst: &SegmentBurst) -> Vec<u64> {
        burst.segments().map(|segment| segment.offset / 100).collect()
    }

    #[test]
    fn what_is_asked_of_one_file_beyond_a_burst_waits_for_another_s_turn() {
        let mut forming = Forming::default();
        (0..BURST_SEGMENTS_MAX as u64 + 10).for_each(|segment| add(&mut forming, 1, 7, segment));
        add(&mut forming, 1, 8, 0);
        add(&mut forming, 2, 7, 0);
        add(&mut forming, 1, 8, 1);
        let bursts: Vec<SegmentBurst> = std::iter::from_fn(|| forming.pop()).collect();
        let turns: Vec<_> =
            bursts.iter().map(|burst| (burst.face().0, burst.source().0, burst.len())).collect();
        assert_eq!(turns, [(1, 7, BURST_SEGMENTS_MAX), (2, 7, 1), (1, 8, 2), (1, 7, 10)]);
        assert_eq!(offsets(&bursts[2]), [0, 1]);
    }

    #[test]
    fn faces_with_work_take_turns_however_much_each_of_them_wants() {
        const MANY: u64 = 4 * BURST_SEGMENTS_MAX as u64;
        let mut forming = Forming::default();
        // Much of one file, a little of many files, and a little of one.
        (0..MANY).for_each(|segment| add(&mut forming, 1, 7, segment));
        (0..4).for_each(|source| add(&mut forming, 2, 20 + source, 0));
        add(&mut forming, 3, 7, 0);
        let mut turns = Vec::new();
        while let Some(burst) = forming.pop() {
            turns.push(burst.face().0);
            if turns.len() == 4 {
                // Whoever comes later waits for one turn of everybody else.
                add(&mut forming, 3, 7, 1);
            }
        }
        assert_eq!(turns, [1, 2, 3, 1, 2, 1, 3, 2, 1, 2]);
    }

    #[test]
    fn parts_that_are_taken_out_are_whole_and_what_is_left_too() {
        let mut forming = Forming::default();
        [0, 1, 2, 9, 10, 4].into_iter().for_each(|segment| add(&mut forming, 1, 7, segment));
        let mut burst = forming.pop().unwrap();
        let runs = [burst.run_from(0), burst.run_from(3), burst.run_from(5), burst.run_from(1)];
        assert_eq!(runs, [0..3, 3..5, 5..6, 1..3]);
        let taken = burst.take_out(1..4);
        assert_eq!((offsets(&taken), offsets(&burst)), (vec![1, 2, 9], vec![0, 10, 4]));
        for (burst, segment) in [(&taken, 9), (&burst, 10)] {
            let at = offsets(burst).iter().position(|it| *it == segment).unwrap();
            let plan = burst.segment(at);
            assert!(plan.header.ends_with(format!("<7.{segment}>").as_bytes()));
            assert_eq!((plan.trailer, plan.len), (&b"</>"[..], 100));
            let (request, _) = burst.requests().nth(at).unwrap();
            let name: Name = format!("/f/seg={segment}").parse().unwrap();
            assert_eq!(Interest::decode(request).unwrap().name, name.view());
        }
    }

    #[test]
    fn a_burst_that_is_used_again_keeps_nothing() {
        let mut forming = Forming::default();
        add(&mut forming, 1, 7, 3);
        let burst = forming.pop().unwrap();
        forming.recycle(burst);
        add(&mut forming, 2, 8, 5);
        let burst = forming.pop().unwrap();
        assert_eq!(
            (burst.face(), burst.source(), offsets(&burst)),
            (FaceId(2), Handle(8), vec![5])
        );
    }

    #[test]
    fn a_packet_is_as_long_as_its_headers_say() {
        let mut forming = Forming::default();
        assert_eq!(forming.face_count(), 0);
        (1..3).for_each(|face| add(&mut forming, face, 7, 3));
        assert_eq!(forming.face_count(), 2);
        let mut burst = forming.pop().unwrap();
        assert!(!burst.is_empty());
        let name: Name = "/f/seg=3".parse().unwrap();
        assert_eq!(burst.name(), Some(name.view()));
        let plan = burst.segment(0);
        let packet = [plan.header, &[7; 100], plan.trailer].concat();
        assert_eq!(plan.packet_len(), packet.len());
        let link = LpPacket::decode(&packet).unwrap();
        assert_eq!(link.fragment.unwrap().len(), "<7.3>".len() + 100 + "</>".len());
        let taken = burst.take_out(0..1);
        assert_eq!((taken.face(), taken.source(), taken.len()), (FaceId(1), Handle(7), 1));
        assert!(burst.is_empty() && burst.name().is_none());
    }

    #[test]
    fn memory_of_bursts_is_used_again_up_to_a_bound() {
        let mut forming = Forming::default();
        (0..=SPARE_MAX).for_each(|_| forming.recycle(SegmentBurst::default()));
        assert_eq!(forming.spare.len(), SPARE_MAX);
        add(&mut forming, 1, 7, 3);
        assert_eq!(forming.spare.len(), SPARE_MAX - 1);
    }
}
