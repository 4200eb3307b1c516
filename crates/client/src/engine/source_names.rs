//! Names of the sources by their numbers, for messages, shared with whoever looks on.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Names of the sources, and which of them is in use at the moment.
#[derive(Debug)]
pub(crate) struct SourceNames {
    /// One at least.
    names: Vec<String>,
    current: AtomicUsize,
}

impl SourceNames {
    /// The first is in use; `otherwise` is its name if there are none.
    pub(crate) fn new(names: Vec<String>, otherwise: &str) -> Self {
        let names = if names.is_empty() { vec![otherwise.to_owned()] } else { names };
        SourceNames { names, current: AtomicUsize::new(0) }
    }

    /// Another one is in use.
    pub(crate) fn set_current(&self, source: usize) {
        self.current.store(source, Ordering::Relaxed);
    }

    /// The one in use.
    pub(crate) fn current(&self) -> &str {
        self.name(self.current.load(Ordering::Relaxed))
    }

    /// The name of one of them.
    pub(crate) fn name(&self, source: usize) -> &str {
        self.names.get(source).map_or(&self.names[0], String::as_str)
    }
}
