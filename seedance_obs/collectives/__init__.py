"""What a collective operation costs on a placement: NCCL's model of time, pure.

`collective` has the operations and the two bandwidths that nccl-tests state, `tuning` NCCL's
constants, `latency`, `plan_bandwidth` and `fastest` what NCCL plans by them. `nccl_tests` reads
what was measured, `calibration` answers from it, `calibration_file` keeps it; `model` joins both.
"""
