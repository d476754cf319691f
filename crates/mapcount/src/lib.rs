//! Mapcounts of large folios, as a real concurrent implementation.
//!
//! A large folio is mapped page by page, by one or more mms. A kernel has to know how often: to
//! free the folio with its last mapping, to count what is mapped, and to decide on a write fault
//! whether the page may be reused or must be copied. There are four ways to count here, each a type
//! that implements [`Mapcount`]:
//!
//! | Type | Counts of pages | Owners | Bytes: folio, page | A batch of n pages: fork, last unmap |
//! |---|---|---|---|---|
//! | [`PageMapcount`] | yes | unknown | 12, 4 | n + 1, n + 2 |
//! | [`MmOwner`] | yes | two slots | 32, 4 | n + 1, n + 2 |
//! | [`NoPageMapcount`] | no | two slots | 24, 0 | 1, 1 |
//! | [`PreciseOwners`] | no | exact | 24, 0 | 1, 1 |
//!
//! The last column is read-modify-writes, which is what counting costs. The first is Linux up to
//! 6.14, the second and third are the series "MM owner tracking for large folios" (2024-08), in
//! Linux since 6.15. The fourth is not in the kernel: it has three sums in the 16 bytes of the
//! slots, and [`sums`] has the proof that it is exact.
//!
//! Counters are written for a kind of integers, [`Atomics`](atomics::Atomics). With
//! [`Real`](atomics::Real) ones they are what a kernel would run.
//! [`Counted`](atomics::Counted) ones count their read-modify-writes. The tests bring those of
//! loom and shuttle, which try out interleavings.
//!
//! ```
//! use filemap_mapcount::{Folio, Mapcount, MmId, MmOwner, Order, PreciseOwners};
//!
//! fn leave<C: Mapcount>() -> Result<Option<u32>, filemap_mapcount::Error> {
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
//! // The third mm found no slot, so two slots cannot tell that it is alone now.
//! assert_eq!(leave::<MmOwner>(), Ok(None));
//! assert_eq!(leave::<PreciseOwners>(), Ok(Some(16)));
//! ```
#![forbid(unsafe_code)]

pub mod anon_cow;
pub mod atomics;
mod broken;
pub mod calculator;
mod error;
mod folio;
pub mod folio_ops;
pub mod leaving;
mod limits;
mod lock;
mod mapcount;
pub mod mm;
mod mm_id;
mod mm_owner;
mod no_page_mapcount;
pub mod one_folio;
mod order;
mod owners;
mod page_counts;
mod page_mapcount;
pub mod prefork;
pub mod sizes;
pub mod slots;
pub mod sums;

pub use broken::Broken;
pub use error::Error;
pub use folio::Folio;
pub use mapcount::{Change, Mapcount, Pages};
pub use mm_id::{MmId, MmIds};
pub use mm_owner::MmOwner;
pub use no_page_mapcount::NoPageMapcount;
pub use order::Order;
pub use page_mapcount::PageMapcount;
pub use sums::PreciseOwners;
