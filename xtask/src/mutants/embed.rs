//! A source file with all its mutants in it, each behind a question for its number.

use std::ops::Range;

use super::source::{Kind, Site};

/// A file that behaves like the original unless a mutant is asked for.
#[derive(Debug, Default)]
pub(super) struct Embedded {
    pub(super) text: String,
    /// Octets that are there because of a mutant; several times for one inside another.
    pub(super) mutants: Vec<(Range<usize>, usize)>,
    /// Octets of each function with all mutants in it, those for its whole value first.
    pub(super) functions: Vec<(Range<usize>, Vec<usize>)>,
}

/// The text with those mutants of `sites` that `is_wanted`.
pub(super) fn embed(text: &str, sites: &[Site], is_wanted: &dyn Fn(usize) -> bool) -> Embedded {
    let mut writer = Writer { text, sites, is_wanted, out: Embedded::default() };
    writer.out.text.push_str("#![allow(warnings, clippy::all)]\n");
    writer.copy(0..text.len(), 0);
    writer.out
}

struct Writer<'a> {
    text: &'a str,
    sites: &'a [Site],
    is_wanted: &'a dyn Fn(usize) -> bool,
    out: Embedded,
}

impl Writer<'_> {
    fn put(&mut self, text: &str) {
        self.out.text.push_str(text);
    }

    /// Writes a part of the original with the sites inside it, of those from index `next` on.
    fn copy(&mut self, range: Range<usize>, mut next: usize) {
        let mut done = range.start;
        while next < self.sites.len() && self.sites[next].range.start < range.end {
            let site = &self.sites[next];
            if site.range.start >= done && site.range.end <= range.end {
                self.put(&self.text[done..site.range.start]);
                self.site(next);
                done = site.range.end;
            }
            next += 1;
        }
        self.put(&self.text[done..range.end]);
    }

    /// The wanted mutants at a site with their positions among its choices.
    fn wanted(&self, site: &Site) -> Vec<(usize, usize)> {
        let numbers = site.choices.iter().map(|(number, _)| *number).enumerate();
        numbers.filter(|(_, number)| (self.is_wanted)(*number)).collect()
    }

    fn site(&mut self, index: usize) {
        let site = &self.sites[index];
        match &site.kind {
            Kind::Body => self.body(index),
            Kind::Arm { guard } => self.arm(index, guard.as_ref()),
            Kind::Binary { left, right } => {
                self.branches(index, &|writer, choice| {
                    let operator = &writer.sites[index].choices[choice].1;
                    writer.put("((");
                    writer.copy(left.clone(), index + 1);
                    writer.put(&format!(") {operator} ("));
                    writer.copy(right.clone(), index + 1);
                    writer.put("))");
                });
            }
            Kind::Unary { operand } => {
                self.branches(index, &|writer, _| writer.copy(operand.clone(), index + 1));
            }
            Kind::Fields { head, fields } => {
                let end = site.range.end;
                self.branches(index, &|writer, choice| {
                    let field = &fields[choice];
                    writer.put(&writer.text[head.clone()]);
                    writer.copy(head.end..field.start, index + 1);
                    writer.copy(field.end..end, index + 1);
                });
            }
        }
    }

    /// An expression: `if` a mutant is asked for what it is, `else` the original.
    fn branches(&mut self, index: usize, write: &dyn Fn(&mut Self, usize)) {
        let range = self.sites[index].range.clone();
        let wanted = self.wanted(&self.sites[index]);
        self.put(if wanted.is_empty() { "" } else { "(" });
        for (choice, number) in &wanted {
            let start = self.out.text.len();
            self.put(&format!("if crate::is_mutant({number}) {{"));
            write(self, *choice);
            self.put("}");
            self.out.mutants.push((start..self.out.text.len(), *number));
            self.put(" else ");
        }
        self.put(if wanted.is_empty() { "" } else { "{(" });
        self.copy(range, index + 1);
        self.put(if wanted.is_empty() { "" } else { ")})" });
    }

    fn body(&mut self, index: usize) {
        let site = &self.sites[index];
        let outer = self.out.text.len();
        let wanted = self.wanted(site);
        for (choice, number) in &wanted {
            let start = self.out.text.len();
            let value = &site.choices[*choice].1;
            self.put(&format!("if crate::is_mutant({number}) {{ return {value}; }}"));
            self.out.mutants.push((start..self.out.text.len(), *number));
        }
        self.copy(site.range.clone(), index + 1);
        let inside = self.sites[index + 1..].iter();
        let inside = inside.take_while(|inner| inner.range.start < site.range.end);
        let mut all: Vec<usize> = wanted.iter().map(|(_, number)| *number).collect();
        all.extend(inside.flat_map(|inner| self.wanted(inner)).map(|(_, number)| number));
        self.out.functions.push((outer..self.out.text.len(), all));
    }

    fn arm(&mut self, index: usize, guard: Option<&Range<usize>>) {
        let site = &self.sites[index];
        let wanted = self.wanted(site);
        if wanted.is_empty() {
            return self.copy(site.range.clone(), index + 1);
        }
        let start = self.out.text.len();
        self.put(" if ");
        for (choice, number) in &wanted {
            let value = match site.choices[*choice].1.as_str() {
                "" => "false",
                value => value,
            };
            self.put(&format!("if crate::is_mutant({number}) {{ {value} }} else "));
            self.out.mutants.push((start..self.out.text.len(), *number));
        }
        self.put("{ ");
        match guard {
            Some(guard) => self.copy(guard.clone(), index + 1),
            None => self.put("true"),
        }
        self.put(" }");
    }
}

#[cfg(test)]
mod tests {
    use super::super::list::Mutant;
    use super::super::source::sites;
    use super::*;

    /// What this mutant is called for in a text: kind, replacement, line and column.
    fn mutant(genre: &str, replacement: &str, start: (usize, usize)) -> Mutant {
        Mutant {
            name: String::new(),
            file: String::new(),
            package: String::new(),
            genre: genre.to_owned(),
            replacement: replacement.to_owned(),
            start,
            end: start,
            return_type: String::new(),
        }
    }

    fn embedded(text: &str, mutants: &[Mutant]) -> Embedded {
        let numbered: Vec<(usize, &Mutant)> = mutants.iter().enumerate().collect();
        let sites = sites(text, &numbered).unwrap();
        let embedded = embed(text, &sites, &|_| true);
        syn::parse_file(&embedded.text).unwrap();
        embedded
    }

    fn function(embedded: &Embedded) -> &str {
        embedded.text.split_once('\n').unwrap().1
    }

    #[test]
    fn one_operator_inside_another_is_in_both_branches() {
        let mutants =
            [mutant("BinaryOperator", "||", (1, 37)), mutant("UnaryOperator", "", (1, 40))];
        let embedded = embedded("fn f(a: bool, b: bool) -> bool { a  && !b }", &mutants);
        let inner = "(if crate::is_mutant(1) {b} else {(!b)})";
        let outer = format!(
            "fn f(a: bool, b: bool) -> bool {{ \
             (if crate::is_mutant(0) {{((a) || ({inner}))}} else {{(a  && {inner})}}) }}"
        );
        assert_eq!(function(&embedded), outer);
        let numbers: Vec<usize> = embedded.mutants.iter().map(|(_, number)| *number).collect();
        assert_eq!(numbers, [1, 0, 1], "where each stands is known");
        assert_eq!(embedded.functions[0].1, [0, 1]);
    }

    #[test]
    fn arms_get_a_guard_and_functions_an_early_return() {
        let text = "fn f(a: u8) -> u8 {\n    match a {\n        1 | 2 => 1,\n        \
                    x if x > 9 => 2,\n        _ => 3,\n    }\n}";
        let mutants = [
            mutant("FnValue", "0", (2, 5)),
            mutant("MatchArm", "", (3, 9)),
            mutant("MatchArmGuard", "true", (4, 14)),
            mutant("BinaryOperator", "<", (4, 16)),
        ];
        let embedded = embedded(text, &mutants);
        let expected = "fn f(a: u8) -> u8 {if crate::is_mutant(0) { return 0; }\n    match a {\n\
            \x20       1 | 2 if if crate::is_mutant(1) { false } else { true } => 1,\n        \
            x if if crate::is_mutant(2) { true } else \
            { (if crate::is_mutant(3) {((x) < (9))} else {(x > 9)}) } => 2,\n        \
            _ => 3,\n    }\n}";
        assert_eq!(function(&embedded), expected);
    }

    #[test]
    fn a_field_is_left_out() {
        let mutants = [mutant("StructField", "", (1, 19))];
        let embedded = embedded("fn f() -> S { S { a: 1, ..S::default() } }", &mutants);
        let expected = "fn f() -> S { (if crate::is_mutant(0) {S {  ..S::default() }} \
            else {(S { a: 1, ..S::default() })}) }";
        assert_eq!(function(&embedded), expected);
    }
}
