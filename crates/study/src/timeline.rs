//! A run of the model as trace events, which Perfetto and Chrome show as a timeline.
//!
//! The format is JSON with an object of the key `traceEvents`, as specified in "Trace Event Format"
//! of the Chromium project. Its times are microseconds.

use std::io::{self, Write};

use filemap_core::decision::{Decision, Log, TaskWait, TaskWork};
use filemap_core::units::FileId;
use filemap_job::Job;
use serde_json::{Value, json};

/// Writes the spans of threads, their windows, and the requests in flight.
pub struct Timeline<'j, W> {
    job: &'j Job,
    out: W,
    /// The first error while writing.
    written: io::Result<()>,
    /// The running thread and its time.
    thread: usize,
    at_ns: u64,
    /// File of the following decisions.
    file: FileId,
    /// Changes of the number of requests in flight, each with its time.
    requests: Vec<(u64, i64)>,
}

impl<'j, W: Write> Timeline<'j, W> {
    /// A timeline of `job`, written to `out`.
    pub fn new(job: &'j Job, mut out: W) -> Timeline<'j, W> {
        // Each event is written after a separator.
        let written = out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}");
        let mut timeline = Timeline {
            job,
            out,
            written,
            thread: 0,
            at_ns: 0,
            file: FileId::FIRST,
            requests: Vec::new(),
        };
        timeline.write_names();
        timeline
    }

    /// Completes the timeline.
    ///
    /// # Errors
    /// The first error while writing.
    pub fn finish(mut self) -> (W, io::Result<()>) {
        self.write_requests();
        let end = self.written.and_then(|()| self.out.write_all(b"\n]}\n"));
        (self.out, end)
    }

    fn write_names(&mut self) {
        let device = self.device();
        for process in 0..self.job.processes.len() {
            let name = self.job.processes[process].clone();
            self.write_name("process_name", process + 1, 0, &name);
        }
        self.write_name("process_name", device, 0, "device");
        for (number, thread) in self.job.threads.iter().enumerate() {
            self.write_name("thread_name", thread.process + 1, number + 1, &thread.name);
        }
    }

    fn write_name(&mut self, kind: &str, pid: usize, tid: usize, name: &str) {
        let args = json!({ "name": name });
        self.write(&json!({ "ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args }));
    }

    /// The number in place of a process's that the device has.
    fn device(&self) -> usize {
        self.job.processes.len() + 1
    }

    /// The number of requests in flight at each time at which it changes.
    fn write_requests(&mut self) {
        let mut changes = std::mem::take(&mut self.requests);
        changes.sort_unstable_by_key(|(at_ns, _)| *at_ns);
        let (device, mut in_flight) = (self.device(), 0);
        for together in changes.chunk_by(|(at_ns, _), (next_ns, _)| at_ns == next_ns) {
            in_flight += together.iter().map(|(_, change)| change).sum::<i64>();
            self.write(&json!({
                "ph": "C", "name": "requests in flight", "ts": microseconds(together[0].0),
                "pid": device, "args": { "requests": in_flight },
            }));
        }
    }

    fn write(&mut self, event: &Value) {
        if self.written.is_ok() {
            let written = self.out.write_all(b",\n");
            self.written = written.and_then(|()| {
                serde_json::to_writer(&mut self.out, event).map_err(io::Error::from)
            });
        }
    }

    /// Writes a span of a thread.
    fn write_span(&mut self, thread: usize, name: &str, kind: &str, span: (u64, u64), args: Value) {
        let (from_ns, until_ns) = span;
        self.write(&json!({
            "ph": "X", "name": name, "cat": kind, "ts": microseconds(from_ns),
            "dur": microseconds(until_ns - from_ns), "pid": self.process(thread) + 1,
            "tid": thread + 1, "args": args,
        }));
    }

    /// Writes an event of the running thread that takes no time.
    fn write_instant(&mut self, name: &str, args: Value) {
        self.write(&json!({
            "ph": "i", "s": "t", "name": name, "cat": "window", "ts": microseconds(self.at_ns),
            "pid": self.process(self.thread) + 1, "tid": self.thread + 1, "args": args,
        }));
    }

    fn process(&self, thread: usize) -> usize {
        self.job.threads[thread].process
    }

    fn file_name(&self, file: FileId) -> &'j str {
        &self.job.files[file.number()].name
    }
}

impl<W: Write> Log for Timeline<'_, W> {
    fn record(&mut self, decision: Decision) {
        match decision {
            Decision::File { file } => self.file = file,
            Decision::Readahead { cause, index, start, size, async_size, .. } => {
                let args = json!({
                    "file": self.file_name(self.file), "page": index, "start": start,
                    "pages": size, "async_pages": async_size,
                });
                self.write_instant(&format!("window: {}", cause.name()), args);
            }
            Decision::NoReadahead { index, mmap_miss } => {
                let file = self.file_name(self.file);
                let args = json!({ "file": file, "page": index, "mmap_miss": mmap_miss });
                self.write_instant("no window", args);
            }
            _ => {}
        }
    }

    fn at(&mut self, task: usize, now_ns: u64) {
        (self.thread, self.at_ns) = (task, now_ns);
    }

    fn waited(&mut self, task: usize, wait: TaskWait, from_ns: u64, until_ns: u64) {
        let (name, args) = match wait {
            TaskWait::Page(file, page) => {
                ("wait: page", json!({ "file": self.file_name(file), "page": page }))
            }
            TaskWait::Room => ("wait: memory", json!({})),
            TaskWait::Cpu => ("wait: CPU", json!({})),
            TaskWait::Step => ("wait: other thread", json!({})),
            TaskWait::MmapRead => ("wait: mmap_lock, shared", json!({})),
            TaskWait::MmapWrite => ("wait: mmap_lock, exclusive", json!({})),
            TaskWait::VmaFaults => ("wait: faults in the VMA", json!({})),
        };
        self.write_span(task, name, "wait", (from_ns, until_ns), args);
    }

    fn ended(&mut self, task: usize, work: TaskWork, from_ns: u64, until_ns: u64) {
        let span = (from_ns, until_ns);
        match work {
            TaskWork::Fault { file, index, major } => {
                let name = if major { "major fault" } else { "minor fault" };
                let args = json!({ "file": self.file_name(file), "page": index });
                self.write_span(task, name, "fault", span, args);
            }
            TaskWork::Read { file, offset_bytes, length_bytes } => {
                let args = json!({
                    "file": self.file_name(file), "offset": offset_bytes, "bytes": length_bytes,
                });
                self.write_span(task, "read", "read", span, args);
            }
            TaskWork::Step(step) => {
                let does = self.job.describe_step(&self.job.threads[task].steps[step]);
                self.write_span(task, &does, "phase", span, json!({ "phase": step + 1 }));
            }
        }
    }

    fn requests_changed(&mut self, at_ns: u64, change: i64) {
        self.requests.push((at_ns, change));
    }
}

/// Nanoseconds as microseconds.
fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1000.0
}
