//! The list of mutants, as cargo-mutants prints it.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command::output_of;

/// A change of the code in one place.
#[derive(Debug, Clone)]
pub(super) struct Mutant {
    /// Place and change, in words.
    pub(super) name: String,
    /// Path below the workspace root.
    pub(super) file: String,
    pub(super) package: String,
    /// Kind of the change.
    pub(super) genre: String,
    /// What stands there instead.
    pub(super) replacement: String,
    /// Line and column, both from 1, where what is replaced starts.
    pub(super) start: (usize, usize),
    /// Those behind it.
    pub(super) end: (usize, usize),
    pub(super) return_type: String,
}

/// Mutants that cargo-mutants finds with these options.
pub(super) fn read(root: &Path, options: &[&str]) -> Result<Vec<Mutant>> {
    let mut arguments = vec!["mutants", "--list", "--json"];
    arguments.extend(options);
    let printed = output_of(root, "cargo", &arguments)?;
    let list: Vec<Value> = serde_json::from_slice(&printed).context("a list in JSON")?;
    list.iter().map(parse).collect()
}

fn parse(value: &Value) -> Result<Mutant> {
    let text = |key: &str| {
        let field = value.get(key).and_then(Value::as_str);
        field.map(str::to_owned).with_context(|| format!("a mutant without {key}"))
    };
    let place = |key: &str| {
        let number = value.pointer(&format!("/span/{key}")).and_then(Value::as_u64);
        number.map(|it| it as usize).with_context(|| format!("a mutant without its {key}"))
    };
    let return_type = value.pointer("/function/return_type").and_then(Value::as_str);
    Ok(Mutant {
        name: text("name")?,
        file: text("file")?,
        package: text("package")?,
        genre: text("genre")?,
        replacement: text("replacement")?,
        start: (place("start/line")?, place("start/column")?),
        end: (place("end/line")?, place("end/column")?),
        return_type: return_type.unwrap_or_default().to_owned(),
    })
}
