"""The networks, the peers' quantised files of each, our plans, and what the tables compare them with."""
from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Sequence

WORKLOADS = pathlib.Path(__file__).resolve().parents[2] / "workloads"
FLOAT, BF16, INT8 = "float32", "bf16", "int8"


@dataclasses.dataclass(frozen=True)
class QuantisedFile:
    """A file that ONNX Runtime's quantiser makes. `operators` are those that it quantises: all that it can if there are none."""

    name: str
    activations: str = "uint8"
    dynamic: bool = False
    operators: tuple[str, ...] = ()
    runs_on_openvino: bool = True
    is_rival: bool = True  # our own plans are compared with it, and not only our plan of the file itself
    bar: float | None = None  # our plan of this file, against ONNX Runtime


@dataclasses.dataclass(frozen=True)
class Network:
    """`error` is the error at which the bars hold: `over_float32` against our plan in float32, `over_rival` against the better peer in
    integers, and `bf16_over_float32`."""

    name: str
    error: float
    over_float32: float
    over_rival: float
    bf16_over_float32: float
    files: tuple[QuantisedFile, ...]

    @property
    def file(self) -> pathlib.Path:
        return WORKLOADS / f"{self.name}.onnx"


U8S8 = QuantisedFile("u8s8")
PRODUCTS = QuantisedFile("u8s8 products", operators=("MatMul", "Gemm"))
NETWORKS = {one.name: one for one in (
    Network("resnet50", 0.015, 3.2, 1.0, 2.0,
            (U8S8, QuantisedFile("s8s8", activations="int8", runs_on_openvino=False, is_rival=False, bar=2.2))),
    Network("mobilenet-v2", 0.03, 2.2, 1.05, 1.7, (U8S8,)),
    Network("bert-base-128", 0.07, 2.8, 1.0, 2.1,
            (U8S8, PRODUCTS, QuantisedFile("dynamic", dynamic=True, runs_on_openvino=False, is_rival=False, bar=1.0))))}


@dataclasses.dataclass(frozen=True)
class Engine:
    """An engine that takes part. `file` is the name of the quantised file that it runs, or empty for the network in float32.
    `precision` is what it may compute in, and `error` what a plan of ours may err."""

    name: str
    kind: str  # onnxruntime, openvino, collage
    precision: str
    file: str = ""
    error: float | None = None

    @property
    def is_ours(self) -> bool:
        return self.kind == "collage"


STRICT = 0.01  # the error at which speed is reported beside the bars


def peers_of(network: Network) -> list[Engine]:
    """ONNX Runtime has no kernels in bfloat16 for the processor. OpenVINO may compute in bfloat16 what a quantised file leaves in
    float32, which is its default where the processor can."""
    found = [Engine("ONNX Runtime float32", "onnxruntime", FLOAT), Engine("OpenVINO float32", "openvino", FLOAT),
             Engine("OpenVINO bf16", "openvino", BF16)]
    for file in network.files:
        found.append(Engine(f"ONNX Runtime {file.name}", "onnxruntime", INT8, file.name))
        if file.runs_on_openvino:
            found += [Engine(f"OpenVINO {file.name}", "openvino", INT8, file.name),
                      Engine(f"OpenVINO {file.name}, rest bf16", "openvino", BF16, file.name)]
    return found


def ours_of(network: Network, least_of_rivals: float | None, plans: Sequence[str]) -> list[Engine]:
    """Our plans: those within the bar's error, within 1 %, and within the least error of a rival if that is smaller than the bar's; and those
    of the quantised files as they are. `plans` are the precisions and `files`, of which some may be left out."""
    found = [Engine("collage float32", "collage", FLOAT)]
    bar = network.error
    smaller = {STRICT} if least_of_rivals is None or least_of_rivals >= bar else {STRICT, two_digits(least_of_rivals)}
    bounds = {BF16: [STRICT], INT8: [bar], "any": sorted({bar, *smaller}, reverse=True)}
    for precision in ("bf16", "int8", "any"):
        if precision in plans:
            found += [Engine(f"collage {precision} {text_of(error)}", "collage", precision, "", error) for error in bounds[precision]]
    if "files" in plans:
        found += [Engine(f"collage {file.name} file", "collage", INT8, file.name) for file in network.files]
    return found


def two_digits(error: float) -> float:
    """Rounded down. At least 0.001 %, since no plan is within nothing."""
    digits = 1 - math.floor(math.log10(max(error, 1e-5)))
    return math.floor(max(error, 1e-5) * 10**digits * (1 + 1e-9)) / 10**digits


def text_of(error: float) -> str:
    return f"{100 * error:.3g} %"
