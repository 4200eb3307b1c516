//! SIGHUP for `serve`: the access log is opened anew, its share is taken from the configuration,
//! and what else has changed there is named, because only a restart takes it over.

use super::Args;
use crate::access_log::AccessLog;
use crate::exit::{Code, Failure, Outcome};
use crate::{notify, output, settings};
use byname_profile::{Paths, Profile, Settings};
use byname_store::FileServer;
use signal_hook::consts::SIGHUP;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The option that is taken over.
const SAMPLE: &str = "server.access_sample";

/// Reads the configuration anew.
pub(super) struct Reloader {
    paths: Paths,
    /// As they were at the start.
    started: Settings,
    access: Option<Arc<AccessLog>>,
    /// The flag, which wins.
    sample: Option<u64>,
}

impl Reloader {
    /// Opens the access log, if there is to be one.
    pub(super) fn new(args: &Args, profile: &Profile, paths: &Paths) -> Outcome<Self> {
        let started = profile.settings().clone();
        let configured = || started.text("server.access_log").map(PathBuf::from);
        let path = args.access_log.clone().or_else(configured);
        let one_in = args.access_sample.unwrap_or_else(|| started.number(SAMPLE));
        let open = |path: &Path| AccessLog::open(path, one_in).map(Arc::new);
        let access = path.as_deref().map(open).transpose()?;
        Ok(Self { paths: paths.clone(), started, access, sample: args.access_sample })
    }

    /// Has servers write to the log, if there is one.
    pub(super) fn log_accesses<'a>(&self, servers: impl Iterator<Item = &'a mut FileServer>) {
        let Some(log) = &self.access else { return };
        servers.for_each(|server| server.log_accesses(log.clone()));
    }

    /// Takes SIGHUP from now on.
    pub(super) fn watch_signal(self) -> Outcome {
        let mut signals = signal_hook::iterator::Signals::new([SIGHUP])
            .map_err(|error| Failure::new(Code::Other, format!("signals: {error}")))?;
        std::thread::spawn(move || {
            for _ in signals.forever() {
                notify::reloading(byname_io::Clock::new().now_ns());
                let status = match self.reload() {
                    Ok(status) => status,
                    Err(failure) => format!("configuration not taken over: {}", failure.message),
                };
                output::err_line(&status);
                notify::ready(&status);
            }
        });
        Ok(())
    }

    fn reload(&self) -> Outcome<String> {
        let profile = settings::profile(&self.paths)?;
        let now = profile.settings();
        let mut status = "configuration taken over".to_owned();
        if let Some(access) = &self.access {
            let one_in = self.sample.unwrap_or_else(|| now.number(SAMPLE));
            access.reopen()?;
            access.set_one_in(one_in);
            status.push_str(&match one_in {
                0 => ": nothing is recorded".to_owned(),
                1 => ": the access log was opened anew".to_owned(),
                _ => {
                    format!(": the access log was opened anew, one object in {one_in} is recorded")
                }
            });
        }
        let later = changed(&self.started, now);
        if !later.is_empty() {
            status.push_str(&format!("; only a restart changes {}", later.join(", ")));
        }
        Ok(status)
    }
}

/// Options that a server reads once and that are not as they were.
fn changed(started: &Settings, now: &Settings) -> Vec<&'static str> {
    let is_read =
        |name: &str| name != SAMPLE && (name.starts_with("server.") || name == "client.connect");
    let pairs = started.all().zip(now.all());
    let changed = pairs.filter(|((option, before), (_, after))| {
        is_read(option.name) && before.value != after.value
    });
    changed.map(|((option, _), _)| option.name).collect()
}
