"""JSON Schema, as much of it as docs/plan.schema.json uses: what is wrong with a value, and where."""
import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
ABOUT = {"$schema", "$defs", "title", "description"}


def is_a(value, name):
    if name in ("number", "integer"):
        return not isinstance(value, bool) and isinstance(value, int if name == "integer" else (int, float))
    return isinstance(value, TYPES[name])


def same(a, b):
    return type(a) is type(b) and a == b


def complaints(value, schema, whole=None, at="it"):
    """One sentence for each rule that the value breaks. A keyword that is not known here is a KeyError: no rule is passed over."""
    whole = whole or schema
    found = []

    def inner(part, rules, place):
        found.extend(complaints(part, rules, whole, place))

    def check(fine, why):
        if not fine:
            found.append(f"{at} {why}")

    is_object, is_list, is_text, is_number = (is_a(value, t) for t in ("object", "array", "string", "number"))
    for word, rule in schema.items():
        if word == "$ref":
            inner(value, whole["$defs"][rule.removeprefix("#/$defs/")], at)
        elif word == "type":
            check(is_a(value, rule), f"is no {rule}")
        elif word == "const":
            check(same(value, rule), f"is not {rule!r}")
        elif word == "enum":
            check(any(same(value, option) for option in rule), f"is none of {rule}")
        elif word == "anyOf":
            check(any(not complaints(value, option, whole, at) for option in rule), "is none of what it may be")
        elif word == "pattern":
            check(not is_text or re.search(rule, value), f"does not match {rule}")
        elif word == "minimum":
            check(not is_number or value >= rule, f"is below {rule}")
        elif word == "maximum":
            check(not is_number or value <= rule, f"is above {rule}")
        elif word == "minItems":
            check(not is_list or len(value) >= rule, f"has fewer than {rule} elements")
        elif word == "maxItems":
            check(not is_list or len(value) <= rule, f"has more than {rule} elements")
        elif word == "required":
            for name in rule if is_object else ():
                check(name in value, f"lacks {name}")
        elif word == "properties":
            for name in value if is_object else ():
                if name in rule:
                    inner(value[name], rule[name], f"{at}.{name}")
        elif word == "additionalProperties":
            assert rule is False
            for name in value if is_object else ():
                check(name in schema["properties"], f"has {name}, which is not described")
        elif word == "items":
            for i, part in enumerate(value if is_list else ()):
                inner(part, rule, f"{at}[{i}]")
        elif word == "prefixItems":
            for i, (part, rules) in enumerate(zip(value, rule) if is_list else ()):
                inner(part, rules, f"{at}[{i}]")
        elif word not in ABOUT:
            raise KeyError(f"keyword {word} of JSON Schema")
    return found
