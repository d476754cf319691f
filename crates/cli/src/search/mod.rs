//! Where a search is kept, and where the jobs are written that it has found.

mod job_files;
mod kept;

pub use job_files::JobFiles;
pub use kept::Kept;
