"""The viewers XProf and TensorBoard: processes of their own, each behind one unix socket.

`process` supervises one from the Jupyter server; `serve`, `gate`, `xprof_app` and `tensorboard_app` run inside it.
This package imports nothing by itself: the viewers' processes start with it.
"""
