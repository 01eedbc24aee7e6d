"""What compiling with collage costs: inputs, compilers and counts, for measure.py and the tests in tests/scale/.

A *network* here is a chain of blocks of sixteen operators, cut after any number of them; a *pattern* is a chain of two to
six operators of the kinds that backends fuse. Both are written for collage and, from the same lists, for a matcher by
recursive specialisation (recursive.hpp).
"""
from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# Compilers --------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Cost:
    """Of one source, compiled several times."""
    seconds: list[float] = dataclasses.field(default_factory=list)  # of the processor, all processes together
    megabytes: float = 0  # the largest process at its largest

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Half the distance between the quartiles."""
        if len(self.seconds) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.seconds, n=4)
        return (high - low) / 2


@dataclasses.dataclass
class Compiler:
    command: str
    include: pathlib.Path

    @property
    def name(self) -> str:
        return pathlib.Path(self.command).name

    @functools.cached_property
    def version(self) -> str:
        lines = subprocess.run([self.command, "--version"], capture_output=True, text=True).stdout.splitlines()
        return next((line for line in lines if re.search(r"\d+\.\d+", line)), self.name)

    @property
    def is_clang(self) -> bool:
        return "clang" in self.version

    @property
    def is_nvcc(self) -> bool:
        return "nvcc" in self.name

    def arguments(self, source: pathlib.Path, *more: str) -> list[str]:
        language = ["-x", "cu"] if self.is_nvcc else []
        return [self.command, "-std=c++20", "-I", str(self.include), *language, *more, str(source)]

    def accepts(self, source: pathlib.Path, *more: str) -> bool:
        return subprocess.run(self.arguments(source, *more), capture_output=True).returncode == 0

    def run(self, source: pathlib.Path, *more: str) -> str:
        """What it prints; where it fails, the program ends with what it said."""
        done = subprocess.run(self.arguments(source, *more), capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{self.name} does not compile {source}:\n{done.stderr[:4000]}")
        return done.stdout + done.stderr

    def compile(self, source: pathlib.Path, into: Cost, optimise: str = "-O2") -> pathlib.Path:
        """Compiles to an object, as a release build does, and adds what it took."""
        made = source.with_name(f"{source.stem}-{self.name}.o")
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(self.arguments(source, optimise, "-c", "-o", str(made)), stdout=said, stderr=said)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            if process.returncode != 0:
                raise SystemExit(f"{self.name} does not compile {source}:\n{said.read().decode()[:4000]}")
        into.seconds.append(usage.ru_utime + usage.ru_stime)
        into.megabytes = max(into.megabytes, usage.ru_maxrss / 1024)
        return made


def find_nvcc() -> str | None:
    return shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


def compile_interleaved(compiler: Compiler, sources: dict[str, pathlib.Path], rounds: int) -> dict[str, Cost]:
    """Every source in turn, `rounds` times, so that what the machine does besides falls on all of them alike."""
    costs = {name: Cost() for name in sources}
    for _ in range(rounds):
        for name, source in sources.items():
            compiler.compile(source, costs[name])
    return costs


def write(folder: pathlib.Path, name: str, text: str) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


# Including --------------------------------------------------------------------------------------------------------------

STANDARD_FOUR = "".join(f"#include <{name}>\n" for name in ("array", "span", "concepts", "type_traits"))
UMBRELLA = "#include <collage/collage.hpp>\n"
# What the umbrella must not cost its includer: headers that allocate, and those that cost more than all of it.
FORBIDDEN = {"algorithm", "cmath", "deque", "filesystem", "format", "fstream", "functional", "iostream", "istream", "list",
             "map", "memory", "ostream", "ranges", "regex", "set", "sstream", "stdexcept", "string", "string_view",
             "system_error", "thread", "tuple", "unordered_map", "unordered_set", "variant", "vector"}


def preprocessed_lines(compiler: Compiler, source: pathlib.Path) -> int:
    return len(compiler.run(source, "-E", "-P").splitlines())


def headers_read(compiler: Compiler, source: pathlib.Path) -> list[str]:
    """Every header that a source reads, itself left out."""
    return compiler.run(source, "-M").replace("\\\n", " ").split()[2:]


# Networks ---------------------------------------------------------------------------------------------------------------

# One block. Operands: x is what the block before answered, 0 to 15 what an operator of this one did, w and b constants.
WINDOW = "{.pads_begin = {1, 1}, .pads_end = {1, 1}}"
POOL = "{.window = {3, 3}, .pads_begin = {1, 1}, .pads_end = {1, 1}}"
BLOCK = [("conv", ["x", "w"], WINDOW), ("add", [0, "b"], ""), ("relu", [1], ""), ("conv", [2, "w"], WINDOW),
         ("add", ["b", 3], ""), ("add", [4, "x"], ""), ("relu", [5], ""), ("sigmoid", [6], ""), ("mul", [7, 6], ""),
         ("max_pool", [8], POOL), ("add", [9, 8], ""), ("conv", [10, "w"], WINDOW), ("mul", [11, "b"], ""),
         ("add", [12, "b"], ""), ("leaky_relu", [13], ""), ("add", [14, 10], "")]


def network(nodes: int) -> list[tuple[str, list[int | str], str]]:
    """The nodes, with operands counted through; "x" is left for the network's input."""
    made = []
    for n in range(nodes):
        kind, operands, attributes = BLOCK[n % 16]
        start = n - n % 16
        made.append((kind, [start + o if isinstance(o, int) else (start - 1 if o == "x" and start else o) for o in operands],
                     attributes))
    return made


def write_network(nodes: int, *, with_loop: bool = False) -> str:
    """The network as a function that writes it: a statement for each node, or a loop over the blocks."""
    if with_loop and nodes % 16 != 0:
        raise ValueError("a loop makes whole blocks alone")
    lines = []
    for n, (kind, operands, attributes) in enumerate(network(16 if with_loop else nodes)):
        written = ", ".join(f"n{o}" if isinstance(o, int) else o for o in operands)
        lines.append(f"auto n{n} = g(op::{kind}, {written}{', ' + attributes if attributes else ''});")
    if with_loop:
        lines = [f"for (int block = 0; block < {nodes // 16}; ++block) {{", *lines, "x = n15;", "}", "g.output(x);"]
    else:
        lines.append(f"g.output(n{nodes - 1});")
    return "\n".join(["[](auto& g) {", 'auto x = g.input("x", {1, 8, 16, 16});', 'auto w = g.constant("w", {8, 8, 3, 3});',
                      'auto b = g.constant("b", {8, 1, 1});', *lines, "}"])


def define_network(nodes: int, *, with_loop: bool = False) -> str:
    """The network as a static graph."""
    return ("struct network {\nstatic constexpr auto graph = collage::define(" + write_network(nodes, with_loop=with_loop) +
            ");\n};\n")


def recursive_network(nodes: int, name: str = "network") -> str:
    """The same network for recursive.hpp, whose inputs and constants have negative numbers."""
    outside = {"x": "input", "w": "weights", "b": "bias"}
    written = [f"node<{kind}, {', '.join(f'value<{o}>' if isinstance(o, int) else outside[o] for o in operands)}>"
               for kind, operands, _ in network(nodes)]
    return f"using {name} = graph<\n" + ",\n".join(written) + ">;\n"


# Patterns ---------------------------------------------------------------------------------------------------------------

# Patterns are trees: (kind, operand...), where an operand may also be "any", "constant", "x" (captured) or "same x".
BODIES = [("conv", "any", "constant"),
          ("add", ("conv", "any", "constant"), "constant"),
          ("add", ("add", ("conv", "any", "constant"), "constant"), "any"),
          ("add", ("mul", ("conv", "any", "constant"), "constant"), "constant"),
          ("add", ("add", ("mul", ("conv", "any", "constant"), "constant"), "constant"), "any"),
          ("add", ("max_pool", "any"), "any"),
          ("mul", ("sigmoid", "x"), "same x")]
ACTIVATIONS = [None, "relu", "leaky_relu", "sigmoid", "tanh", "elu"]


def patterns(count: int) -> list[tuple]:
    """Distinct patterns of one to six operators, at most 42; the first seven have all kinds in them."""
    if count > len(BODIES) * len(ACTIVATIONS):
        raise ValueError("there are not so many patterns")
    made = []
    for i in range(count):
        body, activation = BODIES[i % len(BODIES)], ACTIVATIONS[(i // len(BODIES) + i % len(BODIES)) % len(ACTIVATIONS)]
        made.append(body if activation is None else (activation, body))
    return made


def written_pattern(tree) -> str:
    leaves = {"any": "any", "constant": "constant", "x": 'any.as<"x">()', "same x": 'same<"x">()'}
    if isinstance(tree, str):
        return "collage::" + leaves[tree]
    return f"op::{tree[0]}({', '.join(map(written_pattern, tree[1:]))})"


def recursive_pattern(tree) -> str:
    leaves = {"any": "any", "constant": "constant", "x": "captured", "same x": "same"}
    if isinstance(tree, str):
        return leaves[tree]
    return f"apply<{tree[0]}, {', '.join(map(recursive_pattern, tree[1:]))}>"


def pattern_sizes(count: int) -> set[int]:
    """In nodes, operands included: each is an `expression<N>`."""
    def size(tree) -> int:
        return 1 if isinstance(tree, str) else 1 + sum(map(size, tree[1:]))

    return {size(tree) for tree in patterns(count)}


def define_patterns(count: int) -> str:
    return "".join(f'struct p{i} : collage::pattern<"p{i}"> {{\n  static constexpr auto expr = {written_pattern(tree)};\n}};\n'
                   for i, tree in enumerate(patterns(count)))


def recursive_patterns(count: int) -> str:
    return "".join(f"using p{i} = {recursive_pattern(tree)};\n" for i, tree in enumerate(patterns(count)))


# Sources ----------------------------------------------------------------------------------------------------------------

NAMES = "namespace op = collage::ops;\n"
COUNTING = """consteval std::uint32_t count_matches(collage::pattern_view pattern) {
  const collage::graph_view graph = network::graph.view();
  const auto nodes = static_cast<std::uint32_t>(graph.node_count());
  collage::match_record found;
  std::uint32_t count = 0;
  for (std::uint32_t n = collage::next_match(graph, pattern, 0, found); n < nodes;
       n = collage::next_match(graph, pattern, n + 1, found))
    ++count;
  return count;
}
"""


# So that the graph, a pattern and the matcher have symbols.
RUN_TIME_USE = """bool stands_at(std::uint32_t node, collage::match_record& found) {
  return collage::match_at(network::graph.view(), p1::expr, node, found);
}
std::int64_t groups(const collage::match<p1>& m) { return m[op::conv].groups; }
"""


def matching_source(nodes: int, pattern_count: int, expected: list[int] | None = None, *, with_loop: bool = False) -> str:
    """A static graph and its patterns; each is matched at every node by a static_assert of its own."""
    asserts = "".join(f"static_assert(count_matches(p{i}::expr) {f'== {expected[i]}' if expected else '<= ' + str(nodes)});\n"
                      for i in range(pattern_count))
    return UMBRELLA + NAMES + define_network(nodes, with_loop=with_loop) + define_patterns(pattern_count) + COUNTING + asserts


def enumerating_source(nodes: int, pattern_count: int) -> str:
    """A static graph whose candidates are listed for a backend with all patterns."""
    listed = ", ".join(f"p{i}" for i in range(pattern_count))
    return (UMBRELLA + NAMES + define_network(nodes) + define_patterns(pattern_count) + f"""
struct library : collage::backend<"library"> {{
  using patterns = collage::patterns<{listed}>;
  template <class P>
  static collage::kernel build(const collage::match<P>&, collage::build_context&);
}};
using backends = collage::backend_set<library>;
static_assert(collage::candidates_of<backends, network>.size() > {nodes // 32});
std::uint32_t first_node() {{ return collage::candidates_of<backends, network>[0].node; }}
""")


def counting_source(nodes: int, pattern_count: int) -> str:
    """A program that prints how often each pattern matches, as the compiler found it."""
    counts = ", ".join(f"count_matches(p{i}::expr)" for i in range(pattern_count))
    return (matching_source(nodes, pattern_count) + "#include <cstdio>\n" + f"constexpr std::uint32_t counts[] = {{{counts}}};\n" +
            'int main() {\n  for (const std::uint32_t count : counts) std::printf("%u\\n", count);\n}\n')


def count_matches(compiler: Compiler, folder: pathlib.Path, nodes: int, pattern_count: int) -> list[int]:
    source = write(folder, f"count-{nodes}-{pattern_count}.cpp", counting_source(nodes, pattern_count))
    program = source.with_suffix("")
    compiler.run(source, "-O1", "-o", str(program))  # so that what the compiler alone needs is left out
    return [int(line) for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()]


def recursive_source(nodes: int, pattern_count: int, expected: list[int]) -> str:
    asserts = "".join(f"static_assert(count_matches<network, p{i}>::value == {expected[i]});\n" for i in range(pattern_count))
    return ((HERE / "recursive.hpp").read_text().replace("#pragma once\n", "") + "using namespace recursive;\n" +
            recursive_network(nodes) + recursive_patterns(pattern_count) + asserts)


# Counts -----------------------------------------------------------------------------------------------------------------


def count_in(path: pathlib.Path, pattern: bytes) -> int:
    """Occurrences in a long line, read piece by piece: a process is born with the memory of the one that starts it."""
    count, rest, longest = 0, b"", 200
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            text = rest + piece
            last = 0
            for found in re.finditer(pattern, text):
                count, last = count + 1, found.end()
            rest = text[max(last, len(text) - longest):]
    return count


def class_instantiations(compiler: Compiler, source: pathlib.Path) -> int:
    """How many classes a compiler makes from templates while it compiles a source."""
    if compiler.is_clang:
        made = source.with_name(f"{source.stem}-traced.o")
        compiler.run(source, "-c", "-ftime-trace", "-ftime-trace-granularity=0", "-o", str(made))
        return count_in(made.with_suffix(".json"), rb'"ph":"X","dur":\d+,"name":"InstantiateClass"')
    dump = source.with_name(f"{source.stem}-classes.txt")
    compiler.run(source, "-fsyntax-only", f"-fdump-lang-class={dump}")
    # Line by line: what this process once held counts as the memory of the compilers that it starts later.
    with dump.open() as lines:
        return sum(line.startswith("Class ") and "<" in line for line in lines)


def longest_symbol(compiler: Compiler, source: pathlib.Path) -> str:
    made = compiler.compile(source, Cost(), "-O0")  # where all that has a symbol keeps it
    listed = subprocess.run(["nm", "--format=just-symbols", str(made)], capture_output=True, text=True, check=True).stdout
    return max(listed.split(), key=len, default="")


# The constant evaluations of a definition, in order; each needs those before it.
EVALUATIONS = {"counting": "sizes_of<written>.nodes != 0", "writing": "draft_of<written>.nodes[0].kind != nullptr",
               "checking": "mistake_of<written>.empty()", "inferring": "types_of<written>.fits",
               "finishing": "graph_of<written>.view().nodes.size() != 0"}


def evaluation_source(nodes: int, evaluation: str) -> str:
    """Asks for what one evaluation makes, and so for all before it."""
    return (UMBRELLA + NAMES + f"constexpr auto write = {write_network(nodes)};\n"
            "using written = std::remove_const_t<decltype(write)>;\n"
            f"static_assert(collage::detail::{EVALUATIONS[evaluation]});\n")


def least_limit(compiler: Compiler, source: pathlib.Path, most: int, precision: int) -> int:
    """The lowest limit on one constant evaluation with which a source compiles, found by bisection: in clang's steps or
    g++'s operations."""
    flag = "-fconstexpr-steps" if compiler.is_clang else "-fconstexpr-ops-limit"
    low, high = 0, most
    if not compiler.accepts(source, "-fsyntax-only", f"{flag}={most}"):
        raise SystemExit(f"{compiler.name} does not compile {source} with {flag}={most}")
    while high - low > precision:
        middle = (low + high) // 2
        if compiler.accepts(source, "-fsyntax-only", f"{flag}={middle}"):
            high = middle
        else:
            low = middle
    return high
