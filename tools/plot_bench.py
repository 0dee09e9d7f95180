#!/usr/bin/env python3
"""Draw what gemvjit-bench measured, and print it as the tables of docs/performance.md.

    tools/plot_bench.py FILE... --output DIR [--baseline FILE]   pictures
    tools/plot_bench.py FILE... --table [--baseline FILE]        Markdown on stdout

FILE is a document of `gemvjit-bench --json`; of a case that several hold the last one counts. For each family with
results DIR gets, as SVG and PNG:

    roofline_FAMILY   achieved read bandwidth over the bytes that an op reads, beside the measured ceilings
    ratio_FAMILY      each shape's time over the PDL ceiling of the same run, with the geometric mean in the legend

--baseline adds other kernels: a JSON list of {"family", "n", "k", "m", "us", "name"} and perhaps "silu_mul". cuBLASLt's
times are in the documents themselves and are shown for BF16, where it reads the same bytes. A result that the bench
found to be wrong is left out, and stderr says so.

Pictures need matplotlib, the table does not; where this Python has none, the one that tools/setup.sh made in
build/deps/venv draws them. Exit 0 if all was written, 1 for input that cannot be read or does not
fit, 2 for wrong use or where matplotlib is missing.
"""

import argparse
import json
import math
import os
import sys
from pathlib import Path

# Okabe and Ito's colours, which people with any colour vision can tell apart; each M also has a marker of its own.
M_STYLES = [("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "D"), ("#CC79A7", "^"), ("#E69F00", "p"), ("#000000", "h")]
OTHER_MARKERS = ["v", "X", "P", "*", "<", ">"]
CEILINGS = [("plain_us", "plain read", "--"), ("pdl_us", "PDL read", "-"),
            ("pdl_x_out_us", "PDL read, then x and out", ":")]
GREY = "#555555"
FAMILY_NAMES = {"nvfp4": "NVFP4", "bf16": "BF16"}
PROJECT_PYTHON = Path(__file__).resolve().parents[1] / "build" / "deps" / "venv" / "bin" / "python3"
NUMBERS = ("n", "k", "m", "bytes", "us", "plain_us", "pdl_us", "pdl_x_out_us")


class InputError(Exception):
    """What is wrong with an input, for the one line on stderr."""


class Series:
    """Times of another kernel: `us` by (family, n, k, silu_mul, m)."""

    def __init__(self, name):
        self.name, self.us = name, {}


def key_of(result):
    return result["family"], result["n"], result["k"], bool(result.get("silu_mul", False)), result["m"]


def shown(value):
    """A value of an input, short enough for a message of one line."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python prints no number of thousands of digits
        return f"a very large {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def is_quantity(value):
    """A number that something can be measured to be: ratios of two are finite and above 0."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and (value == 0 or 1e-6 <= value <= 1e18)


def require(entry, place, names, optional=()):
    """The entry is an object with a known family and with quantities of these names; 0 stands for missing times."""
    if not isinstance(entry, dict):
        raise InputError(f"{place}: is no object")
    family = entry.get("family")
    if not isinstance(family, str) or family not in FAMILY_NAMES:
        raise InputError(f"{place}: \"family\" is {shown(family)}; nvfp4 and bf16 are known")
    for name in (*names, *(name for name in optional if name in entry)):
        value = entry.get(name)
        if not is_quantity(value) or (value == 0 and name in ("n", "k", "m", "us", "bytes")):
            raise InputError(f"{place}: \"{name}\" is {shown(value)}")


def read_json(path):
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}") from error
    except RecursionError as error:
        raise InputError(f"{path}: is nested too deep") from error


def read_results(paths):
    """Results by key, in the order of the files, and the devices they come from."""
    results, devices, kinds = {}, [], set()
    for path in paths:
        document = read_json(path)
        if not isinstance(document, dict) or not isinstance(document.get("results"), list):
            raise InputError(f"{path}: is no document of gemvjit-bench --json")
        device = document.get("device", "unknown device")
        if not isinstance(device, str):
            raise InputError(f"{path}: \"device\" is {shown(device)}")
        if device not in devices:
            devices.append(device)
        for i, result in enumerate(document["results"]):
            place = f"{path}: results[{i}]"
            require(result, place, NUMBERS, optional=("cublaslt_us",))
            if problem := result.get("problem"):
                problem = problem if isinstance(problem, str) else shown(problem)
                print(f"plot_bench: {place} is left out: {problem}", file=sys.stderr)
                continue
            kinds.add((bool(result.get("pdl")), bool(result.get("warm"))))
            results[key_of(result)] = result
    if not results:
        raise InputError("the files hold no results")
    if len(kinds) > 1:  # "chain" may differ within a run: it is used where a shape allows it
        raise InputError("the files mix runs with and without --pdl on or --warm, which do not compare")
    return results, devices


def read_others(results, baseline):
    """cuBLASLt beside BF16, and the kernels of the baseline file that meet a result."""
    others = {}
    for key, result in results.items():
        if key[0] == "bf16" and result.get("cublaslt_us", 0) > 0:
            others.setdefault("cuBLASLt", Series("cuBLASLt")).us[key] = result["cublaslt_us"]
    if baseline is not None:
        entries = read_json(baseline)
        if not isinstance(entries, list):
            raise InputError(f"{baseline}: is no list")
        for i, entry in enumerate(entries):
            place = f"{baseline}: [{i}]"
            require(entry, place, ("n", "k", "m", "us"))
            name = entry.get("name")
            if not isinstance(name, str) or not name:
                raise InputError(f"{place}: \"name\" is {shown(name)}")
            if key_of(entry) in results:
                others.setdefault(name, Series(name)).us[key_of(entry)] = entry["us"]
    return list(others.values())


class Family:
    """The results of one family: shapes in the order of the files, the values of M ascending."""

    def __init__(self, family, results, others):
        self.name = family
        self.results = {key: value for key, value in results.items() if key[0] == family}
        self.shapes = list(dict.fromkeys(key[1:4] for key in self.results))
        self.tokens = sorted({key[4] for key in self.results})
        self.others = [o for o in others if any(key[0] == family for key in o.us)]

    def result(self, shape, m):
        return self.results.get((self.name, *shape, m))

    def first(self, shape):
        """The result with the smallest M: where the ceilings with x and out read least besides the weight."""
        return next(r for r in (self.result(shape, m) for m in self.tokens) if r)

    def ratio(self, shape, m, other=None):
        """Time over the PDL ceiling; None where one of them was not measured."""
        result = self.result(shape, m)
        if result is None or result["pdl_us"] <= 0:
            return None
        us = result["us"] if other is None else other.us.get((self.name, *shape, m))
        return None if us is None else us / result["pdl_us"]

    def times(self, m, other=None):
        """Result and time of each shape that has both for this M."""
        for shape in self.shapes:
            result = self.result(shape, m)
            us = (result or {}).get("us") if other is None else other.us.get((self.name, *shape, m))
            if result is not None and us is not None:
                yield result, us

    def geomean(self, m, other=None):
        ratios = [r for r in (self.ratio(shape, m, other) for shape in self.shapes) if r is not None]
        return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def shape_text(shape, times=" x "):
    n, k, silu_mul = shape
    return f"{n}{times}{k}{' silu' if silu_mul else ''}"


def number(value):
    return "-" if value is None or value <= 0 else f"{value:.2f}"


def over_tokens(family, value):
    return " / ".join(number(value(m)) for m in family.tokens)


def markdown(family):
    """The family's table, as text with a final newline."""
    tokens = " / ".join(str(m) for m in family.tokens)
    one = family.tokens[0]
    head = ["N x K", "MB", f"ceilings at M = {one}: plain / PDL / PDL with x and out, us", f"us an op, M = {tokens}",
            f"over the PDL ceiling, M = {tokens}"]
    head += [f"{other.name} over the PDL ceiling, M = {tokens}" for other in family.others]
    rows = [head, ["---"] * len(head)]
    for shape in family.shapes:
        first = family.first(shape)
        row = [shape_text(shape), f"{first['bytes'] / 1e6:.1f}",
               " / ".join(number(first[name]) for name, _, _ in CEILINGS),
               over_tokens(family, lambda m: (family.result(shape, m) or {}).get("us"))]
        row += [over_tokens(family, lambda m: family.ratio(shape, m, o)) for o in [None, *family.others]]
        rows.append(row)
    means = [over_tokens(family, lambda m: family.geomean(m, other)) for other in [None, *family.others]]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines[1] = "|" + "|".join(rows[1]) + "|"
    lines.append("| geomean over the PDL ceiling | | | | " + " | ".join(means) + " |")
    return f"## {FAMILY_NAMES[family.name]}\n\n" + "\n".join(lines) + "\n"


def m_style(family, m):
    return M_STYLES[family.tokens.index(m) % len(M_STYLES)]


def new_figure(plt, width, height):
    figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    return figure, axes


def plain_log_ticks(axis, ticker, subs):
    """Numbers as people write them (0.5, 20) instead of powers of ten."""
    axis.set_major_locator(ticker.LogLocator(base=10, subs=subs))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(ticker.NullLocator())


def marker_style(family, m, other):
    """Ours filled, others hollow and above ours, so that a point that lies on another one still shows."""
    color, marker = m_style(family, m)
    if other is None:
        return {"marker": marker, "color": color, "linestyle": "", "markeredgecolor": "white", "markeredgewidth": 0.6,
                "markersize": 7.5, "zorder": 3}
    marker = OTHER_MARKERS[family.others.index(other) % len(OTHER_MARKERS)]
    return {"marker": marker, "color": color, "linestyle": "", "markerfacecolor": "none", "markeredgewidth": 1.3,
            "markersize": 6.5, "zorder": 4}


def draw_roofline(plt, ticker, family, device):
    figure, axes = new_figure(plt, 9, 5.6)
    for name, label, style in CEILINGS:
        points = {}  # shapes of one size share a point
        for shape in family.shapes:
            first = family.first(shape)
            if first[name] > 0:
                points.setdefault(first["bytes"], []).append(first["bytes"] / first[name] / 1e6)
        if points:
            x = sorted(points)
            axes.plot([b / 1e6 for b in x], [sum(points[b]) / len(points[b]) for b in x], style, color=GREY, zorder=2,
                      label=f"ceiling: {label}")
    for other in [None, *family.others]:
        for i, m in enumerate(family.tokens):
            beside = 1.025 ** (i - (len(family.tokens) - 1) / 2)  # or the points of one shape would hide each other
            points = []
            for result, us in family.times(m, other):
                points.append((result["bytes"] / 1e6 * beside, result["bytes"] / us / 1e6))
            label = f"gemvjit, M = {m}" if other is None else None
            if points:
                axes.plot(*zip(*points), **marker_style(family, m, other), label=label)
        if other is not None:
            style = marker_style(family, family.tokens[0], other) | {"color": GREY}
            axes.plot([], [], **style, label=f"{other.name} (M by colour)")
    axes.set_xscale("log")
    plain_log_ticks(axes.xaxis, ticker, (1, 2, 5))
    axes.set_ylim(bottom=0)
    axes.grid(color="#DDDDDD", linewidth=0.8)
    axes.set_xlabel("bytes an op reads, MB (the M of one op side by side)")
    axes.set_ylabel("read bandwidth, TB/s")
    axes.set_title(f"{FAMILY_NAMES[family.name]}: achieved bandwidth and measured ceilings, {device}")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def add_geomean_legend(plt, figure, columns):
    """A column a kernel, as many beside each other as the width takes; the figure grows by what the legend needs."""
    columns = [column for column in columns if column]
    if not columns:
        return
    rows = max(map(len, columns))
    blank = plt.Line2D([], [], linestyle="", label=" ")
    handles = [handle for column in columns for handle in column + [blank] * (rows - len(column))]
    longest = max(len(handle.get_label()) for handle in handles)
    fitting = max(1, int(figure.get_figwidth() * 11 / (longest + 7)))  # letters an inch; 7 for marker and gap
    beside = min(len(columns), fitting)
    figure.set_figheight(figure.get_figheight() + 0.25 * math.ceil(len(handles) / beside))
    figure.legend(handles=handles, loc="outside lower center", ncols=beside, frameon=False,
                  title="geometric mean of the ratios", title_fontsize=11)


def draw_ratios(plt, ticker, family, device):
    figure, axes = new_figure(plt, max(9, 0.5 * len(family.shapes)), 4.8)
    shown = []
    step = 0.8 / len(family.tokens)  # of M in a shape's band, and of the kernels in an M's place
    kernel_step = min(0.4, 0.8 / (1 + len(family.others))) * step
    for i in range(0, len(family.shapes), 2):  # bands, so that the eye keeps a shape's points together
        axes.axvspan(i - 0.5, i + 0.5, color="#F3F3F3", zorder=0)
    columns = []  # of the legend: one a kernel
    for i, other in enumerate([None, *family.others]):
        columns.append([])
        for place, m in enumerate(family.tokens):
            middle = (place + 0.5) * step - 0.4 + (i - len(family.others) / 2) * kernel_step
            points = [(x + middle, ratio) for x, ratio in enumerate(family.ratio(shape, m, other)
                                                                    for shape in family.shapes) if ratio is not None]
            if not points:
                continue
            shown += [ratio for _, ratio in points]
            label = f"{other.name if other else 'gemvjit'}, M = {m}: {number(family.geomean(m, other))}"
            columns[-1] += axes.plot(*zip(*points), **marker_style(family, m, other), label=label)
    axes.axhline(1, color=GREY, linewidth=1.2, zorder=2)
    axes.set_yscale("log")
    subs = (1, 1.2, 1.4, 1.6, 2, 2.5, 3, 4, 5, 7) if max(shown, default=1) < 4 else (1, 1.5, 2, 3, 4, 5, 7)
    plain_log_ticks(axes.yaxis, ticker, subs)
    axes.set_ylim(min(0.95, *shown, 1) * 0.98, max(shown, default=1) * 1.1)
    axes.set_xlim(-0.5, len(family.shapes) - 0.5)
    axes.set_xticks(range(len(family.shapes)), [shape_text(shape, "x") for shape in family.shapes], rotation=40,
                    ha="right", rotation_mode="anchor")
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.8)
    axes.set_ylabel("time / PDL ceiling")
    axes.set_title(f"{FAMILY_NAMES[family.name]}: time over the PDL read ceiling of the same run, {device}")
    add_geomean_legend(plt, figure, columns)
    return figure


def use_project_python(arguments):
    """Where matplotlib is missing, runs this script again with the Python of tools/setup.sh; returns if that does not
    exist or is this one. To be called before anything is printed."""
    try:
        import matplotlib  # noqa: F401
        return
    except ImportError:
        pass
    # Compared by its environment: the interpreter itself is a link to the one that made the environment.
    if PROJECT_PYTHON.is_file() and Path(sys.prefix).resolve() != PROJECT_PYTHON.parents[1].resolve():
        os.execv(PROJECT_PYTHON, [str(PROJECT_PYTHON), str(Path(__file__).resolve()), *arguments])


def draw(families, device, output):
    """Writes the pictures and returns their paths."""
    try:
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        from matplotlib import ticker
    except ImportError as error:
        print(f"plot_bench: pictures need matplotlib, which this Python does not have ({error}); "
              "pip install matplotlib, or ask for --table only", file=sys.stderr)
        sys.exit(2)
    # The same input gives the same file: names within an SVG come from a hash, and it has no date.
    plt.rcParams.update({"font.size": 11.5, "axes.titlesize": 12.5, "legend.fontsize": 11, "svg.hashsalt": "gemvjit",
                         "svg.fonttype": "path", "savefig.facecolor": "white"})
    output.mkdir(parents=True, exist_ok=True)
    folder = os.open(output, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    paths = []
    for family in families:
        for name, picture in (("roofline", draw_roofline), ("ratio", draw_ratios)):
            figure = picture(plt, ticker, family, device)
            for kind, options in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 200})):
                paths.append(output / f"{name}_{family.name}.{kind}")
                # Not through a link, which another user may have put into the folder.
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
                with open(os.open(paths[-1].name, flags, 0o666, dir_fd=folder), "wb") as file:
                    figure.savefig(file, format=kind, **options)
            plt.close(figure)
    os.close(folder)
    return paths


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("files", nargs="+", metavar="FILE", help="a document of gemvjit-bench --json")
    parser.add_argument("--output", type=Path, metavar="DIR", help="folder for the pictures; made if missing")
    parser.add_argument("--baseline", metavar="FILE", help="other kernels' times")
    parser.add_argument("--table", action="store_true", help="print the Markdown tables")
    options = parser.parse_args(arguments)
    if options.output is None and not options.table:
        parser.error("nothing to do: name --output DIR, or --table")
    return options


def main(arguments):
    options = parse_arguments(arguments)
    if options.output is not None:
        use_project_python(arguments)
    try:
        results, devices = read_results(options.files)
        others = read_others(results, options.baseline)
        families = [Family(name, results, others) for name in FAMILY_NAMES if any(key[0] == name for key in results)]
        if options.table:
            print("\n".join(markdown(family) for family in families), end="")
        if options.output is not None:
            for path in draw(families, ", ".join(devices), options.output):
                print(f"plot_bench: wrote {path}", file=sys.stderr)
    except (InputError, OSError) as error:
        print(f"plot_bench: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
