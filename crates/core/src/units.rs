//! Address and size types that cannot be mixed.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Index of a base page in a file (the kernel's `pgoff_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct PageIndex(pub u64);

/// A number of base pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct PageCount(pub u64);

/// A virtual page number: a virtual address in base pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vpn(pub u64);

/// A file, by its number in the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct FileId(u32);

impl FileId {
    /// The first file, and the only one of most jobs.
    pub const FIRST: FileId = FileId(0);

    /// The file with this number, from 0.
    pub const fn new(number: u32) -> FileId {
        FileId(number)
    }

    /// Its number, from 0.
    pub const fn number(self) -> usize {
        self.0 as usize
    }
}

/// Size of a folio as a power of two of base pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Order(pub u8);

impl Order {
    /// Base pages in a folio of this order.
    pub const fn pages(self) -> u64 {
        1 << self.0
    }

    /// The largest order whose folio is not larger than `pages`; order 0 for 0 pages.
    pub const fn fitting(pages: PageCount) -> Self {
        match pages.0 {
            0 => Order(0),
            n => Order(n.ilog2() as u8),
        }
    }

    /// `pages` rounded down to whole folios.
    pub const fn round_down(self, pages: u64) -> u64 {
        pages >> self.0 << self.0
    }

    /// `pages` rounded up to whole folios.
    pub const fn round_up(self, pages: u64) -> u64 {
        self.round_down(pages + (self.pages() - 1))
    }

    /// The largest order to which `index` is aligned; 63 for index 0.
    pub const fn alignment_of(index: PageIndex) -> Self {
        let zeros = index.0.trailing_zeros();
        Order(if zeros > 63 { 63 } else { zeros as u8 })
    }
}

impl PageIndex {
    /// Rounds down to a multiple of a folio of `order`.
    pub const fn align_down(self, order: Order) -> Self {
        PageIndex(self.0 & !(order.pages() - 1))
    }

    /// Rounds up to a multiple of a folio of `order`.
    pub const fn align_up(self, order: Order) -> Self {
        PageIndex((self.0 + order.pages() - 1) & !(order.pages() - 1))
    }

    /// `self - count`, or 0.
    pub const fn saturating_sub(self, count: PageCount) -> Self {
        PageIndex(self.0.saturating_sub(count.0))
    }
}

impl Vpn {
    /// Rounds down to a multiple of `pages`, a power of two.
    pub const fn align_down(self, pages: u64) -> Self {
        Vpn(self.0 & !(pages - 1))
    }
}

impl PageCount {
    /// Bytes in this many pages of `page_size` bytes; saturates at `u64::MAX`.
    pub const fn bytes(self, page_size: u64) -> u64 {
        self.0.saturating_mul(page_size)
    }

    /// `self - other`, or 0.
    pub const fn saturating_sub(self, other: PageCount) -> Self {
        PageCount(self.0.saturating_sub(other.0))
    }
}

macro_rules! moves_by_count {
    ($position:ty) => {
        impl Add<PageCount> for $position {
            type Output = Self;
            fn add(self, count: PageCount) -> Self {
                Self(self.0 + count.0)
            }
        }
        impl Sub<PageCount> for $position {
            type Output = Self;
            fn sub(self, count: PageCount) -> Self {
                Self(self.0 - count.0)
            }
        }
        impl Sub for $position {
            type Output = PageCount;
            fn sub(self, other: Self) -> PageCount {
                PageCount(self.0 - other.0)
            }
        }
        impl AddAssign<PageCount> for $position {
            fn add_assign(&mut self, count: PageCount) {
                self.0 += count.0;
            }
        }
        impl fmt::Display for $position {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

moves_by_count!(PageIndex);
moves_by_count!(Vpn);

impl Add for PageCount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        PageCount(self.0 + other.0)
    }
}

impl Sub for PageCount {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        PageCount(self.0 - other.0)
    }
}

impl AddAssign for PageCount {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl SubAssign for PageCount {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl fmt::Display for PageCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
