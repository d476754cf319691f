//! Processes of our own are followed. The binary has a main of its own because they are this
//! binary, run again.

mod bench;
mod children;
mod files;
#[path = "../../../kernel/tests/support/in_turn.rs"]
mod in_turn;
mod mappings;
mod program;
mod running;
#[path = "../../../kernel/tests/support/session.rs"]
mod session;
#[path = "../../../kernel/tests/support/skip.rs"]
mod skip;
mod storm;

use bench::Bench;

const TESTS: [in_turn::Test<Bench>; 13] = [
    ("each first touch is told once, in order", children::first_touches),
    ("page tables show the same pages", children::page_tables),
    ("children of children are followed", children::descendants),
    ("a running process is added", running::added),
    ("a running process is added by its page tables", running::added_by_page_tables),
    ("what cannot be followed is named", running::refusals),
    ("page tables stand in where perf events are refused", running::stands_in),
    ("a storm of faults is told or counted", storm::told_or_counted),
    ("single faults are told soon", storm::single_faults),
    ("many mappings are listed", mappings::many),
    ("what is mapped is known", mappings::queried),
    ("files that are mapped are opened", files::opened),
    ("nothing but a mapped file is opened", files::hostile),
];

fn main() {
    program::main_if_program();
    let bench = Bench::new();
    let files = open_files();
    in_turn::run("following", &TESTS, &bench);
    assert_eq!(open_files(), files, "descriptors are left");
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("own descriptors").count()
}
