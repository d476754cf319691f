//! Boots the kernel image that `FILEMAP_TEST_IMAGE` names, with the modules in
//! `FILEMAP_TEST_MODULES`: `cargo test -p filemap-kernel --test image -- --ignored`. This test
//! program is also the guest's init.

use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use filemap_kernel::image::guest::{self, JobLog};
use filemap_kernel::image::{DiskFilesystem, Error, GuestJob, IncidentKind, KernelImage};

#[path = "support/harness.rs"]
mod harness;
#[path = "support/session.rs"]
mod session;
#[path = "support/skip.rs"]
mod skip;

const TESTS: &[harness::Test<KernelImage>] = harness::tests![
    #[ignore = "boots a guest"]
    answers,
    #[ignore = "boots a guest"]
    answers_on_xfs_with_two_cpus,
    #[ignore = "boots a guest"]
    answers_jobs_in_order,
    #[ignore = "boots a guest"]
    returns_answers_before_a_panic,
    #[ignore = "boots a guest"]
    warning_has_its_job,
    #[ignore = "boots a guest"]
    reports_looping_kernel,
    #[ignore = "boots a guest"]
    kills_after_timeouts,
    #[ignore = "boots a guest"]
    reports_a_boot_that_hangs,
];

fn main() -> ExitCode {
    if guest::is_guest() {
        guest::main(in_guest);
    }
    harness::run(TESTS, image)
}

fn image() -> Result<KernelImage, String> {
    let kernel = std::env::var_os("FILEMAP_TEST_IMAGE");
    let kernel = kernel.ok_or("FILEMAP_TEST_IMAGE names no kernel image")?;
    let mut image = KernelImage::new(kernel).expect("own executable");
    image.modules = std::env::var_os("FILEMAP_TEST_MODULES").map(Into::into);
    image.ram_bytes = 512 << 20;
    image.disk_bytes = 1 << 30;
    image.job_timeout = Duration::from_secs(90);
    Ok(image)
}

/// The guest's action for each payload.
fn in_guest(payload: &str, log: &mut JobLog) -> Result<String, String> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|error| error.to_string());
    match payload {
        "state" => {
            let file = Path::new(guest::DATA_DIR).join("file");
            std::fs::write(&file, vec![1; 1 << 20]).map_err(|error| error.to_string())?;
            let cpus = std::thread::available_parallelism().map_err(|error| error.to_string())?;
            Ok([
                read("/proc/sys/kernel/osrelease")?,
                read("/sys/block/vda/queue/read_ahead_kb")?,
                read("/sys/kernel/mm/lru_gen/enabled").unwrap_or_else(|_| "0x0000".into()),
                cpus.to_string(),
                "line\r\nof text\0".repeat(10_000),
            ]
            .join("|"))
        }
        "error" => Err("no such\njob".into()),
        "panic" => panic!("on purpose"),
        // Pages that a job left in the page cache are gone when the next one starts.
        "cached" => {
            let text = read("/proc/meminfo")?;
            let line = text.lines().find_map(|line| line.strip_prefix("Cached:"));
            Ok(line.unwrap_or_default().trim().trim_end_matches(" kB").to_owned())
        }
        "cache" => {
            let file = Path::new(guest::DATA_DIR).join("large");
            std::fs::write(&file, vec![1; 64 << 20]).map_err(|error| error.to_string())?;
            Ok(std::fs::read(&file).map_err(|error| error.to_string())?.len().to_string())
        }
        "log" => {
            for number in 0..LOGGED {
                log.write_all(&number.to_le_bytes()).map_err(|error| error.to_string())?;
            }
            Ok("logged".into())
        }
        "crash" => {
            std::fs::write("/proc/sysrq-trigger", "c").map_err(|error| error.to_string())?;
            Ok("alive".into())
        }
        "warn" => {
            let lines = ["WARNING: planted+0x0/0x10", " <TASK>", " by_nobody+0x1/0x10", " </TASK>"];
            let write = |line| std::fs::write("/dev/kmsg", format!("<4>{line}\n"));
            lines.into_iter().try_for_each(write).map_err(|error| error.to_string())?;
            Ok("warned".into())
        }
        "spin" => spin(),
        _ => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
    }
}

/// Loops without letting any other thread run on its CPU.
fn spin() -> ! {
    let last = libc::sched_param { sched_priority: 99 };
    // SAFETY: the kernel only reads the parameter.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &last) };
    loop {
        std::hint::spin_loop();
    }
}

/// Numbers of 8 bytes in a log.
const LOGGED: u64 = 1_000_000;

fn answers(image: &KernelImage) {
    let image = KernelImage { read_ahead_kb: Some(8192), ..image.clone() };
    let outcome = image.run("state").expect("a booting image");
    println!(
        "{} under {} in {:.1} s",
        outcome.release,
        outcome.accelerator.name(),
        outcome.elapsed.as_secs_f64()
    );
    let fields: Vec<_> = outcome.record.split('|').collect();
    let cpus = image.cpus.to_string();
    assert_eq!(fields[..3], [&format!("{}\n", outcome.release), "8192\n", "0x0000\n"]);
    assert_eq!(fields[3], cpus);
    assert_eq!(fields[4], "line\r\nof text\0".repeat(10_000));
}

fn answers_on_xfs_with_two_cpus(image: &KernelImage) {
    answers(&KernelImage {
        filesystem: DiskFilesystem::Xfs { block_bytes: 4096 },
        cpus: 2,
        ..image.clone()
    });
}

/// Tasks with these payloads.
fn tasks(payloads: &[&str], seconds: u64) -> Vec<GuestJob> {
    let timeout = Duration::from_secs(seconds);
    let quiet_timeout = timeout / 2;
    let task = |payload: &&str| GuestJob { payload: payload.to_string(), quiet_timeout, timeout };
    payloads.iter().map(task).collect()
}

fn answers_jobs_in_order(image: &KernelImage) {
    let long = "x".repeat(3 << 20);
    let payloads = ["cached", "cache", "cached", "error", "log", "state"];
    let mut guest = image.start(&tasks(&payloads, 60)).expect("a booting image");
    let mut next = || guest.next_answer().map(|answer| (answer.text, answer.log));
    let kib = |text: &str| text.parse::<u64>().expect("a size");
    let before = kib(&next().expect("a size").0);
    assert_eq!(next().expect("a length").0, (64 << 20).to_string());
    let after = kib(&next().expect("a size").0);
    println!("cached before and after a job with 64 MiB: {before} and {after} KiB");
    assert!(after < before + 4096, "{before} {after}");
    let error = next().expect_err("a failing job").to_string();
    assert_eq!(error, "in the guest: no such job");
    let (text, log) = next().expect("a log");
    assert_eq!(text, "logged");
    let mut bytes = Vec::new();
    log.expect("bytes").read_to_end(&mut bytes).expect("a file");
    assert!(bytes.chunks(8).eq((0..LOGGED).map(u64::to_le_bytes)), "{} bytes", bytes.len());
    let (_, log) = next().expect("a state");
    assert!(log.is_none());
    // Jobs that arrive while it runs.
    for task in tasks(&["cached", "panic", &long], 60) {
        guest.add(&task).expect("room");
    }
    guest.next_answer().expect("a size");
    let error = guest.next_answer().expect_err("a panic");
    assert_eq!(error.to_string(), "in the guest: the job panicked: on purpose");
    assert!(!error.cannot_run_here());
    assert!(guest.is_over());
}

fn returns_answers_before_a_panic(image: &KernelImage) {
    let mut guest = image.start(&tasks(&["cached", "crash", "cached"], 60)).expect("a boot");
    guest.next_answer().expect("what came before");
    let error = guest.next_answer().expect_err("a kernel that panics");
    println!("{error}");
    assert!(matches!(error, Error::KernelCrash { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("sysrq_handle_crash") && !text.contains('\n'), "{text}");
    assert!(guest.is_over());
}

fn warning_has_its_job(image: &KernelImage) {
    let image = KernelImage { notify: Some(notify), ..image.clone() };
    let mut guest = image.start(&tasks(&["cached", "warn", "cached"], 60)).expect("a boot");
    let mut warnings = || guest.next_answer().expect("an answer").warnings;
    assert_eq!(warnings(), []);
    let found = warnings();
    let [warning] = &found[..] else { panic!("one warning: {found:?}") };
    assert_eq!((warning.kind, warning.job), (IncidentKind::Warning, Some(1)));
    let line = "WARNING: planted+0x0/0x10 | Call Trace: by_nobody+0x1";
    assert_eq!(warning.summary(), line);
    assert_eq!(warnings(), []);
    let name = image.kernel.display();
    // A slow boot is reported too.
    let notices = take_notices().into_iter().filter(|notice| notice.contains("warned"));
    let expected = format!("{name}: in job 2 of 3, the kernel warned: {line}");
    assert_eq!(notices.collect::<Vec<_>>(), [expected]);
}

fn reports_looping_kernel(image: &KernelImage) {
    let mut guest = image.start(&tasks(&["cached", "spin"], 90)).expect("a boot");
    guest.next_answer().expect("what came before");
    let started = Instant::now();
    let error = guest.next_answer().expect_err("a job without end");
    println!("after {:.1} s: {error}", started.elapsed().as_secs_f64());
    assert!(matches!(error, Error::KernelCrash { .. }), "{error}");
    assert!(error.to_string().contains("no sign of life in 5 s"), "{error}");
    assert!(guest.is_over());
}

/// Reports about silent guests.
static NOTICES: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn notify(line: &str) {
    NOTICES.lock().expect("nobody panics with it").push(line.to_string());
}

fn take_notices() -> Vec<String> {
    std::mem::take(&mut NOTICES.lock().expect("nobody panics with it"))
}

fn kills_after_timeouts(image: &KernelImage) {
    let image = KernelImage { notify: Some(notify), ..image.clone() };
    let mut guest = image.start(&tasks(&["cached", "sleep", "cached"], 5)).expect("a boot");
    guest.next_answer().expect("what came before");
    let error = guest.next_answer().expect_err("a job without end");
    assert!(matches!(error, Error::JobTimeout { .. }), "{error}");
    println!("{error}");
    let lines = take_notices();
    let [line] = &lines[..] else { panic!("one line: {lines:?}") };
    println!("{line}");
    assert!(line.contains("answered job 2 of 3 after 3 s; it is given up after 5 s"), "{line}");
    let image = KernelImage { boot_timeout: Duration::from_millis(300), ..image };
    let error = image.run("state").expect_err("no time to boot");
    assert!(matches!(error, Error::BootTimeout { .. }), "{error}");
    assert_eq!(take_notices(), [""; 0]);
}

/// A kernel whose first instruction is a jump to itself.
fn reports_a_boot_that_hangs(image: &KernelImage) {
    let mut bytes = std::fs::read(&image.kernel).expect("a kernel");
    // After the sectors that run in real mode (Documentation/arch/x86/boot.rst, `setup_sects`).
    let begin = (usize::from(bytes[0x1f1]) + 1) * 512;
    bytes[begin..][..2].copy_from_slice(&[0xeb, 0xfe]);
    let kernel = std::env::temp_dir().join(format!("filemap-hangs-{}", std::process::id()));
    std::fs::write(&kernel, bytes).expect("room for a kernel");
    let (quiet_timeout, boot_timeout) = (Duration::from_secs(1), Duration::from_secs(3));
    let image =
        KernelImage { kernel, quiet_timeout, boot_timeout, notify: Some(notify), ..image.clone() };
    let error = image.run("state");
    std::fs::remove_file(&image.kernel).expect("it is there");
    let error = error.expect_err("a kernel that hangs");
    println!("{error}");
    assert!(matches!(error, Error::BootTimeout { .. }), "{error}");
    assert!(!error.to_string().contains('\n'), "{error}");
    let lines = take_notices();
    let [line] = &lines[..] else { panic!("one line: {lines:?}") };
    let name = image.kernel.display();
    let words = format!("{name}: the guest has not booted after 1 s; it is given up after 3 s");
    assert!(line.starts_with(&words) && !line.contains('\n'), "{line}");
}
