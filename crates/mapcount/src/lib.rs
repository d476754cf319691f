//! Mapcounts of large folios, as a real concurrent implementation.
//!
//! A large folio is mapped page by page, by one or more mms. A kernel counts these mappings: to
//! free the folio with its last mapping, to account mapped pages, and to decide on a write fault
//! whether the page may be reused or must be copied. There are four counting schemes here, each a
//! type that implements [`Mapcount`]:
//!
//! | Type | Counts of pages | Owners | Atomic operations for n pages: fork, last unmap |
//! |---|---|---|---|
//! | [`PageMapcount`] | yes | unknown | n + 1, n + 2 |
//! | [`MmOwner`] | yes | two slots | n + 1, n + 2 |
//! | [`NoPageMapcount`] | no | two slots | 1, 1 |
//! | [`PreciseOwners`] | no | exact | 1, 1 |
//!
//! The first is Linux up to 6.14. The second and third are the series "MM owner tracking for large
//! folios" (2024-08), in Linux since 6.15. The fourth is not in the kernel: it keeps three sums in
//! the 16 bytes of the slots, and [`sums`] proves that it is exact.
//!
//! Counters are generic over their integers, [`Atomics`](atomics::Atomics). With
//! [`StdAtomics`](atomics::StdAtomics) they are what a kernel would run, and
//! [`CountingAtomics`](atomics::CountingAtomics) count their read-modify-writes. Tests use loom's,
//! which explore interleavings.
//!
//! ```
//! use filemap_mapcount::{Folio, Mapcount, MmId, MmOwner, Order, PreciseOwners};
//!
//! fn last_owner<C: Mapcount>() -> Result<Option<u32>, filemap_mapcount::Error> {
//!     let [a, b, c] = [MmId::new(1)?, MmId::new(2)?, MmId::new(3)?];
//!     let folio = Folio::<C>::new(Order::new(4)?)?;
//!     for mm in [a, b, c] {
//!         folio.map(mm, 0..16);
//!     }
//!     folio.unmap(a, 0..16);
//!     folio.unmap(b, 0..16);
//!     Ok(folio.counts().owned_by(c))
//! }
//!
//! // The third mm found no free slot, so two slots do not know that it is alone now.
//! assert_eq!(last_owner::<MmOwner>(), Ok(None));
//! assert_eq!(last_owner::<PreciseOwners>(), Ok(Some(16)));
//! ```
#![forbid(unsafe_code)]

pub mod anon_cow;
pub mod atomics;
mod error;
pub mod exit_orders;
mod folio;
pub mod folio_ops;
mod mapcount;
pub mod mm;
mod mm_id;
mod mm_owner;
mod owners;
mod page_mapcount;
pub mod prefork;
pub mod slots;
pub mod sums;

pub use error::{Error, Misuse};
pub use folio::{Folio, Order};
pub use mapcount::{Mapcount, Pages};
pub use mm_id::{MmId, MmIds};
pub use mm_owner::{MmOwner, NoPageMapcount};
pub use page_mapcount::PageMapcount;
pub use sums::PreciseOwners;
