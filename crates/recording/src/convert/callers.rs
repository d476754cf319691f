//! Who made a mapping.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A program or library that was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its path.
    pub path: PathBuf,
    /// What is added to the addresses in its headers.
    pub address: u64,
    /// How much of the address space it takes from there, in bytes.
    pub length_bytes: u64,
    /// What its linker called the build; may be empty.
    pub build_id: Vec<u8>,
    /// When the file was changed last, in nanoseconds since 1970; 0 where that is not known.
    pub modified_ns: u64,
}

/// Somebody who called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The program or library; `None` for code that lies in none.
    pub module: Option<Arc<Module>>,
    /// An address inside of the instruction that called, as the headers of the module count; in
    /// memory where there is none.
    pub address: u64,
}

/// Where a mapping of a job was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedAt {
    /// The mapping, by its name in the job.
    pub mapping: String,
    /// Who called, from the inside to the outside: one at least.
    pub callers: Arc<[Caller]>,
}

/// What is loaded in each process.
#[derive(Debug, Default)]
pub struct Loaded {
    processes: Vec<Vec<Arc<Module>>>,
    /// Programs make most mappings in a few places.
    known: HashMap<(u32, usize, Vec<u64>), Arc<[Caller]>>,
}

impl Loaded {
    /// Another process begins, with what its parent has loaded.
    pub fn begin(&mut self, parent: Option<u32>) {
        let inherited = parent.and_then(|parent| self.processes.get(parent as usize)).cloned();
        self.processes.push(inherited.unwrap_or_default());
    }

    /// `process` has loaded `module`.
    pub fn add(&mut self, process: u32, module: Module) {
        self.processes[process as usize].push(Arc::new(module));
    }

    /// Who is at `addresses` in `process` now.
    pub fn callers(&mut self, process: u32, addresses: Vec<u64>) -> Arc<[Caller]> {
        let loaded = &self.processes[process as usize];
        let caller = |address: &u64| {
            let holds = |module: &&Arc<Module>| {
                let offset = address.checked_sub(module.address);
                offset.is_some_and(|offset| offset < module.length_bytes)
            };
            // What was loaded last has taken the place of what was there before.
            let module = loaded.iter().rev().find(holds).cloned();
            let base = module.as_ref().map_or(0, |module| module.address);
            Caller { module, address: address - base }
        };
        let key = (process, loaded.len(), addresses);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let callers: Arc<[Caller]> = key.2.iter().map(caller).collect();
        self.known.insert(key, callers.clone());
        callers
    }
}
