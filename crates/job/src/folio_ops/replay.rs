//! A job of the workload `folio-ops` back as text that repeats it.

use super::validate::{DEFAULT_BYTES, DEFAULT_FOLIO_BYTES, DEFAULT_RUNS};
use super::{FOLIO_OPS, FolioOps};
use crate::accesses::DEFAULT_SEED;
use crate::flags::JobSpec;
use crate::job::EngineKind;
use crate::replay::drop_if;
use crate::size::{SizeText, format_size};

impl FolioOps {
    /// The job as written, with everything said that decides what it does, defaults included:
    /// [`JobSpec::validate_folio_ops`] makes the same job of it.
    pub fn to_spec(&self) -> JobSpec {
        JobSpec {
            on: Some(self.engine.to_string()),
            runs: Some(self.runs),
            workload: Some(FOLIO_OPS.to_string()),
            seed: Some(self.seed),
            seed_text: Some(self.seed.to_string()),
            file_size: Some(SizeText::of(self.bytes)),
            folio_sizes: Some(listed(&self.folio_bytes)),
            ..JobSpec::default()
        }
    }

    /// The command line that repeats it, without what is default.
    pub fn command(&self) -> String {
        let mut spec = self.to_spec();
        drop_if(&mut spec.on, EngineKind::Model.to_string());
        drop_if(&mut spec.runs, DEFAULT_RUNS);
        drop_if(&mut spec.seed, DEFAULT_SEED);
        drop_if(&mut spec.file_size, SizeText::of(DEFAULT_BYTES));
        drop_if(&mut spec.folio_sizes, listed(&DEFAULT_FOLIO_BYTES));
        spec.run_command()
    }
}

fn listed(sizes: &[u64]) -> String {
    sizes.iter().map(|&size| format_size(size)).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_comes_back_from_what_it_says() {
        for keys in [
            "",
            "file_size = '4m'\nfolio_sizes = '2m, 16k'\nruns = 2",
            "on = 'kernel'\nseed = 7\nfolio_sizes = '8k'",
        ] {
            let spec = JobSpec::from_toml(&format!("workload = 'folio-ops'\n{keys}")).unwrap();
            let job = spec.validate_folio_ops().unwrap();
            assert_eq!(job.to_spec().validate_folio_ops().unwrap(), job, "{keys}");
        }
        let command = |keys: &str| {
            let spec = JobSpec::from_toml(&format!("workload = 'folio-ops'\n{keys}")).unwrap();
            spec.validate_folio_ops().unwrap().command()
        };
        assert_eq!(command(""), "filemap run --workload folio-ops");
        let expected = "filemap run --runs 2 --workload folio-ops --file-size 4m \
            --folio-sizes 16k,2m";
        assert_eq!(command("runs = 2\nfile_size = '4m'\nfolio_sizes = '2m,16k'"), expected);
    }
}
