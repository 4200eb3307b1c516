//! Syntax of Rust that several chores look at: attributes that mark tests, and flat tokens.

use proc_macro2::{TokenStream, TokenTree};

/// The attributes of an item of a kind that a `cfg` guards.
pub(crate) fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// `#[test]`, or a `cfg` that holds only in tests.
pub(crate) fn is_test_attribute(attribute: &syn::Attribute) -> bool {
    if attribute.path().is_ident("test") {
        return true;
    }
    let syn::Meta::List(list) = &attribute.meta else { return false };
    let mut tokens = Vec::new();
    flatten(list.tokens.clone(), &mut tokens);
    let has = |word: &str| tokens.iter().any(|(token, _)| token == word);
    list.path.is_ident("cfg") && has("test") && !has("not")
}

/// All tokens in order with their lines; a group becomes its opening delimiter and its content.
pub(crate) fn flatten(tokens: TokenStream, flat: &mut Vec<(String, usize)>) {
    for token in tokens {
        let line = token.span().start().line;
        match token {
            TokenTree::Group(group) => {
                let text = match group.delimiter() {
                    proc_macro2::Delimiter::Parenthesis => "(",
                    proc_macro2::Delimiter::Brace => "{",
                    proc_macro2::Delimiter::Bracket => "[",
                    proc_macro2::Delimiter::None => "",
                };
                flat.push((text.to_owned(), line));
                flatten(group.stream(), flat);
            }
            TokenTree::Ident(ident) => flat.push((ident.to_string(), line)),
            TokenTree::Punct(punct) => flat.push((punct.as_char().to_string(), line)),
            TokenTree::Literal(_) => flat.push((String::new(), line)),
        }
    }
}
