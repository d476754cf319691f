//! What a plan means, and which ones can be run.

use filemap_core::units::PageIndex;

use super::{Access, MAX_READ_BYTES, Mapping, Plan};
use crate::Error;

impl Plan {
    pub(super) fn check(&self) -> Result<(), Error> {
        let refuse = |why: String| Err(Error::Plan(why));
        let Mapping { pages, split, .. } = &self.mapping;
        if pages.0 == 0 {
            return refuse("a mapping of 0 pages: map at least 1".into());
        }
        if split.is_some_and(|split| split.pages.0 == 0) {
            return refuse("pieces of 0 pages: use at least 1".into());
        }
        let inside = |segment: &super::Segment| {
            segment.pages.0 > 0 && segment.start.0.saturating_add(segment.pages.0) <= pages.0
        };
        if !self.segments.iter().all(inside) {
            return refuse(format!("a segment outside the mapping's {pages} pages"));
        }
        self.phases.iter().flatten().try_for_each(|access| self.check_access(*access))
    }

    fn check_access(&self, access: Access) -> Result<(), Error> {
        let refuse = |why: String| Err(Error::Plan(why));
        let Mapping { pages, private, executable, .. } = &self.mapping;
        if let Access::Touch(page) | Access::Store(page) | Access::Call(page) = access
            && self.file_page(page).is_none()
        {
            return refuse(match self.segments.is_empty() {
                true => format!("page {page} is not below the mapping's {pages} pages"),
                false => format!("page {page} of the mapping lies in no segment"),
            });
        }
        match access {
            Access::Store(page) if !private || !self.segments.is_empty() => {
                refuse(format!("a store to page {page} needs a private mapping"))
            }
            Access::Call(page) if !executable || !self.segments.is_empty() => {
                refuse(format!("a call of page {page} needs an executable mapping"))
            }
            Access::Call(_) if cfg!(not(target_arch = "x86_64")) => Err(Error::unavailable(
                "calls of machine code on this architecture",
                "run it on x86-64, or give --on model",
            )),
            Access::Read { bytes, .. } if bytes > MAX_READ_BYTES => {
                refuse(format!("a read of {bytes} bytes: at most {MAX_READ_BYTES}"))
            }
            Access::Read { offset, .. } if offset >> 62 != 0 => {
                refuse(format!("a read at {offset}: at most {}", (1u64 << 62) - 1))
            }
            _ => Ok(()),
        }
    }

    /// The page of the file that page `page` of the mapping shows; none outside of what is mapped.
    pub fn file_page(&self, page: PageIndex) -> Option<PageIndex> {
        let within = |start: u64, pages: u64, offset: PageIndex| {
            let into = page.0.checked_sub(start).filter(|into| *into < pages)?;
            Some(PageIndex(offset.0 + into))
        };
        if self.segments.is_empty() {
            return within(0, self.mapping.pages.0, self.mapping.offset);
        }
        let mut segments = self.segments.iter();
        segments.find_map(|part| within(part.start.0, part.pages.0, part.offset))
    }

    /// Whether some access writes.
    pub(super) fn stores(&self) -> bool {
        self.phases.iter().flatten().any(|access| matches!(access, Access::Store(_)))
    }

    /// Whether some access calls.
    pub(super) fn calls(&self) -> bool {
        self.phases.iter().flatten().any(|access| matches!(access, Access::Call(_)))
    }

    /// The longest read.
    pub(super) fn longest_read(&self) -> u64 {
        let bytes = self.phases.iter().flatten().map(|access| match access {
            Access::Read { bytes, .. } => *bytes,
            _ => 0,
        });
        bytes.max().unwrap_or(0)
    }
}
