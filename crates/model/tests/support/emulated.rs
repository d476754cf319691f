//! The machine of a kernel under QEMU without KVM.

use filemap_model::Profile;

/// An emulated processor, as in docs/MODEL.md.
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

/// The result of `run` on such a machine when it takes `elapsed_ns`. That time determines when
/// statistics are flushed, and depended on other work of the host.
pub fn in_time<R>(elapsed_ns: u64, run: impl Fn(Profile) -> R, took: impl Fn(&R) -> u64) -> R {
    let took_ns = took(&run(profile(1.0)));
    run(profile(elapsed_ns as f64 / took_ns as f64))
}

/// The profile of such a machine that takes `factor` times as long for everything: the load of the
/// host is not part of the model.
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
