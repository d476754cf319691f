//! A progress bar for what takes long.

use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What takes less shows no bar.
const SHOWN_AFTER: Duration = Duration::from_secs(2);

/// A bar on stderr, if that is a terminal; it is removed when this is dropped.
pub struct Progress {
    bar: ProgressBar,
    /// Dropping it ends the wait for the bar to be shown.
    _done: Sender<()>,
}

impl Progress {
    /// A bar for `total` jobs.
    pub fn new(total: usize) -> Self {
        let bar = ProgressBar::hidden();
        bar.set_length(total as u64);
        let (done, wait) = channel::<()>();
        if stderr().is_terminal() {
            let shown = bar.clone();
            let show = move || {
                use std::sync::mpsc::RecvTimeoutError::Timeout;
                if wait.recv_timeout(SHOWN_AFTER) == Err(Timeout) {
                    shown.set_style(style());
                    shown.set_draw_target(ProgressDrawTarget::stderr());
                    shown.enable_steady_tick(Duration::from_millis(200));
                }
            };
            // Where there is no room for a thread, there is no bar.
            let _ = thread::Builder::new().spawn(show);
        }
        Progress { bar, _done: done }
    }

    /// One job is done.
    pub fn advance(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style() -> ProgressStyle {
    let template = "{pos}/{len} jobs [{bar:40}] {elapsed}";
    ProgressStyle::with_template(template).expect("the template is one").progress_chars("=> ")
}
