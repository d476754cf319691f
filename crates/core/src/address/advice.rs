//! What a program said about a part of a mapping (`madvise(2)`): flags of the VMA.

use serde::{Deserialize, Serialize};

/// How a program says that it reads. MADV_RANDOM and MADV_SEQUENTIAL exclude each other.
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

/// What a program says about huge pages. MADV_HUGEPAGE and MADV_NOHUGEPAGE exclude each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize)]
pub enum HugeHint {
    /// Nothing. No advice leads back to this.
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
    /// How it is read.
    pub read: ReadHint,
    /// Whether it is for huge pages.
    pub huge: HugeHint,
}

impl Advice {
    /// None.
    pub const NORMAL: Advice = Advice { read: ReadHint::Normal, huge: HugeHint::None };
    /// MADV_RANDOM alone.
    pub const RANDOM: Advice = Advice { read: ReadHint::Random, huge: HugeHint::None };
    /// MADV_SEQUENTIAL alone.
    pub const SEQUENTIAL: Advice = Advice { read: ReadHint::Sequential, huge: HugeHint::None };
    /// MADV_HUGEPAGE alone.
    pub const HUGEPAGE: Advice = Advice { read: ReadHint::Normal, huge: HugeHint::Huge };

    /// None, and each flag that a mapping can be given from its beginning.
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

    /// MADV_RANDOM was given last of the kinds of reading.
    pub fn is_random(self) -> bool {
        self.read == ReadHint::Random
    }

    /// MADV_SEQUENTIAL was given last of the kinds of reading.
    pub fn is_sequential(self) -> bool {
        self.read == ReadHint::Sequential
    }

    /// MADV_HUGEPAGE was given, and not taken back.
    pub fn is_huge(self) -> bool {
        self.huge == HugeHint::Huge
    }

    /// Whether reclaim believes the accessed bits of such a mapping, and whether taking away its
    /// accessed entries is a use of their folios.
    ///
    /// Mirrors `vma_has_recency`, 6.12 and 6.18. Test: `tests/advice.rs`.
    pub fn has_recency(self) -> bool {
        self.read == ReadHint::Normal
    }

    /// This advice, and then `flag`: what it excludes is taken back.
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
