"""Make an interpreter on Linux lack what Python on Windows lacks; for processes of a test.

What other packages do on Windows itself, as in consoles, is not imitated: they are imported first.
"""

import builtins
import contextlib
import ctypes
import importlib
import io
import mmap
import os
import platform
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import types

for _name in (
    *("asyncio", "click", "flask", "numpy.random", "rich.console", "rich.progress", "secrets"),
    *("socket", "tempfile", "threadpoolctl", "waitress.server", "webbrowser", "zipfile"),
):
    importlib.import_module(_name)
sysconfig.get_config_vars()  # reads a file that has the name of this system
import threadpoolctl  # noqa: E402 - as above

threadpoolctl._HAS_PROCFS = False
threadpoolctl.ThreadpoolController._find_libraries_on_windows = lambda _: None

_SIGNALS = {"SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM"}
_LACKING = {
    os: (
        *("chown", "chroot", "confstr", "eventfd", "fchdir", "fchmod", "fchown", "fork", "forkpty"),
        *("copy_file_range", "fstatvfs", "getegid", "geteuid", "getgid", "getgroups", "getloadavg"),
        *("getpgid", "getpgrp", "getpriority", "getrandom", "getsid", "getuid"),
        *("killpg", "lchown", "lockf", "major", "memfd_create", "mkfifo", "mknod", "nice"),
        *("openpty", "pathconf", "pidfd_open", "pipe2", "posix_fadvise", "posix_fallocate"),
        *("posix_spawn", "posix_spawnp", "pread", "preadv", "preadv2", "pwrite", "pwritev"),
        *("register_at_fork", "sched_getaffinity", "sched_getscheduler", "sched_setaffinity"),
        *("sched_setscheduler", "sched_yield", "sendfile", "setns", "setpgid"),
        *("setpriority", "setsid", "splice", "statvfs", "sync", "sysconf", "tcgetpgrp", "ttyname"),
        *("uname", "unshare", "wait", "wait3", "wait4", "waitid"),
        *("O_CLOEXEC", "O_DIRECT", "O_DIRECTORY", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC"),
    ),
    signal: (
        *("alarm", "getitimer", "pause", "pidfd_send_signal", "pthread_kill", "pthread_sigmask"),
        *("setitimer", "siginterrupt", "sigpending", "sigtimedwait", "sigwait", "sigwaitinfo"),
        *(each for each in dir(signal) if each.startswith("SIG") and each[3:4].isalpha()),
    ),
    select: ("epoll", "poll"),
    time: (
        *("clock_gettime", "clock_gettime_ns", "pthread_getcpuclockid", "tzset"),
        *(each for each in dir(time) if each.startswith("CLOCK_")),
    ),
    mmap: tuple(each for each in dir(mmap) if each.startswith(("MAP_", "MADV_", "PROT_"))),
}
_KEPT = _SIGNALS | {"SIG_DFL", "SIG_IGN"}
_MODULES = ("fcntl", "grp", "posixshmem", "pty", "pwd", "resource", "syslog", "termios", "tty")
_FOLDERS = ("/proc", "/sys", "/dev/shm")

_statvfs = os.statvfs
_signals = {getattr(signal, name): name for name in _SIGNALS}
for _module, _names in _LACKING.items():
    for _name in _names:
        if hasattr(_module, _name) and _name not in _KEPT:
            delattr(_module, _name)
for _name in _MODULES:
    sys.modules[_name] = None  # so that its import fails
for _name in ("multiprocessing.popen_fork", "multiprocessing.popen_forkserver"):
    sys.modules[_name] = None

# -- calls that are there, and refuse what they do elsewhere ------------------------------------

_signal = signal.signal


def _signal_there(number, handler):
    if number not in _signals:
        raise ValueError("invalid signal value")
    return _signal(number, handler)


signal.signal = _signal_there
signal.NSIG = 23


class _Memory(mmap.mmap):
    def __new__(cls, fileno, length, tagname=None, access=mmap.ACCESS_DEFAULT, offset=0):
        return super().__new__(cls, fileno, length, access=access, offset=offset)

    madvise = property()


mmap.mmap = _Memory
_library = ctypes.CDLL.__init__


def _library_there(self, name, *args, **options):
    if name is None:
        raise TypeError("bad argument type for built-in operation")
    _library(self, name, *args, **options)


ctypes.CDLL.__init__ = _library_there

# -- files: no folder is opened, no open file is removed or replaced ----------------------------

_open, _os_open, _listdir, _stat, _readlink = (
    builtins.open,
    os.open,
    os.listdir,
    os.stat,
    os.readlink,
)


def _check(path):
    if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(_FOLDERS):
        raise FileNotFoundError(2, "No such file or directory", os.fspath(path))


def _checked(call):
    def there(path, *args, **options):
        _check(path)
        return call(path, *args, **options)

    return there


def _os_open_there(path, flags, *args, **options):
    if isinstance(path, str | os.PathLike) and os.path.isdir(path):
        raise PermissionError(13, "Permission denied", os.fspath(path))
    _check(path)
    return _os_open(path, flags, *args, **options)


def _is_open(path):
    """Tell whether this process has a file open, or has mapped it."""
    path = os.path.realpath(path)
    for number in _listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if _readlink(f"/proc/self/fd/{number}") == path:
                return True
    with _open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return any(line.rstrip("\n").endswith(f" {path}") for line in maps)


def _refusing(call, which):
    def there(*args, **options):
        for path in args[:which]:
            if isinstance(path, str | os.PathLike) and _is_open(path):
                raise PermissionError(13, "The process cannot access the file", os.fspath(path))
        return call(*args, **options)

    return there


builtins.open = io.open = _checked(_open)
os.open = _os_open_there
os.listdir = _checked(_listdir)
os.stat = _checked(_stat)
os.unlink = os.remove = _refusing(os.unlink, 1)
os.replace, os.rename = _refusing(os.replace, 2), _refusing(os.rename, 2)
shutil.disk_usage = lambda path: shutil._ntuple_diskusage(1 << 40, 0, _statvfs(path).f_bavail << 12)


def _which_there(command, path=None):
    """Find a command here, where its name has no ending."""
    for folder in (path or os.environ["PATH"]).split(os.pathsep):
        if os.access(file := os.path.join(folder, command), os.X_OK):
            return file
    return None


shutil.which = _which_there
shutil._use_fd_functions = False  # so that a folder is removed by the calls above

# -- names of the system --------------------------------------------------------------------------

platform.machine = lambda: "AMD64"
sys.modules["_winapi"] = types.ModuleType("_winapi")
sys.modules["_winapi"].__getattr__ = lambda name: 0  # type: ignore[attr-defined]
subprocess.list2cmdline  # noqa: B018 - it was imported before, and starts processes as on Linux
sys.platform = "win32"
