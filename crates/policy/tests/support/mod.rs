//! A simulated file that is read as the policy decides. Reads have a cost but take no time.

use std::ops::Range;

use filemap_policy::{Bounds, Costs, FilePolicy, KernelWindow, PageRange, TouchKind};

/// Default maximum window of the tests: 16 MiB of 4 KiB pages.
pub const LARGEST: u64 = 4096;

/// Read costs of a typical device.
pub const COSTS: Costs = Costs { fault_ns: 80_000, page_ns: 3_000 };

/// Fault-around window: cached pages in it are mapped by one fault.
const AROUND: u64 = 16;

/// The generator of random accesses that the commands use (xorshift64).
pub struct Random(pub u64);

impl Random {
    pub const NEW: Random = Random(88_172_645_463_325_252);

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// `count` runs of `pages` consecutive pages at random positions in a file of `file_pages`.
    pub fn runs(&mut self, count: u64, pages: u64, file_pages: u64) -> Vec<u64> {
        let starts: Vec<u64> = (0..count).map(|_| self.below(file_pages - pages)).collect();
        starts.into_iter().flat_map(|start| start..start + pages).collect()
    }

    /// `count` random pages of a file of `file_pages` pages.
    pub fn pages(&mut self, count: u64, file_pages: u64) -> Vec<u64> {
        (0..count).map(|_| self.below(file_pages)).collect()
    }
}

/// A mapping of the whole file.
pub fn whole(pages: u64) -> Bounds {
    Bounds { mapping: PageRange { first: 0, end: pages }, file_pages: pages }
}

/// The ranges requested after a major on_fault on `page`.
pub fn asked(state: &mut FilePolicy, page: u64, bounds: Bounds) -> Vec<(u64, u64)> {
    state
        .on_fault(page, TouchKind::Major, bounds)
        .ranges()
        .map(|pages| (pages.first, pages.end))
        .collect()
}

/// A file, cold at first, that a program reads under the policy.
pub struct Governed {
    pub state: FilePolicy,
    costs: Costs,
    bounds: Bounds,
    cached: Vec<bool>,
    mapped: Vec<bool>,
    touched: Vec<bool>,
    /// Major faults.
    pub faults: u64,
    /// Pages read.
    pub read: u64,
    /// The same file without advice, for comparison.
    kernel: Option<Kernel>,
}

/// A file, cold at first, for which the kernel reads windows around faults.
struct Kernel {
    window: u64,
    cached: Vec<bool>,
    cost_ns: u64,
}

impl Kernel {
    fn touch(&mut self, page: u64, costs: Costs) {
        if self.cached[page as usize] {
            return;
        }
        let (window, is_fault) = window(&self.cached, page, self.window);
        let pages = &mut self.cached[window.start as usize..window.end as usize];
        let fresh = pages.iter().filter(|cached| !**cached).count() as u64;
        pages.fill(true);
        self.cost_ns += fresh * costs.page_ns + u64::from(is_fault) * costs.fault_ns;
    }
}

/// The window that the kernel reads if `page` is missing, and whether the program waits for it:
/// directly after a window the next one is already under way.
fn window(cached: &[bool], page: u64, pages: u64) -> (Range<u64>, bool) {
    let is_behind = page > 0 && cached[page as usize - 1];
    let first = if is_behind { page } else { page.saturating_sub(pages / 2) };
    (first..(first + pages).min(cached.len() as u64), !is_behind)
}

impl Governed {
    pub fn new(pages: u64, costs: Costs) -> Governed {
        let none = vec![false; pages as usize];
        Governed {
            state: FilePolicy::new(LARGEST, costs),
            costs,
            bounds: whole(pages),
            cached: none.clone(),
            mapped: none.clone(),
            touched: none,
            faults: 0,
            read: 0,
            kernel: None,
        }
    }

    /// A file for which the kernel would read windows of `window` pages.
    pub fn with_window(pages: u64, costs: Costs, window: u64) -> Governed {
        let cached = vec![false; pages as usize];
        let kernel = Some(Kernel { window, cached, cost_ns: 0 });
        let mut governed = Governed { kernel, ..Governed::new(pages, costs) };
        governed.state.set_window(KernelWindow { pages: window, page_ns: costs.page_ns });
        governed
    }

    /// Cost of the accesses so far without advice, in nanoseconds.
    pub fn kernel_ns(&self) -> u64 {
        self.kernel.as_ref().map_or(0, |kernel| kernel.cost_ns)
    }

    /// A file of `pages` pages after `touches`.
    pub fn after(pages: u64, touches: impl IntoIterator<Item = u64>) -> Governed {
        let mut governed = Governed::new(pages, COSTS);
        touches.into_iter().for_each(|page| governed.touch(page));
        governed
    }

    pub fn touch(&mut self, page: u64) {
        self.touched[page as usize] = true;
        let costs = self.costs;
        if let Some(kernel) = &mut self.kernel {
            kernel.touch(page, costs);
        }
        if self.mapped[page as usize] {
            return;
        }
        let touch = if self.cached[page as usize] { TouchKind::Minor } else { TouchKind::Major };
        self.faults += u64::from(touch == TouchKind::Major);
        if touch == TouchKind::Major && self.state.is_left_to_kernel() {
            let pages = self.kernel.as_ref().map_or(1, |kernel| kernel.window);
            let (window, is_fault) = window(&self.cached, page, pages);
            self.faults -= u64::from(!is_fault);
            window.for_each(|page| self.add(page));
        }
        self.add(page);
        self.mapped[page as usize] = true;
        if touch == TouchKind::Minor {
            let first = page / AROUND * AROUND;
            for near in first..(first + AROUND).min(self.bounds.file_pages) {
                self.mapped[near as usize] |= self.cached[near as usize];
            }
        }
        let reads = self.state.on_fault(page, touch, self.bounds);
        for range in reads.ranges() {
            (range.first..range.end).for_each(|page| self.add(page));
        }
    }

    /// Number of touched pages.
    pub fn touched(&self) -> u64 {
        self.touched.iter().filter(|touched| **touched).count() as u64
    }

    /// Cost so far in nanoseconds: faults, and pages read ahead.
    pub fn cost_ns(&self) -> u64 {
        self.faults * self.costs.fault_ns + (self.read - self.faults) * self.costs.page_ns
    }

    /// Cost of reading each touched page by a fault of its own, in nanoseconds.
    pub fn singles_ns(&self) -> u64 {
        self.touched() * self.costs.fault_ns
    }

    /// Cost of reading each region of `pages` pages as a whole at its first touch, in nanoseconds.
    pub fn regions_ns(&self, pages: usize) -> u64 {
        let came_to = self.touched.chunks(pages).filter(|region| region.contains(&true));
        let whole = |region: &[bool]| (region.len() as u64 - 1) * self.costs.page_ns;
        came_to.map(|region| self.costs.fault_ns + whole(region)).sum()
    }

    fn add(&mut self, page: u64) {
        let cached = &mut self.cached[page as usize];
        self.read += u64::from(!*cached);
        *cached = true;
    }
}
