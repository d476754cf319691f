//! Range checks of flag values.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use filemap_core::units::PageCount;

use crate::Error;
use crate::bounds::{MAX_BYTES, MAX_PIECES};
use crate::size::{SizeText, format_duration, format_size, parse_duration_ns, shorten};

/// Returns `value` if it is between `from` and `to`, inclusive.
pub(crate) fn within(flag: &'static str, value: u64, from: u64, to: u64) -> Result<u64, Error> {
    if (from..=to).contains(&value) {
        return Ok(value);
    }
    Err(out_of_range(value, from, to).with_flag(flag))
}

/// Parses a size in bytes, if given, between `from` and `to`, inclusive.
pub(crate) fn size(
    flag: &'static str,
    text: &Option<SizeText>,
    from: u64,
    to: u64,
) -> Result<Option<u64>, Error> {
    let Some(text) = text else { return Ok(None) };
    let bytes = bounded(&text.0, text.bytes(), from..=to, format_size);
    bytes.map(Some).map_err(|error| error.with_flag(flag))
}

/// Returns `value`, parsed from `text`, if it is in `range`. `shown` formats the limits for
/// messages.
fn bounded(
    text: &str,
    value: Result<u64, Error>,
    range: RangeInclusive<u64>,
    shown: fn(u64) -> String,
) -> Result<u64, Error> {
    match value {
        Ok(value) if range.contains(&value) => Ok(value),
        // Does not fit 64 bits, or the range.
        Ok(_) | Err(Error::OutOfRange { .. }) => {
            Err(out_of_range(shorten(text), shown(*range.start()), shown(*range.end())))
        }
        Err(error) => Err(error),
    }
}

/// Parses a size in pages, if given, of at least `from` pages and at most [`MAX_BYTES`].
pub(crate) fn pages(
    flag: &'static str,
    text: &Option<SizeText>,
    from: u64,
    page_size: u64,
) -> Result<Option<u64>, Error> {
    let Some(bytes) = size(flag, text, from * page_size, MAX_BYTES)? else { return Ok(None) };
    if bytes.is_multiple_of(page_size) {
        return Ok(Some(bytes / page_size));
    }
    let below = bytes - bytes % page_size;
    Err(Error::Unaligned {
        value: text.as_ref().map_or_else(String::new, |text| shorten(&text.0)),
        unit: format!("the page size {}", format_size(page_size)),
        below: format_size(below),
        above: format_size(below + page_size),
    }
    .with_flag(flag))
}

/// Parses a duration in nanoseconds, if given, between `from` and `to`, inclusive.
pub(crate) fn duration(
    flag: &'static str,
    text: &Option<String>,
    from: u64,
    to: u64,
) -> Result<Option<u64>, Error> {
    let Some(text) = text else { return Ok(None) };
    let ns = bounded(text, parse_duration_ns(text), from..=to, format_duration);
    ns.map(Some).map_err(|error| error.with_flag(flag))
}

/// Checks the number of pages per VMA of a split mapping of `mapped` pages: the number of VMAs must
/// not exceed the limit per process.
pub(crate) fn split_pages(pages: u64, mapped: u64) -> Result<PageCount, Error> {
    match mapped.div_ceil(MAX_PIECES) {
        _ if pages == 0 => Err(Error::Zero { remedy: "the pages of each piece, such as 64" }),
        least if pages < least => Err(Error::TooManyPieces { pages, mapped, least }),
        least if pages > MAX_BYTES => Err(out_of_range(pages, least, MAX_BYTES)),
        _ => Ok(PageCount(pages)),
    }
    .map_err(|error| error.with_flag("split"))
}

/// Parses a name; `default` if not given.
pub(crate) fn name<T: FromStr<Err = Error>>(
    flag: &'static str,
    text: &Option<String>,
    default: T,
) -> Result<T, Error> {
    text.as_ref()
        .map_or(Ok(default), |text| text.parse().map_err(|error: Error| error.with_flag(flag)))
}

/// Finds the element of `all` with the given name; `default` if not given.
pub(crate) fn check_one_of<T: Copy, const N: usize>(
    flag: &'static str,
    kind: &'static str,
    text: &Option<String>,
    default: T,
    all: [T; N],
    name: fn(T) -> &'static str,
) -> Result<T, Error> {
    let Some(text) = text else { return Ok(default) };
    let found = all.into_iter().find(|&known| name(known) == text);
    found.ok_or_else(|| unknown(kind, text, all.map(name)).with_flag(flag))
}

pub(crate) fn unknown(
    name: &'static str,
    text: &str,
    known: impl IntoIterator<Item = &'static str>,
) -> Error {
    let known = known.into_iter().collect::<Vec<_>>().join(", ");
    Error::UnknownName { what: name, text: shorten(text), known }
}

pub(crate) fn out_of_range(value: impl Display, from: impl Display, to: impl Display) -> Error {
    Error::OutOfRange { value: value.to_string(), from: from.to_string(), to: to.to_string() }
}
