//! `filemap folio-ops --mapped`: what is told of a folio that several processes map, without counts
//! of pages.

use std::ops::Range;

use filemap_job::folio_ops::{PAGE_BYTES, PMD_BYTES};
use filemap_job::{
    Error as JobError, FolioOpsSpec, SizeText, format_size, parse_count, shell_word,
};
use filemap_study::Footer;
use filemap_study::folio_maps::{self, FolioMaps};
use serde_json::Map;

use crate::Outcome;
use crate::args::FolioOpsArgs;
use crate::error::Error;
use crate::folio_maps as maps;
use crate::output::Inputs;
use filemap_study::provenance;

/// The folio that is looked at where no size is given.
const DEFAULT_SIZES: &str = "64k";

/// Says what each way to count tells of the mappings of `args`.
pub fn run(mut spec: FolioOpsSpec, args: &FolioOpsArgs) -> Result<Outcome, Error> {
    check(&spec, args)?;
    let output = args.output.open(&Inputs::default(), &[])?;
    spec.folio_sizes.get_or_insert(DEFAULT_SIZES.to_string());
    let job = spec.validate()?;
    let mms = args.mapped.iter().map(|text| ranges(text)).collect::<Result<Vec<_>, _>>()?;
    let folios = job.folio_bytes.iter().map(|&size| of_size(size, &mms, &args.mapped));
    let folios = folios.collect::<Result<Vec<_>, Error>>()?;
    output.write(&folio_maps::report(&folios, footer(&job.folio_bytes, &args.mapped)))?;
    Ok(Outcome::Done)
}

/// Refuses flags that say nothing of mappings.
fn check(spec: &FolioOpsSpec, args: &FolioOpsArgs) -> Result<(), Error> {
    let given = [
        ("on", spec.on.is_some()),
        ("runs", spec.runs.is_some()),
        ("seed", spec.seed.is_some()),
        ("size", spec.size.is_some()),
        ("apply", args.apply),
        ("verbose", args.verbose),
        ("html", args.output.html().is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Error::Usage(format!(
            "--{flag} does not go with --mapped, as nothing is run; leave it out"
        ))),
        None => Ok(()),
    }
}

/// What is told of a folio of this size. `texts` are what was given for `mms`.
fn of_size(
    folio_bytes: u64,
    mms: &[Vec<Range<usize>>],
    texts: &[String],
) -> Result<FolioMaps, Error> {
    if folio_bytes == PAGE_BYTES {
        return Err(Error::Usage(
            "--folio-sizes: a folio of 4k is one page, which is always counted; give 8k to 2m"
                .to_string(),
        ));
    }
    let last = (folio_bytes / PAGE_BYTES - 1) as usize;
    for (mm, text) in mms.iter().zip(texts) {
        let wrong = |why: String| Error::Usage(format!("--mapped {}: {why}", start(text)));
        if let Some(outside) = mm.iter().map(|range| range.end - 1).find(|&page| page > last) {
            let size = format_size(folio_bytes);
            return Err(wrong(format!(
                "a folio of {size} has no page {outside}; give 0 to {last}, or larger --folio-sizes"
            )));
        }
        // Each by itself: the message is of the one that is wrong.
        maps::of(folio_bytes, std::slice::from_ref(mm))
            .map_err(|error| wrong(error.to_string()))?;
    }
    maps::of(folio_bytes, mms)
}

/// The start of a value that goes into a message.
fn start(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

/// The ranges of pages of a text such as `0-3,8`.
fn ranges(text: &str) -> Result<Vec<Range<usize>>, Error> {
    text.split(',').map(|part| range(text, part.trim())).collect()
}

fn range(text: &str, part: &str) -> Result<Range<usize>, Error> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    match (page(text, first.trim())?, page(text, last.trim())?) {
        (first, last) if first <= last => Ok(first..last + 1),
        (first, last) => Err(Error::Usage(format!(
            "--mapped: {first}-{last} ends before it begins; give {last}-{first}"
        ))),
    }
}

/// The number of a page of `text`, which some folio has.
fn page(text: &str, number: &str) -> Result<usize, Error> {
    const LAST: u64 = PMD_BYTES / PAGE_BYTES - 1;
    match parse_count(number) {
        Ok(page) if page <= LAST => Ok(page as usize),
        Ok(_) | Err(JobError::OutOfRange { .. }) => Err(Error::Usage(format!(
            "--mapped: no folio has a page {}; give 0 to {LAST}",
            start(number)
        ))),
        Err(_) => Err(Error::Usage(format!(
            "--mapped: '{}' is no list of pages; give one such as 0-15, or 0-3,8",
            start(text)
        ))),
    }
}

fn footer(sizes: &[u64], mapped: &[String]) -> Footer {
    let sizes: Vec<String> = sizes.iter().map(|&size| SizeText::of(size).0).collect();
    let mut command = "filemap folio-ops --folio-sizes ".to_string();
    command += &sizes.join(",");
    mapped.iter().for_each(|text| command += &format!(" --mapped {}", shell_word(text)));
    let mut environment = Map::new();
    let scope = "real counters, on which nothing but the mappings acts";
    environment.insert("scope".to_string(), scope.into());
    provenance::stamp(&mut environment, "model");
    Footer { scope: scope.to_string(), command, environment }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_pages_are_read_or_refused() {
        let whole = 0..16;
        assert_eq!(ranges("0-15").unwrap(), [whole]);
        assert_eq!(ranges("0-3, 8").unwrap(), [0..4, 8..9]);
        for text in ["", "a", "0-", "-1", "1,,2", "0-1-2", "0--1"] {
            let error = ranges(text).unwrap_err().to_string();
            assert!(error.contains("is no list of pages; give one such as 0-15"), "{text}");
        }
        let digits = "9".repeat(100);
        for (text, said) in [
            ("3-1", "--mapped: 3-1 ends before it begins; give 1-3".to_string()),
            ("0,5 - 2", "--mapped: 5-2 ends before it begins; give 2-5".to_string()),
            ("512", "--mapped: no folio has a page 512; give 0 to 511".to_string()),
            ("0-18446744073709551616", {
                "--mapped: no folio has a page 18446744073709551616; give 0 to 511".to_string()
            }),
            (&digits, format!("--mapped: no folio has a page {}...; give 0 to 511", &digits[..60])),
        ] {
            assert_eq!(ranges(text).unwrap_err().to_string(), said);
        }
    }
}
