//! Validation of the accesses of a phase.

use std::sync::Arc;

use filemap_core::units::PageCount;

use crate::Error;
use crate::accesses::parse_accesses;
use crate::bounds::{DEFAULT_CALLS, MAX_ACCESSES, MAX_READ_BYTES};
use crate::limits::{out_of_range, size, within};
use crate::parts::{AccessList, Pattern, Phase};
use crate::phase_spec::PhaseSpec;
use crate::seed;
use crate::size::{format_size, shorten};
use crate::workload::Workload;

/// Default size of a read in bytes.
pub(crate) const DEFAULT_READ_BYTES: u64 = 4096;

/// Default number of accesses, as a fraction of the mapping.
const DEFAULT_FRACTION: f64 = 0.01;

/// The extent that accesses are counted against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Pages of the mapping.
    pub(crate) pages: PageCount,
    /// Bytes covered by reads.
    pub(crate) bytes: u64,
}

impl PhaseSpec {
    pub(crate) fn validate_one(&self, job_seed: u64, mapped: Extent) -> Result<Phase, Error> {
        let pattern = self.pattern(mapped)?;
        let reads = matches!(&pattern, Pattern::Generated(workload) if workload.is_read());
        if self.bs.is_some() && !reads {
            let (other, remedy) = (
                "a workload that touches pages",
                "read-random and \
                read-sequential read blocks",
            );
            return Err(Error::Conflict { flag: "bs", other, remedy });
        }
        let bs_bytes = size("bs", &self.bs, 1, MAX_READ_BYTES)?.unwrap_or(DEFAULT_READ_BYTES);
        let seed = seed::resolve_seed(self.seed, self.seed_text.as_deref())?;
        Ok(Phase {
            accesses: self.count(&pattern, mapped, reads.then_some(bs_bytes))?,
            seed: within("seed", seed.unwrap_or(job_seed), 1, u64::MAX)?,
            has_own_seed: seed.is_some(),
            bs_bytes,
            pattern,
        })
    }

    fn pattern(&self, mapped: Extent) -> Result<Pattern, Error> {
        if let Some(path) = &self.accesses_file {
            if let Some(flag) = self.given_with_list() {
                let remedy = "the list alone says what is accessed";
                return Err(Error::Conflict { flag, other: "--accesses-file", remedy });
            }
            let text = self.accesses_text.as_deref();
            let text = text.ok_or_else(|| Error::ListNotRead { path: shorten(path) });
            let pages = text.and_then(|text| parse_accesses(text, mapped.pages));
            let pages = pages.map_err(|error| error.with_flag("accesses-file"))?;
            return Ok(Pattern::Listed(AccessList { path: path.clone(), pages: Arc::new(pages) }));
        }
        let remedy = "a pattern such as random or stride:1021, or an accesses file";
        let missing = Error::Missing { flag: "workload", remedy };
        let workload: Workload = self
            .workload
            .as_deref()
            .ok_or(missing)?
            .parse()
            .map_err(|error: Error| error.with_flag("workload"))?;
        match workload {
            // Each stream needs at least one page of its own.
            Workload::Interleave(streams) => {
                within("workload interleave", streams, 1, mapped.pages.0)?;
            }
            Workload::Runs(pages) => {
                within("workload runs", pages, 1, mapped.pages.0)?;
            }
            Workload::Records(bytes) => {
                within("workload records", bytes, 1, mapped.bytes)?;
            }
            _ => {}
        }
        Ok(Pattern::Generated(workload))
    }

    /// Number of accesses, each of `bs_bytes` if the phase reads.
    fn count(
        &self,
        pattern: &Pattern,
        mapped: Extent,
        bs_bytes: Option<u64>,
    ) -> Result<u64, Error> {
        match (pattern, self.accesses, self.fraction) {
            (Pattern::Listed(list), ..) => Ok(list.pages.len() as u64),
            (_, Some(_), Some(_)) => Err(Error::Conflict {
                flag: "accesses",
                other: "--fraction",
                remedy: "give one of them",
            }),
            (_, Some(accesses), None) => within("accesses", accesses, 1, MAX_ACCESSES),
            (Pattern::Generated(Workload::Elf | Workload::ExecCold), None, None) => {
                Ok(mapped.pages.0)
            }
            (Pattern::Generated(Workload::ExecRandom), None, None) => Ok(DEFAULT_CALLS),
            (_, None, fraction) => {
                let fraction = fraction.unwrap_or(DEFAULT_FRACTION);
                fraction_accesses(mapped, bs_bytes, fraction)
                    .map_err(|error| error.with_flag("fraction"))
            }
        }
    }

    pub(crate) fn given_with_list(&self) -> Option<&'static str> {
        let with_list = [
            ("workload", self.workload.as_deref().is_some_and(|name| name != "elf")),
            ("accesses", self.accesses.is_some()),
            ("fraction", self.fraction.is_some()),
            ("seed", self.seed.is_some() || self.seed_text.is_some()),
        ];
        with_list.into_iter().find_map(|(flag, is_set)| is_set.then_some(flag))
    }

    pub(crate) fn first_given(&self) -> Option<&'static str> {
        let other = [
            ("workload", self.workload.is_some()),
            ("accesses-file", self.accesses_file.is_some()),
            ("bs", self.bs.is_some()),
        ];
        let other = other.into_iter().find_map(|(flag, is_set)| is_set.then_some(flag));
        self.given_with_list().or(other)
    }
}

/// Number of accesses for `fraction` of the mapping, rounded down: of its pages, or for reads of
/// its bytes in blocks of `bs_bytes`. Computed from the decimal digits of the fraction, as with
/// floating point 0.29 of 100 would be less than 29.
fn fraction_accesses(mapped: Extent, bs_bytes: Option<u64>, fraction: f64) -> Result<u64, Error> {
    let most = MAX_ACCESSES as f64;
    if !(fraction > 0.0 && fraction <= most) {
        return Err(out_of_range(fraction, "a fraction above 0 such as 0.01", MAX_ACCESSES));
    }
    let text = fraction.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let (all, each) = match bs_bytes {
        Some(bs_bytes) => (mapped.bytes, bs_bytes),
        None => (mapped.pages.0, 1),
    };
    let none = match bs_bytes {
        Some(bs_bytes) => {
            let (mapped, bs) = (format_size(all), format_size(bs_bytes));
            Error::NoRead { fraction, mapped, bs }
        }
        None => Error::NoAccess { fraction, pages: all },
    };
    // The shortest decimal has at most 17 significant digits, so number times bytes is below 2^57 x
    // 2^60. With more than 38 decimals the result is less than one byte.
    if part.len() > 38 {
        return Err(none);
    }
    let number: u128 = format!("{whole}{part}").parse().expect("a decimal has digits only");
    let accesses = number * u128::from(all) / 10u128.pow(part.len() as u32) / u128::from(each);
    match u64::try_from(accesses) {
        Ok(0) => Err(none),
        Ok(accesses) if accesses <= MAX_ACCESSES => Ok(accesses),
        _ => {
            let all = bs_bytes.map_or(format!("{all} pages"), |_| format_size(all));
            let value = format!("{fraction} of {all}, {accesses} accesses,");
            Err(out_of_range(value, 1, MAX_ACCESSES))
        }
    }
}
