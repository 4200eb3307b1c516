//! Traffic for studies of size and speed: content is zeros and is not looked at.
//!
//! The [`ZeroSource`] answers any Interest below its prefix at once with as many zeros as the name
//! asks for segments of; the [`Sink`] fetches objects with the production flow control,
//! retransmission and congestion control, one after the other. Nothing is signed or verified, and
//! frames do not store the zeros ([`crate::frame`]), so a packet costs what the forwarders and the
//! engines cost. Correctness is studied with [`crate::programs`], which compare every octet.

use std::collections::VecDeque;

use byname_packet::lp::LpPacket;
use byname_packet::{DataBuilder, InterestBuilder, Name, NullSigner, Packet};
use byname_transfer::congestion::{Congestion, WINDOW_MAX};
use byname_transfer::fetch::{Fetch, FetchConfig, NackKind, SegmentRuns};
use byname_transfer::flow::Flow;

use crate::program::{Now, Program};
use crate::random::Random;

/// Payload of a segment.
pub const SEGMENT_BYTES: usize = 8192;

/// Answers any Interest at once.
#[derive(Default)]
pub struct ZeroSource {
    out: VecDeque<Vec<u8>>,
    answer_count: u64,
}

impl ZeroSource {
    /// Interests answered.
    pub fn answer_count(&self) -> u64 {
        self.answer_count
    }
}

impl Program for ZeroSource {
    fn handle_frame(&mut self, frame: &[u8], _now: Now) {
        let Ok(link) = LpPacket::decode(frame) else { return };
        let Some(packet) = link.fragment.filter(|_| link.header.nack.is_none()) else { return };
        let Ok(Packet::Interest(interest)) = Packet::decode(packet) else { return };
        let mut wire = Vec::with_capacity(SEGMENT_BYTES + 256);
        let data = DataBuilder::new(interest.name).freshness_ms(3_600_000);
        if data.encode(&[0; SEGMENT_BYTES], &NullSigner, &mut wire).is_ok() {
            self.answer_count += 1;
            self.out.push_back(wire);
        }
    }

    fn handle_timeout(&mut self, _now: Now) {}

    fn poll_frame(&mut self, _now: Now) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<u64> {
        None
    }

    fn fault(&self) -> Option<String> {
        None
    }
}

/// An object to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchJob {
    /// When, at the earliest.
    pub start_ns: u64,
    /// Name to which segment numbers are added.
    pub name: Name,
    /// Segments.
    pub segments: u64,
}

/// The outcome of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Segments that came.
    pub segments: u64,
    /// True if all came.
    pub is_whole: bool,
}

/// Fetches one object after the other.
pub struct Sink {
    jobs: VecDeque<FetchJob>,
    active: Option<(FetchJob, Fetch, Done)>,
    flow: Flow,
    random: Random,
    out: VecDeque<Vec<u8>>,
    done: Vec<Done>,
    /// Segments that came in each period, and its length.
    course: Option<(u64, Vec<u32>)>,
    received: u64,
    asked: u64,
}

impl Sink {
    /// Will carry out jobs in the order given.
    pub fn new(jobs: impl IntoIterator<Item = FetchJob>, random_seed: u64) -> Self {
        Sink {
            jobs: jobs.into_iter().collect(),
            active: None,
            flow: Flow::new(Congestion::default().controller(WINDOW_MAX), random_seed),
            random: Random::new(random_seed),
            out: VecDeque::new(),
            done: Vec::new(),
            course: None,
            received: 0,
            asked: 0,
        }
    }

    /// The same, which also counts what comes in each period.
    pub fn with_course(self, period_ns: u64) -> Self {
        Sink { course: Some((period_ns, Vec::new())), ..self }
    }

    /// Segments that came in each period since the start of the world.
    pub fn course(&self) -> &[u32] {
        self.course.as_ref().map_or(&[], |(_, counts)| counts)
    }

    /// Jobs that have ended.
    pub fn done(&self) -> &[Done] {
        &self.done
    }

    /// True if nothing is left to do.
    pub fn is_idle(&self) -> bool {
        self.active.is_none() && self.jobs.is_empty()
    }

    /// Segments that came for the first time.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Interests sent, repetitions included.
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// Window of the flow, in segments.
    pub fn window(&self) -> usize {
        self.flow.window()
    }

    fn step(&mut self, now: Now) {
        if let Some((_, fetch, done)) = &mut self.active {
            let is_over = fetch.is_finished() || fetch.failure().is_some();
            if is_over {
                let is_whole = fetch.is_finished();
                fetch.abandon(&mut self.flow);
                self.done.push(Done { end_ns: now.now_ns, is_whole, ..*done });
                self.active = None;
            }
        }
        if self.active.is_none()
            && let Some(job) = self.jobs.pop_front_if(|job| job.start_ns <= now.now_ns)
        {
            let last = job.segments.max(1) - 1;
            let fetch = Fetch::new(SegmentRuns::up_to(last), Some(last), FetchConfig::default());
            let start_ns = now.now_ns;
            let done = Done { start_ns, end_ns: start_ns, segments: 0, is_whole: false };
            self.active = Some((job, fetch, done));
        }
        let Sink { active, flow, random, out, asked, .. } = self;
        let Some((job, fetch, _)) = active else { return };
        let bytes = SEGMENT_BYTES as u64;
        while let Some(segment) = fetch.poll_segment(now.now_ns, usize::MAX, bytes, flow) {
            let mut wire = Vec::with_capacity(128);
            InterestBuilder::new(job.name.with_segment(segment).view())
                .nonce((random.draw() as u32).to_be_bytes())
                .encode(&mut wire);
            out.push_back(wire);
            *asked += 1;
        }
    }

    fn count(&mut self, now_ns: u64) {
        self.received += 1;
        if let Some((period_ns, counts)) = &mut self.course {
            let place = (now_ns / *period_ns) as usize;
            if counts.len() <= place {
                counts.resize(place + 1, 0);
            }
            counts[place] += 1;
        }
    }
}

impl Program for Sink {
    fn handle_frame(&mut self, frame: &[u8], now: Now) {
        let Ok(link) = LpPacket::decode(frame) else { return };
        let Some(packet) = link.fragment else { return };
        let Ok(packet) = Packet::decode(packet) else { return };
        let name = match &packet {
            Packet::Data(data) => data.name,
            Packet::Interest(interest) => interest.name,
        };
        let segment = name.last().and_then(|component| component.segment());
        let Some((job, fetch, done)) = &mut self.active else { return };
        let Some(segment) = segment.filter(|_| job.name.view().is_prefix_of(name)) else { return };
        match link.header.nack {
            None => {
                let is_marked = link.header.congestion_mark.is_some();
                if fetch.handle_data(segment, is_marked, now.now_ns, &mut self.flow) {
                    done.segments += 1;
                    self.count(now.now_ns);
                }
            }
            Some(reason) => {
                let kind = NackKind::from_reason(reason);
                fetch.handle_nack(segment, kind, now.now_ns, &mut self.flow);
            }
        }
        self.step(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        if let Some((_, fetch, _)) = &mut self.active {
            fetch.handle_timeout(now.now_ns, &mut self.flow);
        }
        self.step(now);
    }

    fn poll_frame(&mut self, _now: Now) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<u64> {
        match &mut self.active {
            Some((_, fetch, _)) => {
                let own = fetch.poll_deadline(&self.flow);
                own.into_iter().chain(self.flow.poll_deadline()).min()
            }
            None => self.jobs.front().map(|job| job.start_ns),
        }
    }

    fn fault(&self) -> Option<String> {
        None
    }
}
