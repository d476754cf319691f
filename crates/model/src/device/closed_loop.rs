//! What a device serves if a fixed number of requests is always in flight.

use filemap_core::cache::FolioRun;
use filemap_core::units::{FileId, Order, PageIndex};

use super::Device;
use crate::profile::DeviceProfile;

/// Requests of each reader.
const ROUNDS: u64 = 64;

/// Mean time per read in nanoseconds, where each of `readers` readers reads one page of `page_size`
/// bytes after the other from an otherwise idle device.
pub fn closed_loop_ns(profile: DeviceProfile, page_size: u64, readers: u64) -> f64 {
    let mut device = Device::new(profile, page_size);
    let reads = readers * ROUNDS;
    let (mut begun, mut complete, mut now_ns) = (0, 0, 0);
    let mut read = |device: &mut Device, now_ns: u64| {
        // Pages that are never adjacent.
        let run =
            FolioRun { start: PageIndex(2 * begun), order: Order(0), folios: 1, marked: None };
        device.read(run, FileId::FIRST, now_ns);
        begun += 1;
    };
    (0..readers).for_each(|_| read(&mut device, 0));
    while complete < reads {
        now_ns = device.next_done_ns().expect("each reader has a request in flight");
        let mut arrived = 0;
        while let Some((run, _)) = device.next_arrival(now_ns, true) {
            arrived += run.pages.0;
        }
        complete += arrived;
        (0..arrived).for_each(|_| read(&mut device, now_ns));
    }
    now_ns as f64 / complete as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    /// Each page takes 1000 ns to transfer.
    const DEVICE: DeviceProfile = DeviceProfile {
        latency_ns: 50_000,
        bandwidth_bytes: 4_096_000_000,
        queue_depth: 16,
        request_ns: 9_000,
        ..Profile::DEFAULT.device
    };

    #[test]
    fn latencies_overlap_until_queue_or_device_is_full() {
        let found = [1, 2, 4, 16, 64].map(|readers| closed_loop_ns(DEVICE, 4096, readers));
        let expected = [60_000.0, 30_000.0, 15_000.0, 10_000.0, 10_000.0];
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 0.02, "{found} for {expected}");
        }
        let short = DeviceProfile { queue_depth: 3, ..DEVICE };
        let found = closed_loop_ns(short, 4096, 16);
        assert!((found / 20_000.0 - 1.0).abs() < 0.02, "{found}");
    }

    #[test]
    fn requests_of_a_ring_complete_together() {
        let ring = DeviceProfile { ring_entries: Some(128), ..DEVICE };
        for readers in [1, 2, 8, 32] {
            let expected = 50_000.0 / readers as f64 + 10_000.0;
            let found = closed_loop_ns(ring, 4096, readers);
            assert!((found / expected - 1.0).abs() < 0.02, "{found} for {expected}");
        }
    }
}
