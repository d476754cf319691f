//! Runs programs in the model and, traced, on a kernel: the running one or a booted one.

use filemap_core::decision::Decision;
use filemap_core::decision::Log;
use filemap_core::series::Series;
use filemap_job::program::Job;
use filemap_job::{ShownKinds, ShownLog};
use filemap_kernel::Error as KernelError;
use filemap_kernel::engine::{BootedKernels, ObserveOptions};
use filemap_kernel::image::{IO_BYTES, Incident};
use filemap_kernel::journal::Journal;
use filemap_kernel::trace::{Observation, Observer};

use super::comparison::{FirstDifference, LogComparison, compare};
use super::evidence::with_series;
use super::reason;
use super::record::{Compared, Finding};
use crate::error::Error;
use crate::traced_job::{empty_logs, expected_events, model_logs, prompt_model_logs};
#[cfg(test)]
use {crate::traced_job::trace_timed, filemap_model::Timing};

/// Maximum number of reruns of a job after the kernel failed to allocate a large folio.
const REPEATS_WITHOUT_FOLIO: u64 = 3;

/// Where the kernel's decisions come from.
enum KernelSource {
    /// The running kernel.
    Running(Observer),
    /// Booted kernels, named by the jobs.
    Booted(BootedKernels),
    /// The model with these series and device timing, standing in for a kernel.
    #[cfg(test)]
    Modelled(Series, Timing),
}

/// The source of a kernel's decisions, and how often it was disturbed.
pub struct ConformBench {
    kernel: KernelSource,
    /// What the kernel shows; for a booted kernel known after its first job.
    pub seen: ShownKinds,
    /// Number of runs disturbed by other processes.
    pub disturbed: u64,
    /// Number of runs repeated because the kernel failed to allocate a large folio.
    pub without_folio: u64,
    /// Warnings of booted kernels, with the index of the program.
    complaints: Vec<(usize, Incident)>,
}

/// The first difference of each file of a program.
type FirstDifferences = Vec<Option<Box<FirstDifference>>>;

impl ConformBench {
    /// A bench for the running kernel. Changes to the machine go through `journal`.
    ///
    /// # Errors
    /// If the kernel cannot be traced.
    pub fn open(journal: &Journal) -> Result<Self, Error> {
        let observer = Observer::open(journal)?;
        let seen = observer.shown_kinds();
        Ok(ConformBench::with_source(KernelSource::Running(observer), seen))
    }

    /// A bench for booted kernels, each for the jobs that name it.
    pub fn booting(tell: fn(&str)) -> Self {
        ConformBench::with_source(
            KernelSource::Booted(BootedKernels::with_notify(tell)),
            ShownKinds::ALL,
        )
    }

    fn with_source(kernel: KernelSource, seen: ShownKinds) -> Self {
        ConformBench { kernel, seen, disturbed: 0, without_folio: 0, complaints: Vec::new() }
    }

    /// Kernel warnings since the last call, each with the index of its program.
    pub fn take_complaints(&mut self) -> Vec<(usize, Incident)> {
        std::mem::take(&mut self.complaints)
    }

    /// A bench for a kernel that behaves as the model with `series` and `timing`, and shows `seen`.
    #[cfg(test)]
    pub(super) fn modelled(series: Series, timing: Timing, seen: ShownKinds) -> Self {
        ConformBench::with_source(KernelSource::Modelled(series, timing), seen)
    }

    /// Discards jobs that were sent to a booted kernel and have not run.
    pub(super) fn discard_pending(&mut self, tell: fn(&str)) {
        if let KernelSource::Booted(boot) = &mut self.kernel {
            *boot = BootedKernels::with_notify(tell);
        }
    }

    /// The kernel, for the report.
    pub fn compared_kernel(&self) -> Compared {
        let is_booted = matches!(self.kernel, KernelSource::Booted(_));
        Compared { is_booted, seen: self.seen }
    }

    /// Runs `programs` in the model and on the kernel. Calls `each` with the program's index and
    /// the findings of its files, or why it cannot run, until `each` returns false.
    ///
    /// # Errors
    /// Errors of the model, of resources that all programs need, and of `each`.
    pub fn compare_all(
        &mut self,
        programs: &[&Job],
        mut each: impl FnMut(usize, Result<Vec<Finding>, KernelError>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let mut left: Vec<usize> = (0..programs.len()).collect();
        let mut firsts: Vec<Option<FirstDifferences>> = vec![None; programs.len()];
        for round in 0..=REPEATS_WITHOUT_FOLIO {
            let (mut again, mut goes_on) = (Vec::new(), true);
            let (mut seen, mut disturbed, mut complaints) = (self.seen, 0, Vec::new());
            let of_round: Vec<&Job> = left.iter().map(|number| programs[*number]).collect();
            self.observe_each(&of_round, |at, io_bytes, observed| {
                let number = left[at];
                if let Ok(observed) = &observed {
                    seen = observed.shown;
                    disturbed += u64::from(observed.repeated);
                    let own = observed.warnings.iter().cloned();
                    complaints.extend(own.map(|complaint| (number, complaint)));
                }
                let program = programs[number];
                let found = match observed {
                    Ok(observed) => {
                        compare_files(program, io_bytes, &observed, &mut firsts[number])?
                    }
                    Err(error) => match *error.root_cause() {
                        KernelError::Disturbed { runs, .. } => {
                            disturbed += u64::from(runs);
                            Some(not_compared(program, disturbed_in(runs)))
                        }
                        _ => {
                            goes_on = each(number, Err(error))?;
                            return Ok(goes_on);
                        }
                    },
                };
                match found {
                    None if round < REPEATS_WITHOUT_FOLIO => again.push(number),
                    found => {
                        let lacking = || not_compared(program, without_folio());
                        goes_on = each(number, Ok(found.unwrap_or_else(lacking)))?;
                    }
                }
                Ok(goes_on)
            })?;
            (self.seen, self.disturbed) = (seen, self.disturbed + disturbed);
            self.complaints.extend(complaints);
            self.without_folio += again.len() as u64;
            left = again;
            if left.is_empty() || !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// [`ConformBench::compare_all`] for one program.
    ///
    /// # Errors
    /// As there, and if the program cannot run.
    pub fn compare(&mut self, program: &Job) -> Result<Vec<Finding>, Error> {
        let mut found = None;
        self.compare_all(&[program], |_, finding| {
            found = Some(finding);
            Ok(true)
        })?;
        Ok(found.expect("each program is told of")?)
    }

    /// Calls `each` with the index of each program, the maximum request size of its device in
    /// bytes, and the kernel's decisions, until `each` returns false.
    fn observe_each(
        &mut self,
        programs: &[&Job],
        mut each: impl FnMut(usize, u64, Result<Observation, KernelError>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let observer = match &mut self.kernel {
            KernelSource::Running(observer) => observer,
            #[cfg(test)]
            KernelSource::Modelled(series, timing) => {
                for (number, program) in programs.iter().enumerate() {
                    let mut decisions = Vec::new();
                    trace_timed(&with_series(program, *series), IO_BYTES, *timing, &mut decisions)?;
                    let observed = Observation {
                        shown: self.seen,
                        decisions,
                        read_bytes: None,
                        elapsed_ns: 0,
                        evicted_by_others: 0,
                        repeated: 0,
                        warnings: Vec::new(),
                    };
                    if !each(number, IO_BYTES, Ok(observed))? {
                        break;
                    }
                }
                return Ok(());
            }
            KernelSource::Booted(boot) => {
                let asked = programs.iter().map(|program| {
                    let expected = expected_events(program, IO_BYTES)?;
                    Ok((
                        *program,
                        ObserveOptions {
                            settled: true,
                            expected_events: expected,
                            may_lack_switches: true,
                        },
                    ))
                });
                let asked: Vec<(&Job, ObserveOptions)> = asked.collect::<Result<_, Error>>()?;
                return boot.observe_each(&asked, |number, recording| {
                    let observed = recording.and_then(|it| it.observation(programs[number]));
                    each(number, IO_BYTES, observed)
                });
            }
        };
        for (number, program) in programs.iter().enumerate() {
            // The engine refuses series, which it cannot switch; here they are what the kernel is
            // said to have.
            let program = &with_series(program, Series::BASELINE);
            let mut io_bytes = 0;
            let observed = match observer.create_files(program) {
                Ok(subject) => {
                    io_bytes = subject.io_bytes();
                    let expected = expected_events(program, io_bytes)?;
                    observer.observe_settled(program, &subject, expected)
                }
                Err(error) => Err(error),
            };
            if !each(number, io_bytes, observed)? {
                break;
            }
        }
        Ok(())
    }
}

/// Compares the kernel's decisions about each file of `program` with the model's; `None` if the
/// kernel failed to allocate a large folio, which leaves its decisions undetermined. `before` has
/// the differences of the first such run.
fn compare_files(
    program: &Job,
    io_bytes: u64,
    observed: &Observation,
    before: &mut Option<FirstDifferences>,
) -> Result<Option<Vec<Finding>>, Error> {
    let seen = observed.shown;
    let mut log = empty_logs(program, seen);
    observed.decisions.iter().for_each(|decision| log.record(*decision));
    let kernel: Vec<_> = log.into_logs().into_iter().map(ShownLog::into_lines).collect();
    let model = model_logs(program, io_bytes, seen)?;
    let of_file = |(model, kernel): (&ShownLog, &Vec<Decision>)| {
        let found = compare(model.lines(), kernel, seen, model.accesses());
        LogComparison { io_bytes, unexplained: found.excluded, ..found }
    };
    let mut found: Vec<LogComparison> = model.iter().zip(&kernel).map(of_file).collect();
    if found.iter().any(LogComparison::may_be_timing) {
        let promptly = prompt_model_logs(program, io_bytes, seen)?;
        for (file, prompt) in promptly.iter().enumerate() {
            let timing = compare(model[file].lines(), prompt.lines(), seen, &[]);
            let as_prompt = of_file((prompt, &kernel[file]));
            found[file].unexplained = found[file].unexplained_lines(&timing, &as_prompt);
            found[file].use_if_exact(as_prompt);
        }
    }
    // Rules decide the same in every run; failures to allocate do not repeat.
    let firsts: FirstDifferences = found.iter().map(|found| found.first.clone()).collect();
    let lacks_folio = found.iter().any(|own| own.lacks_folio);
    if lacks_folio && before.as_ref() != Some(&firsts) {
        before.get_or_insert(firsts);
        return Ok(None);
    }
    for (file, found) in found.iter_mut().enumerate() {
        reason::explain_difference(found, program, file, seen)?;
    }
    Ok(Some(found.into_iter().map(Finding::Compared).collect()))
}

/// Findings of a program without a comparison.
fn not_compared(program: &Job, reason: String) -> Vec<Finding> {
    vec![Finding::NotCompared { reason }; program.files.len()]
}

fn disturbed_in(runs: u32) -> String {
    format!("something else added or removed pages of its files in {runs} runs")
}

fn without_folio() -> String {
    let runs = REPEATS_WITHOUT_FOLIO + 1;
    format!(
        "the kernel found no memory for a large folio in {runs} runs, each time at another place; \
         end other programs, or write 1 to /proc/sys/vm/compact_memory"
    )
}
