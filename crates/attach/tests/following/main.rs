//! Follows processes started by the tests. They run this test binary, which therefore has a `main`
//! of its own.

mod bench;
mod children;
mod files;
#[path = "../../../kernel/tests/support/harness.rs"]
mod harness;
mod mappings;
mod program;
mod running;
#[path = "../../../kernel/tests/support/session.rs"]
mod session;
#[path = "../../../kernel/tests/support/skip.rs"]
mod skip;
mod storm;

use std::process::ExitCode;

use bench::Bench;

const TESTS: &[harness::Test<Bench>] = harness::tests![
    children::reports_each_first_touch_once_in_order,
    children::page_tables_show_the_same_pages,
    children::follows_descendants,
    running::adds_running_process,
    running::adds_running_process_by_page_tables,
    running::names_what_cannot_be_followed,
    running::page_tables_replace_refused_perf_events,
    storm::reports_or_counts_every_fault,
    storm::reports_single_faults_soon,
    mappings::lists_many_mappings,
    mappings::queries_mappings,
    files::opens_mapped_files,
    files::opens_nothing_but_mapped_files,
];

fn main() -> ExitCode {
    program::main_if_program();
    let files = open_files();
    let code = harness::run(TESTS, || Ok(Bench::new()));
    assert_eq!(open_files(), files, "descriptors are left");
    code
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("own descriptors").count()
}
