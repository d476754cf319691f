//! The advice of a mapping as written: a set of flags.

use filemap_core::address::vma::{Advice, HugeHint, ReadHint};

use crate::Error;
use crate::limits::unknown;

/// What the flags of a mapping may be.
const KNOWN: [&str; 4] = ["normal", "random", "sequential", "hugepage"];

/// The set that `text` lists, joined by `,`: at most one of the kinds of reading, and `hugepage`.
///
/// # Errors
/// A flag that is none, that is given twice, or that another one excludes.
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

/// The advice given, or none.
pub(crate) fn valid(text: &Option<String>) -> Result<Advice, Error> {
    let advice = text.as_deref().map_or(Ok(Advice::NORMAL), parse);
    advice.map_err(|error| error.of("advice"))
}
