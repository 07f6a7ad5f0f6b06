"""The numbers that Wang et al. (2024), "Imitation learning from purified demonstrations", print.

    find("1", "halfcheetah", "action-noise/heavy", "dp-bc").mean       # 1365.0
    published("noise")                                                 # every cell of a table

Tables are below as they are printed, one line for a row, `29±18` for a mean and what stands after
its sign, `-` for an empty cell. Task, demonstrations and methods get our names:

    D1-L1, D1-L2, D1-L3       action-noise/heavy, medium, light
    D2-L1, D2-L2, D2-L3       checkpoint/early, middle, late
    Uni-L1, Uni-L2, Uni-L3    uniform-noise/heavy, medium, light
    S&P-L1, S&P-L2, S&P-L3    salt-pepper/light, medium, heavy
    BC, BC-all                bc-all: D_o and D_s
    DP-BC                     dp-bc, with the reverse step that did best on the test return

Where the paper disagrees with itself or with the published data, the cell carries a note; what
concerns a whole table is its remark. Reverse steps are as printed: the released code makes one
more.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from elute.errors import EluteError

Metric = Literal["return", "success", "length"]
DEMONSTRATIONS = "demonstrations"
"""In place of a method, where a number is that of the demonstrations themselves."""


@dataclass(frozen=True)
class Published:
    """One printed number."""

    table: str
    task: str
    demos: str
    method: str
    mean: float
    spread: float | None = None
    """What is printed after ±; the paper does not say what it is."""
    reverse_step: int | None = None
    metric: Metric = "return"
    note: str = ""
    """What is doubtful about it."""


LABELS: Mapping[str, str] = {
    "D1-L1": "action-noise/heavy",
    "D1-L2": "action-noise/medium",
    "D1-L3": "action-noise/light",
    "D2-L1": "checkpoint/early",
    "D2-L2": "checkpoint/middle",
    "D2-L3": "checkpoint/late",
    "Uni-L1": "uniform-noise/heavy",
    "Uni-L2": "uniform-noise/medium",
    "Uni-L3": "uniform-noise/light",
    "S&P-L1": "salt-pepper/light",
    "S&P-L2": "salt-pepper/medium",
    "S&P-L3": "salt-pepper/heavy",
    "Mixed": "action-noise/mixed",
    "Expert": "expert",
    "Robo": "roboturk/supplementary",
    "Robo-L1": "roboturk/l1",
    "Robo-L2": "roboturk/l2",
}
"""The paper's name of demonstrations, and ours."""

SAME: Mapping[str, str] = {"bc": "bc-all", "dp-bc-best": "dp-bc"}
"""Methods of ours that the paper prints under the name of another."""

_OFFLINE = """
task         demos  bc-opt    bc-all    bcnd      dwbc      demodice  dp-bc     step
ant          D1-L1  29±18     -22±33    28±28     -156±95   -72±8     261±54    100
ant          D1-L2  -         292±88    199±37    132±39    -3±14     803±114   50
ant          D1-L3  -         1500±298  1951±311  1669±244  94±4      2547±118  10
ant          D2-L1  -         1089±237  1539±150  1545±128  262±152   1402±151  30
ant          D2-L2  -         918±232   1514±232  1725±214  480±139   1982±111  10
ant          D2-L3  -         1356±137  2232±324  2484±29   2127±260  3414±40   5
halfcheetah  D1-L1  -254±103  1262±202  1267±202  618±204   22±106    1365±147  10
halfcheetah  D1-L2  -         1264±255  1862±119  1069±264  622±159   2440±274  10
halfcheetah  D1-L3  -         859±233   834±249   694±190   768±233   4042±80   10
halfcheetah  D2-L1  -         1314±194  1498±246  671±178   -64±105   1530±39   30
halfcheetah  D2-L2  -         2789±14   2241±245  2676±20   1771±158  2714±15   30
halfcheetah  D2-L3  -         1780±296  1990±408  4722±37   4508±59   4748±40   10
walker2d     D1-L1  -4±0      21±2      102±10    1039±164  365±39    1697±219  10
walker2d     D1-L2  -         1551±87   1635±319  1617±152  1560±291  1722±297  10
walker2d     D1-L3  -         815±277   192±37    2322±369  583±108   3020±466  5
walker2d     D2-L1  -         500±245   686±301   1656±186  1749±259  2208±160  30
walker2d     D2-L2  -         578±273   1018±347  2114±21   1818±342  3162±20   5
walker2d     D2-L3  -         702±244   2574±358  2637±134  1765±528  3076±205  3
hopper       D1-L1  320±0     743±83    590±10    761±12    995±119   1000±42   10
hopper       D1-L2  -         2044±157  2119±206  826±22    2059±4    3145±11   5
hopper       D1-L3  -         3090±37   2883±26   1140±27   3207±7    1825±137  1
hopper       D2-L1  -         2191±118  2165±181  761±122   2336±3    2408±113  10
hopper       D2-L2  -         2266±3    2256±2    826±2     2265±8    2323±2    10
hopper       D2-L3  -         2712±6    3093±10   1140±27   3306±2    2265±171  5
"""

_NOISE = """
task         demos   bc-all    bcnd      dp-bc
ant          Uni-L1  209±138   66±17     343±16
ant          Uni-L2  396±42    333±60    480±15
ant          Uni-L3  704±97    1472±229  1925±227
halfcheetah  Uni-L1  704±71    692±37    733±8
halfcheetah  Uni-L2  922±207   705±179   1248±54
halfcheetah  Uni-L3  1805±15   1933±21   2268±11
ant          S&P-L1  209±138   686±45    744±17
ant          S&P-L2  396±42    477±62    508±12
ant          S&P-L3  704±97    755±143   689±37
halfcheetah  S&P-L1  2143±10   2042±113  2731±18
halfcheetah  S&P-L2  1964±195  1873±270  3550±18
halfcheetah  S&P-L3  579±280   1160±295  2820±383
"""

_FILTERS = """
task  demos  bc-all  dp-bc  gaussian-bc  mean-bc  median-bc
ant   D1-L1  -22     261    242          182      138
ant   D1-L2  292     803    729          736      437
ant   D1-L3  1500    2547   771          1786     455
"""

_MIXED = """
task         demos  bc-all  bcnd  dwbc  demodice  dp-bc
ant          Mixed  193     411   339   -53       601
halfcheetah  Mixed  1255    921   265   344       3146
walker2d     Mixed  169     441   290   488       1390
hopper       Mixed  587     564   541   605       655
"""

_STEPS = """
task         step  D1-L1     D1-L2     D1-L3     D2-L1     D2-L2     D2-L3
ant          100   261±54    380±62    486±76    199±66    342±14    328±88
ant          50    202±51    803±114   1073±172  339±27    720±139   1776±123
ant          30    47±16     719±51    1890±156  1572±160  1833±30   3064±34
ant          10    -100±51   499±77    2547±118  1402±151  1982±111  3260±34
ant          5     -133±55   490±125   2331±248  1105±263  1984±103  3414±40
halfcheetah  100   556±102   640±108   1115±181  1123±41   1791±13   1393±175
halfcheetah  50    797±185   1896±222  2733±113  1468±82   2421±5    3126±306
halfcheetah  30    895±73    1880±326  2899±257  1530±39   2714±15   4434±240
halfcheetah  10    1365±147  2440±274  4042±80   1394±103  2749±15   4748±40
halfcheetah  5     708±255   2061±373  3758±351  1469±253  2469±253  4660±14
walker2d     100   260±2     241±12    311±9     259±1     258±1     273±19
walker2d     50    463±40    259±11    553±89    549±196   360±14    1085±251
walker2d     30    415±56    978±96    1398±333  2208±160  1742±253  2512±212
walker2d     10    1697±219  1267±145  1474±265  1764±143  1915±384  1984±365
walker2d     5     1467±253  1722±297  3020±466  1917±151  3162±20   3076±205
hopper       100   98±2      461±11    420±1     215±1     151±3     355±25
hopper       50    516±0     815±16    379±0     1283±109  631±4     342±29
hopper       30    688±33    649±43    517±1     2075±159  904±6     1353±128
hopper       10    1000±42   2752±38   678±56    2308±113  2323±2    1740±175
hopper       5     580±60    3145±11   1508±272  1835±216  2297±34   2265±171
"""

_QUALITY = """
task         D1-L1  D1-L2  D1-L3  D2-L1  D2-L2  D2-L3  Expert
ant          -73    227    3514   1062   1560   2649   4349
halfcheetah  567    1090   1853   1491   2217   3263   4624
walker2d     523    467    4362   1699   2717   4152   4963
hopper       699    1037   3229   734    3362   2597   3594
"""

_ROBOSUITE = """
demos  bc-all  bcnd  dwbc  dp-bc
Robo   0.76    0.56  0.82  0.86
"""

_ROBOSUITE_ALL_STEPS = """
step  Robo
1     0.78
3     0.86
5     0.74
10    0.60
"""

_ROBOSUITE_STEPS = """
step  Robo-L1  Robo-L2
1     0.60     0.82
3     0.74     0.78
5     0.80     0.76
10    0.64     0.76
30    0.48     0.52
"""

_TRAJECTORIES = """
demos        length  return
roboturk/1   500     276
roboturk/2   502     120
roboturk/3   502     203
roboturk/4   505     102
roboturk/5   506     253
roboturk/6   507     312
roboturk/7   507     103
roboturk/8   509     81
roboturk/9   511     180
roboturk/10  511     318
"""

_COPIED_DWBC = "the mean is the same as on {}, other data; probably a copy error"
_COPIED_NOISE = "mean and spread are those of {}; probably copied"
_NOT_SHIPPED = "matches no published file; the nearest in name has {}"
_HOPPER_STEP = "the best of its column, though the text says 5 for every set of Hopper"
_ROLLOUTS = (
    "over 50 rollouts the standard error is .05: .86 of DP-BC and .82 of DWBC cannot be told apart"
)

NOTES: Mapping[tuple[str, str, str, str], str] = {
    ("1", "ant", "D2-L1", "dp-bc"): (
        "the reverse-step table has 1402 at 10 and 1572 at 30; DWBC is better than the one and "
        "worse than the other"
    ),
    ("1", "ant", "D2-L2", "dp-bc"): "step 5 is better in the reverse-step table (1984)",
    ("1", "halfcheetah", "D2-L2", "bc-all"): "the best of its row, though DP-BC is set in bold",
    ("1", "halfcheetah", "D2-L2", "dp-bc"): (
        "set in bold, though BC-all has 2789; step 10 is better in the reverse-step table (2749)"
    ),
    ("1", "walker2d", "D1-L2", "dp-bc"): ("the reverse-step table has 1722 at 5 and 1267 at 10"),
    ("1", "walker2d", "D2-L3", "dp-bc"): (
        "step 3 is not in the reverse-step table, which has 3076 at 5"
    ),
    ("1", "hopper", "D1-L3", "dp-bc"): (
        "step 1 is not in the reverse-step table, whose best is 1508 at 5; BC-all, BCND and "
        "DemoDICE are better"
    ),
    ("1", "hopper", "D2-L1", "dp-bc"): (
        "2308 in the reverse-step table; with that DemoDICE (2336) is the best"
    ),
    ("1", "hopper", "D2-L3", "dp-bc"): "BC-all, BCND and DemoDICE are better",
    ("1", "hopper", "D1-L1", "dwbc"): _COPIED_DWBC.format("D2-L1"),
    ("1", "hopper", "D1-L2", "dwbc"): _COPIED_DWBC.format("D2-L2"),
    ("1", "hopper", "D1-L3", "dwbc"): _COPIED_DWBC.format("D2-L3"),
    ("1", "hopper", "D2-L1", "dwbc"): _COPIED_DWBC.format("D1-L1"),
    ("1", "hopper", "D2-L2", "dwbc"): _COPIED_DWBC.format("D1-L2"),
    ("1", "hopper", "D2-L3", "dwbc"): _COPIED_DWBC.format("D1-L3"),
    ("noise", "ant", "S&P-L1", "bc-all"): _COPIED_NOISE.format("Uni-L1"),
    ("noise", "ant", "S&P-L2", "bc-all"): _COPIED_NOISE.format("Uni-L2"),
    ("noise", "ant", "S&P-L3", "bc-all"): _COPIED_NOISE.format("Uni-L3"),
    ("filters", "ant", "D1-L1", "gaussian-bc"): (
        "the best filter of its row, though the text calls the mean the best of the filters"
    ),
    ("reverse-step", "ant", "D2-L1", "30"): "Table 1 has 1402 at 30",
    ("reverse-step", "ant", "D2-L1", "10"): "Table 1 has this at 30",
    ("reverse-step", "ant", "D2-L2", "5"): "the best of its column; Table 1 quotes 1982 at 10",
    ("reverse-step", "halfcheetah", "D2-L2", "10"): (
        "the best of its column; Table 1 quotes 2714 at 30"
    ),
    ("reverse-step", "walker2d", "D1-L2", "10"): "Table 1 has 1722 at 10",
    ("reverse-step", "walker2d", "D1-L2", "5"): "Table 1 has this at 10",
    ("reverse-step", "walker2d", "D2-L3", "5"): "Table 1 has this at 3",
    ("reverse-step", "hopper", "D1-L1", "10"): _HOPPER_STEP,
    ("reverse-step", "hopper", "D1-L3", "5"): "the best of its column; Table 1 has 1825 at 1",
    ("reverse-step", "hopper", "D2-L1", "10"): f"2408 in Table 1; {_HOPPER_STEP}",
    ("reverse-step", "hopper", "D2-L2", "10"): _HOPPER_STEP,
    ("quality", "ant", "D1-L3", "return"): (
        "the published file of noise .25 has 536 an episode; VILD's of noise .10 has 3515"
    ),
    ("quality", "halfcheetah", "D2-L1", "return"): _NOT_SHIPPED.format(391),
    ("quality", "halfcheetah", "Expert", "return"): "the published file has 4129",
    ("quality", "walker2d", "D1-L1", "return"): "more than D1-L2, which has less noise",
    ("quality", "walker2d", "D2-L1", "return"): _NOT_SHIPPED.format(2706),
    ("quality", "walker2d", "Expert", "return"): "the published file has 4653",
    ("quality", "hopper", "D2-L2", "return"): "more than D2-L3, a later checkpoint",
    ("robosuite", "sawyer-reach", "Robo", "dwbc"): _ROLLOUTS,
    ("robosuite", "sawyer-reach", "Robo", "dp-bc"): _ROLLOUTS,
}
"""By table, task, the paper's name of the demonstrations, and the method or the reverse step."""

REMARKS: Mapping[str, str] = {
    "1": (
        "What stands after ± is not defined: some are as small as 2, which suits episodes of one "
        "policy better than seeds. The reverse step of DP-BC was chosen by the test return. BC-opt "
        "sees no supplementary data and is printed once for each task. The text says that DP-BC "
        "improves consistently; in four cells another method is better."
    ),
    "noise": (
        "The text gives L1 to L3 the levels .25, .4, .6, the other way round than for D1. Here the "
        "levels are read from the returns: L1 is .6 for uniform noise, .25 for salt-and-pepper."
    ),
    "reverse-step": (
        "Means of 10 episodes. The text says that 5 is best for every set of Hopper, where 10 is "
        "for three of six, and credits Theorem 1 with what Theorem 4 claims."
    ),
    "quality": "Levels are not in order of return everywhere.",
    "robosuite": (
        "Success over 50 rollouts. One sentence lets episodes end at the horizon alone, another at "
        "a distance below .1; the data show reaching for the nut, not moving it to the peg."
    ),
    "robosuite-steps": "Robo-L1 is once called Robo-D1 in the text.",
}
"""What concerns a whole table."""


def published(table: str) -> tuple[Published, ...]:
    """Every number of a table, row by row.

    Raises:
        EluteError: no such table.
    """
    if table not in TABLES:
        near = get_close_matches(table, TABLES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(TABLES)}"
        raise EluteError(f"the paper has no table {table!r}", hint=hint)
    return TABLES[table]


def find(
    table: str, task: str, demos: str, method: str, reverse_step: int | None = None
) -> Published | None:
    """What the paper prints where a table has this cell; None where it has none.

    Without a reverse step, a cell that is there for several steps is none of them.

    Raises:
        EluteError: no such table.
    """
    method = SAME.get(method, method)
    cells = [cell for cell in published(table) if (cell.task, cell.method) == (task, method)]
    if method != "bc-opt":  # which sees no supplementary data
        cells = [cell for cell in cells if cell.demos == demos]
    if reverse_step is not None or len(cells) > 1:
        cells = [cell for cell in cells if cell.reverse_step == reverse_step]
    return cells[0] if cells else None


def _lines(text: str) -> Iterator[dict[str, str]]:
    header, *rows = (line.split() for line in text.strip().splitlines())
    return (dict(zip(header, row, strict=True)) for row in rows)


def _number(text: str) -> tuple[float, float | None]:
    mean, sign, spread = text.partition("±")
    return float(mean), float(spread) if sign else None


def _by_method(table: str, text: str, metric: Metric = "return") -> Iterator[Published]:
    """Columns are methods; a `step` at the end is DP-BC's."""
    for row in _lines(text):
        task, label = row.pop("task", "sawyer-reach"), row.pop("demos")
        step = row.pop("step", None)
        for method, printed in row.items():
            if printed != "-":
                yield Published(
                    table,
                    task,
                    LABELS[label],
                    method,
                    *_number(printed),
                    reverse_step=int(step) if step and method == "dp-bc" else None,
                    metric=metric,
                    note=NOTES.get((table, task, label, method), ""),
                )


def _by_step(table: str, text: str, metric: Metric = "return") -> Iterator[Published]:
    """Rows are reverse steps, columns demonstrations."""
    for row in _lines(text):
        task, step = row.pop("task", "sawyer-reach"), row.pop("step")
        for label, printed in row.items():
            note = NOTES.get((table, task, label, step), "")
            yield Published(
                table, task, LABELS[label], "dp-bc", *_number(printed), int(step), metric, note
            )


def _quality(table: str, text: str) -> Iterator[Published]:
    for row in _lines(text):
        task = row.pop("task")
        for label, printed in row.items():
            note = NOTES.get((table, task, label, "return"), "")
            yield Published(
                table, task, LABELS[label], DEMONSTRATIONS, *_number(printed), note=note
            )


def _trajectories(table: str, text: str) -> Iterator[Published]:
    metrics: tuple[Metric, ...] = ("length", "return")
    for row in _lines(text):
        for metric in metrics:
            yield Published(
                table,
                "sawyer-reach",
                row["demos"],
                DEMONSTRATIONS,
                float(row[metric]),
                metric=metric,
            )


TABLES: Mapping[str, tuple[Published, ...]] = {
    "1": tuple(_by_method("1", _OFFLINE)),
    "noise": tuple(_by_method("noise", _NOISE)),
    "filters": tuple(_by_method("filters", _FILTERS)),
    "mixed": tuple(_by_method("mixed", _MIXED)),
    "reverse-step": tuple(_by_step("reverse-step", _STEPS)),
    "quality": tuple(_quality("quality", _QUALITY)),
    "robosuite": (
        *_by_method("robosuite", _ROBOSUITE, "success"),
        *_by_step("robosuite", _ROBOSUITE_ALL_STEPS, "success"),
    ),
    "robosuite-steps": tuple(_by_step("robosuite-steps", _ROBOSUITE_STEPS, "success")),
    "robosuite-quality": tuple(_trajectories("robosuite-quality", _TRAJECTORIES)),
}
"""By the names that `elute report --table` takes."""
