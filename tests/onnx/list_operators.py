#!/usr/bin/env python3
"""Writes operators.txt from the definitions in the Python package onnx: list_operators.py >operators.txt"""
import onnx.defs

NEWEST = {"": 27, "ai.onnx.ml": 5, "ai.onnx.preview": 1, "ai.onnx.preview.training": 1}
HEAD = """\
# The operators of ONNX up to opset 27, of ai.onnx.ml up to 5, of ai.onnx.preview and of ai.onnx.preview.training, without
# those withdrawn before opset 7; behind the name stands what an operator cannot do without. Written by list_operators.py."""


def needs(schema):
    """The domain's purpose, or the first kind of type without which one of the inputs and outputs cannot be."""
    if schema.domain:
        return {"ai.onnx.ml": "classical_learning", "ai.onnx.preview": "",
                "ai.onnx.preview.training": "training"}[schema.domain]
    for port in [*schema.inputs, *schema.outputs]:
        for word, kind in (("seq(", "sequences"), ("optional(", "optionals"), ("string)", "strings")):
            if all(word in name for name in port.types):
                return kind
    if schema.name.startswith("Optional"):
        return "optionals"
    return "randomness" if "seed" in schema.attributes else ""


latest = {}
for schema in onnx.defs.get_all_schemas_with_history():
    if schema.domain not in NEWEST or schema.since_version > NEWEST[schema.domain]:
        continue
    if schema.deprecated and schema.domain == "" and schema.since_version < 7:
        continue
    name = ".".join(filter(None, (schema.domain, schema.name)))
    if name not in latest or latest[name].since_version < schema.since_version:
        latest[name] = schema
print(HEAD)
for name, schema in sorted(latest.items()):
    print(f"{name} {needs(schema)}".rstrip())
