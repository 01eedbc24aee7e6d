"""The second program of docs/start-python.md: measures once, keeps the plan, and shows what runs."""
import os

import numpy

import collage

image = numpy.random.default_rng(1).random((1, 3, 224, 224), numpy.float32)
network = collage.load("zoo:mobilenet-v2")

if os.path.exists("mobilenet.plan.json"):
    plan = network.load_plan("mobilenet.plan.json")
else:
    plan = network.tune(progress=True)  # 20 seconds; budget=None takes as long as it needs
    plan.save("mobilenet.plan.json")

session = network.session(plan)
outputs = session.run({"input": image})  # a dictionary, in the order of the outputs
for name, array in outputs.items():
    print(name, array.shape, array.dtype)

for step in session.profile({"input": image})[:5]:
    print(f"{step.ms:8.3f} ms  {step.backend:8}  {step.kernel:30}  {step.label[:40]}")
