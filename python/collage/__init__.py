"""collage runs neural networks with the kernels of several libraries, each part with the one that was measured to be the fastest.

    import collage
    session = collage.session("model.onnx")
    scores = session.run({"image": image})["scores"]

``load`` reads a model, ``Network.tune`` measures and returns a ``Plan``, and a ``Session`` runs it.
"""
from . import network as _network
from . import plan as _plan
from ._open import Sequence
from ._system import set_log, system, version
from .arrays import StopFlag
from .binding import Binding
from .errors import CancelledError, CollageError, MisuseError
from .growing import Growing
from .network import Network, load
from .plan import ErrorBound, Plan
from .ports import Port
from .progress import Progress, ProgressLine
from .session import Session, SessionOptions, Step, session
from .trace import Trace
from .tuning import BackgroundTuning

__all__ = ["BackgroundTuning", "Binding", "CancelledError", "CollageError", "ErrorBound", "Growing", "MisuseError", "Network",
           "Plan", "Port", "Progress", "ProgressLine", "Sequence", "Session", "Step", "StopFlag", "Trace", "load", "session",
           "set_log", "system", "version"]
__version__ = version()

# Annotations name classes of modules that need each other. Here typing.get_type_hints finds all of them.
vars(_plan).update(Network=Network)
vars(_network).update(Session=Session, SessionOptions=SessionOptions)
