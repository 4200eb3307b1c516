//! `byname config`: what is set, where it came from, whether a file is right.

use crate::exit::{Failure, Outcome};
use crate::output;
use crate::settings;
use byname_profile::settings::{FORWARDER_SECTION, Value};
use byname_profile::{Paths, Settings};
use serde_json::json;
use std::path::PathBuf;

/// Show or check the configuration.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigCommand {
    /// Print every option with its value.
    Show {
        /// Say where each value came from.
        #[arg(long)]
        origin: bool,
        /// One JSON object per option.
        #[arg(long)]
        json: bool,
    },
    /// Check a file (by default the ones in use) without using it.
    Check {
        /// The file.
        file: Option<PathBuf>,
    },
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.command {
        ConfigCommand::Show { origin, json } => {
            show(settings::profile(paths)?.settings(), *origin, *json)
        }
        ConfigCommand::Check { file: Some(file) } => {
            let text = std::fs::read_to_string(file).map_err(|e| Failure::disk(file, e))?;
            let count = settings::check(file, &text)?;
            output::err_line(&format!("{}: fine, {count} options", file.display()));
            Ok(())
        }
        ConfigCommand::Check { file: None } => {
            settings::profile(paths)?;
            output::err_line("the configuration in use is fine");
            Ok(())
        }
    }
}

fn show(settings: &Settings, origin: bool, json: bool) -> Outcome {
    let mut rows = Vec::new();
    for (key, setting) in settings.all() {
        if json {
            output::json_line(json!({
                "name": key.name, "value": json_value(&setting.value),
                "origin": setting.origin.to_string(), "env": key.variable,
            }));
            continue;
        }
        let mut row = vec![key.name.to_owned(), setting.value.to_string()];
        row.push(if origin { setting.origin.to_string() } else { key.help.to_owned() });
        rows.push(row);
    }
    for (name, (value, from)) in settings::all_forwarder_options(settings)? {
        let name = format!("{FORWARDER_SECTION}.{name}");
        if json {
            output::json_line(json!({
                "name": name, "value": value, "origin": from.to_string(), "env": null,
            }));
            continue;
        }
        let see = || "see byname-forward.toml".to_owned();
        let what = if origin { from.to_string() } else { see() };
        let shown = value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        rows.push(vec![name, shown, what]);
    }
    if !json {
        output::table(&["OPTION", "VALUE", if origin { "FROM" } else { "WHAT" }], &rows);
    }
    Ok(())
}

fn json_value(value: &Value) -> serde_json::Value {
    match value {
        Value::Text(text) => json!(text),
        Value::Number(number) => json!(number),
        Value::Switch(switch) => json!(switch),
        Value::List(items) => json!(items),
    }
}
