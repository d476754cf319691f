//! What is published of an operation, and what came out here.

use filemap_job::folio_ops::{MM_OWNER, NO_PAGE_MAPCOUNT, Operation, PAGE_BYTES, PAGE_MAPCOUNT};
use serde_json::{Value, json};

use crate::folio_ops::{Compared, Figure};
use crate::published::data::PUBLISHED;

/// What the two configurations of the series may differ by where both reuse pages, in points.
const ALIKE_POINTS: f64 = 5.0;

/// By how much the time of what does not change may be off, in percent.
const SAME_PERCENT: f64 = 5.0;

/// The same where each page is copied.
const COPIED_PERCENT: f64 = 6.0;

/// From this size on the time with slots and counts of pages is that of the base.
const OWNER_FREE_BYTES: u64 = 256 << 10;

/// What slots may cost more for each folio that is smaller, in L.
const OWNER_LOCKED: f64 = 2.0;

/// Between which savings of a page in L the one lies that one read-modify-write less makes.
const SAVED_LOCKED: (f64, f64) = (0.6, 1.5);

/// From this size on.
const SAVED_BYTES: u64 = 64 << 10;

/// A gain above this says that work is missing that surrounds the counting, in percent.
const MOST_PERCENT: f64 = 60.0;

/// The gain of reuse instead of a copy, at least, in percent.
const REUSE_PERCENT: f64 = 64.0;

/// Which figure is put beside a published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Change of the time.
    Time,
    /// Saving of a page in L.
    Saving,
    /// Pages that were copied.
    Copied,
}

/// One figure of one operation in folios of one size with one way to count.
pub(super) struct Beside<'a> {
    pub of: &'a Compared,
    pub counters: &'a str,
    pub what: What,
    /// What is published; `None` for what the series does not have.
    pub published: Option<f64>,
    /// What came out here.
    pub own: Option<f64>,
    /// Whether that is within what is tolerated; `None` where nothing is judged.
    pub ok: Option<bool>,
    /// What is tolerated.
    pub tolerance: Option<String>,
}

impl<'a> Beside<'a> {
    /// Every figure of `all`; times are judged if `judges_times`. Memory is `pages` pages.
    pub(super) fn all(all: &'a [Compared], judges_times: bool, pages: u64) -> Vec<Beside<'a>> {
        let of = |of: &'a Compared| {
            let counters = of.configurations.iter().map(|own| own.counters.as_str());
            let others = counters.clone().filter(|counters| *counters != PAGE_MAPCOUNT);
            let times = others.map(|counters| Beside::time(of, counters));
            let savings = counters.clone().filter_map(|counters| Beside::saving(of, counters));
            let copies = counters.filter_map(|counters| Beside::copied(of, counters, pages));
            times.chain(savings).chain(copies).collect::<Vec<_>>()
        };
        let mut cells: Vec<Beside> = all.iter().flat_map(of).collect();
        let unjudged = cells.iter_mut().filter(|cell| !judges_times && !cell.is_exact());
        unjudged.for_each(|cell| (cell.ok, cell.tolerance) = (None, None));
        cells
    }

    /// The change of the time.
    fn time(of: &'a Compared, counters: &'a str) -> Beside<'a> {
        let published = published_percent(of, counters);
        let own = percent(of, counters);
        let judged = published.zip(own).and_then(|figures| time_holds(of, counters, figures));
        let (ok, tolerance) = judged.unzip();
        Beside { of, counters, what: What::Time, published, own, ok, tolerance }
    }

    /// What counting folios alone saves of a page that is unmapped or forked. The series takes one
    /// read-modify-write of a page away.
    fn saving(of: &'a Compared, counters: &'a str) -> Option<Beside<'a>> {
        let is_batch = matches!(of.operation, Operation::Munmap | Operation::Fork);
        if !is_batch || of.folio_bytes == PAGE_BYTES || counters == PAGE_MAPCOUNT {
            return None;
        }
        let own = of.change(counters)?.saved_locked.map(|saved| saved.median);
        let published = (counters == NO_PAGE_MAPCOUNT).then_some(1.0);
        let (least, most) = SAVED_LOCKED;
        let is_judged = published.is_some() && of.folio_bytes >= SAVED_BYTES;
        let ok = own.filter(|_| is_judged).map(|own| (least..=most).contains(&own));
        let tolerance = is_judged.then(|| format!("{least} to {most} L"));
        Some(Beside { of, counters, what: What::Saving, published, own, ok, tolerance })
    }

    /// Of 100 pages, those that write faults copied: all where nobody knows that a page has one
    /// owner left.
    fn copied(of: &'a Compared, counters: &'a str, pages: u64) -> Option<Beside<'a>> {
        let own = of.configuration(counters).filter(|_| of.operation.writes())?;
        let is_alone = of.operation.is_of_one_thread();
        let is_published =
            is_alone && [PAGE_MAPCOUNT, MM_OWNER, NO_PAGE_MAPCOUNT].contains(&counters);
        let knows = of.folio_bytes == PAGE_BYTES || counters != PAGE_MAPCOUNT;
        let all = !(of.operation.reuses() && knows);
        let expected = if all { (pages, 0) } else { (0, pages) };
        let published = is_published.then_some(if all { 100.0 } else { 0.0 });
        let copied = own.copied.zip(own.reused).map(|(copied, reused)| {
            let pages = if is_alone { pages } else { copied + reused };
            copied as f64 * 100.0 / pages.max(1) as f64
        });
        Some(Beside {
            of,
            counters,
            what: What::Copied,
            published,
            own: copied,
            ok: is_published.then(|| own.copied.zip(own.reused) == Some(expected)),
            tolerance: is_published.then(|| "exact".to_string()),
        })
    }

    /// Whether it is counted, not timed: then it is the same on every machine.
    pub(super) fn is_exact(&self) -> bool {
        self.what == What::Copied
    }

    pub(super) fn unit(&self) -> &'static str {
        match self.what {
            What::Time => "percent",
            What::Saving => "L a page",
            What::Copied => "pages copied of 100",
        }
    }

    pub(super) fn verdict(&self) -> &'static str {
        match (self.ok, self.published) {
            (Some(true), _) => "ok",
            (Some(false), _) if self.is_exact() => "fail",
            (Some(false), _) => "misses",
            (None, Some(_)) => "not compared",
            (None, None) => "model only",
        }
    }

    /// By how much it is off; `None` where nothing is published.
    pub(super) fn error(&self) -> Option<f64> {
        self.published.zip(self.own).map(|(published, own)| own - published)
    }

    pub(super) fn json(&self) -> Value {
        let own = self.of.configuration(self.counters);
        let base = self.of.configuration(PAGE_MAPCOUNT);
        let mut figures = json!({
            "median": self.own,
            "ns_per_page": own.map(|own| own.ns_per_page),
            "base_ns_per_page": base.map(|base| base.ns_per_page),
            "locked_ns": self.of.locked_ns,
            "change": own.and_then(|own| own.change.as_ref()),
        });
        if self.what == What::Copied {
            figures = json!({
                "median": self.own,
                "copied": own.and_then(|own| own.copied),
                "reused": own.and_then(|own| own.reused),
            });
        }
        json!({
            "series": "mm-owner",
            "workload": self.of.operation,
            "folio_kib": self.of.folio_bytes >> 10,
            "variant": self.counters,
            "unit": self.unit(),
            "published": self.published,
            "figures": figures,
            "error": self.error(),
            "error_unit": if self.what == What::Time { "percentage points" } else { self.unit() },
            "tolerance": self.tolerance.as_deref().unwrap_or("none"),
            "ok": self.ok,
            "verdict": self.verdict(),
        })
    }
}

/// The change of the time in percent.
fn percent(of: &Compared, counters: &str) -> Option<f64> {
    of.change(counters).map(|change| change.percent.median)
}

/// For both configurations of the series, with which cost of a fault in nanoseconds the published
/// change of writes that reuse pages comes out. It is negative where they gain less than published.
pub(super) fn fault_ns(of: &Compared) -> impl Iterator<Item = f64> {
    let is_reuse = of.operation.reuses() && of.folio_bytes > PAGE_BYTES;
    let base = of.configuration(PAGE_MAPCOUNT).map(|base| base.ns_per_page.median);
    [MM_OWNER, NO_PAGE_MAPCOUNT].into_iter().filter(move |_| is_reuse).filter_map(move |counters| {
        let published = published_percent(of, counters).filter(|percent| *percent < 0.0)?;
        Some(base? * (percent(of, counters)? / published - 1.0))
    })
}

/// What is published of the change; nothing changes for one thread with folios of one page.
fn published_percent(of: &Compared, counters: &str) -> Option<f64> {
    let position = [MM_OWNER, NO_PAGE_MAPCOUNT].iter().position(|name| *name == counters)?;
    if of.folio_bytes == PAGE_BYTES {
        return of.operation.is_of_one_thread().then_some(0.0);
    }
    PUBLISHED.mm_owner.percents(of.operation, of.folio_bytes >> 10).map(|both| both[position])
}

/// Whether a change holds beside the published one, and what is tolerated; `None` where it cannot
/// be said.
fn time_holds(
    of: &Compared,
    counters: &str,
    (published, own): (f64, f64),
) -> Option<(bool, String)> {
    let within = |percent: f64| (own.abs() <= percent, format!("within {percent} %"));
    if of.folio_bytes == PAGE_BYTES {
        return Some(within(SAME_PERCENT));
    }
    match (of.operation, counters) {
        (Operation::CowByte, _) => Some(within(COPIED_PERCENT)),
        (Operation::ReuseByte | Operation::ChildReuseByte, _) => {
            let both = [MM_OWNER, NO_PAGE_MAPCOUNT].map(|name| percent(of, name));
            let apart = both[0].zip(both[1]).map(|(one, other)| (one - other).abs());
            let alike = apart.is_some_and(|points| points <= ALIKE_POINTS);
            let tolerance = format!(
                "{REUSE_PERCENT} % faster or more, and within {ALIKE_POINTS} points of each other"
            );
            Some((own <= -REUSE_PERCENT && alike, tolerance))
        }
        (Operation::Munmap | Operation::Fork, MM_OWNER) if of.folio_bytes < OWNER_FREE_BYTES => {
            let extra = of.change(counters)?.extra_locked_per_folio?.median;
            Some((extra <= OWNER_LOCKED, format!("at most {OWNER_LOCKED} L more a folio")))
        }
        (Operation::Munmap | Operation::Fork, MM_OWNER) => Some(within(SAME_PERCENT)),
        (Operation::Munmap | Operation::Fork, _) => {
            let least = -published;
            let holds = own <= published && own >= -MOST_PERCENT;
            Some((holds, format!("{least} to {MOST_PERCENT} % faster")))
        }
        (Operation::AnonCowSeq | Operation::AnonCowRand, _) => None,
    }
}

/// What slots cost more for a folio, in L.
pub(super) fn extra_locked(of: &Compared) -> Option<Figure> {
    of.change(MM_OWNER)?.extra_locked_per_folio
}
