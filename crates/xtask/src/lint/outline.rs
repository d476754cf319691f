//! The functions, methods and constants of a source file, with their bodies.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A function, method or constant outside of tests.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its line, from 1.
    pub line: usize,
    /// Its name, with the type of a method: `Visit::credit`.
    pub name: String,
    pub kind: Kind,
    /// Whether it is `pub` in any form.
    pub public: bool,
    /// The body of a function, or the value of a constant, without whitespace.
    pub body: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Function,
    Method,
    Constant,
}

/// The items of `code`; empty if it does not parse.
pub fn outline(code: &str) -> Vec<Item> {
    let mut items = Vec::new();
    if let Ok(tokens) = code.parse::<TokenStream>() {
        collect(tokens, None, &mut items);
    }
    items
}

fn collect(tokens: TokenStream, in_type: Option<&str>, items: &mut Vec<Item>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let (mut index, mut public, mut test) = (0, false, false);
    while index < tokens.len() {
        let word = text(&tokens[index]);
        let next = tokens.get(index + 1).map(text).unwrap_or_default();
        match word.as_str() {
            "pub" => public = true,
            "#" => test |= next == "[cfg(test)]",
            "fn" | "const" | "impl" | "mod" if word != "const" || next != "fn" => {
                let end = item_end(&tokens, index);
                let rest = &tokens[index + 1..=end];
                if !test {
                    item(&word, rest, in_type, public, items);
                }
                index = end;
                (public, test) = (false, false);
            }
            "struct" | "enum" | "trait" | "use" | "type" | "macro_rules" | "static" => {
                index = item_end(&tokens, index);
                (public, test) = (false, false);
            }
            _ => {}
        }
        index += 1;
    }
}

/// Adds the item that starts with `keyword` and continues with `rest`.
fn item(
    keyword: &str,
    rest: &[TokenTree],
    in_type: Option<&str>,
    public: bool,
    items: &mut Vec<Item>,
) {
    let Some(first) = rest.first() else { return };
    let line = first.span().start().line;
    let qualified = |name: &str| in_type.map_or(name.to_string(), |t| format!("{t}::{name}"));
    match (keyword, braces(rest)) {
        ("mod", Some(body)) => collect(body.stream(), None, items),
        ("impl", Some(body)) => collect(body.stream(), Some(&implemented(rest)), items),
        ("fn", Some(body)) => items.push(Item {
            line,
            name: qualified(&text(first)),
            kind: if in_type.is_some() { Kind::Method } else { Kind::Function },
            public,
            body: without_whitespace(body.stream()),
        }),
        ("const", _) => {
            let value = rest.iter().skip_while(|token| text(token) != "=").skip(1).cloned();
            let value: TokenStream = value.take_while(|token| text(token) != ";").collect();
            let (name, body) = (qualified(&text(first)), without_whitespace(value));
            items.push(Item { line, name, kind: Kind::Constant, public, body });
        }
        _ => {}
    }
}

/// The index of the last token of the item at `start`: its body, or a semicolon.
fn item_end(tokens: &[TokenTree], start: usize) -> usize {
    let is_end = |token: &TokenTree| is_body(token) || text(token) == ";";
    let is_constant = text(&tokens[start]) == "const" || text(&tokens[start]) == "use";
    let is_last = |token: &TokenTree| if is_constant { text(token) == ";" } else { is_end(token) };
    let length = tokens[start..].iter().position(is_last);
    length.map_or(tokens.len() - 1, |length| start + length)
}

/// The type of an `impl` block, without its parameters.
fn implemented(rest: &[TokenTree]) -> String {
    let words: Vec<String> = rest.iter().filter(|token| !is_body(token)).map(text).collect();
    let mut depth = 0;
    let outside = words.iter().filter(|word| match word.as_str() {
        "<" => {
            depth += 1;
            false
        }
        ">" => {
            depth -= 1;
            false
        }
        _ => depth == 0,
    });
    let outside: Vec<&String> = outside.collect();
    let start = outside.iter().position(|word| *word == "for").map_or(0, |at| at + 1);
    let path = outside[start..].iter().take_while(|word| *word != &"where");
    path.last().map(|word| word.to_string()).unwrap_or_default()
}

fn braces(tokens: &[TokenTree]) -> Option<&Group> {
    tokens.iter().find_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        _ => None,
    })
}

fn is_body(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

fn text(token: &TokenTree) -> String {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
            without_whitespace(TokenStream::from(token.clone()))
        }
        TokenTree::Group(_) => String::new(),
        token => token.to_string(),
    }
}

fn without_whitespace(tokens: TokenStream) -> String {
    tokens.to_string().split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "
//! fn none() {}
use a::{b, c};

/// The cap.
pub const CAP: PageCount = PageCount(1_000 + 1);

#[derive(Debug)]
pub struct Visit<'a> { credit: &'a [u32; 2] }

impl<'a> Visit<'a> {
    const MAX_CREDIT: u32 = 3;

    fn credit(&self, limits: &Limits) -> u32 {
        let f = |x| x;
        limits.rules.maps_whole_folio.into()
    }
}

impl<C: Cache> crate::Log for Outer<C> where C: Copy {
    fn record(&mut self) {}
}

pub(crate) const fn free<T: Into<u64>>(value: [u8; 4]) -> u64 { 0 }

#[cfg(test)]
mod tests {
    fn hidden() {}
}

fn last() {}
";

    #[test]
    fn finds_items_with_their_types() {
        let items = outline(CODE);
        let names = |kind| -> Vec<&str> {
            items.iter().filter(|i| i.kind == kind).map(|i| i.name.as_str()).collect()
        };
        assert_eq!(names(Kind::Function), ["free", "last"]);
        assert_eq!(names(Kind::Method), ["Visit::credit", "Outer::record"]);
        assert_eq!(names(Kind::Constant), ["CAP", "Visit::MAX_CREDIT"]);
        let named = |name| items.iter().find(|item| item.name == name).unwrap();
        assert_eq!(named("CAP").body, "PageCount(1_000+1)");
        assert_eq!((named("CAP").line, named("CAP").public), (6, true));
        assert!(named("Visit::credit").body.contains("limits.rules.maps_whole_folio"));
        assert!(named("free").public && !named("last").public);
        assert!(outline("fn f( {").is_empty());
    }
}
