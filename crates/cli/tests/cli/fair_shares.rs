//! Users and doors that ask without a pause, over several connections, and somebody who just works
//! meanwhile. What is taken, and in which order, is what the head itself has counted.

use crate::disks::{site_name, writer_as};
use crate::doors::Door;
use crate::harness::{Home, wait_for};
use crate::sites::Site;
use crate::writing::{User, site_with_directory};
use byname_catalog::{Command, Place};
use byname_site::{SiteAnswer, SpeaksFor};
use byname_writer::{CommandList, QuestionList, Writer, WriterError};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Questions that one connection has in flight: as many as programs may have.
const QUESTIONS: usize = 256;
/// The same of commands: as many as a session may have.
const COMMANDS: usize = 64;
/// Commands and questions that the head takes at a time.
const BATCH: u64 = 256;

fn mkdir(path: &str) -> Command {
    Command::MakeDirectory { place: Place::path(path.as_bytes()).unwrap(), mode: 0o755 }
}

/// The same question again and again.
struct Asking(usize);

impl QuestionList for Asking {
    fn next(&mut self) -> Option<(usize, Vec<u8>)> {
        self.0 += 1;
        Some((self.0, b"whoami".to_vec()))
    }

    fn handle_told(&mut self, _: usize, told: Result<Vec<u8>, WriterError>) {
        told.unwrap();
    }
}

/// The same command again and again.
struct Commanding(usize);

impl CommandList for Commanding {
    fn next(&mut self) -> Option<(usize, Command)> {
        self.0 += 1;
        Some((self.0, mkdir("loop")))
    }

    fn handle_answer(
        &mut self,
        _: usize,
        answer: Result<SiteAnswer, WriterError>,
    ) -> Option<Command> {
        assert!(matches!(answer, Err(WriterError::Refused(_))), "{answer:?}");
        None
    }
}

/// Does so until it is over, by every second connection each.
fn loop_on((index, mut writer): (usize, Writer), over: &AtomicBool) {
    let is_over = || over.load(Ordering::Relaxed);
    let ended = match index % 2 {
        0 => writer.ask_all(&mut Asking(0), QUESTIONS, &is_over),
        _ => writer.execute_all(&mut Commanding(0), COMMANDS, &is_over),
    };
    assert!(is_over(), "{ended:?}");
}

/// Ends the loops, also when a check fails: the scope waits for them.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Somebody who loops over connections of these homes does so while something else is done.
fn while_they_loop(writers: Vec<Writer>, work: impl FnOnce()) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in writers.into_iter().enumerate() {
            scope.spawn(|| loop_on(writer, &over));
        }
        let _ending = Ending(&over);
        work();
    });
}

fn writer(site: &Site, home: &Home, user: &str) -> Writer {
    writer_as((home, &site.home), (site_name().user(user), None), &site.socket)
}

fn through_door(site: &Site, door: &Door<'_>, user: &str) -> Writer {
    let speaks_for = SpeaksFor { user: user.to_owned(), groups: Vec::new() };
    let who = (site_name().door("xrd1"), Some(speaks_for));
    writer_as((&door.home, &site.home), who, &site.socket)
}

/// Answer to one question.
struct One(Option<Vec<u8>>, bool);

impl QuestionList for One {
    fn next(&mut self) -> Option<(usize, Vec<u8>)> {
        (!std::mem::replace(&mut self.1, true)).then(|| (0, b"top".to_vec()))
    }

    fn handle_told(&mut self, _: usize, told: Result<Vec<u8>, WriterError>) {
        self.0 = Some(told.unwrap());
    }
}

/// What the head has taken of somebody until it took this question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    taken: u64,
    held_back: u64,
}

fn counted(operator: &mut Writer, who: &str) -> Counted {
    let mut one = One(None, false);
    operator.ask_all(&mut one, 1, &|| false).unwrap();
    let told = String::from_utf8(one.0.unwrap()).unwrap();
    let lines = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut rows = lines.into_iter().filter(|it| it["kind"] == "user" && it["door"].is_null());
    let row = rows.find(|it| it["name"] == who).unwrap_or_default();
    let of = |key: &str| row[key].as_u64().unwrap_or_default();
    Counted { taken: of("commands") + of("questions"), held_back: of("held_back") }
}

/// Ten connections have 3200 commands and questions in flight. Whoever has one waits for the rest
/// of a batch and for his turn in the next, not for all of these.
#[test]
fn who_sends_one_command_is_not_behind_all_that_another_has_sent() {
    let site = site_with_directory();
    let anna = User::new(&site, "anna", "physics");
    site.read(&site.home, &["mkdir", "/lab/loop"]).ok();
    let writers = (0..20).map(|_| writer(&site, &anna.home, "anna")).collect();
    let mut operator = writer(&site, &site.home, "op");
    while_they_loop(writers, || {
        let in_flight = (10 * (QUESTIONS + COMMANDS)) as u64;
        let log = || site.head.as_ref().unwrap().log();
        wait_for("loops", || counted(&mut operator, "anna").taken > 2 * in_flight, log);
        let mut between = Vec::new();
        for number in 0..15 {
            operator.execute(mkdir(&format!("d{number}")), &|| false).unwrap();
            let before = counted(&mut operator, "anna").taken;
            between.push(counted(&mut operator, "anna").taken - before);
        }
        between.sort_unstable();
        // Those in which this thread, one of many, had its turn at once.
        let quarter = between[between.len() / 4];
        println!("taken of another between two of one: {between:?}");
        assert!(between[between.len() - 1] > 0, "nobody has looped");
        assert!(quarter <= 4 * BATCH, "{between:?} of {in_flight} in flight");
        assert_eq!(counted(&mut operator, "anna").held_back, 0, "there is no rate");
    });
}

/// However many connections they have. Rates bound from above, so that a slow machine says nothing.
#[test]
fn a_user_and_a_door_in_a_loop_get_what_they_may_and_nobody_else_waits_for_them() {
    const USER_RATE: u64 = 40;
    const DOOR_RATE: u64 = 20;
    let mut site = site_with_directory();
    site.read(&site.home, &["mkdir", "/lab/loop"]).ok();
    site.head.take().unwrap().interrupt();
    let rates = ["--user-rate", &USER_RATE.to_string(), "--door-rate", &DOOR_RATE.to_string()];
    let began = Instant::now();
    let head = [&["catalog", "--dir", "site", "--connect", &site.socket][..], &rates].concat();
    site.head = Some(site.home.start(&head, "byname:/lab"));
    let anna = User::new(&site, "anna", "physics");
    let bert = User::new(&site, "bert", "physics");
    let _carl = User::new(&site, "carl", "physics");
    let door = Door::new(&site, &["--all"]);
    let mut writers: Vec<Writer> = (0..4).map(|_| writer(&site, &anna.home, "anna")).collect();
    writers.extend((0..4).map(|_| through_door(&site, &door, "carl")));
    let mut operator = writer(&site, &site.home, "op");
    let mut others = writer(&site, &bert.home, "bert");
    while_they_loop(writers, || {
        let log = || site.head.as_ref().unwrap().log();
        for who in ["anna", "door xrd1"] {
            let is_held_back = || counted(&mut operator, who).held_back > 100;
            wait_for(&format!("{who} to be held back"), is_held_back, log);
        }
        // Fewer than he may at once, so that he is never held back by his own rate.
        for number in 0..USER_RATE {
            others.execute(mkdir(&format!("physics/d{number}")), &|| false).unwrap();
        }
        let bert = counted(&mut operator, "bert");
        assert!(bert.taken >= USER_RATE && bert.held_back == 0, "{bert:?}");
        for (who, rate) in [("anna", USER_RATE), ("door xrd1", DOOR_RATE)] {
            let of = counted(&mut operator, who);
            let most = rate * (began.elapsed().as_secs() + 3);
            let done = of.taken - of.held_back;
            assert!(done > 0 && done <= most, "{who}: {done} of {of:?}, {most} at most");
        }
    });
}
