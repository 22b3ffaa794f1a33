"""What stands in front of XProf."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Gate:
    def __init__(self, application: Callable[..., Any], logdir: Path, *, notice: str = "") -> None:
        self.application = application
        self.notice = notice

    def __call__(self, environ, start_response):
        if environ["PATH_INFO"] == "/-/jaxprof":
            body = json.dumps({"busy": 0, "idle_s": 0, "notice": self.notice}).encode()
            start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
            return [body]
        return self.application(environ, start_response)
