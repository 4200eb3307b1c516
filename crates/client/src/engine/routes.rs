//! Demultiplexing: the jobs that wait for a packet of this name.
//!
//! Answers are matched by name, not by PIT token: some forwarders cannot cope with tokens they did
//! not make. Segments of one object share an entry under the object's name, so the table has a
//! few entries per job and not one per Interest.

use std::collections::HashMap;

use byname_packet::{Name, NameRef};
use byname_transfer::request::Request;

/// A running job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct JobId(pub(crate) u64);

/// A job, and whether only what the publisher says now will do for it.
type Wish = (JobId, bool);

/// Names waited for. Keys are TLV-VALUEs of names.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    by_name: HashMap<Box<[u8]>, Vec<Wish>>,
    /// The object of which a segment was asked for last, and by whom. Requests and answers come in
    /// rows, so most of them are about the object that the one before was about.
    asked: Option<(Name, JobId)>,
    /// The object of which a segment came last, and who waits for it.
    answered: Option<(Name, Vec<JobId>)>,
}

impl Routes {
    /// Count of names that are waited for.
    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// The job has sent this request.
    pub(crate) fn insert(&mut self, request: &Request, job: JobId) {
        let name = request.name.view();
        if let Some((asked, by)) = &self.asked
            && !request.can_be_prefix
            && *by == job
            && name.segment_of(asked.view()).is_some()
        {
            return;
        }
        let key = key_of(name, request.can_be_prefix);
        self.asked = Some((key.to_name(), job));
        self.answered = None;
        let wish = (job, request.must_be_fresh);
        match self.by_name.get_mut(key.value()) {
            Some(wishes) => match wishes.iter_mut().find(|(other, _)| *other == job) {
                Some(known) => *known = wish,
                None => wishes.push(wish),
            },
            None => {
                self.by_name.insert(key.value().into(), vec![wish]);
            }
        }
    }

    /// The job waits for nothing any more.
    pub(crate) fn remove(&mut self, job: JobId) {
        self.asked = None;
        self.answered = None;
        self.by_name.retain(|_, wishes| {
            wishes.retain(|(other, _)| *other != job);
            !wishes.is_empty()
        });
    }

    /// The jobs that may wait for a packet of this name, the most specific entries first.
    pub(crate) fn find(&mut self, name: NameRef<'_>, found: &mut Vec<JobId>) {
        self.find_for((name, false), found);
    }

    /// The same of a packet that is perhaps not fresh: nobody who waits for the publisher gets it.
    pub(crate) fn find_for(
        &mut self,
        (name, not_fresh): (NameRef<'_>, bool),
        found: &mut Vec<JobId>,
    ) {
        found.clear();
        if let Some((answered, jobs)) = &self.answered
            && name.segment_of(answered.view()).is_some()
        {
            return found.extend_from_slice(jobs);
        }
        let key = key_of(name, false);
        let is_segment = key != name;
        let mut ends = [0; NAME_DEPTH_MAX + 1];
        let mut count = 0;
        for component in name.components().take(NAME_DEPTH_MAX) {
            ends[count + 1] = ends[count] + component.wire_len();
            count += 1;
        }
        for (depth, end) in ends[..=count].iter().enumerate().rev() {
            if let Some(wishes) = self.by_name.get(&name.value()[..*end]) {
                let takes = |(_, must_be_fresh): &&Wish| !(not_fresh && *must_be_fresh);
                found.extend(wishes.iter().filter(takes).map(|(job, _)| *job));
                if is_segment && depth + 1 == count {
                    // A segment that is waited for is nothing else; this is the usual case.
                    self.answered = Some((key.to_name(), found.clone()));
                    return;
                }
            }
        }
    }
}

/// Longest name that is looked up at every depth; no path has that many components.
const NAME_DEPTH_MAX: usize = 255;

fn key_of(name: NameRef<'_>, can_be_prefix: bool) -> NameRef<'_> {
    match name.last() {
        Some(last) if !can_be_prefix && last.segment().is_some() => name.without_last(1),
        _ => name,
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

    #[test]
    fn what_is_not_fresh_is_for_those_who_take_anything() {
        let name = |uri: &str| uri.parse::<Name>().expect("a name");
        let (asked, came) = (name("/a/f/32=metadata"), name("/a/f/32=metadata/v=1/seg=0"));
        let mut routes = Routes::default();
        let mut found = Vec::new();
        routes.insert(&Request::fresh_prefix(asked.clone()), JobId(1));
        routes.insert(&Request::prefix(asked.clone()), JobId(2));
        routes.find_for((came.view(), true), &mut found);
        assert_eq!(found, [JobId(2)]);
        routes.find_for((came.view(), false), &mut found);
        assert_eq!(found, [JobId(1), JobId(2)]);
        routes.insert(&Request::prefix(asked), JobId(1));
        routes.find_for((came.view(), true), &mut found);
        assert_eq!(found, [JobId(1), JobId(2)], "the publisher was silent");
    }
}
