//! Boots a kernel image, if `FILEMAP_TEST_IMAGE` names one (and `FILEMAP_TEST_MODULES` its
//! modules): this test program is then also the guest's init.

use std::path::Path;
use std::time::Duration;

use filemap_kernel::image::{Error, Filesystem, Image, guest};

#[path = "support/skip.rs"]
mod skip;

use skip::skip;

fn main() {
    if guest::is_guest() {
        guest::main(in_guest);
    }
    let Some(kernel) = std::env::var_os("FILEMAP_TEST_IMAGE") else {
        skip("FILEMAP_TEST_IMAGE names no kernel image");
        return;
    };
    let mut image = Image::new(kernel).expect("own executable");
    image.modules = std::env::var_os("FILEMAP_TEST_MODULES").map(Into::into);
    image.ram_bytes = 512 << 20;
    image.disk_bytes = 1 << 30;
    image.time_limit = Duration::from_secs(90);
    answers(&image);
    answers(&Image { filesystem: Filesystem::Xfs, cpus: 2, ..image.clone() });
    guest_errors_come_back(&image);
    time_limit_kills(&image);
    println!("ok: {}", image.kernel.display());
}

/// What the guest does for each payload.
fn in_guest(payload: &str) -> Result<String, String> {
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
        _ => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
    }
}

fn answers(image: &Image) {
    let image = Image { read_ahead_kb: Some(8192), ..image.clone() };
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

fn guest_errors_come_back(image: &Image) {
    for (payload, message) in [
        ("error", "in the guest: no such job"),
        ("panic", "in the guest: the job panicked: on purpose"),
    ] {
        let error = image.run(payload).expect_err("a failing job");
        assert_eq!(error.to_string(), message);
        assert!(!error.cannot_run_here());
    }
}

fn time_limit_kills(image: &Image) {
    let image = Image { time_limit: Duration::from_secs(1), ..image.clone() };
    let error = image.run("sleep").expect_err("a job without end");
    assert!(matches!(error, Error::TimeLimit { .. }), "{error}");
}
