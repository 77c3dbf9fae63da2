"""The external sort gives what numpy's sort gives, and leaves a file whole if it fails."""

from __future__ import annotations

import errno
import os
import resource
import signal
import threading
import tracemalloc
from functools import partial
from pathlib import Path

import hypothesis.extra.numpy as npst
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

import bsplib
from bsplib.apps.sorting import external_sort, keycheck, keyfile
from bsplib.apps.sorting.blocks import BlockTable, Pair, SplitLevel, levels
from bsplib.apps.sorting.keys import DISTRIBUTIONS, block_of
from bsplib.apps.sorting.overlapped_io import make_buffers, stream
from bsplib.profiler.costs import h_relation
from bsplib.recording.trace import read_trace
from tests.drawn import examples
from tests.processes import run_python

COUNTS = (1, 3, 16)
MANY = examples(8, suppress_health_check=list(HealthCheck))
FEW = examples(3, suppress_health_check=list(HealthCheck))

DTYPES = (
    npst.boolean_dtypes()
    | npst.integer_dtypes(endianness="?")
    | npst.unsigned_integer_dtypes()
    | npst.floating_dtypes(endianness="?", sizes=(16, 32, 64))
    | npst.datetime64_dtypes(endianness="?")
    | npst.byte_string_dtypes(min_len=1, max_len=5)
    | npst.unicode_string_dtypes(min_len=1, max_len=3)
)
KEYS = npst.arrays(DTYPES, st.integers(0, 200))
FLOATS = npst.arrays(
    np.float64, st.integers(0, 200), elements=st.sampled_from([np.nan, np.inf, -1.5, 0.0, -0.0])
)


@pytest.fixture(scope="module")
def check(run_on, tmp_path_factory):
    """Sorts by blocks of ``length`` keys; nothing but the result is left behind."""
    folder = tmp_path_factory.mktemp("keys")
    source, target = folder / "keys.npy", folder / "sorted.npy"

    def check(keys, length, nprocs, backend="sim", *, descending=False):
        np.save(source, keys)
        reports = external_sort.sort_file(
            *(source, target),
            memory=external_sort.SHARES * nprocs * keys.itemsize * length,
            descending=descending,
            force=True,
            run=partial(run_on, nprocs=nprocs, backend=backend),
        )
        got, expected = np.load(target), np.sort(keys)
        np.testing.assert_array_equal(got, expected[:: -1 if descending else 1])
        assert got.dtype == keys.dtype
        np.testing.assert_array_equal(np.load(source), keys)
        assert sorted(os.listdir(folder)) == ["keys.npy", "sorted.npy"]
        return reports

    return check


@pytest.mark.parametrize("nprocs", COUNTS)
class TestAgainstNumpy:
    @MANY
    @given(keys=KEYS | FLOATS, length=st.integers(1, 40), descending=st.booleans())
    @example(keys=np.empty(0), length=1, descending=False)
    @example(keys=np.arange(300)[::-1].copy(), length=1, descending=True)
    def test_virtual_processors_sort_keys_of_any_dtype(
        self, check, nprocs, keys, length, descending
    ):
        check(keys, length, nprocs, descending=descending)

    @pytest.mark.parametrize("backend", ["shm"])
    @FEW
    @given(keys=KEYS | FLOATS, length=st.integers(1, 40), descending=st.booleans())
    def test_real_processes_sort_keys_of_any_dtype(
        self, check, nprocs, backend, keys, length, descending
    ):
        check(keys, length, nprocs, backend, descending=descending)

    @pytest.mark.parametrize("backend", ["shm", "sim"])
    def test_fewer_keys_than_processes_are_sorted(self, check, nprocs, backend):
        for size in range(4):
            check(np.arange(size)[::-1].copy(), 1, nprocs, backend)


@pytest.mark.parametrize("backend", ["shm", "sim"])
@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("descending", [True, False])
def test_blocks_of_whole_pages_are_sorted_with_and_without_the_page_cache(
    run_on, tmp_path, backend, direct, descending
):
    keys = np.random.default_rng(0).integers(-(2**60), 2**60, 30_001)
    keys.tofile(tmp_path / "keys")
    external_sort.sort_file(
        tmp_path / "keys",
        dtype=np.int64,
        memory=external_sort.SHARES * 3 * 2 * keyfile.PAGE,
        direct=direct,
        descending=descending,
        run=partial(run_on, nprocs=3, backend=backend),
    )
    got = np.fromfile(tmp_path / "keys", np.int64)
    np.testing.assert_array_equal(got, np.sort(keys)[:: -1 if descending else 1])


def test_records_are_sorted_field_by_field(check):
    keys = np.random.default_rng(2).integers(0, 4, (200, 2)).astype(np.int32)
    table = keys.view([("a", np.int32), ("b", np.int32)])[:, 0]
    check(table, 7, 2)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13])
def test_blocks_of_one_key_are_sorted_from_every_row_of_zeros_and_ones(count):
    """By the 0-1 principle any blocks of one key then are."""
    for bits in range(2**count if count < 8 else 200):
        keys = np.array([bits >> place & 1 for place in range(count)], np.uint8)
        table = BlockTable.of(count, 1, keys.dtype)
        table.ends["position"] = np.arange(count)
        table.ends["least"] = table.ends["greatest"] = keys
        for level in levels(count, 1):
            assert not table.to_split(level)  # of one key each, they only change their names
        np.testing.assert_array_equal(keys[table.slots], np.sort(keys))


# -- how often the keys are read -----------------------------------------------------------------


def passes(reports, keys):
    return sum(report.read_bytes for report in reports) / keys.nbytes


def test_keys_in_order_are_read_twice(check):
    keys = np.arange(3000.0)
    reports = check(keys, 20, 2)
    assert passes(reports, keys) == 2
    assert sum(report.written_bytes for report in reports) == 2 * keys.nbytes


@pytest.mark.lengthy
@pytest.mark.parametrize("backend", ["shm", "sim"])
def test_random_keys_are_read_about_twice_a_merge(check, backend):
    keys = np.random.default_rng(1).random(64 * 500)
    reports = check(keys, 500, 2, backend)
    merges = 5  # of lists of 2 blocks to one of 64
    assert 1 + merges <= passes(reports, keys) <= 1 + 2 * merges
    assert reports[0].levels == 1 + sum(range(2, 7))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_no_keys_are_read_more_often_than_there_are_levels(check, distribution):
    keys = block_of(16 * 40, 0, 1, distribution=distribution)
    reports = check(keys, 40, 2)
    assert reports[0].levels == 1 + 2 + 3 + 4
    assert passes(reports, keys) <= reports[0].levels_read <= reports[0].levels


def test_a_file_that_fits_is_read_and_written_once(check):
    keys = np.random.default_rng(1).random(1000)
    reports = check(keys, 1000, 1)
    assert passes(reports, keys) == 1


@pytest.mark.lengthy
def test_h_is_what_is_told_of_the_blocks(tmp_path):
    keys = np.random.default_rng(1).random(64 * 50)
    np.save(tmp_path / "keys.npy", keys)
    path = tmp_path / "trace.bsp"
    external_sort.sort_file(
        tmp_path / "keys.npy",
        memory=external_sort.SHARES * 4 * 50 * 8,
        nprocs=4,
        backend="sim",
        profile=path,
    )
    (run,) = read_trace(path).runs
    assert np.maximum(*h_relation(run)).max() <= 64 * (2 * 8 + 8)


@pytest.mark.lengthy
def test_sorting_and_merging_take_no_more_memory_than_that(run_on, tmp_path):
    np.save(tmp_path / "keys.npy", np.random.default_rng(1).random(2**21))
    memory = 4 << 20
    tracemalloc.start()
    try:
        external_sort.sort_file(
            tmp_path / "keys.npy", memory=memory, run=partial(run_on, nprocs=1, backend="sim")
        )
        assert tracemalloc.get_traced_memory()[1] < memory  # the mapped buffers are not in it
    finally:
        tracemalloc.stop()


# -- the network -----------------------------------------------------------------------------------


def test_levels_go_from_mirror_images_down_to_neighbours():
    assert levels(8, 2) == [
        SplitLevel(4, 0),
        SplitLevel(4, 1),
        SplitLevel(8, 0),
        SplitLevel(8, 2),
        SplitLevel(8, 1),
    ]
    assert list(SplitLevel(4, 0).pairs(7)) == [Pair(0, 3), Pair(1, 2), Pair(5, 6)]
    assert list(SplitLevel(8, 2).pairs(7)) == [Pair(0, 2), Pair(1, 3), Pair(4, 6)]


# -- overlap ------------------------------------------------------------------------------------


def test_the_next_job_is_read_and_the_last_one_written_while_one_is_done():
    """Each job's work waits for its neighbours' transfers to have begun: else it hangs."""
    count = 6
    begun = {what: [threading.Event() for _ in range(count)] for what in ("read", "write")}

    def read(job, buffer):
        begun["read"][job].set()
        buffer[0] = job

    def work(job, buffer):
        assert buffer[0] == job
        if job + 1 < count:
            assert begun["read"][job + 1].wait(30)
        if job:
            assert begun["write"][job - 1].wait(30)

    written = []

    def write(job, buffer):
        begun["write"][job].set()
        written.append((job, int(buffer[0])))

    stream(range(count), make_buffers(8), read, work, write)
    assert written == [(job, job) for job in range(count)]


@pytest.mark.parametrize("part", [0, 1, 2])
def test_what_a_transfer_raises_is_raised(part):
    def fail(job, _):
        if job == 3:
            raise OSError(errno.EIO, "broken")

    parts = [lambda *_: None] * 3
    parts[part] = fail
    with pytest.raises(OSError, match="broken"):
        stream(range(8), make_buffers(8), *parts)


# -- failures leave everything as it was ---------------------------------------------------------


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "keys.npy"
    np.save(path, np.random.default_rng(0).random(5000))
    return path


def assert_untouched(source, before):
    assert source.read_bytes() == before
    assert os.listdir(source.parent) == [source.name]


SMALL = {"memory": external_sort.SHARES * 3 * 8 * 100}


@pytest.mark.parametrize("backend", ["shm", "sim"])
class TestFailure:
    @pytest.mark.parametrize("name", ["preadv", "pwrite"])
    @pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
    def test_a_transfer_that_fails(self, monkeypatch, source, backend, name, number):
        before, calls, real = source.read_bytes(), [], getattr(os, name)

        def fail(*arguments):
            calls.append(arguments)
            if len(calls) > 20:
                raise OSError(number, os.strerror(number))
            return real(*arguments)

        monkeypatch.setattr(os, name, fail)
        words = "there is no space beside" if number == errno.ENOSPC else "Input/output error"
        with pytest.raises(OSError, match=words):
            external_sort.sort_file(source, nprocs=3, backend=backend, **SMALL)
        monkeypatch.undo()
        assert_untouched(source, before)

    def test_a_full_disk_is_noticed_before_anything_is_read(self, monkeypatch, source, backend):
        before = source.read_bytes()

        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "posix_fallocate", full)
        with pytest.raises(OSError, match=r"the sort needs 80000 bytes, and \d+ are free"):
            external_sort.sort_file(source, nprocs=3, backend=backend, **SMALL)
        assert_untouched(source, before)

    def test_a_result_that_cannot_get_its_name(self, monkeypatch, source, backend):
        before = source.read_bytes()

        def refuse(*_):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(os, "replace", refuse)
        with pytest.raises(PermissionError):
            external_sort.sort_file(source, nprocs=3, backend=backend, **SMALL)
        assert_untouched(source, before)

    def test_too_little_memory_for_a_single_key(self, source, backend):
        before = source.read_bytes()
        with pytest.raises(
            ValueError,
            match="100 bytes are too few; 3 processes that sort keys of 8 bytes need 168 at least",
        ):
            external_sort.sort_file(source, nprocs=3, backend=backend, memory=100)
        assert_untouched(source, before)


def test_a_process_that_is_killed(monkeypatch, source):
    before = source.read_bytes()

    def kill(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(external_sort, "merge", kill)  # the processes are forked
    with pytest.raises(bsplib.ProcessDiedError):
        external_sort.sort_file(source, nprocs=3, start_method="fork", **SMALL)
    assert_untouched(source, before)


def test_the_target_of_a_sort_that_fails_stays(monkeypatch, source, tmp_path):
    target = tmp_path / "other" / "sorted.npy"
    target.parent.mkdir()
    target.write_bytes(b"as it was")
    monkeypatch.setattr(external_sort, "merge", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        external_sort.sort_file(source, target, force=True, nprocs=2, backend="sim", **SMALL)
    assert target.read_bytes() == b"as it was"
    assert os.listdir(target.parent) == ["sorted.npy"]


def test_a_result_keeps_the_permissions_and_goes_where_a_link_points(source, tmp_path):
    source.chmod(0o640)
    link = tmp_path / "link.npy"
    link.symlink_to(source)
    keys = np.load(source)
    external_sort.sort_file(link, nprocs=2, backend="sim", **SMALL)
    assert link.is_symlink()
    np.testing.assert_array_equal(np.load(source), np.sort(keys))
    assert source.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("shape", ["(-1,)", "(-5000,)"])
def test_a_header_with_a_negative_shape_is_refused_and_the_file_untouched(source, shape):
    content = source.read_bytes()
    width = len("(5000,), ")
    before = content.replace(b"(5000,), ", f"{shape},".ljust(width).encode()[:width], 1)
    assert before != content
    source.write_bytes(before)
    with pytest.raises(ValueError, match=r"damaged header of \.npy: its shape is \(-"):
        external_sort.sort_file(source, nprocs=2, backend="sim", **SMALL)
    assert_untouched(source, before)


@pytest.mark.parametrize("in_place", [True, False])
def test_keys_beyond_the_count_of_the_header_are_refused_and_the_file_untouched(
    source, tmp_path, in_place
):
    before = source.read_bytes() + bytes(16)
    source.write_bytes(before)
    target = None if in_place else tmp_path / "sorted.npy"
    with pytest.raises(ValueError, match="end at byte 40128, and it has 40144"):
        external_sort.sort_file(source, target, nprocs=2, backend="sim", **SMALL)
    assert_untouched(source, before)


def test_a_target_that_is_no_regular_file_is_refused_and_stays(source, tmp_path):
    before = source.read_bytes()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for target, kind in ((pipe, "a named pipe"), (Path("/dev/null"), "a device")):
        with pytest.raises(ValueError, match=f"is {kind}; choose the name of a file"):
            external_sort.sort_file(source, target, nprocs=2, backend="sim", **SMALL)
    with pytest.raises(ValueError, match="pipe is a named pipe; name a file with keys"):
        external_sort.sort_file(pipe, source, nprocs=2, backend="sim", **SMALL)
    pipe.unlink()
    assert_untouched(source, before)


# -- files that cannot be sorted ------------------------------------------------------------------


def invoke(*line):
    return CliRunner().invoke(external_sort.command, [str(word) for word in line])


class TestCommandLine:
    @pytest.mark.parametrize("backend", ["shm", "sim"])
    def test_without_a_file_one_is_made_and_checked(self, backend):
        result = invoke("--size", 20_000, "--memory", "64KiB", "--backend", backend)
        assert result.exit_code == 0, result.output
        assert "sorted 20000 keys in" in result.output
        assert result.output.endswith("written, checked\n") or "virtual time" in result.output

    def test_bare_keys_are_sorted_into_another_file(self, tmp_path):
        keys = np.random.default_rng(0).integers(0, 99, 3000).astype(">i4")
        keys.tofile(tmp_path / "keys")
        line = [tmp_path / "keys", tmp_path / "sorted", "--dtype", ">i4", "--memory", "4KiB"]
        result = invoke(*line, "--descending", "--verify", "-n", 2)
        assert result.exit_code == 0, result.output
        got = np.fromfile(tmp_path / "sorted", ">i4")
        np.testing.assert_array_equal(got, np.sort(keys)[::-1])

    def test_what_numpy_has_written_is_sorted_in_place(self, source):
        result = invoke(source, "--memory", "16KiB", "--nprocs", 2, "--cached")
        assert result.exit_code == 0, result.output
        keys = np.load(source)
        assert (np.diff(keys) >= 0).all()

    def test_a_result_that_is_wrong_is_found(self, monkeypatch, source):
        monkeypatch.setattr(external_sort, "merge", lambda keys: None)
        result = invoke(source, "--memory", "16KiB", "--nprocs", 2, "--backend", "sim", "--verify")
        assert result.exit_code == 1
        assert "has other keys, or not in order" in result.output

    @pytest.mark.lengthy
    def test_a_full_disk_is_one_sentence(self, source):
        """The system itself refuses: no file may be longer than a page."""
        before = source.read_bytes()
        words = "-m", "bsplib.apps.sorting.external_sort", source, "--memory", "64KiB"
        done = run_python(
            *words,
            cwd=Path(external_sort.__file__).parents[2],
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},  # else it cuts bytecode short
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        )
        assert done.returncode == 1
        assert done.stderr.startswith("Error: there is no space beside")
        assert "Traceback" not in done.stderr
        assert_untouched(source, before)

    @pytest.mark.parametrize(
        ("content", "line", "message"),
        [
            (None, [], "No such file or directory"),
            (b"12345", [], "is no .npy file: give the dtype of its keys"),
            (b"12345", ["--dtype", "i4"], "has 5 bytes, which is no number of keys of 4 bytes"),
            (b"12345", ["--dtype", "O"], "of dtype object cannot be stored in a file"),
            (b"12345", ["--dtype", "what"], "'what' is no dtype of numpy, such as int64 or S10"),
            (b"\x93NUMPY\x01\x00", [], "has a damaged header of .npy"),
            (np.zeros((2, 3)), [], "those of FILE have shape (2, 3)"),
            (np.zeros(3), ["--dtype", "i4"], "FILE has keys of dtype float64, not int32"),
            (np.zeros(3), ["--memory", "1KB"], "'1KB' is no number of bytes, such as 4096"),
            (np.zeros(3), ["--memory", "8"], "memory: 8 bytes are too few; 2 processes"),
            (np.array([None]), [], "of dtype object cannot be stored in a file"),
        ],
    )
    def test_what_cannot_be_sorted_is_one_sentence(self, tmp_path, content, line, message):
        path = tmp_path / "keys"
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content is not None:
            with path.open("wb") as file:
                np.save(file, content, allow_pickle=True)
        before = sorted(tmp_path.iterdir())
        result = invoke(path, "--nprocs", 2, *line)
        assert result.exit_code in (1, 2)
        assert message.replace("FILE", str(path)) in result.output
        assert "Traceback" not in result.output
        assert sorted(tmp_path.iterdir()) == before

    def test_a_file_that_breaks_off_is_one_sentence(self, source):
        source.write_bytes(source.read_bytes()[:-1])
        result = invoke(source)
        assert result.exit_code == 1
        assert "not as long as its header says: 5000 keys of dtype float64" in result.output
        assert "end at byte 40128, and it has 40127" in result.output

    def test_a_file_that_may_not_be_read_is_one_sentence(self, monkeypatch, source):
        def refuse(path, _):  # the system would let root read it
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

        monkeypatch.setattr(keyfile, "open", refuse, raising=False)
        result = invoke(source)
        assert result.exit_code == 1
        assert result.output == f"Error: {source}: Permission denied\n"

    def test_a_folder_that_is_not_there_is_named(self, source, tmp_path):
        result = invoke(source, tmp_path / "no" / "sorted.npy")
        assert result.exit_code == 1
        assert result.output == f"Error: {tmp_path / 'no'}: No such file or directory\n"

    def test_keys_that_cannot_be_made_are_one_sentence(self):
        result = invoke("--dtype", "int16")
        assert result.exit_code == 1
        assert "'int16' is not one of float64" in result.output


# -- checking -------------------------------------------------------------------------------------


def tell(part):
    assert 0 <= part <= 1


@pytest.fixture
def written(tmp_path):
    def write(keys):
        path = tmp_path / "keys.npy"
        np.save(path, keys)
        return keyfile.find_keys(path)

    return write


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("dtype", ["float64", "str"])
def test_keys_are_made_chunk_by_chunk(monkeypatch, tmp_path, distribution, dtype):
    monkeypatch.setattr(keycheck, "CHUNK", 100)
    path = tmp_path / "keys.npy"
    keys = keycheck.make_keys(path, 950, tell, distribution=distribution, dtype=dtype, seed=1)
    assert len(np.load(path)) == keys.count == 950


def test_order_is_looked_for_across_chunks(monkeypatch, written):
    monkeypatch.setattr(keycheck, "CHUNK", 7)
    rising = np.append(np.repeat(np.arange(20.0), 3), [np.nan, np.nan])
    assert keycheck.in_order(written(rising), tell, descending=False)
    assert keycheck.in_order(written(rising[::-1]), tell, descending=True)
    for place in range(2, 60, 3):
        broken = rising.copy()
        broken[[place, place + 1]] = broken[[place + 1, place]]
        assert not keycheck.in_order(written(broken), tell, descending=False)
        assert not keycheck.in_order(written(broken[::-1]), tell, descending=True)


@given(npst.arrays(DTYPES, st.integers(2, 30)), st.data())
@examples(15, suppress_health_check=list(HealthCheck))
def test_a_fingerprint_tells_other_keys_and_not_another_order(written, keys, data):
    place = data.draw(st.integers(0, keys.nbytes - 1))
    other = np.frombuffer(keys.tobytes(), np.uint8).copy()
    other[place] ^= 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keycheck, "CHUNK", data.draw(st.integers(1, 40)))
        before = keycheck.fingerprint(written(keys), tell)
        assert keycheck.fingerprint(written(keys[::-1].copy()), tell) == before
        assert keycheck.fingerprint(written(other.view(keys.dtype)), tell) != before
