//! Drives the [`Machine`] over a real connection, on the thread of the caller.
//!
//! Each turn sends what the jobs have to send, waits for packets or the next deadline, and hands
//! the packets to the jobs where they lie. The stop flag is looked at once per turn.

use std::time::Duration;

use byname_io::{Clock, Connection, Endpoint, IoError};

use crate::config::{ClientConfig, Stop, nanoseconds};
use crate::engine::job::JobSource;
use crate::engine::machine::Machine;
use crate::engine::outage::Notice;
use crate::engine::path::PathReport;
use crate::engine::random::Random;
use crate::engine::run::Run;
use crate::engine::shared::{Now, Shared};
use crate::engine::sources::{End, Patience, Sources};
use crate::error::{ClientError, Refusals};
use crate::session::net::{Net, Status};

/// Longest sleep: a stop flag set by another thread is seen within this time.
const SLEEP_MAX: Duration = Duration::from_millis(200);
const BLOCKED_SLEEP: Duration = Duration::from_millis(5);

/// The connection and what belongs to it.
pub(crate) struct Driver {
    pub(crate) net: Net,
    pub(crate) clock: Clock,
    stop: Stop,
    /// Longest outage that is borne.
    outage: Duration,
    machine: Machine,
}

impl Driver {
    /// Connects to the first of the endpoints that answers.
    pub(crate) fn connect(
        endpoints: &[Endpoint],
        config: &ClientConfig,
    ) -> Result<Self, ClientError> {
        let mut refused = Vec::new();
        for endpoint in endpoints {
            match Connection::connect(endpoint, config.connect_timeout) {
                Ok(connection) => {
                    let count = if config.asks_all { endpoints.len() } else { 1 };
                    let from_here = endpoints.iter().skip(refused.len()).chain(endpoints);
                    let sources = from_here.take(count).cloned().collect();
                    return Ok(Driver::new(Net::new(connection, sources)?, count, config));
                }
                Err(error) => refused.push(error),
            }
        }
        match Refusals::new(refused) {
            Some(tried) => Err(ClientError::NoForwarder { tried }),
            None => Err(ClientError::NoEndpoint),
        }
    }

    /// Uses a connection that exists; there is nowhere to reconnect to.
    pub(crate) fn with_connection(
        connection: Connection,
        config: &ClientConfig,
    ) -> Result<Self, ClientError> {
        Ok(Driver::new(Net::new(connection, Vec::new())?, 0, config))
    }

    fn new(net: Net, source_count: usize, config: &ClientConfig) -> Self {
        let clock = Clock::new();
        let mut random = Random::secret();
        let shared = Shared::new(config, clock.now_ns(), &mut random);
        let patience = Patience {
            first_ns: nanoseconds(config.timeout),
            begun_ns: nanoseconds(config.outage()),
        };
        let sources = Sources::new(source_count, patience);
        let machine = Machine::new(shared, sources, net.channel(), random);
        Driver { net, clock, stop: config.stop.clone(), outage: config.outage(), machine }
    }

    /// State that all jobs share.
    pub(crate) fn shared(&mut self) -> &mut Shared {
        &mut self.machine.shared
    }

    /// Transport statistics of the current path.
    pub(crate) fn path(&self) -> PathReport {
        self.machine.shared.path(self.net.label())
    }

    /// Runs all jobs of the source, at most `at_once` at the same time.
    pub(crate) fn run<S: JobSource>(
        &mut self,
        source: &mut S,
        at_once: usize,
    ) -> Result<(), ClientError> {
        let mut run = Run::new(source, at_once);
        let result = self.run_all(&mut run);
        if let Err(error) = &result {
            run.source.handle_failure(error);
        }
        run.end(&mut self.machine);
        result
    }

    fn run_all<S: JobSource>(&mut self, run: &mut Run<S>) -> Result<(), ClientError> {
        let clock = self.clock;
        loop {
            if self.stop.is_requested() {
                return Err(ClientError::Interrupted);
            }
            run.refill(&mut self.machine, clock.now_ns());
            if run.is_empty() {
                self.machine.rest();
                return Ok(());
            }
            if !self.net.is_connected() {
                self.machine.serve_local(run, time(clock));
                if run.retire(&mut self.machine) {
                    continue;
                }
            }
            self.reconnect(run)?;
            self.machine.send(run, &|| time(clock), &mut self.net);
            if let Err(error) = self.net.flush()? {
                self.lose(Some(error))?;
            }
            if run.retire(&mut self.machine) {
                continue;
            }
            let timeout = self.sleep_time(run);
            self.receive(timeout, run)?;
            self.machine.handle_timeout(run, time(clock));
            self.report_outage();
            run.retire(&mut self.machine);
        }
    }

    fn report_outage(&mut self) {
        match self.machine.poll_notice(self.clock.now_ns()) {
            Some(Notice::Begun) => {
                let (endpoints, wait_s) = (self.net.source_list(), self.outage.as_secs());
                tracing::warn!("nothing comes from {endpoints}: waiting, up to {wait_s} s");
            }
            Some(Notice::Over { lasted_s }) => {
                tracing::warn!("{} answers again after {lasted_s} s", self.net.label());
            }
            None => {}
        }
    }

    /// Connects to whom the machine wants to talk.
    fn reconnect<S: JobSource>(&mut self, run: &mut Run<S>) -> Result<(), ClientError> {
        while let Some(connect) = self.machine.poll_connect(self.clock.now_ns()) {
            let timeout = Duration::from_nanos(connect.timeout_ns);
            match self.net.connect(connect.source, timeout) {
                Some(channel) => {
                    let now_ns = self.clock.now_ns();
                    self.machine.handle_connected(channel, now_ns, &mut self.net);
                }
                None => self.machine.handle_connect_failed(run, time(self.clock)),
            }
        }
        // What is here is served also when nobody else can be reached.
        let end = if run.awaits_local() { None } else { self.machine.take_end() };
        match end {
            None => Ok(()),
            Some(End::Disconnected) => Err(self.net.disconnected(None)),
            Some(End::Unreachable) => Err(self.net.unreachable()),
        }
    }

    fn sleep_time<S: JobSource>(&mut self, run: &mut Run<S>) -> Duration {
        let Some(deadline_ns) = self.machine.poll_deadline(run) else { return SLEEP_MAX };
        let left_ns = deadline_ns.saturating_sub(self.clock.now_ns());
        // Jobs that are kept from sending by a full socket have deadlines they cannot meet.
        let least = if self.net.is_roomy() { Duration::ZERO } else { BLOCKED_SLEEP };
        Duration::from_nanos(left_ns).clamp(least, SLEEP_MAX)
    }

    fn receive<S: JobSource>(
        &mut self,
        timeout: Duration,
        run: &mut Run<S>,
    ) -> Result<(), ClientError> {
        let Driver { net, clock, machine, .. } = self;
        // Read when the first packet is here, not before the wait.
        let mut now = None;
        let status = net.receive(timeout, &mut |frame| {
            let now = *now.get_or_insert_with(|| time(*clock));
            machine.handle_frame(run, frame, now);
        })?;
        let now = now.unwrap_or_else(|| time(self.clock));
        // What came before the connection ended counts.
        self.machine.give_held(run, now);
        self.take_status(status)?;
        self.machine.end_burst(run, now);
        Ok(())
    }

    /// Sleeps while nobody wants anything, and notices if the connection ends.
    pub(crate) fn idle(&mut self, timeout: Duration) -> Result<(), ClientError> {
        let status = self.net.receive(timeout, &mut |_| {})?;
        let taken = self.take_status(status);
        // Nobody asked for anything, so nobody has to hear of it.
        self.machine.take_end();
        taken
    }

    fn take_status(&mut self, status: Status) -> Result<(), ClientError> {
        match status {
            Status::Open => Ok(()),
            Status::Unreachable => {
                if self.machine.handle_unreachable(self.clock.now_ns()) {
                    self.net.lose();
                }
                Ok(())
            }
            Status::Closed(source) => self.lose(source),
        }
    }

    /// The connection is gone. An error only if it cannot come back.
    fn lose(&mut self, source: Option<IoError>) -> Result<(), ClientError> {
        self.net.lose();
        self.machine.handle_disconnected(self.clock.now_ns());
        match self.machine.can_reconnect() {
            true => Ok(()),
            false => Err(self.net.disconnected(source)),
        }
    }
}

fn time(clock: Clock) -> Now {
    Now { now_ns: clock.now_ns(), unix_ns: clock.unix_ns() }
}
