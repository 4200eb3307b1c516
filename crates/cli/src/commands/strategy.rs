//! `byname strategy`: how a forwarder chooses among the routes of a prefix.

use crate::exit::{Code, Failure, Outcome};
use crate::manager::{self, Manager, ManagerArgs, prefix};
use crate::output;
use byname_packet::Name;
use byname_packet::mgmt::ControlParameters;
use byname_profile::Paths;
use serde_json::json;

/// Prefix of the names of strategies.
const PREFIX: &str = "/localhost/nfd/strategy";

/// Show and choose the strategies of a forwarder.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname strategy list
  byname strategy set /lab asf
  byname strategy set /lab/sync multicast
  byname strategy unset /lab

Strategies of byname: best-route, multicast, asf, random, access. Parameters are further
components: best-route/v=5/retx-suppression-initial~50.")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show which prefix has which strategy.
    List {
        #[command(flatten)]
        manager: ManagerArgs,
    },
    /// Choose the strategy of a prefix and what lies below.
    Set {
        /// The names it is for.
        prefix: String,
        /// Its last components, or its whole name.
        strategy: String,
        #[command(flatten)]
        manager: ManagerArgs,
    },
    /// Let a prefix have the strategy of the next shorter one.
    Unset {
        /// The names it was for.
        prefix: String,
        #[command(flatten)]
        manager: ManagerArgs,
    },
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.action {
        Action::List { manager } => list(manager, paths),
        Action::Set { prefix: name, strategy, manager } => {
            let (name, strategy) = (prefix(name)?, full_name(strategy)?);
            let parameters = ControlParameters {
                name: Some(name.clone()),
                strategy: Some(strategy),
                ..ControlParameters::default()
            };
            let answer = Manager::open(manager, paths)?
                .command("strategy-choice/set", &parameters)
                .map_err(with_strategies)?;
            let shown = output::name(name.view());
            let chosen = answer.strategy.unwrap_or_default().to_string();
            let fields = json!({ "prefix": shown, "strategy": chosen });
            manager::done(manager, &format!("{shown} has {chosen}"), fields);
            Ok(())
        }
        Action::Unset { prefix: name, manager } => {
            let name = prefix(name)?;
            let parameters =
                ControlParameters { name: Some(name.clone()), ..ControlParameters::default() };
            Manager::open(manager, paths)?.command("strategy-choice/unset", &parameters)?;
            let shown = output::name(name.view());
            let line = format!("{shown} has the strategy of the next shorter prefix");
            manager::done(manager, &line, json!({ "prefix": shown }));
            Ok(())
        }
    }
}

/// Adds which strategies there are, if the one that was named is not.
fn with_strategies(failure: Failure) -> Failure {
    if failure.code != Code::NotFound {
        return failure;
    }
    failure.hint(format!("byname's forwarder has {}", byname_node::strategy_labels().join(", ")))
}

/// The whole name of a strategy, which may be given by its last components.
pub(crate) fn full_name(text: &str) -> Outcome<Name> {
    let whole = if text.starts_with('/') || text.starts_with("ndn:") {
        text.to_owned()
    } else {
        format!("{PREFIX}/{text}")
    };
    whole.parse().map_err(|error| Failure::usage(format!("{text}: {error}")))
}

fn list(args: &ManagerArgs, paths: &Paths) -> Outcome {
    let mut choices = Manager::open(args, paths)?.strategies()?;
    choices.sort_by(|one, other| one.name.cmp(&other.name));
    if args.json {
        for choice in &choices {
            output::json_line(json!({
                "prefix": output::name(choice.name.view()),
                "strategy": choice.strategy.to_string(),
            }));
        }
        return Ok(());
    }
    let rows: Vec<Vec<String>> = choices
        .iter()
        .map(|choice| vec![output::name(choice.name.view()), choice.strategy.to_string()])
        .collect();
    output::table(&["PREFIX", "STRATEGY"], &rows);
    Ok(())
}
