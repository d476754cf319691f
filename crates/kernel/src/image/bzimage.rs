//! Reads the release of a kernel from the setup header of its bzImage.
//!
//! The layout is the one of the x86 boot protocol: `HdrS` at 0x202, and at 0x20e the offset of
//! the version text, counted from 0x200. At 0x1f1 is the number of sectors of setup code, and at
//! 0x1f4 how many times 16 bytes follow these.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::Error;

/// The setup code is at most 64 sectors of 512 bytes after the boot sector.
const SETUP_BYTES: u64 = 65 * 512;

/// The release (`uname -r`) of the kernel at `path`.
pub(super) fn release(path: &Path) -> Result<String, Error> {
    let fail = |reason: String| Error::Kernel { path: path.to_owned(), reason };
    let io = |source: io::Error| fail(source.to_string());
    let mut setup = Vec::new();
    let file = File::open(path).map_err(io)?;
    let bytes = file.metadata().map_err(io)?.len();
    file.take(SETUP_BYTES).read_to_end(&mut setup).map_err(io)?;
    let release = parse(&setup);
    let release = release.ok_or_else(|| fail("it has no boot header with a version".into()))?;
    match image_bytes(&setup) {
        Some(needed) if bytes < needed => {
            let reason = format!("it is cut off at {bytes} of {needed} bytes, so copy it again");
            Err(fail(reason))
        }
        _ => Ok(release),
    }
}

/// How long the file is at least, by its header.
fn image_bytes(setup: &[u8]) -> Option<u64> {
    let sectors = u64::from(*setup.get(0x1f1)?);
    let paragraphs = u32::from_le_bytes(setup.get(0x1f4..0x1f8)?.try_into().ok()?);
    // 0 has always meant 4.
    let sectors = if sectors == 0 { 4 } else { sectors };
    Some((sectors + 1) * 512 + u64::from(paragraphs) * 16)
}

fn parse(setup: &[u8]) -> Option<String> {
    if setup.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let offset = u16::from_le_bytes(setup.get(0x20e..0x210)?.try_into().ok()?);
    let text = setup.get(0x200 + usize::from(offset)..)?;
    let end = text.iter().position(|&byte| byte == 0 || byte == b' ')?;
    let release = std::str::from_utf8(&text[..end]).ok()?;
    (!release.is_empty()).then(|| release.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_is_first_word_of_version() {
        let mut setup = vec![0; 0x400];
        setup[0x202..0x206].copy_from_slice(b"HdrS");
        setup[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        setup[0x300..0x30c].copy_from_slice(b"6.12.1+x #1 ");
        assert_eq!(parse(&setup).as_deref(), Some("6.12.1+x"));
        setup[0x202] = 0;
        assert_eq!(parse(&setup), None);
        assert_eq!(parse(b"short"), None);
    }

    #[test]
    fn what_is_cut_off_is_told_by_the_header() {
        let mut setup = vec![0; 0x400];
        setup[0x1f1] = 3;
        setup[0x1f4..0x1f8].copy_from_slice(&1000_u32.to_le_bytes());
        assert_eq!(image_bytes(&setup), Some(4 * 512 + 16_000));
        setup[0x1f1] = 0;
        assert_eq!(image_bytes(&setup), Some(5 * 512 + 16_000));
        assert_eq!(image_bytes(b"short"), None);
    }

    #[test]
    fn a_file_that_is_no_kernel_is_one_line() {
        let error = release(Path::new("/proc/self/exe")).unwrap_err();
        assert!(error.cannot_run_here());
        assert!(!error.to_string().contains('\n'));
    }
}
