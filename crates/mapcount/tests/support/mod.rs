//! Short constructors, and a deterministic random generator.

use filemap_mapcount::{Folio, Mapcount, MmId, Order};

pub fn mm(id: u32) -> MmId {
    MmId::new(id).expect("tests name ids that exist")
}

pub fn folio<C: Mapcount>(order: u32) -> Folio<C> {
    let order = Order::new(order).expect("tests name orders that exist");
    Folio::new(order).expect("tests make large folios")
}

/// xorshift64.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
