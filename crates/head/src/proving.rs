//! Challenges to disks: each proves that it has the octets of replicas that it should have.
//!
//! What a disk says of itself (`fsck --disks --content`) a disk that lies can make up. A challenge
//! it cannot: the head draws random octets, these draw octets of the content, and what the disk
//! shows of them is folded to the root that the catalog has (`byname_security::tree`). So nothing
//! but the proof travels, and a content with one replica can be proved, too. It does not say where
//! the disk has the octets: one that fetches them elsewhere meanwhile proves that it can get them.
//!
//! [`Proving`] is without I/O. Bounded: [`PROOFS_MAX`] replicas at a time, one order in flight for
//! each disk.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use byname_catalog::id::{ContentId, DiskId, LeaseEpoch};
use byname_catalog::{DiskState, Failure, Reader, Resolution};
use byname_security::tree::{Hash, is_proof};
use byname_site::{DiskName, DiskRefusal, Prove, ProveAnswer, SeedSource, SiteName, Stamp};
use byname_transfer::server::SharedSigner;

/// Replicas that are proved at a time, at most.
pub(crate) const PROOFS_MAX: usize = 1024;
/// Rows of the catalog that are read at a time.
const ROWS: usize = 1024;
/// Orders in a row without answer after which a disk is given up, unless it answers others: then it
/// is reading.
const SILENCES_MAX: u32 = 3;
const READING_SILENCES_MAX: u32 = 3600;

/// What somebody wants to be proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// So many replicas of a disk, drawn at random.
    OfDisk(DiskId, usize),
    /// All replicas of a content.
    OfContent(ContentId),
}

/// What came of a challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unproved {
    /// What it shows is not what the root is of.
    #[error("what it shows is not what was written")]
    Wrong,
    /// It says that it cannot.
    #[error("{0}")]
    Refused(DiskRefusal),
    /// It does not answer, or what answers is not the disk.
    #[error("it does not answer")]
    Silent,
    /// Nobody wants it to be asked.
    #[error("it is off")]
    Off,
    /// The head cannot ask.
    #[error("its order cannot be signed")]
    Unsigned,
}

/// A replica, and what came of its challenge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proof {
    pub(crate) disk: DiskId,
    pub(crate) content: ContentId,
    pub(crate) size: u64,
    pub(crate) outcome: Result<(), Unproved>,
}

/// How far it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProofReport {
    pub(crate) is_running: bool,
    /// Why it came to no end.
    pub(crate) failure: Option<String>,
    /// Replicas that are still to be proved.
    pub(crate) left: usize,
    pub(crate) proofs: Vec<Proof>,
}

#[derive(Debug, Default)]
struct Shared {
    wanted: Option<Wanted>,
    report: ProofReport,
}

/// The latest report, told by who challenges to who is asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProofReports(Arc<Mutex<Shared>>);

impl ProofReports {
    fn with<T>(&self, work: impl FnOnce(&mut Shared) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks for proofs; false if others are being asked for.
    pub(crate) fn begin(&self, wanted: Wanted) -> bool {
        self.with(|shared| {
            if shared.report.is_running {
                return false;
            }
            shared.wanted = Some(wanted);
            shared.report = ProofReport { is_running: true, ..ProofReport::default() };
            true
        })
    }

    /// What is asked for, once.
    pub(crate) fn take_wanted(&self) -> Option<Wanted> {
        self.with(|shared| shared.wanted.take())
    }

    pub(crate) fn set(&self, report: ProofReport) {
        self.with(|shared| shared.report = report);
    }

    /// It came to no end.
    pub(crate) fn fail(&self, failure: String) {
        self.set(ProofReport { failure: Some(failure), ..ProofReport::default() });
    }

    /// Looks at the report.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&ProofReport) -> T) -> T {
        self.with(|shared| look(&shared.report))
    }
}

/// Who asks.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) site: &'a SiteName,
    /// The head's term.
    pub(crate) epoch: LeaseEpoch,
    pub(crate) signer: &'a SharedSigner,
}

/// A replica that is to be proved.
struct Challenge {
    disk: DiskId,
    name: DiskName,
    generation: u64,
    content: ContentId,
    size: u64,
    root: [u8; 32],
    octets: [u8; 32],
    /// The order in flight. It is repeated as it is.
    wire: Option<Vec<u8>>,
    silences: u32,
}

/// Replicas that are being drawn: each has the same chance (reservoir sampling).
struct Draw {
    disk: DiskId,
    count: usize,
    after: Option<ContentId>,
    seen: u64,
    drawn: Vec<ContentId>,
}

/// See the module.
pub(crate) struct Proving {
    draw: Option<Draw>,
    waiting: VecDeque<Challenge>,
    proofs: Vec<Proof>,
}

impl Proving {
    /// Begins.
    pub(crate) fn new(reader: &Reader<'_>, wanted: &Wanted) -> Result<Self, Failure> {
        let mut proving = Self { draw: None, waiting: VecDeque::new(), proofs: Vec::new() };
        match *wanted {
            Wanted::OfDisk(disk, count) => {
                let (count, drawn) = (count.min(PROOFS_MAX), Vec::new());
                proving.draw = Some(Draw { disk, count, after: None, seen: 0, drawn });
            }
            Wanted::OfContent(content) => {
                for disk in reader.content(content)?.replicas {
                    proving.challenge(reader, disk, content)?;
                }
            }
        }
        Ok(proving)
    }

    fn challenge(
        &mut self,
        reader: &Reader<'_>,
        id: DiskId,
        content: ContentId,
    ) -> Result<(), Failure> {
        let known = match reader.content(content) {
            Ok(known) => known,
            // It was replaced meanwhile, and nobody leads there any more.
            Err(Failure::Refused(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let disk = reader.disk(id)?;
        self.waiting.push_back(Challenge {
            disk: id,
            name: DiskName { place: disk.label, id },
            generation: disk.generation,
            content,
            size: known.size,
            root: known.root,
            octets: [0; 32],
            wire: None,
            silences: 0,
        });
        Ok(())
    }

    /// The next orders, one for each disk that has something to prove.
    pub(crate) fn orders(
        &mut self,
        reader: &Reader<'_>,
        asker: Asker<'_>,
        stamp: &mut dyn FnMut() -> Stamp,
        seeds: &mut SeedSource,
    ) -> Result<Vec<(DiskId, DiskName, Vec<u8>)>, Failure> {
        if self.draw.is_some() {
            self.draw_more(reader, seeds)?;
            return Ok(Vec::new());
        }
        let mut orders: Vec<(DiskId, DiskName, Vec<u8>)> = Vec::new();
        let mut ended = Vec::new();
        for (index, challenge) in self.waiting.iter_mut().enumerate() {
            if orders.iter().any(|(disk, ..)| *disk == challenge.disk) {
                continue;
            }
            if reader.disk(challenge.disk)?.state == DiskState::Off {
                ended.push((index, Unproved::Off));
                continue;
            }
            match challenge.wire(asker, stamp, seeds) {
                Some(wire) => orders.push((challenge.disk, challenge.name.clone(), wire)),
                None => ended.push((index, Unproved::Unsigned)),
            }
        }
        for (index, why) in ended.into_iter().rev() {
            self.end(index, Err(why));
        }
        Ok(orders)
    }

    /// Looks at more of what the disk has.
    fn draw_more(&mut self, reader: &Reader<'_>, seeds: &mut SeedSource) -> Result<(), Failure> {
        let Some(draw) = &mut self.draw else { return Ok(()) };
        let page = reader.replicas(draw.disk, draw.after, ROWS)?;
        let seed = seeds().unwrap_or_default();
        let mut stream = blake3::Hasher::new_keyed(&seed).finalize_xof();
        for content in &page {
            draw.seen += 1;
            if draw.drawn.len() < draw.count {
                draw.drawn.push(*content);
                continue;
            }
            let mut octets = [0; 16];
            stream.fill(&mut octets);
            let place = u128::from_be_bytes(octets) % u128::from(draw.seen);
            let place = usize::try_from(place).unwrap_or(usize::MAX);
            if let Some(drawn) = draw.drawn.get_mut(place) {
                *drawn = *content;
            }
        }
        draw.after = page.last().copied().or(draw.after);
        if page.len() < ROWS
            && let Some(Draw { disk, drawn, .. }) = self.draw.take()
        {
            drawn.into_iter().try_for_each(|content| self.challenge(reader, disk, content))?;
        }
        Ok(())
    }

    /// What a disk has answered; `None` if nothing that counts. `is_well` says that it answers
    /// other orders.
    pub(crate) fn handle(
        &mut self,
        reader: &Reader<'_>,
        (disk, is_well): (DiskId, bool),
        answer: Option<ProveAnswer>,
    ) -> Result<(), Failure> {
        let asked = |it: &Challenge| it.disk == disk && it.wire.is_some();
        let Some(index) = self.waiting.iter().position(asked) else { return Ok(()) };
        let challenge = &mut self.waiting[index];
        let outcome = match answer {
            Some(ProveAnswer::Proof { proof, .. }) => match challenge.is_met_by(&proof) {
                true => Ok(()),
                false => Err(Unproved::Wrong),
            },
            Some(ProveAnswer::Refused(why)) if !why.is_retryable() => Err(Unproved::Refused(why)),
            None | Some(ProveAnswer::Refused(_)) => {
                challenge.silences += 1;
                let max = if is_well { READING_SILENCES_MAX } else { SILENCES_MAX };
                if challenge.silences < max {
                    return Ok(());
                }
                Err(Unproved::Silent)
            }
        };
        // What was dropped meanwhile nobody has to have.
        if outcome.is_err() && reader.resolution(disk, challenge.content)? != Resolution::Keep {
            self.waiting.remove(index);
            return Ok(());
        }
        self.end(index, outcome);
        Ok(())
    }

    fn end(&mut self, index: usize, outcome: Result<(), Unproved>) {
        if let Some(Challenge { disk, content, size, .. }) = self.waiting.remove(index) {
            self.proofs.push(Proof { disk, content, size, outcome });
        }
    }

    /// What there is to tell by now.
    pub(crate) fn report(&self) -> ProofReport {
        ProofReport {
            is_running: !self.is_done(),
            failure: None,
            left: self.waiting.len(),
            proofs: self.proofs.clone(),
        }
    }

    /// True if everything is proved, or not.
    pub(crate) fn is_done(&self) -> bool {
        self.draw.is_none() && self.waiting.is_empty()
    }
}

impl Challenge {
    /// The order, the same until it is answered.
    fn wire(
        &mut self,
        Asker { site, epoch, signer }: Asker<'_>,
        stamp: &mut dyn FnMut() -> Stamp,
        seeds: &mut SeedSource,
    ) -> Option<Vec<u8>> {
        if self.wire.is_none() {
            self.octets = seeds()?;
            let (generation, content) = (self.generation, self.content);
            let order = Prove { epoch, generation, challenge: self.octets, content };
            let encoded = order.encode(site, &self.name, &**signer, stamp());
            self.wire = encoded
                .inspect_err(|error| {
                    tracing::warn!(%error, disk = self.disk.0, "cannot sign an order");
                })
                .ok();
        }
        self.wire.clone()
    }

    fn is_met_by(&self, proof: &[u8]) -> bool {
        is_proof(&self.octets, (self.size, Hash(self.root)), proof)
    }
}
