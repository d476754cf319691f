//! The guest side: this program as init of the booted kernel.

use std::any::Any;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous};
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, init_module, reboot};
use rustix::termios::{OptionalActions, tcdrain, tcgetattr, tcsetattr};

use super::channel::GuestChannel;
use super::console::JOB_MARK;
use super::frame::{self, FrameKind};
use super::initramfs::{GuestSettings, SETTINGS_PATH};
use super::qemu::{EXCHANGE_SERIAL, SCRATCH_SERIAL};
use super::watch::{BEAT, BEAT_INTERVAL};
use super::{DiskFilesystem, IO_BYTES};

pub use super::channel::JobLog;

/// Mount point of the scratch disk in the guest.
pub const DATA_DIR: &str = "/data";

/// The second serial port, for heartbeats, and for errors before the disk is found.
const PORT: &str = "/dev/ttyS1";

/// The sysfs directory of block devices.
const DISKS: &str = "/sys/block";

/// Exists if the kernel has the virtio-blk driver.
const VIRTIO_DRIVER: &str = "/sys/bus/virtio/drivers/virtio_blk";

/// A disk appears during boot or when its module loads; after this time it never will.
const DISK_TIMEOUT: Duration = Duration::from_secs(10);

/// Size of a mapping that has room for an aligned huge page.
const HUGE_MAPPING_BYTES: usize = 4 << 20;

/// Timeout for one khugepaged scan; there is little memory to scan.
const SCAN_TIMEOUT: Duration = Duration::from_secs(1);

/// Drops the page cache, dentries and inodes.
const DROP_CACHES: (&str, &str) = ("/proc/sys/vm/drop_caches", "3");

/// The ioctl that discards unused blocks: `_IOWR('X', 121, [u64; 3])`.
const FITRIM: libc::Ioctl = 0xc018_5879_u32 as libc::Ioctl;

/// Whether this process is the init of a guest. If so, it should call [`main`] and do nothing else.
pub fn is_guest() -> bool {
    std::process::id() == 1 && Path::new(SETTINGS_PATH).exists()
}

/// Prepares the guest, passes the host's jobs to `run` one after the other, and sends the answers.
/// The host stops the machine.
///
/// `run` finds the scratch disk at [`DATA_DIR`], with no file cached. Its error or panic reaches
/// the host as [`Error::Guest`](super::Error::Guest). After a panic the machine runs no further
/// jobs.
pub fn main(mut run: impl FnMut(&str, &mut JobLog) -> Result<String, String>) -> ! {
    let report = match catch_unwind(AssertUnwindSafe(prepare)) {
        Ok(Ok(Some(mut channel))) => run_all(&mut channel, &mut run).map(|()| None),
        Ok(Ok(None)) => Ok(Some((FrameKind::Answer, String::new()))),
        Ok(Err(report)) => Ok(Some(report)),
        Err(panic) => Ok(Some((FrameKind::Error, panic_message("the guest", panic.as_ref())))),
    };
    // The job list ends early only if the disk fails, so the error is reported over the serial
    // port.
    let report = report.unwrap_or_else(|error| Some((FrameKind::Error, error)));
    if let Some((kind, text)) = report
        && let Err(error) = send(&frame::encode(kind, 0, text.as_bytes()))
    {
        eprintln!("filemap: cannot send {text:?} over {PORT}: {error}");
    }
    // QEMU exits on a reboot (`-no-reboot`), which needs no ACPI in the kernel.
    let error = reboot(RebootCommand::Restart);
    unreachable!("init may reboot the machine: {error:?}");
}

/// Runs the jobs of the list and answers each.
fn run_all(
    channel: &mut GuestChannel,
    run: &mut impl FnMut(&str, &mut JobLog) -> Result<String, String>,
) -> Result<(), String> {
    let lost = |error| format!("write an answer for the host: {error}");
    drop_caches()?;
    // Until the host stops the machine.
    loop {
        let (task, payload) = channel.await_task()?;
        // Through the kernel log, in order with the kernel's own messages. The level is
        // KERN_WARNING, which the console prints.
        let _ = fs::write("/dev/kmsg", format!("<4>{JOB_MARK}{task}\n"));
        channel.send(FrameKind::Begun, task, b"").map_err(lost)?;
        let mut log = JobLog::new(channel, task);
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let text = run(&payload, &mut log)?;
            log.flush().map_err(|error| format!("send the log: {error}"))?;
            Ok(text)
        }));
        let (kind, text) = match ran {
            Ok(Ok(text)) => (FrameKind::Answer, text),
            Ok(Err(text)) => (FrameKind::Error, text),
            Err(panic) => (FrameKind::Panic, panic_message("the job", panic.as_ref())),
        };
        // Before the answer, so that resulting kernel warnings belong to this job.
        let forgotten = if kind == FrameKind::Panic { Ok(()) } else { drop_caches() };
        channel.send(kind, task, text.as_bytes()).map_err(lost)?;
        if kind == FrameKind::Panic {
            return Ok(());
        }
        forgotten?;
    }
}

/// Prepares the machine; `None` if the host only wants to know that it runs.
fn prepare() -> Result<Option<GuestChannel>, (FrameKind, String)> {
    let fail = |error| (FrameKind::Error, error);
    let text = read(SETTINGS_PATH).map_err(fail)?;
    let settings = GuestSettings::from_json(&text);
    let settings = settings.ok_or_else(|| fail("the host's settings are invalid".to_owned()))?;
    let Some(answers_at) = settings.answers_at else { return Ok(None) };
    prepare_kernel(&settings).map_err(fail)?;
    let lack = |error| (FrameKind::Lack, error);
    let exchange = format!("/dev/{}", disk(EXCHANGE_SERIAL).map_err(lack)?);
    mount_disk(settings.filesystem).map_err(lack)?;
    set_queue("max_sectors_kb", IO_BYTES >> 10).map_err(fail)?;
    settings.read_ahead_kb.map_or(Ok(()), set_read_ahead).map_err(fail)?;
    let channel = GuestChannel::open(Path::new(&exchange), answers_at);
    channel.map(Some).map_err(|error| fail(format!("open {exchange}: {error}")))
}

/// Mounts filesystems, loads modules, and turns off kernel features that the model lacks.
fn prepare_kernel(settings: &GuestSettings) -> Result<(), String> {
    for (name, target) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        mount(name, target, name, MountFlags::empty(), None)
            .map_err(|error| format!("mount {name} on {target}: {error}"))?;
    }
    for module in &settings.modules {
        load(module)?;
    }
    let port = port().map_err(|error| format!("open {PORT}: {error}"))?;
    thread::Builder::new().spawn(move || beat(port)).expect("a guest has memory for a thread");
    use_classic_lru()?;
    keep_khugepaged_asleep()
}

/// Shows the host that the kernel schedules, by a byte on `port` in each [`BEAT_INTERVAL`].
fn beat(mut port: File) {
    // The highest priority. If the kernel refuses, the thread keeps the default policy.
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads the parameter, which outlives the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority) };
    loop {
        let _ = port.write_all(&[BEAT]);
        thread::sleep(BEAT_INTERVAL);
    }
}

/// Drops the page cache and trims the disk, so that each job finds the machine as the first one
/// did.
fn drop_caches() -> Result<(), String> {
    rustix::fs::sync();
    if let Ok(root) = File::open(DATA_DIR) {
        let mut range = [0u64, u64::MAX, 0];
        // SAFETY: the kernel reads and writes the three numbers of the range, which outlives the
        // call. A filesystem or disk without discard returns an error, and then no space is
        // returned to the host.
        unsafe { libc::ioctl(root.as_raw_fd(), FITRIM, range.as_mut_ptr()) };
    }
    let (path, all) = DROP_CACHES;
    write(path, all)
}

fn panic_message(who: &str, panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("{who} panicked: {}", text.unwrap_or("no message"))
}

fn load(module: &str) -> Result<(), String> {
    let path = format!("/modules/{module}.ko");
    let bytes = fs::read(&path).map_err(|error| format!("read {path}: {error}"))?;
    match init_module(&bytes, c"") {
        // EEXIST: built in, or loaded by the kernel in the meantime.
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(format!("load the module {module}: {error}")),
    }
}

/// The model implements only the classic LRU. A kernel without the file has no other.
fn use_classic_lru() -> Result<(), String> {
    let switch = "/sys/kernel/mm/lru_gen/enabled";
    if Path::new(switch).exists() { write(switch, "0") } else { Ok(()) }
}

/// khugepaged first scans after 10 s, while an emulated machine may still run a job. It would
/// collapse pages that a mapping could map by a PMD entry into a large folio, at a time that no
/// rule or tracepoint predicts. It goes to sleep only after scanning a process with such a mapping;
/// so this process creates one and keeps it.
fn keep_khugepaged_asleep() -> Result<(), String> {
    let directory = Path::new("/sys/kernel/mm/transparent_hugepage/khugepaged");
    if !directory.exists() {
        return Ok(());
    }
    let file = |name: &str| directory.join(name).to_string_lossy().into_owned();
    write(&file("scan_sleep_millisecs"), &u32::MAX.to_string())?;
    let failed = |errno| format!("map memory for khugepaged to scan: {errno}");
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping at an address of the kernel's choice, with no other references.
    unsafe {
        let memory =
            mmap_anonymous(null_mut(), HUGE_MAPPING_BYTES, protection, flags).map_err(failed)?;
        // Kernels with huge pages for files only may refuse it.
        let _ = madvise(memory, HUGE_MAPPING_BYTES, Advice::LinuxHugepage);
        memory.cast::<u8>().write_volatile(1);
    }
    let started = Instant::now();
    while read(&file("full_scans"))?.trim() == "0" && started.elapsed() < SCAN_TIMEOUT {
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn mount_disk(filesystem: DiskFilesystem) -> Result<(), String> {
    let device = scratch_disk()?;
    let name = filesystem.name();
    mount(&device, DATA_DIR, name, MountFlags::NOATIME, filesystem.mount_options())
        .map_err(|error| format!("mount {device} as {name}: {error}; give --modules with it"))
}

/// Device of the scratch disk.
pub(super) fn scratch_disk() -> Result<String, String> {
    Ok(format!("/dev/{}", disk(SCRATCH_SERIAL)?))
}

/// Name of the disk with this serial number: a virtio disk if the kernel has the driver.
fn disk(serial: &str) -> Result<String, String> {
    let started = Instant::now();
    let file = if Path::new(VIRTIO_DRIVER).exists() { "serial" } else { "device/serial" };
    let has_it = |name: &String| {
        let path = Path::new(DISKS).join(name).join(file);
        fs::read_to_string(path).is_ok_and(|text| text.trim() == serial)
    };
    while started.elapsed() < DISK_TIMEOUT {
        let disks = fs::read_dir(DISKS).into_iter().flatten().flatten();
        let mut names = disks.filter_map(|disk| disk.file_name().into_string().ok());
        if let Some(name) = names.find(has_it)
            && Path::new("/dev").join(&name).exists()
        {
            return Ok(name);
        }
        thread::sleep(Duration::from_millis(10));
    }
    Err("the kernel found no disk: neither virtio_blk nor nvme is built in, and the modules have \
         no virtio_blk; give the --modules of its release"
        .to_owned())
}

/// Sets the readahead of the scratch disk for files opened from now on.
///
/// # Errors
/// The kernel rounds the size.
pub fn set_read_ahead(size_kb: u64) -> Result<(), String> {
    set_queue("read_ahead_kb", size_kb)
}

/// Writes a queue attribute of the disk, and checks that the kernel did not round it.
fn set_queue(name: &str, size_kb: u64) -> Result<(), String> {
    let path = format!("{DISKS}/{}/queue/{name}", disk(SCRATCH_SERIAL)?);
    let wanted = size_kb.to_string();
    write(&path, &wanted)?;
    let got = read(&path)?;
    if got.trim() == wanted {
        return Ok(());
    }
    Err(format!("{name} became {} instead of {wanted}; give a multiple of 4", got.trim()))
}

/// Opens the port in raw mode, since a terminal adds a carriage return to each line.
fn port() -> std::io::Result<File> {
    let port = File::options().read(true).write(true).open(PORT)?;
    let mut attributes = tcgetattr(&port)?;
    attributes.make_raw();
    tcsetattr(&port, OptionalActions::Now, &attributes)?;
    Ok(port)
}

fn send(bytes: &[u8]) -> std::io::Result<()> {
    let mut port = port()?;
    port.write_all(bytes)?;
    Ok(tcdrain(&port)?)
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("read {path}: {error}"))
}

fn write(path: &str, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("write {path}: {error}"))
}

/// The kernel flushes the list statistics every two seconds.
const STATISTICS: Duration = Duration::from_millis(2500);

/// Bytes per read.
const PIECE: usize = 1 << 20;

/// Current length of the list, in bytes.
static LENGTH: Mutex<u64> = Mutex::new(0);

/// Makes the active list at least `bytes` long for the lifetime of the guest.
///
/// # Errors
/// One line: the disk cannot be read.
pub fn grow_active_list(bytes: u64) -> Result<(), String> {
    let mut length = LENGTH.lock().unwrap_or_else(PoisonError::into_inner);
    let bytes = bytes.next_multiple_of(PIECE as u64);
    if *length >= bytes {
        return Ok(());
    }
    let path = scratch_disk()?;
    let failed = |error: std::io::Error| format!("read {path}: {error}");
    let disk = File::open(&path).map_err(failed)?;
    // The second read activates a page. Mapped pages survive dropping the caches.
    let mut piece = vec![0; PIECE];
    for _ in 0..2 {
        for offset in (*length..bytes).step_by(PIECE) {
            disk.read_exact_at(&mut piece, offset).map_err(failed)?;
        }
    }
    let flags = MapFlags::SHARED | MapFlags::POPULATE;
    // SAFETY: a new mapping at an address of the kernel's choice, with no references.
    unsafe { mmap(null_mut(), (bytes - *length) as usize, ProtFlags::READ, flags, &disk, *length) }
        .map_err(|errno| failed(errno.into()))?;
    *length = bytes;
    thread::sleep(STATISTICS);
    Ok(())
}
