"""Make an interpreter on Linux lack what Python on macOS lacks; for processes of a test."""

import builtins
import io
import mmap
import os
import resource
import signal
import sys
import sysconfig
import time
import urllib.request  # noqa: F401  # looks for a module of macOS where it is imported there
import warnings

sysconfig.get_config_vars()  # reads a file that has the name of this system
_LACKING = {
    os: (
        *("sched_getaffinity", "sched_setaffinity", "sched_getscheduler", "sched_setscheduler"),
        *("posix_fallocate", "memfd_create", "pidfd_open", "eventfd", "getrandom", "splice"),
        *("copy_file_range", "preadv2", "setns", "unshare"),
    ),
    signal: ("SIGRTMIN", "SIGRTMAX", "sigtimedwait", "sigwaitinfo", "pidfd_send_signal"),
    time: ("CLOCK_BOOTTIME", "pthread_getcpuclockid"),
    resource: ("prlimit", "RUSAGE_THREAD"),
    mmap: ("MAP_POPULATE", "MAP_NORESERVE", "MADV_HUGEPAGE", "MADV_DONTFORK", "MADV_REMOVE"),
}
_FOLDERS = ("/proc", "/sys", "/dev/shm")

for _module, _names in _LACKING.items():
    for _name in _names:
        if hasattr(_module, _name):
            delattr(_module, _name)

_open, _os_open = builtins.open, os.open


def _check(path):
    if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(_FOLDERS):
        raise FileNotFoundError(2, "No such file or directory", os.fspath(path))


def _open_there(file, *args, **options):
    _check(file)
    return _open(file, *args, **options)


def _os_open_there(path, *args, **options):
    _check(path)
    return _os_open(path, *args, **options)


builtins.open = io.open = _open_there
os.open = _os_open_there
sys.platform = "darwin"
# threadpoolctl looks for functions of the loader of macOS, which are not here.
warnings.filterwarnings("ignore", message="Could not find _dyld_image_count")
