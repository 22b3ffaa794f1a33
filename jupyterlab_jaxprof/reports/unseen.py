"""Which findings a recorder could not have told, by what it was blind to: their absence means nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from jupyterlab_jaxprof.cards.traced import BLIND

from .examine import pattern_ids

#: What is told without any device. All other findings are about what devices did, or why they rested.
_WITHOUT_DEVICES = frozenset(
    {
        "dropped-events",
        "first-call-compile",
        "no-device-activity",
        "no-step-markers",
        "profiler-overhead",
        "recompilation",
    }
)
#: What each blindness hides besides; what is not here hides no finding altogether.
_HIDES = {
    "allocator": {"memory-pressure"},
    "compiles": {"first-call-compile", "recompilation"},
    "graphs": {"device-copies", "exposed-collectives", "launch-bound", "tiny-kernels"},
    "host": {
        "batch-too-small",
        "device-to-host-read",
        "eager-dispatch",
        "host-callback",
        "host-starves-device",
        "sync-every-step",
    },
}


def unseen(blind: Iterable[str]) -> list[str]:
    """Give the findings that could not be told by a recorder that was `blind` to so much."""
    return [name for name in pattern_ids() if any(_hides(one, name) for one in blind)]


def not_seen(blind: Iterable[str], names: Collection[str]) -> str:
    """Say what was not seen that these findings need: 'the devices'."""
    causes = [one for one in blind if any(_hides(one, name) for name in names)]
    return " and ".join(BLIND[one] for one in causes)


def _hides(blind: str, name: str) -> bool:
    if blind == "devices":
        return name not in _WITHOUT_DEVICES
    return name in _HIDES.get(blind, ())
