//! Room at the top of a tree that is a site's, as `df` shows it, asked of who knows in the
//! background.
//!
//! Whoever wants to know gets what was answered last, if that was just now; otherwise it is asked
//! for again, on a thread of its own, and he waits for the answer for a moment and no longer. What
//! failed was answered, too: for as long as an answer counts nobody waits again. Nobody asks while
//! nobody wants to know.

use std::future::poll_fn;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use crate::tasks::Timers;

/// Age up to which an answer counts, be it that there is none.
const FRESH: Duration = Duration::from_secs(2);
/// Time that somebody waits for an answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Age up to which an answer is given to whoever has waited for another in vain.
const AGE_MAX: Duration = Duration::from_secs(20);

/// Room for what is written below a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Octets of files that there may be.
    pub size_bytes: u64,
    /// Octets of those that there are.
    pub used_bytes: u64,
    /// Octets that may be written.
    pub free_bytes: u64,
    /// Files and directories.
    pub entries: u64,
    /// Most of them; `u64::MAX` for no limit.
    pub entries_max: u64,
}

/// Asks for the room at the top of a tree. Taken out by who has it for himself, so never locked
/// for long; the lock lets threads share what it is a part of.
pub struct AskRoom(Mutex<Box<dyn FnMut() -> Option<Room> + Send>>);

impl AskRoom {
    /// Asks by this, which ends within seconds; `None` if nobody can say.
    pub fn new(ask: impl FnMut() -> Option<Room> + Send + 'static) -> Self {
        Self(Mutex::new(Box::new(ask)))
    }
}

#[derive(Debug, Default)]
struct State {
    /// The last answer, and when it came.
    last: Option<(Option<Room>, Instant)>,
    /// The last one that was a room, and when it came.
    last_room: Option<(Room, Instant)>,
    is_asking: bool,
    waiting: Vec<Waker>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Rooms {
    state: Arc<Mutex<State>>,
    /// Wakes the thread, which ends with this.
    wanted: SyncSender<()>,
}

impl Rooms {
    /// Starts the thread, and asks a first time.
    ///
    /// # Errors
    /// [`io::Error`] if there can be no thread.
    pub(crate) fn start(AskRoom(ask): AskRoom) -> io::Result<Self> {
        let mut ask = ask.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (wanted, wishes) = sync_channel(1);
        let state = Arc::<Mutex<State>>::default();
        let answers = Arc::clone(&state);
        let work = move || {
            for () in wishes {
                let room = ask();
                let mut state = lock(&answers);
                let came = Instant::now();
                state.last = Some((room, came));
                state.last_room = room.map(|room| (room, came)).or(state.last_room);
                state.is_asking = false;
                let waiting = std::mem::take(&mut state.waiting);
                drop(state);
                waiting.into_iter().for_each(Waker::wake);
            }
        };
        std::thread::Builder::new().name("byname-room".to_owned()).spawn(work)?;
        let rooms = Self { state, wanted };
        rooms.ask();
        Ok(rooms)
    }

    /// The room, if it is known by now or within a moment.
    pub(crate) async fn room(&self, timers: &Timers) -> Option<Room> {
        if self.known(FRESH).is_none() {
            self.ask();
            timers.within(PATIENCE, self.answered()).await;
        }
        // A head that is silent for a moment has not taken the room away.
        self.last_room()
    }

    /// The last room that was told of, if that is not too long ago.
    fn last_room(&self) -> Option<Room> {
        let (room, came) = lock(&self.state).last_room?;
        (came.elapsed() <= AGE_MAX).then_some(room)
    }

    /// The last answer, if it is not older than this.
    fn known(&self, age_max: Duration) -> Option<Option<Room>> {
        let (answer, came) = lock(&self.state).last?;
        (came.elapsed() <= age_max).then_some(answer)
    }

    /// Has it asked, unless that is being done.
    fn ask(&self) {
        if !std::mem::replace(&mut lock(&self.state).is_asking, true) {
            // There is room for the one wish that there is at a time.
            let _ = self.wanted.try_send(());
        }
    }

    /// Waits until nothing is being asked.
    async fn answered(&self) {
        poll_fn(|context| {
            let mut state = lock(&self.state);
            if !state.is_asking {
                return Poll::Ready(());
            }
            if !state.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                state.waiting.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::Tasks;
    use std::sync::mpsc;

    fn start(ask: impl FnMut() -> Option<Room> + Send + 'static) -> Rooms {
        Rooms::start(AskRoom::new(ask)).unwrap()
    }

    fn room_of(tasks: &Tasks, rooms: &Arc<Rooms>) -> mpsc::Receiver<Option<Room>> {
        let (sender, receiver) = mpsc::channel();
        let (rooms, timers) = (Arc::clone(rooms), tasks.timers());
        tasks.run(async move { sender.send(rooms.room(&timers).await).unwrap() });
        receiver
    }

    const ROOM: Room =
        Room { size_bytes: 9, used_bytes: 4, free_bytes: 5, entries: 1, entries_max: 7 };

    /// Whoever asks is answered, by what comes if it comes soon.
    #[test]
    fn who_wants_to_know_waits_for_an_answer_that_comes_soon() {
        let tasks = Tasks::start().unwrap();
        let (answer, answers) = mpsc::channel();
        let rooms = Arc::new(start(move || answers.recv().unwrap()));
        let asked = [room_of(&tasks, &rooms), room_of(&tasks, &rooms)];
        answer.send(Some(ROOM)).unwrap();
        for asked in asked {
            assert_eq!(asked.recv().unwrap(), Some(ROOM), "one question for all");
        }
        // It counts for a while: nothing would answer another question.
        assert_eq!(rooms.known(FRESH), Some(Some(ROOM)));
    }

    /// A silent head holds up nobody for long, and one that has failed nobody at all for a while.
    #[test]
    fn nobody_waits_for_who_is_silent() {
        let tasks = Tasks::start().unwrap();
        let (answer, answers) = mpsc::channel::<Option<Room>>();
        let rooms = Arc::new(start(move || answers.recv().unwrap()));
        assert_eq!(room_of(&tasks, &rooms).recv().unwrap(), None);
        answer.send(None).unwrap();
        while rooms.known(FRESH).is_none() {
            std::thread::yield_now();
        }
        assert!(!lock(&rooms.state).is_asking);
        assert_eq!(room_of(&tasks, &rooms).try_recv(), Ok(None), "not even for a moment");
        assert!(!lock(&rooms.state).is_asking, "nor is it asked again");
    }

    /// What was known stays known for a while when it is asked for in vain.
    #[test]
    fn while_it_is_asked_for_anew_the_last_answer_is_given() {
        let tasks = Tasks::start().unwrap();
        let (answer, answers) = mpsc::channel::<Option<Room>>();
        let rooms = Arc::new(start(move || answers.recv().unwrap()));
        answer.send(Some(ROOM)).unwrap();
        assert_eq!(room_of(&tasks, &rooms).recv().unwrap(), Some(ROOM));
        let aged = |age: Duration| {
            let came = Instant::now().checked_sub(age).expect("this machine runs for longer");
            let mut state = lock(&rooms.state);
            state.last = Some((Some(ROOM), came));
            state.last_room = Some((ROOM, came));
        };
        aged(FRESH * 2);
        assert_eq!(room_of(&tasks, &rooms).recv().unwrap(), Some(ROOM));
        assert!(lock(&rooms.state).is_asking);
        // The head was silent: what it said before still counts for a while.
        answer.send(None).unwrap();
        while lock(&rooms.state).is_asking {
            std::thread::yield_now();
        }
        assert_eq!(rooms.known(FRESH), Some(None));
        assert_eq!(room_of(&tasks, &rooms).recv().unwrap(), Some(ROOM));
        aged(AGE_MAX * 2);
        assert_eq!(room_of(&tasks, &rooms).recv().unwrap(), None);
    }
}
