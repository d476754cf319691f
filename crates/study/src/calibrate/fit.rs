//! Fits a machine profile to measured costs.

use filemap_kernel::calibrate::{
    CallSample, DIRECT_BYTES, DeviceSample, DirectSample, IN_FLIGHT, REQUEST_ENTRIES,
    REQUEST_SEGMENTS, ReclaimSample, WakeSample,
};
use filemap_kernel::page_size;
use filemap_model::device::closed_loop_ns;
use filemap_model::{Profile, profile};

use super::queue::fit_queue;
use super::report::{DirectReads, MeasuredCost, ReadsInFlight};
use crate::error::Error;
use crate::stats;

/// All measurements, by round.
#[derive(Default)]
pub struct Samples {
    pub file: Vec<DeviceSample>,
    /// Direct reads of another file, whose device is the one to measure; empty if there is none.
    pub other: Vec<DirectSample>,
    /// Both files are on the same device.
    pub is_same_device: bool,
    pub calls: Vec<CallSample>,
    pub reclaim: Vec<ReclaimSample>,
    pub wakes: Vec<WakeSample>,
}

pub fn sample(figures: impl Iterator<Item = f64>) -> stats::SampleStats {
    stats::SampleStats::from_sorted(figures.collect()).expect("there is at least one round")
}

/// The lower quartile: other load on the machine only lengthens what is measured.
fn quiet<S>(samples: &[S], figure: impl Fn(&S) -> f64) -> f64 {
    let mut figures: Vec<f64> = samples.iter().map(figure).collect();
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / 4]
}

fn rounded<S>(samples: &[S], figure: fn(&S) -> f64) -> u64 {
    quiet(samples, figure).round() as u64
}

/// Whether overlapping reads complete together: `apart` is the time between their completions as a
/// share of the time of one read. Reads that share the device complete half a read apart, reads
/// served one by one a whole read.
fn is_complete_together(apart: f64) -> bool {
    apart < 0.25
}

/// Warning if the profile omits the ring of a device that has one: load on the processor or the
/// device separates completions that would come together.
fn no_ring(entries: Option<u32>, apart: f64) -> Option<String> {
    let entries = entries.filter(|_| !is_complete_together(apart))?;
    Some(format!(
        "the device takes requests through a ring of {entries} entries, but overlapping reads did \
         not complete together ({apart:.2} of the time of one read apart), so the profile has no \
         ring_entries; if the machine was busy, run filemap calibrate again when it is quiet"
    ))
}

impl Samples {
    /// The profile in which each kind of access costs what was measured, and warnings. The device
    /// takes requests of `io_bytes` and has a ring of this many entries, if any.
    ///
    /// # Errors
    /// If the measurements do not determine latency and bandwidth.
    pub fn profile(
        &self,
        io_bytes: u64,
        ring_entries: Option<u32>,
    ) -> Result<(Profile, Option<String>), Error> {
        let apart = self.quiet_direct(|s| s.apart);
        let device = profile::DeviceProfile {
            io_bytes,
            ring_entries: ring_entries.filter(|_| is_complete_together(apart)),
            ..Profile::DEFAULT.device
        };
        let Fitted { device, cost } = fit_file(self, device)?;
        let known_ns = cost.touch_ns + cost.map_page_ns + cost.add_page_ns + cost.add_folio_ns;
        let faults_ns = quiet(&self.reclaim, |s| s.faults) * cost.fault_ns as f64;
        let free_ns = quiet(&self.reclaim, |s| s.free) - known_ns as f64 - faults_ns;
        let cost = profile::CpuCosts {
            call_ns: rounded(&self.calls, |s| s.call),
            entry_ns: rounded(&self.calls, |s| s.entry),
            protect_page_ns: Some(rounded(&self.calls, |s| s.protect)),
            // fork holds mmap_lock for about half of the time of fork plus the child's exit.
            fork_ns: rounded(&self.calls, |s| s.fork / 2.0),
            zero_page_ns: free_ns.max(0.0).round() as u64,
            evict_page_ns: rounded(&self.reclaim, ReclaimSample::evict),
            // The waker's own work is included in the two costs below.
            wake_ns: 0,
            switch_ns: rounded(&self.wakes, |s| s.on_one),
            wake_latency_ns: rounded(&self.wakes, |s| s.on_all),
            // The device's latency was measured with a sleeping thread, so it includes the wake-up.
            page_wake_latency_ns: Some(0),
            ..cost
        };
        let profile = Profile { device, cost, ..Profile::DEFAULT };
        Ok((profile, no_ring(ring_entries, apart)))
    }

    /// The lower quartile over the direct reads of the device to measure.
    fn quiet_direct(&self, figure: impl Fn(&DirectSample) -> f64) -> f64 {
        match self.other.as_slice() {
            [] => quiet(&self.file, |s| figure(&s.direct)),
            other => quiet(other, figure),
        }
    }

    /// Rows of the report; without evictions if `is_unlimited`.
    pub fn costs(&self, is_unlimited: bool) -> Vec<MeasuredCost> {
        let (file, calls, wakes) = (self.file.as_slice(), &self.calls, &self.wakes);
        let mut costs = vec![
            cost(file, "access to a mapped page", |s| s.touch_ns),
            cost(file, "minor fault, one page mapped", |s| s.minor_ns),
            cost(file, "each page more that fault-around maps", map_page_ns),
            cost(file, "major fault, a single cold page", |s| s.single_ns),
            cost(file, "of it beyond a direct read of the page", |s| {
                s.single_ns - s.direct.sequential_ns[0]
            }),
            cost(file, "page added to the cache, without the device", |s| s.add_page_ns),
            cost(file, "major fault, a window of the readahead size", |s| s.window_ns),
            cost(file, "read(2) of a cached page", |s| s.read_ns),
            cost(file, "of it each page more", |s| s.copy_page_ns),
            cost(calls, "mprotect of a mapping without entries", |s| s.call),
            cost(calls, "each entry that munmap takes away", |s| s.entry),
            cost(calls, "each entry that mprotect changes", |s| s.protect),
            cost(calls, "fork, and the end of the child", |s| s.fork),
            cost(&self.reclaim, "page of a hole, read in order", |s| s.free),
        ];
        let evict = "of it more where a page is evicted for it";
        costs.extend((!is_unlimited).then(|| cost(&self.reclaim, evict, ReclaimSample::evict)));
        costs.push(cost(wakes, "thread woken on the same CPU", |s| s.on_one));
        costs.push(cost(wakes, "thread woken on any CPU", |s| s.on_all));
        costs
    }

    /// Direct reads of each request size.
    pub fn direct(&self) -> Vec<DirectReads> {
        let cost_of = |(number, bytes)| {
            let ns = self.direct_sample(|sample| sample.sequential_ns[number]);
            DirectReads { bytes, ns }
        };
        DIRECT_BYTES.into_iter().enumerate().map(cost_of).collect()
    }

    /// Reads of 4 KiB by the number of them in flight, beside what the device of `profile` takes.
    pub fn in_flight(&self, profile: &Profile) -> Vec<ReadsInFlight> {
        let own_ns = closed_loop_ns(profile.device, page_size(), 1);
        let measured_ns = self.quiet_direct(|sample| sample.in_flight_ns[0]);
        // The latency of the profile is that of a fault: longer than that of a direct read.
        let more_ns = (own_ns - measured_ns).round() as i64;
        let latency_ns = profile.device.latency_ns.saturating_add_signed(-more_ns);
        let device = profile::DeviceProfile { latency_ns, ..profile.device };
        let row = |(number, requests)| ReadsInFlight {
            requests,
            ns: self.direct_sample(|sample| sample.in_flight_ns[number]),
            fitted_ns: closed_loop_ns(device, page_size(), requests),
        };
        IN_FLIGHT.into_iter().enumerate().map(row).collect()
    }

    fn direct_sample(&self, figure: impl Fn(&DirectSample) -> f64) -> stats::SampleStats {
        match self.other.as_slice() {
            [] => sample(self.file.iter().map(|own| figure(&own.direct))),
            other => sample(other.iter().map(figure)),
        }
    }
}

fn cost<S>(samples: &[S], name: &str, figure: fn(&S) -> f64) -> MeasuredCost {
    MeasuredCost { name: name.to_string(), ns: sample(samples.iter().map(figure)) }
}

/// Device and fault costs fitted to accesses of a file.
struct Fitted {
    device: profile::DeviceProfile,
    cost: profile::CpuCosts,
}

/// Fits the lower quartiles of `all`; `device` supplies the parameters that are read from sysfs.
fn fit_file(all: &Samples, device: profile::DeviceProfile) -> Result<Fitted, Error> {
    let samples = all.file.as_slice();
    let touch = quiet(samples, |s| s.touch_ns);
    let map_page = quiet(samples, map_page_ns);
    let fault = (quiet(samples, |s| s.minor_ns) - touch - map_page).max(0.0);
    let add_page = quiet(samples, |s| s.add_page_ns);
    let copy_page = quiet(samples, |s| s.copy_page_ns);
    // A fault that misses is retried, so it enters twice.
    let own = touch + 2.0 * fault;
    let DeviceSample { window_pages, around_pages, .. } = samples[0];
    let pages = window_pages as f64;
    let single = quiet(samples, |s| s.single_ns) - own - map_page - add_page;
    let window =
        quiet(samples, |s| s.window_ns) - own - around_pages as f64 * map_page - pages * add_page;
    let page_ns = (window - single) / (pages - 1.0);
    let page_bytes = page_size() as f64;
    if page_ns <= 0.0 || single <= page_ns {
        return Err(Error::CannotRun(
            "this device is too fast, or this machine too busy, to tell latency from bandwidth; \
             give more --runs on a quiet machine"
                .to_string(),
        ));
    }
    let own_direct = |figure: fn(&DirectSample) -> f64| quiet(samples, |s| figure(&s.direct));
    let transfer = transfer_ns(own_direct, page_bytes).min(page_ns);
    let single_direct = |s: &DirectSample| s.sequential_ns[0];
    // A fault takes longer than a direct read by the same time on every device.
    let single = single + all.quiet_direct(single_direct) - own_direct(single_direct);
    let device_transfer = match all.other.as_slice() {
        [] => transfer,
        other => transfer_ns(|figure| quiet(other, figure), page_bytes),
    };
    let bandwidth_bytes = (page_bytes * 1e9 / device_transfer).round() as u64;
    let in_flight_ns: Vec<f64> =
        (0..IN_FLIGHT.len()).map(|at| all.quiet_direct(|s| s.in_flight_ns[at])).collect();
    let device = fit_queue(profile::DeviceProfile { bandwidth_bytes, ..device }, &in_flight_ns);
    let request = device.request_ns as f64;
    let segment = if all.other.is_empty() || all.is_same_device {
        let waited = device
            .ring_entries
            .map_or(0.0, |entries| (single - page_ns - request).max(0.0) / pages_together(entries));
        // A window of several requests takes what each of them needs, a single page that of one.
        let requests = (pages / f64::from(REQUEST_SEGMENTS)).ceil();
        page_ns - transfer - waited - request * (requests - 1.0) / (pages - 1.0)
    } else {
        // What the windows of one device wait for says nothing about another one.
        0.0
    };
    let segment = segment.max(0.0);
    let latency = single - device_transfer - segment - request;
    let whole = |ns: f64| ns.max(0.0).round() as u64;
    Ok(Fitted {
        device: profile::DeviceProfile {
            latency_ns: whole(latency),
            segment_ns: whole(segment),
            ..device
        },
        cost: profile::CpuCosts {
            touch_ns: whole(touch),
            fault_ns: whole(fault),
            map_page_ns: whole(map_page),
            add_page_ns: 0,
            add_folio_ns: whole(add_page),
            read_ns: whole(quiet(samples, |s| s.read_ns) - copy_page - touch),
            copy_page_ns: whole(copy_page),
            ..Profile::DEFAULT.cost
        },
    })
}

/// Base pages of a window that complete together in a ring with `entries` descriptors: those of as
/// many full requests as fit. At least one request is always accepted.
fn pages_together(entries: u32) -> f64 {
    f64::from((entries / REQUEST_ENTRIES).max(1) * REQUEST_SEGMENTS)
}

/// Transfer time of a page: the slope between the longest and the shortest direct read, of which
/// `typical` has a figure.
fn transfer_ns(typical: impl Fn(fn(&DirectSample) -> f64) -> f64, page_bytes: f64) -> f64 {
    const LAST: usize = DIRECT_BYTES.len() - 1;
    let more_ns = typical(|s| s.sequential_ns[LAST] - s.sequential_ns[0]);
    more_ns.max(1.0) * page_bytes / (DIRECT_BYTES[LAST] - DIRECT_BYTES[0]) as f64
}

/// Cost of each further page that fault-around maps.
fn map_page_ns(sample: &DeviceSample) -> f64 {
    let more = sample.around_pages.saturating_sub(1).max(1) as f64;
    ((sample.around_ns - sample.minor_ns) / more).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warns_of_omitted_ring() {
        assert_eq!(no_ring(Some(128), 0.01), None, "the profile has it");
        assert_eq!(no_ring(None, 0.5), None, "there is none");
        let warning = no_ring(Some(128), 0.5).unwrap();
        assert!(warning.contains("128 entries") && warning.contains("0.50"), "{warning}");
        assert!(!warning.contains('\n'), "{warning}");
    }

    #[test]
    fn as_many_full_requests_are_complete_together_as_the_ring_holds() {
        assert_eq!([2, 256, 515].map(pages_together), [256.0; 3]);
        assert_eq!([516, 32 * 258].map(pages_together), [512.0, 32.0 * 256.0]);
    }
}
