"""`elute doctor`: versions, and combinations that are known not to work."""

import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

from rich.table import Table

from elute.cli.show import out, print_json

PACKAGES = (
    "elute", "torch", "numpy", "scipy", "h5py", "safetensors", "gymnasium", "typer", "rich",
    "pydantic", "mujoco", "mujoco-core", "minari", "robosuite", "mink", "pyarrow", "matplotlib",
    "onnx", "onnxruntime", "onnxscript", "ray", "tensorboard", "torchvision",
)  # fmt: skip

Versions = dict[str, tuple[int, ...]]


def _bad_pairs() -> list[tuple[Callable[[Versions], bool], str, str]]:
    """(is it so?, what is wrong, what to do), each seen to fail."""
    return [
        (
            lambda v: "robosuite" in v and v.get("mujoco", (0,)) >= (3, 10),
            "robosuite 1.5 fails on MuJoCo 3.10 and later",
            "pip install 'mujoco>=3.3,<3.10'",
        ),
        (
            lambda v: "mink" in v and v.get("numpy", (0,)) >= (2,),
            "mink 0.0.5, which robosuite wants, needs NumPy 1",
            "use an environment of its own with numpy<2",
        ),
        (
            lambda v: v.get("mujoco", (0,)) >= (4,),
            "MuJoCo 4 is untested with Gymnasium's tasks, and its trajectories differ",
            "pip install 'mujoco>=3.3,<4'",
        ),
        (
            lambda v: "mujoco-core" in v and (3,) <= v.get("mujoco", (4,)) < (4,),
            "mujoco-core of MuJoCo 4 was left behind by a downgrade",
            "pip uninstall mujoco-core mujoco-studio, then reinstall mujoco",
        ),
        (
            lambda v: v.get("pyarrow", (0,)) >= (26,) and v.get("numpy", (2,)) < (2,),
            "pyarrow 26 refuses NumPy 1",
            "pip install 'pyarrow<26'",
        ),
        (
            lambda v: v.get("minari", (0,)) >= (0, 5, 4) and v.get("numpy", (2,)) < (2,),
            "Minari 0.5.4 needs NumPy 2",
            "pip install minari==0.5.3",
        ),
        (
            lambda v: "torchvision" in v and "+cpu" in _installed("torch"),
            "torchvision from the package index is built for CUDA and fails beside a CPU torch",
            "pip uninstall torchvision; elute does not need it",
        ),
        (
            lambda v: "mujoco" in v and v["mujoco"] < (3, 3),
            "MuJoCo before 3.3 has other trajectories than the shipped results",
            "pip install 'mujoco>=3.3,<4'",
        ),
    ]


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _numbers(text: str) -> tuple[int, ...]:
    parts = text.split("+", maxsplit=1)[0].split(".")
    return tuple(int(part) for part in parts if part.isdigit())


def problems(versions: Versions) -> list[dict[str, str]]:
    """The known-bad combinations among these versions."""
    return [{"problem": what, "do": do} for bad, what, do in _bad_pairs() if bad(versions)]


def run(as_json: bool) -> int:
    """Print the report; 1 if a combination is known not to work."""
    found = {name: text for name in PACKAGES if (text := _installed(name))}
    wrong = problems({name: _numbers(text) for name, text in found.items()})
    report = {"python": platform.python_version(), "packages": found, "problems": wrong}
    if as_json:
        print_json(report)
    else:
        table = Table(show_header=False, box=None, padding=(0, 2))
        table.add_row("python", platform.python_version())
        for name in PACKAGES:
            table.add_row(name, found.get(name, "-"))
        out.print(table)
        for problem in wrong:
            out.print(f"{problem['problem']}\n  -> {problem['do']}", style="bold red", markup=False)
        if not wrong:
            out.print("no known problem")
    return 1 if wrong else 0
