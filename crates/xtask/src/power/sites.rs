//! The places in a source file where a rule can be made wrong, and the switch that each becomes.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{BinOp, Expr};

use super::edits::Edits;
use super::mutant::Mutant;
use super::variants::Variants;

/// Which ways are left out: they are no Rust. A way of 0 stands for the whole site.
pub type LeftOut = BTreeSet<(usize, u8)>;

/// A source file with a switch at each site, the first of which has the number `first`; `mutants`
/// gets what they can be set to.
///
/// # Errors
/// When it is no Rust.
pub fn switched(
    file: &str,
    text: &str,
    variants: &Variants,
    left_out: &LeftOut,
    first: usize,
    mutants: &mut Vec<Mutant>,
) -> Result<(String, usize)> {
    let parsed = syn::parse_file(text).with_context(|| file.to_string())?;
    let mut sites = Sites {
        file,
        text,
        variants,
        left_out,
        next: first,
        functions: Vec::new(),
        edits: Edits::default(),
        mutants,
    };
    sites.visit_file(&parsed);
    let Sites { next, edits, .. } = sites;
    Ok((edits.apply(text), next))
}

/// A source file on its way to one with switches.
pub(super) struct Sites<'a> {
    file: &'a str,
    text: &'a str,
    pub(super) variants: &'a Variants,
    left_out: &'a LeftOut,
    next: usize,
    pub(super) functions: Vec<String>,
    pub(super) edits: Edits,
    mutants: &'a mut Vec<Mutant>,
}

/// The bytes of what is parsed.
pub(super) fn bytes(of: &impl Spanned) -> (usize, usize) {
    let range = of.span().byte_range();
    (range.start, range.end)
}

impl Sites<'_> {
    pub(super) fn source(&self, of: &impl Spanned) -> String {
        let (start, end) = bytes(of);
        let words: Vec<&str> = self.text[start..end].split_whitespace().collect();
        words.join(" ")
    }

    /// A site at `span` where `before` can become each of `after`. Returns its number and the ways
    /// that are left of these; `None` where none is.
    pub(super) fn site(
        &mut self,
        span: Span,
        before: &str,
        after: &[String],
    ) -> Option<(usize, Vec<u8>)> {
        let site = self.next;
        self.next += 1;
        if self.left_out.contains(&(site, 0)) {
            return None;
        }
        let ways = (1..=after.len() as u8).filter(|way| !self.left_out.contains(&(site, *way)));
        let ways: Vec<u8> = ways.collect();
        for way in &ways {
            self.mutants.push(Mutant {
                site,
                way: *way,
                file: self.file.to_string(),
                line: span.start().line,
                function: self.functions.join("::"),
                before: before.to_string(),
                after: after[usize::from(*way) - 1].clone(),
            });
        }
        (!ways.is_empty()).then_some((site, ways))
    }

    /// `expr` becomes one of `after`, each written with `v` for its value.
    pub(super) fn value(&mut self, expr: &Expr, after: &[(&str, String)]) {
        let shown: Vec<String> = after.iter().map(|(_, shown)| shown.clone()).collect();
        let before = self.source(expr);
        let Some((site, ways)) = self.site(expr.span(), &before, &shown) else { return };
        let texts: Vec<String> = after.iter().map(|(text, _)| (*text).to_string()).collect();
        let ways = listed(site, &ways, "v", &texts);
        let before = format!("/*[{site}*/(match (");
        let after = format!(") {{ v => {CHOOSE}({site}, [v{ways}]) }})/*{site}]*/");
        self.edits.around(bytes(expr), before, after);
    }

    /// A condition that holds always or never.
    pub(super) fn condition(&mut self, expr: &Expr, after: &[&'static str]) {
        let after: Vec<_> = after.iter().map(|text| (*text, (*text).to_string())).collect();
        self.value(expr, &after);
    }

    /// Two values and what is made of them: `made` as it is written, or one of `after`, with `l`
    /// and `r` for the two.
    pub(super) fn of_two(
        &mut self,
        expr: &Expr,
        (left, right): (&Expr, &Expr),
        by_reference: bool,
        made: &str,
        after: &[&str],
    ) {
        let (l, r) = (self.source(left), self.source(right));
        let shown = |text: &str| {
            let words = text.split(' ').map(|word| match word {
                "l" | "*l" => l.clone(),
                "r" | "*r" => r.clone(),
                other => other.to_string(),
            });
            words.collect::<Vec<_>>().join(" ")
        };
        let shown: Vec<String> = after.iter().map(|text| shown(text)).collect();
        let before = self.source(expr);
        let Some((site, ways)) = self.site(expr.span(), &before, &shown) else { return };
        let texts: Vec<String> = after.iter().map(|text| text.replace(" (", "(")).collect();
        let made = made.replace(" (", "(");
        let ways = listed(site, &ways, &made, &texts);
        let by = if by_reference { "&" } else { "" };
        let (_, left_end) = bytes(left);
        let (right_start, right_end) = bytes(right);
        let (_, end) = bytes(expr);
        let open = format!("/*[{site}*/(match ({by}(");
        let close = format!(")) {{ (l, r) => {CHOOSE}({site}, [{made}{ways}]) }})/*{site}]*/");
        self.edits.around(bytes(expr), open, close);
        self.edits.instead((left_end, right_start), format!("), {by}("));
        // The parenthesis of a call.
        if right_end < end {
            self.edits.instead((right_end, end), "");
        }
    }

    pub(super) fn value_of_receiver(&mut self, expr: &Expr, receiver: &Expr, made: &str) {
        let shown = [self.source(receiver)];
        let before = self.source(expr);
        let Some((site, ways)) = self.site(expr.span(), &before, &shown) else { return };
        let ways = listed(site, &ways, made, &["v".to_string()]);
        let open = format!("/*[{site}*/(match (");
        let close = format!(") {{ v => {CHOOSE}({site}, [{made}{ways}]) }})/*{site}]*/");
        self.edits.around(bytes(expr), open, close);
        self.edits.instead((bytes(receiver).1, bytes(expr).1), "");
    }

    /// `receiver.call(..)` is `receiver`.
    pub(super) fn without_call(&mut self, expr: &Expr, receiver: &Expr) {
        let shown = [self.source(receiver)];
        let before = self.source(expr);
        let Some((site, _)) = self.site(expr.span(), &before, &shown) else { return };
        self.edits.around(
            bytes(expr),
            format!("/*[{site}*/(match ("),
            format!(" }} }})/*{site}]*/"),
        );
        let at = bytes(receiver).1;
        let rest = format!(") {{ v => if !crate::switched::kept({site}) {{ v }} else {{ v");
        self.edits.instead((at, at), rest);
    }

    /// One more or one less than `expr`.
    pub(super) fn beside(&mut self, expr: &Expr) {
        let before = self.source(expr);
        let shown = [format!("{before} + 1"), format!("{before} - 1")];
        let Some((site, _)) = self.site(expr.span(), &before, &shown) else { return };
        let open = format!("/*[{site}*/crate::switched::beside({site}, ");
        self.edits.around(bytes(expr), open, format!(")/*{site}]*/"));
    }

    /// What is written there is left out: `before` and `after` go around it.
    pub(super) fn left_out(
        &mut self,
        range: (usize, usize),
        span: Span,
        before: &str,
    ) -> Option<usize> {
        let text: Vec<&str> = self.text[range.0..range.1].split_whitespace().collect();
        let shown = format!("{before}{}", text.join(" "));
        let (site, _) = self.site(span, &shown, &["(left out)".to_string()])?;
        Some(site)
    }

    /// What stands between two conditions of a chain that binds a value: it holds never.
    fn never(&mut self, cond: &Expr) {
        let range = bytes(cond);
        if let Some(site) = self.left_out(range, cond.span(), "if ") {
            let close = format!("/*[{site}*/ && crate::switched::kept({site})/*{site}]*/");
            self.edits.around(range, String::new(), close);
        }
    }

    pub(super) fn of_condition(&mut self, cond: &Expr) {
        if has_let(cond) {
            self.never(cond);
        } else {
            self.condition(cond, &["true", "false"]);
        }
    }

    pub(super) fn function(
        &mut self,
        name: &syn::Ident,
        sig: &syn::Signature,
        visit: impl FnOnce(&mut Self),
    ) {
        if let Some(word) = &sig.constness {
            // What it asks is not known when it is compiled.
            let (start, end) = bytes(word);
            self.edits.instead((start, end), "");
        }
        self.functions.push(name.to_string());
        visit(self);
        self.functions.pop();
    }
}

/// The function of `switched` that chooses.
const CHOOSE: &str = "crate::switched::choose";

/// `texts` as further elements of an array; ways that are left out stay as the rule is written.
fn listed(site: usize, ways: &[u8], made: &str, texts: &[String]) -> String {
    let text = |(way, text): (u8, &String)| {
        if ways.contains(&way) {
            format!(", /*({site}.{way}*/{text}/*)*/")
        } else {
            format!(", {made}")
        }
    };
    (1..).zip(texts).map(text).collect()
}

/// Whether `expr` binds a value, as a condition may.
pub(super) fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) if matches!(binary.op, BinOp::And(_)) => {
            has_let(&binary.left) || has_let(&binary.right)
        }
        _ => false,
    }
}
