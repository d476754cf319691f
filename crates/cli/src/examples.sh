# Examples for the help and man page of each command: a description, then the command line.

# Compare every published table with the model's figures.
filemap published

# Show one series, with 100 seeds for each random cell.
filemap published mmap-miss --seeds 100

# Benchmark operations over large folios and compare with the published changes.
filemap published mm-owner

# Measure the cost of random accesses to a file larger than memory.
filemap run --workload random --file-size 4g --ram 2g

# Run a job file and also write the report as JSON.
filemap run job.toml --json record.json

# Print the job as a job file for editing.
filemap run --workload random --file-size 4g --ram 2g --show-job

# Plot the readahead windows of a job over time on an HTML page.
filemap run --workload random --file-size 4g --ram 2g --html page.html

# Run a job on the running kernel.
filemap run --on kernel --workload random --file-size 1g

# Write every decision of the model to a file, one JSON object per line.
filemap run --workload stride:7 --file-size 256m --log decisions.jsonl

# Write a timeline of faults, waits, windows and requests in flight, for ui.perfetto.dev.
filemap run job.toml --export trace.json

# Map, read and unmap files from many threads under a memory limit, as root on this kernel.
filemap run --on kernel --workload thrash --threads 64 --memory-max 128m

# Print the job file of this workload for editing.
filemap run --workload thrash --threads 64 --memory-max 128m --show-job

# Benchmark operations over folios of two sizes, with every mapcount scheme.
filemap folio-ops --size 64m --folio-sizes 64k,2m

# Count forgotten owners of folios, and the pages that a prefork server copies.
filemap folio-ops --owners

# Compare a job with and without a patch series.
filemap compare --workload random --file-size 4g --variants baseline,mmap-miss

# Compare the kernel's readahead with the governor's policy.
filemap compare --workload stride:1021 --file-size 4g --variants baseline,governor

# Compare the model with the running kernel on an existing file.
filemap compare --on model,kernel --workload random --file data.bin --runs 3

# Compare two kernels booted under QEMU.
filemap compare --on kernel --image old/bzImage --image new/bzImage --workload random --file-size 1g

# Compare two kernels on two jobs, booting each kernel once.
filemap compare one.toml two.toml --on kernel --image old/bzImage --image new/bzImage

# Print a comparison for mail to a kernel mailing list.
filemap compare --workload random --file-size 1g --seeds 5 --variants baseline,mmap-miss --format kernel

# Boot a kernel that can toggle a series and compare it off and on.
filemap compare job.toml --on kernel --image new/bzImage --variants baseline,vma-retry

# Compare how often retries after I/O miss, with and without vma-retry.
filemap compare --workload thrash --threads 64 --cpus 4 --sparse --memory-max 16m --variants baseline,vma-retry

# Compare the decisions of the running kernel with the model's, as root.
filemap conform

# Compare 30 random patterns, with a seed to make them reproducible.
filemap conform --fuzz 30 --seed 1

# Check that a kernel built with a series behaves like the model with that series.
filemap conform --image bzImage --with mmap-miss --fuzz 30

# Explain which bytes a job read, with charts on an HTML page.
filemap explain --workload random --file-size 4g --read-ahead-kb 8192 --html random.html

# Render an HTML page from an earlier record.
filemap report record.json --html page.html

# Write the events of a recording as a table, for pandas, DuckDB or a spreadsheet.
filemap report program.recording --export touches.csv

# Find settings that help a recorded program.
filemap advise lookups.recording

# Find settings for a machine with 2 GiB of RAM and another readahead size.
filemap advise lookups.recording --ram 2g --read-ahead-kb 8192

# Verify the best settings by rerunning the recorded program.
filemap advise lookups.recording --check

# Write all results to an HTML page with charts.
filemap advise lookups.recording --html advice.html

# Measure this machine with a temporary file of 256 MiB.
filemap calibrate --file-size 256m

# Run a program with a cold page cache and record which pages of its files it touches.
filemap record -- ./lookups data.db

# Record the startup of a program as root, including libraries of 4 KiB or more.
filemap record --change-settings --include '*' --min-size 4k -o start.recording -- git log

# Import the faults of a perf recording.
filemap record --import perf-script trace.txt -o trace.recording

# Print a recording as a job file. Other commands also accept the recording itself.
filemap record --show trace.recording

# Find jobs in which a series causes more major faults.
filemap search --variants baseline,vma-bound --worse majors

# Search for a minute for jobs in which advice reads more.
filemap search --variants baseline,advice=random --worse bytes --duration 60s

# Search variations of a job file for jobs in which a series reads more.
filemap search job.toml --variants baseline,mmap-miss --worse bytes --jobs 2000

# Write jobs in which a series changes decisions of 6.12, with a state file to resume from.
filemap search --kernel 6.12 --variants baseline,p1 --differ -o found --state state

# Show what filemap can do on this machine and what is missing.
filemap doctor

# Run ripgrep with filemap controlling the readahead of its mappings.
filemap govern -- rg --mmap pattern data.txt

# Govern by a recording of the program instead of a first run that is only watched.
filemap govern --plan lookups.recording -- ./lookups data.db

# Read what a recorded start touched, while the program starts.
filemap govern --prefetch start.recording -- python3 -c 'import numpy'

# Remove what is remembered of a file.
filemap govern --forget data.db

# Govern a cgroup, with metrics for node_exporter's textfile collector.
filemap govern --cgroup system.slice/db.service --metrics /var/lib/node_exporter/filemap.prom

# Govern a running process for a minute and print a report.
filemap govern --pid 4711 --duration 60s

# Dry run for a service.
filemap govern --observe --cgroup database.service --duration 60s

# Restore the advice that a killed governor left behind in a process.
filemap govern --release --pid 4711

# Compare a program plain and governed, with a cold page cache.
filemap govern --compare --runs 7 -- rg --mmap pattern data.txt

# Write the statistics of each process to a JSON file.
filemap govern --json statistics.json -- ./lookups data.db

# Exclude files by pattern, and mappings smaller than 256 MiB.
filemap govern --min-size 256m --exclude '*.idx' -- python3 train.py

# Install the man pages.
filemap man -o ~/.local/share/man/man1

# Print the bash completions, for ~/.local/share/bash-completion/completions/filemap.
filemap completions bash

# Print the JSON schema of job files.
filemap schema job

# Write all schemas to a directory.
filemap schema -o schemas
