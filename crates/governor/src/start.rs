//! How the library starts in a process, in the child of a fork, and how it ends.

use std::ffi::{CStr, CString, OsStr, OsString, c_int};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use filemap_control::layout::{Observer, Reason};
use filemap_control::{BadSetting, Purpose, Settings, variable};
use rustix::fs::{Access, FileType};

use crate::{disposition, file, next, observer, page_tables, purpose, standard_error, statistics};

/// What stays the same while a process runs.
pub struct Run {
    pub settings: Settings,
    pub page_size: usize,
    include: Vec<CString>,
    exclude: Vec<CString>,
    statistics: Option<CString>,
    tapes: Option<CString>,
    given: Option<CString>,
}

static RUN: OnceLock<Run> = OnceLock::new();

/// Whether mappings are governed, recorded or advised.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// The process that the library's state belongs to. The child of a vfork uses it as well, and must
/// not change it.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// No system call is to be made any more on the library's own account.
static IS_SILENT: AtomicBool = AtomicBool::new(false);

/// The run, if mappings are governed, recorded or advised in this process.
pub fn running() -> Option<&'static Run> {
    if IS_ON.load(Ordering::Acquire) { started() } else { None }
}

/// The same for the handler, to which only the process comes that is observed: it does not ask the
/// kernel which one that is.
pub fn observing() -> Option<&'static Run> {
    let is_on = IS_ON.load(Ordering::Acquire) && !IS_SILENT.load(Ordering::Acquire);
    RUN.get().filter(|_| is_on)
}

/// What is wanted, if the run has begun.
pub fn settings() -> Option<&'static Settings> {
    RUN.get().map(|run| &run.settings)
}

/// The run, if it has begun and this is its process.
pub fn started() -> Option<&'static Run> {
    let run = RUN.get().filter(|_| !IS_SILENT.load(Ordering::Acquire))?;
    let is_owner = OWNER.load(Ordering::Relaxed) == rustix::process::getpid().as_raw_pid();
    is_owner.then_some(run)
}

/// Nothing is governed, recorded or advised from here on. Returns the run if this call has ended
/// it.
pub fn stop() -> Option<&'static Run> {
    let run = running()?;
    IS_ON.swap(false, Ordering::AcqRel).then_some(run)
}

/// The library makes no system call any more that the program does not make.
pub fn silence() {
    IS_SILENT.store(true, Ordering::Release);
}

/// Whether that is so.
pub fn is_silent() -> bool {
    IS_SILENT.load(Ordering::Acquire)
}

/// Whether the library's state is another process's, whose memory this one shares.
pub fn is_borrowed() -> bool {
    !is_silent() && OWNER.load(Ordering::Relaxed) != rustix::process::getpid().as_raw_pid()
}

/// Bytes of a page.
pub fn page_size() -> usize {
    // SAFETY: the call takes a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Runs before the program.
extern "C" fn start() {
    // SAFETY: errno belongs to this thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the same. A program begins with errno 0.
    let before = unsafe { *errno };
    next::look_up_all();
    begin();
    // SAFETY: the same.
    unsafe { *errno = before };
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn end() {
    finish();
}

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

fn begin() {
    let settings = match Settings::from_environment(std::env::var_os) {
        Ok(Some(settings)) => settings,
        Ok(None) => return,
        Err(wrong) => {
            let done = done_where(|name| std::env::var_os(name).is_some_and(|of| !of.is_empty()));
            give_up(&format!("nothing is {done}: {wrong}"));
            return;
        }
    };
    let page_size = page_size();
    let c_string = |text: &OsString| CString::new(text.as_bytes()).ok();
    let c_path = |path: &Option<PathBuf>| {
        path.as_ref().and_then(|path| CString::new(path.as_os_str().as_bytes()).ok())
    };
    let run = Run {
        page_size,
        include: settings.include.iter().filter_map(c_string).collect(),
        exclude: settings.exclude.iter().filter_map(c_string).collect(),
        statistics: c_path(&settings.statistics).filter(|path| may_be_directory(path)),
        tapes: c_path(&settings.tapes),
        given: c_path(&settings.given),
        settings,
    };
    if let Some(reason) = run.tapes().and_then(unwritable) {
        give_up(reason);
        return;
    }
    OWNER.store(rustix::process::getpid().as_raw_pid(), Ordering::Relaxed);
    let run = RUN.get_or_init(|| run);
    purpose::begins(run);
    if !purpose::observes(run) {
        switch_on();
        return;
    }
    let reason = match () {
        () if file::is_traced() => Reason::Traced,
        () if disposition::is_taken(run.signal()) => Reason::SigtrapTaken,
        () => {
            observe(run);
            return;
        }
    };
    statistics::reason(reason);
    run.tell_collector();
    if run.settings.purpose == Purpose::Record {
        give_up(&format!("nothing is recorded: {}", reason.not_recorded()));
    }
}

/// What is done with mappings where the variables of which `is_set` says so are set, as
/// [`Settings::from_environment`] chooses.
fn done_where(is_set: impl Fn(&str) -> bool) -> &'static str {
    match () {
        () if is_set(variable::ADVISE) => "advised",
        () if is_set(variable::RECORD) => "recorded",
        () => "governed",
    }
}

/// Why no tape can be made in a directory, if that is so; empty where it is gone, since the command
/// has ended then.
fn unwritable(directory: &CStr) -> Option<&'static str> {
    match rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => None,
        Err(rustix::io::Errno::NOENT) => Some(""),
        Err(_) => Some(
            "nothing is recorded of programs of this user, who may not write into the directory \
             of FILEMAP_RECORD; record them as that user",
        ),
    }
}

/// Whether statistics may be kept there. If not one line says so, and programs that this one starts
/// do not try. A directory that is gone is no error: whoever collected statistics has ended.
fn may_be_directory(path: &CStr) -> bool {
    let found = rustix::fs::stat(path).map(|stat| FileType::from_raw_mode(stat.st_mode));
    if found.is_err() || found == Ok(FileType::Directory) {
        return true;
    }
    let value = OsStr::from_bytes(path.to_bytes()).to_owned();
    let wrong = BadSetting::new(variable::STATISTICS, value, "a directory");
    say(&format!("no statistics are kept: {wrong}"), variable::STATISTICS, "");
    false
}

/// Begins to observe.
fn observe(run: &Run) {
    // What is protected tells of itself.
    if run.settings.changes {
        disposition::install(run.signal());
        switch_on();
        return;
    }
    let Some(observer) = observer::open(run.settings.purpose) else {
        statistics::reason(Reason::NoObserver);
        run.tell_collector();
        let none = Reason::NoObserver;
        give_up(&match run.settings.purpose {
            Purpose::Record => format!("nothing is recorded: {}", none.not_recorded()),
            Purpose::Govern | Purpose::Advise => format!("nothing is governed: {}", none.text()),
        });
        return;
    };
    if observer == Observer::PerfEvent {
        disposition::install(run.signal());
    }
    statistics::observer(observer);
    switch_on();
}

/// From here on the purpose does its work.
fn switch_on() {
    // SAFETY: the functions only do what a fork may do in parent and child.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(fork_is_over), Some(after_fork)) };
    IS_ON.store(true, Ordering::Release);
}

/// Says in one line why nothing is done, and only once: programs that this one starts do not
/// try.
fn give_up(text: &str) {
    say(text, variable::SWITCH, "off");
}

/// Says a line, if it is not empty, and has the programs that this one starts find `variable` with
/// `value`.
fn say(text: &str, variable: &str, value: &str) {
    if !text.is_empty() {
        standard_error::write(&format!("filemap: {text}\n"));
    }
    // SAFETY: the program has not begun, so that no other thread reads its environment.
    unsafe { std::env::set_var(variable, value) };
}

/// The process is about to fork.
pub extern "C" fn before_fork() {
    if running().is_some() {
        purpose::before_fork();
    }
}

/// The process has forked, and this is the parent.
pub extern "C" fn fork_is_over() {
    purpose::fork_is_over();
}

/// The child of a fork begins.
pub extern "C" fn after_fork() {
    fork_is_over();
    if is_silent() {
        return;
    }
    // SAFETY: errno belongs to this thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the same. What fork has set stays.
    let before = unsafe { *errno };
    OWNER.store(rustix::process::getpid().as_raw_pid(), Ordering::Relaxed);
    disposition::release_after_fork();
    file::release_after_fork();
    observer::after_fork();
    purpose::after_fork();
    if let Some(run) = running().filter(|run| purpose::observes(run)) {
        if !run.settings.changes && !observer::reopen() {
            crate::stand_down::now(Reason::NoObserver);
        } else if purpose::goes_on(run) {
            observer::begin();
        }
    }
    // SAFETY: the same.
    unsafe { *errno = before };
}

/// The process ends.
pub fn finish() {
    if let Some(run) = started() {
        purpose::ends(run);
    }
}

impl Run {
    /// Whether files with this path are to be governed; `None` is a path that is too long.
    pub fn is_wanted(&self, path: Option<&CStr>) -> bool {
        let Some(path) = path else { return self.include.is_empty() };
        let matches = |pattern: &CString| {
            // SAFETY: both texts end with a zero.
            unsafe { libc::fnmatch(pattern.as_ptr(), path.as_ptr(), 0) == 0 }
        };
        let is_included = self.include.is_empty() || self.include.iter().any(matches);
        is_included && !self.exclude.iter().any(matches)
    }

    /// The signal that the library shares with the program.
    fn signal(&self) -> c_int {
        if self.settings.changes { libc::SIGSEGV } else { libc::SIGTRAP }
    }

    /// Makes the file of statistics, if one is wanted and was not tried.
    pub fn open_statistics(&self) {
        if let Some(directory) = self.statistics.as_deref() {
            statistics::open(directory, self.page_size, self.settings.keeps_statistics);
        }
    }

    /// Makes the file of statistics for who collects it, although there is no mapping in it.
    fn tell_collector(&self) {
        if self.settings.keeps_statistics {
            self.open_statistics();
        }
    }

    /// The directory of tapes.
    pub fn tapes(&self) -> Option<&CStr> {
        self.tapes.as_deref()
    }

    /// The file to which it is added which advice was given.
    pub fn given(&self) -> Option<&CStr> {
        self.given.as_deref()
    }

    /// Removes the file of statistics if nobody collects it.
    pub fn remove_statistics(&self) {
        if let Some(directory) = self.statistics.as_deref()
            && !self.settings.keeps_statistics
        {
            statistics::remove(directory);
        }
    }

    /// Pages of `range` that are mapped; `None` where nobody asks, or nobody can say.
    pub fn touched_pages(&self, range: &Range<usize>) -> Option<u64> {
        if statistics::is_kept() { page_tables::mapped_pages(range, self.page_size) } else { None }
    }
}
