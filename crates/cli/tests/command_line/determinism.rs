//! Output depends neither on the number of threads nor on the process.

use crate::filemap;

/// stdout of the command with `threads` threads.
fn printed(args: &str, threads: &str) -> Vec<u8> {
    let output = filemap(args).env("RAYON_NUM_THREADS", threads).output().expect("it starts");
    assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn cells_are_the_same_on_one_thread_and_on_two() {
    let args = "compare --workload random --file-size 256m --read-ahead-kb 2048 --ram 128m \
                --variants baseline,p1,p2,p1+p2,vma-bound,exec-unify --json -";
    let cells = |threads| {
        let report: serde_json::Value = serde_json::from_slice(&printed(args, threads)).unwrap();
        report["cells"].clone()
    };
    let one = cells("1");
    assert_eq!(one.as_array().map(Vec::len), Some(6), "{one}");
    for _ in 0..3 {
        assert_eq!(cells("2"), one);
    }
}

#[test]
fn the_log_is_the_same_in_every_process() {
    let args = "run --workload interleave:3 --file-size 64m --accesses 2000 --log -";
    let log = printed(args, "1");
    assert!(log.len() > 10_000, "{} bytes", log.len());
    assert_eq!(printed(args, "2"), log);
}
