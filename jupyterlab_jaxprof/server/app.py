"""The server extension's application: its configuration, and what it starts and stops."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from jupyter_events import EventLogger
from jupyter_server.extension.application import ExtensionApp
from traitlets import Bool, Float, Integer, Unicode

from jupyterlab_jaxprof.captures.store import Store
from jupyterlab_jaxprof.environment import own_version
from jupyterlab_jaxprof.server import (
    captures_api,
    compare_api,
    downloads,
    import_api,
    pages,
    patterns_api,
    proxy,
    running_api,
    settings_api,
    viewers_api,
)
from jupyterlab_jaxprof.server.imports import Imports
from jupyterlab_jaxprof.server.usage import Usage
from jupyterlab_jaxprof.server.viewers.process import Limits
from jupyterlab_jaxprof.server.viewers.registry import Viewers, ViewerSettings
from jupyterlab_jaxprof.server.watcher import StoreWatcher

GIB = 1 << 30


class JaxProfApp(ExtensionApp):
    """Captures of JAX programs: a REST interface, change notices, and the viewers XProf and TensorBoard."""

    name = "jaxprof"
    app_name = "JaxProf"
    description = "Captures of JAX programs, and the viewers for them."
    load_other_extensions = True

    directory = Unicode(
        "",
        help="Where captures are kept. Empty: the environment variable JAXPROF_DIR, "
        "else the folder 'jaxprof' in Jupyter's data directory.",
    ).tag(config=True)
    size_limit_bytes = Integer(
        0,
        min=0,
        help="When the captures take more than this many bytes, the oldest unpinned ones are offered for "
        "deletion (none is deleted by itself). 0: no limit, or the environment variable JAXPROF_SIZE_LIMIT.",
    ).tag(config=True)
    xprof_enabled = Bool(True, help="Whether XProf may be started.").tag(config=True)
    tensorboard_enabled = Bool(True, help="Whether TensorBoard may be started, where it is installed.").tag(
        config=True
    )
    external_scripts = Bool(
        True,
        help="Whether XProf's and TensorBoard's pages, which have this Jupyter server's origin, may load "
        "scripts and styles from www.gstatic.com (Google's charts and graphs). Without them several tools "
        "lack their charts and tables, as they do without the internet.",
    ).tag(config=True)
    viewer_memory_limit_bytes = Integer(
        4 * GIB,
        min=0,
        help="A viewer that holds more memory than this is started afresh as soon as it is idle "
        "(XProf's memory grows with each request). 0: no limit.",
    ).tag(config=True)
    viewer_start_timeout_s = Float(
        30.0, min=1.0, help="How long a viewer may take to answer its first request, in seconds."
    ).tag(config=True)

    compare_timeout_s = Float(
        120.0, min=1.0, help="How long comparing captures may take in JupyterLab, in seconds."
    ).tag(config=True)

    def initialize_settings(self) -> None:
        """Open the store, make the viewers, and tell the kernels to come where both are."""
        assert self.serverapp is not None
        # The kernels read the same variables, so that they and the server agree on the store.
        if self.directory.strip():
            os.environ["JAXPROF_DIR"] = self.directory
        if self.size_limit_bytes:
            os.environ["JAXPROF_SIZE_LIMIT"] = str(self.size_limit_bytes)
        self.store = Store.default()
        os.environ["JAXPROF_DIR"] = str(self.store.root)
        os.environ["JAXPROF_BASE_URL"] = self.serverapp.base_url
        os.environ["JAXPROF_SERVER_VERSION"] = own_version()
        # Changes wait for each other and for the disk; who only reads waits for none of them.
        self.readers = ThreadPoolExecutor(max_workers=4, thread_name_prefix="jaxprof")
        self.writers = ThreadPoolExecutor(max_workers=4, thread_name_prefix="jaxprof-change")
        self.viewers = Viewers(
            ViewerSettings(
                logdir=self.store.captures_dir,
                limits=Limits(self.viewer_start_timeout_s, self.viewer_memory_limit_bytes),
                enabled={"xprof": self.xprof_enabled, "tensorboard": self.tensorboard_enabled},
                external_scripts=self.external_scripts,
            ),
            log=self.log,
        )
        self.imports = Imports(self.store, self.log)
        self.usage = Usage()
        events = cast("EventLogger", self.serverapp.event_logger)
        self.watcher = StoreWatcher(self.store, events, self.log, self.viewers.states)
        # Rather than the hook _start_jupyter_server_extension, which jupyter-server 2.14 doesn't have.
        self.serverapp.io_loop.add_callback(self._begin)

    def initialize_handlers(self) -> None:
        """Register the routes, most particular first: tornado takes the first that matches."""
        routes: list[tuple[Any, ...]] = [
            *captures_api.ROUTES,
            *compare_api.ROUTES,
            *downloads.ROUTES,
            *settings_api.ROUTES,
            *viewers_api.ROUTES,
            *import_api.ROUTES,
            *running_api.ROUTES,
            *patterns_api.ROUTES,
            *pages.ROUTES,
            *proxy.routes(),
            *captures_api.FALLBACK_ROUTES,
        ]
        self.handlers.extend(routes)

    def _begin(self) -> None:
        self.watcher.start()
        self.viewers.listen()

    async def stop_extension(self) -> None:
        """End the viewers and the watcher; called by Jupyter on a regular end."""
        self.watcher.stop()
        await self.imports.close()
        await self.viewers.close()
        for executor in (self.readers, self.writers):
            executor.shutdown(wait=False, cancel_futures=True)
