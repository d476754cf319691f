//! One thread on one CPU decides as it does in a program: waiting changes no rule.

mod support;

use filemap_core::decision::{Decision, Log};
use filemap_core::units::PageCount;
use filemap_job::program::ProgramSpec;
use filemap_job::random::Rng;
use filemap_model::extents::ExtentCache;
use filemap_model::thrash::{Thrash, Until, run};
use filemap_model::{Profile, Timing, trace_program_on};

use support::thrash::{plain_job, random_job};

const JOBS: u64 = 1_000;

/// Decisions, where folios that are added one behind the other are added together: threads charge
/// them in batches. That a program waits for a hole, which takes a nanosecond, is left out.
#[derive(Default)]
struct Decisions(Vec<Decision>);

impl Log for Decisions {
    fn record(&mut self, decision: Decision) {
        let joined = match (self.0.last_mut(), decision) {
            (_, Decision::Waited { .. }) => true,
            (
                Some(Decision::Added { start, order, folios, marked }),
                Decision::Added { start: next, order: of_next, folios: more, marked: mark },
            ) if *order == of_next && *start + PageCount(*folios << order.0) == next => {
                *folios += more;
                *marked = marked.or(mark);
                true
            }
            _ => false,
        };
        if !joined {
            self.0.push(decision);
        }
    }
}

/// The job of one thread that `seed` means, and how many rounds it makes.
fn job(seed: u64) -> (Thrash, u64) {
    let rounds = 1 + Rng(seed).below(3);
    let job = Thrash {
        threads: 1,
        cpus: 1,
        sparse: true,
        high: None,
        max: None,
        writers: 0,
        one_vma: false,
        noise_threads: 0,
        until: Until::Rounds(rounds),
        ..random_job(seed)
    };
    (job, rounds)
}

fn program(job: &Thrash, rounds: u64) -> String {
    let bytes = job.file_pages.0 * 4096;
    let mut text = format!(
        "kernel = '6.12'\nfs = 'base-pages'\nwith = '{}'\nread_ahead_kb = {}\nfault_around = '{}'\n\
         [[file]]\nname = 'f'\nsize = '{bytes}'\nsparse = true\n[[open]]\nname = 'o'\nfile = 'f'\n\
         [[mapping]]\nname = 'm'\nopen = 'o'\nlen = '{bytes}'\n[[thread]]\nname = 't'\n",
        job.rules.series,
        job.read_ahead.0 * 4,
        job.fault_around.0 * 4096,
    );
    let pages = job.file_pages.0;
    for _ in 0..rounds {
        text += "[[thread.phase]]\nmap = 'm'\n[[thread.phase]]\nmapping = 'm'\n";
        text += &format!("workload = 'sequential'\naccesses = {pages}\n");
        text += "[[thread.phase]]\nunmap = 'm'\n";
    }
    text
}

#[test]
fn one_thread_decides_as_a_program_does() {
    for seed in 1..=JOBS {
        let (job, rounds) = job(seed);
        let text = program(&job, rounds);
        let program = ProgramSpec::from_toml(&text).unwrap().validate(None).expect(&text);
        let mut of_program = Decisions::default();
        let (timing, cache) = (Timing::Device, ExtentCache::new(None));
        let profile = &Profile::DEFAULT;
        trace_program_on(&program, profile, timing, cache, &mut of_program).unwrap();
        let mut of_threads = Decisions::default();
        let counts = run(&job, &mut of_threads).unwrap().counts;
        let first = of_threads.0.iter().zip(&of_program.0).position(|(ours, its)| ours != its);
        if let Some(at) = first {
            let from = at.saturating_sub(3);
            panic!(
                "seed {seed}, decision {at}:\n{:?}\nof the program:\n{:?}\n{text}",
                &of_threads.0[from..=at],
                &of_program.0[from..=at]
            );
        }
        assert_eq!(of_threads.0.len(), of_program.0.len(), "{text}");
        assert_eq!(counts.rounds, rounds);
    }
    assert_eq!(plain_job().threads, 1);
}
