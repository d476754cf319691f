//! Progress of long-running commands: a bar on a terminal, lines elsewhere.

use std::io::{IsTerminal, Write, stderr};
use std::sync::mpsc::RecvTimeoutError::Timeout;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Template of the bar.
const WITH_TOTAL: &str = "{pos}/{len} jobs [{bar:40}] {elapsed}";

/// Template without a known number of jobs.
const WITHOUT_TOTAL: &str = "{pos} jobs {elapsed}";

/// Delay before progress is shown, so that short commands show none.
const SHOWN_AFTER: Duration = Duration::from_secs(2);

/// Interval of lines where stderr is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Clears the current line of a terminal, which may hold a bar.
pub const CLEAR_LINE: &str = "\r\x1b[2K";

/// Prints `line` to stderr while a command runs.
pub fn print_line(line: &str) {
    let cleared = if stderr().is_terminal() { CLEAR_LINE } else { "" };
    // A single write, as the bar is drawn by another thread. A closed stderr is ignored.
    let _ = stderr().write_all(format!("{cleared}filemap: {line}\n").as_bytes());
}

/// A progress bar on stderr if that is a terminal, else lines. Dropping it removes the bar.
pub struct Bar {
    bar: ProgressBar,
    /// Dropping it ends the display.
    _done: Sender<()>,
}

impl Bar {
    /// A bar for `total` jobs; `None`: unknown number.
    pub fn new(total: Option<u64>) -> Self {
        let bar = ProgressBar::hidden();
        total.iter().for_each(|&total| bar.set_length(total));
        let style = style(if total.is_some() { WITH_TOTAL } else { WITHOUT_TOTAL });
        let (done, wait) = channel::<()>();
        if stderr().is_terminal() {
            let shown = bar.clone();
            let show = move || {
                if wait.recv_timeout(SHOWN_AFTER) == Err(Timeout) {
                    shown.set_style(style);
                    shown.set_draw_target(ProgressDrawTarget::stderr());
                    shown.enable_steady_tick(Duration::from_millis(200));
                }
            };
            // Without a thread, the bar is not shown.
            let _ = thread::Builder::new().spawn(show);
        } else {
            let shown = bar.clone();
            let _ = thread::Builder::new().spawn(move || print_lines(&shown, &wait));
        }
        Bar { bar, _done: done }
    }
}

impl filemap_study::engine::Progress for Bar {
    fn begin_at(&self, done: u64) {
        self.bar.set_position(done);
    }

    fn advance(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Prints how far `bar` is, until the sender of `done` is dropped.
fn print_lines(bar: &ProgressBar, done: &Receiver<()>) {
    let (started, mut pause) = (Instant::now(), SHOWN_AFTER);
    while done.recv_timeout(pause) == Err(Timeout) {
        let total = bar.length().map_or(String::new(), |total| format!(" of {total}"));
        let seconds = started.elapsed().as_secs();
        print_line(&format!("{}{total} jobs after {seconds} s", bar.position()));
        pause = LINE_INTERVAL;
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is one").progress_chars("=> ")
}
