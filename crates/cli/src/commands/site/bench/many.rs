//! Calls of a session, several at a time, on the caller's thread.

use byname_client::{ClientError, Pending};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

/// Says which call may go on.
struct Ready {
    number: usize,
    told: Sender<usize>,
}

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        // Whoever does not listen any more has failed.
        let _ = self.told.send(self.number);
    }
}

/// A call in flight.
struct Call<T> {
    pending: Pending<T>,
    waker: Waker,
    began: Instant,
}

/// Makes `count` calls, `in_flight` at a time; the nanoseconds that each took, as they ended.
pub(super) fn each_of_many<T>(
    count: usize,
    in_flight: usize,
    begin: impl Fn(usize) -> Pending<T>,
) -> Result<Vec<u64>, ClientError> {
    let (told, ready) = channel();
    let mut calls = BTreeMap::new();
    let (mut next, mut times_ns) = (0, Vec::with_capacity(count));
    while times_ns.len() < count {
        while next < count && calls.len() < in_flight {
            let waker = Waker::from(Arc::new(Ready { number: next, told: told.clone() }));
            waker.wake_by_ref();
            calls.insert(next, Call { pending: begin(next), waker, began: Instant::now() });
            next += 1;
        }
        let Ok(number) = ready.recv() else { break };
        let Some(Call { pending, waker, began }) = calls.get_mut(&number) else { continue };
        if let Poll::Ready(answer) =
            Future::poll(Pin::new(pending), &mut Context::from_waker(waker))
        {
            answer?;
            times_ns.push(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
            calls.remove(&number);
        }
    }
    Ok(times_ns)
}
