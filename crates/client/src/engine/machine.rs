//! The event loop without sockets, threads and clocks: frames in, frames out, any number of jobs.
//!
//! Whoever drives it owns the connections and says what time it is: the session wing does so over
//! sockets, or for whoever has frames from elsewhere. Per turn it calls, in this order: *begin*
//! ([`Run::refill`]), *connect* ([`Machine::poll_connect`], answered by
//! [`Machine::handle_connected`] or [`Machine::handle_connect_failed`]), *send*
//! ([`Machine::send`]), *receive* ([`Machine::handle_frame`] for each frame, then
//! [`Machine::end_burst`]), *time* ([`Machine::handle_timeout`] when [`Machine::poll_deadline`] has
//! come). After send and after time, [`Run::retire`] takes out what is done.
//!
//! Frames are borrowed where they lie and go to the jobs from there, but for signed answers: they
//! are held until the burst is there, and verified together. Each job sends a bounded
//! number of requests before the next has its turn, so that none starves the others.

use byname_link::{CAUTIOUS_MTU_BYTES, LinkService, ReassemblyLimits};
use byname_packet::lp::{LpHeader, nack_reason};
use byname_packet::{Data, Interest};
use byname_security::trust::Signed;
use byname_transfer::fetch::NackKind;
use byname_transfer::request::{Context, Request};

use crate::engine::held::Held;
use crate::engine::job::{Job, JobSource};
use crate::engine::outage::{Notice, Outage};
use crate::engine::random::Random;
use crate::engine::routes::{JobId, Routes};
use crate::engine::run::{Active, Run, find};
use crate::engine::shared::{Now, Shared};
use crate::engine::sources::{Connect, End, Sources};

/// Requests of one job before the next one has its turn.
const BURST: usize = 32;
/// Pieces that do not verify after which another source is asked: one may be the network's.
const REFUSED_MAX: u64 = 3;
/// Unfinished fragmented packets: a window of large segments may arrive interleaved.
const REASSEMBLY: ReassemblyLimits = ReassemblyLimits {
    messages_max: 64,
    bytes_max: 1 << 20,
    fragments_max: 400,
    lifetime_ns: 500_000_000,
};

/// Where frames go: the connection in use.
pub(crate) trait Outlet {
    /// True if another request should be made now.
    fn has_room(&self) -> bool;
    /// Queues a frame. What finds no room is lost; retransmission repairs that.
    fn queue(&mut self, parts: &[&[u8]]);
}

/// Kind of frames that a connection delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Octets: every frame is a whole packet.
    Stream,
    /// Datagrams: packets may come in fragments.
    Datagram,
}

/// See the module.
pub(crate) struct Machine {
    pub(crate) shared: Shared,
    sources: Sources,
    outage: Outage,
    link: LinkService,
    random: Random,
    pub(super) routes: Routes,
    pub(super) next_id: u64,
    /// Pieces of this source that did not verify when it was last to be left for that.
    refused_before: u64,
    /// Requests that the source refused and another may answer, with the reason.
    refused: Vec<(Vec<u8>, u64)>,
    end: Option<End>,
    notice: Option<Notice>,
    waiting: Vec<JobId>,
    held: Held,
    wire: Vec<u8>,
}

impl Machine {
    /// The first of the sources is connected to.
    pub(crate) fn new(shared: Shared, sources: Sources, channel: Channel, random: Random) -> Self {
        let mut random = random;
        Machine {
            shared,
            sources,
            outage: Outage::default(),
            link: link_for(channel, &mut random),
            random,
            routes: Routes::default(),
            next_id: 0,
            refused_before: 0,
            refused: Vec::new(),
            end: None,
            notice: None,
            waiting: Vec::new(),
            held: Held::default(),
            wire: Vec::new(),
        }
    }

    /// Objects and packets that are waited for.
    pub(crate) fn name_count(&self) -> usize {
        self.routes.len()
    }

    /// True if a lost connection can come back.
    pub(crate) fn can_reconnect(&self) -> bool {
        self.sources.can_reconnect()
    }

    /// Why nothing can go on, once; then it may be tried again.
    pub(crate) fn take_end(&mut self) -> Option<End> {
        self.end.take()
    }

    /// The source that shall be connected to now. The connection in use stays until it is.
    pub(crate) fn poll_connect(&mut self, now_ns: u64) -> Option<Connect> {
        self.sources.poll_connect(now_ns)
    }

    /// The source of the last [`Machine::poll_connect`] is there, and the one before is not used
    /// any more.
    pub(crate) fn handle_connected(
        &mut self,
        channel: Channel,
        now_ns: u64,
        out: &mut impl Outlet,
    ) {
        self.link = link_for(channel, &mut self.random);
        self.sources.handle_connected(now_ns);
        self.shared.flow.set_source(self.sources.current());
        // Pieces are counted by who sent them.
        self.refused_before = 0;
        for (wire, _) in std::mem::take(&mut self.refused) {
            self.sources.ask(now_ns);
            self.send_wire(&wire, out);
        }
    }

    /// The source of the last [`Machine::poll_connect`] cannot be had.
    pub(crate) fn handle_connect_failed<S: JobSource>(&mut self, run: &mut Run<S>, now: Now) {
        let random = self.random.next_u64();
        self.end = self.end.or(self.sources.handle_connect_failed(now.now_ns, random));
        if !self.sources.is_switching() {
            self.report_refused(run, now);
        }
    }

    /// The connection in use is gone.
    pub(crate) fn handle_disconnected(&mut self, now_ns: u64) {
        self.sources.handle_disconnected(now_ns, self.random.next_u64());
    }

    /// Nobody listens at the other end. Later it may be a forwarder that restarts; before the
    /// first packet nobody is there. True if the connection is of no use.
    pub(crate) fn handle_unreachable(&mut self, now_ns: u64) -> bool {
        if self.sources.is_answered() {
            return false;
        }
        let random = self.random.next_u64();
        self.end = self.end.or(self.sources.handle_unreachable(now_ns, random));
        self.sources.has_delivered()
    }

    /// Nothing is in flight any more.
    pub(crate) fn rest(&mut self) {
        self.outage.forget();
        self.end = None;
    }

    /// An outage that has begun and that the calls in flight bear, or that is over.
    pub(crate) fn poll_notice(&mut self, now_ns: u64) -> Option<Notice> {
        let notice = self.notice.take();
        notice.or_else(|| self.outage.check(now_ns).filter(|_| self.sources.has_delivered()))
    }

    /// Sends what the jobs have to send and the outlet has room for.
    pub(crate) fn send<S: JobSource>(
        &mut self,
        run: &mut Run<S>,
        clock: &impl Fn() -> Now,
        out: &mut impl Outlet,
    ) {
        let mut has_more = true;
        while has_more && out.has_room() {
            has_more = false;
            for one in &mut run.active {
                has_more |= self.send_burst(one, clock(), out);
            }
        }
        // Whoever was first now is last next time.
        if !run.active.is_empty() {
            run.active.rotate_left(1);
        }
    }

    /// Lets the jobs do what needs no connection. Called instead of *send* while there is none.
    pub(crate) fn serve_local<S: JobSource>(&mut self, run: &mut Run<S>, now: Now) {
        for one in &mut run.active {
            one.job.serve_local(&mut self.shared.context(now));
        }
    }

    /// True if the job used up its burst and may have more to send.
    fn send_burst<J: Job>(&mut self, one: &mut Active<J>, now: Now, out: &mut impl Outlet) -> bool {
        for _ in 0..BURST {
            let mut context = self.shared.context(now);
            let Some(request) = one.job.poll_request(&mut context) else { return false };
            self.routes.insert(&request, one.id);
            self.send_request(&request, now.now_ns, out);
        }
        true
    }

    fn send_request(&mut self, request: &Request, now_ns: u64, out: &mut impl Outlet) {
        let mut wire = std::mem::take(&mut self.wire);
        wire.clear();
        request.encode(self.random.next_nonce(), &mut wire);
        self.sources.ask(now_ns);
        self.outage.ask(now_ns);
        self.send_wire(&wire, out);
        self.wire = wire;
    }

    /// Sends an Interest that is there already.
    fn send_wire(&mut self, wire: &[u8], out: &mut impl Outlet) {
        let path_trace = self.shared.answers.is_some().then_some(&[][..]);
        let header = LpHeader { path_trace, ..LpHeader::default() };
        let sent = self.link.send(&header, wire, 0, |head, packet| out.queue(&[head, packet]));
        if let Err(error) = sent {
            tracing::debug!(%error, "an Interest does not fit the link");
        }
    }

    /// Takes a frame of the connection in use. [`Machine::end_burst`] comes behind the last one.
    pub(crate) fn handle_frame<S: JobSource>(&mut self, run: &mut Run<S>, frame: &[u8], now: Now) {
        let is_elsewhere = self.sources.has_others();
        let Machine { sources, outage, notice, link, shared, routes, .. } = self;
        let Machine { waiting, refused, held, .. } = self;
        sources.hear();
        let received = match link.receive(frame, now.now_ns) {
            Ok(Some(received)) => received,
            Ok(None) => return,
            Err(reason) => {
                shared.dropped_count += 1;
                return tracing::debug!(?reason, "a frame was dropped");
            }
        };
        if let (Some(answers), None) = (&mut shared.answers, received.header.nack) {
            answers.note(received.header.path_trace);
        }
        let mut context = shared.context(now);
        let Some(reason) = received.header.nack else {
            sources.hear_data();
            *notice = notice.take().or(outage.hear_data(now.now_ns));
            let data = match Data::decode(received.packet) {
                Ok(data) => data,
                Err(error) => {
                    shared.dropped_count += 1;
                    return tracing::debug!(%error, "a packet was dropped");
                }
            };
            let is_marked = received.header.congestion_mark > Some(0);
            let not_fresh = received.header.not_fresh;
            routes.find_for((data.name, not_fresh), waiting);
            if waiting.is_empty() || !not_fresh && held.take(&data, is_marked) {
                return;
            }
            return give_data(&mut run.active, waiting, (&data, is_marked), &mut context);
        };
        match Interest::decode(received.packet) {
            Ok(interest) if is_elsewhere && is_refusal(reason) => {
                refused.push((interest.wire().to_vec(), reason));
            }
            Ok(interest) => {
                routes.find(interest.name, waiting);
                give_nack(&mut run.active, waiting, &interest, reason, &mut context);
            }
            Err(error) => tracing::debug!(%error, "a Nack was dropped"),
        }
    }

    /// Gives the jobs the signed answers of a burst, verified together. Called behind its last
    /// frame, before anything else is done about the connection.
    pub(crate) fn give_held<S: JobSource>(&mut self, run: &mut Run<S>, now: Now) {
        let held = std::mem::take(&mut self.held);
        let answers = held.answers();
        let signed: Vec<_> = answers.iter().map(|(data, _)| Signed::from(data)).collect();
        self.shared.validator.verify_together(&signed);
        for (data, is_marked) in &answers {
            self.routes.find(data.name, &mut self.waiting);
            let mut context = self.shared.context(now);
            give_data(&mut run.active, &self.waiting, (data, *is_marked), &mut context);
        }
        self.held = held.emptied();
    }

    /// All frames that were there are taken: decides whether somebody else is to be asked.
    pub(crate) fn end_burst<S: JobSource>(&mut self, run: &mut Run<S>, now: Now) {
        self.give_held(run, now);
        if !self.refused.is_empty() && !self.sources.switch() {
            self.report_refused(run, now);
        }
        self.leave_liar(run);
        self.sources.check_silence(now.now_ns);
    }

    /// Reports to the jobs what was refused: there is nobody else who may have it.
    fn report_refused<S: JobSource>(&mut self, run: &mut Run<S>, now: Now) {
        for (wire, reason) in std::mem::take(&mut self.refused) {
            let Ok(interest) = Interest::decode(&wire) else { continue };
            self.routes.find(interest.name, &mut self.waiting);
            let mut context = self.shared.context(now);
            give_nack(&mut run.active, &self.waiting, &interest, reason, &mut context);
        }
    }

    /// A source that keeps sending what does not verify is left for another.
    fn leave_liar<S: JobSource>(&mut self, run: &mut Run<S>) {
        let source = self.sources.current();
        let refused = run.active.iter_mut().map(|one| one.job.refused_by(source)).sum::<u64>();
        if refused < self.refused_before {
            self.refused_before = 0;
        }
        if refused >= self.refused_before + REFUSED_MAX && self.sources.leave() {
            self.refused_before = refused;
        }
    }

    /// Lets the jobs do what is due.
    pub(crate) fn handle_timeout<S: JobSource>(&mut self, run: &mut Run<S>, now: Now) {
        for one in &mut run.active {
            let deadline_ns = one.job.poll_deadline(&self.shared.flow);
            if deadline_ns.is_some_and(|at| at <= now.now_ns) {
                one.job.handle_timeout(&mut self.shared.context(now));
            }
        }
    }

    /// When something is due that the jobs, or the choice of the source, wait for.
    pub(crate) fn poll_deadline<S: JobSource>(&mut self, run: &mut Run<S>) -> Option<u64> {
        let flow = &self.shared.flow;
        let jobs = run.active.iter_mut().filter_map(|one| one.job.poll_deadline(flow));
        jobs.chain(flow.poll_deadline()).chain(self.sources.poll_deadline()).min()
    }
}

fn link_for(channel: Channel, random: &mut Random) -> LinkService {
    match channel {
        Channel::Datagram => {
            LinkService::datagram(CAUTIOUS_MTU_BYTES, random.next_u64(), REASSEMBLY)
        }
        Channel::Stream => LinkService::stream(),
    }
}

/// True if another source may say otherwise.
fn is_refusal(reason: u64) -> bool {
    matches!(reason, nack_reason::NO_ROUTE | nack_reason::NONE)
}

/// To all of them: two jobs may wait for the same certificate.
fn give_data<J: Job>(
    active: &mut [Active<J>],
    waiting: &[JobId],
    (data, is_marked): (&Data<'_>, bool),
    context: &mut Context<'_>,
) {
    for id in waiting {
        if let Some(one) = find(active, *id) {
            one.job.handle_data(data, is_marked, context);
        }
    }
}

fn give_nack<J: Job>(
    active: &mut [Active<J>],
    waiting: &[JobId],
    interest: &Interest<'_>,
    reason: u64,
    context: &mut Context<'_>,
) {
    for id in waiting {
        if let Some(one) = find(active, *id) {
            let kind = NackKind::of(interest, reason);
            one.job.handle_nack(interest.name, kind, context);
        }
    }
}
