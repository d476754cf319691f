//! What things cost in time.

/// Times of a machine, in nanoseconds. None of them is published for the machines that this is
/// compared with: all are assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// An access to a mapped page.
    pub touch_ns: u64,
    /// One try of a fault: entry, locks, look-up, return.
    pub fault_ns: u64,
    /// Mapping one page.
    pub map_page_ns: u64,
    /// Allocating a page and adding it to the cache.
    pub add_page_ns: u64,
    /// Filling a page of a hole with zeros.
    pub zero_page_ns: u64,
    /// Putting a page into a request to the device.
    pub request_page_ns: u64,
    /// Under the lists' lock: adding a page, isolating one, putting one back.
    pub list_page_ns: u64,
    /// Passing the lists' lock on to somebody who spins.
    pub handover_ns: u64,
    /// Looking at a page that stays as it was accessed.
    pub keep_page_ns: u64,
    /// Looking at a page that is locked.
    pub keep_locked_ns: u64,
    /// Freeing a page.
    pub evict_page_ns: u64,
    /// Taking the entry of a page that is evicted away.
    pub unmap_page_ns: u64,
    /// What it takes each CPU that runs to answer another one that has taken entries away
    /// (TLB flush): once for all pages that are looked at together.
    pub answer_ns: u64,
    /// `mmap_lock` held by `mmap(2)`, and by `munmap(2)` before it downgrades.
    pub map_ns: u64,
    /// Clearing the entry of a mapped page on `munmap(2)`.
    pub zap_page_ns: u64,
    /// `mmap_lock` held by one `mprotect(2)` of a writer.
    pub protect_ns: u64,
    /// Between two of them.
    pub writer_sleeps_ns: u64,
    /// Waking one task, for the one that wakes it.
    pub wake_ns: u64,
    /// Until a task that was woken runs on a CPU that was idle.
    pub wake_latency_ns: u64,
    /// Changing from one task to another.
    pub switch_ns: u64,
    /// The CPUs run in turn, one at a time, as those of an emulator in one thread.
    pub in_turn: bool,
    /// How long a task keeps its CPU while others wait for one.
    pub slice_ns: u64,
}

impl Costs {
    /// Assumed for a server with many CPUs, as the published one. Evicting a page stands for
    /// taking its entry from the TLBs of all CPUs, which they have to answer, and for waiting for
    /// locks of reclaim: 32 pages together are 0.4 ms.
    pub const SERVER: Costs = Costs {
        touch_ns: 5,
        fault_ns: 1_000,
        map_page_ns: 40,
        add_page_ns: 400,
        zero_page_ns: 300,
        request_page_ns: 0,
        list_page_ns: 2,
        handover_ns: 20,
        keep_page_ns: 50,
        keep_locked_ns: 50,
        evict_page_ns: 14_000,
        unmap_page_ns: 0,
        answer_ns: 0,
        map_ns: 10_000,
        zap_page_ns: 60,
        protect_ns: 250_000,
        writer_sleeps_ns: 1_000_000,
        wake_ns: 10_000,
        wake_latency_ns: 5_000,
        switch_ns: 10_000,
        in_turn: false,
        slice_ns: 4_000_000,
    };

    /// Measured where `data/measured-6.12-thrash.json` was, a machine whose CPUs run in turn and
    /// take 4 ns for an instruction.
    pub const EMULATED: Costs = Costs {
        touch_ns: 40,
        fault_ns: 3_800,
        map_page_ns: 1_600,
        add_page_ns: 7_400,
        zero_page_ns: 3_400,
        request_page_ns: 1_000,
        list_page_ns: 0,
        handover_ns: 0,
        keep_page_ns: 4_200,
        keep_locked_ns: 1_600,
        evict_page_ns: 6_400,
        unmap_page_ns: 5_900,
        answer_ns: 8_000,
        map_ns: 20_000,
        zap_page_ns: 1_600,
        protect_ns: 7_000_000,
        writer_sleeps_ns: 1_060_000,
        wake_ns: 5_000,
        wake_latency_ns: 12_000,
        switch_ns: 12_000,
        in_turn: true,
        slice_ns: 4_000_000,
    };

    /// Each of them with its name.
    pub fn named(&mut self) -> Vec<(&'static str, &mut u64)> {
        let Costs {
            touch_ns,
            fault_ns,
            map_page_ns,
            add_page_ns,
            zero_page_ns,
            request_page_ns,
            list_page_ns,
            handover_ns,
            keep_page_ns,
            keep_locked_ns,
            evict_page_ns,
            unmap_page_ns,
            answer_ns,
            map_ns,
            zap_page_ns,
            protect_ns,
            writer_sleeps_ns,
            wake_ns,
            wake_latency_ns,
            switch_ns,
            in_turn: _,
            slice_ns,
        } = self;
        vec![
            ("touch_ns", touch_ns),
            ("fault_ns", fault_ns),
            ("map_page_ns", map_page_ns),
            ("add_page_ns", add_page_ns),
            ("zero_page_ns", zero_page_ns),
            ("request_page_ns", request_page_ns),
            ("list_page_ns", list_page_ns),
            ("handover_ns", handover_ns),
            ("keep_page_ns", keep_page_ns),
            ("keep_locked_ns", keep_locked_ns),
            ("evict_page_ns", evict_page_ns),
            ("unmap_page_ns", unmap_page_ns),
            ("answer_ns", answer_ns),
            ("map_ns", map_ns),
            ("zap_page_ns", zap_page_ns),
            ("protect_ns", protect_ns),
            ("writer_sleeps_ns", writer_sleeps_ns),
            ("wake_ns", wake_ns),
            ("wake_latency_ns", wake_latency_ns),
            ("switch_ns", switch_ns),
            ("slice_ns", slice_ns),
        ]
    }
}
