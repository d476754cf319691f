use filemap_job::*;
use filemap_model::*;
fn main() {
    let kernel = std::env::args().nth(1).unwrap_or("6.18".into());
    let t0 = std::time::Instant::now();
    for size in ["20g", "4g"] {
        for w in ["random", "stride:1021", "stride:2053", "stride:4099", "sequential"] {
            for v in ["baseline", "p1", "p2", "p1+p2"] {
                let spec = JobSpec { kernel: Some(kernel.clone()), with: (v != "baseline").then(|| v.into()), workload: Some(w.into()),
                    file_size: Some(SizeText(size.into())), ram: Some(SizeText("8g".into())), read_ahead_kb: Some(8192), ..Default::default() };
                let job = spec.validate(None).unwrap();
                let t = std::time::Instant::now();
                let r = trace(&job, &Profile::DEFAULT, &mut ()).unwrap().run;
                println!("{size} {w} {v}: {:.3} GiB {:.3} s maj {} miss {:?} [{:.1} ms]", r.counters.bytes_read.unwrap() as f64 / (1u64 << 30) as f64, r.elapsed_ns.unwrap() as f64 / 1e9, r.counters.major_faults.unwrap(), r.counters.mmap_miss, t.elapsed().as_secs_f64()*1e3);
            }
        }
    }
    println!("{:?}", t0.elapsed());
}
