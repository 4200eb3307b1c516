//! Sessions: how they end, and whose they are.

use byname_catalog::engine::{Engine, Span, Table};
use byname_catalog::id::SessionId;
use byname_catalog::{
    Answer, AttributeChanges, Caller, Command, Refusal, SESSION_IDLE_NS, SESSION_NS, Submission,
};

use crate::support::{TestSite, place};

/// Sessions that a user has at most.
const MAX: usize = 1024;

/// Opens a session beside the one that the test's site has.
fn open(site: &TestSite, user: &str) -> Result<SessionId, Refusal> {
    let (caller, command) = (Caller::User(user.into()), Command::OpenSession);
    match site.submit(&Submission { caller, request: None, command }).unwrap()? {
        Answer::Session { session, .. } => Ok(session),
        other => panic!("{other:?}"),
    }
}

/// The same command in another session, or in another's.
fn in_session(submission: Submission, session: SessionId, user: &str) -> Submission {
    let Submission { request, command, .. } = submission;
    let request = request.map(|request| {
        let (slot, sequence) = (0, 1);
        byname_catalog::Request { session, slot, sequence, ..request }
    });
    Submission { caller: Caller::User(user.into()), request, command }
}

fn row_count(site: &TestSite, table: Table) -> usize {
    let rows = site.catalog.engine().snapshot().unwrap();
    rows.range(table, Span::ALL, usize::MAX).unwrap().len()
}

#[test]
fn a_session_that_its_user_ends_leaves_nothing() {
    let (mut site, _) = TestSite::in_memory();
    site.put("op", "f", 100);
    let shared = AttributeChanges { mode: Some(0o666), ..AttributeChanges::default() };
    site.run("op", Command::SetAttributes { place: place("f"), changes: shared }).unwrap();
    site.run("anna", Command::RenewSession).unwrap();
    let (sessions, slots) = (row_count(&site, Table::Session), row_count(&site, Table::Slot));
    let session = open(&site, "anna").unwrap();
    let lease = site.submission("anna", Command::Lease { place: place("f") });
    site.submit(&in_session(lease, session, "anna")).unwrap().unwrap();
    assert!(site.reader("anna").lease(site.entry("f").unwrap().id).unwrap().is_some());
    // Nobody else ends it.
    let end = site.submission("anna", Command::EndSession);
    let mut end = in_session(end, session, "bert");
    end.request.as_mut().unwrap().sequence = 2;
    assert_eq!(site.submit(&end).unwrap(), Err(Refusal::NotYourSession));
    end.caller = Caller::User("anna".into());
    assert_eq!(site.submit(&end).unwrap(), Ok(Answer::Done));
    site.assert_consistent();
    assert!(site.reader("anna").lease(site.entry("f").unwrap().id).unwrap().is_none());
    assert_eq!(row_count(&site, Table::Session), sessions);
    assert_eq!(row_count(&site, Table::Slot), slots);
    // Sent again, nothing happens.
    assert_eq!(site.submit(&end).unwrap(), Err(Refusal::UnknownSession));
    site.pass(2 * SESSION_NS);
}

#[test]
fn an_idle_session_makes_room_for_its_user_s_next_and_no_other_does() {
    let (mut site, _) = TestSite::in_memory();
    site.put("op", "f", 100);
    let shared = AttributeChanges { mode: Some(0o666), ..AttributeChanges::default() };
    site.run("op", Command::SetAttributes { place: place("f"), changes: shared }).unwrap();
    site.run("anna", Command::RenewSession).unwrap();
    // Her first one holds a file; bert has one that is as old.
    let leased = open(&site, "anna").unwrap();
    let lease = site.submission("anna", Command::Lease { place: place("f") });
    site.submit(&in_session(lease, leased, "anna")).unwrap().unwrap();
    let of_bert = open(&site, "bert").unwrap();
    let oldest = open(&site, "anna").unwrap();
    let renewed = open(&site, "anna").unwrap();
    site.now_ns += SESSION_IDLE_NS - 1;
    let renew = site.submission("anna", Command::RenewSession);
    site.submit(&in_session(renew, renewed, "anna")).unwrap().unwrap();
    // The one of the test's site and three of these are hers.
    let later: Vec<SessionId> = (4..MAX).map(|_| open(&site, "anna").unwrap()).collect();
    let has = |site: &TestSite, session| site.reader("op").session(session).unwrap().is_some();
    assert_eq!(open(&site, "anna"), Err(Refusal::TooManySessions), "all are in use");
    site.now_ns += 1;
    site.assert_consistent();
    // Two are idle and hold nothing: the site's own, which was opened first, and the oldest here.
    open(&site, "anna").unwrap();
    assert!(has(&site, oldest));
    open(&site, "anna").unwrap();
    assert!(!has(&site, oldest));
    assert_eq!(open(&site, "anna"), Err(Refusal::TooManySessions));
    site.assert_consistent();
    for session in [leased, renewed, of_bert, later[0]] {
        assert!(has(&site, session), "{session:?}");
    }
    open(&site, "bert").unwrap();
}
