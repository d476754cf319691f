//! The command that does the same again.

use filemap_job::{Job, shell_word};

use super::Given;
use crate::machine_profile;

impl Given {
    /// The command `name` that does with `job`, which came of this, the same again. What is said in
    /// phases and tables has no flags.
    pub fn command(&self, name: &str, job: &Job) -> String {
        if job.of_flags.as_ref().is_some_and(|flags| flags.phase.is_empty()) {
            return self.all_flags(name, job);
        }
        let words = ["filemap".to_string(), name.to_string()];
        let file = self.path.as_deref().filter(|_| !self.is_thrash).map(shell_word);
        words.into_iter().chain(file).chain(self.flags.flags()).collect::<Vec<_>>().join(" ")
    }

    /// The same, where flags say all of it.
    fn all_flags(&self, name: &str, job: &Job) -> String {
        let mut job = job.clone();
        if let Some(flags) = &mut job.of_flags {
            // Where no flag says otherwise, the machine is the same again.
            flags.machine = flags.machine.take().filter(|name| machine_profile::needs_said(name));
        }
        let command = job.command().replacen("filemap run", &format!("filemap {name}"), 1);
        let rules = format!("--kernel {}", job.rules.kernel.name());
        match self.kernel().as_deref() {
            // More than the rules is this machine's.
            Some("host") => command.replacen(&rules, "--kernel host", 1),
            _ => command,
        }
    }

    /// The text of its job file with tables.
    pub fn text(&self) -> String {
        match (&self.of_recording, self.written.tables()) {
            (Some(_), _) => format!("# filemap record --show {}\n", shell_word(&self.name())),
            (None, Some(tables)) => toml::to_string(tables).unwrap_or_default(),
            (None, None) => String::new(),
        }
    }
}
