//! The mappings of a recording, and of the job of it.

/// A mapping as it was made.
#[derive(Debug)]
pub struct Made {
    pub open: u32,
    /// Its first page in the file.
    pub first: u64,
    /// Its pages: the most that it had.
    pub pages: u64,
    pub is_private: bool,
    /// It could be written at some time.
    pub is_writable: bool,
    pub is_executable: bool,
}

/// A mapping of one process.
#[derive(Debug)]
pub struct Mapping {
    /// What it is a mapping of, as it was made.
    pub of: u32,
    /// The thread that made it; nobody did in a process that a fork gave it to.
    pub made_by: Option<u32>,
    user: Option<u32>,
    /// Several threads use it, or another one than it was made by.
    is_shared: bool,
    /// It was taken away.
    pub is_gone: bool,
    /// It was used after that, as far as the order of events says.
    is_used_later: bool,
}

impl Mapping {
    pub fn new(of: u32) -> Mapping {
        Mapping {
            of,
            made_by: None,
            user: None,
            is_shared: false,
            is_gone: false,
            is_used_later: false,
        }
    }

    /// `thread` uses it.
    pub fn used_by(&mut self, thread: u32) {
        let owner = *self.made_by.as_ref().or(self.user.as_ref()).unwrap_or(&thread);
        self.is_shared |= owner != thread || self.user.is_some_and(|user| user != thread);
        self.user = Some(thread);
        self.is_used_later |= self.is_gone;
    }

    /// Whether steps make it and take it away. Others are there from the beginning to the end.
    pub fn comes_and_goes(&self) -> bool {
        self.made_by.is_some() && self.is_gone && !self.is_shared && !self.is_used_later
    }

    /// Whether that cannot be said of it, though it is so.
    pub fn stays_instead(&self) -> bool {
        self.made_by.is_some() && self.is_gone && !self.comes_and_goes()
    }
}
