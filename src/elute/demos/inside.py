"""Files that another file names: they must lie beside it, whatever it says."""

from pathlib import Path, PurePosixPath, PureWindowsPath

from elute.errors import EluteError


def inside(root: Path, folder: str, name: object) -> Path:
    """The file `name` in a folder of a dataset.

    Raises:
        EluteError: it is no plain name, not there, or a link that leads out of the dataset.
    """
    plain = (
        isinstance(name, str)
        and name not in ("", ".", "..")
        and "\0" not in name
        and PurePosixPath(name).name == name == PureWindowsPath(name).name
    )
    if not plain:
        raise EluteError(
            f"{root}: names {name!r:.200} as one of its files; expected a name without folders",
            hint="do not trust this dataset: it points outside itself",
        )
    path = root / folder / str(name)
    try:
        found = path.is_file()
        within = root.resolve() in path.resolve().parents
    except (OSError, RuntimeError) as error:
        raise EluteError(f"{path}: cannot be read: {error}") from error
    if not found:
        raise EluteError(f"{path}: is missing, but the dataset names it")
    if not within:
        raise EluteError(
            f"{path}: a link that leads out of the dataset",
            hint="if you trust it, copy the dataset with `cp -rL` first",
        )
    return path


def bystanders(root: Path, known: tuple[str, ...]) -> list[Path]:
    """Files of a dataset's folder that its format does not know; links are none."""
    return sorted(
        item
        for item in root.iterdir()
        if item.is_file() and not item.is_symlink() and item.name not in known
    )
