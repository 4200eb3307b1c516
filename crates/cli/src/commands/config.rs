//! `byname config`: what is set, where it came from, whether a file is right.

use crate::exit::{Failure, Outcome};
use crate::output;
use crate::paths::Paths;
use crate::settings::{Settings, parse_file};
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
        ConfigCommand::Show { origin, json } => show(&Settings::load(paths)?, *origin, *json),
        ConfigCommand::Check { file: Some(file) } => {
            let text = std::fs::read_to_string(file).map_err(|e| Failure::disk(file, e))?;
            let parsed = parse_file(file, &text)?;
            let count = parsed.options.len() + parsed.forwarder.len();
            output::err_line(&format!("{}: fine, {count} options", file.display()));
            Ok(())
        }
        ConfigCommand::Check { file: None } => {
            Settings::load(paths)?;
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
                "name": key.name, "value": setting.value, "origin": setting.origin, "env": key.env,
            }));
            continue;
        }
        let mut row = vec![key.name.to_owned(), setting.value.to_string()];
        row.push(if origin { setting.origin.clone() } else { key.help.to_owned() });
        rows.push(row);
    }
    for (name, setting) in settings.forwarder_options() {
        if json {
            output::json_line(json!({
                "name": name, "value": setting.value, "origin": setting.origin, "env": null,
            }));
            continue;
        }
        let what = if origin { setting.origin.as_str() } else { "see byname-forward.toml" };
        rows.push(vec![name, setting.value.to_string(), what.to_owned()]);
    }
    if !json {
        output::table(&["OPTION", "VALUE", if origin { "FROM" } else { "WHAT" }], &rows);
    }
    Ok(())
}
