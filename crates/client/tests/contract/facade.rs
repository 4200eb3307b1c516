//! Common interface of both façades, for tests that run over either.

use std::io;
use std::ops::Range;
use std::path::Path;

use byname_client::{
    Client, ClientError, DownloadOptions, FileReport, Listing, LocalFile, PathReport, Progress,
    RangesRead, RemoteFile, ResolvedEntry, Session, SessionOptions, Stat, Stop, TreeEntry,
    TreeOptions, TreeReport,
};
use byname_packet::Name;
use byname_transfer::discovery::Discovered;

type Outcome<T> = Result<T, ClientError>;

pub(crate) trait Facade {
    type File;
    fn over(client: Client) -> Self;
    fn stat(&mut self, name: &Name) -> Outcome<Stat>;
    fn lookup(&mut self, name: &Name) -> Outcome<Discovered>;
    fn list(&mut self, name: &Name) -> Outcome<Listing>;
    fn list_resolved(&mut self, name: &Name) -> Outcome<Listing>;
    fn open(&mut self, name: &Name) -> Outcome<Self::File>;
    fn open_entry(&mut self, entry: &ResolvedEntry) -> Outcome<Self::File>;
    fn stat_of(file: &Self::File) -> &Stat;
    fn read(&mut self, file: &Self::File, ranges: &[(u64, usize)]) -> Outcome<Vec<Vec<u8>>>;
    fn stream(
        &mut self,
        file: &Self::File,
        range: Range<u64>,
        sink: impl FnMut(u64, &[u8]) -> io::Result<()> + Send + 'static,
    ) -> Outcome<u64>;
    fn download(
        &mut self,
        name: &Name,
        target: &Path,
        events: impl Progress + Send + 'static,
        stop: &Stop,
    ) -> Outcome<FileReport>;
    fn download_tree(
        &mut self,
        name: &Name,
        target: &Path,
        watch: (
            impl Progress + Send + 'static,
            impl FnMut(&TreeEntry<'_>) -> bool + Send + 'static,
        ),
        stop: &Stop,
    ) -> Outcome<TreeReport>;
    fn path(&mut self) -> Outcome<PathReport>;
    fn versions(&mut self) -> Outcome<Vec<(Name, u64)>>;
}

fn pieces(read: &RangesRead, ranges: &[(u64, usize)]) -> Vec<Vec<u8>> {
    let mut rest = &read.buffer[..];
    let piece = |((_, length), filled): (&(u64, usize), &usize)| {
        let (place, tail) = rest.split_at(*length);
        rest = tail;
        place[..*filled].to_vec()
    };
    ranges.iter().zip(&read.filled).map(piece).collect()
}

/// Calls on the thread of the test.
pub(crate) struct CallersThread(Client);

impl CallersThread {
    fn stopped_by<T>(&mut self, stop: &Stop, act: impl FnOnce(&mut Client) -> T) -> T {
        self.0.set_stop(stop.clone());
        let done = act(&mut self.0);
        self.0.set_stop(Stop::default());
        done
    }
}

impl Facade for CallersThread {
    type File = LocalFile;

    fn over(client: Client) -> Self {
        CallersThread(client)
    }

    fn stat(&mut self, name: &Name) -> Outcome<Stat> {
        self.0.stat(name)
    }

    fn lookup(&mut self, name: &Name) -> Outcome<Discovered> {
        self.0.lookup(name)
    }

    fn list(&mut self, name: &Name) -> Outcome<Listing> {
        self.0.list(name)
    }

    fn list_resolved(&mut self, name: &Name) -> Outcome<Listing> {
        self.0.list_resolved(name)
    }

    fn open(&mut self, name: &Name) -> Outcome<LocalFile> {
        self.0.open(name)
    }

    fn open_entry(&mut self, entry: &ResolvedEntry) -> Outcome<LocalFile> {
        self.0.open_entry(entry)
    }

    fn stat_of(file: &LocalFile) -> &Stat {
        file.stat()
    }

    fn read(&mut self, file: &LocalFile, ranges: &[(u64, usize)]) -> Outcome<Vec<Vec<u8>>> {
        Ok(pieces(&self.0.read_ranges(file, ranges)?, ranges))
    }

    fn stream(
        &mut self,
        file: &LocalFile,
        range: Range<u64>,
        mut sink: impl FnMut(u64, &[u8]) -> io::Result<()> + Send + 'static,
    ) -> Outcome<u64> {
        self.0.read_range(file, range, &mut sink)
    }

    fn download(
        &mut self,
        name: &Name,
        target: &Path,
        mut events: impl Progress + Send + 'static,
        stop: &Stop,
    ) -> Outcome<FileReport> {
        self.stopped_by(stop, |client| {
            client.download(name, target, DownloadOptions::default(), &mut events)
        })
    }

    fn download_tree(
        &mut self,
        name: &Name,
        target: &Path,
        (mut events, mut filter): (
            impl Progress + Send + 'static,
            impl FnMut(&TreeEntry<'_>) -> bool + Send + 'static,
        ),
        stop: &Stop,
    ) -> Outcome<TreeReport> {
        self.stopped_by(stop, |client| {
            let files = DownloadOptions::default();
            let options = TreeOptions { files, filter: &mut filter };
            client.download_tree(name, target, options, &mut events)
        })
    }

    fn path(&mut self) -> Outcome<PathReport> {
        Ok(self.0.path())
    }

    fn versions(&mut self) -> Outcome<Vec<(Name, u64)>> {
        let versions = self.0.versions_mut();
        Ok(versions.iter().map(|it| (it.name.clone(), it.version)).collect())
    }
}

/// Calls to a thread of their own.
pub(crate) struct OwnThread(Session);

impl Facade for OwnThread {
    type File = RemoteFile;

    fn over(client: Client) -> Self {
        OwnThread(Session::start(client, SessionOptions::default()).expect("a thread"))
    }

    fn stat(&mut self, name: &Name) -> Outcome<Stat> {
        self.0.stat(name)
    }

    fn lookup(&mut self, name: &Name) -> Outcome<Discovered> {
        self.0.lookup(name)
    }

    fn list(&mut self, name: &Name) -> Outcome<Listing> {
        self.0.list(name)
    }

    fn list_resolved(&mut self, name: &Name) -> Outcome<Listing> {
        self.0.list_resolved(name)
    }

    fn open(&mut self, name: &Name) -> Outcome<RemoteFile> {
        self.0.open(name)
    }

    fn open_entry(&mut self, entry: &ResolvedEntry) -> Outcome<RemoteFile> {
        self.0.open_entry(entry)
    }

    fn stat_of(file: &RemoteFile) -> &Stat {
        file.stat()
    }

    fn read(&mut self, file: &RemoteFile, ranges: &[(u64, usize)]) -> Outcome<Vec<Vec<u8>>> {
        Ok(pieces(&file.read_ranges_later(Vec::new(), ranges)?.wait()?, ranges))
    }

    fn stream(
        &mut self,
        file: &RemoteFile,
        range: Range<u64>,
        sink: impl FnMut(u64, &[u8]) -> io::Result<()> + Send + 'static,
    ) -> Outcome<u64> {
        file.stream_later(range, sink).wait()
    }

    fn download(
        &mut self,
        name: &Name,
        target: &Path,
        events: impl Progress + Send + 'static,
        stop: &Stop,
    ) -> Outcome<FileReport> {
        let call = self.0.download_later(name, target, DownloadOptions::default());
        call.watched_by(events).stopped_by(stop).wait()
    }

    fn download_tree(
        &mut self,
        name: &Name,
        target: &Path,
        (events, filter): (
            impl Progress + Send + 'static,
            impl FnMut(&TreeEntry<'_>) -> bool + Send + 'static,
        ),
        stop: &Stop,
    ) -> Outcome<TreeReport> {
        let call = self.0.download_tree_later(name, target, DownloadOptions::default(), filter);
        call.watched_by(events).stopped_by(stop).wait()
    }

    fn path(&mut self) -> Outcome<PathReport> {
        self.0.path()
    }

    fn versions(&mut self) -> Outcome<Vec<(Name, u64)>> {
        self.0.with_versions(|versions| {
            versions.iter().map(|it| (it.name.clone(), it.version)).collect()
        })
    }
}
