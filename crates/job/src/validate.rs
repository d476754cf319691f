//! Validation of the keys for engine, kernel and machine.

use std::str::FromStr;

use filemap_core::rules::{Arch, Family, Kernel, Rules};
use filemap_core::series::{Series, Switch, UnknownSeries};
use filemap_core::units::PageCount;

use crate::Error;
use crate::bounds::{MAX_BLOCK_BYTES, MAX_BYTES, MAX_READ_AHEAD_KB};
use crate::flags::JobFlags;
use crate::limits::{check_one_of, name, pages, size, unknown, within};
use crate::parts::{EngineKind, Filesystem, Image, Machine};
use crate::size::{SizeText, format_size, shorten};

/// Default readahead size in KiB.
pub(crate) const DEFAULT_READ_AHEAD_KB: u64 = 128;

/// Default fault-around size in bytes.
pub(crate) const DEFAULT_FAULT_AROUND_BYTES: u64 = 65536;

impl JobFlags {
    pub(crate) fn valid_arch(&self) -> Result<Arch, Error> {
        let family = check_one_of(
            "arch",
            "architecture",
            &self.arch,
            Family::X86_64,
            Family::ALL,
            Family::name,
        )?;
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
        let series = series.map_err(|error| Error::from(error).with_flag("with"))?;
        let rules = Rules::new(kernel.map_err(|error| error.with_flag("kernel"))?, series);
        match series.switches().find_map(|switch| Some((switch, rules.lacks(switch)?))) {
            None => Ok(rules),
            Some((switch, lacks)) => Err(no_place(&names, switch, lacks, &rules).with_flag("with")),
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

    pub(crate) fn valid_machine(&self, arch: Arch, rules: &Rules) -> Result<Machine, Error> {
        let page_size = arch.page_size;
        let bytes = |flag, text: &Option<SizeText>, from| {
            pages(flag, text, from, page_size).map(|count| count.map(|count| count * page_size))
        };
        let fs = name("fs", &self.fs, Filesystem::Ext4)?;
        let cache_limit = pages("cache-limit", &self.cache_limit, 1, page_size)?.map(PageCount);
        let mut machine = Machine {
            cache_limit,
            // With a single page, the share reserved for the kernel leaves no page cache.
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
            return Err(Error::HighAboveMax { high, max }.with_flag("memory-high"));
        }
        machine.cache_limit =
            [machine.implied_cache_limit(), cache_limit].into_iter().flatten().min();
        Ok(machine)
    }

    /// The block size in bytes. Only XFS on some kernels supports blocks larger than a page.
    fn valid_blocks(&self, page_size: u64, fs: Filesystem, rules: &Rules) -> Result<u64, Error> {
        let block_bytes = size("block-size", &self.block_size, page_size, MAX_BLOCK_BYTES)?;
        let bytes = block_bytes.unwrap_or(page_size);
        let size = || format_size(bytes);
        if !bytes.is_power_of_two() {
            return Err(Error::NotPowerOfTwo { value: size() }.with_flag("block-size"));
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
        .with_flag("read-ahead-kb"))
    }

    /// In pages; 1 (off) for sizes below a page, as with 64 KiB pages.
    fn valid_fault_around(&self, arch: &Arch) -> Result<PageCount, Error> {
        let most = arch.pte_entries * arch.page_size;
        let bytes = size("fault-around", &self.fault_around, 1, most)?
            .unwrap_or(DEFAULT_FAULT_AROUND_BYTES);
        if !bytes.is_power_of_two() {
            return Err(
                Error::NotPowerOfTwo { value: format_size(bytes) }.with_flag("fault-around")
            );
        }
        Ok(PageCount((bytes / arch.page_size).max(1)))
    }
}

/// Error for `switch` of the series `names` on a kernel that lacks what it changes. Names all
/// switches of the same series affected by this.
fn no_place(names: &str, switch: Switch, lacks: &'static str, rules: &Rules) -> Error {
    let series = |name: &str| Series::from_str(name).unwrap_or(Series::BASELINE);
    let asks = |name: &&str| series(name).has(switch);
    let wanted_name = names.split('+').map(str::trim).find(asks).unwrap_or_default();
    let is_alike = |own: &Switch| rules.lacks(*own) == Some(lacks);
    let alike: Vec<_> = series(wanted_name).switches().filter(is_alike).map(Switch::name).collect();
    let name = match alike[..] {
        [own] if own == wanted_name => wanted_name.to_string(),
        _ => format!("{wanted_name} ({})", alike.join(" and ")),
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
