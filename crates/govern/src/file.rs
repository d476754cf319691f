//! A file of which mappings are governed.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::time::Instant;

use filemap_policy::{Bounds, Pages, State, Touch, Window};
use rustix::fs::{Advice, FileType, fadvise, fstat, fstatfs};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::asked::RequestedPages;
use crate::costs::CostEstimator;

/// The `f_type` of statfs(2) of tmpfs, ramfs and hugetlbfs (`linux/magic.h`): nothing is read ahead
/// there.
const MEMORY_FILESYSTEMS: [i64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];

/// The same of NFS, SMB and FUSE, whose readers wait for others: CIFS has two.
const NETWORK_FILESYSTEMS: [i64; 5] = [0x6969, 0xff53_4d42, 0xfe53_4d42, 0x517b, 0x6573_5546];

/// The most bytes that are asked for with one call.
const MAX_CALL_BYTES: u64 = 512 << 10;

/// The same for what the program may do later: what it waits for meanwhile comes after one or two
/// such calls.
const MAX_SPECULATIVE_CALL_BYTES: u64 = 256 << 10;

/// Places of a file that are looked at to see how long it takes to read a page, how far they are
/// apart, and how many pages are read there.
const SAMPLE_POSITIONS: u64 = 16;
const FRACTIONS: u64 = SAMPLE_POSITIONS + 1;
const MAX_SAMPLES: usize = 4;

/// What the kernel reads at least for a call, where the device does not say.
const MIN_CALL_BYTES: u64 = 128 << 10;

/// A file that is open here, by a descriptor of this process' own.
#[derive(Debug)]
pub struct OpenFile {
    pub file: File,
    /// Pages that the kernel reads around a fault where nothing is advised; 0 where it does not
    /// say.
    pub window_pages: u64,
    /// The most pages that the kernel reads for one call.
    pub call_pages: u64,
    /// The most pages that are asked for with one call for what the program may do later.
    pub speculative_call_pages: u64,
}

impl OpenFile {
    /// `file`, or why it is left alone.
    pub fn new(file: File, page_bytes: u64) -> Result<OpenFile, &'static str> {
        let stat = fstat(&file).map_err(|_| "its file cannot be looked at")?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err("it is no regular file");
        }
        let kind = fstatfs(&file).map_err(|_| "its filesystem is not known")?.f_type;
        if MEMORY_FILESYSTEMS.contains(&kind) {
            return Err("its file is in memory only");
        }
        if NETWORK_FILESYSTEMS.contains(&kind) {
            return Err("its file is a server's");
        }
        // What is read through this descriptor is asked for, page by page.
        fadvise(&file, 0, None, Advice::Random).map_err(|_| "its file cannot be advised")?;
        let read_ahead_bytes = read_ahead_bytes(stat.st_dev);
        let call_bytes = call_bytes(stat.st_dev, read_ahead_bytes);
        let pages = |bytes: u64| (bytes / page_bytes).max(1);
        Ok(OpenFile {
            file,
            window_pages: read_ahead_bytes / page_bytes,
            call_pages: pages(call_bytes),
            speculative_call_pages: pages(call_bytes.min(MAX_SPECULATIVE_CALL_BYTES)),
        })
    }

    /// What it takes to read one page that is not cached, in nanoseconds: the least of a few of
    /// them, which lie anywhere in `pages`. Nothing where all that were looked at are cached.
    pub fn read_page_ns(&self, pages: Pages, page_bytes: u64) -> Option<u64> {
        let places = (1..=SAMPLE_POSITIONS).map(|n| pages.first + pages.count() * n / FRACTIONS);
        let uncached = places.filter(|page| !self.is_cached(*page, page_bytes));
        let mut buffer = vec![0; page_bytes as usize];
        let took_ns = |page: u64| -> Option<u64> {
            let start = Instant::now();
            self.file.read_at(&mut buffer, page * page_bytes).ok()?;
            Some(start.elapsed().as_nanos() as u64)
        };
        uncached.take(MAX_SAMPLES).map_while(took_ns).min()
    }

    fn is_cached(&self, page: u64, page_bytes: u64) -> bool {
        let mut byte = [0];
        let offset = page * page_bytes;
        let flags = ReadWriteFlags::NOWAIT;
        let read = preadv2(&self.file, &mut [IoSliceMut::new(&mut byte)], offset, flags);
        read != Err(Errno::AGAIN)
    }

    /// Pages that the file has now.
    pub fn pages(&self, page_bytes: u64) -> io::Result<u64> {
        Ok(self.file.metadata()?.size().div_ceil(page_bytes))
    }
}

/// The readahead size of `device`; 0 where it does not say.
fn read_ahead_bytes(device: u64) -> u64 {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    read_kib(&format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb")).unwrap_or(0)
}

/// The most bytes that the kernel reads for one call on a file of `device`: the device's readahead
/// size or its largest request, whichever is larger.
fn call_bytes(device: u64, read_ahead_bytes: u64) -> u64 {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let block = format!("/sys/dev/block/{major}:{minor}");
    let request = read_kib(&format!("{block}/queue/max_sectors_kb"))
        .or_else(|| read_kib(&format!("{block}/../queue/max_sectors_kb")));
    read_ahead_bytes.max(request.unwrap_or(0)).clamp(MIN_CALL_BYTES, MAX_CALL_BYTES)
}

fn read_kib(path: &str) -> Option<u64> {
    let kib: u64 = std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
    Some(kib.saturating_mul(1 << 10))
}

/// A file of which mappings are governed, in whatever process.
#[derive(Debug)]
pub struct GovernedFile {
    pub open: Arc<OpenFile>,
    /// Pages that it had when it was looked at last.
    pub pages: u64,
    /// What the policy knows of it.
    state: Box<State>,
    requested: RequestedPages,
    /// What a page costs that the kernel reads around a fault.
    window_page_ns: u64,
    /// Mappings of it that are governed.
    pub users: usize,
}

impl GovernedFile {
    /// A file of which nothing is mapped yet. A stream asks for `largest` pages at most.
    pub fn new(
        open: Arc<OpenFile>,
        pages: u64,
        largest: u64,
        cost: &CostEstimator,
    ) -> GovernedFile {
        GovernedFile {
            open,
            pages,
            state: Box::new(State::new(largest, cost.costs())),
            requested: RequestedPages::default(),
            window_page_ns: cost.window_page_ns(),
            users: 0,
        }
    }

    /// Hears that the thread `tid` has come to `page` at `now_ns`, and returns what is to be read:
    /// in `mapping`, in the order of its use, and in pieces of one call each. It is for later where
    /// the second is true. The mapping `may_be_left` to the kernel, or is.
    pub fn on_touch(
        &mut self,
        tid: u32,
        (page, touch): (u64, Touch),
        mapping: Pages,
        may_be_left: bool,
        now_ns: u64,
    ) -> (Vec<Pages>, bool) {
        if touch == Touch::Major {
            self.requested.on_major_fault(page, now_ns);
        }
        let bounds = Bounds { mapping, file_pages: self.pages };
        self.state.set_thread(tid.into());
        let window = Window { pages: self.open.window_pages, page_ns: self.window_page_ns };
        self.state.set_window(if may_be_left { window } else { Window::NONE });
        let reads = self.state.fault(page, touch, bounds);
        let most = if reads.is_for_later {
            self.open.speculative_call_pages
        } else {
            self.open.call_pages
        };
        let pieces = reads.pieces(most);
        let fresh = pieces.flat_map(|piece| self.requested.request(piece, now_ns)).collect();
        (fresh, reads.is_for_later)
    }

    /// Whether the kernel's own readahead costs less than single pages.
    pub fn is_left_to_kernel(&self) -> bool {
        self.state.is_left_to_kernel()
    }

    /// Hears that `pages` were asked for and not read.
    pub fn on_dropped_read(&mut self, pages: Pages) {
        self.requested.forget(pages);
    }

    pub fn set_costs(&mut self, cost: &CostEstimator) {
        self.state.set_costs(cost.costs());
        self.window_page_ns = cost.window_page_ns();
    }

    pub fn set_memory_short(&mut self, is_short: bool) {
        self.state.set_memory_short(is_short);
    }
}
