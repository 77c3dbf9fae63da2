"""Measure everything: ``python -m benchmarks``."""

from benchmarks import (
    bench_collectives,
    bench_faults,
    bench_map,
    bench_mpi,
    bench_pages,
    bench_primitives,
    bench_profiler,
    bench_programs,
    bench_record,
    bench_recording,
    bench_registration,
    bench_start,
    bench_temporaries,
    bench_virtual,
    bench_waiting,
    bench_work,
)
from benchmarks.command import run

if __name__ == "__main__":
    run(
        [
            bench_primitives.BENCHMARK,
            bench_collectives.BENCHMARK,
            bench_waiting.BENCHMARK,
            bench_record.BENCHMARK,
            bench_recording.BENCHMARK,
            bench_registration.BENCHMARK,
            bench_start.BENCHMARK,
            bench_temporaries.BENCHMARK,
            bench_map.BENCHMARK,
            bench_programs.BENCHMARK,
            bench_profiler.BENCHMARK,
            bench_pages.BENCHMARK,
            bench_virtual.BENCHMARK,
            bench_work.BENCHMARK,
            bench_faults.BENCHMARK,
            bench_mpi.BENCHMARK,
        ]
    )
