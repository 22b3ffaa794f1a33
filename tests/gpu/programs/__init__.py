"""Small programs of which it is known what is wrong with each: what the diagnosis is judged by.

`record_captures.sh` runs them on a GPU, each in a process of its own, and keeps a trace or a report of each.
"""
