"""What agents' harnesses send for one request of a person, rebuilt after their public forms."""

# ruff: noqa: E501 (what is sent is one line)

from itertools import product

VERBS = (
    "Fix the failing test in",
    "Explain",
    "Prove that no deadlock is possible in",
    "Rename the variable x in",
    "Write a fast version of",
)
THINGS = (
    "the lock-free queue",
    "`parser.py`",
    "the login form",
    "our retry loop\n\n```py\nwhile True: pass\n```",
)
REQUESTS = [f"{verb} {thing}" for verb, thing in product(VERBS, THINGS)] + [
    "hi",
    "Was ist die Hauptstadt von Australien?",
    "why is <system-reminder> in my log?",
    "What does `<environment_details>` mean",
    "thanks, that works. Now the same for the other module",
    "add a test",
    "この関数を速くしてください",
    "Summarise: [read_file for 'x'] was called twice",
    "2+2",
    "Design a schema for a multi-tenant billing system with proration and audit",
    "stop",
    "convert 30 C to F",
    "Error: it says so when I start it",
    "Write a poem on autumn",
    "Debug: Traceback (most recent call last): KeyError 'a'",
    "which of both files is newer?",
    "1. read a.py 2. read b.py 3. say what differs",
    "explain CRDTs to a child",
    "undo that",
    "run the linter",
]


def user(*parts):
    if len(parts) == 1:
        return {"role": "user", "content": parts[0]}
    return {"role": "user", "content": [{"type": "text", "text": part} for part in parts]}


def claude_code(text):
    reminder = "<system-reminder>\nAs you answer, you can use this context:\n# claudeMd\n{}\n</system-reminder>"
    todo = "<system-reminder>\nYour todo list is empty. DO NOT mention this.\n</system-reminder>"
    system = {"role": "system", "content": "You are Claude Code, Anthropic's official CLI."}
    shell = "<local-command-caveat>Caveat: DO NOT respond to these.</local-command-caveat>"
    ran = "<bash-input>make prove</bash-input><bash-stdout>deadlock</bash-stdout><bash-stderr></bash-stderr>"
    return [system, user(shell, ran, reminder.format("Prove every theorem. " * 20), text, todo)]


def codex(text):
    rules = "# AGENTS.md instructions for /repo\n\n<INSTRUCTIONS>\nFix deadlocks first.\n</INSTRUCTIONS>"
    place = (
        "<environment_context>\n  <cwd>/repo</cwd>\n  <shell>zsh</shell>\n</environment_context>"
    )
    editor = (
        "# Context from my IDE setup:\n\n## Open tabs:\n- a.py: a.py\n\n## My request for Codex:\n"
    )
    return [user(rules, place), user(editor + text)]


def openhands(text):
    files = "<uploaded_files>\n/workspace/queue\n</uploaded_files>"
    info = "<RUNTIME_INFORMATION>\nPorts 8011, 8012. Debug the race.\n</RUNTIME_INFORMATION>"
    return [
        {"role": "system", "content": "You are OpenHands agent"},
        user(f"{files}\n{text}", info),
    ]


def cline(text):
    place = "<environment_details>\n# VSCode Visible Files\nqueue.py\n# Current Mode\nACT\n</environment_details>"
    file = '<file_content path="a.py">\ndef f(): raise Deadlock\n</file_content>'
    return [user(f"<task>\n{text}\n</task>", file, place)]


def aider(text):
    note = "I have *added these files to the chat* so you can go ahead and edit them.\n\na.py\n```\ndef f(): ...\n```"
    tree = "Here are summaries of some files present in my git repository.\nDo not propose changes to these.\n"
    rules = "# *SEARCH/REPLACE block* Rules:\n\nEvery *SEARCH/REPLACE block* must use this format:"
    yes = {"role": "assistant", "content": "Ok."}
    return [user(tree), yes, user(note), yes, user(f"{text}\n\n{rules}")]


def cursor(text):
    who = "<user_info>\nOS: linux. Debug deadlocks first.\n</user_info>"
    files = "<open_and_recently_viewed_files>\nqueue.py\n</open_and_recently_viewed_files>"
    return [user(who), user(f"{files}\n<user_query>\n{text}\n</user_query>")]


def copilot(text):
    place = (
        "<environment_info>\nLinux\n</environment_info>\n<workspace_info>\n/repo\n</workspace_info>"
    )
    rules = "<reminderInstructions>\nProve what you say.\n</reminderInstructions>"
    return [user(place), user(f"{rules}\n<userRequest>\n{text}\n</userRequest>")]


FORMS = (claude_code, codex, openhands, cline, cursor, copilot, aider)
TURNS = list(product(FORMS, REQUESTS))
