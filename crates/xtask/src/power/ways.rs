//! What a place in a rule can become.

use syn::spanned::Spanned;
use syn::{BinOp, Expr, Lit, Pat, Stmt};

use super::sites::{Sites, bytes, has_let};

impl Sites<'_> {
    pub(super) fn binary(&mut self, expr: &Expr, binary: &syn::ExprBinary) {
        use BinOp::{Add, And, BitAnd, BitOr, Div, Eq, Ge, Gt, Le, Lt};
        use BinOp::{Mul, Ne, Or, Rem, Shl, Shr, Sub};
        let operands = (&*binary.left, &*binary.right);
        let (is_comparison, sign, others): (bool, &str, &[&str]) = match binary.op {
            Lt(_) => (true, "<", &["<=", ">="]),
            Le(_) => (true, "<=", &["<", ">"]),
            Gt(_) => (true, ">", &[">=", "<="]),
            Ge(_) => (true, ">=", &[">", "<"]),
            Eq(_) => (true, "==", &["!=", "<=", ">="]),
            Ne(_) => (true, "!=", &["==", "<", ">"]),
            Add(_) => (false, "+", &["-"]),
            Sub(_) => (false, "-", &["+"]),
            Mul(_) => (false, "*", &["+"]),
            Div(_) => (false, "/", &["*"]),
            Rem(_) => (false, "%", &["+"]),
            Shl(_) => (false, "<<", &[">>"]),
            Shr(_) => (false, ">>", &["<<"]),
            BitAnd(_) => (false, "&", &["|"]),
            BitOr(_) => (false, "|", &["&"]),
            And(_) => return self.joined(binary, "&&", "||", "true"),
            Or(_) => return self.joined(binary, "||", "&&", "false"),
            _ => return,
        };
        let star = if is_comparison { "*" } else { "" };
        let of = |sign: &str| format!("{star}l {sign} {star}r");
        let made = of(sign);
        let mut after: Vec<String> = others.iter().map(|sign| of(sign)).collect();
        if !is_comparison {
            after.extend(["l", "r"].map(String::from));
        }
        let after: Vec<&str> = after.iter().map(String::as_str).collect();
        self.of_two(expr, operands, is_comparison, &made, &after);
    }

    /// Conditions that are joined: by the other word, or without one of them.
    fn joined(&mut self, binary: &syn::ExprBinary, word: &str, other: &str, idle: &'static str) {
        let (left, right) = (&*binary.left, &*binary.right);
        if has_let(left) || has_let(right) {
            for operand in [left, right].into_iter().filter(|operand| !has_let(operand)) {
                self.condition(operand, &[idle]);
            }
            return;
        }
        let (l, r) = (self.source(left), self.source(right));
        let whole = (bytes(left).0, bytes(right).1);
        let before = format!("{l} {word} {r}");
        if let Some((site, _)) = self.site(binary.span(), &before, &[format!("{l} {other} {r}")]) {
            let turns = format!("!crate::switched::kept({site})");
            let open = format!("/*[{site}*/({turns} ^ (({turns} ^ (");
            self.edits.around(whole, open, format!("))))/*{site}]*/"));
            let between = (bytes(left).1, bytes(right).0);
            self.edits.instead(between, format!(")) {word} ({turns} ^ ("));
        }
        for operand in [left, right] {
            self.condition(operand, &[idle]);
        }
    }

    pub(super) fn call(&mut self, expr: &Expr, call: &syn::ExprMethodCall) {
        let method = call.method.to_string();
        let receiver = &*call.receiver;
        let (made, after): (&str, &[&str]) = match (method.as_str(), call.args.len()) {
            ("min", 1) => ("l.min (r)", &["l.max (r)", "l", "r"]),
            ("max", 1) => ("l.max (r)", &["l.min (r)", "l", "r"]),
            ("saturating_sub", 1) => ("l.saturating_sub (r)", &["l"]),
            ("wrapping_sub", 1) => ("l.wrapping_sub (r)", &["l"]),
            ("align_down", 1) => ("l.align_down (r)", &["l.align_up (r)", "l"]),
            ("align_up", 1) => ("l.align_up (r)", &["l.align_down (r)", "l"]),
            ("div_ceil", 1) => ("l.div_ceil (r)", &["l / r"]),
            ("next_power_of_two", 0) => {
                return self.value_of_receiver(expr, receiver, "v.next_power_of_two()");
            }
            ("filter", 1) => return self.without_call(expr, receiver),
            ("then" | "then_some", 1) => return self.condition(receiver, &["true", "false"]),
            _ => return,
        };
        self.of_two(expr, (receiver, &call.args[0]), false, made, after);
    }

    pub(super) fn literal(&mut self, expr: &Expr, lit: &Lit) {
        match lit {
            Lit::Bool(bool) => {
                let other = if bool.value { "false" } else { "true" };
                self.condition(expr, &[other]);
            }
            Lit::Int(_) => self.beside(expr),
            _ => {}
        }
    }

    pub(super) fn path(&mut self, expr: &Expr, path: &syn::Path) {
        let names: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let last = names.last().map_or("", String::as_str);
        if last.len() > 1 && last.chars().all(|c| c.is_ascii_uppercase() || c == '_') {
            return self.beside(expr);
        }
        let [.., of, _] = &names[..] else { return };
        let Some(known) = self.variants.get(of) else { return };
        let Some(at) = known.iter().position(|name| name == last) else { return };
        let place = &self.source(expr);
        let place = &place[..place.len() - last.len()];
        let others = (1..known.len()).take(2).map(|step| &known[(at + step) % known.len()]);
        let others: Vec<String> = others.map(|name| format!("{place}{name}")).collect();
        let others: Vec<(&str, String)> =
            others.iter().map(|text| (text.as_str(), text.clone())).collect();
        self.value(expr, &others);
    }

    pub(super) fn statement(&mut self, stmt: &Stmt) {
        let Stmt::Expr(expr, Some(_)) = stmt else { return };
        let is_log = |call: &syn::ExprMethodCall| call.method == "record";
        let leaves = match expr {
            Expr::Assign(_) => true,
            Expr::Binary(_) => is_compound(expr),
            Expr::MethodCall(call) => !is_log(call),
            Expr::Call(_) => true,
            _ => false,
        };
        if leaves && let Some(site) = self.left_out(bytes(stmt), stmt.span(), "") {
            let open = format!("/*[{site}*/if crate::switched::kept({site}) {{ ");
            self.edits.around(bytes(stmt), open, format!(" }}/*{site}]*/"));
        }
    }

    /// A value that there is, or none.
    pub(super) fn some(&mut self, expr: &Expr) {
        let before = self.source(expr);
        let Some((site, _)) = self.site(expr.span(), &before, &["None".to_string()]) else {
            return;
        };
        let open = format!("/*[{site}*/(if !crate::switched::kept({site}) {{ None }} else {{ ");
        self.edits.around(bytes(expr), open, format!(" }})/*{site}]*/"));
    }

    /// Each case but the last, where that takes what the others leave.
    pub(super) fn cases(&mut self, choice: &syn::ExprMatch) {
        let Some((last, others)) = choice.arms.split_last() else { return };
        if last.guard.is_some() || !takes_all(&last.pat) {
            return;
        }
        for arm in others.iter().filter(|arm| arm.guard.is_none()) {
            if let Some(site) = self.left_out(bytes(&arm.pat), arm.pat.span(), "case ") {
                let guard = format!("/*[{site}*/ if crate::switched::kept({site})/*{site}]*/");
                self.edits.around(bytes(&arm.pat), String::new(), guard);
            }
        }
    }

    /// One more or one less in a field.
    pub(super) fn field(&mut self, field: &syn::FieldValue) {
        use Expr::{Call, Field, MethodCall, Path};
        if matches!(field.expr, Path(_) | Field(_) | Call(_) | MethodCall(_)) {
            self.beside(&field.expr);
        }
    }

    /// What is put into a place that is there already: one more or one less.
    pub(super) fn assigned(&mut self, right: &Expr) {
        if !matches!(right, Expr::Lit(_)) {
            self.beside(right);
        }
    }
}

/// Whether a pattern takes every value.
fn takes_all(pattern: &Pat) -> bool {
    match pattern {
        Pat::Wild(_) => true,
        Pat::Ident(name) => name.ident.to_string().starts_with(char::is_lowercase),
        _ => false,
    }
}

/// Whether `expr` changes what stands on its left.
pub(super) fn is_compound(expr: &Expr) -> bool {
    use BinOp::{AddAssign, BitAndAssign, BitOrAssign, ShlAssign, ShrAssign, SubAssign};
    let Expr::Binary(binary) = expr else { return false };
    matches!(
        binary.op,
        AddAssign(_)
            | SubAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}
