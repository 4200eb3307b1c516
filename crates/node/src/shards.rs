//! Several forwarders that share the faces: one on the thread that has the sockets, each other on a
//! thread of its own.
//!
//! The thread with the sockets is shard 0: it reads bursts, keeps the packets of its own shard and
//! hands the others over in batches, one message and one wake for each burst and shard. What the
//! others send comes back in batches, too. Batches are byte buffers that go back and forth and are
//! not allocated anew. All queues are bounded; a batch that finds its queue full is dropped and
//! counted, as the packets of any full queue.
//!
//! [`Core`] is what the node drives. Without shards it is a forwarder and nothing else.

mod batch;
mod worker;

use std::ops::{Deref, DerefMut};
use std::sync::mpsc::{TryRecvError, TrySendError};

use byname_forwarder::{Config, Dispatcher, DropReason, FaceId, Forwarder, ShardPlace, Tx};
use byname_io::Waker;
use byname_packet::lp::LpHeader;

use crate::error::NodeError;
use crate::links::Links;
use batch::{BATCHES_MAX, Message, Output, Shard, keep};

/// Octets in a batch beyond which it is sent even if the burst goes on.
const BATCH_BYTES: usize = 256 << 10;

/// Shards beside the first one.
#[derive(Debug)]
struct Others {
    dispatcher: Dispatcher,
    /// Shard 1 first.
    shards: Vec<Shard>,
    dropped: u64,
}

/// The forwarder that has the RIB and management, and the shards beside it.
#[derive(Debug)]
pub(crate) struct Core {
    first: Forwarder,
    others: Option<Others>,
}

impl Core {
    /// `count` shards (0 and 1 are one) that have what `config` allows together. What other shards
    /// have to send is announced by `waker`.
    pub(crate) fn new(config: &Config, count: usize, waker: &Waker) -> Result<Self, NodeError> {
        let count = count.clamp(1, byname_forwarder::SHARDS_MAX);
        if count == 1 {
            return Ok(Self { first: Forwarder::new(config.clone()), others: None });
        }
        let mut first = Forwarder::new(share(config, 0, count));
        first.lead_shards();
        let shards = (1..count)
            .map(|index| worker::start(share(config, index, count), waker.clone()))
            .collect::<Result<_, _>>()?;
        let dispatcher = Dispatcher::new(config.seed, count);
        Ok(Self { first, others: Some(Others { dispatcher, shards, dropped: 0 }) })
    }

    /// Hands a packet to the shards it belongs to. Shards other than the first get it with
    /// [`Core::flush`].
    pub(crate) fn handle_packet(
        &mut self,
        face: FaceId,
        header: &LpHeader<'_>,
        packet: &[u8],
        now_ns: u64,
        links: &mut Links,
    ) -> Option<DropReason> {
        let Some(others) = &mut self.others else {
            return self.first.handle_packet(face, header, packet, now_ns, links);
        };
        let mut reason = None;
        for index in others.dispatcher.shards_of(header, packet, now_ns).iter() {
            match index.checked_sub(1).and_then(|index| others.shards.get_mut(index)) {
                None => reason = self.first.handle_packet(face, header, packet, now_ns, links),
                Some(shard) => {
                    shard.batch.now_ns = now_ns;
                    shard.batch.push(face, header, packet);
                    if shard.batch.bytes.len() >= BATCH_BYTES {
                        others.dropped += pass_on(&mut self.first, &mut others.shards);
                    }
                }
            }
        }
        reason
    }

    /// Hands over what the other shards have to know and to do.
    pub(crate) fn flush(&mut self) {
        if let Some(others) = &mut self.others {
            others.dropped += pass_on(&mut self.first, &mut others.shards);
        }
    }

    /// Sends what the other shards have to send.
    pub(crate) fn collect(&mut self, links: &mut Links) {
        let Some(others) = &mut self.others else { return };
        for (index, shard) in others.shards.iter_mut().enumerate() {
            // As many as can wait: a busy shard does not keep the sockets waiting.
            for _ in 0..BATCHES_MAX {
                match shard.output.try_recv() {
                    Ok(Output::Packets(mut batch)) => {
                        links.begin_burst(&batch.bytes);
                        batch.for_each(|frame, header, packet| match frame.from {
                            Some(from) => links.send_interest((frame.face, from), header, packet),
                            None => links.send(frame.face, header, packet),
                        });
                        links.end_burst(&batch.bytes);
                        batch.clear();
                        keep(&mut shard.spare, batch);
                    }
                    Ok(Output::Figures(figures, dropped)) => {
                        self.first.set_figures(index, *figures);
                        shard.dropped = dropped;
                    }
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
                }
            }
        }
    }

    /// Packets dropped because a shard, or the thread with the sockets, did not keep up.
    pub(crate) fn dropped(&self) -> u64 {
        let Some(others) = &self.others else { return 0 };
        others.dropped + others.shards.iter().map(|shard| shard.dropped).sum::<u64>()
    }

    /// Pins, where there are several shards: lets the calling thread, which is the first one's,
    /// keep to one processor as the others do.
    pub(crate) fn pin(&self) {
        if self.others.is_some() {
            worker::pin(0);
        }
    }
}

impl Deref for Core {
    type Target = Forwarder;

    fn deref(&self) -> &Forwarder {
        &self.first
    }
}

impl DerefMut for Core {
    fn deref_mut(&mut self) -> &mut Forwarder {
        &mut self.first
    }
}

/// Changes first: packets may come from a face that the shard does not know yet. Returns how many
/// packets were dropped.
fn pass_on(first: &mut Forwarder, shards: &mut [Shard]) -> u64 {
    let changes = first.take_changes();
    let mut dropped = 0;
    for shard in shards {
        let Some(messages) = &shard.messages else { continue };
        if !changes.is_empty() {
            // Changes may not be lost: waits until the shard has room, which it always gets, for
            // it never waits for us.
            let _ = messages.send(Message::Changes(changes.clone()));
        }
        if !shard.batch.frames.is_empty() {
            let next = shard.spare.pop().unwrap_or_default();
            let batch = std::mem::replace(&mut shard.batch, next);
            if let Err(TrySendError::Full(Message::Packets(mut batch))) =
                messages.try_send(Message::Packets(batch))
            {
                dropped += batch.frames.len() as u64;
                batch.clear();
                keep(&mut shard.spare, batch);
            }
        } else if changes.is_empty() {
            continue;
        }
        shard.waker.wake();
    }
    dropped
}

/// Share of one of several shards.
fn share(config: &Config, index: usize, count: usize) -> Config {
    let place = ShardPlace { index: index as u16, count: count as u16 };
    Config {
        shard: Some(place),
        cs_entries_max: config.cs_entries_max.div_ceil(count),
        cs_bytes_max: config.cs_bytes_max / count,
        pit_entries_max: config.pit_entries_max.div_ceil(count),
        pit_bytes_max: config.pit_bytes_max / count,
        dead_nonces_max: config.dead_nonces_max.div_ceil(count),
        ..config.clone()
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        // A shard ends when nobody can send to it any more.
        self.messages = None;
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
