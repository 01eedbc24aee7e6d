"""What `import onnxruntime` finds in processes that a program under `python -m collage.onnxruntime` starts."""
import sys

import collage.onnxruntime

del sys.modules[__name__]  # this module, in whose place the interface comes
collage.onnxruntime.install()
