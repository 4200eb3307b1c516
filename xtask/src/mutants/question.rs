//! Text that a copied crate's root gets, so that its code can ask which mutant it is to be.
//!
//! The answer comes from the environment and stays the same. The first time that each is asked for
//! is noted in a file, if the environment names one.

/// `crate::is_mutant` of the copy.
pub(super) const QUESTION: &str = r##"
/// True if this mutant is asked for; notes that it was come by.
#[doc(hidden)]
pub(crate) fn is_mutant(number: usize) -> bool {
    use std::io::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    static CHOSEN: OnceLock<usize> = OnceLock::new();
    static NOTES: OnceLock<Option<std::fs::File>> = OnceLock::new();
    static NOTED: [AtomicBool; 1 << 14] = [const { AtomicBool::new(false) }; 1 << 14];

    let chosen = CHOSEN.get_or_init(|| {
        let number = std::env::var("BYNAME_MUTANT").ok();
        number.and_then(|number| number.parse().ok()).unwrap_or(usize::MAX)
    });
    if let Some(noted) = NOTED.get(number)
        && !noted.load(Ordering::Relaxed)
        && !noted.swap(true, Ordering::Relaxed)
    {
        let notes = NOTES.get_or_init(|| {
            let path = std::env::var_os("BYNAME_MUTANTS_NOTED")?;
            std::fs::File::options().create(true).append(true).open(path).ok()
        });
        if let Some(mut notes) = notes.as_ref() {
            let _ = notes.write_all(format!("{number}\n").as_bytes());
        }
    }
    *chosen == number
}
"##;
