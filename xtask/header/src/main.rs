//! Prints the header of the C interface: `byname-header CONFIG SOURCE…`. `cargo xtask header` runs
//! it.

use anyhow::{Context, Result, anyhow};
use cbindgen::{Builder, Config};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let config = arguments.next().context("usage: byname-header CONFIG SOURCE...")?;
    let config =
        Config::from_file(config).map_err(|error| anyhow!("the configuration: {error}"))?;
    let builder = arguments.fold(Builder::new().with_config(config), Builder::with_src);
    builder.generate()?.write(std::io::stdout());
    Ok(())
}
