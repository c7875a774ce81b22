"""Demos: a guided story on a throw-away copy of the workspace, a copy for each."""
