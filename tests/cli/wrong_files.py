"""Contents that no command can use, whatever it expects in a file."""

from __future__ import annotations

import gzip

NOT_TEXT = {
    "bytes": b"\xff\xfe\x00",
    "latin-1": "größe: 1".encode("latin-1"),
    "utf-16": "name: x\n".encode("utf-16"),
    "a picture": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
    "gzip": gzip.compress(b"name: x\n", mtime=0),
    "cut utf-8": b"name: \xe2\x82",
}
"""Bytes that are no text."""

NOT_YAML = {
    "open bracket": "a: [",
    "open brace": "a: {b: 1",
    "open quote": 'a: "b',
    "closed twice": "a: ]",
    "two colons": "a: b: c",
    "tab": "a:\n\tb: 1",
    "wrong indent": "a:\n    b: 1\n  c: 2",
    "unknown alias": "a: *b",
    "unknown tag": "a: !thing b",
    "python tag": "!!python/object/apply:os.system [ls]",
    "version 3": "%YAML 3.0\n---\na: 1",
    "unknown directive": "%HELLO\na: 1",
    "duplicate key": "a: 1\na: 2",
    "duplicate below": "a:\n  b: 1\n  b: 2",
    "merge of text": "a:\n  <<: text",
    "merge of numbers": "a:\n  <<: [1, 2]",
    "list as key": "? [a, b]\n: 1",
    "map as key": "? {a: b}\n: 1",
    "a NUL": "a: \x00",
    "escape sequence": "a: \x1b[31mred",
    "broken escape": 'a: "\\q"',
    "half a surrogate": 'a: "\\ud800"',
    "template": "{{ .Values.fleet }}",
    "broken json": '{"a": 1,, "b": 2}',
    "conflict": "<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> theirs",
    "html": "<!DOCTYPE html>\n<html><body>404: not found</body></html>\n  x: y: z",
    "percent": "100%: % %",
    "at sign": "@home",
    "backtick": "`ls`",
    "bad block": "a: |0\n  x",
    "deep brackets": "[" * 4000,
    "deep maps": "".join(f"{' ' * depth}a:\n" for depth in range(3000)),
    "deep flow": "{a: " * 2000 + "1" + "}" * 2000,
}
"""Texts that a YAML reader refuses."""

OTHER_DATA = {
    "empty": "",
    "blank": " \n\n",
    "comment": "# nothing yet\n",
    "two documents": "---\na: 1\n---\nb: 2\n",
    "null": "null",
    "true": "true",
    "a number": "3",
    "not a number": ".nan",
    "a word": "text",
    "a sentence": "please give me GPUs",
    "empty list": "[]",
    "numbers": "[1, 2, 3]",
    "nulls": "[null, null]",
    "lists in lists": "[[[]]]",
    "empty map": "{}",
    "one field": "a: 1",
    "a null": "a:",
    "number as key": "1: 2",
    "null as key": "~: 2",
    "empty key": '"": 2',
    "true as key": "true: 2",
    "items of text": "items: text",
    "items of numbers": "items: [1, 2]",
    "kind only": "kind: Job",
    "kind of a list": "kind: [Job]",
    "kind of nothing": "kind:",
    "a list of kinds": "- kind: Job\n- kind: 3",
    "metadata of text": "apiVersion: batch/v1\nkind: Job\nmetadata: text",
    "name of a list": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: [a]}",
    "labels of a list": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, labels: [b]}",
    "spec of text": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, labels: {kueue.x-k8s.io/queue-name: q}}\n"
    "spec: text",
    "a pod": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}",
    "a helm chart": "apiVersion: v2\nname: chart\nversion: 1.0.0",
    "a workflow": "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest",
    "compose": "services:\n  web:\n    image: nginx",
    "a Pulumi project": "name: p\nruntime: python",
    "a stack without a fleet": "config:\n  gcp:project: p",
    "a stack of text": "config: text",
    "a fleet of text": "config:\n  kueue-fleet:fleet: text",
    "a fleet of a list": "config:\n  kueue-fleet:fleet: [1]",
    "an empty fleet": "config:\n  kueue-fleet:fleet: {}",
    "a secret fleet": "config:\n  kueue-fleet:fleet: {secure: AAABAAAA}",
    "recursion": "a: &a [*a]",
    "recursive map": "a: &a {b: *a}",
    "laughs": "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    ),
    "byte order mark": "\ufeffa: 1",
    "clusters of text": "name: a\nproject: my-project\nclusters: text",
    "a cluster of text": "name: a\nproject: my-project\nclusters: [text]",
    "jobs of text": "jobs: text",
    "a job of nothing": "jobs: [null]",
    "a list of nothing": "apiVersion: v1\nkind: List\nitems: [null]",
    "cohorts of text": "cohorts: text",
    "cohorts of nothing": "cohorts: [null]",
    "an empty kubeconfig": "apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\nusers: []\ncurrent-context: a",
    "a kubeconfig of text": "contexts: [text]\nclusters: [text]\nusers: [text]\ncurrent-context: text",
    "a pod template of text": "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: a\n"
    "  labels: {kueue.x-k8s.io/queue-name: q}\nspec: {template: text}",
    "a job set without jobs": "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata:\n  name: a\n"
    "  labels: {kueue.x-k8s.io/queue-name: q}\nspec: {replicatedJobs: text}",
    "a queue of text": "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: a}\nspec: text",
    "a long line": "a: " + "x" * 100_000,
    "a large number": "a: " + "9" * 5000,
    "a large float": "a: 1e999999",
    "a date": "2026-13-45",
    "many keys": "".join(f"key{number}: {number}\n" for number in range(50)),
}
"""Data that is something else."""

ALL: dict[str, bytes] = {
    **NOT_TEXT,
    **{name: text.encode(errors="surrogatepass") for name, text in (NOT_YAML | OTHER_DATA).items()},
}
"""Each by its name."""
