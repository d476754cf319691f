//! Outcome of a comparison, and its footer.

use super::bench::ConformBench;
use super::compared_kernel::ComparedKernel;
use super::evidence::SeriesCoverage;
use super::record::{ConformRecord, PatternResult};
use crate::error::Error;
use crate::footer::Footer;
use crate::provenance;
use filemap_core::rules::Rules;
use filemap_core::series::Series;
use filemap_kernel::engine::host_environment;

/// One pattern in this many may fail to compare before the result is inconclusive.
const PATTERNS_PER_FAILURE: usize = 10;

/// Fails if this machine can run no pattern, naming what it lacks.
///
/// # Errors
/// If all patterns of `found` were skipped.
pub(super) fn check_any_compared(found: &ConformRecord) -> Result<(), Error> {
    let all = found.patterns.len();
    if found.left_out() < all || all == 0 {
        return Ok(());
    }
    let reasons = match found.unmet_needs().as_slice() {
        [(reason, _)] => reason.to_string(),
        several => {
            let texts = several.iter().map(|(reason, names)| format!("{reason} ({})", names.len()));
            texts.collect::<Vec<_>>().join("; ")
        }
    };
    Err(Error::CannotRun(format!("none of {all} patterns can run here: {reasons}")))
}

impl ConformRecord {
    /// Whether kernel and model agree; false if the result is inconclusive.
    ///
    /// # Errors
    /// If too few patterns could be compared.
    pub fn agrees(&self) -> Result<bool, Error> {
        let differs = self.patterns.iter().any(PatternResult::differs) || self.doubt().is_some();
        if differs || self.switched.as_ref().is_some_and(SeriesCoverage::leaves_open) {
            return Ok(false);
        }
        let all = self.patterns.len() - self.left_out();
        let missing = self.not_compared();
        if missing * PATTERNS_PER_FAILURE > all {
            return Err(Error::CannotRun(format!(
                "{missing} of {all} patterns were not compared: end what takes pages out of the page \
             cache (such as DAMON)"
            )));
        }
        Ok(true)
    }
}

/// The footer of a comparison on `bench` by `rules`, which `command` repeats.
pub(super) fn footer(
    rules: Option<&Rules>,
    on: &ComparedKernel,
    bench: &ConformBench,
    command: String,
) -> Footer {
    let mut environment = match &on.image {
        Some((path, _)) => {
            let facts = [("image", path.as_str()), ("kernel", on.release.as_str())];
            facts.into_iter().map(|(key, value)| (key.to_string(), value.into())).collect()
        }
        None => host_environment(),
    };
    provenance::stamp(&mut environment, "model,kernel");
    environment.insert("runs_repeated_after_foreign_eviction".into(), bench.disturbed.into());
    environment.insert("runs_repeated_without_large_folio".into(), bench.without_folio.into());
    let series = rules.map_or(Series::BASELINE, |rules| rules.series);
    let with = if series == Series::BASELINE { String::new() } else { format!(" with {series}") };
    let kernel = match on.image {
        Some(_) => format!("Linux {} booted under QEMU", on.release),
        None => "the running kernel".to_string(),
    };
    Footer {
        scope: format!(
            "rules of Linux {}{with} and {kernel}; files that fit in memory; each access waits \
             until its reads are complete",
            rules.map_or("", |rules| rules.kernel.name())
        ),
        command,
        environment,
    }
}

#[cfg(test)]
mod tests {
    use filemap_job::ShownKinds;

    use super::super::comparison::LogComparison;
    use super::super::record::{Compared, Finding};
    use super::*;

    const KERNEL: Compared = Compared { is_booted: false, seen: ShownKinds::ALL };

    fn found(findings: &[Finding]) -> ConformRecord {
        let pattern = |own: &Finding| KERNEL.pattern(String::new(), own.clone(), String::new());
        KERNEL.conformance(findings.iter().map(pattern).collect())
    }

    fn compared(mismatches: u64) -> Finding {
        Finding::Compared(LogComparison { decisions: 1, mismatches, ..LogComparison::default() })
    }

    fn patterns(compared: usize, missing: usize, differing: usize) -> ConformRecord {
        let none = Finding::NotCompared { reason: String::new() };
        let kinds =
            [(compared, self::compared(0)), (missing, none), (differing, self::compared(1))];
        let all = kinds.iter().flat_map(|(number, kind)| vec![kind.clone(); *number]);
        found(&all.collect::<Vec<_>>())
    }

    #[test]
    fn a_small_share_may_go_without_comparison() {
        assert!(matches!(patterns(10, 0, 0).agrees(), Ok(true)));
        assert!(matches!(patterns(9, 1, 0).agrees(), Ok(true)));
        for (compared, missing) in [(8, 1), (0, 1)] {
            let error = patterns(compared, missing, 0).agrees().unwrap_err();
            assert_eq!(error.exit_code(), 4, "{error}");
        }
        assert!(matches!(patterns(0, 5, 1).agrees(), Ok(false)));
    }

    #[test]
    fn patterns_that_exclude_too_much_together_fail() {
        let own = LogComparison { decisions: 100, unexplained: 3, ..LogComparison::default() };
        let excluding = Finding::Compared(own);
        let all = vec![excluding.clone(); 3];
        assert!(matches!(found(&all).agrees(), Ok(false)));
        assert!(matches!(found(&all[..2]).agrees(), Ok(true)));
        let with_nothing = [Finding::Compared(LogComparison::default()), excluding];
        assert!(matches!(found(&with_nothing).agrees(), Ok(false)));
    }

    #[test]
    fn missing_features_are_no_failure_unless_nothing_runs() {
        let left_out = |reason: &str| Finding::LeftOut { reason: reason.to_string() };
        let some = found(&[compared(0), left_out("no tool"), left_out("no tool")]);
        assert!(matches!(some.agrees(), Ok(true)));
        assert!(check_any_compared(&some).is_ok());
        let error = check_any_compared(&found(&vec![left_out("no tool"); 3])).unwrap_err();
        assert_eq!(error.exit_code(), 4);
        assert_eq!(error.to_string(), "none of 3 patterns can run here: no tool");
        let none = ["no tool", "no room", "no tool"].map(left_out);
        let error = check_any_compared(&found(&none)).unwrap_err();
        assert_eq!(error.to_string(), "none of 3 patterns can run here: no tool (2); no room (1)");
    }
}
