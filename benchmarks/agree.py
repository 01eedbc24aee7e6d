#!/usr/bin/env python3
"""Compares what `collage` computes for ONNX files with what ONNX Runtime computes.

    python3 benchmarks/agree.py MODELS_OR_FOLDERS... [--shape NAME=1x3x224x224] [--bind NAME=FILE.npy]

Every file runs on a few random inputs; weightless files get their weights first (fill_weights.py). An output agrees
where max|a - r| <= 1e-4 max|r| + 1e-6 over the elements where ONNX Runtime's r is finite (float32), NaN and infinity
stand in the same places, and integers and booleans are equal. Exit status: 0 where all agree, 1 where anything does
not, 2 for a mistake in the call.
"""
import argparse
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile

PACKAGES = "python3 -m pip install 'onnxruntime==1.31.*' 'onnx==1.17.*' numpy"
try:
    import numpy as np
    import onnxruntime

    import fill_weights
except ImportError as missing:
    sys.exit(f"agree: the Python package {missing.name} is missing: {PACKAGES}")

# max|a - r| <= relative * max|r| + absolute, as `collage verify` has it.
TOLERANCES = {"float16": (1e-2, 1e-3), "float32": (1e-4, 1e-6), "float64": (1e-10, 1e-12)}
ELEMENT_TYPES = {"float16": "float16", "float": "float32", "double": "float64", "bool": "bool",
                 **{sign + f"int{bits}": sign + f"int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}}


class Mistake(Exception):
    """Something in the call cannot be right: one sentence."""


class Failure(Exception):
    """One of the two programs could not run a file: one sentence."""


@dataclasses.dataclass
class Difference:
    """How far one output is from ONNX Runtime's. `why` is empty where it agrees."""
    output: str
    worst: float = 0.0
    allowed: float = 0.0
    why: str = ""

    @property
    def ratio(self):
        return self.worst / self.allowed if self.allowed else 0.0


@dataclasses.dataclass
class Row:
    file: str
    outputs: int = 0
    compared: int = 0  # outputs, over all inputs
    worst: Difference | None = None
    why: str = ""

    @property
    def agrees(self):
        return not self.why and self.worst is not None and not self.worst.why


def difference(name, actual, expected):
    """Compares two arrays by the rule above."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        actual, expected = (f"{array.dtype}{list(array.shape)}" for array in (actual, expected))
        return Difference(name, why=f"it is {actual} and not {expected}")
    if expected.dtype.kind != "f":
        differing = int(np.count_nonzero(actual != expected))
        return Difference(name, why=f"{differing} of {expected.size} elements differ" if differing else "")
    a, r = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(r)
    relative, absolute = TOLERANCES[expected.dtype.name]
    largest = float(np.abs(r[finite]).max(initial=0))
    result = Difference(name, allowed=relative * largest + absolute)
    if not np.array_equal(np.isnan(a), np.isnan(r)):
        result.why = "NaN stands in other places"
    elif not np.array_equal(a[~finite], r[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        result.why = "infinity stands in other places"
    else:
        result.worst = float(np.abs(a[finite] - r[finite]).max(initial=0))
        if result.worst > result.allowed:
            result.why = "it is too far away"
    return result


def worse(one, other):
    """The worse of two differences, which may be None."""
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda d: (bool(d.why), d.ratio))


def named(words, option):
    """Options of the form NAME=WHAT as a dictionary."""
    pairs = {}
    for word in words:
        name, _, what = word.partition("=")
        if not name or not what:
            raise Mistake(f"{option} {word}: is not of the form NAME=VALUE")
        pairs[name] = what
    return pairs


def extents(text, option):
    if not all(word.isdecimal() for word in text.split("x")):
        raise Mistake(f"{option}={text}: is no list of extents like 1x3x224x224")
    return [int(word) for word in text.split("x")]


def interval(text, option):
    try:
        low, high = (float(word) for word in text.split(":"))
    except ValueError:
        raise Mistake(f"{option}={text}: is no interval LOW:HIGH") from None
    return low, high


def random_array(generator, element_type, dims, limits):
    """Normal numbers or small whole ones; with limits, uniform ones from the low to, whole ones below, the high."""
    kind = np.dtype(element_type)
    if kind.kind == "f":
        values = generator.standard_normal(dims) if limits is None else generator.uniform(*limits, dims)
        return np.asarray(values, dtype=kind)
    low, high = limits or ((0, 2) if kind.kind == "b" else (0, 8))
    return np.asarray(generator.integers(int(low), int(high), dims), dtype=kind)


def element_type_of(port):
    return ELEMENT_TYPES.get(port.type.removeprefix("tensor(").removesuffix(")"))


def is_concrete(port):
    return all(isinstance(extent, int) and extent >= 0 for extent in port.shape)


class Inputs:
    """What a file is run on: of the options, those that name one of its inputs."""

    def __init__(self, session, options):
        self.ports = session.get_inputs()
        names = {port.name for port in self.ports}

        def of_this_file(pairs):
            return [(name, what) for name, what in pairs.items() if name in names]

        self.shapes = {name: extents(what, f"--shape {name}") for name, what in of_this_file(options.shape)}
        self.limits = {name: interval(what, f"--range {name}") for name, what in of_this_file(options.range)}
        self.bound = dict(of_this_file(options.bind))
        self.given = {name: np.load(file) for name, file in of_this_file({**options.input, **options.bind})}
        self.random = [port for port in self.ports if port.name not in self.given]
        for port in self.random:
            if element_type_of(port) is None:
                raise Mistake(f"its input `{port.name}` is a {port.type}, for which there are no random values")
            if port.name not in self.shapes and not is_concrete(port):
                declared = "x".join(str(extent) for extent in port.shape)
                raise Mistake(f"not all extents of its input `{port.name}` ({declared}) are known; give them with "
                              f"--shape {port.name}=...")

    def arrays(self, seed):
        """All inputs by name, those that are random made from the seed alone."""
        generator = np.random.default_rng(seed)
        return {**self.given, **{port.name: random_array(generator, element_type_of(port),
                                                         self.shapes.get(port.name, port.shape),
                                                         self.limits.get(port.name))
                                 for port in self.random}}


def run_collage(options, file, inputs, arrays, room):
    """The outputs of our program by name."""
    command = [options.program, "run", str(file), "--output", str(room / "outputs"), "--json", "--quiet",
               "--place", "priority"]
    if options.threads:
        command += ["--threads", str(options.threads)]
    for i, port in enumerate(inputs.ports):
        array = arrays[port.name]
        if port.name in inputs.bound:
            command += ["--bind", f"{port.name}={inputs.bound[port.name]}"]
            continue
        np.save(room / f"{i}.npy", array)
        command += ["--input", f"{port.name}={room / f'{i}.npy'}"]
        if not is_concrete(port):
            command += ["--shape", f"{port.name}={'x'.join(map(str, array.shape))}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(done.stderr.strip() or f"collage: exit status {done.returncode}")
    return {output["name"]: np.load(output["file"]) for output in json.loads(done.stdout)["outputs"]}


def session_of(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4  # its errors come as exceptions as well
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def compare(options, file, room):
    """One row of the table."""
    row = Row(str(file))
    try:
        filled = room / file.name
        session = session_of(filled if fill_weights.fill_file(file, filled) else file, options.threads)
        inputs = Inputs(session, options)
        names = [output.name for output in session.get_outputs()]
        row.outputs = len(names)
        for seed in range(options.inputs if inputs.random else 1):
            arrays = inputs.arrays(seed)
            expected = session.run(names, arrays)
            actual = run_collage(options, file, inputs, arrays, room)
            for name, r in zip(names, expected):
                if name not in actual:
                    raise Failure(f"collage: has no output `{name}`")
                if not isinstance(r, np.ndarray) or r.dtype.kind not in "fiub":
                    raise Failure(f"ONNX Runtime: the output `{name}` is no tensor of numbers")
                row.worst = worse(row.worst, difference(name, actual[name], r))
                row.compared += 1
    except Mistake as mistake:
        raise Mistake(f"{file}: {mistake}") from None
    except Failure as failure:
        row.why = str(failure)
    except Exception as refusal:  # ONNX Runtime throws many types, and each is about this file alone
        row.why = f"ONNX Runtime: {str(refusal).strip().splitlines()[0]}"
    return row


def columns(row):
    why = row.why.partition("\n")[0]  # the rest lists nodes
    if row.worst is None:
        return [row.file, str(row.outputs), "", "", "", why]
    worst = row.worst
    verdict = why or (f"{worst.output}: {worst.why}" if worst.why else "agrees")
    if not worst.allowed:  # integers and booleans alone
        return [row.file, str(row.outputs), "equal" if not worst.why else "", "", "", verdict]
    return [row.file, str(row.outputs), f"{worst.worst:.2e}", f"{worst.allowed:.2e}", f"{worst.ratio:.4f}", verdict]


HEADINGS = ["file", "outputs", "worst |a - r|", "allowed", "ratio", "verdict"]


def as_text(rows):
    table = [HEADINGS, *map(columns, rows)]
    widths = [max(len(cells[i]) for cells in table) for i in range(len(HEADINGS))]
    aligned = [[cell.ljust(w) if i in (0, 5) else cell.rjust(w) for i, (cell, w) in enumerate(zip(cells, widths))]
               for cells in table]
    return "\n".join("  ".join(cells).rstrip() for cells in aligned)


def as_markdown(rows):
    return "\n".join(["| " + " | ".join(HEADINGS) + " |", "|---|--:|--:|--:|--:|---|",
                      *("| " + " | ".join([f"`{cells[0]}`", *cells[1:]]) + " |" for cells in map(columns, rows))])


def as_json(rows):
    return json.dumps([{"file": row.file, "outputs": row.outputs, "compared": row.compared, "agrees": row.agrees,
                        "why": row.why, "worst": dataclasses.asdict(row.worst) if row.worst else None}
                       for row in rows], indent=2)


def files_of(words):
    files = []
    for word in map(pathlib.Path, words):
        found = sorted(word.rglob("*.onnx")) if word.is_dir() else [word]
        if not found or not all(file.is_file() for file in found):
            raise Mistake(f"{word}: there is no such .onnx file, nor a folder of some")
        files += found
    return files


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="FILE_OR_FOLDER")
    parser.add_argument("--inputs", type=int, default=3, help="random inputs per file (3)")
    for option, form, what in (("shape", "NAME=1x3x224x224", "the extents of an input"),
                               ("bind", "NAME=FILE.npy", "an input whose value collage takes for a constant"),
                               ("input", "NAME=FILE.npy", "an input that is not random"),
                               ("range", "NAME=LOW:HIGH", "random values of an input from this interval; whole ones "
                                                          "below HIGH")):
        parser.add_argument(f"--{option}", action="append", default=[], metavar=form, help=what)
    parser.add_argument("--program", default="build/collage", help="build/collage")
    parser.add_argument("--threads", type=int, default=0, help="of both programs; as they choose if not given")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    return parser.parse_args()


def main():
    options = parse()
    try:
        for option in ("shape", "bind", "input", "range"):
            setattr(options, option, named(getattr(options, option), f"--{option}"))
        if options.inputs < 1:
            raise Mistake(f"--inputs {options.inputs}: at least one is needed")
        if not pathlib.Path(options.program).is_file():
            raise Mistake(f"there is no program {options.program}: build it, or name it with --program")
        rows = []
        for file in files_of(options.models):
            with tempfile.TemporaryDirectory() as room:
                rows.append(compare(options, file, pathlib.Path(room)))
    except Mistake as mistake:
        print(f"agree: {mistake}", file=sys.stderr)
        return 2
    print(as_json(rows) if options.json else as_markdown(rows) if options.markdown else as_text(rows))
    return 0 if all(row.agrees for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
