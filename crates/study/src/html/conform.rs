//! The record of a comparison of decisions with those of the running kernel.

use filemap_report::Card;
use maud::{Markup, html};
use serde::Deserialize;

use crate::conform::unseen;
use crate::error::Error;
use filemap_report::units::number;

use super::{Shown, read};
use filemap_report::Bar;
use filemap_report::html::bars;

#[derive(Deserialize)]
struct Conformed {
    #[serde(default)]
    booted: bool,
    #[serde(default)]
    not_shown: Vec<String>,
    patterns: Vec<Pattern>,
}

#[derive(Deserialize)]
struct Pattern {
    name: String,
    decisions: u64,
    readahead_calls: Option<u64>,
    #[serde(default)]
    excluded: u64,
    mismatches: u64,
    first_mismatch: Option<First>,
    #[serde(default)]
    not_compared: Option<String>,
    #[serde(default)]
    left_out: Option<String>,
    #[serde(default)]
    ok: Option<bool>,
    #[serde(default)]
    job: String,
}

#[derive(Deserialize)]
struct First {
    line: u64,
    before: Vec<String>,
    model: Vec<String>,
    kernel: Vec<String>,
}

/// Patterns that are drawn; those behind them only where they do not agree.
const MOST_DRAWN: usize = 200;

/// The page of such a record.
pub(super) fn page(json: &str) -> Result<Shown, Error> {
    let Conformed { booted, not_shown, patterns } = read(json)?;
    let count = |of: fn(&Pattern) -> bool| patterns.iter().filter(|own| of(own)).count();
    let sum = |of: fn(&Pattern) -> u64| patterns.iter().map(of).fold(0, u64::saturating_add);
    let (agree, differ) = (count(|own| own.ok == Some(true)), count(|own| own.ok == Some(false)));
    let card = |name: &str, figure: f64, more: &str| Card::new(name, number(figure), more);
    let calls = patterns.iter().filter_map(|own| own.readahead_calls);
    let calls = calls
        .reduce(u64::saturating_add)
        .map(|calls| card("readahead calls", calls as f64, "among them"));
    let mut cards = vec![
        card("patterns that agree", agree as f64, ""),
        card("patterns that differ", differ as f64, "or do not show that they agree"),
        card("not compared", (patterns.len() - agree - differ) as f64, ""),
        card("decisions compared", sum(|own| own.decisions) as f64, ""),
    ];
    cards.extend(calls);
    cards.push(card("mismatches", sum(|own| own.mismatches) as f64, ""));
    let not_shown: Vec<&str> = not_shown.iter().map(String::as_str).collect();
    let is_drawn = |(at, own): &(usize, &Pattern)| *at < MOST_DRAWN || own.ok != Some(true);
    let drawn = patterns.iter().enumerate().filter(is_drawn).map(|(_, own)| own);
    let rows: Vec<Bar> = drawn.clone().map(bar).collect();
    let heads = ["pattern", "decisions", "readahead calls", "excluded", "mismatches", "verdict"];
    let body = html! {
        (filemap_report::html::cards(&cards))
        (bars("Decisions compared, by pattern", &heads, &rows))
        p {
            "Excluded are lines of faults that only one log has, because a page was still on its "
            "way when a fault-around passed it."
        }
        @if let Some(unseen) = unseen(&not_shown) { p { (unseen) } }
        @for pattern in drawn { (more(pattern)) }
    };
    let which = if booted { "booted" } else { "running" };
    Ok(Shown { title: format!("Decisions of the {which} kernel and of the model"), body })
}

fn bar(pattern: &Pattern) -> Bar {
    let (verdict, class) = match pattern.ok {
        Some(true) => ("same", "u4"),
        Some(false) => ("differs", "u0"),
        None => ("not compared", "none"),
    };
    let Pattern { decisions, readahead_calls, excluded, mismatches, .. } = *pattern;
    let numbers = [Some(decisions), readahead_calls, Some(excluded), Some(mismatches)];
    let text = |value: Option<u64>| value.map_or("-".to_string(), |value| number(value as f64));
    let texts = numbers.map(text).into_iter();
    Bar {
        name: pattern.name.clone(),
        value: Some(decisions as f64),
        class,
        texts: texts.chain([verdict.to_string()]).collect(),
    }
}

/// What there is to say of a pattern that does not agree.
fn more(pattern: &Pattern) -> Markup {
    let reason = pattern.not_compared.as_ref().or(pattern.left_out.as_ref());
    html! {
        @if let Some(reason) = reason { p { (pattern.name) ": " (reason) "." } }
        @if let Some(first) = &pattern.first_mismatch {
            h3 { (pattern.name) ": the first difference, behind " (first.line) " lines" }
            (lines("both", &first.before))
            (lines("the model", &first.model))
            (lines("the kernel", &first.kernel))
            details {
                summary { "The job" }
                pre.scroll tabindex="0" { (pattern.job) }
            }
        }
    }
}

fn lines(of: &str, lines: &[String]) -> Markup {
    html! {
        p { (of) ":" }
        pre.scroll tabindex="0" {
            @if lines.is_empty() { "(its log ends here)" } @else { (lines.join("\n")) }
        }
    }
}
