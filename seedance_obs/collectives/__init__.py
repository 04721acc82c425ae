"""What a collective operation costs on a placement: NCCL's model of time, pure."""
