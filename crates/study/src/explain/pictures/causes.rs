//! Bytes read by cause, as bars.

use filemap_report::units::{bytes, number};
use filemap_report::{Bar, Bars};

use super::super::history::CausePages;
use super::super::origin::Origin;
use super::shares::{percent, sum};

/// Bars that are drawn at most; JSON has all.
pub(in super::super) const MOST_BARS: usize = 200;

/// A bar of the pages that were read for the cause with this key.
pub(in super::super) fn bar(key: &str, name: String, pages: u64, texts: Vec<String>) -> Bar {
    let class = match Origin::with_key(key) {
        Some(Origin::Used) => "u4",
        Some(Origin::Refetched) => "again",
        _ => "u0",
    };
    Bar { name, value: Some(pages as f64), class, texts }
}

/// Pages of the file that is called so, by what they were read for.
pub(super) fn bars(file: &str, causes: &[CausePages], page_bytes: u64) -> Bars {
    let all = sum(causes.iter().map(|cause| cause.pages));
    let page = page_bytes as f64;
    let of = |cause: &CausePages| {
        let texts = vec![
            bytes(cause.pages as f64 * page),
            number(cause.pages as f64),
            percent(cause.pages, all),
            number(cause.again as f64),
        ];
        bar(&cause.cause, Origin::name_of(&cause.cause), cause.pages, texts)
    };
    let shown: Vec<Bar> = causes.iter().filter(|cause| cause.pages > 0).map(of).collect();
    let note = match shown.is_empty() {
        true => format!("{file}nothing was read."),
        false => format!(
            "Each page that entered the page cache is counted once: as used, if the program \
             accessed it before it left, or else by what it was read for. {} in all.",
            bytes(all as f64 * page)
        ),
    };
    let heads = ["cause", "bytes", "pages", "share", "in before"];
    Bars::new(format!("{file}Bytes read, by cause"), &heads, shown).with_note(note)
}
