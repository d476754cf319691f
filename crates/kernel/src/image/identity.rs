//! What tells one kernel image from another: its hash, and the configuration that it was built
//! with.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::child;

/// Where the setup header says how many sectors of 512 bytes come before what is loaded, after the
/// boot sector, and where from there the packed kernel begins and how long it is
/// (Documentation/arch/x86/boot.rst).
const SETUP_SECTORS: usize = 0x1f1;
const PAYLOAD: usize = 0x248;

/// What the payload is packed with, told by its first bytes, and the program that unpacks it.
const PACKED: [(&[u8], &str); 4] =
    [(b"\x1f\x8b", "gzip"), (b"\xfd7zXZ", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2")];

/// What stands before the configuration that a kernel carries, and behind it (kernel/configs.c).
const CONFIG_BEGIN: &[u8] = b"IKCFG_ST\x1f\x8b";
const CONFIG_END: &[u8] = b"IKCFG_ED";

/// The SHA-256 of the image at `path`, in hexadecimal digits, where `sha256sum` is installed.
pub fn sha256(path: &Path) -> Option<String> {
    let output = child::output(Command::new("sha256sum").arg("--").arg(path)).ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    // A name with a backslash has one before the line.
    let digits = text.trim_start_matches('\\').split(' ').next()?;
    (digits.len() == 64).then(|| digits.to_owned())
}

/// The configuration of the kernel at `path`: what it carries (CONFIG_IKCONFIG), or else the file
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

/// The packed kernel in an image.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let loaded = (usize::from(*image.get(SETUP_SECTORS)?) + 1) * 512;
    let begin = loaded.checked_add(word(PAYLOAD)?)?;
    image.get(begin..begin.checked_add(word(PAYLOAD + 4)?)?)
}

/// The packed configuration in a kernel.
fn embedded_config(kernel: &[u8]) -> Option<&[u8]> {
    let place = |of: &[u8], what: &[u8]| of.windows(what.len()).position(|own| own == what);
    let from = &kernel[place(kernel, CONFIG_BEGIN)? + CONFIG_BEGIN.len() - 2..];
    Some(&from[..place(from, CONFIG_END)?])
}

/// `packed` as it was before. Of what comes behind it, such as the size of a kernel, programs
/// complain.
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

    /// `text` as `program` packs it; `None` where it is not installed.
    fn packed(program: &str, text: &[u8]) -> Option<Vec<u8>> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).and_then(|()| file.rewind()).unwrap();
        Some(Command::new(program).arg("-c").stdin(file).output().ok()?.stdout)
    }

    /// An image of 2 sectors of setup with this payload.
    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 2 * 512 + 7];
        image[SETUP_SECTORS] = 1;
        image[PAYLOAD..][..4].copy_from_slice(&7u32.to_le_bytes());
        image[PAYLOAD + 4..][..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        [image, payload.to_vec(), b"the rest".to_vec()].concat()
    }

    #[test]
    fn a_configuration_is_found_in_an_image_or_beside_it() {
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
    fn the_hash_is_that_of_the_bytes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        let digits = sha256(file.path()).expect("sha256sum is installed");
        assert!(digits.starts_with("ba7816bf8f01cfea"), "{digits}");
        assert_eq!(sha256(Path::new("/nowhere")), None);
    }
}
