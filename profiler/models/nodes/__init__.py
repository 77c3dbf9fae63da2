"""Node models: what every cost centre costs at any size, learnt from a handful of small traces.

:func:`model_of_traces` learns the laws of a program, :func:`predict_nodes` asks them for a run
that nobody made, :func:`scaling` for all numbers of processes::

    from bsplib.profiler.models.nodes import model_of_traces, predict_nodes, scaling

    model = model_of_traces(["runs/a.bsp", "runs/b.bsp", ...], sizes=["n"])
    print(model)
    prediction = predict_nodes(model, 1024, {"n": 2**30}, load_machine("cray-t3e-mpi:l=2e-5"))
    print(prediction)
    scaling(prediction).plot("scaling.png")
"""

from bsplib.profiler.models.nodes.document import write_model
from bsplib.profiler.models.nodes.model import NodeModel, fit_nodes
from bsplib.profiler.models.nodes.predicted import NodePrediction, Scaling, predict_nodes, scaling
from bsplib.profiler.models.nodes.reading import ModelError, read_model
from bsplib.profiler.models.nodes.session import model_of_traces

__all__ = [
    "ModelError",
    "NodeModel",
    "NodePrediction",
    "Scaling",
    "fit_nodes",
    "model_of_traces",
    "predict_nodes",
    "read_model",
    "scaling",
    "write_model",
]
