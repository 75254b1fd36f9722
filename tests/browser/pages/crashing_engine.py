"""Run in the worker before our package: every COMMIT of SQL is a phase."""

import sqlite3

import js

_connect = sqlite3.connect


class Watched(sqlite3.Connection):
    def execute(self, sql, *rest):
        if sql == "COMMIT":
            js.crashingReached("sql")
        return super().execute(sql, *rest)


def connect(*args, **options):
    return _connect(*args, factory=Watched, **options)


sqlite3.connect = connect
