//! Lowering of flags to tables: the keys of a job without tables are turned into a job with one
//! file, open, mapping and thread, and nothing else handles them.

use crate::Error;
use crate::bounds::{DEFAULT_STUBS_BYTES, MAX_PHASES};
use crate::flags::{Flag, FlagScope, JobFlags};
use crate::job::Job;
use crate::limits::out_of_range;
use crate::phase_spec::PhaseSpec;
use crate::program::{
    FileSpec, FoundFile, JobSpec, MappingSpec, OpenSpec, ThreadPhaseSpec, ThreadSpec,
};
use crate::size::SizeText;
use crate::workload::{EXEC, FOLIO_OPS, Workload};

/// Table names of a job given by flags.
pub(crate) const FILE: &str = "file";
pub(crate) const OPEN: &str = "open";
pub(crate) const MAPPING: &str = "mapping";

impl JobFlags {
    /// Validates the job and resolves defaults: [`JobSpec::validate`] of the job that these flags
    /// describe.
    ///
    /// # Errors
    /// As for [`JobSpec::from_flags`] and [`JobSpec::validate`].
    pub fn validate(&self, host_release: Option<&str>) -> Result<Job, Error> {
        JobSpec::from_flags(self)?.validate(host_release)
    }

    /// The phases: the `[[phase]]` tables, or a single one made of `workload` and its related
    /// flags.
    fn phases(&self) -> Result<Vec<PhaseSpec>, Error> {
        let own = PhaseSpec {
            workload: self.workload.clone(),
            accesses: self.accesses,
            fraction: self.fraction,
            accesses_file: self.accesses_file.clone(),
            seed: None,
            seed_text: None,
            bs: self.bs.clone(),
            accesses_text: self.accesses_text.clone(),
        };
        if self.phase.is_empty() {
            return Ok(vec![own]);
        }
        if let Some(flag) = own.first_given() {
            let remedy = "put it into the phases, or remove them";
            return Err(Error::Conflict { flag, other: "[[phase]]", remedy });
        }
        if self.phase.len() > MAX_PHASES {
            let value = format!("a number of {} phases", self.phase.len());
            return Err(out_of_range(value, 1, MAX_PHASES));
        }
        Ok(self.phase.clone())
    }

    /// Rejects flags that cannot be used when ELF segments are mapped.
    fn check_elf(&self) -> Result<(), Error> {
        if self.file.is_none() {
            let remedy = "the program or shared library to map";
            return Err(Error::Missing { flag: "file", remedy });
        }
        let excluded = [
            ("file-size", self.file_size.is_some()),
            ("map-offset", self.map_offset.is_some()),
            ("map-len", self.map_len.is_some()),
            ("split", self.split.is_some()),
            ("exec", self.exec == Some(true)),
            ("private", self.private == Some(true)),
            ("sparse", self.sparse == Some(true)),
        ];
        if let Some((flag, _)) = excluded.into_iter().find(|(_, is_given)| *is_given) {
            let remedy = "remove it: the file's segments say what is mapped";
            return Err(Error::Conflict { flag, other: "--workload elf", remedy });
        }
        if self.calls() {
            let (other, remedy) = ("--workload exec", "give them to jobs of their own");
            return Err(Error::Conflict { flag: "workload elf", other, remedy });
        }
        Ok(())
    }

    /// The given flags that belong to a file, a mapping or a phase.
    fn table_flags(&self) -> impl Iterator<Item = &'static Flag> {
        self.present().filter(|flag| !JobSpec::is_shared(flag.key))
    }
}

impl JobSpec {
    /// The job that `flags` describe: one file, opened and mapped once, and one thread; or the
    /// threads and files of the workload `thrash`.
    ///
    /// # Errors
    /// Conflicting flags, and an unknown workload.
    pub fn from_flags(flags: &JobFlags) -> Result<JobSpec, Error> {
        if flags.is_thrash() {
            return flags.thrash();
        }
        if flags.workload.as_deref() == Some(FOLIO_OPS) {
            return Err(Error::IsFolioOps);
        }
        if let Some(flag) = flags.present().find(|flag| flag.scope == FlagScope::Thrash) {
            return Err(Error::OfThrash { flag: flag.name });
        }
        let phases = flags.phases()?;
        let has_phases = !flags.phase.is_empty();
        let calls = flags.calls();
        let is_elf = flags.maps_elf();
        if is_elf {
            flags.check_elf()?;
        }
        if flags.private == Some(true) && calls {
            let (other, remedy) = ("--workload exec", "remove it: calls do not write");
            return Err(Error::Conflict { flag: "private", other, remedy });
        }
        let elf = flags.elf.clone().filter(|_| is_elf);
        let default_bytes = (calls && flags.file.is_none()).then_some(DEFAULT_STUBS_BYTES);
        let file = FileSpec {
            name: FILE.to_string(),
            size: flags.file_size.clone().or(default_bytes.map(SizeText::from_bytes)),
            path: flags.file.clone(),
            sparse: flags.sparse.unwrap_or(false),
            count: None,
            cached: None,
            found: elf.map(|elf| FoundFile {
                holes: Vec::new(),
                size_bytes: elf.size_bytes,
                sparse: false,
                elf: Some(elf),
            }),
        };
        let mapping = MappingSpec {
            name: MAPPING.to_string(),
            open: OPEN.to_string(),
            elf: is_elf,
            ..MappingSpec::default()
        };
        let mut spec = JobSpec {
            file: vec![file],
            open: vec![OpenSpec { name: OPEN.to_string(), file: FILE.to_string(), direct: false }],
            mapping: vec![mapping],
            thread: vec![ThreadSpec::default()],
            ..JobSpec::default()
        };
        spec.origins.is_flat = true;
        spec.origins.has_phases = has_phases;
        spec = spec.overlay(flags);
        let mapping = &mut spec.mapping[0];
        flags.set_mapping(mapping);
        mapping.exec |= calls;
        for (number, phase) in phases.into_iter().enumerate() {
            let lowered = phase.lowered(mapping).map_err(|error| {
                if has_phases {
                    Error::InPhase { number: number + 1, error: Box::new(error) }
                } else {
                    error
                }
            })?;
            spec.thread[0].phase.extend(lowered);
        }
        Ok(spec)
    }

    /// This job with the values of `flags` replacing its own. Advice applies to all of its
    /// mappings.
    ///
    /// # Errors
    /// A flag of a file, a mapping or a phase if the job does not have exactly one.
    pub fn with_flags(self, flags: &JobFlags) -> Result<JobSpec, Error> {
        if flags.is_thrash() {
            return Err(Error::IsThrash);
        }
        let is_lowered = self.is_lowered();
        let mut spec = self.overlay(flags);
        spec.origins.lines.remove(flags);
        if let Some(advice) = &flags.advice {
            spec.advise(None, advice)?;
        }
        for flag in flags.table_flags().filter(|flag| flag.key != "advice") {
            let table = match flag.key {
                _ if flag.scope == FlagScope::Thrash => {
                    return Err(Error::OfThrash { flag: flag.name });
                }
                "file" | "file_size" | "sparse" if spec.file.len() != 1 => "file",
                "file" | "file_size" | "sparse" => "",
                key if PHASE_KEYS.contains(&key) && spec.sole_phase().is_none() => "thread.phase",
                key if PHASE_KEYS.contains(&key) => "",
                _ if spec.mapping.len() != 1 => "mapping",
                _ => "",
            };
            if !table.is_empty() {
                return Err(Error::SeveralTables { flag: flag.name, table });
            }
            spec.origins.add(flag.key);
        }
        if let [file] = spec.file.as_mut_slice() {
            if let Some(path) = &flags.file {
                (file.path, file.size) = (Some(path.clone()), None);
            }
            file.size = flags.file_size.clone().or(file.size.take());
            file.sparse = flags.sparse.unwrap_or(file.sparse);
        }
        let writes = flags.private;
        if let [mapping] = spec.mapping.as_mut_slice() {
            flags.set_mapping(mapping);
        }
        for phase in spec.thread.iter_mut().flat_map(|thread| &mut thread.phase) {
            if phase.mapping.is_some() && phase.has_accesses() {
                phase.write = writes.unwrap_or(phase.write);
            }
        }
        if let Some(phase) = spec.sole_phase() {
            flags.set_phase(phase);
        }
        if is_lowered {
            spec.lower_again();
        }
        Ok(spec)
    }

    /// The only phase with accesses.
    fn sole_phase(&mut self) -> Option<&mut ThreadPhaseSpec> {
        let phases = self.thread.iter_mut().flat_map(|thread| &mut thread.phase);
        let mut phases = phases.filter(|phase| phase.has_accesses());
        phases.next().filter(|_| phases.next().is_none())
    }

    /// The job as a job file, without tables if flags can describe it.
    pub fn to_short_toml(&self) -> String {
        self.to_flags().map_or_else(|| self.to_toml(), |flags| flags.to_toml())
    }

    /// The equivalent flags, if there are any.
    pub fn to_flags(&self) -> Option<JobFlags> {
        if !self.is_single_mapping() {
            return None;
        }
        let (file, mapping) = (&self.file[0], &self.mapping[0]);
        let phase = |phase: &ThreadPhaseSpec| PhaseSpec {
            workload: phase.workload.clone(),
            accesses: phase.accesses,
            fraction: phase.fraction,
            accesses_file: phase.accesses_file.clone(),
            seed: phase.seed,
            seed_text: None,
            bs: phase.bs.clone(),
            accesses_text: phase.accesses_text.clone(),
        };
        let mut phases: Vec<PhaseSpec> = self.thread[0].phase.iter().map(phase).collect();
        let mut flags = JobFlags {
            seed_text: None,
            file_size: file.size.clone(),
            file: file.path.clone(),
            sparse: file.sparse.then_some(true),
            map_offset: mapping.offset.clone(),
            map_len: mapping.len.clone(),
            map_shift: mapping.shift,
            split: mapping.split,
            split_prot: mapping.split_prot.clone(),
            advice: mapping.advice.clone(),
            exec: mapping.exec.then_some(true),
            private: mapping.private.then_some(true),
            ..self.shared()
        };
        match phases.as_slice() {
            [only] if only.seed.is_none() => {
                let PhaseSpec { workload, accesses, fraction, accesses_file, bs, .. } =
                    phases.remove(0);
                flags = JobFlags { workload, accesses, fraction, accesses_file, bs, ..flags };
            }
            _ => flags.phase = phases,
        }
        let mut own = self.clone();
        (own.seed_text, own.file[0].found) = (None, None);
        own.thread[0].phase.iter_mut().for_each(|phase| phase.seed_text = None);
        (JobSpec::from_flags(&flags).as_ref() == Ok(&own)).then_some(flags)
    }

    /// A copy of this job after `change`. If its phases are those that flags are lowered to, they
    /// still are: reads follow the mapped range, and writes the protection.
    pub fn changed(&self, change: impl FnOnce(&mut JobSpec)) -> JobSpec {
        let is_lowered = self.is_lowered();
        let mut spec = self.clone();
        change(&mut spec);
        if is_lowered {
            spec.lower_again();
        }
        spec
    }

    /// Makes phases that were lowered from flags follow their mapping.
    fn lower_again(&mut self) {
        let ([mapping], [thread]) = (&mut self.mapping[..], &mut self.thread[..]) else { return };
        let is_exec = |phase: &ThreadPhaseSpec| {
            let workload = phase.workload.as_deref().and_then(|name| name.parse().ok());
            workload.is_some_and(Workload::is_exec)
        };
        mapping.exec |= thread.phase.iter().any(is_exec);
        for phase in &mut thread.phase {
            // An invalid workload stays for validation to refuse.
            if let Ok(lowered) = phase.accesses().lowered_one(mapping) {
                *phase = lowered;
            }
        }
    }

    /// Whether each phase is what flags are lowered to. Jobs with an accesses file are left out:
    /// their phases hold its contents.
    fn is_lowered(&self) -> bool {
        self.is_single_mapping()
            && self.thread[0].phase.iter().all(|phase| {
                phase.accesses_file.is_none()
                    && phase.accesses().lowered_one(&self.mapping[0]).as_ref() == Ok(phase)
            })
    }

    /// Whether flags can describe the job: one file, one mapping and one thread, with default
    /// names.
    pub fn is_single_mapping(&self) -> bool {
        let ([file], [open], [mapping], [thread]) =
            (&self.file[..], &self.open[..], &self.mapping[..], &self.thread[..])
        else {
            return false;
        };
        let names = [&file.name, &open.name, &mapping.name, &open.file, &mapping.open];
        let accesses = |phase: &ThreadPhaseSpec| {
            phase.has_accesses() && phase.think_ns.is_none() && phase.after.is_empty()
        };
        names.map(String::as_str) == [FILE, OPEN, MAPPING, FILE, OPEN]
            && !open.direct
            && file.count.is_none()
            && ThreadSpec { phase: Vec::new(), ..thread.clone() } == ThreadSpec::default()
            && !thread.phase.is_empty()
            && thread.phase.iter().all(accesses)
    }
}

/// Keys of flags that belong to a phase.
const PHASE_KEYS: [&str; 5] = ["workload", "accesses", "fraction", "accesses_file", "bs"];

impl JobFlags {
    fn set_mapping(&self, mapping: &mut MappingSpec) {
        mapping.offset = self.map_offset.clone().or(mapping.offset.take());
        mapping.len = self.map_len.clone().or(mapping.len.take());
        mapping.shift = self.map_shift.or(mapping.shift);
        mapping.split = self.split.or(mapping.split);
        mapping.split_prot = self.split_prot.clone().or(mapping.split_prot.take());
        mapping.advice = self.advice.clone().or(mapping.advice.take());
        mapping.exec = self.exec.unwrap_or(mapping.exec);
        mapping.private = self.private.unwrap_or(mapping.private);
    }

    fn set_phase(&self, phase: &mut ThreadPhaseSpec) {
        if self.workload.is_some() || self.accesses_file.is_some() {
            (phase.pages, phase.offsets) = (None, None);
            (phase.accesses_file, phase.accesses_text) = (None, None);
            phase.workload = self.workload.clone();
        }
        if self.accesses_file.is_some() {
            (phase.accesses_file, phase.accesses_text) =
                (self.accesses_file.clone(), self.accesses_text.clone());
            (phase.accesses, phase.fraction) = (None, None);
        }
        if self.accesses.is_some() || self.fraction.is_some() {
            (phase.accesses, phase.fraction) = (self.accesses, self.fraction);
        }
        phase.bs = self.bs.clone().or(phase.bs.take());
    }
}

impl PhaseSpec {
    /// The thread phases that this phase is lowered to, over `mapping` and its open file. The
    /// workload `exec` becomes two, and `accesses` applies to the second.
    ///
    /// # Errors
    /// An unknown workload, and a key that does not go with it.
    pub fn lowered(&self, mapping: &MappingSpec) -> Result<Vec<ThreadPhaseSpec>, Error> {
        if self.workload.as_deref() != Some(EXEC) {
            return Ok(vec![self.lowered_one(mapping)?]);
        }
        let with = |workload: Workload| Some(workload.to_string());
        let cold = PhaseSpec {
            workload: with(Workload::ExecCold),
            accesses: None,
            fraction: None,
            ..self.clone()
        };
        let random = PhaseSpec { workload: with(Workload::ExecRandom), ..self.clone() };
        Ok(vec![cold.lowered_one(mapping)?, random.lowered_one(mapping)?])
    }

    fn lowered_one(&self, mapping: &MappingSpec) -> Result<ThreadPhaseSpec, Error> {
        if self.accesses_file.is_some()
            && let Some(flag) = self.given_with_list()
        {
            let remedy = "the list alone says what is accessed";
            return Err(Error::Conflict { flag, other: "--accesses-file", remedy });
        }
        let workload = self.workload.as_deref().filter(|_| self.accesses_file.is_none());
        let workload = workload.map(str::parse::<Workload>).transpose();
        let workload = workload.map_err(|error| error.with_flag("workload"))?;
        let phase = ThreadPhaseSpec {
            workload: workload.map(|workload| workload.to_string()),
            accesses: self.accesses,
            fraction: self.fraction,
            accesses_file: self.accesses_file.clone(),
            seed: self.seed,
            seed_text: self.seed_text.clone(),
            bs: self.bs.clone(),
            accesses_text: self.accesses_text.clone(),
            ..ThreadPhaseSpec::default()
        };
        if workload.is_some_and(Workload::is_read) {
            let (offset, len) = (mapping.offset.clone(), mapping.len.clone());
            return Ok(ThreadPhaseSpec { open: Some(mapping.open.clone()), offset, len, ..phase });
        }
        if self.bs.is_some() {
            let (other, remedy) =
                ("a workload that touches pages", "read-random and read-sequential read blocks");
            return Err(Error::Conflict { flag: "bs", other, remedy });
        }
        Ok(ThreadPhaseSpec {
            mapping: Some(mapping.name.clone()),
            write: mapping.private && !workload.is_some_and(Workload::is_exec),
            ..phase
        })
    }
}

impl Job {
    /// Whether the job has one file, one mapping and one thread with default names, so that reports
    /// need not name them.
    pub fn is_single_mapping(&self) -> bool {
        self.spec.is_single_mapping()
    }
}
