#!/usr/bin/env python3
"""The structs and functions of _abi.py are those of the headers. A header may have newer members and functions."""
import ctypes
import pathlib
import re
import unittest

from collage import _abi

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include"
KINDS = {"int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
         "size_t": ctypes.c_size_t, "double": ctypes.c_double}
STRUCTS = {"collage_port": _abi.Port, "collage_open_port": _abi.OpenPort, "collage_input_shape": _abi.InputShape,
           "collage_input_value": _abi.InputValue, "collage_network_options": _abi.NetworkOptions, "collage_progress": _abi.Progress,
           "collage_place_rule": _abi.PlaceRule, "collage_place_options": _abi.PlaceOptions,
           "collage_precision_options": _abi.PrecisionOptions,
           "collage_plan_load_options": _abi.PlanLoadOptions, "collage_engine_info": _abi.EngineInfo, "collage_step": _abi.Step,
           "collage_run_limits": _abi.RunLimits, "collage_carried": _abi.Carried, "collage_session_options": _abi.SessionOptions,
           "collage_session_info": _abi.SessionInfo, "collage_tensor": _abi.Tensor, "collage_cache": _abi.Cache,
           "collage_cache_mask": _abi.CacheMask, "collage_growing_options": _abi.GrowingOptions,
           "collage_growing_info": _abi.GrowingInfo, "collage_trace_options": _abi.TraceOptions,
           "collage_trace_info": _abi.TraceInfo}


def text_of_headers():
    text = "".join((INCLUDE / name).read_text() for name in ("collage.h", "collage_precision.h", "collage_session.h", "collage_trace.h"))
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def members_of(body):
    """(name, is a pointer, type, has COLLAGE_MAX_RANK elements) of each member of a struct."""
    members = []
    for line in re.findall(r"[^;]+;", body):
        kind, names = re.fullmatch(r"\s*((?:const |volatile |unsigned |struct )*\w+(?:\*(?: const\*)?)?)\s+([^;]+);", line).groups()
        for name in names.split(","):
            name = name.strip()
            members.append((name.lstrip("*").partition("[")[0], "*" in kind or name.startswith("*"), kind.split()[-1].rstrip("*"),
                            "[" in name))
    return members


def is_pointer(kind):
    return kind in (ctypes.c_char_p, ctypes.c_void_p, _abi.ProgressFunction, _abi.SampleFunction) or hasattr(kind, "contents")


class Headers(unittest.TestCase):
    def test_structs(self):
        found = dict(re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text_of_headers(), flags=re.DOTALL))
        for name, struct in STRUCTS.items():
            members = members_of(found[name])
            self.assertGreaterEqual(len(members), len(struct._fields_), name)
            for (wanted, pointer, kind, is_list), (have, of) in zip(members, struct._fields_):
                with self.subTest(f"{name}.{wanted}"):
                    self.assertEqual(have, wanted)
                    if is_list:
                        self.assertEqual(of._length_, _abi.MAX_RANK)
                        of = of._type_
                    if pointer or kind in ("collage_progress_function", "collage_sample_function"):
                        self.assertTrue(is_pointer(of), of)
                    else:
                        self.assertIs(of, KINDS[kind])

    def test_functions(self):
        found = {name: arguments for name, arguments in re.findall(r"COLLAGE_API\s+collage_status\s+collage_(\w+)\(([^)]*)\)",
                                                                   text_of_headers())}
        for name, arguments in _abi._CALLS.items():
            given = [a.strip() for a in found[name].split(",")]
            with self.subTest(name):
                self.assertEqual([is_pointer(kind) for kind in arguments], ["*" in a for a in given])
                for kind, argument in zip(arguments, given):
                    if "*" not in argument:
                        self.assertIs(kind, KINDS[argument.split()[-2]])

    def test_numbers(self):
        text = text_of_headers()
        self.assertEqual(int(re.search(r"#define COLLAGE_MAX_RANK (\d+)", text)[1]), _abi.MAX_RANK)
        for prefix, numbers in ("PLACE", _abi.HOW), ("ALGORITHMS", _abi.ALGORITHMS):
            for name, number in numbers.items():
                self.assertIn(f"COLLAGE_{prefix}_{name.upper()} = {number}", text)
        for name in "CONTINUE", "STOP", "CANCEL":
            self.assertIn(f"COLLAGE_PROGRESS_{name} = {getattr(_abi, name)}", text)
        for name in "SAMPLE_END", "SAMPLE_WRITTEN", "SAMPLE_CANCEL":
            self.assertIn(f"COLLAGE_{name} = {getattr(_abi, name)}", text)


unittest.main()
