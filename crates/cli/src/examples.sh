# Examples of each command, for its help and its man page: what one does, and its command line.

# Show every published table beside the model's figures.
filemap published

# Show one series, with 100 seeds for each random cell.
filemap published mmap-miss --seeds 100

# Time operations over large folios, beside the published changes.
filemap published mm-owner

# Count what random accesses to a file larger than memory cost.
filemap run --workload random --file-size 4g --ram 2g

# Run a job file, and also write the report as JSON.
filemap run job.toml --json record.json

# Print the same job as a job file, to change it.
filemap run --workload random --file-size 4g --ram 2g --show-job

# Draw the windows of a job along its run, on a page for a browser.
filemap run --workload random --file-size 4g --ram 2g --html page.html

# Run the same kind of job on the kernel of this machine.
filemap run --on kernel --workload random --file-size 1g

# Write every decision of the model to a file, one JSON object a line.
filemap run --workload stride:7 --file-size 256m --log decisions.jsonl

# Let threads map, read and unmap files under one memory limit, as root on this kernel.
filemap run --on kernel --workload thrash --threads 64 --memory-max 128m

# Print the job file of such threads, to change what they do.
filemap run --workload thrash --threads 64 --memory-max 128m --show-job

# Time operations over folios of two sizes, with every way to count who maps them.
filemap folio-ops --size 64m --folio-sizes 64k,2m

# Count which owners of a folio are forgotten, and what a prefork server copies.
filemap folio-ops --owners

# Time the same on this kernel, as root, with settings that are restored.
filemap folio-ops --on kernel --folio-sizes 64k,2m --change-settings

# Compare a job without and with a patch series.
filemap compare --workload random --file-size 4g --variants baseline,mmap-miss

# Compare the kernel's readahead with that of the governor's policy.
filemap compare --workload stride:1021 --file-size 4g --variants baseline,governor

# Compare the model with the kernel of this machine, on a file of your own.
filemap compare --on model,kernel --workload random --file data.bin --runs 3

# Compare two kernels that are booted under QEMU.
filemap compare --on kernel --image old/bzImage --image new/bzImage --workload random --file-size 1g

# Do so for two jobs, in one boot of each kernel.
filemap compare one.toml two.toml --on kernel --image old/bzImage --image new/bzImage

# Print the comparison for a mail to a kernel list.
filemap compare --workload random --file-size 1g --seeds 5 --variants baseline,mmap-miss --format kernel

# Boot a kernel that can switch its series with the switch off and on.
filemap compare job.toml --on kernel --image new/bzImage --variants baseline,vma-retry

# Compare how often retries after I/O miss, without and with vma-retry.
filemap compare --workload thrash --threads 64 --cpus 4 --sparse --memory-max 16m --variants baseline,vma-retry

# Compare the decisions of the running kernel with the model's, as root.
filemap conform

# Do so for 30 random patterns. The seed makes them repeatable.
filemap conform --fuzz 30 --seed 1

# See whether a kernel that was built with a series does what the model's switch does.
filemap conform --image bzImage --with mmap-miss --fuzz 30

# Say where the bytes of a job came from, and draw it.
filemap explain --workload random --file-size 4g --read-ahead-kb 8192 --html random.html

# Make the page of a run that was recorded earlier.
filemap report record.json --html page.html

# Say what would help a program of which there is a recording.
filemap advise lookups.recording

# Say the same for a machine with 2 GiB of RAM and another readahead size.
filemap advise lookups.recording --ram 2g --read-ahead-kb 8192

# Run the recorded program again with the best answers, to see whether they hold.
filemap advise lookups.recording --check

# Write what was tried as a page with pictures.
filemap advise lookups.recording --html advice.html

# Measure this machine with a temporary file of 256 MiB.
filemap calibrate --file-size 256m

# Run a program and record which pages of its files it touches. It reads them anew.
filemap record -- ./lookups data.db

# Record the start of a program as root, with its libraries of 4 KiB and more.
filemap record --change-settings --include '*' --min-size 4k -o start.recording -- git log

# Make a recording of the faults that perf has recorded.
filemap record --import perf-script trace.txt -o trace.recording

# Print a recording as a job file. The other commands take the recording itself too.
filemap record --show trace.recording

# Find jobs in which a series has more major faults.
filemap search --variants baseline,vma-bound --worse majors

# Look for jobs in which advice reads more, for a minute.
filemap search --variants baseline,advice=random --worse bytes --duration 60s

# Write the jobs that tell a series from the rules of 6.12, and keep a state to go on from.
filemap search --kernel 6.12 --variants baseline,p1 --differ -o found --state state

# List what filemap can do on this machine, and what is missing.
filemap doctor

# Run ripgrep with its file mappings governed.
filemap govern -- rg --mmap pattern data.txt

# Govern a running process for a minute, and show what was done.
filemap govern --pid 4711 --duration 60s

# See what would be done for a service, without doing it.
filemap govern --observe --cgroup database.service --duration 60s

# Restore what a killed governor has left in a process.
filemap govern --release --pid 4711

# Compare a program plain and governed, with a cold page cache.
filemap govern --compare --runs 7 -- rg --mmap pattern data.txt

# Write what was done for each process of a program.
filemap govern --json statistics.json -- ./lookups data.db

# Leave one kind of file alone, and mappings below 256 MiB.
filemap govern --min-size 256m --exclude '*.idx' -- python3 train.py

# Write the man pages to a directory of man.
filemap man -o ~/.local/share/man/man1

# Print the completions for bash, for ~/.local/share/bash-completion/completions/filemap.
filemap completions bash

# Print the JSON schema of job files.
filemap schema job

# Write every schema to a directory.
filemap schema -o schemas
