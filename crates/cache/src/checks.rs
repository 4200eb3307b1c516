//! Whole contents that wait to be hashed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::known::{ContentState, lock};

/// Contents that may wait; more are looked at when they are asked for again.
const WAITING_MAX: usize = 1024;

#[derive(Debug, Default)]
struct QueueState {
    waiting: VecDeque<Arc<ContentState>>,
    has_thread: bool,
    is_over: bool,
}

/// Contents that are to be hashed.
#[derive(Debug, Default)]
pub(crate) struct CheckQueue {
    state: Mutex<QueueState>,
}

impl CheckQueue {
    /// Queues a content once; true if a thread has to be started for it.
    pub(crate) fn push(&self, content: &Arc<ContentState>) -> bool {
        let mut state = lock(&self.state);
        let is_known = state.waiting.iter().any(|it| it.key == content.key);
        if state.is_over || is_known || state.waiting.len() >= WAITING_MAX {
            return false;
        }
        state.waiting.push_back(Arc::clone(content));
        !std::mem::replace(&mut state.has_thread, true)
    }

    /// The next content; the thread ends if there is none. It stays queued while it is hashed.
    pub(crate) fn next(&self) -> Option<Arc<ContentState>> {
        let mut state = lock(&self.state);
        let next = state.waiting.front().cloned();
        state.has_thread = next.is_some();
        next
    }

    /// The first one is done.
    pub(crate) fn settle(&self) {
        lock(&self.state).waiting.pop_front();
    }

    /// Nothing more is hashed.
    pub(crate) fn end(&self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        state.waiting.clear();
    }

    /// True if the cache is given up.
    pub(crate) fn is_over(&self) -> bool {
        lock(&self.state).is_over
    }
}
