//! `filemap explain` of a folio that several processes map: what is told of it without counts of
//! pages.

use std::ops::Range;

use filemap_job::folio_ops::PAGE_BYTES;
use filemap_job::{JobSpec, SizeText, format_size, parse_count, shell_word};
use filemap_report::Footer;
use filemap_report::folio_maps::{self, FolioMaps};
use serde_json::Map;

use crate::Outcome;
use crate::args::ExplainArgs;
use crate::commands::GivenJob;
use crate::error::Error;
use crate::output::Output;
use crate::{folio_maps as maps, provenance};

/// The folio that is looked at where no size is given.
const DEFAULT_SIZES: &str = "64k";

/// Whether `args` are of mappings of a folio.
///
/// # Errors
/// When they are of another workload.
pub fn is_asked(args: &ExplainArgs, spec: &JobSpec) -> Result<bool, Error> {
    match (spec.is_folio_ops(), args.mapped.is_empty()) {
        (true, false) => Ok(true),
        (false, true) => Ok(false),
        (true, true) => Err(Error::Usage(
            "--mapped is missing; give the pages that each process maps, such as --mapped 0-15 \
             --mapped 3, or filemap run for times"
                .to_string(),
        )),
        (false, false) => Err(Error::Usage(
            "--mapped is for --workload folio-ops; give that, or leave it out".to_string(),
        )),
    }
}

/// Says what each way to count tells of the mappings of `args`.
pub fn run(asked: &GivenJob, mut spec: JobSpec, args: &ExplainArgs) -> Result<Outcome, Error> {
    check(&spec, args)?;
    let output = Output::open(&args.output, &asked.inputs, &[])?;
    spec.folio_sizes.get_or_insert(DEFAULT_SIZES.to_string());
    let job = spec.validate_folio_ops()?;
    let mms = args.mapped.iter().map(|text| ranges(text)).collect::<Result<Vec<_>, _>>()?;
    let folios = job.folio_bytes.iter().map(|&size| of_size(size, &mms, &args.mapped));
    let folios = folios.collect::<Result<Vec<_>, Error>>()?;
    output.write(&folio_maps::report(&folios, footer(&job.folio_bytes, &args.mapped)))?;
    Ok(Outcome::Done)
}

/// Refuses flags that say nothing of mappings.
fn check(spec: &JobSpec, args: &ExplainArgs) -> Result<(), Error> {
    let given = [
        ("on", spec.on.is_some()),
        ("runs", spec.runs.is_some()),
        ("seed", spec.seed.is_some()),
        ("file-size", spec.file_size.is_some()),
        ("seeds", args.seeds.is_some()),
        ("svg", args.svg.is_some()),
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
    for (mm, text) in mms.iter().zip(texts) {
        // Each by itself: the message is of the one that is wrong.
        maps::of(folio_bytes, std::slice::from_ref(mm)).map_err(|error| {
            Error::Usage(format!(
                "--mapped {text}: {error}; a folio of {} has the pages 0 to {}",
                format_size(folio_bytes),
                folio_bytes / PAGE_BYTES - 1,
            ))
        })?;
    }
    maps::of(folio_bytes, mms)
}

/// The ranges of pages of a text such as `0-3,8`.
fn ranges(text: &str) -> Result<Vec<Range<usize>>, Error> {
    text.split(',').map(|part| range(text, part.trim())).collect()
}

fn range(text: &str, part: &str) -> Result<Range<usize>, Error> {
    let wrong = || {
        let text: String = text.chars().take(60).collect();
        Error::Usage(format!(
            "--mapped: '{text}' is no list of pages; give one such as 0-15, or 0-3,8"
        ))
    };
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let page = |text: &str| {
        let number = parse_count(text.trim()).ok()?;
        // A folio has far fewer pages.
        usize::try_from(number).ok().filter(|&page| page < usize::MAX)
    };
    match (page(first), page(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..last + 1),
        _ => Err(wrong()),
    }
}

fn footer(sizes: &[u64], mapped: &[String]) -> Footer {
    let sizes: Vec<String> = sizes.iter().map(|&size| SizeText::of(size).0).collect();
    let mut command = "filemap explain --workload folio-ops --folio-sizes ".to_string();
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
        for text in ["", "3-1", "a", "0-", "-1", "1,,2", "99999999999999999999"] {
            let error = ranges(text).unwrap_err().to_string();
            assert!(error.contains("is no list of pages; give one such as 0-15"), "{text}");
        }
    }
}
