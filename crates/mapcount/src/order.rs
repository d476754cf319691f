//! Sizes of folios.

use crate::error::Error;
use crate::limits::MAX_ORDER;

/// The size of a folio: 2^order pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Order(u8);

impl Order {
    /// One page.
    pub const SINGLE: Order = Order(0);
    /// The PMD order on x86-64: 2 MiB in pages of 4 KiB.
    pub const PMD: Order = Order(9);
    /// The largest order of an anonymous folio: 512 MiB in pages of 64 KiB, the PMD order on arm64.
    pub const MAX: Order = Order(MAX_ORDER);

    /// The order `order`.
    ///
    /// # Errors
    /// When it is larger than [`Order::MAX`].
    pub const fn new(order: u32) -> Result<Order, Error> {
        if order <= Order::MAX.0 as u32 { Ok(Order(order as u8)) } else { Err(Error::Order(order)) }
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0 as u32
    }

    /// Pages of a folio of this order.
    pub const fn pages(self) -> usize {
        1 << self.0
    }
}
