//! A progress bar for what takes long.

use std::io::{IsTerminal, Write, stderr};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What a bar shows.
const OF_TOTAL: &str = "{pos}/{len} jobs [{bar:40}] {elapsed}";

/// The same where nobody knows how many jobs there will be.
const ENDLESS: &str = "{pos} jobs {elapsed}";

/// What takes less shows no bar.
const SHOWN_AFTER: Duration = Duration::from_secs(2);

/// Clears the line of a terminal, on which a bar may stand.
pub const CLEAR_LINE: &str = "\r\x1b[2K";

/// Tells `line` on stderr while a command goes on.
pub fn tell(line: &str) {
    let cleared = if stderr().is_terminal() { CLEAR_LINE } else { "" };
    // At once: a bar is drawn by another thread. Nobody is left to be told if stderr is closed.
    let _ = stderr().write_all(format!("{cleared}filemap: {line}\n").as_bytes());
}

/// A bar on stderr, if that is a terminal; it is removed when this is dropped.
pub struct Bar {
    bar: ProgressBar,
    /// Dropping it ends the wait for the bar to be shown.
    _done: Sender<()>,
}

impl Bar {
    /// A bar for `total` jobs; `None` is as many as there is time for.
    pub fn of(total: Option<u64>) -> Self {
        let bar = ProgressBar::hidden();
        total.iter().for_each(|&total| bar.set_length(total));
        let style = style(if total.is_some() { OF_TOTAL } else { ENDLESS });
        let (done, wait) = channel::<()>();
        if stderr().is_terminal() {
            let shown = bar.clone();
            let show = move || {
                use std::sync::mpsc::RecvTimeoutError::Timeout;
                if wait.recv_timeout(SHOWN_AFTER) == Err(Timeout) {
                    shown.set_style(style);
                    shown.set_draw_target(ProgressDrawTarget::stderr());
                    shown.enable_steady_tick(Duration::from_millis(200));
                }
            };
            // Where there is no room for a thread, there is no bar.
            let _ = thread::Builder::new().spawn(show);
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

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is one").progress_chars("=> ")
}
