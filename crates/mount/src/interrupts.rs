//! Calls whose process is told to end: they are answered with EINTR, whatever they wait for.
//!
//! A process that waits for the mount is not even ended by SIGKILL before its call is answered. The
//! kernel says by FUSE_INTERRUPT that a signal has come, but fuser refuses that request. So a call
//! that waits for long looks by itself whether a signal that ends programs waits for its process.
//! Other signals, timers of profilers for instance, do not end calls.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::tasks::Timers;

/// Time for which a call waits before it looks, and then from look to look.
const INTERVAL: Duration = Duration::from_millis(100);
/// SIGHUP, SIGINT, SIGQUIT, SIGKILL and SIGTERM. A signal that ends a process because it has no
/// handler is pending as SIGKILL, whichever it was.
const ENDING: [u32; 5] = [1, 2, 3, 9, 15];

/// See the module.
pub(crate) struct Interrupts(Timers);

impl Interrupts {
    pub(crate) fn new(timers: Timers) -> Self {
        Interrupts(timers)
    }

    /// Waits for a call of a thread of this number. It is dropped where the thread is told to end.
    pub(crate) async fn watch<T>(
        &self,
        thread: u32,
        call: impl Future<Output = Result<T, i32>>,
    ) -> Result<T, i32> {
        let mut call = pin!(call);
        let mut look_at = None;
        poll_fn(|context| {
            if let Poll::Ready(answer) = call.as_mut().poll(context) {
                return Poll::Ready(answer);
            }
            let now = Instant::now();
            if look_at.is_some_and(|at| at <= now) {
                if is_told_to_end(thread) {
                    return Poll::Ready(Err(Errno::INTR.raw_os_error()));
                }
                look_at = None;
            }
            if look_at.is_none() {
                look_at = Some(now + INTERVAL);
                self.0.wake_at(now + INTERVAL, context.waker().clone());
            }
            Poll::Pending
        })
        .await
    }
}

/// True if a signal that ends programs waits for a thread. Who may not look sees none.
fn is_told_to_end(thread: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status"));
    thread != 0 && status.is_ok_and(|status| has_ending_signal(&status))
}

fn has_ending_signal(status: &str) -> bool {
    let set = |title: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(title));
        line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0)
    };
    let ending = ENDING.iter().fold(0, |set, signal| set | 1 << (signal - 1));
    (set("SigPnd:") | set("ShdPnd:")) & !set("SigBlk:") & ending != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(of_thread: u64, of_process: u64, blocked: u64) -> String {
        format!(
            "Name:\tcat\nSigPnd:\t{of_thread:016x}\nShdPnd:\t{of_process:016x}\n\
                 SigBlk:\t{blocked:016x}\nSigIgn:\t{blocked:016x}\n"
        )
    }

    #[test]
    fn signals_that_end_programs_count_unless_they_are_blocked() {
        let (interrupt, kill, alarm) = (1 << 1, 1 << 8, 1 << 13);
        assert!(has_ending_signal(&status(kill, 0, 0)));
        assert!(has_ending_signal(&status(0, interrupt, 0)));
        assert!(!has_ending_signal(&status(0, interrupt, interrupt)));
        assert!(!has_ending_signal(&status(alarm, alarm, 0)), "a program goes on after it");
        assert!(!has_ending_signal(&status(0, 0, 0)));
        assert!(!has_ending_signal("Name:\tcat\n"));
    }
}
