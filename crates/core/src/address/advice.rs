//! Advice for a range of a mapping (`madvise(2)`): flags of the VMA.

use serde::{Deserialize, Serialize};

/// Expected access pattern. MADV_RANDOM and MADV_SEQUENTIAL exclude each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize)]
pub enum ReadHint {
    /// MADV_NORMAL.
    #[default]
    Normal,
    /// MADV_RANDOM: `VM_RAND_READ`.
    Random,
    /// MADV_SEQUENTIAL: `VM_SEQ_READ`.
    Sequential,
}

/// Huge page advice. MADV_HUGEPAGE and MADV_NOHUGEPAGE exclude each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize)]
pub enum HugeHint {
    /// None given. No advice restores this.
    #[default]
    None,
    /// MADV_HUGEPAGE: `VM_HUGEPAGE`.
    Huge,
    /// MADV_NOHUGEPAGE: `VM_NOHUGEPAGE`.
    NoHuge,
}

/// The advice that a VMA carries: a set of flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize)]
pub struct Advice {
    /// Access pattern.
    pub read: ReadHint,
    /// Huge page advice.
    pub huge: HugeHint,
}

impl Advice {
    /// No advice.
    pub const NORMAL: Advice = Advice { read: ReadHint::Normal, huge: HugeHint::None };
    /// MADV_RANDOM alone.
    pub const RANDOM: Advice = Advice { read: ReadHint::Random, huge: HugeHint::None };
    /// MADV_SEQUENTIAL alone.
    pub const SEQUENTIAL: Advice = Advice { read: ReadHint::Sequential, huge: HugeHint::None };
    /// MADV_HUGEPAGE alone.
    pub const HUGEPAGE: Advice = Advice { read: ReadHint::Normal, huge: HugeHint::Huge };

    /// No advice, and each flag that a mapping can be given at creation.
    pub const ALL: [Advice; 4] =
        [Advice::NORMAL, Advice::RANDOM, Advice::SEQUENTIAL, Advice::HUGEPAGE];

    /// The name on the command line and in records: `random`, or `random,hugepage`.
    pub const fn name(self) -> &'static str {
        use HugeHint::{Huge, NoHuge, None};
        use ReadHint::{Normal, Random, Sequential};
        match (self.read, self.huge) {
            (Normal, None) => "normal",
            (Normal, Huge) => "hugepage",
            (Normal, NoHuge) => "nohugepage",
            (Random, None) => "random",
            (Random, Huge) => "random,hugepage",
            (Random, NoHuge) => "random,nohugepage",
            (Sequential, None) => "sequential",
            (Sequential, Huge) => "sequential,hugepage",
            (Sequential, NoHuge) => "sequential,nohugepage",
        }
    }

    /// Whether MADV_RANDOM is in effect.
    pub fn is_random(self) -> bool {
        self.read == ReadHint::Random
    }

    /// Whether MADV_SEQUENTIAL is in effect.
    pub fn is_sequential(self) -> bool {
        self.read == ReadHint::Sequential
    }

    /// Whether MADV_HUGEPAGE is in effect.
    pub fn is_huge(self) -> bool {
        self.huge == HugeHint::Huge
    }

    /// Whether reclaim honours accessed bits in such a mapping, and whether zapping an accessed
    /// entry marks its folio accessed.
    ///
    /// Mirrors `vma_has_recency`, 6.12 and 6.18. Test: `tests/advice.rs`.
    pub fn has_recency(self) -> bool {
        self.read == ReadHint::Normal
    }

    /// This advice followed by `flag`, which overrides what it excludes.
    ///
    /// Mirrors `madvise_vma_behavior`, 6.12 and 6.18. Test: `tests/advice.rs`.
    #[must_use]
    pub fn and(self, flag: AdviceFlag) -> Advice {
        match flag {
            AdviceFlag::Read(read) => Advice { read, ..self },
            AdviceFlag::Huge => Advice { huge: HugeHint::Huge, ..self },
            AdviceFlag::NoHuge => Advice { huge: HugeHint::NoHuge, ..self },
        }
    }
}

/// Advice that changes the flags of a VMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AdviceFlag {
    /// MADV_NORMAL, MADV_RANDOM and MADV_SEQUENTIAL, which leave the other flags as they are.
    Read(ReadHint),
    /// MADV_HUGEPAGE.
    Huge,
    /// MADV_NOHUGEPAGE.
    NoHuge,
}
