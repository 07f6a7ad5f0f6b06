"""A policy as an ONNX model, for machines without elute.

    input `observations` (n, S), float32   ->   output `actions` (n, A): the mean action, clipped

Everything is inside: units of the observations, squashing, bounds.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from elute.demos.output import output
from elute.episodes import Array
from elute.errors import EluteError
from elute.policy import GaussianPolicy, StoredPolicy

OPSET = 17


def export_onnx(policy: StoredPolicy, path: Path) -> None:
    """Write the model.

    Raises:
        EluteError: it is no Gaussian policy, the onnx package is missing, or the file cannot be
            written.
    """
    if not isinstance(policy, GaussianPolicy):
        raise EluteError(
            "a policy that acts by diffusion has no ONNX model",
            hint="policies of the other methods have one",
        )
    if find_spec("onnx") is None:
        raise EluteError("onnx is not installed", hint="pip install 'elute[onnx]'")
    with output(path) as temporary:
        temporary.write_bytes(model(policy).SerializeToString())


def model(policy: GaussianPolicy) -> Any:  # noqa: ANN401 (onnx ships no types for it)
    """The policy as a graph."""
    from onnx import TensorProto, checker, helper  # noqa: PLC0415 (an extra)

    nodes, constants = _graph(policy)
    float32, n = TensorProto.FLOAT, "n"
    graph = helper.make_graph(
        nodes,
        "policy",
        [helper.make_tensor_value_info("observations", float32, [n, policy.n_observations])],
        [helper.make_tensor_value_info("actions", float32, [n, policy.n_actions])],
        constants,
    )
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8, producer_name="elute"
    )
    helper.set_model_props(made, {key: str(value) for key, value in policy.about.items()})
    checker.check_model(made)
    return made


def _graph(policy: GaussianPolicy) -> tuple[list[Any], list[Any]]:
    from onnx import helper, numpy_helper  # noqa: PLC0415 (an extra)

    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(name: str, value: Array) -> str:
        constants.append(numpy_helper.from_array(np.asarray(value, dtype=np.float32), name))
        return name

    def node(operation: str, *inputs: str, to: str = "") -> str:
        to = to or f"{operation.lower()}_{len(nodes)}"
        nodes.append(helper.make_node(operation, list(inputs), [to]))
        return to

    x = node("Sub", "observations", constant("mean", policy.mean))
    x = node("Div", x, constant("scale", policy.scale))
    for i, (weights, bias) in enumerate(policy.layers):
        x = node("MatMul", x, constant(f"weights_{i}", weights))
        x = node("Add", x, constant(f"bias_{i}", bias))
        if i < len(policy.layers) - 1:
            x = node({"tanh": "Tanh", "relu": "Relu"}[policy.activation], x)
    if policy.squashed:
        x = node("Tanh", x)
        x = node("Mul", x, constant("half", (policy.high - policy.low) / 2))
        x = node("Add", x, constant("middle", (policy.high + policy.low) / 2))
    x = node("Max", x, constant("low", policy.low))
    node("Min", x, constant("high", policy.high), to="actions")
    return nodes, constants
