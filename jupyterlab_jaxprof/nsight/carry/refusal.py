"""What can't be carried, said so that the user knows what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

REMEDIES = (
    "What helps: mark the cells that make such objects with --setup, and they are run in the child process "
    "instead; --drop NAME leaves out a variable that the cell does not really use; --shapes-only sends "
    "arrays of zeros in place of big or deleted arrays."
)


class CannotCarry(Exception):
    """Raised while one object is looked at; the text says why, as a clause that follows 'since'."""


@dataclass(frozen=True)
class Refusal:
    """One object that can't be carried.

    `name` is the variable, `path` where in it the object is ("['log']", empty for the variable itself),
    `chain` the names that lead to it, the first of which the cell's body reads, and `reason` a clause that
    follows 'since'.
    """

    name: str
    type_name: str
    reason: str
    chain: tuple[str, ...] = ()
    path: str = ""

    def __str__(self) -> str:
        through = " → ".join(self.chain)
        needs = f"the cell needs it through {through}" if len(self.chain) > 1 else "the cell needs it"
        return f"{self.name}{self.path} ({self.type_name}) can't be carried, since {self.reason}; {needs}."


class CarryError(Exception):
    """The notebook's state can't be carried to the child process. Nothing has run; `refusals` has each case.

    The text is made of sentences for the user, remedies included.
    """

    def __init__(self, refusals: Sequence[Refusal] = (), sentence: str = "") -> None:
        self.refusals = tuple(refusals)
        said = [str(refusal) for refusal in self.refusals]
        super().__init__("\n".join([*([sentence] if sentence else []), *said, *([REMEDIES] if said else [])]))


class RestoreError(Exception):
    """A variable that was carried could not be made again in the child process; the text is a sentence."""
