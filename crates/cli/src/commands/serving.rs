//! Flags of whoever publishes: how many threads read, how long answers are fresh, where roots go.

use byname_io::UnvalidatedRates;
use byname_profile::{Settings, units};
use byname_store::FileServerConfig;
use byname_transfer::checksums::Algorithm;

/// Longest freshness that makes sense to ask for.
const FRESHNESS_MS_MAX: u64 = 3_600_000;

/// Options of serving.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ServingArgs {
    /// Threads that read files for readers. Several of them share even one large file.
    /// Default: server.workers, 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=16))]
    workers: Option<u16>,
    /// Watch the published directories: what is copied, renamed or removed is seen without being
    /// asked for, metadata is fresh for 250 ms, and new files are hashed before anybody asks. Takes
    /// a watch of the kernel (fs.inotify.max_user_watches) for each directory. Default:
    /// server.watch.
    #[arg(long)]
    watch: bool,
    /// Time for which caches may answer with metadata: 200ms, 3s, 2m. After a change nobody who
    /// asks for fresh answers sees the old version for longer. Default: server.freshness_ms, 1s;
    /// 250ms with --watch.
    #[arg(long, value_name = "DURATION", value_parser = milliseconds)]
    freshness: Option<u64>,
    #[command(flatten)]
    pub(crate) attributes: AttributeArgs,
    #[command(flatten)]
    pub(crate) checksums: ChecksumArgs,
}

/// Checksums that are signed besides roots.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ChecksumArgs {
    /// Compute and sign checksums too, for software that compares them: adler32, crc32, crc32c,
    /// md5, sha256, separated by commas. In the background: each file is read a second time.
    #[arg(long, value_name = "ALGORITHMS", value_delimiter = ',', value_parser = algorithm)]
    checksums: Vec<Algorithm>,
}

fn algorithm(text: &str) -> Result<Algorithm, NoAlgorithm> {
    Algorithm::from_name(text).ok_or(NoAlgorithm)
}

/// A text that names no algorithm.
#[derive(Debug, thiserror::Error)]
#[error("adler32, crc32, crc32c, md5 or sha256 is wanted")]
struct NoAlgorithm;

impl ChecksumArgs {
    /// The algorithms, each once.
    pub(crate) fn algorithms(&self) -> Vec<Algorithm> {
        Algorithm::ALL.into_iter().filter(|it| self.checksums.contains(it)).collect()
    }
}

/// Further places for roots beside the state.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct AttributeArgs {
    /// Write hash roots to the published files too, as extended attribute user.byname.root, and
    /// believe those that are there: moved and copied trees keep their hashes.
    #[arg(long, value_name = "WHERE", value_enum)]
    attrs: Option<Attributes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Attributes {
    /// On the files themselves.
    File,
}

impl AttributeArgs {
    /// True if files have their roots with them.
    pub(crate) fn are_used(&self) -> bool {
        self.attrs == Some(Attributes::File)
    }
}

impl ServingArgs {
    /// Puts flags, or else settings, into a server's configuration.
    pub(crate) fn apply(&self, settings: &Settings, config: &mut FileServerConfig) {
        let workers = self.workers.map_or_else(|| settings.number("server.workers"), u64::from);
        config.data_workers = usize::try_from(workers.max(1)).unwrap_or(usize::MAX);
        config.attributes = self.attributes.are_used();
        config.checksums = self.checksums.algorithms();
        config.watch = self.watch || settings.switch("server.watch");
        let configured = || settings.number("server.freshness_ms");
        match self.freshness {
            None if config.watch && settings.is_default("server.freshness_ms") => {
                config.engine.set_watched();
            }
            freshness => {
                let freshness_ms = freshness.unwrap_or_else(configured);
                config.engine.set_freshness_ms(freshness_ms.min(FRESHNESS_MS_MAX));
            }
        }
        config.engine.quiet_ns = settings.number("server.quiet_ms").saturating_mul(1_000_000);
        let open_files = settings.number("server.open_files").clamp(1, 1 << 20);
        config.engine.open_max = usize::try_from(open_files).unwrap_or(usize::MAX);
        config.silent_peer_ns =
            settings.number("server.silent_peer_s").max(1).saturating_mul(1_000_000_000);
        let bytes = |option| settings.number(option).saturating_mul(1 << 10);
        config.udp_unvalidated = UnvalidatedRates {
            machine_bytes_s: bytes("server.udp_unvalidated_kib_s"),
            all_bytes_s: bytes("server.udp_unvalidated_all_kib_s"),
        };
    }
}

/// Reads a freshness.
fn milliseconds(text: &str) -> Result<u64, BadDuration> {
    let span = units::age(text).map_err(|_| BadDuration)?;
    let ms = u64::try_from(span.as_millis()).map_err(|_| BadDuration)?;
    if ms <= FRESHNESS_MS_MAX { Ok(ms) } else { Err(BadDuration) }
}

/// A text that is no duration.
#[derive(Debug, thiserror::Error)]
#[error("a duration up to 1h is wanted, such as 200ms or 3s")]
struct BadDuration;

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn durations_have_a_unit_and_a_bound() {
        for (text, ms) in [("200ms", 200), ("3s", 3000), ("1.5m", 90_000), ("1h", 3_600_000)] {
            assert_eq!(milliseconds(text).unwrap(), ms);
        }
        for wrong in ["", "3", "s", "-1s", "2h", "99999999999999999999s"] {
            assert!(milliseconds(wrong).is_err(), "{wrong}");
        }
    }
}
