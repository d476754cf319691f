//! Fits how a device serves requests in parallel to what it took with 1 to 64 in flight.

use filemap_kernel::calibrate::IN_FLIGHT;
use filemap_kernel::page_size;
use filemap_model::device::closed_loop_ns;
use filemap_model::profile::DeviceProfile;

/// Steps of the search over `request_ns`, first over its whole range, then around the best.
const STEPS: u64 = 24;

/// A longer queue is taken if it fits as well as the best one within this.
const AS_GOOD: f64 = 0.01;

/// `device` with the `request_ns` and `queue_depth` for which the model's device is nearest to
/// `in_flight_ns`: the time per read of a page for each of [`IN_FLIGHT`]. The latency is the
/// rest of a single read.
///
/// All points count alike, as ratios. A short queue and a long time per request can be the same for
/// reads of one size; then the longer queue is taken. A device that reports completions in batches
/// has no queue depth, so only `request_ns` is fitted.
pub fn fit_queue(device: DeviceProfile, in_flight_ns: &[f64]) -> DeviceProfile {
    let depths: &[u64] = if device.ring_entries.is_some() { &[0] } else { &IN_FLIGHT };
    let best_of = |depth: &u64| {
        let depth = match *depth {
            0 => device.queue_depth,
            depth => depth as u32,
        };
        best_request_ns(DeviceProfile { queue_depth: depth, ..device }, in_flight_ns)
    };
    let fits: Vec<(f64, DeviceProfile)> = depths.iter().map(best_of).collect();
    let least = fits.iter().map(|fit| fit.0).fold(f64::INFINITY, f64::min);
    let longest = fits.into_iter().rfind(|fit| fit.0 <= least + AS_GOOD);
    longest.map_or(device, |fit| fit.1)
}

/// The best fit of `request_ns`, with its error.
fn best_request_ns(device: DeviceProfile, in_flight_ns: &[f64]) -> (f64, DeviceProfile) {
    let fit = |request_ns: u64| {
        let idle = DeviceProfile { request_ns, latency_ns: 0, ..device };
        let latency_ns = (in_flight_ns[0] - closed_loop_ns(idle, page_size(), 1)).max(0.0);
        let fitted = DeviceProfile { latency_ns: latency_ns.round() as u64, ..idle };
        (error(fitted, in_flight_ns), fitted)
    };
    let longest_ns = in_flight_ns.iter().copied().fold(0.0, f64::max) as u64;
    let (mut first_ns, mut step_ns) = (0, longest_ns / STEPS + 1);
    let mut best = fit(0);
    loop {
        for step in 0..=STEPS {
            let tried = fit(first_ns + step * step_ns);
            best = if tried.0 < best.0 { tried } else { best };
        }
        if step_ns == 1 {
            return best;
        }
        first_ns = best.1.request_ns.saturating_sub(step_ns);
        step_ns = (2 * step_ns / STEPS).max(1);
    }
}

/// Mean of the absolute logarithms of the times of `device` over the measured ones.
fn error(device: DeviceProfile, in_flight_ns: &[f64]) -> f64 {
    let off = IN_FLIGHT.iter().zip(in_flight_ns);
    let off = off.map(|(&readers, ns)| (closed_loop_ns(device, page_size(), readers) / ns).ln());
    off.map(f64::abs).sum::<f64>() / IN_FLIGHT.len() as f64
}

#[cfg(test)]
mod tests {
    use filemap_model::Profile;

    use super::*;

    /// The curve of `device`, each point off by up to 3 %.
    fn curve(device: DeviceProfile) -> Vec<f64> {
        let noise = [1.0, 1.03, 0.97, 1.02, 0.98, 1.03, 0.97];
        let points = IN_FLIGHT.iter().zip(noise);
        points.map(|(&readers, off)| closed_loop_ns(device, page_size(), readers) * off).collect()
    }

    #[test]
    fn finds_request_time_and_depth_of_a_curve() {
        for (depth, request_ns, ring) in
            [(64, 9_000, None), (8, 0, None), (4, 20_000, None), (32, 8_000, Some(128))]
        {
            let device = DeviceProfile {
                latency_ns: 80_000,
                bandwidth_bytes: 2_000_000_000,
                queue_depth: depth,
                request_ns,
                ring_entries: ring,
                ..Profile::DEFAULT.device
            };
            let unknown = DeviceProfile { request_ns: 0, queue_depth: 32, ..device };
            let found = fit_queue(unknown, &curve(device));
            for (found, known) in curve(found).into_iter().zip(curve(device)) {
                assert!((found / known - 1.0).abs() < 0.06, "{found} for {known}: {device:?}");
            }
            let is_known = depth >= 32;
            assert!(!is_known || found.request_ns.abs_diff(request_ns) < 1_000, "{found:?}");
        }
    }

    #[test]
    fn a_device_that_only_its_bandwidth_limits_needs_no_time_for_requests() {
        let device = DeviceProfile { queue_depth: 64, ..Profile::DEFAULT.device };
        let found = fit_queue(device, &curve(device));
        assert!(found.request_ns < 100 && found.queue_depth >= 32, "{found:?}");
    }
}
