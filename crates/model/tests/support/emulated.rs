//! The machine of a kernel under QEMU without KVM.

use filemap_model::Profile;

/// A processor that is emulated, as in docs/MODEL.md.
const PROFILE: &str = "
    huge_pages = true
    [device]
    latency_ns = 20000
    bandwidth_bytes = 2000000000
    queue_depth = 32
    io_bytes = 1310720
    [cost]
    touch_ns = 50
    fault_ns = 20000
    map_page_ns = 1000
    add_page_ns = 4000
";

/// What `run` gives on such a machine that takes `elapsed_ns` for it. When statistics are flushed
/// depends on that, and it was the host's other work that decided it.
pub fn in_time<R>(elapsed_ns: u64, run: impl Fn(Profile) -> R, took: impl Fn(&R) -> u64) -> R {
    let took_ns = took(&run(profile(1.0)));
    run(profile(elapsed_ns as f64 / took_ns as f64))
}

/// The profile of such a machine that takes `factor` times as long for everything: how busy the
/// host was is no part of the model.
fn profile(factor: f64) -> Profile {
    let mut profile = Profile::parse(PROFILE).unwrap();
    let longer = |ns: &mut u64| *ns = (*ns as f64 * factor) as u64;
    longer(&mut profile.device.latency_ns);
    longer(&mut profile.cost.touch_ns);
    longer(&mut profile.cost.fault_ns);
    longer(&mut profile.cost.map_page_ns);
    longer(&mut profile.cost.add_page_ns);
    profile.device.bandwidth_bytes = (profile.device.bandwidth_bytes as f64 / factor) as u64;
    profile
}
