//! The C interface: programs in C that read a published tree through `libbyname.so`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::disks::Site;
use crate::harness::{Home, Up, noise, wait_for, write};

/// The crate that has the interface.
fn ffi() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ffi")
}

/// The library, which cargo puts beside the tests.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.with_file_name("libbyname.so")
}

/// Runs a program; its output if it fails.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let text = text.concat();
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    text
}

/// A published tree, and programs to read it.
struct Bench {
    up: Up,
    publisher: Home,
    reader: Home,
}

impl Bench {
    fn new() -> Self {
        let (publisher, reader) = (Home::new(), Home::new());
        let dir = publisher.work("run7");
        write(&dir.join("events.root"), &noise(3_000_000, 1));
        write(&dir.join("large.bin"), &noise(8_000_000, 2));
        write(&dir.join("log.txt"), b"all went well");
        write(&dir.join("empty"), b"");
        write(&dir.join("unit"), &noise(8192, 3));
        write(&dir.join("100% of it"), b"escaped");
        write(&dir.join("naïve"), b"UTF-8");
        std::fs::create_dir(dir.join("a folder")).unwrap();
        std::fs::create_dir(dir.join("many")).unwrap();
        for index in 0..500 {
            write(&dir.join(format!("many/file{index:03}")), &vec![b'x'; index]);
        }
        let up = publisher.up(&dir, "/lab/run7");
        std::os::unix::fs::symlink(library(), reader.path().join("libbyname.so")).unwrap();
        std::os::unix::fs::symlink(library(), reader.path().join("libbyname.so.1")).unwrap();
        std::fs::create_dir(reader.path().join("home")).unwrap();
        Bench { up, publisher, reader }
    }

    /// Builds a program with all warnings as errors.
    fn build(&self, compiler: &[&str], sources: &[PathBuf]) -> PathBuf {
        let program = self.reader.path().join("program");
        let mut command = Command::new(compiler[0]);
        command.args(&compiler[1..]).args([
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            "-g",
            "-O1",
        ]);
        command.arg("-I").arg(ffi().join("include")).args(sources).arg("-o").arg(&program);
        run(command.arg("-L").arg(self.reader.path()).args(["-lbyname", "-pthread"]));
        program
    }

    fn build_tests(&self, options: &[&str]) -> PathBuf {
        let names = ["main", "basics", "listings", "started", "cancel", "misuse", "threads"];
        let file = |name: &&str| ffi().join(format!("tests/c/{name}.c"));
        let sources: Vec<PathBuf> = names.iter().chain(&["leaks", "site"]).map(file).collect();
        self.build(&[&["cc", "-std=c11", "-D_DEFAULT_SOURCE"], options].concat(), &sources)
    }

    /// Runs a program with a word, the link, the tree, and the reader's home.
    fn run(&self, program: &Path, word: Option<&str>) -> String {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", self.reader.path());
        command.args(word).arg(&self.up.link).arg(self.publisher.path().join("run7"));
        run(command.arg(self.reader.path().join("home")))
    }
}

/// Runs tests under AddressSanitizer, which sees what the library does with memory of the program,
/// and at the end what is left of the memory of both.
fn passes(tests: &[&str]) {
    let bench = Bench::new();
    let program = bench.build_tests(&["-fsanitize=address,undefined"]);
    for test in tests {
        assert_eq!(bench.run(&program, Some(test)), format!("{test}: passed\n"));
    }
}

#[test]
fn c_programs_stat_list_open_and_read() {
    passes(&["basics", "listings"]);
}

#[test]
fn cpp_programs_own_what_they_open() {
    let bench = Bench::new();
    let program = bench.build(
        &["c++", "-std=c++17", "-fsanitize=address,undefined"],
        &[ffi().join("tests/cpp/main.cpp")],
    );
    assert_eq!(bench.run(&program, None), "passed\n");
}

#[test]
fn the_program_of_the_readme_works_with_what_is_installed() {
    let bench = Bench::new();
    let readme = std::fs::read_to_string(ffi().join("README.md")).unwrap();
    let program = readme.split("```c\n").nth(1).and_then(|rest| rest.split("```").next());
    let source = bench.reader.path().join("example.c");
    write(&source, program.expect("there is one").as_bytes());
    let prefix = bench.reader.work("prefix");
    let install = ffi().join("../../scripts/install-library");
    run(Command::new(install).arg(library()).env("PREFIX", &prefix).env_remove("DESTDIR"));
    let mut config = Command::new("pkg-config");
    config.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let flags = run(config.args(["--cflags", "--libs", "byname"]));
    let program = bench.reader.path().join("example");
    let flags: Vec<&str> = flags.split_whitespace().collect();
    run(Command::new("cc").arg(&source).args(flags).arg("-o").arg(&program));
    let mut command = Command::new(&program);
    command.env("LD_LIBRARY_PATH", prefix.join("lib"));
    command.env("BYNAME_HOME", bench.reader.path().join("home"));
    let text = run(command.args([bench.up.link.as_str(), "log.txt"]));
    assert_eq!(text, "all went well");
    // What `ls` prints of a directory, put into the link.
    let odd = bench.publisher.path().join("run7/50%25, via=x?y=z");
    std::fs::create_dir(&odd).unwrap();
    write(&odd.join("log"), b"pasted");
    let listed = || bench.reader.run(&["ls", "--fresh", &bench.up.link]).ok().stdout();
    let is_odd = |line: &&str| line.starts_with("50");
    wait_for("the directory", || listed().lines().any(|line| is_odd(&line)), listed);
    let listed = listed();
    let odd = listed.lines().find(is_odd).unwrap().trim_end_matches('/');
    let mut again = Command::new(&program);
    again.env("LD_LIBRARY_PATH", prefix.join("lib"));
    again.env("BYNAME_HOME", bench.reader.path().join("home"));
    assert_eq!(run(again.args([bench.up.link_to(odd).as_str(), "log"])), "pasted");
}

#[test]
fn the_library_exports_what_the_header_declares_with_a_version() {
    let text = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library()));
    let mut exported: Vec<&str> =
        text.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    exported.retain(|symbol| *symbol != "BYNAME_1");
    let header = std::fs::read_to_string(ffi().join("include/byname.h")).unwrap();
    let functions = header.split("extern \"C\" {").last().expect("it has functions");
    let mut declared: Vec<String> = functions
        .lines()
        .filter_map(|line| line.split_once('(')?.0.split([' ', '*']).next_back())
        .filter(|name| name.starts_with("byname_"))
        .map(|name| format!("{name}@@BYNAME_1"))
        .collect();
    declared.sort();
    exported.sort_unstable();
    assert!(declared.len() > 20, "{declared:?}");
    assert_eq!(exported, declared);
}

#[test]
fn started_calls_end_with_their_call_back_and_can_be_cancelled() {
    passes(&["started", "cancel"]);
}

#[test]
fn misuse_of_any_function_is_an_error() {
    passes(&["misuse"]);
}

#[test]
fn hundreds_of_threads_share_a_session() {
    passes(&["threads"]);
}

#[test]
fn c_programs_write_to_a_site_and_see_what_they_wrote() {
    let bench = Bench::new();
    let program = bench.build_tests(&["-fsanitize=address,undefined"]);
    let site = Site::new(3, 2);
    let mut command = Command::new(&program);
    command.env("LD_LIBRARY_PATH", bench.reader.path());
    let link = site.link();
    let key = link.split_once("key=").map(|(_, key)| key).expect("a key");
    let link = format!("byname:/lab?via={}&key={key}", site.socket);
    command.args(["site", &link]).arg(bench.reader.path()).arg(site.home.path().join("home"));
    assert_eq!(run(&mut command), "site: passed\n");
}

#[test]
fn ten_thousand_opens_leave_nothing_behind() {
    // Without the sanitizer, which keeps freed memory for a while.
    let bench = Bench::new();
    let program = bench.build_tests(&[]);
    assert_eq!(bench.run(&program, Some("leaks")), "leaks: passed\n");
}
