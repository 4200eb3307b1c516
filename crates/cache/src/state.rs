//! State that the handles of a cache and its threads share, in one process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use crate::checks::CheckQueue;
use crate::config::CacheConfig;
use crate::counters::Counts;
use crate::health::Health;
use crate::known::{ContentState, Place, lock};
use crate::layout::{ContentKey, Layout};
use crate::lending::link::ServiceLink;
use crate::pieces::Buffers;
use crate::reads::ReadQueue;
use crate::writes::WriteQueue;

/// Shared by handles and threads.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: CacheConfig,
    pub(crate) layout: Layout,
    pub(crate) service: Option<Arc<ServiceLink>>,
    pub(crate) health: Health,
    pub(crate) counts: Counts,
    pub(crate) reads: ReadQueue,
    pub(crate) buffers: Arc<Buffers>,
    pub(crate) checks: CheckQueue,
    pub(crate) writes: WriteQueue,
    contents: Mutex<HashMap<ContentKey, Weak<ContentState>>>,
}

impl Shared {
    pub(crate) fn new(config: CacheConfig) -> Self {
        Shared {
            layout: Layout::new(&config.directory),
            service: config.service.as_deref().map(|socket| Arc::new(ServiceLink::new(socket))),
            health: Health::new(config.patience),
            writes: match config.service.is_some() || config.user_bytes_max.is_some() {
                true => WriteQueue::of_service(config.queue_bytes_max),
                false => WriteQueue::new(config.queue_bytes_max),
            },
            config,
            counts: Counts::default(),
            reads: ReadQueue::default(),
            buffers: Arc::default(),
            checks: CheckQueue::default(),
            contents: Mutex::default(),
        }
    }

    /// Where entries are.
    pub(crate) fn place(&self) -> Place {
        let (layout, disk) = (self.layout.clone(), self.config.disk.clone());
        Place { layout, disk, service: self.service.clone() }
    }

    /// The state of a content, one for all who read it.
    pub(crate) fn content(&self, key: ContentKey) -> Arc<ContentState> {
        let mut contents = lock(&self.contents);
        if let Some(state) = contents.get(&key).and_then(Weak::upgrade) {
            return state;
        }
        if contents.len() >= 1024 && contents.len().is_power_of_two() {
            contents.retain(|_, state| state.strong_count() > 0);
        }
        let state = Arc::new(ContentState::new(key));
        contents.insert(key, Arc::downgrade(&state));
        state
    }
}
