//! A file of which mappings are governed.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use filemap_policy::{Bounds, Costs, Pages, State, Touch};
use rustix::fs::{Advice, FileType, fadvise, fstat, fstatfs};

use crate::asked::Asked;

/// The `f_type` of statfs(2) of tmpfs, ramfs and hugetlbfs (`linux/magic.h`): nothing is read ahead
/// there.
const IN_MEMORY: [i64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];

/// The same of NFS, SMB and FUSE, whose readers wait for others: CIFS has two.
const OF_SERVERS: [i64; 5] = [0x6969, 0xff53_4d42, 0xfe53_4d42, 0x517b, 0x6573_5546];

/// The most bytes that are asked for with one call.
const MOST_CALL_BYTES: u64 = 512 << 10;

/// The same for what the program may do later: what it waits for meanwhile comes behind one or two
/// such calls.
const MOST_CALL_BYTES_FOR_LATER: u64 = 256 << 10;

/// What the kernel reads at least for a call, where the device does not say.
const LEAST_CALL_BYTES: u64 = 128 << 10;

/// A file that is open here, by a descriptor of this process' own.
#[derive(Debug)]
pub struct OpenFile {
    pub file: File,
    /// The most pages that the kernel reads for one call.
    pub call_pages: u64,
    /// The most pages that are asked for with one call for what the program may do later.
    pub call_pages_for_later: u64,
}

impl OpenFile {
    /// `file`, or why it is left alone.
    pub fn new(file: File, page_bytes: u64) -> Result<OpenFile, &'static str> {
        let stat = fstat(&file).map_err(|_| "its file cannot be looked at")?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err("it is no regular file");
        }
        let kind = fstatfs(&file).map_err(|_| "its filesystem is not known")?.f_type;
        if IN_MEMORY.contains(&kind) {
            return Err("its file is in memory only");
        }
        if OF_SERVERS.contains(&kind) {
            return Err("its file is a server's");
        }
        // What is read through this descriptor is asked for, page by page.
        fadvise(&file, 0, None, Advice::Random).map_err(|_| "its file cannot be advised")?;
        let call_bytes = call_bytes(stat.st_dev);
        let pages = |bytes: u64| (bytes / page_bytes).max(1);
        Ok(OpenFile {
            file,
            call_pages: pages(call_bytes),
            call_pages_for_later: pages(call_bytes.min(MOST_CALL_BYTES_FOR_LATER)),
        })
    }

    /// Pages that the file has now.
    pub fn pages(&self, page_bytes: u64) -> io::Result<u64> {
        Ok(self.file.metadata()?.size().div_ceil(page_bytes))
    }
}

/// The most bytes that the kernel reads for one call on a file of `device`: the device's readahead
/// size or its largest request, whichever is larger.
fn call_bytes(device: u64) -> u64 {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let kib = |path: String| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let block = format!("/sys/dev/block/{major}:{minor}");
    let readahead = kib(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"));
    let request = kib(format!("{block}/queue/max_sectors_kb"))
        .or_else(|| kib(format!("{block}/../queue/max_sectors_kb")));
    let bytes = readahead.unwrap_or(0).max(request.unwrap_or(0)).saturating_mul(1 << 10);
    bytes.clamp(LEAST_CALL_BYTES, MOST_CALL_BYTES)
}

/// A file of which mappings are governed, in whatever process.
#[derive(Debug)]
pub struct GovernedFile {
    pub open: Arc<OpenFile>,
    /// Pages that it had when it was looked at last.
    pub pages: u64,
    /// What the policy knows of it.
    state: Box<State>,
    asked: Asked,
    /// Mappings of it that are governed.
    pub users: usize,
}

impl GovernedFile {
    /// A file of which nothing is mapped yet.
    pub fn new(open: Arc<OpenFile>, pages: u64, state: State) -> GovernedFile {
        GovernedFile { open, pages, state: Box::new(state), asked: Asked::default(), users: 0 }
    }

    /// Hears that the thread `tid` has come to `page` at `now_ns`, and returns what is to be read:
    /// in `mapping`, in the order of its use, and in pieces of one call each. It is for later where
    /// the second is true.
    pub fn touch(
        &mut self,
        tid: u32,
        page: u64,
        touch: Touch,
        mapping: Pages,
        now_ns: u64,
    ) -> (Vec<Pages>, bool) {
        if touch == Touch::Major {
            self.asked.is_missing(page, now_ns);
        }
        let bounds = Bounds { mapping, file_pages: self.pages };
        self.state.set_thread(tid.into());
        let reads = self.state.fault(page, touch, bounds);
        let most = match reads.is_for_later {
            true => self.open.call_pages_for_later,
            false => self.open.call_pages,
        };
        let pieces = reads.pieces(most);
        let fresh = pieces.flat_map(|piece| self.asked.ask(piece, now_ns)).collect();
        (fresh, reads.is_for_later)
    }

    /// Hears that `pages` were asked for and not read.
    pub fn was_not_read(&mut self, pages: Pages) {
        self.asked.forget(pages);
    }

    pub fn set_costs(&mut self, costs: Costs) {
        self.state.set_costs(costs);
    }

    pub fn set_memory_short(&mut self, is_short: bool) {
        self.state.set_memory_short(is_short);
    }
}
