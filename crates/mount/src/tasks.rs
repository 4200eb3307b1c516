//! Tasks: requests of the kernel that wait for the session.
//!
//! A task is polled once where it begins, so what is in memory is answered without a change of
//! threads. Whoever wakes it only queues it; the threads here poll it. There are as many tasks as
//! requests that the kernel waits for, so processes bound them. [`Timers`] wakes those that do not
//! want to wait for ever.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// Threads that poll tasks. One copies pages to the kernel while another does the same.
const THREADS: usize = 2;

/// A time at which somebody is to be woken. The earliest is the greatest.
struct Timer {
    at: Instant,
    waker: Waker,
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.cmp(&self.at)
    }
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Timer {}

#[derive(Default)]
struct State {
    ready: VecDeque<Arc<Task>>,
    timers: BinaryHeap<Timer>,
    is_over: bool,
}

impl State {
    /// Whom to wake now.
    fn due(&mut self) -> Option<Waker> {
        let is_due = self.timers.peek().is_some_and(|timer| timer.at <= Instant::now());
        is_due.then(|| self.timers.pop()).flatten().map(|timer| timer.waker)
    }
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct Task {
    /// `None` once it is done.
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    queue: Arc<Queue>,
}

/// Runs tasks until it is dropped.
pub(crate) struct Tasks {
    queue: Arc<Queue>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.ready.pop_front() {
                drop(state);
                task.poll();
                state = self.lock();
            } else if state.is_over {
                return;
            } else if let Some(waker) = state.due() {
                drop(state);
                waker.wake();
                state = self.lock();
            } else {
                state = self.wait(state);
            }
        }
    }

    /// Waits for something to do.
    fn wait<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let Some(next) = state.timers.peek() else {
            return self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        let left = next.at.saturating_duration_since(Instant::now());
        self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Task {
    fn poll(self: &Arc<Self>) {
        let mut place = self.future.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut future) = place.take() else { return };
        let waker = Waker::from(Arc::clone(self));
        // A task that panics is dropped, which answers its request with EIO; the panic itself has
        // been reported.
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| {
            future.as_mut().poll(&mut Context::from_waker(&waker))
        }));
        if let Ok(Poll::Pending) = polled {
            *place = Some(future);
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let queue = Arc::clone(&self.queue);
        queue.lock().ready.push_back(self);
        queue.changed.notify_one();
    }
}

impl Tasks {
    /// Starts the threads.
    pub(crate) fn start() -> std::io::Result<Self> {
        let tasks = Tasks { queue: Arc::default() };
        for _ in 0..THREADS {
            let queue = Arc::clone(&tasks.queue);
            let thread = std::thread::Builder::new().name("byname-mount".to_owned());
            thread.spawn(move || queue.run())?;
        }
        Ok(tasks)
    }

    /// Wakes tasks at times they choose.
    pub(crate) fn timers(&self) -> Timers {
        Timers(Arc::clone(&self.queue))
    }

    /// Runs a task: as far as it goes on this thread, the rest when it is woken.
    pub(crate) fn run(&self, future: impl Future<Output = ()> + Send + 'static) {
        let future: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(future);
        let queue = Arc::clone(&self.queue);
        Arc::new(Task { future: Mutex::new(Some(future)), queue }).poll();
    }
}

/// Wakes tasks at times they choose, as long as their threads run.
#[derive(Clone)]
pub(crate) struct Timers(Arc<Queue>);

impl Timers {
    /// Waits for something, and not longer than that; `None` if it was not there by then.
    pub(crate) async fn within<T>(
        &self,
        patience: Duration,
        awaited: impl Future<Output = T>,
    ) -> Option<T> {
        let (mut awaited, until) = (pin!(awaited), Instant::now() + patience);
        let mut has_timer = false;
        poll_fn(|context| {
            if let Poll::Ready(value) = awaited.as_mut().poll(context) {
                return Poll::Ready(Some(value));
            }
            if Instant::now() >= until {
                return Poll::Ready(None);
            }
            if !std::mem::replace(&mut has_timer, true) {
                self.wake_at(until, context.waker().clone());
            }
            Poll::Pending
        })
        .await
    }

    /// Wakes somebody at that time.
    pub(crate) fn wake_at(&self, at: Instant, waker: Waker) {
        let mut state = self.0.lock();
        let is_first = state.timers.peek().is_none_or(|first| at < first.at);
        state.timers.push(Timer { at, waker });
        drop(state);
        // Otherwise a thread waits for an earlier one already, or is at work.
        if is_first {
            self.0.changed.notify_one();
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.queue.lock().is_over = true;
        self.queue.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_task_that_need_not_wait_is_done_where_it_begins() {
        let tasks = Tasks::start().unwrap();
        let (sender, receiver) = mpsc::channel();
        tasks.run(async move { sender.send(std::thread::current().id()).unwrap() });
        assert_eq!(receiver.try_recv().unwrap(), std::thread::current().id());
    }

    #[test]
    fn a_task_that_waits_is_ended_by_whoever_wakes_it() {
        let tasks = Tasks::start().unwrap();
        let slot: Arc<Mutex<(bool, Option<Waker>)>> = Arc::default();
        let (sender, receiver) = mpsc::channel();
        let seen = Arc::clone(&slot);
        tasks.run(async move {
            std::future::poll_fn(|context| {
                let mut state = seen.lock().unwrap();
                state.1 = Some(context.waker().clone());
                if state.0 { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            sender.send(()).unwrap();
        });
        assert!(receiver.try_recv().is_err());
        let waker = {
            let mut state = slot.lock().unwrap();
            state.0 = true;
            state.1.take().unwrap()
        };
        waker.wake();
        receiver.recv().unwrap();
    }

    #[test]
    fn timers_wake_everybody_and_nobody_before_their_time() {
        struct Note(Instant, mpsc::Sender<(Instant, Instant)>);
        impl Wake for Note {
            fn wake(self: Arc<Self>) {
                self.1.send((self.0, Instant::now())).unwrap();
            }
        }
        let tasks = Tasks::start().unwrap();
        let (sender, receiver) = mpsc::channel();
        let begun = Instant::now();
        for ms in [60, 5, 30] {
            let at = begun + std::time::Duration::from_millis(ms);
            let note = Note(at, sender.clone());
            tasks.timers().wake_at(at, Waker::from(Arc::new(note)));
        }
        drop(sender);
        let woken: Vec<_> = receiver.iter().collect();
        assert_eq!(woken.len(), 3);
        assert!(woken.iter().all(|(at, woken)| woken >= at));
    }

    #[test]
    fn what_does_not_come_is_waited_for_so_long_and_no_longer() {
        let tasks = Tasks::start().unwrap();
        let (sender, receiver) = mpsc::channel();
        for (patience_ms, is_there) in [(30, false), (60_000, true)] {
            let (timers, sender) = (tasks.timers(), sender.clone());
            tasks.run(async move {
                let never = poll_fn(|_| if is_there { Poll::Ready(7) } else { Poll::Pending });
                let patience = Duration::from_millis(patience_ms);
                sender.send(timers.within(patience, never).await).unwrap();
            });
        }
        let mut answers = [receiver.recv().unwrap(), receiver.recv().unwrap()];
        answers.sort();
        assert_eq!(answers, [None, Some(7)]);
    }
}
