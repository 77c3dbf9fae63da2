"""Compiles the core where there is a compiler; pyproject.toml says everything else.

On Linux every module of ``bsplib/core`` and ``apps/kernels`` with types beside it becomes an
extension module that may fail to compile: bsplib then runs its sources, interpreted. Errors of
Cython itself are errors of the build. The variable of the environment by which bsplib chooses a
build chooses here, too: with ``BSPLIB_CORE=python`` nothing is compiled, and the wheel is for every
system; with ``BSPLIB_CORE=compiled`` it is an error if the core cannot be compiled, and the wheel
also gets the recorder of ``bsp record`` for each MPI whose package is installed here.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build import build as build_all
from setuptools.command.build_ext import build_ext

ROOT = Path("bsplib")
DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": False,  # the types are in the .pxd files
    "auto_pickle": False,  # a tenth of the compiler's time
    "boundscheck": False,
    "cdivision": True,
    "emit_code_comments": False,  # they are a part of the C source that is compiled
    "initializedcheck": False,
    "show_performance_hints": False,
    "wraparound": False,
}

CORE = os.environ.get("BSPLIB_CORE", "")
FOR_USERS = [] if "-g" in os.environ.get("CFLAGS", "").split() else ["-g0", "-w"]
"""Numbers of lines take a quarter of the time of the compiler; warnings take time, too."""


def _load_build():
    """Return the module that knows the sources, without importing bsplib."""
    spec = importlib.util.spec_from_file_location("_build", ROOT / "core" / "_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")  # another one for another platform
    return module


build = _load_build()


def _include_dirs() -> list[str]:
    """Return where the headers of numpy and greenlet are."""
    import greenlet  # noqa: PLC0415 - needed by a build only, and not to write an sdist
    import numpy as np  # noqa: PLC0415 - the same

    return [np.get_include(), str(Path(greenlet.__file__).parents[1])]


def _size(ext: Extension) -> int:
    return sum(os.path.getsize(source) for source in ext.sources)


class BuildAnew(build_all):
    """Builds in an empty folder: a wheel takes all that lies there, also from a build before."""

    def run(self):
        """Remove what an earlier build has left, and build."""
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class BuildCore(build_ext):
    """Compiles all modules of the core or none, and notes what they were compiled from."""

    def finalize_options(self):
        """Compile as many modules at once as there are cores."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self):
        """Compile, unless the modules in the checkout are of these very sources."""
        if self.inplace and not self.force and self._is_up_to_date():
            return
        roots = [str(Path(self.build_lib, ROOT)), *([str(ROOT)] if self.inplace else [])]
        build.remove_note(roots[-1])
        digest = build.digest(str(ROOT))
        self._cythonize()
        super().run()
        if CORE == "compiled" and not self.inplace:
            shims = os.path.join(self.build_lib, ROOT, "record", "shim")
            command = [sys.executable, "-m", "bsplib.record.compiler", shims]
            subprocess.run(command, env=os.environ | {"BSPLIB_CORE": "python"}, check=True)
        names = build.extension_names(str(ROOT))
        # Those in the checkout may be left of other sources, where a compiler has failed.
        if all(os.path.exists(build.extension_path(name, roots[0])) for name in names):
            build.write_note(roots[-1], digest)
        else:  # what is left would be reported by each command as a build that cannot be used
            for name in names:
                for root in roots:
                    Path(build.extension_path(name, root)).unlink(missing_ok=True)

    def build_extension(self, ext):
        """Compile a module; where that fails, none of an earlier build stays in its place."""
        try:
            super().build_extension(ext)
        except Exception:
            Path(self.get_ext_fullpath(ext.name)).unlink(missing_ok=True)
            raise

    def _is_up_to_date(self) -> bool:
        of = build.read_note(str(ROOT))
        return build.is_compiled(str(ROOT)) and of == build.digest(str(ROOT))

    def _cythonize(self):
        import numpy as np  # noqa: PLC0415 - as above
        from Cython.Build import cythonize  # noqa: PLC0415 - the same

        include_dirs = _include_dirs()
        translated = cythonize(
            [Extension(ext.name, list(ext.sources)) for ext in self.extensions],
            build_dir=f"build/cython/numpy-{np.__version__}",  # its declarations are in the C
            compiler_directives=DIRECTIVES,
            force=self.force,
            nthreads=self.parallel,
            quiet=True,
            shared_utility_qualified_name=f"bsplib.{build.SHARED}",
        )
        by_name = {ext.name: ext for ext in translated}
        for ext in self.extensions:
            ext.sources = by_name[ext.name].sources
            ext.include_dirs = include_dirs
        self.extensions.sort(key=_size, reverse=True)  # so that all compilers end at about one time


setup(
    cmdclass={"build": BuildAnew, "build_ext": BuildCore},
    ext_modules=[
        Extension(
            f"bsplib.{name}",
            [] if name == build.SHARED else [build.path_of(name, ".py", str(ROOT))],
            define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
            depends=[str(path) for path in sorted(ROOT.glob("core/*.pxd"))],
            extra_compile_args=[
                "-O1" if name == build.SHARED else "-O2",  # nothing in a superstep is shared
                "-std=c11",
                "-falign-functions=64",  # or a call's time depends on which functions come before
                "-Wno-sign-compare",
                *FOR_USERS,
            ],
            optional=CORE != "compiled",
        )
        for name in build.extension_names(str(ROOT))
        if sys.platform == "linux" and CORE != "python"
    ],
)
