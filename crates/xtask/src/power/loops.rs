//! Loops that end also where a rule is wrong.

use anyhow::{Context, Result};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::edits::Edits;

/// A source file whose loops are counted with what the rules ask.
///
/// # Errors
/// When it is no Rust.
pub fn counted(file: &str, text: &str) -> Result<String> {
    let parsed = syn::parse_file(text).with_context(|| file.to_string())?;
    let mut loops = Loops(Edits::default());
    loops.visit_file(&parsed);
    Ok(loops.0.apply(text))
}

/// What counts.
const ASK: &str = "filemap_core::switched::ask();";

struct Loops(Edits);

impl Loops {
    fn count(&mut self, body: &syn::Block) {
        let begins = body.brace_token.span.open().byte_range().end;
        self.0.instead((begins, begins), format!(" {ASK} "));
    }
}

impl<'ast> Visit<'ast> for Loops {
    // What is fixed when it is compiled asks nothing.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if item.sig.constness.is_none() {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.sig.constness.is_none() {
            visit::visit_impl_item_fn(self, item);
        }
    }

    // Iterators go round without a loop that is written.
    fn visit_expr_closure(&mut self, item: &'ast syn::ExprClosure) {
        let body = item.body.span().byte_range();
        let around = (format!("{{ {ASK} "), " }".to_string());
        self.0.around((body.start, body.end), around.0, around.1);
        visit::visit_expr_closure(self, item);
    }

    fn visit_expr_loop(&mut self, item: &'ast syn::ExprLoop) {
        self.count(&item.body);
        visit::visit_expr_loop(self, item);
    }

    fn visit_expr_while(&mut self, item: &'ast syn::ExprWhile) {
        self.count(&item.body);
        visit::visit_expr_while(self, item);
    }

    fn visit_expr_for_loop(&mut self, item: &'ast syn::ExprForLoop) {
        self.count(&item.body);
        visit::visit_expr_for_loop(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_loop_is_counted() {
        let text = "fn f() { loop { while x {} } for a in b { c }; d.map(|e| f) }";
        let counted = counted("f.rs", text).unwrap();
        assert_eq!(counted.matches("switched::ask()").count(), 4, "{counted}");
    }
}
