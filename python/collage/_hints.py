"""Names in annotations that older versions of Python lack."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["Unpack"]

if TYPE_CHECKING:
    from typing_extensions import Unpack  # type checkers bring it
else:
    try:
        from typing import Unpack
    except ImportError:  # before Python 3.11
        class Unpack:
            """Stands for the options themselves, so that typing.get_type_hints finds a name."""

            def __class_getitem__(cls, of: Any) -> Any:
                return of
