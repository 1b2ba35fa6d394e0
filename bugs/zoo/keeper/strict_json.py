"""What `--json` prints: one line of JSON that any parser reads."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def to_json(value: Mapping[str, Any]) -> str:
    """Return `value` as one line of JSON; NaN and the infinities, which JSON lacks, as "nan", "inf" and "-inf"."""
    return json.dumps(_finite(value), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
