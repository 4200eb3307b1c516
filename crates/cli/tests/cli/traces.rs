//! Where answers came from: `explain` and `get -v` through two forwarders as processes.

use crate::harness::{Daemon, Home, below, free_port, noise, write};
use serde_json::Value;

/// A publisher behind its forwarder, and a reader's forwarder that reaches that one over UDP, which
/// counts as another machine.
struct Scene {
    reader: Home,
    near: Daemon,
    near_config: std::path::PathBuf,
    connect: String,
    link: String,
    peer: String,
    _publisher: Home,
    _far: Daemon,
    _server: Daemon,
}

fn scene(far_trace: &str) -> Scene {
    let (publisher, reader) = (Home::new(), Home::new());
    let dir = publisher.work("d");
    write(&dir.join("file"), &noise(100_000, 1));
    let port = free_port();
    let far_socket = format!("unix://{}", publisher.path().join("far.sock").display());
    let far_config = publisher.path().join("far.toml");
    let listen = format!("listen = [\"{far_socket}\", \"udp://127.0.0.1:{port}\"]");
    write(&far_config, format!("[forwarder]\n{listen}\n{far_trace}\n").as_bytes());
    let args = ["forward", "--config", far_config.to_str().unwrap()];
    let far = publisher.start(&args, "listening on udp");
    let args = ["serve", dir.to_str().unwrap(), "--name", "/lab/d", "--connect", &far_socket];
    let server = publisher.start(&args, "byname:/");
    let link = server.line_with("byname:/");

    let connect = format!("unix://{}", reader.path().join("near.sock").display());
    let near_config = reader.path().join("near.toml");
    let peer = format!("udp4://127.0.0.1:{port}");
    let text = format!(
        "[forwarder]\nlisten = [\"{connect}\"]\n\
         [[forwarder.route]]\nprefix = \"/lab\"\nto = \"{peer}\"\n"
    );
    write(&near_config, text.as_bytes());
    let args = ["forward", "--config", near_config.to_str().unwrap()];
    let near = reader.start(&args, "near.sock");
    Scene {
        reader,
        near,
        near_config,
        connect,
        link,
        peer,
        _publisher: publisher,
        _far: far,
        _server: server,
    }
}

impl Scene {
    /// The hops of each step that `explain` reports with this word, the nearest first.
    fn explained(&self, step: &str) -> Vec<Vec<Value>> {
        let file = below(&self.link, "file");
        let args = ["explain", &file, "--connect", &self.connect, "--json"];
        let lines = self.reader.run(&args).ok().stdout();
        let steps = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let of_step = steps.filter(|it| it["step"] == step);
        of_step.map(|it| it["hops"].as_array().unwrap().clone()).collect()
    }

    fn get(&self, flags: &[&str]) -> (String, String) {
        let file = below(&self.link, "file");
        let target = self.reader.path().join("copy");
        let _ = std::fs::remove_file(&target);
        let mut args = vec!["get", &file, "-o", target.to_str().unwrap()];
        args.extend(["--connect", &self.connect]);
        args.extend(flags);
        let finished = self.reader.run(&args).ok();
        (finished.stdout(), finished.stderr())
    }
}

fn origins(hops: &[Value]) -> Vec<&str> {
    hops.iter().map(|hop| hop["origin"].as_str().unwrap()).collect()
}

#[test]
fn explain_names_each_hop_and_the_cache_and_no_address_of_others() {
    let scene = scene("");
    let content = scene.explained("content");
    assert_eq!(origins(&content[0]), ["neighbour", "program", "publisher"]);
    assert_eq!(content[0][0]["peer"], scene.peer.as_str());
    assert!(content[0][0]["node"].is_string() && content[0][0]["waited_us"].is_u64());
    // That forwarder's operator has not said that others may know its name.
    assert!(content[0][1]["node"].is_null() && content[0][1]["peer"].is_null());
    assert_eq!(origins(&content[1]), ["cache"], "the second time it is near");
    let file = below(&scene.link, "file");
    let words = scene.reader.run(&["explain", &file, "--connect", &scene.connect]).ok().stdout();
    assert!(words.contains("from its cache"), "{words}");
}

#[test]
fn get_tells_with_v_from_where_how_many_answers_came() {
    let scene = scene("trace = \"all\"");
    let (_, said) = scene.get(&[]);
    assert!(!said.contains("answers"), "{said}");
    let (_, said) = scene.get(&["-v"]);
    assert!(said.contains("from its cache"), "{said}");
    scene.reader.run(&["cs", "erase", "/lab", "--connect", &scene.connect]).ok();
    let (json, _) = scene.get(&["-v", "--json"]);
    let answers = serde_json::from_str::<Value>(&json).unwrap()["answers"].clone();
    let most = &answers[0];
    assert!(most["count"].as_u64().unwrap() >= 12, "100 000 octets are 13 segments: {answers}");
    let hops = most["hops"].as_array().unwrap();
    assert_eq!(origins(hops), ["neighbour", "cache"], "the far one still has them: {answers}");
    assert!(hops[1]["node"].is_string(), "its operator lets everybody know: {answers}");
}

/// Each source has a connection of its own.
#[test]
fn get_tells_with_v_how_the_answers_of_each_of_several_sources_came() {
    let home = Home::new();
    let dir = home.work("d");
    write(&dir.join("large"), &noise(40_000_000, 1));
    let uris = [(); 2].map(|()| format!("tcp://127.0.0.1:{}", free_port()));
    let args = ["serve", "d", "--name", "/lab/d", "--listen", &uris[0], "--listen", &uris[1]];
    let server = home.start(&args, "byname:/");
    let large = server.link_to("large");
    home.run(&["stat", "--checksum", "b3", &large]).ok();
    let get = ["get", &large, "-v", "--no-keep", "--json", "-o", "one"];
    let told: Value = serde_json::from_str(&home.run(&get).ok().stdout()).unwrap();
    let sources = told["sources"].as_array().unwrap();
    assert_eq!(sources.len(), 2, "{told}");
    for source in sources.iter().filter(|source| source["bytes"].as_u64().unwrap() > 0) {
        let hops = source["answers"][0]["hops"].as_array().unwrap();
        assert_eq!(origins(hops), ["publisher"], "{source}");
        assert!(source["answers"][0]["count"].as_u64().unwrap() > 100, "{source}");
    }
    let said = home.run(&["get", &large, "-v", "--no-keep", "-o", "other"]).ok().stderr();
    let of_sources = |uri: &String| said.contains(&format!("{uri}: "));
    assert!(uris.iter().any(of_sources) && said.contains("a file server"), "{said}");
}

#[test]
fn a_forwarder_that_is_told_to_stop_it_tells_nothing() {
    let scene = scene("");
    assert_eq!(scene.explained("content").len(), 2);
    let text = std::fs::read_to_string(&scene.near_config).unwrap();
    let text = text.replace("[forwarder]\n", "[forwarder]\ntrace = \"off\"\n");
    write(&scene.near_config, text.as_bytes());
    crate::harness::signal(scene.near.pid(), "HUP");
    scene.near.await_line("taken over");
    assert!(scene.explained("content").iter().all(Vec::is_empty));
    let (_, said) = scene.get(&["-v"]);
    assert!(said.contains("nobody on the path reports where they came from"), "{said}");
}

#[test]
fn a_server_that_is_asked_directly_says_that_it_is_a_mirror() {
    let scene = scene("");
    let copy = scene.reader.path().join("mirror");
    let args = ["get", "-r", &scene.link, "-o", copy.to_str().unwrap()];
    scene.reader.run(&[&args[..], &["--connect", &scene.connect]].concat()).ok();
    let uri = format!("tcp://127.0.0.1:{}", free_port());
    let mirror = Home::new();
    let args = ["serve", "--mirror", copy.to_str().unwrap(), "--name", "/lab/d", "--listen", &uri];
    let _mirror = mirror.start(&args, "byname:/");
    let key = scene.link.split(",key=").nth(1).unwrap();
    let link = format!("byname:/lab/d/file,via={uri},key={key}");
    let target = scene.reader.path().join("from-mirror");
    let args = ["get", &link, "-v", "-o", target.to_str().unwrap()];
    let said = scene.reader.run(&args).ok().stderr();
    assert!(said.contains("a file server: a mirror"), "{said}");
}
