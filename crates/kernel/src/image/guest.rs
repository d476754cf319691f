//! The guest's side: this program as init of a kernel that the host booted.

use std::any::Any;
use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, init_module, reboot};
use rustix::termios::{OptionalActions, tcdrain, tcgetattr, tcsetattr};

use super::IO_BYTES;
use super::frame;
use super::settings::{self, Settings};

/// Where the scratch disk is mounted in the guest.
pub const DATA_DIR: &str = "/data";

/// The second serial port: the host reads the answer from it.
const PORT: &str = "/dev/ttyS1";

/// The scratch disk, the only disk of the machine.
const DISK: &str = "vda";

/// A disk is found while the kernel boots or its module loads; later means never.
const DISK_LIMIT: Duration = Duration::from_secs(10);

/// Whether this process is the init of a guest, and should call [`main`] and nothing else.
pub fn is_guest() -> bool {
    std::process::id() == 1 && Path::new(settings::PATH).exists()
}

/// Prepares the guest, gives the host's payload to `run`, sends its answer and ends the machine.
///
/// `run` finds the scratch disk at [`DATA_DIR`]; its error, or its panic, reaches the host as
/// [`Error::Guest`](super::Error::Guest).
pub fn main(run: impl FnOnce(&str) -> Result<String, String>) -> ! {
    let answer = catch_unwind(AssertUnwindSafe(|| prepare_and_run(run)));
    let answer = answer.unwrap_or_else(|panic| Err(panic_message(panic.as_ref())));
    if let Err(error) = send(&frame::encode(&answer)) {
        eprintln!("filemap: cannot send the result over {PORT}: {error}");
    }
    // The host started the machine such that a reboot ends it; that needs no ACPI in the kernel.
    let error = reboot(RebootCommand::Restart);
    unreachable!("init may reboot the machine: {error:?}");
}

fn prepare_and_run(run: impl FnOnce(&str) -> Result<String, String>) -> Result<String, String> {
    let text = read(settings::PATH)?;
    let settings = Settings::from_json(&text).ok_or("the host's settings make no sense")?;
    let Some(payload) = &settings.payload else { return Ok(String::new()) };
    for (name, target) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        mount(name, target, name, MountFlags::empty(), None)
            .map_err(|error| format!("mount {name} on {target}: {error}"))?;
    }
    for module in &settings.modules {
        load(module)?;
    }
    use_classic_lru()?;
    prepare_disk(&settings)?;
    run(payload)
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("the job panicked: {}", text.unwrap_or("no message"))
}

fn load(module: &str) -> Result<(), String> {
    let path = format!("/modules/{module}.ko");
    let bytes = std::fs::read(&path).map_err(|error| format!("read {path}: {error}"))?;
    match init_module(&bytes, c"") {
        // Built in as well, or loaded by the kernel itself in the meantime.
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(format!("load the module {module}: {error}")),
    }
}

/// The rules are those of the classic LRU; without the file the kernel has no other.
fn use_classic_lru() -> Result<(), String> {
    let switch = "/sys/kernel/mm/lru_gen/enabled";
    if Path::new(switch).exists() { write(switch, "0") } else { Ok(()) }
}

fn prepare_disk(settings: &Settings) -> Result<(), String> {
    let device = format!("/dev/{DISK}");
    let started = Instant::now();
    while !Path::new(&device).exists() {
        if started.elapsed() > DISK_LIMIT {
            return Err("the kernel found no disk: virtio_blk is neither built in nor among \
                        the modules; give --modules"
                .to_owned());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let name = settings.filesystem.name();
    mount(&device, DATA_DIR, name, MountFlags::NOATIME, settings.filesystem.mount_options())
        .map_err(|error| format!("mount {device} as {name}: {error}; give --modules with it"))?;
    set_queue("max_sectors_kb", IO_BYTES >> 10)?;
    match settings.read_ahead_kb {
        None => Ok(()),
        Some(size) => set_queue("read_ahead_kb", size),
    }
}

/// Sets a size of the disk's queue and checks it: the kernel rounds what is no multiple of a page.
fn set_queue(name: &str, size_kb: u64) -> Result<(), String> {
    let path = format!("/sys/block/{DISK}/queue/{name}");
    let wanted = size_kb.to_string();
    write(&path, &wanted)?;
    let got = read(&path)?;
    if got.trim() == wanted {
        return Ok(());
    }
    Err(format!("{name} became {} instead of {wanted}; give a multiple of 4", got.trim()))
}

/// Sends bytes as they are: a terminal would otherwise add a carriage return to each line.
fn send(bytes: &[u8]) -> std::io::Result<()> {
    let mut port = File::options().read(true).write(true).open(PORT)?;
    let mut attributes = tcgetattr(&port)?;
    attributes.make_raw();
    tcsetattr(&port, OptionalActions::Now, &attributes)?;
    port.write_all(bytes)?;
    Ok(tcdrain(&port)?)
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("read {path}: {error}"))
}

fn write(path: &str, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("write {path}: {error}"))
}
