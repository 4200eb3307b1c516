//! Tasks: requests of the kernel that wait for the session.
//!
//! A task is polled once where it begins, so what is in memory is answered without a change of
//! threads. Whoever wakes it only queues it; the threads here poll it. There are as many tasks as
//! requests that the kernel waits for, so processes bound them.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Threads that poll tasks. One copies pages to the kernel while another does the same.
const THREADS: usize = 2;

#[derive(Default)]
struct State {
    ready: VecDeque<Arc<Task>>,
    is_over: bool,
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
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
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

    /// Runs a task: as far as it goes on this thread, the rest when it is woken.
    pub(crate) fn run(&self, future: impl Future<Output = ()> + Send + 'static) {
        let future: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(future);
        let queue = Arc::clone(&self.queue);
        Arc::new(Task { future: Mutex::new(Some(future)), queue }).poll();
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
}
