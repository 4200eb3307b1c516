//! Places in a source file that mutants change.

use std::collections::BTreeMap;
use std::ops::Range;

use proc_macro2::{LineColumn, Span};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::list::Mutant;

/// A mutant's number, and what it puts in a place.
type Choice = (usize, String);
/// Mutants by their kind, line and column.
type ByStart<'a> = BTreeMap<(&'a str, usize, usize), Vec<Choice>>;

/// A place where the text differs for one mutant or several.
#[derive(Debug)]
pub(super) struct Site {
    /// Octets in the file.
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
    /// Mutants by their number, with what each puts there.
    pub(super) choices: Vec<Choice>,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// Inside of the braces of a function; a choice is its value.
    Body,
    /// A choice is another operator.
    Binary { left: Range<usize>, right: Range<usize> },
    /// The only choice is the operand alone.
    Unary { operand: Range<usize> },
    /// A choice is the value of the guard, or empty for an arm that never matches.
    Arm { guard: Option<Range<usize>> },
    /// A struct expression from its brace on; choices leave out a field each.
    Fields { head: Range<usize>, fields: Vec<Range<usize>> },
}

/// The places of mutants (all of one file, with their numbers) in the order of their text.
/// Those that find none are not among the choices of any place.
pub(super) fn sites(text: &str, mutants: &[(usize, &Mutant)]) -> syn::Result<Vec<Site>> {
    let mut by_start = ByStart::new();
    for (number, mutant) in mutants {
        let (line, column) = mutant.start;
        let choices = by_start.entry((&mutant.genre, line, column)).or_default();
        choices.push((*number, mutant.replacement.clone()));
    }
    let mut finder = Finder { lines: Lines::of(text), by_start, sites: Vec::new() };
    finder.visit_file(&syn::parse_file(text)?);
    let mut sites = finder.sites;
    sites.sort_by_key(|site| (site.range.start, std::cmp::Reverse(site.range.end)));
    Ok(sites)
}

/// The text with this mutant in place of the original.
pub(super) fn replaced(text: &str, mutant: &Mutant) -> String {
    let lines = Lines::of(text);
    let at = |(line, column): (usize, usize)| lines.offset(LineColumn { line, column: column - 1 });
    let (before, behind) = (&text[..at(mutant.start)], &text[at(mutant.end)..]);
    format!("{before} {} {behind}", mutant.replacement)
}

/// Where lines start.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(breaks).collect() }
    }

    fn offset(&self, at: LineColumn) -> usize {
        let start = self.starts[at.line - 1];
        let line = &self.text[start..];
        start + line.char_indices().nth(at.column).map_or(line.len(), |(index, _)| index)
    }
}

struct Finder<'a> {
    lines: Lines<'a>,
    by_start: ByStart<'a>,
    sites: Vec<Site>,
}

impl Finder<'_> {
    fn range(&self, span: Span) -> Range<usize> {
        self.lines.offset(span.start())..self.lines.offset(span.end())
    }

    fn choices(&mut self, genre: &'static str, span: Span) -> Vec<Choice> {
        let start = span.start();
        self.by_start.remove(&(genre, start.line, start.column + 1)).unwrap_or_default()
    }

    fn add(&mut self, range: Range<usize>, kind: Kind, choices: Vec<Choice>) {
        if !choices.is_empty() {
            self.sites.push(Site { range, kind, choices });
        }
    }

    fn add_function(&mut self, block: &syn::Block) {
        let Some(first) = block.stmts.first() else { return };
        let choices = self.choices("FnValue", first.span());
        let braces = block.brace_token.span;
        let range = self.range(braces.open()).end..self.range(braces.close()).start;
        // Also without choices: whatever does not build belongs to some function.
        self.sites.push(Site { range, kind: Kind::Body, choices });
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add_function(&item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add_function(&item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add_function(block);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let choices = self.choices("BinaryOperator", binary.op.span());
        if !is_chain_of_lets(&binary.left) && !is_chain_of_lets(&binary.right) {
            let (left, right) = (self.range(binary.left.span()), self.range(binary.right.span()));
            self.add(left.start..right.end, Kind::Binary { left, right }, choices);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        let choices = self.choices("UnaryOperator", unary.op.span());
        let operand = self.range(unary.expr.span());
        self.add(self.range(unary.span()), Kind::Unary { operand }, choices);
        visit::visit_expr_unary(self, unary);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let mut choices = self.choices("MatchArm", arm.span());
        let (pattern, guard) = match &arm.pat {
            syn::Pat::Guard(guarded) => (&*guarded.pat, Some(&*guarded.guard)),
            pattern => (pattern, None),
        };
        if let Some(guard) = guard {
            choices.extend(self.choices("MatchArmGuard", guard.span()));
        }
        if !guard.is_some_and(is_chain_of_lets) {
            let pattern_end = self.range(pattern.span()).end;
            let guard = guard.map(|guard| self.range(guard.span()));
            let end = guard.as_ref().map_or(pattern_end, |guard| guard.end);
            self.add(pattern_end..end, Kind::Arm { guard }, choices);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_struct(&mut self, item: &'ast syn::ExprStruct) {
        let (mut fields, mut choices) = (Vec::new(), Vec::new());
        for pair in item.fields.pairs() {
            let field = self.range(pair.value().span());
            let end = pair.punct().map_or(field.end, |comma| self.range(comma.span()).end);
            let of_field = self.choices("StructField", pair.value().span());
            fields.extend(of_field.iter().map(|_| field.start..end));
            choices.extend(of_field);
        }
        let whole = self.range(item.span());
        let head = whole.start..self.range(item.brace_token.span.open()).end;
        self.add(whole, Kind::Fields { head, fields }, choices);
        visit::visit_expr_struct(self, item);
    }
}

/// `let` in a condition, which stands nowhere else.
fn is_chain_of_lets(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => {
            is_chain_of_lets(&binary.left) || is_chain_of_lets(&binary.right)
        }
        _ => false,
    }
}
