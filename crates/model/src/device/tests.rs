//! Compares runs of requests with a device that tracks each request separately.

use filemap_core::units::Order;
use filemap_job::random::Rng;

use super::*;
use crate::profile::Profile;

/// Tracks each request separately: its first page and its completion time.
struct ReferenceDevice {
    profile: profile::DeviceProfile,
    requests: Vec<(u64, u64)>,
}

impl ReferenceDevice {
    fn read(&mut self, run: FolioRun, now_ns: u64) {
        for first in (0..run.folios).step_by(REQUEST_FOLIOS as usize) {
            let folios = (run.folios - first).min(REQUEST_FOLIOS);
            let number = self.requests.len();
            let place = number.checked_sub(self.profile.queue_depth as usize);
            let place_ns = place.map_or(0, |place| self.requests[place].1);
            let first_byte_ns = now_ns.max(place_ns) + self.profile.latency_ns;
            let busy_ns = self.requests.last().map_or(0, |last| last.1);
            let bytes = (folios << run.order.0) * 4096;
            let service_ns = (bytes * 1_000_000_000).div_ceil(self.profile.bandwidth_bytes)
                + self.profile.segment_ns * folios
                + self.profile.request_ns;
            let start = run.start.0 + (first << run.order.0);
            self.requests.push((start, first_byte_ns.max(busy_ns) + service_ns));
        }
    }
}

/// A device with a short queue, and the reference for it.
fn devices(rng: &mut Rng) -> (Device, ReferenceDevice) {
    let profile = profile::DeviceProfile {
        latency_ns: rng.pick(&[0, 1, 54_000, 900_000, 20_000_000]),
        bandwidth_bytes: rng.pick(&[1_000_000_007, 1_300_000_000, 40_000_000_000]),
        queue_depth: rng.pick(&[1, 2, 5, 32]),
        segment_ns: rng.pick(&[0, 0, 13]),
        request_ns: rng.pick(&[0, 0, 9_000, 333_333]),
        ..Profile::DEFAULT.device
    };
    (Device::new(profile, 4096), ReferenceDevice { profile, requests: Vec::new() })
}

#[test]
fn requests_that_wait_for_places_arrive_as_one_by_one() {
    for seed in 0..400 {
        let mut rng = Rng(seed);
        let (mut device, mut plain) = devices(&mut rng);
        let (mut now_ns, mut start, mut arrived) = (0, 0, 0);
        for _ in 0..60 {
            let alone = rng.chance(30);
            for _ in 0..if alone { 1 } else { 1 + rng.below(4) } {
                let order = Order(rng.pick(&[0, 0, 2, 9]));
                let folios = rng.pick(&[1, 1, 255, 256, 257, 3_000, 40_960]) + rng.below(3);
                start = (start + (1 << 20)) & !((1 << 20) - 1);
                let run = FolioRun { start: PageIndex(start), order, folios, marked: None };
                start = run.end().0;
                if alone {
                    device.read(run, FileId::FIRST, now_ns);
                } else {
                    device.add_pending(run);
                }
                plain.read(run, now_ns);
            }
            if !alone {
                device.submit(FileId::FIRST, now_ns);
            }
            for &(start, done_ns) in &plain.requests[arrived..] {
                let arrival_ns = device.arrival_ns(FileId::FIRST, PageIndex(start));
                assert_eq!(arrival_ns, Some(done_ns), "page {start} with seed {seed}");
            }
            assert_eq!(device.next_done_ns(), Some(plain.requests[arrived].1));
            let wait_ns = rng.pick(&[0, 1_000, 300_000, 50_000_000, 5_000_000_000]);
            now_ns += wait_ns * rng.below(3);
            let after = plain.requests.iter().take_while(|request| request.1 <= now_ns).count();
            while let Some((run, at_ns)) = device.next_arrival(now_ns, rng.chance(50)) {
                assert_eq!(run.start.0, plain.requests[arrived].0, "with seed {seed}");
                let of_run = |request: &&(u64, u64)| {
                    (run.start..run.start + run.pages).contains(&PageIndex(request.0))
                };
                arrived += plain.requests[arrived..].iter().take_while(of_run).count();
                assert_eq!(at_ns, plain.requests[arrived - 1].1, "with seed {seed}");
            }
            assert_eq!(arrived, after, "with seed {seed}");
        }
    }
}
