"""Numbers as the paper prints them, for its claims about its own tables to be counted.

Means only. `D1` is noise on the actions, `D2` checkpoints; L1, L2, L3 from the worst to the best.
"""

from typing import NamedTuple


class Cell(NamedTuple):
    """A row of the main table."""

    bc_all: int
    bcnd: int
    dwbc: int
    demodice: int
    dp_bc: int
    reverse_step: int


SETS = ("D1-L1", "D1-L2", "D1-L3", "D2-L1", "D2-L2", "D2-L3")

MAIN: dict[str, tuple[Cell, ...]] = {
    "ant": (
        Cell(-22, 28, -156, -72, 261, 100),
        Cell(292, 199, 132, -3, 803, 50),
        Cell(1500, 1951, 1669, 94, 2547, 10),
        Cell(1089, 1539, 1545, 262, 1402, 30),
        Cell(918, 1514, 1725, 480, 1982, 10),
        Cell(1356, 2232, 2484, 2127, 3414, 5),
    ),
    "halfcheetah": (
        Cell(1262, 1267, 618, 22, 1365, 10),
        Cell(1264, 1862, 1069, 622, 2440, 10),
        Cell(859, 834, 694, 768, 4042, 10),
        Cell(1314, 1498, 671, -64, 1530, 30),
        Cell(2789, 2241, 2676, 1771, 2714, 30),
        Cell(1780, 1990, 4722, 4508, 4748, 10),
    ),
    "walker2d": (
        Cell(21, 102, 1039, 365, 1697, 10),
        Cell(1551, 1635, 1617, 1560, 1722, 10),
        Cell(815, 192, 2322, 583, 3020, 5),
        Cell(500, 686, 1656, 1749, 2208, 30),
        Cell(578, 1018, 2114, 1818, 3162, 5),
        Cell(702, 2574, 2637, 1765, 3076, 3),
    ),
    "hopper": (
        Cell(743, 590, 761, 995, 1000, 10),
        Cell(2044, 2119, 826, 2059, 3145, 5),
        Cell(3090, 2883, 1140, 3207, 1825, 1),
        Cell(2191, 2165, 761, 2336, 2408, 10),
        Cell(2266, 2256, 826, 2265, 2323, 10),
        Cell(2712, 3093, 1140, 3306, 2265, 5),
    ),
}
"""Table 1: the offline methods, and the reverse step of DP-BC; columns as `SETS`."""

STEPS: dict[str, dict[int, tuple[int, ...]]] = {
    "ant": {
        100: (261, 380, 486, 199, 342, 328),
        50: (202, 803, 1073, 339, 720, 1776),
        30: (47, 719, 1890, 1572, 1833, 3064),
        10: (-100, 499, 2547, 1402, 1982, 3260),
        5: (-133, 490, 2331, 1105, 1984, 3414),
    },
    "halfcheetah": {
        100: (556, 640, 1115, 1123, 1791, 1393),
        50: (797, 1896, 2733, 1468, 2421, 3126),
        30: (895, 1880, 2899, 1530, 2714, 4434),
        10: (1365, 2440, 4042, 1394, 2749, 4748),
        5: (708, 2061, 3758, 1469, 2469, 4660),
    },
    "walker2d": {
        100: (260, 241, 311, 259, 258, 273),
        50: (463, 259, 553, 549, 360, 1085),
        30: (415, 978, 1398, 2208, 1742, 2512),
        10: (1697, 1267, 1474, 1764, 1915, 1984),
        5: (1467, 1722, 3020, 1917, 3162, 3076),
    },
    "hopper": {
        100: (98, 461, 420, 215, 151, 355),
        50: (516, 815, 379, 1283, 631, 342),
        30: (688, 649, 517, 2075, 904, 1353),
        10: (1000, 2752, 678, 2308, 2323, 1740),
        5: (580, 3145, 1508, 1835, 2297, 2265),
    },
}
"""The appendix table of DP-BC at fixed reverse steps."""

QUALITY: dict[str, tuple[int, ...]] = {
    "ant": (-73, 227, 3514, 1062, 1560, 2649),
    "halfcheetah": (567, 1090, 1853, 1491, 2217, 3263),
    "walker2d": (523, 467, 4362, 1699, 2717, 4152),
    "hopper": (699, 1037, 3229, 734, 3362, 2597),
}
"""Mean return of the demonstrations themselves."""

NOISE_BC: dict[str, tuple[str, str, str]] = {
    "ant, uniform": ("209±138", "396±42", "704±97"),
    "halfcheetah, uniform": ("704±71", "922±207", "1805±15"),
    "ant, salt-and-pepper": ("209±138", "396±42", "704±97"),
    "halfcheetah, salt-and-pepper": ("2143±10", "1964±195", "579±280"),
}
"""BC on L1, L2, L3 of other noises."""

FILTERS: dict[str, tuple[int, int, int]] = {
    "Gaussian": (242, 729, 771),
    "mean": (182, 736, 1786),
    "median": (138, 437, 455),
}
"""Ant, D1-L1 to D1-L3."""

ROBOSUITE_SUCCESS = {"BC": 0.76, "BCND": 0.56, "DWBC": 0.82, "DP-BC": 0.86}
ROBOSUITE_EPISODES = 50


def best_steps() -> dict[str, tuple[int, ...]]:
    """Of each task, the step with the highest return in the appendix table, for each set."""
    return {
        task: tuple(max(rows, key=lambda step: rows[step][column]) for column in range(len(SETS)))
        for task, rows in STEPS.items()
    }
