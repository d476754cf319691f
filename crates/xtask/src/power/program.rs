//! Measures what conform tells, with the switches of the core that it is linked with. It has only
//! those files of the study that it needs: most others would be built for nothing.

#[path = "../../study/src/conform"]
mod conform {
    mod agreed;
    mod in_flight;
    mod patterns;
    mod random_patterns;

    pub use agreed::agreed;
    pub use patterns::built_in;
    pub use random_patterns::drawn;
}
mod error {
    pub enum Error {
        Usage(String),
    }
}
#[path = "../../xtask/src/power/groups.rs"]
mod groups;
#[path = "../../xtask/src/power/measure.rs"]
mod measure;
#[path = "../../xtask/src/power/mutant.rs"]
mod mutant;
#[path = "../../study/src/random_jobs/mod.rs"]
mod random_jobs;
#[path = "../../xtask/src/power/telling.rs"]
mod telling;
#[path = "../../xtask/src/power/watched.rs"]
mod watched;

use filemap_core::switched;

use self::mutant::Mutant;
use self::telling::{On, Switches};

struct Core;

impl Switches for Core {
    fn set(&self, site: usize, way: u8) {
        switched::set(site, way);
    }

    fn note(&self, site: usize) {
        switched::set(site, switched::NOTES);
    }

    fn noted(&self, site: usize) -> u8 {
        switched::taken(site)
    }

    fn count(&self, most: u64) -> u64 {
        switched::count(most)
    }
}

/// Arguments: the file of the wrong rules, the kernel, and how many jobs beside the patterns.
fn main() -> anyhow::Result<()> {
    // A wrong rule may stop a run at any place.
    std::panic::set_hook(Box::new(|_| {}));
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [mutants, kernel, jobs] = &words[..] else { anyhow::bail!("MUTANTS KERNEL JOBS") };
    let mutants: Vec<Mutant> = serde_json::from_str(&std::fs::read_to_string(mutants)?)?;
    let power = measure::measure(&Core, &mutants, &On::of(kernel), jobs.parse()?);
    println!("{}", serde_json::to_string(&power)?);
    Ok(())
}
