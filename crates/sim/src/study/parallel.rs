//! Independent runs on all processors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Applies `answer` to all questions, on as many threads as there are processors.
pub fn on_all_processors<Q: Sync, A: Send>(
    questions: &[Q],
    answer: impl Fn(&Q) -> A + Sync,
) -> Vec<A> {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    let next = AtomicUsize::new(0);
    let answers: Mutex<Vec<(usize, A)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.min(questions.len()) {
            scope.spawn(|| {
                while let Some(place) = Some(next.fetch_add(1, Ordering::Relaxed))
                    && let Some(question) = questions.get(place)
                {
                    let found = answer(question);
                    answers.lock().expect("no answer panics with the lock").push((place, found));
                }
            });
        }
    });
    let mut answers = answers.into_inner().expect("no answer panics with the lock");
    answers.sort_by_key(|(place, _)| *place);
    answers.into_iter().map(|(_, found)| found).collect()
}
