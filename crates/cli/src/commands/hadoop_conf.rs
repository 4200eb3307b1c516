//! `byname hadoop-conf`: what Hadoop has to know of a name.

use crate::exit::{Failure, Outcome};
use crate::{output, settings};
use byname_profile::Paths;

/// Print the properties of Hadoop's core-site.xml for a link or a name.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname hadoop-conf byname:/lab,via=tcp://host:6363,key=SHA256:… > core-site.xml
  byname hadoop-conf /lab/run7 --authority run7

Whoever has a key in the site above the name writes as its user, everybody else reads. The jar is
made by `make java`; docs/hadoop.md.")]
pub(crate) struct Args {
    /// Link or name that paths begin at.
    #[arg(value_name = "NAME|LINK")]
    name: String,
    /// Short name for it: paths are ndn://AUTHORITY/… Default: the last part of the name.
    #[arg(long, value_name = "AUTHORITY")]
    authority: Option<String>,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let link = settings::profile(paths)?.link(&args.name)?;
    let authority = match &args.authority {
        Some(given) => given.clone(),
        None => {
            let last = link.name.view().last().map(|last| last.value.to_vec());
            let text = last.and_then(|last| String::from_utf8(last).ok()).unwrap_or_default();
            text.to_lowercase()
        }
    };
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    if authority.is_empty() || !authority.chars().all(is_plain) {
        let text = format!("{authority:?} makes no authority of a URI");
        return Err(Failure::usage(text).hint("give one of a-z, 0-9, - and .: --authority lab"));
    }
    let text = escaped(&link.to_string());
    for line in [
        "<?xml version=\"1.0\"?>",
        "<!-- What Hadoop and Spark need besides byname-hadoop.jar in their class path. -->",
        "<configuration>",
        &format!("  <!-- ndn://{authority}/a is a below this link. -->"),
        "  <property>",
        &format!("    <name>fs.ndn.link.{authority}</name>"),
        &format!("    <value>{text}</value>"),
        "  </property>",
        "  <!-- For Spark, which looks for file systems before it loads the jars it is told. -->",
        "  <property>",
        "    <name>fs.ndn.impl</name>",
        "    <value>byname.hadoop.NdnFileSystem</value>",
        "  </property>",
        "  <!-- For YARN and other users of FileContext. -->",
        "  <property>",
        "    <name>fs.AbstractFileSystem.ndn.impl</name>",
        "    <value>byname.hadoop.NdnFs</value>",
        "  </property>",
        "  <!-- A rename is one step of the site, so jobs commit by renaming once. -->",
        "  <property>",
        "    <name>mapreduce.fileoutputcommitter.algorithm.version</name>",
        "    <value>1</value>",
        "  </property>",
        "</configuration>",
    ] {
        output::out_line(line);
    }
    Ok(())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn links_with_ampersands_are_xml() {
        assert_eq!(escaped("byname:/a?via=x&key=<y>"), "byname:/a?via=x&amp;key=&lt;y&gt;");
    }
}
