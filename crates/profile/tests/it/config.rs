//! Options: who wins, and what is said about a mistake.

use byname_profile::settings::{OPTIONS, Origin, Value, check};
use byname_profile::{ConfigError, Environment, Paths, Profile, Settings};
use std::path::Path;

fn home(text: &str) -> (tempfile::TempDir, Paths) {
    let home = tempfile::tempdir().unwrap();
    let paths = Paths::below(home.path());
    std::fs::create_dir_all(paths.config_file.parent().unwrap()).unwrap();
    std::fs::write(&paths.config_file, text).unwrap();
    (home, paths)
}

#[test]
fn defaults_are_of_their_kind() {
    let settings = Settings::defaults();
    assert_eq!(settings.all().count(), OPTIONS.len());
    assert_eq!(settings.number("client.timeout_s"), 15);
    assert!(!settings.switch("server.hidden"));
    assert_eq!(settings.text("client.connect"), None);
}

#[test]
fn the_environment_wins_over_the_file_and_the_file_over_the_default() {
    let text = "[client]\nretries = 9\ntransfers = 0x10\nconnect = \"tcp://a\"\n\
                [server]\nhidden = true\n[forwarder]\nlisten = [\"udp://*\", \"tcp://*\"]\n";
    let (_home, paths) = home(text);
    let environment = Environment::of([("BYNAME_RETRIES", "7"), ("BYNAME_LISTEN", "tcp://b, ")]);
    let settings = Settings::load(&paths, &environment).unwrap();
    assert_eq!((settings.number("client.retries"), settings.number("client.transfers")), (7, 16));
    assert_eq!(settings.text("client.connect"), Some("tcp://a"));
    assert!(settings.switch("server.hidden"));
    assert_eq!(settings.list("forwarder.listen"), ["tcp://b"]);
    let origin = |wanted: &str| {
        let found = settings.all().find(|(option, _)| option.name == wanted).unwrap();
        found.1.origin.clone()
    };
    assert_eq!(origin("client.retries"), Origin::Environment("BYNAME_RETRIES"));
    assert_eq!(origin("client.transfers"), Origin::File(paths.config_file.clone()));
    assert_eq!(origin("client.bwlimit"), Origin::Default);
    let without = Settings::load(&paths, &Environment::default()).unwrap();
    assert_eq!(without.list("forwarder.listen"), ["udp://*", "tcp://*"]);
}

#[test]
fn values_are_shown_as_a_file_has_them() {
    for (value, text) in [
        (Value::Text("a \"b\"".into()), "'a \"b\"'"),
        (Value::Number(5), "5"),
        (Value::Switch(true), "true"),
        (Value::List(vec!["a".into(), "b".into()]), "[\"a\", \"b\"]"),
    ] {
        assert_eq!(value.to_string(), text);
    }
}

#[test]
fn mistakes_have_file_line_and_option() {
    for (bad, line, words) in [
        ("[client]\n\nretires = 9\n", 3, "unknown option client.retires"),
        ("[client]\nretries = \"x\"\n", 2, "client.retries wants a whole number, not \"x\""),
        ("[client]\nretries = -1\n", 2, "client.retries wants a whole number, not -1"),
        ("[client]\nconnect = 1\n", 2, "client.connect wants a text"),
        ("[forwarder]\n\nlisten = [\"a\", 1]\n", 3, "forwarder.listen wants a list of texts"),
        ("[server]\nhidden = \"yes\"\n", 2, "server.hidden wants true or false"),
        ("# a\nretries = 9\n", 2, "option \"retries\" stands outside a [section]"),
        ("[clients]\nretries = 9\n", 2, "unknown option clients.retries"),
        ("[server]\nhidden = true\n[client\n", 3, ""),
    ] {
        let (_home, paths) = home(bad);
        let error = Settings::load(&paths, &Environment::default()).unwrap_err();
        let place = format!("{}:{line}: ", paths.config_file.display());
        let text = error.to_string();
        assert!(text.starts_with(&place) && text.contains(words), "{text}");
        assert_eq!(error.errno(), rustix::io::Errno::INVAL.raw_os_error());
    }
}

#[test]
fn a_variable_of_the_wrong_kind_is_named() {
    let environment = Environment::of([("BYNAME_TIMEOUT", "soon")]);
    let (_home, paths) = home("");
    let error = Settings::load(&paths, &environment).unwrap_err();
    let text = "environment variable BYNAME_TIMEOUT: client.timeout_s wants a whole number, not \
                \"soon\"";
    assert_eq!(error.to_string(), text);
}

#[test]
fn options_of_the_forwarder_alone_are_left_to_it() {
    let text = "[forwarder]\npit_entries = 9\n[[forwarder.route]]\nprefix = \"/a\"\n";
    let (_home, paths) = home(text);
    let settings = Settings::load(&paths, &Environment::default()).unwrap();
    assert_eq!(settings.files().last().unwrap().text, text);
    assert_eq!(check(Path::new("x"), "[forwarder]\nlisten = []\npit_entries = 1\n").unwrap(), 1);
}

#[test]
fn files_that_are_missing_or_no_text() {
    let (home, paths) = home("");
    let none = home.path().join("none.toml");
    let error = Settings::load_only(&none, &Environment::default()).unwrap_err();
    assert_eq!(error.errno(), rustix::io::Errno::NOENT.raw_os_error());
    assert!(error.to_string().contains("none.toml"), "{error}");
    std::fs::write(&paths.config_file, b"[client]\xff").unwrap();
    let error = Settings::load(&paths, &Environment::default()).unwrap_err();
    assert!(matches!(&error, ConfigError::NotText { path } if *path == paths.config_file));
    std::fs::remove_file(&paths.config_file).unwrap();
    assert!(Settings::load(&paths, &Environment::default()).is_ok());
}

#[test]
fn a_profile_takes_its_options_from_one_file() {
    let (home, paths) = home("[client]\nretries = 9\n");
    let file = home.path().join("door.toml");
    let environment = Environment::of([("BYNAME_TIMEOUT", "4")]);
    let open = || Profile::with_file(paths.clone(), environment.clone(), &file);
    assert_eq!(open().unwrap_err().errno(), rustix::io::Errno::NOENT.raw_os_error());
    std::fs::write(&file, "[client]\ntransfers = 3\n").unwrap();
    let profile = open().unwrap();
    let number = |name| profile.settings().number(name);
    assert_eq!((number("client.transfers"), number("client.timeout_s")), (3, 4));
    assert_eq!(number("client.retries"), 5, "the user's own file is not read");
    assert_eq!(profile.paths().config_file, file);
}
