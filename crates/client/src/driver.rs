//! The event loop: one connection, any number of jobs, one thread.
//!
//! Each turn sends what the jobs have to send (a bounded number each, so that none starves the
//! others), waits for packets or the next deadline, and hands the packets to the jobs that wait
//! for their names. The stop flag is looked at once per turn.

use std::time::Duration;

use byname_io::Clock;
use byname_packet::lp::nack_reason;
use byname_packet::{Data, Interest, NameRef};
use byname_security::trust::Validator;
use byname_transfer::fetch::NackKind;
use byname_transfer::flow::Flow;
use byname_transfer::request::Context;
use byname_transfer::versions::VersionMemory;

use crate::config::{Stop, nanoseconds};
use crate::error::ClientError;
use crate::job::{Job, JobSource, Single};
use crate::net::{Incoming, Net};
use crate::routes::{JobId, Routes};

/// Requests of one job before the next one has its turn.
const BURST: usize = 32;
/// Longest sleep: a stop flag set by another thread is seen within this time.
const SLEEP_MAX: Duration = Duration::from_millis(200);
const BLOCKED_SLEEP: Duration = Duration::from_millis(5);
/// Pieces that are not genuine after which another source is asked: one may be the network's.
const REFUSED_MAX: u64 = 3;
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

/// What all jobs of a client share.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) flow: Flow,
    pub(crate) validator: Validator,
    pub(crate) versions: VersionMemory,
}

/// What time it is, for a whole burst.
#[derive(Clone, Copy)]
struct Instant {
    now_ns: u64,
    unix_ns: u64,
}

impl Shared {
    fn now(&self) -> Instant {
        Instant { now_ns: self.clock.now_ns(), unix_ns: self.clock.unix_ns() }
    }

    fn context(&mut self, now: Instant) -> Context<'_> {
        Context {
            now_ns: now.now_ns,
            unix_ns: now.unix_ns,
            flow: &mut self.flow,
            validator: &mut self.validator,
            versions: &mut self.versions,
        }
    }
}

/// The connection and what belongs to it.
pub(crate) struct Driver {
    pub(crate) net: Net,
    pub(crate) shared: Shared,
    pub(crate) stop: Stop,
    /// How long a lost connection may stay away.
    pub(crate) patience: Duration,
    routes: Routes,
    next_id: u64,
    lost_ns: Option<u64>,
    /// Pieces that were not genuine when the source was last changed for that.
    refused_before: u64,
}

struct Active<J> {
    id: JobId,
    job: J,
}

impl Driver {
    pub(crate) fn new(net: Net, shared: Shared, stop: Stop, patience: Duration) -> Self {
        let routes = Routes::default();
        Driver { net, shared, stop, patience, routes, next_id: 0, lost_ns: None, refused_before: 0 }
    }

    /// Runs one job to its end.
    pub(crate) fn run_one<J: Job>(&mut self, job: J) -> Result<J, ClientError> {
        let mut source = Single::new(job);
        self.run(&mut source, 1)?;
        Ok(source.into_done().expect("the source is run until its job is done"))
    }

    /// Runs all jobs of the source, at most `at_once` at the same time.
    pub(crate) fn run<S: JobSource>(
        &mut self,
        source: &mut S,
        at_once: usize,
    ) -> Result<(), ClientError> {
        let mut active: Vec<Active<S::Job>> = Vec::new();
        let result = self.run_all(source, at_once, &mut active);
        for one in &mut active {
            one.job.abandon(&mut self.shared.flow);
            self.routes.remove(one.id);
        }
        result
    }

    fn run_all<S: JobSource>(
        &mut self,
        source: &mut S,
        at_once: usize,
        active: &mut Vec<Active<S::Job>>,
    ) -> Result<(), ClientError> {
        loop {
            if self.stop.is_requested() {
                return Err(ClientError::Interrupted);
            }
            self.refill(source, at_once, active);
            if active.is_empty() {
                return Ok(());
            }
            self.keep_connected()?;
            self.send(active);
            self.net.flush()?;
            if self.retire(source, active) {
                continue;
            }
            let timeout = self.sleep_time(active);
            self.receive(timeout, active)?;
            self.time_out(active);
            self.retire(source, active);
        }
    }

    fn refill<S: JobSource>(
        &mut self,
        source: &mut S,
        at_once: usize,
        active: &mut Vec<Active<S::Job>>,
    ) {
        while active.len() < at_once {
            let Some(job) = source.next_job(self.shared.clock.now_ns()) else { return };
            self.next_id += 1;
            active.push(Active { id: JobId(self.next_id), job });
        }
    }

    /// Takes out the jobs that are done. True if there were any.
    fn retire<S: JobSource>(&mut self, source: &mut S, active: &mut Vec<Active<S::Job>>) -> bool {
        let count_before = active.len();
        let mut place = 0;
        while place < active.len() {
            if !active[place].job.is_done() {
                place += 1;
                continue;
            }
            let mut one = active.remove(place);
            one.job.abandon(&mut self.shared.flow);
            self.routes.remove(one.id);
            source.take_done(one.job);
        }
        active.len() != count_before
    }

    fn send<J: Job>(&mut self, active: &mut [Active<J>]) {
        let mut has_more = true;
        while has_more && self.net.has_room() {
            has_more = false;
            for one in active.iter_mut() {
                has_more |= self.send_burst(one);
            }
        }
        // Whoever was first now is last next time.
        if !active.is_empty() {
            active.rotate_left(1);
        }
    }

    /// True if the job used up its burst and may have more to send.
    fn send_burst<J: Job>(&mut self, one: &mut Active<J>) -> bool {
        let now = self.shared.now();
        for _ in 0..BURST {
            let mut context = self.shared.context(now);
            let Some(request) = one.job.poll_request(&mut context) else { return false };
            self.routes.insert(&request, one.id);
            self.net.send(&request);
        }
        true
    }

    fn sleep_time<J: Job>(&mut self, active: &mut [Active<J>]) -> Duration {
        let flow = &self.shared.flow;
        let jobs = active.iter_mut().filter_map(|one| one.job.poll_deadline(flow));
        let deadline_ns = jobs.chain(flow.poll_deadline()).min();
        let Some(deadline_ns) = deadline_ns else { return SLEEP_MAX };
        let left_ns = deadline_ns.saturating_sub(self.shared.clock.now_ns());
        // Jobs that are kept from sending by a full socket have deadlines they cannot meet.
        let least = if self.net.has_room() { Duration::ZERO } else { BLOCKED_SLEEP };
        Duration::from_nanos(left_ns).clamp(least, SLEEP_MAX)
    }

    fn receive<J: Job>(
        &mut self,
        timeout: Duration,
        active: &mut [Active<J>],
    ) -> Result<(), ClientError> {
        let is_elsewhere = self.net.has_others();
        // What this source refuses and another may have.
        let mut refused: Vec<(Vec<u8>, u64)> = Vec::new();
        let Driver { net, shared, routes, .. } = self;
        let clock = shared.clock;
        let mut waiting = Vec::new();
        // Read when the first packet is here, not before the wait.
        let mut now = None;
        net.receive(timeout, &|| clock.now_ns(), &mut |incoming| {
            let now = *now.get_or_insert_with(|| shared.now());
            let mut context = shared.context(now);
            match incoming {
                Incoming::Data { data, is_marked } => {
                    routes.find(data.name, &mut waiting);
                    give_data(active, &waiting, data, is_marked, &mut context);
                }
                Incoming::Nack { interest, reason } if is_elsewhere && is_refusal(reason) => {
                    refused.push((interest.wire().to_vec(), reason));
                }
                Incoming::Nack { interest, reason } => {
                    routes.find(interest.name, &mut waiting);
                    give_nack(active, &waiting, interest.name, reason, &mut context);
                }
            }
        })?;
        if !refused.is_empty() {
            self.ask_elsewhere(&refused, active);
        }
        self.leave_liar(active);
        self.net.check_silence(self.shared.clock.now_ns());
        Ok(())
    }

    /// Repeats what was refused with the next source, or tells the jobs if there is none.
    fn ask_elsewhere<J: Job>(&mut self, refused: &[(Vec<u8>, u64)], active: &mut [Active<J>]) {
        let is_switched = self.net.switch();
        let mut waiting = Vec::new();
        for (wire, reason) in refused {
            if is_switched {
                self.net.send_wire(wire);
                continue;
            }
            let Ok(interest) = Interest::decode(wire) else { continue };
            self.routes.find(interest.name, &mut waiting);
            let now = self.shared.now();
            let mut context = self.shared.context(now);
            give_nack(active, &waiting, interest.name, *reason, &mut context);
        }
    }

    /// A source that keeps sending what does not verify is left for another.
    fn leave_liar<J: Job>(&mut self, active: &mut [Active<J>]) {
        let refused = active.iter_mut().map(|one| one.job.refused_count()).sum::<u64>();
        if refused < self.refused_before {
            self.refused_before = 0;
        }
        if refused >= self.refused_before + REFUSED_MAX && self.net.leave() {
            self.refused_before = refused;
        }
    }

    fn time_out<J: Job>(&mut self, active: &mut [Active<J>]) {
        let now = self.shared.now();
        for one in active {
            let deadline_ns = one.job.poll_deadline(&self.shared.flow);
            if deadline_ns.is_some_and(|at| at <= now.now_ns) {
                one.job.handle_timeout(&mut self.shared.context(now));
            }
        }
    }

    fn keep_connected(&mut self) -> Result<(), ClientError> {
        if self.net.is_connected() {
            self.lost_ns = None;
            return Ok(());
        }
        let now_ns = self.shared.clock.now_ns();
        let lost_ns = *self.lost_ns.get_or_insert(now_ns);
        if self.net.reconnect(RECONNECT_PAUSE)? {
            return Ok(());
        }
        let is_over = now_ns.saturating_sub(lost_ns) >= nanoseconds(self.patience);
        if is_over || !self.net.can_reconnect() {
            let endpoint = self.net.label().to_owned();
            return Err(ClientError::Disconnected { endpoint, source: None });
        }
        std::thread::sleep(RECONNECT_PAUSE);
        Ok(())
    }
}

/// Whether another source may say otherwise.
fn is_refusal(reason: u64) -> bool {
    matches!(reason, nack_reason::NO_ROUTE | nack_reason::NONE)
}

fn find<J>(active: &mut [Active<J>], id: JobId) -> Option<&mut Active<J>> {
    active.iter_mut().find(|one| one.id == id)
}

fn give_data<J: Job>(
    active: &mut [Active<J>],
    waiting: &[JobId],
    data: &Data<'_>,
    is_marked: bool,
    context: &mut Context<'_>,
) {
    // All of them: two jobs may wait for the same certificate.
    for id in waiting {
        if let Some(one) = find(active, *id) {
            one.job.handle_data(data, is_marked, context);
        }
    }
}

fn give_nack<J: Job>(
    active: &mut [Active<J>],
    waiting: &[JobId],
    name: NameRef<'_>,
    reason: u64,
    context: &mut Context<'_>,
) {
    for id in waiting {
        if let Some(one) = find(active, *id) {
            one.job.handle_nack(name, NackKind::from_reason(reason), context);
        }
    }
}
