//! What can be advised.

/// Advice on how memory will be touched. What would change the contents of memory cannot be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Advice {
    Normal,
    Random,
    Sequential,
    WillNeed,
    PopulateRead,
    /// The pages of files leave the page table, and memory where nobody else has them.
    PageOut,
}

impl Advice {
    /// The `MADV_` number.
    pub fn number(self) -> i32 {
        match self {
            Advice::Normal => libc::MADV_NORMAL,
            Advice::Random => libc::MADV_RANDOM,
            Advice::Sequential => libc::MADV_SEQUENTIAL,
            Advice::WillNeed => libc::MADV_WILLNEED,
            Advice::PopulateRead => libc::MADV_POPULATE_READ,
            Advice::PageOut => libc::MADV_PAGEOUT,
        }
    }
}
