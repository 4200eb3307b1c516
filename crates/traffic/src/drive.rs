//! The loops that connect the cores with a connection, one thread each.
//!
//! A loop takes a burst, answers it into the send buffer, flushes once, and waits only when there
//! is nothing to do. Interests leave in bursts of [`BURST_MAX`], so that the other side is busy
//! while the next ones are written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use byname_face::{CommandClock, Registrar};
use byname_io::{Clock, Connection};

use crate::consumer::{Consumer, ConsumerReport};
use crate::error::TrafficError;
use crate::producer::{Producer, ProducerReport};
use crate::register::{self, Routes};

mod port;

use port::Port;

/// Packets queued between two flushes.
const BURST_MAX: usize = 64;
/// A loop that waits looks at its stop flag this often.
const STOP_CHECK_NS: u64 = 100_000_000;

/// Ends a loop from another thread, within a tenth of a second.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Not stopped yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the loops that have a clone of this return.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Asks until the consumer is done or stopped.
///
/// # Errors
/// [`TrafficError::Closed`] or [`TrafficError::Io`] when the connection ends.
pub fn run_consumer(
    connection: Connection,
    consumer: &mut Consumer,
    stop: &Stop,
) -> Result<ConsumerReport, TrafficError> {
    let mut port = Port::new(connection)?;
    let clock = Clock::new();
    loop {
        let now_ns = clock.now_ns();
        consumer.handle_timeout(now_ns);
        if stop.is_set() || consumer.is_done(now_ns) {
            return Ok(consumer.report(now_ns));
        }
        // Times begin when a burst leaves, so each burst has a look at the clock.
        let mut now_ns = now_ns;
        while ask_burst(&mut port, consumer, now_ns)? {
            now_ns = clock.now_ns();
        }
        let deadline_ns = consumer.poll_timeout().unwrap_or(u64::MAX);
        port.wait(deadline_ns.min(now_ns + STOP_CHECK_NS), now_ns)?;
        let now_ns = clock.now_ns();
        let is_open = port.receive(now_ns, |header, packet| {
            consumer.handle_packet(header, packet, now_ns);
        })?;
        if !is_open {
            return Err(TrafficError::Closed);
        }
    }
}

/// Sends up to a burst of Interests; whether it was a whole one.
fn ask_burst(port: &mut Port, consumer: &mut Consumer, now_ns: u64) -> Result<bool, TrafficError> {
    for sent in 0..BURST_MAX {
        // Whoever cannot send what it has must not take on more.
        if !port.has_room() {
            port.flush()?;
            return Ok(false);
        }
        let Some(frame) = consumer.poll_interest(now_ns) else {
            if sent > 0 {
                port.flush()?;
            }
            return Ok(false);
        };
        port.queue_frame(frame);
    }
    port.flush()?;
    Ok(true)
}

/// Answers until it is stopped or the connection ends. Registers `routes` first, if there are any;
/// `on_ready` is called when that is done.
///
/// # Errors
/// Errors of registering, and [`TrafficError::Io`]. That the peer closes is no error.
pub fn run_producer(
    connection: Connection,
    producer: &mut Producer,
    routes: Option<Routes>,
    stop: &Stop,
    on_ready: &mut dyn FnMut(),
) -> Result<ProducerReport, TrafficError> {
    let mut port = Port::new(connection)?;
    let clock = Clock::new();
    if let Some(routes) = routes {
        register_all(&mut port, routes, stop)?;
    }
    on_ready();
    while !stop.is_set() {
        answer_waiting(&mut port, producer, clock.now_ns())?;
        port.reads(!producer.is_full());
        let now_ns = clock.now_ns();
        port.wait(now_ns + STOP_CHECK_NS, now_ns)?;
        if producer.is_full() {
            continue;
        }
        let is_open = port.receive(now_ns, |header, packet| {
            producer.handle_packet(header, packet);
        })?;
        if !is_open {
            break;
        }
    }
    Ok(producer.report())
}

/// Registers routes that lead to another face, for links over which a forwarder takes no commands.
///
/// # Errors
/// [`TrafficError`] of the first route that the forwarder does not take.
pub fn register(connection: Connection, routes: Routes, stop: &Stop) -> Result<(), TrafficError> {
    register_all(&mut Port::new(connection)?, routes, stop)
}

/// Answers what waits, as long as there is room, in bursts.
fn answer_waiting(
    port: &mut Port,
    producer: &mut Producer,
    now_ns: u64,
) -> Result<(), TrafficError> {
    let mut count = 0;
    while port.has_room() && producer.poll_reply(&mut |reply| port.queue_reply(reply, now_ns)) {
        count += 1;
        if count % BURST_MAX == 0 {
            port.flush()?;
        }
    }
    port.flush()
}

fn register_all(port: &mut Port, routes: Routes, stop: &Stop) -> Result<(), TrafficError> {
    let routes = routes.into_iter();
    let mut registrar = Registrar::new(routes, register::OPTIONS, CommandClock::new());
    Ok(byname_face::register(port.face(), &mut registrar, &|| stop.is_set())?)
}
