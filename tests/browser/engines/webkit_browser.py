"""A browser of WebKitGTK for WebKitWebDriver that keeps its profile.

MiniBrowser is always a private window under automation: nothing would be there after a restart. This one
gives WebKit a folder, and does what WebDriver has no command for: scripts before the document's own,
downloads, positions. It is a program of its own, started by the driver, with the standard library alone.

Arguments: the folder of the profile, then one JSON object {"locale", "dark", "room", "downloads",
"socket"}. Orders
come as lines of JSON over the socket; what happens goes out as lines of JSON on standard output, in between
what the console says.
"""

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from ctypes import CDLL, CFUNCTYPE, c_char_p, c_double, c_int, c_ulong, c_void_p, cast
from typing import Any

GTK = CDLL("libgtk-3.so.0")
GLIB = CDLL("libglib-2.0.so.0")
OBJECT = CDLL("libgobject-2.0.so.0")
WEBKIT = CDLL("libwebkit2gtk-4.1.so.0")
MARK = "py-memory:"
PR_SET_PDEATHSIG = 1

# Callbacks that C may still call: nobody else holds them.
kept: list[Any] = []
windows: dict[int, int] = {}
scripts: list[bytes] = []
position: dict[str, float] = {}


def c(library: CDLL, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """Return a C function with its types."""
    function = getattr(library, name)
    function.restype, function.argtypes = result, list(arguments)
    return function  # type: ignore[no-any-return]


def on(instance: int, signal: str, handler: Callable[..., Any], result: Any, count: int) -> None:
    """Connect a handler that takes the instance and `count` pointers more."""
    made = CFUNCTYPE(result, *[c_void_p] * (count + 2))(lambda *given: handler(*given[:-1]))
    kept.append(made)
    connect = c(
        OBJECT, "g_signal_connect_data", c_ulong, c_void_p, c_char_p, c_void_p, c_void_p, c_void_p, c_int
    )
    connect(instance, signal.encode(), cast(made, c_void_p), None, None, 0)


def tell(**said: Any) -> None:
    """Write one line for the tests."""
    os.write(1, f"{MARK}{json.dumps(said)}\n".encode())


def text(pointer: Any) -> str:
    """Return a C string as text."""
    return (pointer or b"").decode()


def make_context(profile: str, locale: str | None, room: int | None) -> int:
    """Return a context that keeps everything in the folder of the profile."""
    share = []
    if room:
        # WebKit counts in shares of the disk.
        disk = os.statvfs(profile)
        share = [b"origin-storage-ratio", c_double(room / (disk.f_blocks * disk.f_frsize))]
    folders = [os.path.join(profile, name).encode() for name in ("data", "cache")]
    WEBKIT.webkit_website_data_manager_new.restype = c_void_p
    manager = WEBKIT.webkit_website_data_manager_new(
        b"base-data-directory",
        c_char_p(folders[0]),
        b"base-cache-directory",
        c_char_p(folders[1]),
        *share,
        None,
    )
    context: int = c(WEBKIT, "webkit_web_context_new_with_website_data_manager", c_void_p, c_void_p)(manager)
    c(WEBKIT, "webkit_web_context_set_automation_allowed", None, c_void_p, c_int)(context, 1)
    if locale:
        languages = (c_char_p * 2)(locale.encode(), None)
        c(WEBKIT, "webkit_web_context_set_preferred_languages", None, c_void_p, c_void_p)(context, languages)
    return context


def make_view(context: int) -> int:
    """Open a window and return its view."""
    settings = c(WEBKIT, "webkit_settings_new", c_void_p)()
    to_stdout = "webkit_settings_set_enable_write_console_messages_to_stdout"
    c(WEBKIT, to_stdout, None, c_void_p, c_int)(settings, 1)
    scripts_of = c(WEBKIT, "webkit_user_content_manager_new", c_void_p)()
    make = OBJECT.g_object_new
    make.restype = c_void_p
    view: int = make(
        c_ulong(c(WEBKIT, "webkit_web_view_get_type", c_ulong)()),
        b"web-context",
        c_void_p(context),
        b"is-controlled-by-automation",
        c_int(1),
        b"settings",
        c_void_p(settings),
        b"user-content-manager",
        c_void_p(scripts_of),
        None,
    )
    window = c(GTK, "gtk_window_new", c_void_p, c_int)(0)
    c(GTK, "gtk_window_set_default_size", None, c_void_p, c_int, c_int)(window, 1280, 720)
    c(GTK, "gtk_container_add", None, c_void_p, c_void_p)(window, view)
    windows[view] = scripts_of
    for script in scripts:
        add_script(scripts_of, script)
    on(view, "close", lambda gone: close_view(gone, window), None, 0)
    on(view, "resource-load-started", lambda _, __, asked: tell(request=address_of(asked)), None, 2)
    on(view, "permission-request", lambda _, asked: allow(asked), c_int, 1)
    c(GTK, "gtk_widget_show_all", None, c_void_p)(window)
    c(WEBKIT, "webkit_web_view_load_uri", None, c_void_p, c_char_p)(view, b"about:blank")
    return view


def close_view(view: int, window: int) -> None:
    """Close a window."""
    windows.pop(view, None)
    c(GTK, "gtk_widget_destroy", None, c_void_p)(window)


def address_of(asked: int) -> str:
    """Return where a request goes."""
    return text(c(WEBKIT, "webkit_uri_request_get_uri", c_char_p, c_void_p)(asked))


def allow(asked: int) -> int:
    """Grant a permission once there is a position, refuse it before."""
    verb = "webkit_permission_request_allow" if position else "webkit_permission_request_deny"
    c(WEBKIT, verb, None, c_void_p)(asked)
    return 1


def add_script(manager: int, script: bytes) -> None:
    """Run it at the start of every document of a view."""
    make = c(WEBKIT, "webkit_user_script_new", c_void_p, c_char_p, c_int, c_int, c_void_p, c_void_p)
    c(WEBKIT, "webkit_user_content_manager_add_script", None, c_void_p, c_void_p)(
        manager, make(script, 0, 0, None, None)
    )


def automate(context: int, session: int) -> None:
    """Tell the driver who we are, and open a window whenever it asks for one."""
    info = c(WEBKIT, "webkit_application_info_new", c_void_p)()
    c(WEBKIT, "webkit_application_info_set_name", None, c_void_p, c_char_p)(info, b"py-memory")
    c(WEBKIT, "webkit_automation_session_set_application_info", None, c_void_p, c_void_p)(session, info)
    on(session, "create-web-view", lambda _: make_view(context), c_void_p, 0)


def keep_download(download: int, folder: str) -> None:
    """Put a file where the tests look for it."""
    target = {"name": "", "file": ""}

    def decide(_: int, suggested: int) -> int:
        target["name"] = text(cast(suggested, c_char_p).value)
        target["file"] = os.path.join(folder, f"{len(kept)}-{os.path.basename(target['name'])}")
        put = c(WEBKIT, "webkit_download_set_destination", None, c_void_p, c_char_p)
        put(download, target["file"].encode())
        return 1

    on(download, "decide-destination", decide, c_int, 1)
    on(download, "finished", lambda _: tell(download=target), None, 0)


def locate(manager: int) -> int:
    """Give the position that was set."""
    if not position:
        return 0
    make = c(WEBKIT, "webkit_geolocation_position_new", c_void_p, c_double, c_double, c_double)
    found = make(position["latitude"], position["longitude"], 1.0)
    c(WEBKIT, "webkit_geolocation_manager_update_position", None, c_void_p, c_void_p)(manager, found)
    return 1


def obey(order: dict[str, Any]) -> None:
    """Do what a line over the socket says; called by GTK's loop."""
    if "script" in order:
        scripts.append(order["script"].encode())
        for manager in windows.values():
            add_script(manager, scripts[-1])
    if "position" in order:
        position.update(order["position"])


def later(order: dict[str, Any]) -> None:
    """Do it in GTK's loop, and wait until it is done."""
    done = threading.Event()

    def work(_: int) -> int:
        obey(order)
        done.set()
        return 0

    made = CFUNCTYPE(c_int, c_void_p)(work)
    kept.append(made)
    c(GLIB, "g_idle_add", c_int, c_void_p, c_void_p)(cast(made, c_void_p), None)
    done.wait()


def listen(path: str) -> None:
    """Take orders for as long as this runs; each is answered with a line when it is done."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    while True:
        connection, _ = server.accept()
        with connection, connection.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                later(json.loads(line))
                connection.sendall(b"done\n")


def main(profile: str, options: dict[str, Any]) -> None:
    """Run until the driver ends the session, or is killed."""
    CDLL(None).prctl(PR_SET_PDEATHSIG, c_ulong(signal.SIGKILL))
    c(GTK, "gtk_init", None, c_void_p, c_void_p)(None, None)
    if options["dark"]:
        settings = c(GTK, "gtk_settings_get_default", c_void_p)()
        OBJECT.g_object_set(c_void_p(settings), b"gtk-application-prefer-dark-theme", c_int(1), None)
    context = make_context(profile, options["locale"], options["room"])
    on(context, "automation-started", automate, None, 1)
    on(context, "download-started", lambda _, one: keep_download(one, options["downloads"]), None, 1)
    places = c(WEBKIT, "webkit_web_context_get_geolocation_manager", c_void_p, c_void_p)(context)
    on(places, "start", locate, c_int, 0)
    threading.Thread(target=listen, args=(options["socket"],), daemon=True).start()
    GTK.gtk_main()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
