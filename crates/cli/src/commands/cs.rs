//! `byname cs`: the content store of a forwarder.

use super::face::{Switch, bits};
use crate::exit::Outcome;
use crate::manager::{self, Manager, ManagerArgs, prefix};
use crate::output;
use byname_packet::mgmt::ControlParameters;
use byname_profile::Paths;
use serde_json::json;

const FLAG_ADMIT: u64 = 1;
const FLAG_SERVE: u64 = 2;

/// Show, size and empty the content store of a forwarder.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname cs show
  byname cs config --capacity 100000
  byname cs config --admit off
  byname cs erase /lab/run7")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show what it holds and how often it had the answer.
    Show {
        #[command(flatten)]
        manager: ManagerArgs,
    },
    /// Change it.
    Config {
        /// Packets it may hold; 0 turns it off.
        #[arg(long, value_name = "PACKETS")]
        capacity: Option<u64>,
        /// Take new packets, or not.
        #[arg(long, value_enum, value_name = "on|off")]
        admit: Option<Switch>,
        /// Answer, or not.
        #[arg(long, value_enum, value_name = "on|off")]
        serve: Option<Switch>,
        #[command(flatten)]
        manager: ManagerArgs,
    },
    /// Forget the packets below a prefix.
    Erase {
        /// The names to forget.
        prefix: String,
        /// At most so many packets.
        #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u64).range(1..))]
        count: Option<u64>,
        #[command(flatten)]
        manager: ManagerArgs,
    },
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.action {
        Action::Show { manager } => show(manager, paths),
        Action::Config { capacity, admit, serve, manager } => {
            let (flags, mask) = bits(&[(FLAG_ADMIT, *admit), (FLAG_SERVE, *serve)]);
            let parameters = ControlParameters {
                capacity: *capacity,
                flags,
                mask,
                ..ControlParameters::default()
            };
            Manager::open(manager, paths)?.command("cs/config", &parameters)?;
            show(manager, paths)
        }
        Action::Erase { prefix: name, count, manager } => {
            let name = prefix(name)?;
            let mut forwarder = Manager::open(manager, paths)?;
            let erased = erase(&mut forwarder, &name, *count)?;
            let shown = output::name(name.view());
            let fields = json!({ "prefix": shown, "erased": erased });
            manager::done(manager, &format!("{erased} packets below {shown} forgotten"), fields);
            Ok(())
        }
    }
}

/// A forwarder erases a limited number at a time and says so by naming the limit.
fn erase(forwarder: &mut Manager, name: &byname_packet::Name, count: Option<u64>) -> Outcome<u64> {
    let mut erased = 0;
    loop {
        let left = count.map(|count| count - erased);
        let parameters = ControlParameters {
            name: Some(name.clone()),
            count: left,
            ..ControlParameters::default()
        };
        let answer = forwarder.command("cs/erase", &parameters)?;
        let now = answer.count.unwrap_or(0);
        erased += now;
        let is_limited = answer.capacity.is_some();
        if now == 0 || !is_limited || count.is_some_and(|count| erased >= count) {
            return Ok(erased);
        }
    }
}

fn show(args: &ManagerArgs, paths: &Paths) -> Outcome {
    let store = Manager::open(args, paths)?.store()?;
    let (admits, serves) = (store.flags & FLAG_ADMIT != 0, store.flags & FLAG_SERVE != 0);
    if args.json {
        output::json_line(json!({
            "entries": store.entry_count, "capacity": store.capacity, "admits": admits,
            "serves": serves, "hits": store.hit_count, "misses": store.miss_count,
        }));
        return Ok(());
    }
    let asked = store.hit_count + store.miss_count;
    let share = (store.hit_count * 100).checked_div(asked).unwrap_or(0);
    let switch = |on| if on { "on" } else { "off" };
    for (key, text) in [
        ("packets", format!("{} of {}", store.entry_count, store.capacity)),
        ("hits", format!("{} of {asked} ({share} %)", store.hit_count)),
        ("admit", switch(admits).to_owned()),
        ("serve", switch(serves).to_owned()),
    ] {
        output::out_line(&format!("{key:<10} {text}"));
    }
    Ok(())
}
