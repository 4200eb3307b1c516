//! Which job waits for a packet of this name.
//!
//! Answers are matched by name, not by PIT token: some forwarders cannot cope with tokens they did
//! not make. Segments of one object share an entry under the object's name, so the table has a
//! few entries per job and not one per Interest.

use std::collections::HashMap;

use byname_packet::NameRef;
use byname_transfer::request::Request;

/// A running job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct JobId(pub(crate) u64);

/// Names waited for. Keys are TLV-VALUEs of names.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    by_name: HashMap<Box<[u8]>, Vec<JobId>>,
    /// The object of which a segment was asked for last, and by whom. Requests and answers come in
    /// rows, so most of them are about the object that the one before was about.
    asked: Option<(Box<[u8]>, JobId)>,
    /// The object of which a segment came last, and who waits for it.
    answered: Option<(Box<[u8]>, Vec<JobId>)>,
}

impl Routes {
    /// How many names are waited for.
    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// The job has sent this request.
    pub(crate) fn insert(&mut self, request: &Request, job: JobId) {
        let key = key_of(request.name.view(), request.can_be_prefix);
        if self.asked.as_ref().is_some_and(|(asked, by)| **asked == *key && *by == job) {
            return;
        }
        self.asked = Some((key.into(), job));
        self.answered = None;
        match self.by_name.get_mut(key) {
            Some(jobs) if jobs.contains(&job) => {}
            Some(jobs) => jobs.push(job),
            None => {
                self.by_name.insert(key.into(), vec![job]);
            }
        }
    }

    /// The job waits for nothing any more.
    pub(crate) fn remove(&mut self, job: JobId) {
        self.asked = None;
        self.answered = None;
        self.by_name.retain(|_, jobs| {
            jobs.retain(|other| *other != job);
            !jobs.is_empty()
        });
    }

    /// The jobs that may wait for a packet of this name, the most specific entries first.
    pub(crate) fn find(&mut self, name: NameRef<'_>, found: &mut Vec<JobId>) {
        found.clear();
        let key = key_of(name, false);
        let is_segment = key.len() < name.value().len();
        if let Some((answered, jobs)) = &self.answered
            && is_segment
            && **answered == *key
        {
            return found.extend_from_slice(jobs);
        }
        let mut ends = [0; NAME_DEPTH_MAX + 1];
        let mut count = 0;
        for component in name.components().take(NAME_DEPTH_MAX) {
            ends[count + 1] = ends[count] + component.wire_len();
            count += 1;
        }
        for (depth, end) in ends[..=count].iter().enumerate().rev() {
            if let Some(jobs) = self.by_name.get(&name.value()[..*end]) {
                found.extend_from_slice(jobs);
                if is_segment && depth + 1 == count {
                    // A segment that is waited for is nothing else; this is the usual case.
                    self.answered = Some((key.into(), found.clone()));
                    return;
                }
            }
        }
    }
}

/// Longest name that is looked up at every depth; no path has that many components.
const NAME_DEPTH_MAX: usize = 255;

fn key_of(name: NameRef<'_>, can_be_prefix: bool) -> &[u8] {
    match name.last() {
        Some(last) if !can_be_prefix && last.segment().is_some() => {
            &name.value()[..name.value().len() - last.wire_len()]
        }
        _ => name.value(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_packet::Name;

    #[test]
    fn segments_share_an_entry_and_prefixes_match_longer_names() {
        let name = |uri: &str| uri.parse::<Name>().expect("a name");
        let mut routes = Routes::default();
        routes.insert(&Request::exact(name("/a/v=1/seg=7")), JobId(1));
        routes.insert(&Request::exact(name("/a/v=1/seg=8")), JobId(1));
        routes.insert(&Request::prefix(name("/a/KEY/1")), JobId(1));
        routes.insert(&Request::prefix(name("/a/KEY/1")), JobId(2));
        let mut found = Vec::new();
        routes.find(name("/a/v=1/seg=999").view(), &mut found);
        assert_eq!(found, [JobId(1)]);
        routes.find(name("/a/KEY/1/self/v=3").view(), &mut found);
        assert_eq!(found, [JobId(1), JobId(2)]);
        routes.find(name("/a/KEY").view(), &mut found);
        assert_eq!(found, []);
        routes.find(name("/a/v=1/seg=5").view(), &mut found);
        assert_eq!(found, [JobId(1)]);
        routes.find(name("/a/v=1/seg=6").view(), &mut found);
        assert_eq!(found, [JobId(1)]);
        routes.insert(&Request::exact(name("/a/v=1/seg=7")), JobId(3));
        routes.find(name("/a/v=1/seg=7").view(), &mut found);
        assert_eq!(found, [JobId(1), JobId(3)], "whoever asks later gets it too");
        routes.remove(JobId(3));
        routes.find(name("/a/v=1/seg=7").view(), &mut found);
        assert_eq!(found, [JobId(1)]);
        routes.remove(JobId(1));
        assert_eq!(routes.by_name.len(), 1);
    }
}
