"""`python -m bench`: what this project costs, each figure against a peer or a limit of the same run.

A module named in `GROUPS` measures one subject: its `figures(long)` yields `table.Figure`s. `run.py` runs
each in a process of its own, `table.py` holds what a figure is and how it is shown, `turns.py` measures
ours and the peer in turns.
"""

#: What each measures, in the order in which they run: what is short comes first.
GROUPS = {
    "imports": "what every kernel imports of the package",
    "startup": "a kernel's start",
    "store": "10,000 captures listed and searched",
    "transfers": "files that go through the server",
    "cards": "a card's size and how long it takes to be shown",
    "lab": "what the labextension adds to JupyterLab's start, and its size",
    "sidebar": "the sidebar's first rows of 10,000 captures",
    "xprof": "XProf's first trace view in our tab",
    "timing": "what the timing magics add to what they measure",
    "timeline": "from a trace of 700,000 events to findings",
    "nsight": "from an Nsight report of a million kernels to findings",
    "carry": "1 GiB of a notebook's arrays carried into a clean process",
    "nsys": "%%nsys beside nsys alone",
}
