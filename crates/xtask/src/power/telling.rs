//! Which wrong rules a job tells: those with which the decisions of the model differ from its own
//! as those of a kernel would.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{self, AssertUnwindSafe};

use filemap_core::decision::Decision;
use filemap_job::{JobSpec, Seen, Written};
use filemap_model::extents::ExtentCache;
use filemap_model::{Profile, Timing, trace_on};

use super::conform::agreed;
use super::groups::Groups;
use super::mutant::Mutant;
use super::watched::Watched;

/// The switches of a core, of which each site has one.
pub trait Switches {
    /// The site goes this way: 0 is as it is written.
    fn set(&self, site: usize, way: u8);
    /// The site goes as it is written, and notes which of its ways would differ.
    fn note(&self, site: usize);
    /// What the site has noted, a bit for each way.
    fn noted(&self, site: usize) -> u8;
    /// Counts from here on what the rules ask, which is at most `most`. Returns what was counted.
    fn count(&self, most: u64) -> u64;
}

/// Largest request of the device: that of a booted kernel.
const IO_BYTES: u64 = 1280 << 10;

/// What the rules may ask in a run that is wrong: so many times what they ask in the right one.
const MOST_ASKED: u64 = 4;

/// And so many more.
const LEAST_ASKED: u64 = 20_000;

/// The kernel that a job is compared with.
#[derive(Clone, Debug)]
pub struct On {
    /// Its version.
    pub kernel: String,
    /// The series that it is built with.
    pub with: Option<String>,
}

impl On {
    /// `text` is a version, or one and a series: `6.12+mmap-miss`.
    pub fn of(text: &str) -> On {
        let (kernel, with) = text.split_once('+').unzip();
        let kernel = kernel.unwrap_or(text).to_string();
        On { kernel, with: with.map(str::to_string) }
    }

    /// `job` by its rules.
    fn under(&self, job: &Written) -> Written {
        let rules = JobSpec {
            kernel: Some(self.kernel.clone()),
            with: self.with.clone(),
            ..JobSpec::default()
        };
        match job.clone() {
            Written::Flags(spec) => Written::Flags(Box::new(spec.overlay(rules))),
            Written::Tables(tables) => Written::Tables(Box::new(tables.overlay(&rules))),
        }
    }

    /// Its name in tables.
    pub fn name(&self) -> String {
        let with = self.with.iter().map(|series| format!(" with {series}"));
        self.kernel.clone() + &with.collect::<String>()
    }
}

/// What came of a job.
#[derive(Debug, Default)]
pub struct Told {
    /// Those that are reached: it matters that their rule is wrong.
    pub reached: Vec<usize>,
    /// Those of them that it tells.
    pub told: Vec<usize>,
}

/// Runs jobs with wrong rules.
pub struct Telling<'a, S> {
    switches: &'a S,
    /// The wrong rules, in order of their sites.
    mutants: &'a [Mutant],
    /// Of each, with which others it is tried at once.
    groups: RefCell<Groups>,
}

impl<'a, S: Switches> Telling<'a, S> {
    /// With none of them wrong.
    pub fn new(switches: &'a S, mutants: &'a [Mutant]) -> Self {
        let groups = RefCell::new(Groups::new(mutants));
        Telling { switches, mutants, groups }
    }

    /// Which of `open` the job tells on this kernel; `None` where it is no job there.
    pub fn told(&self, job: &Written, on: &On, open: &BTreeSet<usize>) -> Option<Told> {
        let job = &on.under(job);
        let sites: BTreeSet<usize> = open.iter().map(|of| self.mutants[*of].site).collect();
        sites.iter().for_each(|site| self.switches.note(*site));
        self.switches.count(u64::MAX);
        let right = decided(job, None);
        let asked = self.switches.count(u64::MAX);
        sites.iter().for_each(|site| self.switches.set(*site, 0));
        let noted: Vec<u8> = sites.iter().map(|site| self.switches.noted(*site)).collect();
        let right = right?;
        let noted: BTreeMap<usize, u8> = sites.into_iter().zip(noted).collect();
        let matters = |of: &&usize| {
            let Mutant { site, way, .. } = &self.mutants[**of];
            noted[site] >> way & 1 == 1
        };
        let reached: Vec<usize> = open.iter().filter(matters).copied().collect();
        let most = MOST_ASKED * asked + LEAST_ASKED;
        let mut run = Run { telling: self, job, right, most, told: Vec::new() };
        let groups = self.groups.borrow().of(&reached);
        for group in groups {
            run.split(&group);
        }
        let told = run.told;
        Some(Told { reached, told })
    }
}

/// One job on one kernel.
struct Run<'a, S> {
    telling: &'a Telling<'a, S>,
    job: &'a Written,
    right: Decided,
    most: u64,
    told: Vec<usize>,
}

impl<S: Switches> Run<'_, S> {
    /// Which of `group` it tells. Where all of them together make no difference, none does by
    /// itself, but for some that hide each other. Returns whether it tells any.
    fn split(&mut self, group: &[usize]) -> bool {
        if group.is_empty() || !self.differs(group) {
            return false;
        }
        if let [one] = group {
            self.told.push(*one);
            return true;
        }
        let (first, rest) = group.split_at(group.len() / 2);
        let tells = [self.split(first), self.split(rest)];
        if tells == [false, false] {
            self.telling.groups.borrow_mut().part(rest);
        }
        tells != [false, false]
    }

    /// Whether the job differs with all of `group` wrong.
    fn differs(&self, group: &[usize]) -> bool {
        let Telling { switches, mutants, .. } = self.telling;
        let of = |number: &usize| &mutants[*number];
        group.iter().map(of).for_each(|mutant| switches.set(mutant.site, mutant.way));
        switches.count(self.most);
        let wrong = decided(self.job, Some(&self.right));
        switches.count(u64::MAX);
        group.iter().map(of).for_each(|mutant| switches.set(mutant.site, 0));
        match wrong {
            None => true,
            Some(wrong) if wrong.lines == self.right.lines => false,
            Some(wrong) => !agreed(&self.right.lines, &wrong.lines, Seen::ALL).is_all(),
        }
    }
}

/// What a run decides.
struct Decided {
    /// As a comparison takes it.
    lines: Vec<Decision>,
    /// Each line as it came, of the right run.
    as_it_came: Vec<Decision>,
}

/// What the model decides, as the kernel shows it; `None` where it is no job, has no end, or was
/// stopped at a difference.
fn decided(job: &Written, right: Option<&Decided>) -> Option<Decided> {
    let decided = || {
        let job = job.validate(None).ok()?;
        let mut profile = Profile::DEFAULT;
        profile.device.io_bytes = IO_BYTES;
        let as_it_came = right.map(|right| right.as_it_came.as_slice());
        let mut log = Watched::new(&job, as_it_came);
        let cache = ExtentCache::new(job.machine.cache_limit);
        trace_on(&job, &profile, Timing::Settled, cache, &mut log).ok()?;
        Some(Decided { lines: log.log.into_lines(), as_it_came: log.lines })
    };
    panic::catch_unwind(AssertUnwindSafe(decided)).ok().flatten()
}
