//! Files of an upload that have to be read: hashed on one thread, written by the other.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use byname_catalog::{AttributeChanges, Command, Create, Publish, Refusal, TimeChange};
use byname_io::Waker;

use super::{Batch, Change, Item, Published, Upload, UploadError, UploadEvent, UploadOptions};
use crate::error::WriterError;
use crate::put::{Put, PutEvent};
use crate::source::Source;
use crate::writer::Next;

/// Files that are hashed ahead of those being written; each is open.
const HASHED_AHEAD_MAX: usize = 4;

/// A file, opened and hashed, or why not.
type Hashed = (usize, Result<Source, WriterError>);

impl<E> Upload<'_, E> {
    /// Writes one file, to a name at which the site has `published`.
    ///
    /// # Errors
    /// As [`Upload::tree`]; a file that fails is an event.
    pub fn source(
        &mut self,
        source: Source,
        place: byname_catalog::Place,
        published: Option<Published>,
    ) -> Result<(), UploadError<E>> {
        let (local, size) = (source.path().to_owned(), source.size());
        (self.on_event)(UploadEvent::Planned { size });
        let path = PathBuf::new();
        let batch = vec![Item { local, path, place, published }];
        let (sender, receiver) = sync_channel(1);
        // There is room for one.
        let _ = sender.send((0, Ok(source)));
        drop(sender);
        Ok(self.write_hashed(&batch, receiver)?)
    }

    /// Compares and writes the files of a batch.
    pub(super) fn write(&mut self, batch: &mut Batch) -> Result<(), UploadError<E>> {
        let items = std::mem::take(batch);
        let (sender, receiver) = sync_channel(HASHED_AHEAD_MAX);
        let (waker, is_stopped) = (self.writer.waker(), self.is_stopped);
        std::thread::scope(|scope| {
            scope.spawn(|| hash(&items, sender, &waker, is_stopped));
            self.write_hashed(&items, receiver)
        })?;
        Ok(())
    }

    fn write_hashed(
        &mut self,
        items: &[Item],
        hashed: Receiver<Hashed>,
    ) -> Result<(), WriterError> {
        let state = RefCell::new(State {
            items,
            options: &self.options,
            hashed,
            received: BTreeMap::new(),
            retimed: Vec::new(),
            fatal: None,
            on_event: &mut *self.on_event,
        });
        let is_stopped = || (self.is_stopped)() || state.borrow().fatal.is_some();
        let ended = self.writer.put_all(
            &mut || state.borrow_mut().next(),
            &mut |event| state.borrow_mut().handle(event),
            &is_stopped,
        );
        let State { fatal, retimed, .. } = state.into_inner();
        if let Some(error) = fatal {
            return Err(error);
        }
        ended?;
        for (number, modified_ns) in retimed {
            self.set_time(&items[number], modified_ns)?;
        }
        Ok(())
    }

    /// Gives a file whose content is the same its time, so that the next upload need not read it.
    fn set_time(&mut self, item: &Item, modified_ns: u64) -> Result<(), WriterError> {
        let modified = Some(TimeChange::At(modified_ns));
        let changes = AttributeChanges { modified, ..AttributeChanges::default() };
        let command = Command::SetAttributes { place: item.place.clone(), changes };
        match self.writer.execute(command, self.is_stopped) {
            // Whoever may write need not own.
            Ok(_) | Err(WriterError::Refused(Refusal::NotOwner)) => Ok(()),
            Err(error) => self.fail(&item.local, error),
        }
    }
}

/// Hashes files one after the other, until nobody wants them any more.
fn hash(
    items: &[Item],
    sender: SyncSender<Hashed>,
    waker: &Waker,
    is_stopped: &(dyn Fn() -> bool + Sync),
) {
    for (number, item) in items.iter().enumerate() {
        let source = Source::open(&item.local, is_stopped);
        if sender.send((number, source)).is_err() {
            return;
        }
        waker.wake();
    }
    drop(sender);
    waker.wake();
}

/// A batch while it is written.
struct State<'a> {
    items: &'a [Item],
    options: &'a UploadOptions,
    hashed: Receiver<Hashed>,
    /// Octets that the slowest disk of a file has.
    received: BTreeMap<usize, u64>,
    /// Files whose time is to be set.
    retimed: Vec<(usize, u64)>,
    /// What ends all.
    fatal: Option<WriterError>,
    on_event: &'a mut dyn FnMut(UploadEvent<'_>),
}

impl State<'_> {
    /// The next file that is to be written.
    fn next(&mut self) -> Next {
        loop {
            match self.hashed.try_recv() {
                Ok((number, Ok(source))) => {
                    let item = &self.items[number];
                    if is_same(item, &source) {
                        self.found_same(number, &source);
                        continue;
                    }
                    if self.options.is_dry {
                        self.would_write(item, &source);
                        continue;
                    }
                    return Next::Put(number, put(item, source, self.options));
                }
                Ok((number, Err(error))) => self.fail(number, error),
                Err(TryRecvError::Empty) => return Next::Later,
                Err(TryRecvError::Disconnected) => return Next::End,
            }
        }
    }

    fn found_same(&mut self, number: usize, source: &Source) {
        let item = &self.items[number];
        let at = match item.published {
            Some(Published::File { modified_ns, .. }) => modified_ns,
            _ => None,
        };
        let size = source.size();
        if source.keeps_time() && at != Some(source.modified_ns()) {
            if self.options.is_dry {
                let (path, change) = (&item.path, Change::Time { size });
                (self.on_event)(UploadEvent::Change { path, change });
            } else {
                self.retimed.push((number, source.modified_ns()));
            }
        }
        (self.on_event)(UploadEvent::Identical { size });
    }

    fn would_write(&mut self, item: &Item, source: &Source) {
        let size = source.size();
        let change = match &item.published {
            Some(Published::File { size: there, modified_ns, .. }) => Change::Version {
                size,
                is_same_size: *there == Some(size),
                is_same_time: *modified_ns == Some(source.modified_ns()),
            },
            _ => Change::File { size },
        };
        (self.on_event)(UploadEvent::Change { path: &item.path, change });
    }

    fn handle(&mut self, event: PutEvent) {
        match event {
            PutEvent::Progress { number, received_bytes } => self.receive(number, received_bytes),
            PutEvent::Done { number, result: Ok(entry) } => {
                let size = entry.inode.size();
                self.receive(number, size);
                self.received.remove(&number);
                (self.on_event)(UploadEvent::Written { path: &self.items[number].local, size });
            }
            PutEvent::Done { number, result: Err(error) } => self.fail(number, error),
        }
    }

    fn receive(&mut self, number: usize, received_bytes: u64) {
        let before = self.received.entry(number).or_default();
        let bytes = received_bytes.saturating_sub(*before);
        *before = received_bytes.max(*before);
        (self.on_event)(UploadEvent::Received { bytes });
    }

    fn fail(&mut self, number: usize, error: WriterError) {
        self.received.remove(&number);
        if error.ends_all() {
            self.fatal.get_or_insert(error);
            return;
        }
        (self.on_event)(UploadEvent::Failed { path: &self.items[number].local, error });
    }
}

/// True if the site has this content.
fn is_same(item: &Item, source: &Source) -> bool {
    match &item.published {
        Some(Published::File { size, root, .. }) => {
            *size == Some(source.size()) && (*root == Some(source.root()) || source.size() == 0)
        }
        _ => false,
    }
}

fn put(item: &Item, source: Source, options: &UploadOptions) -> Put {
    let create = Create {
        place: item.place.clone(),
        mode: source.mode(),
        size_max: source.size(),
        publish: Publish::AtCommit,
        exclusive: options.no_clobber,
        policy: options.policy.clone(),
    };
    Put { create, keep_time: source.keeps_time(), source: Arc::new(source) }
}
