#!/usr/bin/env python3
"""The code of docs/python.md, as it stands there."""
import concurrent.futures
import os
import pathlib
import tempfile
import threading

import numpy as np

import models

STORE = {"store": "costs.db"}  # in the folder of the test


def three_lines(x):
    import collage

    session = collage.session("model.onnx")
    scores = session.run({"x": x})["y"]
    assert scores.shape == (2, 3)


def loading():
    import collage

    network = collage.load("model.onnx", shapes={"x": (2, 4)})
    for port in network.inputs:
        print(port.name, port.shape, port.type, port.dtype)
    assert not network.is_open


def tuning(network, x):
    import collage

    # Measured at the first start; at the next ones the plan is read, unless something has changed since.
    try:
        plan = network.load_plan("plan.json")
    except collage.MisuseError:
        plan = network.tune(threads=1, budget=10, compare=0.2, progress=True)
        plan.save("plan.json")
    session = network.session(plan)
    print(session.explain())
    assert session(x).shape == (2, 3)


def stopping(network):
    def until_good_enough(now):
        print(f"{now.stage} {now.what}: {now.done} done, about {now.remaining_s:.0f} s left")
        return "stop" if 0 < now.best_ms < 5.0 else None

    plan = network.tune(budget=None, progress=until_good_enough)
    print(plan.data["placing"]["interrupted"], plan.cost_ms)


def lower_precision(network, pictures):
    plan = network.tune(threads=1, precision="bf16", error=0.01, samples=[{"x": picture} for picture in pictures])
    print(plan.error or plan.why_unrounded)
    session = network.session(plan)
    assert session(pictures[0]).shape == (2, 3)


def running(session, x):
    outputs = session.run({"x": x})  # by name: {"y": array}
    outputs = session.run(x)         # in the order of session.inputs
    outputs = session.run(x=x)       # by name, for names that are Python's
    y = session(x)                   # the array itself, or a tuple if there are several outputs
    np.testing.assert_array_equal(outputs["y"], y)


def changing_shapes():
    import collage

    session = collage.session("model.onnx", most_engines=16)
    for rows in 1, 7, 3:
        y = session(np.ones((rows, 4), np.float32))
        assert y.shape == (rows, 3)
    print(session.info["engines"], session.info["packed_bytes"])


def states(pieces):
    import collage

    session = collage.session("recurrent.onnx", carried={"total_next": "total", "seen_next": "seen"})
    session.start("total", (1, 2))
    for x in pieces:
        y = session.run(x)["total_next"]
    print(session.states["total"])
    session.reset()  # a new sequence begins
    other = session.sequence()  # another sequence at the same time
    other.run({"x": pieces[0]})
    np.testing.assert_array_equal(y, sum(pieces))


def caches(words):
    import collage

    session = collage.session("attention.onnx")
    writer = session.growing({"past": ("present", 0)}, capacities=[0, 128, 512], masks={"mask": (0, 0)})
    for word in words:
        mask = np.ones((writer.length + 1, 1), np.float32)
        y = writer.run({"x": word, "mask": mask})["y"]
    writer.shorten(1)  # keeps the first word, to go on with others
    np.testing.assert_allclose(y, np.sum(words))
    assert writer.length == 1


def binding(session, pictures):
    binding = session.bind()
    for picture in pictures:
        binding.inputs["x"][...] = picture
        binding.run()
        print(binding.outputs["y"].max())

    result = np.empty((2, 3), np.float32)
    binding.outputs["y"] = result  # from now on, runs write there
    binding.run()
    assert result.any()


def other_packages(session, tensor):
    y = session(tensor)  # a tensor of PyTorch in host memory: read where it is
    assert y.shape == (2, 3)


def asynchronous(session, pictures):
    futures = [session.run_async({"x": picture}) for picture in pictures]
    for future in concurrent.futures.as_completed(futures):
        print(future.result()["y"].max())


def limits(session, x):
    import collage

    stop = collage.StopFlag()
    threading.Timer(0.5, stop.set).start()
    try:
        y = session.run(x, timeout=2.0, stop=stop)["y"]
    except collage.CancelledError as ended:
        print(ended)
    else:
        assert y.shape == (2, 3)


def profiles(session, x):
    for step in sorted(session.profile(x), key=lambda step: -step.ms)[:5]:
        print(f"{step.ms:8.4f} ms  {step.backend:9} {step.label:30} {step.kernel}")


def traces(session, pictures):
    import collage

    trace = collage.Trace()
    for picture in pictures:
        session.run(picture, trace=trace)
    trace.save("trace.json")
    assert trace.runs == len(pictures)


def errors(session, x):
    import collage

    try:
        session.run({"x": x.astype(np.float64)})
    except collage.MisuseError as mistake:
        print(mistake)
        # input x has elements of type float64, and the network takes float32; convert it, as by array.astype('float32')
        assert "the network takes float32; convert it" in str(mistake)
    else:
        raise AssertionError("a wrong type was accepted")


def log():
    import collage

    collage.set_log(lambda level, text: print(f"collage: {level}: {text}"))
    collage.set_log(None)


def page(folder):
    import collage

    os.chdir(folder)
    os.environ["XDG_CACHE_HOME"] = folder
    pathlib.Path("model.onnx").write_bytes(models.dense())
    pathlib.Path("recurrent.onnx").write_bytes(models.carried())
    pathlib.Path("attention.onnx").write_bytes(models.attended())
    x = np.ones((2, 4), np.float32)
    network = collage.load("model.onnx", shapes={"x": (2, 4)})
    session = network.session(how="priority", threads=1)
    three_lines(x)
    loading()
    for _ in range(2):
        tuning(network, x)
    stopping(network)
    lower_precision(network, [x, x + 1, x - 1, 2 * x])
    running(session, x)
    changing_shapes()
    states([np.ones((1, 2), np.float32)] * 3)
    caches([np.full((1, 2), k, np.float32) for k in range(4)])
    binding(session, [x, x + 1])
    other_packages(session, memoryview(x))
    asynchronous(session, [x, x + 1])
    limits(session, x)
    profiles(session, x)
    traces(session, [x, x + 1])
    errors(session, x)
    log()


with tempfile.TemporaryDirectory() as folder:
    page(folder)
    os.chdir("/")
