"""The viewers XProf and TensorBoard: processes of their own, each behind one unix socket.

`registry`, `process`, `child_environment` and `sockets` belong to the Jupyter server; `serve`, `gate`,
`xprof_rules`, `bundle`, `caches`, `xprof_app` and `tensorboard_app` run in the viewers' processes; both
know `protocol`. This file imports nothing: both start with it.
"""
