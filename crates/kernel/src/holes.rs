//! Holes of a file: what is read there comes from no device.

use std::fs::File;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::Error;

/// How much of a file is holes. Space that is reserved and was never written counts as a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holes {
    /// Nothing, or its filesystem does not tell.
    None,
    /// A part of it.
    Some,
    /// All of it.
    All,
}

impl Holes {
    /// The holes of `file`. Moves the position from which it is read.
    ///
    /// # Errors
    /// When the position cannot be moved.
    pub fn of(file: &File) -> Result<Holes, Error> {
        let failed = |errno| Error::call("look for holes", errno);
        let bytes = file.metadata().map_err(|error| Error::call("look for holes", error))?.len();
        if bytes == 0 {
            return Ok(Holes::None);
        }
        let holes = match seek(file, SeekFrom::Data(0)) {
            Err(Errno::NXIO) => Ok(Holes::All),
            // A filesystem that does not tell.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Holes::None),
            Err(errno) => Err(failed(errno)),
            Ok(0) => match seek(file, SeekFrom::Hole(0)) {
                // Every file ends in a hole.
                Ok(hole) if hole >= bytes => Ok(Holes::None),
                Ok(_) => Ok(Holes::Some),
                Err(errno) => Err(failed(errno)),
            },
            Ok(_) => Ok(Holes::Some),
        };
        seek(file, SeekFrom::Start(0)).map_err(failed)?;
        holes
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn holes_are_told_from_data() {
        let file = tempfile::tempfile().unwrap();
        let holes = || Holes::of(&file).unwrap();
        assert_eq!(holes(), Holes::None, "an empty file");
        file.set_len(1 << 20).unwrap();
        // A filesystem that tells nothing shows no holes.
        if holes() == Holes::None {
            println!("skipped: this filesystem does not tell holes");
            return;
        }
        assert_eq!(holes(), Holes::All);
        file.write_all_at(&[1; 4096], 512 << 10).unwrap();
        assert_eq!(holes(), Holes::Some);
        file.write_all_at(&[1; 4096], 0).unwrap();
        assert_eq!(holes(), Holes::Some);
        file.write_all_at(&vec![1; 1 << 20], 0).unwrap();
        assert_eq!(holes(), Holes::None);
    }
}
