//! The advice of a mapping: a set of flags.

use filemap_core::address::vma::{Advice, HugeHint, ReadHint};

use crate::Error;
use crate::limits::unknown;

/// Valid flags.
const KNOWN: [&str; 4] = ["normal", "random", "sequential", "hugepage"];

/// Parses a set of flags, joined by `,`: at most one of the read hints, and `hugepage`.
///
/// # Errors
/// An unknown, duplicate or conflicting flag.
pub fn parse(text: &str) -> Result<Advice, Error> {
    let (mut read, mut huge) = (None, HugeHint::None);
    for word in text.split(',').map(str::trim) {
        let hint = match word {
            "normal" => ReadHint::Normal,
            "random" => ReadHint::Random,
            "sequential" => ReadHint::Sequential,
            "hugepage" if huge == HugeHint::None => {
                huge = HugeHint::Huge;
                continue;
            }
            "hugepage" => return Err(excluded("hugepage", "hugepage")),
            _ => return Err(unknown("advice", word, KNOWN)),
        };
        if let Some(before) = read.replace(hint) {
            let name = |read| Advice { read, huge: HugeHint::None }.name();
            return Err(excluded(name(before), name(hint)));
        }
    }
    Ok(Advice { read: read.unwrap_or_default(), huge })
}

fn excluded(first: &'static str, second: &'static str) -> Error {
    Error::AdviceExcluded { first, second }
}

/// Parses the advice, if given.
pub(crate) fn valid(text: &Option<String>) -> Result<Advice, Error> {
    let advice = text.as_deref().map_or(Ok(Advice::NORMAL), parse);
    advice.map_err(|error| error.with_flag("advice"))
}
