//! Patterns: `*` stands for anything, also for nothing; `?` for one character.

/// Longest pattern, in octets.
pub(super) const PATTERN_BYTES_MAX: usize = 255;
/// Most stars of a pattern: templates know `$1` to `$9`.
pub(super) const STARS_MAX: usize = 9;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern(Vec<char>);

impl Pattern {
    /// None if it is empty, too long or has too many stars.
    pub(super) fn new(text: &str) -> Option<Self> {
        let stars = text.matches('*').count();
        let is_good = (1..=PATTERN_BYTES_MAX).contains(&text.len()) && stars <= STARS_MAX;
        is_good.then(|| Self(text.chars().collect()))
    }

    pub(super) fn star_count(&self) -> usize {
        self.0.iter().filter(|char| **char == '*').count()
    }

    /// What the stars stand for in a text that fits. Each star takes as little as it can, so only
    /// the last one that was met has to be tried again: steps are pattern times text at most.
    pub(super) fn stars<'a>(&self, text: &'a str) -> Option<Vec<&'a str>> {
        let ends = || text.char_indices().map(|(at, _)| at).chain([text.len()]);
        let (places, chars): (Vec<usize>, Vec<char>) = (ends().collect(), text.chars().collect());
        let (mut spans, mut at, mut behind): (Vec<(usize, usize)>, usize, usize) =
            (Vec::new(), 0, 0);
        // Where in the pattern the last star is.
        let mut last = None;
        loop {
            match (self.0.get(behind), chars.get(at)) {
                (None, None) => break,
                (Some('*'), _) => {
                    spans.push((at, at));
                    last = Some(behind);
                    behind += 1;
                    continue;
                }
                (Some(wanted), Some(found)) if *wanted == '?' || wanted == found => {
                    (at, behind) = (at + 1, behind + 1);
                    continue;
                }
                _ => {}
            }
            // The last star takes one character more.
            let (star, span) = (last?, spans.last_mut()?);
            if span.1 >= chars.len() {
                return None;
            }
            span.1 += 1;
            (at, behind) = (span.1, star + 1);
        }
        spans.into_iter().map(|(from, until)| text.get(places[from]..places[until])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stars<'a>(pattern: &str, text: &'a str) -> Option<Vec<&'a str>> {
        Pattern::new(pattern).unwrap().stars(text)
    }

    #[test]
    fn stars_stand_for_as_little_as_they_can() {
        assert_eq!(stars("anna", "anna"), Some(vec![]));
        assert_eq!(stars("anna", "annab"), None);
        assert_eq!(stars("*@CERN.CH", "anna@CERN.CH"), Some(vec!["anna"]));
        assert_eq!(stars("*@CERN.CH", "anna@CERN.CH@EVIL"), None);
        assert_eq!(stars("*@CERN.CH", "x@CERN.CH@CERN.CH"), Some(vec!["x@CERN.CH"]));
        assert_eq!(stars("*/*", "a/b/c"), Some(vec!["a", "b/c"]));
        assert_eq!(stars("/CN=* ?", "/CN=Änna 7"), Some(vec!["Änna"]));
        assert_eq!(stars("*", ""), Some(vec![""]));
        assert_eq!(stars("?", ""), None);
        assert_eq!(stars("a*b*", "ab"), Some(vec!["", ""]));
    }

    #[test]
    fn a_pattern_that_fits_nowhere_is_told_in_time() {
        let text = "a".repeat(4096);
        assert_eq!(stars("*a*a*a*a*a*a*a*ab", &text), None);
        assert!(Pattern::new("").is_none() && Pattern::new("**********").is_none());
        assert!(Pattern::new(&"a".repeat(256)).is_none());
    }
}
