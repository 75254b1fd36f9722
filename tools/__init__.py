"""The rooms of build.py: environment, wheel, runtime, dist, server, tests."""
