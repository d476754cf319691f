//! Names the rule that the model applied at a difference, and the kernel functions it mirrors.

use filemap_core::decision::{Cause, Decision, ReadaheadSnapshot};
use filemap_core::rules::Rules;
use filemap_job::trace_view::shown_decision;
use filemap_job::{ShownKind, ShownKinds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rule in a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleName {
    /// The decision that it makes.
    pub what: String,
    /// Its name in docs/MODEL.md.
    pub ours: String,
    /// The kernel functions that it mirrors.
    pub kernel: Vec<String>,
}

/// Rules behind the lines of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Fault,
    AroundWindow,
    AroundMapped,
    MapHuge,
    MissWindow,
    MissesAboveThreshold,
    MissesCredited,
    StreamMiss,
    OldStreamMiss,
    MarkedHit,
    MarkedWindow,
    OldMarkedWindow,
    FirstAbsent,
    Forced,
    Layout,
    Read,
}

impl Rule {
    /// Its row of docs/MODEL.md: decision, name, and the kernel functions that it mirrors.
    const fn row(self) -> (&'static str, &'static str, &'static [&'static str]) {
        match self {
            Rule::Fault => ("whether a fault finds its page", "fault::Fault", &["filemap_fault"]),
            Rule::AroundWindow => (
                "the window of fault-around",
                "fault::around::window",
                &["do_fault_around", "filemap_map_pages"],
            ),
            Rule::AroundMapped => (
                "what fault-around maps, and so what faults later",
                "fault::around::map_around",
                &["filemap_map_pages"],
            ),
            Rule::MapHuge => (
                "whether one PMD entry maps a folio",
                "fault::map::map_huge",
                &["filemap_map_pmd", "do_set_pmd"],
            ),
            Rule::MissWindow => (
                "which window a miss of a fault reads",
                "readahead::sync::on_miss",
                &["do_sync_mmap_readahead"],
            ),
            Rule::MissesAboveThreshold => (
                "whether a miss reads a window: none above the counter's threshold",
                "readahead::miss::reads_window",
                &["do_sync_mmap_readahead"],
            ),
            Rule::MissesCredited => (
                "how hits decrement the miss counter",
                "readahead::miss::after_hits",
                &["filemap_map_pages", "do_async_mmap_readahead"],
            ),
            Rule::StreamMiss => (
                "which window a miss of a stream reads",
                "readahead::on_demand::on_miss",
                &["page_cache_sync_ra"],
            ),
            Rule::OldStreamMiss => (
                "which window a miss of a stream reads",
                "readahead::stream::on_miss",
                &["ondemand_readahead"],
            ),
            Rule::MarkedHit => (
                "what a fault on a cached page does about the counter and a mark",
                "readahead::marked::on_fault_hit",
                &["do_async_mmap_readahead"],
            ),
            Rule::MarkedWindow => (
                "which window is read where a marked folio was hit",
                "readahead::marked::next_window",
                &["page_cache_async_ra"],
            ),
            Rule::OldMarkedWindow => (
                "which window is read where a marked folio was hit",
                "readahead::stream::on_mark",
                &["ondemand_readahead"],
            ),
            Rule::FirstAbsent => (
                "which page after a mark is the first absent one",
                "readahead::search::first_absent",
                &["page_cache_next_miss"],
            ),
            Rule::Forced => (
                "what a request that gives only a range reads",
                "readahead::forced::window",
                &["force_page_cache_ra"],
            ),
            Rule::Layout => (
                "how a window is laid out in folios",
                "readahead::layout::Layout",
                &["page_cache_ra_order", "page_cache_ra_unbounded"],
            ),
            Rule::Read => {
                ("what read(2) leaves behind", "fault::read::ReadCall", &["filemap_read"])
            }
        }
    }

    pub(super) fn rule_name(self) -> RuleName {
        let (state, ours, kernel) = self.row();
        let kernel = kernel.iter().map(|name| name.to_string()).collect();
        RuleName { what: state.to_string(), ours: ours.to_string(), kernel }
    }

    /// The rule that chose a window for `cause`.
    fn from_cause(cause: Cause, rules: &Rules) -> Rule {
        match cause {
            Cause::HugePage | Cause::Executable | Cause::ReadAround => Rule::MissWindow,
            Cause::SequentialFault
            | Cause::SequentialSingle
            | Cause::ReadStream
            | Cause::ReadSingle => {
                if rules.misses_move_streams {
                    Rule::OldStreamMiss
                } else {
                    Rule::StreamMiss
                }
            }
            Cause::AsyncFault | Cause::AsyncRead => {
                if rules.misses_move_streams {
                    Rule::OldMarkedWindow
                } else {
                    Rule::MarkedWindow
                }
            }
            Cause::SequentialForced | Cause::ReadForced | Cause::WillNeed | Cause::Governor => {
                Rule::Forced
            }
        }
    }

    /// The rule behind `decision`, if it alone identifies one.
    fn from_decision(decision: &Decision, rules: &Rules) -> Option<Rule> {
        Some(match decision {
            Decision::Readahead { cause, .. } | Decision::Entered { cause, .. } => {
                Rule::from_cause(*cause, rules)
            }
            Decision::NoReadahead { .. } => Rule::MissesAboveThreshold,
            Decision::NothingAbsent { .. } => Rule::FirstAbsent,
            Decision::BasePages { .. } | Decision::Added { .. } => Rule::Layout,
            Decision::MapPages { .. } | Decision::Faulted { .. } => Rule::AroundMapped,
            Decision::MapHuge { .. } => Rule::MapHuge,
            Decision::Lookup { hit: true, .. } => Rule::MarkedHit,
            Decision::Lookup { hit: false, .. } => Rule::Fault,
            Decision::Locked { .. }
            | Decision::Dropped { .. }
            | Decision::Waited { .. }
            | Decision::Served { .. }
            | Decision::Copied { .. }
            | Decision::Evicted { .. }
            | Decision::File { .. } => return None,
        })
    }

    /// The rule by which the model, after the decisions `before` of the access, continues with
    /// `model` while the kernel continues with `kernel`. `None` is a log without further lines of
    /// that access.
    pub(super) fn diverging_rule(
        before: &[Decision],
        model: Option<&Decision>,
        kernel: Option<&Decision>,
        rules: &Rules,
        seen: ShownKinds,
    ) -> Rule {
        // The rule that chose the window, unless both logs show the same window.
        let chose = || {
            let is_choice = |decision: &&Decision| {
                matches!(
                    decision,
                    Decision::Readahead { .. }
                        | Decision::Entered { .. }
                        | Decision::NoReadahead { .. }
                        | Decision::NothingAbsent { .. }
                )
            };
            let choice = before.iter().rev().find(is_choice)?;
            let is_shown = shown_decision(*choice)
                .is_some_and(|line| ShownKind::from_decision(&line) == Some(ShownKind::Window))
                && seen.has(ShownKind::Window);
            if is_shown { None } else { Rule::from_decision(choice, rules) }
        };
        match (model, kernel) {
            (
                Some(Decision::Entered { cause, found }),
                Some(Decision::Entered { found: theirs, .. }),
            ) => state_rule(*cause, found, theirs, rules),
            // Different folio orders are a difference in layout, otherwise in the window.
            (Some(Decision::Added { order, .. }), Some(Decision::Added { order: theirs, .. }))
                if order != theirs =>
            {
                Rule::Layout
            }
            (Some(Decision::Added { .. } | Decision::BasePages { .. }), _) => {
                chose().unwrap_or(Rule::Layout)
            }
            // Within one fault, only the windows can differ.
            (Some(Decision::MapPages { .. }), Some(Decision::MapPages { .. }))
                if seen.has(ShownKind::Faulted) =>
            {
                Rule::AroundWindow
            }
            (Some(Decision::Lookup { .. }), _) => Rule::AroundMapped,
            (Some(decision), _) => Rule::from_decision(decision, rules).unwrap_or(Rule::Fault),
            (None, Some(Decision::Faulted { .. } | Decision::Lookup { .. })) => Rule::AroundMapped,
            (None, _) => {
                let last = before.iter().rev().find_map(|own| Rule::from_decision(own, rules));
                last.unwrap_or(Rule::Fault)
            }
        }
    }
}

/// The rule that left a different readahead state at the same entry.
fn state_rule(
    cause: Cause,
    ours: &ReadaheadSnapshot,
    theirs: &ReadaheadSnapshot,
    rules: &Rules,
) -> Rule {
    let same_but = |change: fn(&mut ReadaheadSnapshot, &ReadaheadSnapshot)| {
        let mut ours = *ours;
        change(&mut ours, theirs);
        ours == *theirs
    };
    if same_but(|ours, theirs| ours.mmap_miss = theirs.mmap_miss) {
        Rule::MissesCredited
    } else if same_but(|ours, theirs| ours.previous_end = theirs.previous_end) {
        Rule::Read
    } else {
        Rule::from_cause(cause, rules)
    }
}

#[cfg(test)]
mod tests {
    use filemap_core::rules::Kernel;
    use filemap_core::series::Series;
    use filemap_core::units::{Order, PageCount, PageIndex};

    use super::*;

    const ALL: [Rule; 16] = [
        Rule::Fault,
        Rule::AroundWindow,
        Rule::AroundMapped,
        Rule::MapHuge,
        Rule::MissWindow,
        Rule::MissesAboveThreshold,
        Rule::MissesCredited,
        Rule::StreamMiss,
        Rule::OldStreamMiss,
        Rule::MarkedHit,
        Rule::MarkedWindow,
        Rule::OldMarkedWindow,
        Rule::FirstAbsent,
        Rule::Forced,
        Rule::Layout,
        Rule::Read,
    ];

    /// Every name in a report is in docs/MODEL.md, in one row with the kernel functions it mirrors.
    #[test]
    fn every_name_stands_in_the_document_of_rules() {
        let text = include_str!("../../../../docs/MODEL.md");
        for (number, rule) in ALL.into_iter().enumerate() {
            assert_eq!(rule as usize, number, "each rule once");
            let RuleName { ours, kernel, .. } = rule.rule_name();
            let is_row = |line: &&str| {
                let has = |name: &String| line.contains(&format!("`{name}`"));
                line.starts_with('|') && has(&ours) && kernel.iter().all(has)
            };
            assert!(text.lines().any(|line| is_row(&line)), "{ours}: {kernel:?}");
        }
    }

    #[test]
    fn rule_follows_decision() {
        let rules = Rules::new(Kernel::V6_12, Series::BASELINE);
        let seen = ShownKinds::from_fn(|kind| kind != ShownKind::Window);
        let old = Rules::new(Kernel::V6_1, Series::BASELINE);
        let index = PageIndex(9);
        let added = |order, folios| Decision::Added {
            start: index,
            order: Order(order),
            folios,
            marked: None,
        };
        let window = |cause| Decision::Readahead {
            cause,
            index,
            order: Order(0),
            start: index,
            size: PageCount(32),
            async_size: PageCount(8),
            mmap_miss: 7,
        };
        let none = Decision::NoReadahead { index, mmap_miss: 101 };
        let at = |before: &[Decision], model: Option<Decision>, kernel: Option<Decision>| {
            Rule::diverging_rule(before, model.as_ref(), kernel.as_ref(), &rules, seen)
        };
        // A single page instead of a window, and the reverse.
        assert_eq!(at(&[none], Some(added(0, 1)), Some(added(0, 32))), Rule::MissesAboveThreshold);
        let around = window(Cause::ReadAround);
        assert_eq!(at(&[around], Some(added(0, 32)), Some(added(0, 1))), Rule::MissWindow);
        assert_eq!(at(&[around], Some(added(2, 8)), Some(added(0, 32))), Rule::Layout);
        let of_same =
            Rule::diverging_rule(&[around], Some(&added(0, 32)), None, &rules, ShownKinds::ALL);
        assert_eq!(of_same, Rule::Layout, "both logs show that window");
        let marked = window(Cause::AsyncFault);
        assert_eq!(at(&[], Some(marked), None), Rule::MarkedWindow);
        assert_eq!(
            Rule::diverging_rule(&[], Some(&marked), None, &old, seen),
            Rule::OldMarkedWindow
        );
        let faulted = Decision::Faulted { index };
        assert_eq!(at(&[], Some(faulted), None), Rule::AroundMapped);
        let map = |from: u64| Decision::MapPages {
            from: PageIndex(from),
            last: PageIndex(from + 15),
            mapped: PageCount(0),
            credit: 0,
        };
        assert_eq!(at(&[], Some(map(0)), Some(map(16))), Rule::AroundWindow);
        assert_eq!(at(&[], Some(map(0)), Some(faulted)), Rule::AroundMapped);
        assert_eq!(at(&[map(0)], None, Some(added(0, 1))), Rule::AroundMapped);
        assert_eq!(at(&[none], None, Some(added(0, 1))), Rule::MissesAboveThreshold);
        assert_eq!(at(&[], None, None), Rule::Fault);
    }

    #[test]
    fn differing_state_names_its_writer() {
        let rules = Rules::new(Kernel::V6_18, Series::BASELINE);
        let entered = |found| Decision::Entered { cause: Cause::AsyncFault, found };
        let found = ReadaheadSnapshot { mmap_miss: 5, ..ReadaheadSnapshot::default() };
        let at = |theirs| {
            Rule::diverging_rule(
                &[],
                Some(&entered(found)),
                Some(&entered(theirs)),
                &rules,
                ShownKinds::ALL,
            )
        };
        assert_eq!(at(ReadaheadSnapshot { mmap_miss: 4, ..found }), Rule::MissesCredited);
        assert_eq!(at(ReadaheadSnapshot { previous_end: Some(4), ..found }), Rule::Read);
        assert_eq!(at(ReadaheadSnapshot { size: PageCount(4), ..found }), Rule::MarkedWindow);
    }
}
