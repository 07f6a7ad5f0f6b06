"""The transcription against the paper's source, and the errata against the transcription."""

import re

import pytest

from elute.collect.catalogue import RECIPES, TENS
from elute.envs.task import TASKS
from elute.errors import EluteError
from elute.report.paper import DEMONSTRATIONS, LABELS, NOTES, REMARKS, TABLES, find, published

METHODS = {"bc-opt", "bc-all", "bcnd", "dwbc", "demodice", "dp-bc"}
FILTERS = {"gaussian-bc", "mean-bc", "median-bc"}
ROBOT = "sawyer-reach"


def cells(table, **facts):
    return [c for c in published(table) if all(getattr(c, k) == v for k, v in facts.items())]


def best(found):
    return max(found, key=lambda cell: cell.mean)


class TestNames:
    @pytest.mark.parametrize(
        ("table", "count"),
        [
            ("1", 4 * 6 * 5 + 4),  # BC-opt once for each task
            ("noise", 2 * 6 * 3),
            ("filters", 3 * 5),
            ("mixed", 4 * 5),
            ("reverse-step", 4 * 6 * 5),
            ("quality", 4 * 7),
            ("robosuite", 4 + 4),
            ("robosuite-steps", 2 * 5),
            ("robosuite-quality", 10 * 2),
        ],
    )
    def test_counts(self, table, count):
        found = published(table)
        keys = {(c.task, c.demos, c.method, c.reverse_step, c.metric) for c in found}
        assert len(found) == len(keys) == count
        assert {c.table for c in found} == {table}

    def test_every_table_is_counted(self):
        marks = self.test_counts.pytestmark[0].args[1]
        assert [table for table, _ in marks] == list(TABLES)

    def test_demonstrations_are_in_the_catalogue(self):
        for cell in (cell for table in TABLES.values() for cell in table):
            if cell.task == ROBOT:
                group = cell.demos.removeprefix("roboturk/")
                assert f"{cell.task}/{cell.demos}" in TENS or int(group) in range(1, 11)
            else:
                assert f"{cell.task}/{cell.demos}" in RECIPES

    def test_tasks_and_methods(self):
        everything = [cell for table in TABLES.values() for cell in table]
        assert {c.task for c in everything} - {ROBOT} == {
            "ant",
            "halfcheetah",
            "walker2d",
            "hopper",
        }
        assert {c.task for c in everything} - {ROBOT} <= set(TASKS)
        assert {c.method for c in everything} == METHODS | FILTERS | {DEMONSTRATIONS}
        assert {c.method for c in published("1")} == METHODS

    def test_metrics(self):
        for name, table in TABLES.items():
            rates = name in {"robosuite", "robosuite-steps"}
            assert all((cell.metric == "success") == rates for cell in table)
            assert all(0 < cell.mean < 1 for cell in table if rates)

    def test_unknown_table(self):
        with pytest.raises(EluteError, match="did you mean filters"):
            published("filter")


class TestFind:
    def test_a_cell(self):
        found = find("1", "halfcheetah", "action-noise/heavy", "dp-bc")
        assert (found.mean, found.spread, found.reverse_step) == (1365, 147, 10)

    def test_names_of_ours(self):
        demos = "action-noise/light"
        assert find("1", "ant", demos, "dp-bc-best") == find("1", "ant", demos, "dp-bc")
        assert find("noise", "ant", "salt-pepper/light", "bc").mean == 209

    def test_bc_opt_whatever_the_supplementary_set(self):
        assert {find("1", "hopper", d, "bc-opt").mean for d in ("checkpoint/late", "x")} == {320}

    def test_a_sweep_needs_its_step(self):
        cell = "reverse-step", "ant", "checkpoint/early", "dp-bc"
        assert find(*cell) is None
        assert find(*cell, 30).mean == 1572
        assert find(*cell, 31) is None

    def test_headline_beside_a_sweep(self):
        assert find("robosuite", ROBOT, "roboturk/supplementary", "dp-bc").reverse_step is None
        assert find("robosuite", ROBOT, "roboturk/supplementary", "dp-bc", 10).mean == 0.60

    def test_what_is_not_there(self):
        assert find("1", "ant", "checkpoint/late", "smodice") is None
        assert find("mixed", "ant", "checkpoint/late", "dp-bc") is None


class TestErrata:
    def test_every_note_is_at_a_cell(self):
        noted = [cell for table in TABLES.values() for cell in table if cell.note]
        assert sorted(cell.note for cell in noted) == sorted(NOTES.values())
        assert set(REMARKS) <= set(TABLES)

    def test_dp_bc_of_table_1_has_a_note_exactly_where_something_disagrees(self):
        for cell in cells("1", method="dp-bc"):
            where = {"task": cell.task, "demos": cell.demos}
            sweep = cells("reverse-step", **where)
            same = find("reverse-step", cell.task, cell.demos, "dp-bc", cell.reverse_step)
            agrees = (
                same is not None
                and (same.mean, same.spread) == (cell.mean, cell.spread)
                and same == best(sweep)
                and best(cells("1", **where)) == cell
            )
            assert agrees == (not cell.note), cell

    def test_the_sweep_has_a_note_wherever_table_1_disagrees_with_its_best(self):
        for cell in cells("1", method="dp-bc"):
            top = best(cells("reverse-step", task=cell.task, demos=cell.demos))
            if (top.mean, top.spread, top.reverse_step) != (
                cell.mean, cell.spread, cell.reverse_step
            ):  # fmt: skip
                assert top.note, top

    def test_filters_repeat_table_1(self):
        for cell in published("filters"):
            if cell.method in METHODS:
                assert cell.mean == find("1", cell.task, cell.demos, cell.method).mean

    def test_19_of_24_best_steps_are_5_or_10(self):
        tops = [
            best(cells("reverse-step", task=task, demos=demos)).reverse_step
            for task, demos in dict.fromkeys((c.task, c.demos) for c in published("reverse-step"))
        ]
        assert len(tops) == 24
        assert sum(step in (5, 10) for step in tops) == 19

    def test_hopper_is_not_always_best_at_5(self):
        tops = [
            best(cells("reverse-step", task="hopper", demos=demos))
            for demos in list(LABELS.values())[:6]
        ]
        assert [top.reverse_step for top in tops] == [10, 5, 5, 10, 10, 5]
        assert all("for every set of Hopper" in top.note for top in tops if top.reverse_step == 10)

    def test_copied_numbers_are_equal(self):
        for level, checkpoint in zip(
            ("heavy", "medium", "light"), ("early", "middle", "late"), strict=True
        ):
            one = find("1", "hopper", f"action-noise/{level}", "dwbc")
            other = find("1", "hopper", f"checkpoint/{checkpoint}", "dwbc")
            assert one.mean == other.mean
        for uniform, pepper in zip(
            ("heavy", "medium", "light"), ("light", "medium", "heavy"), strict=True
        ):
            one = find("noise", "ant", f"uniform-noise/{uniform}", "bc-all")
            other = find("noise", "ant", f"salt-pepper/{pepper}", "bc-all")
            assert (one.mean, one.spread) == (other.mean, other.spread)

    def test_levels_of_the_noise_table_are_read_from_its_returns(self):
        for task in ("ant", "halfcheetah"):
            uniform = [
                find("noise", task, f"uniform-noise/{level}", "bc-all").mean
                for level in ("heavy", "medium", "light")
            ]
            assert uniform == sorted(uniform)
        grains = [
            find("noise", "halfcheetah", f"salt-pepper/{level}", "bc-all").mean
            for level in ("light", "medium", "heavy")
        ]
        assert grains == sorted(grains, reverse=True)


@pytest.fixture(scope="session")
def source(data_folder):
    """The paper as LaTeX, which lies beside the data."""
    path = data_folder.parent / "paper" / "dp-il.tex"
    if not path.is_file():
        pytest.skip(f"the paper's source is not here: {path.name} beside ELUTE_TEST_DATA")
    return path.read_text()


def printed_rows(source, label):
    """Rows of a table as lists of plain text; a task spanning rows is repeated in each."""
    (body,) = (
        table
        for table in re.findall(r"\\begin{table\*?}(.*?)\\end{table\*?}", source, re.DOTALL)
        if f"\\label{{{label}}}" in table
    )
    body = re.search(r"\\begin{tabular}{[^}]*}(.*)\\end{tabular}", body, re.DOTALL).group(1)
    rows, task = [], ""
    for line in re.split(r"\\\\|\\cr\b", body):
        span = re.search(r"\\multirow{\d}{\*}{(.*?)}", line)
        row = [plain(entry) for entry in re.split(r"(?<!\\)&", line)]
        if span:
            task = plain(span.group(1))
            row[0] = task
        elif not row[0]:
            row[0] = task
        if len(row) > 1:  # not the rules after the last row
            rows.append(row)
    return rows


def plain(text):
    """Without markup and space."""
    text = text.replace(r"$\pm$", "±").replace(r"\&", "&")
    text = re.sub(r"\\(rowcolor{gray!25}|hline|toprule|midrule|bottomrule|bf|cr)", "", text)
    text = re.sub(r"\\multirow{\d}{\*}|\\textbf|[{}$]", "", text)
    return re.sub(r"-v2$", "", re.sub(r"\s+", "", text))


def as_printed(cell):
    mean = f"{cell.mean:.2f}" if cell.metric == "success" else f"{cell.mean:.0f}"
    return mean if cell.spread is None else f"{mean}±{cell.spread:.0f}"


LABEL_OF = {demos: label for label, demos in LABELS.items()}


def label_of(cell):
    return LABEL_OF[cell.demos]


class TestSource:
    """Each row of ours, written as it is printed, is the row of the paper."""

    def test_offline(self, source):
        names = ["bc-opt", "bc-all", "bcnd", "dwbc", "demodice", "dp-bc"]
        header, *rows = printed_rows(source, "t1")
        assert [name.lower() for name in header[2:8]] == names
        self.by_method("1", rows, names, steps=True)

    def test_noise(self, source):
        header, *rows = printed_rows(source, "tab:noise")
        assert header[2:] == ["BC", "BCND", "DP-BC"]
        self.by_method("noise", rows, ["bc-all", "bcnd", "dp-bc"])

    def test_filters(self, source):
        header, *rows = printed_rows(source, "tab:smooth")
        assert header[1:] == ["BC", "DP-BC", "G-Filter", "M-Filter", "Med-Filter"]
        names = ["bc-all", "dp-bc", "gaussian-bc", "mean-bc", "median-bc"]
        self.by_method("filters", [["Ant", *row] for row in rows], names)

    def test_mixed(self, source):
        header, *rows = printed_rows(source, "tab:mixed")
        assert header[1:] == ["BC", "BCND", "DWBC", "DemoDICE", "DP-BC"]
        names = ["bc-all", "bcnd", "dwbc", "demodice", "dp-bc"]
        self.by_method("mixed", [[row[0], "Mixed", *row[1:]] for row in rows], names)

    def test_reverse_step(self, source):
        header, *rows = printed_rows(source, "tab:optimal_t")
        ours = {
            (cell.task, str(cell.reverse_step), label_of(cell)): as_printed(cell)
            for cell in published("reverse-step")
        }
        theirs = {
            (row[0].lower(), row[1], label): entry
            for row in rows
            for label, entry in zip(header[2:], row[2:], strict=True)
        }
        assert ours == theirs

    def test_quality(self, source):
        header, *rows = printed_rows(source, "data_quality")
        ours = {(c.task, label_of(c)): as_printed(c) for c in published("quality")}
        theirs = {
            (row[0].lower(), label): entry
            for row in rows
            for label, entry in zip(header[3:], row[3:], strict=True)
        }
        assert ours == theirs

    def test_robosuite(self, source):
        methods, rates, steps, sweep = printed_rows(source, "tab:robosuite")
        assert methods[1:] == ["BC", "BCND", "DWBC", "DP-BC(Ours)"]
        headline, swept = published("robosuite")[:4], published("robosuite")[4:]
        assert [cell.method for cell in headline] == ["bc-all", "bcnd", "dwbc", "dp-bc"]
        assert [as_printed(cell) for cell in headline] == rates[1:]
        assert [str(cell.reverse_step) for cell in swept] == steps[1:]
        assert [as_printed(cell) for cell in swept] == sweep[1:]

    def test_robosuite_steps(self, source):
        header, *rows = printed_rows(source, "apptab:robosuite")
        ours = {
            (f"DP-BC({label_of(cell)})", str(cell.reverse_step)): as_printed(cell)
            for cell in published("robosuite-steps")
        }
        theirs = {
            (row[0], step): entry
            for row in rows
            for step, entry in zip(header[1:], row[1:], strict=True)
        }
        assert ours == theirs

    def test_trajectories(self, source):
        header, lengths, rewards = printed_rows(source, "apptab:trajid")
        for metric, row in (("length", lengths), ("return", rewards)):
            found = cells("robosuite-quality", metric=metric)
            assert [cell.demos for cell in found] == [f"roboturk/{name}" for name in header[1:]]
            assert [as_printed(cell) for cell in found] == row[1:]

    def by_method(self, table, rows, names, *, steps=False):
        ours = {
            (cell.task, label_of(cell), cell.method): as_printed(cell) for cell in published(table)
        }
        theirs = {
            (row[0].lower(), row[1], name): entry
            for row in rows
            for name, entry in zip(names, row[2 : 2 + len(names)], strict=True)
            if entry != "-"
        }
        assert ours == theirs
        if steps:
            chosen = {
                (cell.task, label_of(cell)): str(cell.reverse_step)
                for cell in cells(table, method="dp-bc")
            }
            assert chosen == {(row[0].lower(), row[1]): row[-1] for row in rows}
