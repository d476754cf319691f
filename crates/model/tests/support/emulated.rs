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

/// The profile of such a machine that takes `factor` times as long for everything: how busy the
/// host was is no part of the model.
pub fn profile(factor: f64) -> Profile {
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
