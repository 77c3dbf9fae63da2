"""``bsp predict``: how long a recorded run, or one that nobody made, would take on a Machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bsplib.command_options import OutputFile, force_option
from bsplib.machine import load_machine
from bsplib.tools.cli.fit import model_nprocs_option, model_values_option
from bsplib.tools.cli.options import TRACE, MachineName, Real, run_option, speed_option
from bsplib.tools.cli.traces import position_of, read

if TYPE_CHECKING:
    from bsplib.machine import Machine


@click.command("predict")
@click.option(
    "--machine",
    type=MachineName(),
    metavar="NAME",
    help="Machine to predict for.  [default: that of the run]",
)
@speed_option
@click.option(
    "--l",
    "latency_s",
    metavar="SECONDS",
    type=Real(0, 1),
    help="Latency l of the Machine: the time to end a superstep.",
)
@click.option("--pattern", metavar="NAME", help="Use g and L of this pattern; see above.")
@click.option(
    "--model",
    "names",
    multiple=True,
    type=click.Choice(["bsp", "bspwb", "mpm", "obsp"], case_sensitive=False),
    help="Cost model; may be given several times.  [default: all]",
)
@click.option(
    "--fit",
    "model",
    type=TRACE,
    metavar="MODEL",
    help="Predict a run that nobody made, by a model that bsp fit wrote.",
)
@model_nprocs_option
@model_values_option
@click.option("--plot", type=OutputFile(), help="With --fit: plot the times over p into this file.")
@force_option
@run_option
@click.argument("file", type=TRACE, required=False)
def command(
    machine: str | None,
    speed: str | None,
    latency_s: float | None,
    pattern: str | None,
    names: tuple[str, ...],
    number: int | None,
    file: Path | None,
    model: Path | None,
    **of_model: Any,
) -> None:
    r"""Predict how long a recorded run takes on another Machine.

    FILE is a trace. It is replayed under the cost models BSP, BSPWB, MPM and OBSP*. The
    table shows the total beside the measured time, and the part of it that each
    function and cost centre has on the path that determines the total.

    A Machine is the set of parameters of a computer. NAME is one that comes with
    bsplib, or a .toml file as bsp probe writes it. Figures that it lacks can be given
    by options, or after the name, as in cray-t3e-mpi:l=1e-5,speed=3e8.

    The patterns of communication are exchange, ping-pong, one-to-all,
    personalised-one-to-all, all-to-one and all-to-all. By default, and with auto, the
    pattern of each superstep is recognised where the Machine knows any; with none, the
    Machine's own g and l price all supersteps, and what a probe measured is not used.

    With --fit, the run is one of -n processes that nobody made, and MODEL is what bsp fit
    learnt from small runs of the program. The output has the time under BSP, the speedup,
    the number of processes from which more do not help, the cost centre that causes it,
    and the critical path.

    \b
    Examples:
      bsp predict --machine here.toml sort.bsp
      bsp predict --machine ibm-sp2-pvm --speed 0.01x sort.bsp
      bsp predict --fit sort.json --at n=2^30 -n 256 --machine here.toml
    """
    there = None if machine is None else load_machine(machine)
    if model is not None:
        if file is not None or names or pattern or number is not None:
            raise click.UsageError("--fit takes no trace, and no --model, --pattern and --run")
        _predict_by_model(model, there, speed=speed, latency_s=latency_s, **of_model)
        return
    if file is None:
        raise click.UsageError("name a trace, or a model by --fit")
    if any(of_model.values()):
        raise click.UsageError("--nprocs, --at, --plot and --force need --fit")
    from bsplib.profiler.models.replay import MODELS  # noqa: PLC0415
    from bsplib.profiler.models.report import predict_all, print_predictions  # noqa: PLC0415
    from bsplib.profiler.prices import choose_prices  # noqa: PLC0415  # imported late

    trace = read(file)
    position = position_of(trace, number)
    runs = trace.runs if position is None else trace.runs[position : position + 1]
    figures = {"speed": speed, "latency_s": latency_s, "pattern": pattern}
    chosen = [(run, choose_prices(run, there, **figures)) for run in runs]  # type: ignore[arg-type]
    models = [name for name in MODELS if not names or name.lower().rstrip("*") in names]
    print_predictions(predict_all(chosen, models), number=position)


def _predict_by_model(
    model: Path, machine: Machine | None, nprocs: int | None, values: dict[str, float], **more: Any
) -> None:
    from bsplib.profiler.predict.session import predict_and_print  # noqa: PLC0415  # imported late

    if nprocs is None:
        raise click.UsageError("--fit needs the number of processes, as in -n 1024")
    try:
        predict_and_print(model, nprocs, values, machine, **more)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
