//! The module tree of a crate: what each module defines, imports and mentions.
//!
//! The tree is followed from the root file along `mod` declarations. What is compiled for tests
//! alone is left out, so that a file which only tests declare is never reached.

use std::collections::{BTreeMap, HashMap};

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::rust::{attributes, is_test_attribute};
use crate::sources::Source;

/// The segments of a path, `crate`, `self` and `super` among them.
pub(super) type Segments = Vec<String>;

/// A path written in a module: an import for the module's own use, or a use in place.
#[derive(Debug)]
pub(super) struct Mention {
    pub(super) segments: Segments,
    /// 1-based.
    pub(super) line: usize,
}

/// A name in a module.
#[derive(Debug)]
pub(super) enum Definition {
    /// A type, function, constant, trait or macro of this module.
    Item,
    /// A child module, by its index.
    Module(usize),
    /// A name brought in by `use`.
    Alias(Segments),
}

/// A module, of a file or inline.
#[derive(Debug)]
pub(super) struct Module {
    /// Path of its file below the workspace root.
    pub(super) file: String,
    pub(super) parent: Option<usize>,
    pub(super) names: HashMap<String, Vec<Definition>>,
    pub(super) globs: Vec<Segments>,
    pub(super) mentions: Vec<Mention>,
}

/// The modules below one root file; the root is the first.
#[derive(Debug, Default)]
pub(super) struct Modules {
    pub(super) all: Vec<Module>,
}

/// Reads the modules below the file `root`. Files that do not parse are left out: the rule
/// `syntax` of tidy reports them.
pub(super) fn read(root: &str, files: &BTreeMap<&str, &Source>) -> Modules {
    let mut modules = Modules::default();
    if let Some(tree) = parse(root, files) {
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        Reader { modules: &mut modules, files }.module(root, folder, None, &tree.items);
    }
    modules
}

fn parse(path: &str, files: &BTreeMap<&str, &Source>) -> Option<syn::File> {
    files.get(path).and_then(|source| syn::parse_file(&source.text).ok())
}

struct Reader<'a> {
    modules: &'a mut Modules,
    files: &'a BTreeMap<&'a str, &'a Source>,
}

impl Reader<'_> {
    /// Adds the module of `items`; its child files lie in `folder`.
    fn module(
        &mut self,
        file: &str,
        folder: &str,
        parent: Option<usize>,
        items: &[syn::Item],
    ) -> usize {
        let index = self.modules.all.len();
        self.modules.all.push(Module {
            file: file.to_owned(),
            parent,
            names: HashMap::new(),
            globs: Vec::new(),
            mentions: Vec::new(),
        });
        let mut children = Vec::new();
        let mut collector = Collector { module: &mut self.modules.all[index] };
        for item in items.iter().filter(|item| !is_for_tests(attributes(item))) {
            match item {
                syn::Item::Mod(child) => children.push(child),
                item => collector.visit_item(item),
            }
        }
        for child in children {
            self.child(file, folder, index, child);
        }
        index
    }

    fn child(&mut self, file: &str, folder: &str, parent: usize, child: &syn::ItemMod) {
        let name = child.ident.to_string();
        let below = format!("{folder}/{name}");
        let index = match &child.content {
            Some((_, items)) => self.module(file, &below, Some(parent), items),
            None => {
                let path = format!("{below}.rs");
                let Some(tree) = parse(&path, self.files) else { return };
                self.module(&path, &below, Some(parent), &tree.items)
            }
        };
        self.modules.all[parent].name(name, Definition::Module(index));
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(is_test_attribute)
}

impl Module {
    fn name(&mut self, name: String, definition: Definition) {
        self.names.entry(name).or_default().push(definition);
    }

    fn import(&mut self, tree: &syn::UseTree, before: &Segments, is_private: bool) {
        let with = |ident: &syn::Ident| {
            let mut segments = before.clone();
            if ident != "self" || before.is_empty() {
                segments.push(ident.to_string());
            }
            segments
        };
        let (segments, name) = match tree {
            syn::UseTree::Path(path) => {
                return self.import(&path.tree, &with(&path.ident), is_private);
            }
            syn::UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.import(tree, before, is_private));
            }
            syn::UseTree::Glob(_) => (before.clone(), None),
            syn::UseTree::Name(name) => (with(&name.ident), with(&name.ident).pop()),
            syn::UseTree::Rename(rename) => (with(&rename.ident), Some(rename.rename.to_string())),
        };
        if is_private {
            let line = tree.span().start().line;
            self.mentions.push(Mention { segments: segments.clone(), line });
        }
        match name {
            Some(name) => self.name(name, Definition::Alias(segments)),
            None => self.globs.push(segments),
        }
    }
}

/// Fills a module from its items. Imports inside a function count for its whole module.
struct Collector<'a> {
    module: &'a mut Module,
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_for_tests(attributes(item)) {
            return;
        }
        let name = match item {
            syn::Item::Const(item) => Some(&item.ident),
            syn::Item::Enum(item) => Some(&item.ident),
            syn::Item::Fn(item) => Some(&item.sig.ident),
            syn::Item::Macro(item) => item.ident.as_ref(),
            syn::Item::Static(item) => Some(&item.ident),
            syn::Item::Struct(item) => Some(&item.ident),
            syn::Item::Trait(item) => Some(&item.ident),
            syn::Item::Type(item) => Some(&item.ident),
            syn::Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        if let Some(name) = name {
            self.module.name(name.to_string(), Definition::Item);
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        // What is handed on is no use of this module's own.
        let is_private = matches!(item.vis, syn::Visibility::Inherited);
        self.module.import(&item.tree, &Vec::new(), is_private);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if path.leading_colon.is_none() {
            let line = path.span().start().line;
            self.module.mentions.push(Mention { segments, line });
        }
        visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    /// The tree ends at a macro; paths in it are read from its tokens.
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        visit::visit_macro(self, call);
        paths_of_tokens(call.tokens.clone(), &mut self.module.mentions);
    }
}

/// Every `a::b` in tokens; a single name may be a variable and is left out.
fn paths_of_tokens(tokens: TokenStream, mentions: &mut Vec<Mention>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_colon = |at: usize| match tokens.get(at) {
        Some(TokenTree::Punct(punct)) => punct.as_char() == ':',
        _ => false,
    };
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        index += 1;
        match token {
            TokenTree::Group(group) => paths_of_tokens(group.stream(), mentions),
            TokenTree::Ident(first) => {
                let mut segments = vec![first.to_string()];
                while is_colon(index) && is_colon(index + 1) {
                    let Some(TokenTree::Ident(next)) = tokens.get(index + 2) else { break };
                    segments.push(next.to_string());
                    index += 3;
                }
                if segments.len() > 1 {
                    mentions.push(Mention { segments, line: first.span().start().line });
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}
