//! Configuration files and the errors in them; the sample is read as users would.

use super::*;

fn parse(text: &str) -> Result<ForwarderFile, String> {
    toml::from_str(text).map_err(|error| error.to_string())
}

fn applied(text: &str) -> NodeConfig {
    let mut config = NodeConfig::default();
    parse(text).unwrap().apply(&mut config).unwrap();
    config
}

#[test]
fn what_a_file_does_not_say_stays_as_it_is() {
    let (empty, default) = (applied(""), NodeConfig::default());
    assert_eq!(format!("{empty:?}"), format!("{default:?}"));
}

#[test]
fn options_reach_the_node() {
    let config = applied(
        r#"
        listen = ["unix:///run/nfd/nfd.sock", "tcp://*"]
        socket_mode = "0660"
        content_store_mib = 8
        udp_idle_s = 30
        reliability = true
        trace = "all"
        strategy = { "/" = "best-route", "/lab" = "multicast" }
        [[route]]
        prefix = "/lab"
        to = "tcp://lab.example.org"
        cost = 10
        capture = true
        [[face]]
        to = "udp4://192.0.2.7"
        mtu = 8800
        "#,
    );
    assert_eq!(config.listen.len(), 2);
    assert_eq!(config.socket_access.mode, 0o660);
    assert_eq!(config.forwarder.cs_bytes_max, 8 << 20);
    assert_eq!(config.udp_idle_ns, 30_000_000_000);
    assert_eq!(config.forwarder.trace, TracePolicy::All);
    assert_eq!(config.strategies.len(), 2);
    assert_eq!((config.routes[0].cost, config.routes[0].flags), (10, 3));
    assert_eq!(config.faces[0].options.mtu_bytes, Some(8800));
    assert!(config.faces[0].options.reliability, "the default for all faces");
}

#[test]
fn mistakes_are_refused_with_the_place() {
    for (text, words) in [
        ("listen = [\"gopher://x\"]", "gopher"),
        ("lisen = []", "lisen"),
        ("[[route]]\nprefix = \"/a\"", "to"),
        ("[[route]]\nprefix = \"lab\"\nto = \"tcp://h\"", "line 2"),
        ("[[route]]\nprefix = \"/a\"\nto = \"tcp://h\"\nweight = 3", "weight"),
        ("socket_mode = \"rw\"", "rw"),
        ("trace = \"yes\"", "yes"),
        ("content_store_policy = \"best\"", "best"),
        ("pit_entries = -1", "-1"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(words), "{text}: {error}");
    }
    for (text, words) in [
        ("udp_mtu = 100", "udp_mtu must be 576"),
        ("strategy = { \"/\" = \"worst-route\" }", "worst-route"),
        ("[[route]]\nprefix = \"/a\"\nto = \"tcp://*\"", "tcp://*"),
        ("[[allow_register]]\nprefix = \"/a\"", "/a"),
        ("[[allow_register]]\nprefix = \"/a\"\nkey = \"x\"\ncertificate = \"y\"", "exactly one"),
    ] {
        let error = parse(text).unwrap().apply(&mut NodeConfig::default()).unwrap_err();
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
}

#[test]
fn the_sample_is_the_manual() {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Whole {
        forwarder: ForwarderFile,
    }
    let sample = include_str!("../../../../deploy/byname-forward.toml");
    // What is commented out with `#` and no space is an option with an example.
    let all: String = (sample.lines())
        .map(|line| match line.strip_prefix('#') {
            Some(option) if option.starts_with(|c: char| c.is_ascii_lowercase() || c == '[') => {
                format!("{option}\n")
            }
            Some(more) if more.starts_with('"') || more.starts_with(']') => format!("{more}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    for text in [sample, &all] {
        let whole: Whole = toml::from_str(text).unwrap_or_else(|error| panic!("{error}"));
        whole.forwarder.apply(&mut NodeConfig::default()).unwrap();
    }
    let whole: Whole = toml::from_str(&all).unwrap();
    // A debug dump of a section in which every option is set has no `None`.
    let dump = format!(
        "{:?}",
        ForwarderFile { face: vec![], route: vec![], allow_register: vec![], ..whole.forwarder }
    );
    assert!(!dump.contains("None"), "an option is missing from the sample: {dump}");
}
