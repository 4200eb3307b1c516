//! Facts about one Rust file, gathered in one pass over its syntax tree and
//! one over its tokens. The tokens are looked at as well because the tree ends at a macro.

use std::ops::RangeInclusive;

use proc_macro2::TokenStream;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::rust::{attributes, flatten, is_test_attribute};

/// The facts about a file; lines are 1-based.
#[derive(Debug, Default)]
pub(super) struct Syntax {
    pub(super) functions: Vec<Function>,
    /// Names in `#[cfg(test)] mod name;`.
    pub(super) test_modules: Vec<String>,
    pub(super) left_overs: Vec<MacroUse>,
    pub(super) unsafe_lines: Vec<usize>,
    pub(super) unwrap_lines: Vec<usize>,
    pub(super) string_error_lines: Vec<usize>,
    test_items: Vec<RangeInclusive<usize>>,
    test_module_bodies: Vec<RangeInclusive<usize>>,
}

#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) line: usize,
    /// From the signature to the closing brace.
    pub(super) lines: usize,
    /// Without `self`; the elements of a tuple count one by one.
    pub(super) parameters: usize,
}

#[derive(Debug)]
pub(super) struct MacroUse {
    pub(super) what: &'static str,
    pub(super) line: usize,
}

impl Syntax {
    pub(super) fn is_test_line(&self, line: usize) -> bool {
        self.test_items.iter().any(|lines| lines.contains(&line))
    }

    /// Number of lines that `#[cfg(test)] mod name { … }` takes.
    pub(super) fn test_module_lines(&self) -> usize {
        self.test_module_bodies.iter().map(|lines| lines.end() - lines.start() + 1).sum()
    }
}

pub(super) fn read(text: &str) -> syn::Result<Syntax> {
    let tree = syn::parse_file(text)?;
    let mut syntax = Syntax::default();
    syntax.visit_file(&tree);
    let tokens =
        text.parse::<TokenStream>().map_err(|error| syn::Error::new(error.span(), error))?;
    let mut flat = Vec::new();
    flatten(tokens, &mut flat);
    syntax.read_tokens(&flat);
    Ok(syntax)
}

impl Syntax {
    fn read_tokens(&mut self, tokens: &[(String, usize)]) {
        for (index, (token, line)) in tokens.iter().enumerate() {
            let next = |steps: usize| tokens.get(index + steps).map_or("", |(t, _)| t.as_str());
            let is_call = next(1) == "!" && next(2) != "=";
            match token.as_str() {
                "unsafe" => self.unsafe_lines.push(*line),
                "todo" if is_call => self.left_over("todo", *line),
                "unimplemented" if is_call => self.left_over("unimplemented", *line),
                "dbg" if is_call => self.left_over("dbg", *line),
                "." if next(1) == "unwrap" && next(2) == "(" => self.unwrap_at(tokens[index + 1].1),
                // Option::unwrap as a value.
                ":" if next(1) == ":" && next(2) == "unwrap" => {
                    self.unwrap_at(tokens[index + 2].1);
                }
                _ => {}
            }
        }
    }

    fn left_over(&mut self, what: &'static str, line: usize) {
        self.left_overs.push(MacroUse { what, line });
    }

    fn unwrap_at(&mut self, line: usize) {
        self.unwrap_lines.push(line);
    }

    fn function(&mut self, signature: &syn::Signature, body: Option<&syn::Block>) {
        let line = signature.span().start().line;
        let end = body.map_or(line, |body| body.span().end().line);
        self.functions.push(Function {
            name: signature.ident.to_string(),
            line,
            lines: end + 1 - line,
            parameters: signature.inputs.iter().map(values).sum(),
        });
    }
}

impl<'ast> Visit<'ast> for Syntax {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if attributes(item).iter().any(is_test_attribute) {
            self.test_items.push(lines(item));
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.attrs.iter().any(is_test_attribute) {
            match module.content {
                Some(_) => self.test_module_bodies.push(lines(module)),
                None => self.test_modules.push(module.ident.to_string()),
            }
        }
        visit::visit_item_mod(self, module);
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig, Some(&function.block));
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if function.attrs.iter().any(is_test_attribute) {
            self.test_items.push(lines(function));
        }
        self.function(&function.sig, Some(&function.block));
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        self.function(&function.sig, function.default.as_ref());
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_type_path(&mut self, path: &'ast syn::TypePath) {
        if is_string_result(&path.path) {
            self.string_error_lines.push(path.span().start().line);
        }
        visit::visit_type_path(self, path);
    }
}

/// Number of values that a parameter stands for.
fn values(input: &syn::FnArg) -> usize {
    match input {
        syn::FnArg::Receiver(_) => 0,
        syn::FnArg::Typed(typed) => values_of_type(&typed.ty),
    }
}

fn values_of_type(ty: &syn::Type) -> usize {
    match ty {
        syn::Type::Tuple(tuple) => tuple.elems.iter().map(values_of_type).sum::<usize>().max(1),
        syn::Type::Reference(reference) => values_of_type(&reference.elem),
        syn::Type::Paren(inner) => values_of_type(&inner.elem),
        syn::Type::Group(inner) => values_of_type(&inner.elem),
        _ => 1,
    }
}

fn lines(node: &impl Spanned) -> RangeInclusive<usize> {
    let span = node.span();
    span.start().line..=span.end().line
}

fn is_string_result(path: &syn::Path) -> bool {
    let Some(last) = path.segments.last() else { return false };
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else { return false };
    let Some(syn::GenericArgument::Type(syn::Type::Path(error))) = arguments.args.iter().nth(1)
    else {
        return false;
    };
    last.ident == "Result" && error.path.segments.last().is_some_and(|s| s.ident == "String")
}
