//! The disk below the cache, and the one place where a simulated one gets between.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A step that is about to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An entry is opened or made.
    Open,
    /// Bytes of an entry are read.
    Read,
    /// Bytes of an entry are written.
    Write,
    /// Directories are listed, or an entry is removed.
    List,
}

type Hook = dyn Fn(Step, &Path) -> io::Result<()> + Send + Sync;

/// The local disk. Without a hook every step is the system call and nothing else; with one, the
/// step is announced first and may fail undone, or wait.
#[derive(Clone, Default)]
pub struct Disk {
    hook: Option<Arc<Hook>>,
}

impl Disk {
    /// A disk whose steps `hook` sees first.
    pub fn hooked(hook: impl Fn(Step, &Path) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Disk { hook: Some(Arc::new(hook)) }
    }

    pub(crate) fn announce(&self, step: Step, path: &Path) -> io::Result<()> {
        self.hook.as_ref().map_or(Ok(()), |hook| hook(step, path))
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Disk").field("is_hooked", &self.hook.is_some()).finish()
    }
}
