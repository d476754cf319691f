//! Reads a kernel image: its release, hash and configuration.
//!
//! The setup header of a bzImage follows the x86 boot protocol (Documentation/arch/x86/boot.rst):
//! `HdrS` at 0x202, and at 0x20e the offset of the version text, counted from 0x200. At 0x1f1 is
//! the number of sectors of setup code, and at 0x1f4 the size of the rest in units of 16 bytes.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};

use super::Error;
use crate::child;

/// The setup code is at most 64 sectors of 512 bytes after the boot sector.
const SETUP_BYTES: u64 = 65 * 512;

/// The release (`uname -r`) of the kernel at `path`.
pub(super) fn release(path: &Path) -> Result<String, Error> {
    let fail = |reason: String| Error::Kernel { path: path.to_owned(), reason };
    let io = |source: io::Error| fail(source.to_string());
    let mut setup = Vec::new();
    let data = std::fs::metadata(path).map_err(io)?;
    // Opening a FIFO waits for its writer.
    if !data.is_file() && !data.is_dir() {
        return Err(fail("it is no regular file".into()));
    }
    let file = File::open(path).map_err(io)?;
    let bytes = data.len();
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

/// Minimum file size, by the setup header.
fn image_bytes(setup: &[u8]) -> Option<u64> {
    let sectors = u64::from(*setup.get(0x1f1)?);
    let paragraphs = u32::from_le_bytes(setup.get(0x1f4..0x1f8)?.try_into().ok()?);
    // The boot protocol defines 0 as 4.
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

/// Offsets in the setup header: the number of setup sectors of 512 bytes after the boot sector, and
/// the offset and length of the compressed kernel after them (Documentation/arch/x86/boot.rst).
const SETUP_SECTORS: usize = 0x1f1;
const PAYLOAD: usize = 0x248;

/// Magic numbers of compression formats, and the programs that decompress them.
const PACKED: [(&[u8], &str); 4] =
    [(b"\x1f\x8b", "gzip"), (b"\xfd7zXZ", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2")];

/// Markers around the configuration that is embedded in a kernel (kernel/configs.c).
const CONFIG_BEGIN: &[u8] = b"IKCFG_ST\x1f\x8b";
const CONFIG_END: &[u8] = b"IKCFG_ED";

/// The SHA-256 of the image at `path` in hexadecimal, if `sha256sum` is installed.
pub fn sha256(path: &Path) -> Option<String> {
    let output = child::output(Command::new("sha256sum").arg("--").arg(path)).ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    // sha256sum puts a backslash before the line if the file name contains one.
    let digits = text.trim_start_matches('\\').split(' ').next()?;
    (digits.len() == 64).then(|| digits.to_owned())
}

/// The configuration of the kernel at `path`: the embedded one (CONFIG_IKCONFIG), or the file
/// `config-NAME` beside a `vmlinuz-NAME`.
pub fn configuration(path: &Path) -> Option<String> {
    let carried = || {
        let image = std::fs::read(path).ok()?;
        let kernel = decompress(payload(&image)?)?;
        let text = decompress(embedded_config(&kernel)?)?;
        String::from_utf8(text).ok()
    };
    let beside = || {
        let name = path.file_name()?.to_str()?.strip_prefix("vmlinuz-")?;
        std::fs::read_to_string(path.with_file_name(format!("config-{name}"))).ok()
    };
    carried().or_else(beside)
}

/// The compressed kernel in an image.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let loaded = (usize::from(*image.get(SETUP_SECTORS)?) + 1) * 512;
    let begin = loaded.checked_add(word(PAYLOAD)?)?;
    image.get(begin..begin.checked_add(word(PAYLOAD + 4)?)?)
}

/// The compressed configuration in a kernel.
fn embedded_config(kernel: &[u8]) -> Option<&[u8]> {
    let position =
        |bytes: &[u8], marker: &[u8]| bytes.windows(marker.len()).position(|own| own == marker);
    let from = &kernel[position(kernel, CONFIG_BEGIN)? + CONFIG_BEGIN.len() - 2..];
    Some(&from[..position(from, CONFIG_END)?])
}

/// Decompresses `packed`. The programs fail because of trailing bytes, such as the size of the
/// kernel, which is ignored.
fn decompress(packed: &[u8]) -> Option<Vec<u8>> {
    let (_, program) = PACKED.iter().find(|(magic, _)| packed.starts_with(magic))?;
    let mut file = File::from(memfd_create("filemap-packed", MemfdFlags::CLOEXEC).ok()?);
    file.write_all(packed).and_then(|()| file.rewind()).ok()?;
    let mut command = Command::new(program);
    child::die_with_parent(&mut command);
    let output = command.arg("-dc").stdin(file).stderr(Stdio::null()).output().ok()?;
    (!output.stdout.is_empty()).then_some(output.stdout)
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
    fn header_gives_file_size() {
        let mut setup = vec![0; 0x400];
        setup[0x1f1] = 3;
        setup[0x1f4..0x1f8].copy_from_slice(&1000_u32.to_le_bytes());
        assert_eq!(image_bytes(&setup), Some(4 * 512 + 16_000));
        setup[0x1f1] = 0;
        assert_eq!(image_bytes(&setup), Some(5 * 512 + 16_000));
        assert_eq!(image_bytes(b"short"), None);
    }

    #[test]
    fn rejects_other_files_in_one_line() {
        let error = release(Path::new("/proc/self/exe")).unwrap_err();
        assert!(error.cannot_run_here());
        assert!(!error.to_string().contains('\n'));
    }

    /// `text` compressed by `program`; `None` if it is not installed.
    fn packed(program: &str, text: &[u8]) -> Option<Vec<u8>> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).and_then(|()| file.rewind()).unwrap();
        Some(Command::new(program).arg("-c").stdin(file).output().ok()?.stdout)
    }

    /// An image with 2 setup sectors and this payload.
    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 2 * 512 + 7];
        image[SETUP_SECTORS] = 1;
        image[PAYLOAD..][..4].copy_from_slice(&7u32.to_le_bytes());
        image[PAYLOAD + 4..][..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        [image, payload.to_vec(), b"the rest".to_vec()].concat()
    }

    #[test]
    fn finds_embedded_and_separate_configuration() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vmlinuz-1");
        let config = packed("gzip", b"CONFIG_A=y\n").expect("gzip is installed");
        let kernel = [b"rodata IKCFG_ST no IKCFG_ST", &*config, b"IKCFG_ED more"].concat();
        for program in ["gzip", "xz", "zstd"] {
            let Some(mut payload) = packed(program, &kernel) else { continue };
            payload.extend([1, 2, 3, 4]);
            std::fs::write(&path, image(&payload)).unwrap();
            assert_eq!(configuration(&path).as_deref(), Some("CONFIG_A=y\n"), "{program}");
        }
        std::fs::write(&path, image(b"packed otherwise")).unwrap();
        assert_eq!(configuration(&path), None);
        std::fs::write(dir.path().join("config-1"), "CONFIG_B=m\n").unwrap();
        assert_eq!(configuration(&path).as_deref(), Some("CONFIG_B=m\n"));
        std::fs::write(&path, b"short").unwrap();
        assert_eq!(configuration(&dir.path().join("none")), None);
    }

    #[test]
    fn hashes_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        let digits = sha256(file.path()).expect("sha256sum is installed");
        assert!(digits.starts_with("ba7816bf8f01cfea"), "{digits}");
        assert_eq!(sha256(Path::new("/nowhere")), None);
    }
}
