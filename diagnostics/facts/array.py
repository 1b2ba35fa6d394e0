"""The arrays that facts hold: NumPy's.

Only a type checker imports it for their sake: `diagnose explain` holds facts without arrays, and NumPy would be a
third of what it imports.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]
else:
    Array = Any
