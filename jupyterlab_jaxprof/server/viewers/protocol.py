"""What the supervisor and a viewer's process say to each other over the socket."""

from __future__ import annotations

# Answers `{busy, idle_s, served, notice}`: whether anybody waits for an answer, for how long nobody has, how
# many requests were answered, and a sentence for the user or nothing.
READY_PATH = "/-/jaxprof"
