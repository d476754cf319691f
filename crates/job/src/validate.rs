//! From a job as written to a job that can be run.

use std::str::FromStr;

use filemap_core::address::mapping::{Split, SplitProt};
use filemap_core::address::vma::Advice;
use filemap_core::rules::{Arch, Family, Kernel, Rules};
use filemap_core::series::{Series, Switch, UnknownSeries};
use filemap_core::units::{PageCount, PageIndex};

use crate::Error;
use crate::advice;
use crate::bounds::{
    DEFAULT_STUBS_BYTES, MAX_BLOCK_BYTES, MAX_BYTES, MAX_PHASE_RUNS, MAX_READ_AHEAD_KB, MAX_RUNS,
};
use crate::elf::Elf;
use crate::flags::{JobSpec, Of};
use crate::job::Job;
use crate::limits::{name, one_of, pages, size, split_pages, unknown, within};
use crate::one_file::OneFile;
use crate::parts::{EngineKind, File, Filesystem, Image, Machine, Mapping};
use crate::phases::Extent;
use crate::seed;
use crate::size::{SizeText, format_size, shorten};
use crate::workload::FOLIO_OPS;
use crate::xorshift::DEFAULT_SEED;

/// Readahead size in KiB where none is given.
pub(crate) const DEFAULT_READ_AHEAD_KB: u64 = 128;

/// Fault-around size in bytes where none is given.
pub(crate) const DEFAULT_FAULT_AROUND_BYTES: u64 = 65536;

impl JobSpec {
    /// Checks every value and resolves what was not given. `host_release` is the release of the
    /// running kernel, such as `6.18.3-amd64`, for `kernel = "host"`.
    ///
    /// # Errors
    /// In one line: the first flag that is missing, wrong, beyond [`crate::bounds`] or does not
    /// go with the others, and the remedy.
    pub fn validate(mut self, host_release: Option<&str>) -> Result<Job, Error> {
        self.check_of_one_file()?;
        let arch = self.valid_arch()?;
        let elf = self.valid_elf()?;
        let file = self.valid_file(elf.as_ref())?;
        let mapping = match &elf {
            Some(elf) => self.valid_segments(elf, &arch)?,
            None => self.valid_mapping(&file, &arch)?,
        };
        let given = seed::given(self.seed, self.seed_text.as_deref())?;
        let seed = within("seed", given.unwrap_or(DEFAULT_SEED), 1, u64::MAX)?;
        let engine = name("on", &self.on, EngineKind::Model)?;
        let bytes = match elf {
            Some(_) => file.size_bytes,
            None => mapping.bytes_of(&file, arch.page_size),
        };
        let extent = Extent { pages: mapping.pages, bytes };
        let image = self.valid_image(engine)?;
        let rules = self.valid_rules(host_release)?;
        let runs = within("runs", self.runs.unwrap_or(1), 1, MAX_RUNS)?;
        let machine = self.valid_machine(arch, &rules)?;
        let phases = self.take_phases(seed, extent)?;
        let most_runs = MAX_PHASE_RUNS / phases.len() as u64;
        let valid = OneFile {
            engine,
            image,
            rules,
            runs: within("runs", runs, 1, most_runs.min(MAX_RUNS))?,
            seed,
            machine,
            phases,
            file,
            mapping,
            elf,
        };
        Ok(valid.program())
    }

    /// Refuses flags that only the workload `thrash` has, the workload itself, and folio-ops.
    fn check_of_one_file(&self) -> Result<(), Error> {
        if self.is_thrash() {
            return Err(Error::IsThrash);
        }
        if self.workload.as_deref() == Some(FOLIO_OPS) {
            return Err(Error::IsFolioOps);
        }
        match self.given().find(|flag| flag.of == Of::Thrash) {
            Some(flag) => Err(Error::OfThrash { flag: flag.name }),
            None => Ok(()),
        }
    }

    pub(crate) fn valid_arch(&self) -> Result<Arch, Error> {
        let family =
            one_of("arch", "architecture", &self.arch, Family::X86_64, Family::ALL, Family::name)?;
        let page_size = size("page-size", &self.page_size, 0, MAX_BYTES)?.unwrap_or(4096);
        Arch::new(family, page_size).ok_or(Error::PageSize {
            arch: family.name(),
            page_size: format_size(page_size),
            remedy: match family {
                Family::X86_64 => "4k, or --arch arm64 for 16k and 64k",
                Family::Arm64 => "4k, 16k or 64k",
            },
        })
    }

    pub(crate) fn valid_rules(&self, host_release: Option<&str>) -> Result<Rules, Error> {
        let known = Kernel::ALL.map(Kernel::name);
        let kernel = match self.kernel.as_deref().unwrap_or(Kernel::V6_18.name()) {
            "host" => match host_release.and_then(Kernel::nearest) {
                Some(nearest) => Ok(nearest.kernel),
                None => Err(Error::UnknownHost {
                    release: shorten(host_release.unwrap_or("this kernel")),
                    known: known.join(" or "),
                }),
            },
            name => Kernel::ALL.into_iter().find(|kernel| kernel.name() == name).ok_or_else(|| {
                match Kernel::nearest(name).map(|nearest| nearest.names()) {
                    Some(nearest) => Error::NotModelled { version: shorten(name), nearest },
                    None => unknown("kernel", name, known.into_iter().chain(["host"])),
                }
            }),
        };
        let names = self.with.as_deref().unwrap_or("baseline").replace(',', "+");
        let series = Series::from_str(&names).map_err(|error| UnknownSeries(shorten(&error.0)));
        let series = series.map_err(|error| Error::from(error).of("with"))?;
        let rules = Rules::new(kernel.map_err(|error| error.of("kernel"))?, series);
        match series.switches().find_map(|switch| Some((switch, rules.lacks(switch)?))) {
            None => Ok(rules),
            Some((switch, lacks)) => Err(no_place(&names, switch, lacks, &rules).of("with")),
        }
    }

    pub(crate) fn valid_image(&self, engine: EngineKind) -> Result<Option<Image>, Error> {
        let modules = self.modules.clone();
        match (self.image.clone(), engine) {
            (Some(path), EngineKind::Kernel) => {
                Ok(Some(Image { path, modules, switches: Series::BASELINE }))
            }
            (Some(_), EngineKind::Model) => Err(Error::Conflict {
                flag: "image",
                other: "--on model",
                remedy: "give --on kernel",
            }),
            (None, _) if modules.is_some() => {
                Err(Error::Missing { flag: "image", remedy: "the kernel of --modules" })
            }
            (None, _) => Ok(None),
        }
    }

    /// The headers of the file, where its segments are mapped.
    fn valid_elf(&mut self) -> Result<Option<Elf>, Error> {
        if !self.maps_elf() {
            return Ok(None);
        }
        let Some(path) = &self.file else {
            let remedy = "the program or shared library to map";
            return Err(Error::Missing { flag: "file", remedy });
        };
        let given = [
            ("file-size", self.file_size.is_some()),
            ("map-offset", self.map_offset.is_some()),
            ("map-len", self.map_len.is_some()),
            ("split", self.split.is_some()),
            ("exec", self.exec == Some(true)),
            ("private", self.private == Some(true)),
            ("sparse", self.sparse == Some(true)),
        ];
        if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
            let remedy = "remove it: the file's segments say what is mapped";
            return Err(Error::Conflict { flag, other: "--workload elf", remedy });
        }
        if self.calls() {
            let (other, remedy) = ("--workload exec", "give them to jobs of their own");
            return Err(Error::Conflict { flag: "workload elf", other, remedy });
        }
        let elf = self.elf.take().ok_or_else(|| Error::ElfNotRead { path: shorten(path) });
        elf.map(Some).map_err(|error| error.of("file"))
    }

    fn valid_segments(&self, elf: &Elf, arch: &Arch) -> Result<Mapping, Error> {
        let segments = elf.segments(arch.page_size).map_err(|error| error.of("file"))?;
        Ok(Mapping {
            offset: PageIndex(0),
            pages: PageCount(segments.iter().map(|segment| segment.pages.0).sum()),
            shift: PageCount(self.valid_shift(arch)?),
            advice: self.valid_advice()?,
            exec: false,
            private: false,
            split: None,
        })
    }

    fn valid_file(&self, elf: Option<&Elf>) -> Result<File, Error> {
        let default = match elf {
            Some(elf) => Some(elf.size_bytes),
            None => self.calls().then_some(DEFAULT_STUBS_BYTES),
        };
        let size_bytes = size("file-size", &self.file_size, 1, MAX_BYTES)?
            .or(default)
            .ok_or(Error::Missing { flag: "file-size", remedy: "a size such as 1g" })?;
        Ok(File {
            size_bytes,
            path: self.file.clone(),
            sparse: self.sparse.unwrap_or(false),
            cold: self.cold.unwrap_or(false),
        })
    }

    fn valid_mapping(&self, file: &File, arch: &Arch) -> Result<Mapping, Error> {
        let page_size = arch.page_size;
        let file_pages = file.size_bytes.div_ceil(page_size);
        let offset = pages("map-offset", &self.map_offset, 0, page_size)?.unwrap_or(0);
        let len = pages("map-len", &self.map_len, 1, page_size)?
            .unwrap_or(file_pages.saturating_sub(offset));
        // Both are at most MAX_BYTES / page_size: no overflow.
        if len == 0 || offset + len > file_pages {
            let (offset, len) = (offset * page_size, len * page_size);
            return Err(Error::BeyondFile {
                offset: format_size(offset),
                len: format_size(len),
                size: format_size(file.size_bytes),
            });
        }
        let private = self.private.unwrap_or(false);
        if private && self.calls() {
            let (other, remedy) = ("--workload exec", "remove it: calls do not write");
            return Err(Error::Conflict { flag: "private", other, remedy });
        }
        Ok(Mapping {
            offset: PageIndex(offset),
            pages: PageCount(len),
            shift: PageCount(self.valid_shift(arch)?),
            advice: self.valid_advice()?,
            exec: self.exec.unwrap_or(false) || self.calls(),
            private,
            split: self.valid_split(len)?,
        })
    }

    fn valid_shift(&self, arch: &Arch) -> Result<u64, Error> {
        within("map-shift", self.map_shift.unwrap_or(0), 0, arch.pte_entries - 1)
    }

    fn valid_advice(&self) -> Result<Advice, Error> {
        advice::valid(&self.advice)
    }

    fn valid_split(&self, mapped: u64) -> Result<Option<Split>, Error> {
        let prot = one_of(
            "split-prot",
            "--split-prot",
            &self.split_prot,
            SplitProt::Write,
            SplitProt::ALL,
            SplitProt::name,
        )?;
        let Some(pages) = self.split else {
            return match self.split_prot {
                Some(_) => Err(Error::Missing {
                    flag: "split",
                    remedy: "the pages of each piece with --split-prot, or neither",
                }),
                None => Ok(None),
            };
        };
        let pages = split_pages(pages, mapped)?;
        Ok(Some(Split { pages, prot }))
    }

    pub(crate) fn valid_machine(&self, arch: Arch, rules: &Rules) -> Result<Machine, Error> {
        let page_size = arch.page_size;
        let bytes = |flag, text: &Option<SizeText>, from| {
            pages(flag, text, from, page_size).map(|count| count.map(|count| count * page_size))
        };
        let fs = name("fs", &self.fs, Filesystem::Ext4)?;
        let cache_limit = pages("cache-limit", &self.cache_limit, 1, page_size)?.map(PageCount);
        let mut machine = Machine {
            cache_limit,
            // The kernel's part of one page leaves none to the cache.
            ram_bytes: bytes("ram", &self.ram, 2)?,
            memory_high_bytes: bytes("memory-high", &self.memory_high, 1)?,
            memory_max_bytes: bytes("memory-max", &self.memory_max, 1)?,
            read_ahead: self.valid_read_ahead(page_size)?,
            fault_around: self.valid_fault_around(&arch)?,
            arch,
            fs,
            block_bytes: self.valid_blocks(page_size, fs, rules)?,
            profile: self.machine.clone(),
            governor: self.governor.unwrap_or(false),
        };
        if let (Some(high), Some(max)) = (machine.memory_high_bytes, machine.memory_max_bytes)
            && high > max
        {
            let (high, max) = (format_size(high), format_size(max));
            return Err(Error::HighAboveMax { high, max }.of("memory-high"));
        }
        machine.cache_limit =
            [machine.implied_cache_limit(), cache_limit].into_iter().flatten().min();
        Ok(machine)
    }

    /// The size of blocks in bytes. Others than those of a page need XFS, and a kernel for them.
    fn valid_blocks(&self, page_size: u64, fs: Filesystem, rules: &Rules) -> Result<u64, Error> {
        let given = size("block-size", &self.block_size, page_size, MAX_BLOCK_BYTES)?;
        let bytes = given.unwrap_or(page_size);
        let size = || format_size(bytes);
        if !bytes.is_power_of_two() {
            return Err(Error::NotPowerOfTwo { value: size() }.of("block-size"));
        }
        if bytes == page_size {
            return Ok(bytes);
        }
        if fs != Filesystem::Xfs {
            let (size, whose) = (size(), "of xfs only");
            return Err(Error::LargeBlocks { size, whose, remedy: "--fs xfs" });
        }
        if !rules.xfs_large_blocks {
            let (size, whose) = (size(), "of Linux 6.12 and later only");
            return Err(Error::LargeBlocks {
                size,
                whose,
                remedy: "--kernel 6.12, or a later one",
            });
        }
        Ok(bytes)
    }

    fn valid_read_ahead(&self, page_size: u64) -> Result<PageCount, Error> {
        let kb = self.read_ahead_kb.unwrap_or(DEFAULT_READ_AHEAD_KB);
        let bytes = within("read-ahead-kb", kb, 0, MAX_READ_AHEAD_KB)? * 1024;
        if bytes.is_multiple_of(page_size) {
            return Ok(PageCount(bytes / page_size));
        }
        let below = bytes - bytes % page_size;
        Err(Error::Unaligned {
            value: format!("{kb} KiB"),
            unit: format!("the page size {}", format_size(page_size)),
            below: (below / 1024).to_string(),
            above: ((below + page_size) / 1024).to_string(),
        }
        .of("read-ahead-kb"))
    }

    /// In pages; off (one page) where the size is below that of a page, as on 64 KiB pages.
    fn valid_fault_around(&self, arch: &Arch) -> Result<PageCount, Error> {
        let most = arch.pte_entries * arch.page_size;
        let bytes = size("fault-around", &self.fault_around, 1, most)?
            .unwrap_or(DEFAULT_FAULT_AROUND_BYTES);
        if !bytes.is_power_of_two() {
            return Err(Error::NotPowerOfTwo { value: format_size(bytes) }.of("fault-around"));
        }
        Ok(PageCount((bytes / arch.page_size).max(1)))
    }
}

/// Of `switch`, which `names` ask for, and of those that came with it and have no place either.
fn no_place(names: &str, switch: Switch, lacks: &'static str, rules: &Rules) -> Error {
    let series = |name: &str| Series::from_str(name).unwrap_or(Series::BASELINE);
    let asks = |name: &&str| series(name).has(switch);
    let given = names.split('+').map(str::trim).find(asks).unwrap_or_default();
    let is_alike = |own: &Switch| rules.lacks(*own) == Some(lacks);
    let alike: Vec<_> = series(given).switches().filter(is_alike).map(Switch::name).collect();
    let name = match alike[..] {
        [own] if own == given => given.to_string(),
        _ => format!("{given} ({})", alike.join(" and ")),
    };
    let others = Kernel::ALL.into_iter().filter(|&kernel| {
        let rules = Rules::new(kernel, Series::BASELINE);
        rules.lacks(switch).is_none()
    });
    let others: Vec<_> = others.map(Kernel::name).collect();
    Error::NoPlace {
        name,
        kernel: rules.kernel.name(),
        lacks,
        remedy: format!("--kernel {}", others.join(" or ")),
    }
}
