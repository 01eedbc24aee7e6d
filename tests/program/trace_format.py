"""The rules of the trace event format for what collage writes: trace_format.py FILE... says what is wrong.

Documented in "Trace Event Format" of the Chromium project. Times are compared as decimal numbers: a viewer that rounds them to
nanoseconds must find the same nesting.
"""
import decimal
import json
import sys

# The arguments of each category, with their types.
RUN = {"run": int}
STAGE = {**RUN, "stage": int}
STEP = {**RUN, "backend": str, "kernel": str, "pattern": str, "label": str, "nodes": int, "bytes_read": int,
        "bytes_written": int, "step": int, "threads": int}
ARGUMENTS = {"run": RUN, "stage": {**STAGE, "threads": int}, "engine": STAGE, "late operator": RUN, "kernel": STEP,
             "conversion": STEP}
STEPS = ("kernel", "conversion")
PARENTS = {"stage": ("run",), "engine": ("run",), "late operator": ("stage",), "kernel": ("run", "stage"),
           "conversion": ("run", "stage")}


class Wrong(Exception):
    """A rule is broken."""


def check(holds, *what):
    if not holds:
        raise Wrong(" ".join(str(w) for w in what))


def has_type(value, wanted):
    return isinstance(value, wanted) and not (wanted is int and isinstance(value, bool))


def check_fields(event, fields):
    for name, wanted in fields.items():
        check(has_type(event.get(name), wanted), f"{name} is no {wanted}:", event)


def check_metadata(event, named):
    check(event["name"] in ("process_name", "thread_name"), "unknown metadata:", event)
    check_fields(event["args"], {"name": str})
    key = (event["pid"], event["tid"] if event["name"] == "thread_name" else None)
    check(key not in named, "named twice:", event)
    named.add(key)


def check_complete(event):
    number = (int, decimal.Decimal)
    check_fields(event, {"name": str, "cat": str, "ts": number, "dur": number, "args": dict})
    check(event["ts"] >= 0 and event["dur"] >= 0, "negative time:", event)
    check(event["cat"] in ARGUMENTS, "unknown category:", event)
    check_fields(event["args"], ARGUMENTS[event["cat"]])
    if event["cat"] in STEPS:
        arguments = event["args"]
        check((event["cat"] == "conversion") == (arguments["nodes"] == 0), "a conversion runs no node:", event)
        check(arguments["kernel"] and arguments["backend"], "no kernel:", event)
        check(arguments["bytes_written"] > 0, "nothing is written:", event)
        rate = arguments.get("gflops_per_s", 1)
        check(has_type(rate, (int, decimal.Decimal)) and 0 < rate < 100000, "no rate:", event)


def check_nesting(events):
    """Events of one thread, in the order of the file: each lies within the last one that has not ended."""
    open_events = []
    before = -1
    for e in events:
        check(e["ts"] >= before, "events are not in the order of their beginnings:", e)
        before = e["ts"]
        while open_events and open_events[-1]["ts"] + open_events[-1]["dur"] <= e["ts"]:
            open_events.pop()
        parent = open_events[-1] if open_events else None
        if e["cat"] == "run":
            check(parent is None, "a run within another event:", e)
        else:
            check(parent is not None and parent["cat"] in PARENTS[e["cat"]], "not in its place:", e, "in", parent)
            check(e["ts"] + e["dur"] <= parent["ts"] + parent["dur"], "ends after what it lies in:", e)
            check(e["args"]["run"] == parent["args"]["run"], "of another run than what it lies in:", e)
        open_events.append(e)


def check_sums(complete):
    """The steps of a run take at most the time of the run."""
    whole, steps = {}, {}
    for e in complete:
        number = e["args"]["run"]
        if e["cat"] == "run":
            check(number not in whole, "two runs have one number:", e)
            whole[number] = e["dur"]
        elif e["cat"] in STEPS:
            steps[number] = steps.get(number, 0) + e["dur"]
    for number, sum_of_steps in steps.items():
        check(number in whole, "steps without a run:", number)
        check(sum_of_steps <= whole[number], "the steps of run", number, "take longer than the run")
    check(sorted(whole) == list(range(1, len(whole) + 1)), "runs are not numbered from 1:", sorted(whole))


def read(path):
    """The complete events of a trace that keeps all rules."""
    with open(path, encoding="utf-8") as file:
        trace = json.load(file, parse_float=decimal.Decimal)
    check(set(trace) == {"traceEvents", "displayTimeUnit", "otherData"}, "other members:", set(trace))
    check(trace["displayTimeUnit"] in ("ms", "ns"), "unit:", trace["displayTimeUnit"])
    check(isinstance(trace["traceEvents"], list), "no list of events")
    named, complete = set(), []
    for event in trace["traceEvents"]:
        check_fields(event, {"ph": str, "name": str, "pid": int, "tid": int, "args": dict})
        check(event["ph"] in ("M", "X"), "unknown phase:", event)
        if event["ph"] == "M":
            check_metadata(event, named)
        else:
            check_complete(event)
            complete.append(event)
    for pid, tid in {(e["pid"], e["tid"]) for e in complete}:
        check((pid, None) in named and (pid, tid) in named, "process or thread without a name:", pid, tid)
        check_nesting([e for e in complete if (e["pid"], e["tid"]) == (pid, tid)])
    check_sums(complete)
    check(trace["otherData"]["runs"] == sum(e["cat"] == "run" for e in complete), "another number of runs")
    return complete


if __name__ == "__main__":
    for path in sys.argv[1:]:
        try:
            print(f"{path}: {len(read(path))} events")
        except Wrong as wrong:
            sys.exit(f"{path}: {wrong}")
