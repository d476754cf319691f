//! Random jobs of threads that wait: few pages, so that limits and locks matter at once.

use filemap_core::rules::{Arch, Family, Kernel, Rules};
use filemap_core::series::{Series, Switch};
use filemap_core::units::PageCount;
use filemap_job::random::Rng;
use filemap_model::Profile;
use filemap_model::thrash::costs::Costs;
use filemap_model::thrash::mechanisms::Mechanisms;
use filemap_model::thrash::{Thrash, Until};

/// A job of one thread on one CPU, without limits: for tests that change what they are about.
pub fn plain_job() -> Thrash {
    Thrash {
        rules: Rules::new(Kernel::V6_12, Series::BASELINE),
        arch: Arch::new(Family::X86_64, 4096).expect("x86-64 has it"),
        threads: 1,
        cpus: 1,
        file_pages: PageCount(256),
        sparse: true,
        read_ahead: PageCount(32),
        fault_around: PageCount(16),
        max_folio: None,
        high: None,
        max: None,
        writers: 0,
        one_vma: false,
        noise_threads: 0,
        until: Until::Rounds(2),
        warm_up_ns: 0,
        stagger_ns: 0,
        seed: 1,
        mechanisms: Mechanisms::ALL,
        costs: Costs::SERVER,
        device: Profile::DEFAULT.device,
    }
}

/// The job that `seed` means: with any series, limits near what it needs, and any mechanism left
/// out.
pub fn random_job(seed: u64) -> Thrash {
    let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let threads = 1 + rng.below(12);
    let file_pages = 1 + rng.pick(&[40, 300, 900]).min(rng.below(900));
    let read_ahead = rng.pick(&[0, 1, 8, 32, 32, 100]);
    let window = read_ahead.max(1);
    // Enough for what is charged besides, and then from half a window a thread to two.
    let besides = 64 * 8 + threads * 8 + 200;
    let high = besides + window * threads * (1 + rng.below(4)) / 2;
    let max = high + rng.below(high / 2 + 1);
    let mut series = Series::BASELINE;
    for switch in Switch::ALL {
        if rng.chance(20) {
            series = series.with(switch);
        }
    }
    let all = Mechanisms::ALL;
    let ablations = Mechanisms::ablations();
    let mechanisms = if rng.chance(50) { all } else { rng.pick(&ablations).1 };
    let slice_ns = rng.pick(&[20_000, 300_000, 4_000_000]);
    Thrash {
        rules: Rules::new(Kernel::V6_12, series),
        threads: threads as usize,
        cpus: 1 + rng.below(8) as usize,
        file_pages: PageCount(file_pages),
        sparse: rng.chance(50),
        read_ahead: PageCount(read_ahead),
        fault_around: PageCount(rng.pick(&[1, 16])),
        high: rng.chance(70).then_some(PageCount(high)),
        max: rng.chance(70).then_some(PageCount(max)),
        writers: rng.below(3) as usize,
        one_vma: rng.chance(15),
        noise_threads: rng.below(2) as usize,
        until: match rng.chance(70) {
            true => Until::Rounds(1 + rng.below(3 * threads)),
            false => Until::Elapsed(1 + rng.below(20_000_000)),
        },
        stagger_ns: rng.pick(&[0, 1000, 1_000_000]),
        seed,
        mechanisms,
        costs: Costs { slice_ns, ..Costs::SERVER },
        ..plain_job()
    }
}
