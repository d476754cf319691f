//! Which places of a source file are looked at.

use syn::visit::{self, Visit};
use syn::{Expr, Pat, Stmt, UnOp};

use super::sites::Sites;
use super::ways::is_compound;

impl<'ast> Visit<'ast> for Sites<'_> {
    // Patterns, types and constants are fixed when they are compiled.
    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig.ident, &item.sig, |own| visit::visit_block(own, &item.block));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig.ident, &item.sig, |own| own.visit_block(&item.block));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig.ident, &item.sig, |own| own.visit_block(block));
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let name = self.source(&*item.self_ty);
        // What a type looks like is no rule.
        let shows = item.trait_.as_ref().is_some_and(|(_, path, _)| {
            path.segments
                .last()
                .is_some_and(|last| last.ident == "Display" || last.ident == "Debug")
        });
        if !shows {
            self.functions.push(name);
            item.items.iter().for_each(|item| self.visit_impl_item(item));
            self.functions.pop();
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let is_test = item.attrs.iter().any(|attribute| attribute.path().is_ident("cfg"));
        if !is_test {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_stmt(&mut self, stmt: &'ast Stmt) {
        self.statement(stmt);
        visit::visit_stmt(self, stmt);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.of_condition(guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::Binary(binary) if is_compound(expr) => {
                self.assigned(&binary.right);
                return self.visit_expr(&binary.right);
            }
            Expr::Assign(assign) => {
                self.assigned(&assign.right);
                return self.visit_expr(&assign.right);
            }
            Expr::Binary(binary) => self.binary(expr, binary),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
                self.value(expr, &[("!v", self.source(&*unary.expr))]);
            }
            // What is told of a rule is not the rule.
            Expr::MethodCall(call) if call.method == "record" => return,
            Expr::MethodCall(call) => self.call(expr, call),
            Expr::Call(call) => {
                if self.source(&*call.func) == "Some" {
                    self.some(expr);
                }
                return call.args.iter().for_each(|argument| self.visit_expr(argument));
            }
            Expr::If(branch) => self.of_condition(&branch.cond),
            Expr::While(repeated) => self.of_condition(&repeated.cond),
            Expr::Match(choice) => self.cases(choice),
            Expr::Struct(made) => {
                for field in made.fields.iter().filter(|field| field.colon_token.is_some()) {
                    self.field(field);
                    self.visit_expr(&field.expr);
                }
                return;
            }
            Expr::Lit(lit) => self.literal(expr, &lit.lit),
            Expr::Path(path) => self.path(expr, &path.path),
            Expr::Macro(_) | Expr::Const(_) => return,
            _ => {}
        }
        visit::visit_expr(self, expr);
    }
}
