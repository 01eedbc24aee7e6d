"""Snippets with memory that programs own: OrtValue and IOBinding."""
import numpy as np

X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)


def values_instead_of_arrays(ort, here):
    session = ort.InferenceSession(here + "/linear.onnx")
    value = ort.OrtValue.ortvalue_from_numpy(X)
    facts = (value.shape(), value.data_type(), value.device_name(), value.is_tensor(), value.has_value(), value.element_type(),
             value.data_ptr() == X.ctypes.data)
    results = session.run_with_ort_values(["y"], {"x": value})
    return facts, results[0].numpy(), results[0].shape(), session.run(None, {"x": value})


def value_that_is_updated(ort, here):
    session = ort.InferenceSession(here + "/linear.onnx")
    value = ort.OrtValue.ortvalue_from_shape_and_type([2, 4], np.float32)
    outs = []
    for i in range(3):
        value.update_inplace(X * i)
        outs.append(session.run_with_ort_values(None, {"x": value})[0].numpy())
    return outs


def bound_array(ort, here):
    session = ort.InferenceSession(here + "/linear.onnx")
    io_binding = session.io_binding()
    io_binding.bind_cpu_input("x", X)
    io_binding.bind_output("y")
    session.run_with_iobinding(io_binding)
    return io_binding.copy_outputs_to_cpu()[0]


def bound_addresses(ort, here):
    session = ort.InferenceSession(here + "/fixed.onnx")
    x, y = X.copy(), np.empty((2, 3), dtype=np.float32)
    binding = session.io_binding()
    binding.bind_input(name="x", device_type="cpu", device_id=0, element_type=np.float32, shape=tuple(x.shape),
                       buffer_ptr=x.ctypes.data)
    binding.bind_output(name="y", device_type="cpu", device_id=0, element_type=np.float32, shape=tuple(y.shape),
                        buffer_ptr=y.ctypes.data)
    outs = []
    for i in range(1, 4):
        x *= i
        session.run_with_iobinding(binding)
        outs.append(y.copy())
    return outs


def bound_values(ort, here):
    session = ort.InferenceSession(here + "/two_outputs.onnx")
    into = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32, "cpu", 0)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(X, "cpu", 0))
    binding.bind_ortvalue_output("probabilities", into)
    binding.bind_output("label", "cpu")
    session.run_with_iobinding(binding)
    probabilities, label = binding.get_outputs()  # in the order of binding
    return into.numpy(), probabilities.numpy(), label.numpy(), label.data_type()


def state_that_stays_bound(ort, here):
    # As generating text with keys and values: each run's output is bound as the next run's input.
    session = ort.InferenceSession(here + "/recurrent.onnx")
    binding = session.io_binding()
    state = ort.OrtValue.ortvalue_from_numpy(np.zeros((2, 1, 4), np.float32))
    heard = []
    for step in range(4):
        binding.bind_cpu_input("input", np.full((1, 8), step, np.float32))
        binding.bind_cpu_input("sr", np.array(16, np.int64))
        binding.bind_ortvalue_input("state", state)
        binding.bind_output("output", "cpu")
        binding.bind_output("stateN", "cpu")
        session.run_with_iobinding(binding)
        output, state = binding.get_outputs()
        heard.append(output.numpy().item())
        binding.clear_binding_inputs()
        binding.clear_binding_outputs()
    return heard


def shapes_that_change_while_bound(ort, here):
    session = ort.InferenceSession(here + "/linear.onnx")
    binding = session.io_binding()
    shapes = []
    for rows in (1, 3, 2):
        binding.bind_cpu_input("x", np.ones((rows, 4), np.float32))
        binding.bind_output("y", "cpu")
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        shapes.append(binding.get_outputs()[0].shape())
    return shapes


def output_that_is_held(ort, here):
    # The output is fetched once; later runs show in it.
    totals = []
    for file in ("fixed", "linear"):
        session = ort.InferenceSession(f"{here}/{file}.onnx")
        x, binding = X.copy(), session.io_binding()
        binding.bind_cpu_input("x", x)
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        held = binding.get_outputs()[0]
        for i in (2, 3):
            x[:] = i
            session.run_with_iobinding(binding)
            totals.append(float(held.numpy().sum()))
    return totals


def memory_of_the_first_run(ort, here):
    # What the first run allocates becomes the output of all later ones.
    session = ort.InferenceSession(here + "/fixed.onnx")
    binding, value = session.io_binding(), ort.OrtValue.ortvalue_from_numpy(X.copy())
    binding.bind_ortvalue_input("x", value)
    binding.bind_output("y", "cpu", 0)
    session.run_with_iobinding(binding)
    outputs = binding.get_outputs()
    binding.bind_ortvalue_output("y", outputs[0])
    value.update_inplace(np.ascontiguousarray(X * 3))
    session.run_with_iobinding(binding)
    return [v.numpy() for v in outputs]


def state_in_one_place(ort, here):
    # The output of a run is written over its input, as programs do with keys and values.
    session = ort.InferenceSession(here + "/recurrent.onnx")
    state = ort.OrtValue.ortvalue_from_numpy(np.zeros((2, 1, 4), np.float32))
    binding = session.io_binding()
    binding.bind_cpu_input("input", np.ones((1, 8), np.float32))
    binding.bind_cpu_input("sr", np.array(4, np.int64))
    binding.bind_ortvalue_input("state", state)
    binding.bind_output("output")
    binding.bind_ortvalue_output("stateN", state)
    for _ in range(3):
        session.run_with_iobinding(binding)
    return state.numpy()


def mistakes_of_binding(ort, here):
    session, seen = ort.InferenceSession(here + "/linear.onnx"), []

    def attempt(action):
        try:
            action()
            seen.append("worked")
        except (RuntimeError, ValueError) as e:
            seen.append(type(e).__name__)
    binding = session.io_binding()
    attempt(lambda: binding.bind_cpu_input("no such input", X))
    binding.bind_cpu_input("x", X)
    attempt(lambda: session.run_with_iobinding(binding))  # no output is bound
    small = np.empty((1, 3), np.float32)
    attempt(lambda: binding.bind_output("y", "cpu", 0, np.float32, None, small.ctypes.data))
    binding.bind_output("y", "cpu", 0, np.float32, [1, 3], small.ctypes.data)
    attempt(lambda: session.run_with_iobinding(binding))  # the output has two rows
    attempt(lambda: ort.OrtValue.ortvalue_from_numpy(X, "cuda", 0))
    return seen


def tensors_of_other_libraries(ort, here):
    # By DLPack, as torch and others do it; numpy stands in for them.
    value = ort.OrtValue.ortvalue_from_numpy(X.copy())
    if not hasattr(np, "from_dlpack"):  # before 1.23
        return "numpy is too old"
    shared = np.from_dlpack(value._ortvalue if hasattr(value._ortvalue, "__dlpack_device__") else value)
    return shared, np.array_equal(shared, value.numpy()), shared.ctypes.data == value.data_ptr()


SNIPPETS = [values_instead_of_arrays, value_that_is_updated, bound_array, bound_addresses, bound_values, state_that_stays_bound,
            shapes_that_change_while_bound, output_that_is_held, memory_of_the_first_run,
            state_in_one_place, mistakes_of_binding, tensors_of_other_libraries]
