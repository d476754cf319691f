//! Functions and lines of programs, by addresses in them.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::Loader;
use filemap_recording::convert::{self, MappedAt, Module};
use filemap_report::advise::{Caller, MappedBy};
use object::{Object, ObjectSymbol, ReadCache, SymbolKind};

use crate::input;

/// What tells whether a program or library is the same as before.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// What its linker called the build; empty where it has none.
    pub build_id: Vec<u8>,
    /// When it was changed last, in nanoseconds since 1970; 0 where that is not known.
    pub modified_ns: u64,
}

/// That of the file at `path`.
pub fn identity(path: &Path) -> Identity {
    let regular = path.to_str().and_then(|path| input::regular("program", path).ok());
    let Some((file, _)) = regular else { return Identity::default() };
    let modified_ns = file.metadata().map_or(0, |data| {
        let (seconds, ns) = (u64::try_from(data.mtime()), u64::try_from(data.mtime_nsec()));
        seconds.unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(ns.unwrap_or(0))
    });
    Identity { build_id: build_id(file).unwrap_or_default(), modified_ns }
}

/// Reads what is needed for it of a program, and no more.
fn build_id(file: File) -> Option<Vec<u8>> {
    let cache = ReadCache::new(file);
    let object = object::File::parse(&cache).ok()?;
    Some(object.build_id().ok()??.to_vec())
}

/// The places in a program at which mappings were made.
#[derive(Default)]
pub struct Symbols {
    /// Modules by their path; `None` where they cannot be read, or are others now.
    loaded: HashMap<PathBuf, Option<Loader>>,
    changed: Vec<PathBuf>,
}

impl Symbols {
    /// Where those of `mapped_at` were made whose mapping `is_meant`: where most were made first.
    pub fn places(
        &mut self,
        mapped_at: &[MappedAt],
        is_meant: impl Fn(&str) -> bool,
    ) -> Vec<MappedBy> {
        let mut counts: Vec<(&Arc<[convert::Caller]>, u64)> = Vec::new();
        for at in mapped_at.iter().filter(|at| is_meant(&at.mapping)) {
            match counts.iter_mut().find(|(callers, _)| *callers == &at.callers) {
                Some((_, count)) => *count += 1,
                None => counts.push((&at.callers, 1)),
            }
        }
        let mut places: Vec<MappedBy> = Vec::new();
        for (callers, mappings) in counts {
            let callers = self.named(callers);
            // What differs outside of what is named is the same place.
            match places.iter_mut().find(|place| place.callers == callers) {
                Some(place) => place.mappings += mappings,
                None if callers.is_empty() => {}
                None => places.push(MappedBy { mappings, callers }),
            }
        }
        places.sort_by_key(|place| std::cmp::Reverse(place.mappings));
        places
    }

    /// Programs and libraries that are not what they were when they were recorded.
    pub fn changed(&self) -> &[PathBuf] {
        &self.changed
    }

    /// The functions that called, without those of the C library and the program's start.
    fn named(&mut self, callers: &[convert::Caller]) -> Vec<Caller> {
        let mut named = Vec::new();
        for caller in callers {
            match &caller.module {
                Some(module) if is_of_system(&module.path) => {}
                Some(module) => named.extend(self.functions(module, caller.address)),
                None => named.push(Caller {
                    function: None,
                    file: None,
                    line: None,
                    module: None,
                    address: caller.address,
                }),
            }
        }
        let is_start = |caller: &Caller| caller.function.as_deref() == Some("_start");
        named.retain(|caller| !is_start(caller));
        named
    }

    /// The functions that an address lies in: several where one is part of another's code.
    fn functions(&mut self, module: &Module, address: u64) -> Vec<Caller> {
        let caller = |function: Option<String>, place: Option<(Option<&str>, Option<u32>)>| {
            let (file, line) = place.unwrap_or_default();
            let file = file.map(|file| file_name(Path::new(file)));
            Caller { function, file, line, module: Some(file_name(&module.path)), address }
        };
        let Some(loader) = self.loader(module) else { return vec![caller(None, None)] };
        let mut callers = Vec::new();
        if let Ok(mut frames) = loader.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                let function =
                    frame.function.and_then(|name| name.demangle().ok().map(|name| shown(&name)));
                let place = frame.location.map(|at| (at.file, at.line));
                if function.is_some() || place.is_some() {
                    callers.push(caller(function, place));
                }
            }
        }
        if let [only] = callers.as_mut_slice()
            && only.function.is_none()
        {
            only.function = symbol(&module.path, address);
        }
        match callers.is_empty() {
            true => vec![caller(symbol(&module.path, address), None)],
            false => callers,
        }
    }

    fn loader(&mut self, module: &Module) -> Option<&Loader> {
        if !self.loaded.contains_key(&module.path) {
            let known =
                Identity { build_id: module.build_id.clone(), modified_ns: module.modified_ns };
            let now = identity(&module.path);
            let is_same = match known.build_id.is_empty() {
                false => known.build_id == now.build_id,
                true => known.modified_ns != 0 && known == now,
            };
            let is_there = now != Identity::default();
            if !is_same && is_there && known != Identity::default() {
                self.changed.push(module.path.clone());
            }
            let loader = is_same.then(|| Loader::new(&module.path).ok()).flatten();
            self.loaded.insert(module.path.clone(), loader);
        }
        self.loaded.get(&module.path)?.as_ref()
    }
}

/// The name of the symbol of the program at `path` that `address` lies in.
fn symbol(path: &Path, address: u64) -> Option<String> {
    let (file, _) = input::regular("program", path.to_str()?).ok()?;
    let cache = ReadCache::new(file);
    let object = object::File::parse(&cache).ok()?;
    // Between two symbols lies what has none.
    let holds = |symbol: &object::Symbol<'_, '_, _>| {
        let offset = address.checked_sub(symbol.address());
        symbol.kind() == SymbolKind::Text && offset.is_some_and(|offset| offset < symbol.size())
    };
    let mut symbols = object.symbols().chain(object.dynamic_symbols());
    let found = symbols.find(holds)?;
    let name = found.name().ok()?;
    Some(shown(&addr2line::demangle_auto(name.into(), None)))
}

/// A name as a terminal may show it.
fn shown(name: &str) -> String {
    name.replace(char::is_control, "?")
}

fn file_name(path: &Path) -> String {
    shown(&path.file_name().unwrap_or(path.as_os_str()).to_string_lossy())
}

/// Names of the C library, the loader and the library that records, which call for whoever calls
/// them.
const OF_SYSTEM: [&str; 5] =
    ["libc.so.", "libc-2.", "ld-linux", "libpthread.so.", "libfilemap_governor.so"];

fn is_of_system(path: &Path) -> bool {
    let name = file_name(path);
    OF_SYSTEM.iter().any(|start| name.starts_with(start))
}
