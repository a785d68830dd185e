"""What runs a sweep: processes on this machine, Ray, or Slurm. All call `forethought.experiments.runs.run_one`.

| module | where | brings it |
|---|---|---|
| `inline` | this machine | |
| `ray` | this machine's GPUs, or a Ray cluster | `forethought[ray]` |
| `slurm` | a Slurm cluster, as a job array | `forethought[slurm]` |
"""
