"""Every field of a kubeconfig is used as client-go uses it, or refused by its name."""

from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueue_fleet.kube.access import Access, get_access, read_access
from kueue_fleet.kube.kubeconfig import AccessError, kubeconfig_files, read_kubeconfig
from kueue_rehearsal.control_planes.certificates import RehearsalAuthority
from kueue_rehearsal.kubeconfig import rehearsal_kubeconfig, write_kubeconfig

NOW = datetime(2026, 11, 28, tzinfo=UTC)
PLUGIN = "client.authentication.k8s.io/v1"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def written(file: Path, user: Any = None, cluster: Any = None, name: str = "c", **more: Any) -> Path:
    config = {
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **more.pop("context", {})}}],
        "clusters": [{"name": name, "cluster": {"server": "https://host/", **(cluster or {})}}],
        "users": [{"name": name, "user": {"token": "t"} if user is None else user}],
    }
    file.write_text(yaml.safe_dump({**config, "current-context": name, **more}))
    return file


def access(folder: Path, user: Any = None, cluster: Any = None) -> Access:
    return read_access(written(folder / "kubeconfig", user, cluster))


def test_impersonation_is_sent_as_client_go_sends_it(tmp_path: Path) -> None:
    user = {
        "token": "t", "as": "ada", "as-uid": "u1", "as-groups": ["vision", "speech"],
        "as-user-extra": {"acme.com/project": ["a", "b"], "per%cent": ["c"]},
    }  # fmt: skip
    assert list(access(tmp_path, user).all_headers) == [
        ("Authorization", "Bearer t"),
        ("Impersonate-User", "ada"),
        ("Impersonate-Uid", "u1"),
        ("Impersonate-Group", "vision"),
        ("Impersonate-Group", "speech"),
        ("Impersonate-Extra-acme.com%2Fproject", "a"),
        ("Impersonate-Extra-acme.com%2Fproject", "b"),
        ("Impersonate-Extra-per%25cent", "c"),
    ]


@pytest.mark.parametrize(
    ("user", "headers"),
    [
        ({"username": "ada", "password": "p:w"}, [("Authorization", f"Basic {encoded('ada:p:w')}")]),
        ({"token": "old", "tokenFile": "token"}, [("Authorization", "Bearer of-file")]),
        ({"tokenFile": "token"}, [("Authorization", "Bearer of-file")]),
    ],
)
def test_credentials(tmp_path: Path, user: Any, headers: Any) -> None:
    (tmp_path / "token").write_text("of-file\n")
    assert list(access(tmp_path, user).all_headers) == headers


@pytest.mark.parametrize(
    ("cluster", "values"),
    [
        ({"proxy-url": "http://proxy:3128"}, {"proxy": "http://proxy:3128"}),
        ({"tls-server-name": "kubernetes"}, {"tls_server_name": "kubernetes"}),
        ({"insecure-skip-tls-verify": True}, {"insecure": True}),
        ({"insecure-skip-tls-verify": False}, {"insecure": False}),
        ({"certificate-authority": "pki/ca"}, {"authority": "PEM"}),
        ({"certificate-authority-data": encoded("PEM")}, {"authority": "PEM"}),
        ({"disable-compression": True}, {"headers": (("Accept-Encoding", "identity"),)}),
        ({"extensions": [{"name": "x", "extension": 1}]}, {"server": "https://host"}),
    ],
)
def test_fields_of_a_cluster(tmp_path: Path, cluster: Any, values: dict[str, Any]) -> None:
    (tmp_path / "pki").mkdir()
    (tmp_path / "pki" / "ca").write_text("PEM")
    result = access(tmp_path, cluster=cluster)
    assert {name: getattr(result, name) for name in values} == values


@pytest.mark.parametrize(
    ("user", "cluster", "said"),
    [
        ({"token": "t", "as-groups": ["g"]}, {}, "user.as: is missing beside as-uid, as-groups or as-user-extra"),
        ({"token": "t", "as": "a", "as-groups": "g"}, {}, "user.as-groups: is not a list of texts"),
        ({"token": "t", "as": "a\nb"}, {}, "user.as: has characters that a header cannot have"),
        ({"token": "t", "as": "a", "as-user-extra": {"k": "v"}}, {}, "user.as-user-extra.k: is not a list of texts"),
        ({"token": "t", "auth-provider": {"name": "oidc"}}, {}, "auth-provider: is not supported; use an exec plugin"),
        ({"token": "t", "username": "u"}, {}, "user.username: is beside a token; keep one of them"),
        ({"tokenFile": "none"}, {}, "user.tokenFile: cannot be read: No such file or directory"),
        ({"client-certificate-data": encoded("c")}, {}, "user.client-key: is missing beside the other one"),
        ({"client-key-data": "%"}, {}, "user.client-key-data: is not base64 of a text"),
        ({}, {}, "user: has no credential; give a kubeconfig with a token, a certificate or an exec plugin"),
        (None, {"proxy-url": "socks5://p"}, "cluster.proxy-url: socks5 scheme; give a proxy of http or https"),
        (None, {"insecure-skip-tls-verify": "yes"}, "insecure-skip-tls-verify: is neither true nor false"),
        (
            None,
            {"insecure-skip-tls-verify": True, "certificate-authority-data": encoded("PEM")},
            "insecure-skip-tls-verify: is beside a certificate authority",
        ),
        (
            None,
            {"certificate-authority": "a", "certificate-authority-data": encoded("PEM")},
            "certificate-authority: is beside certificate-authority-data",
        ),
        (None, {"server": ""}, "cluster.server: has no address; write https://HOST"),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_name(tmp_path: Path, user: Any, cluster: Any, said: str) -> None:
    with pytest.raises(AccessError) as caught:
        access(tmp_path, user, cluster)
    assert said in str(caught.value)


@pytest.mark.parametrize("section", ["cluster", "user"])
def test_a_context_names_what_is_there(tmp_path: Path, section: str) -> None:
    with pytest.raises(AccessError, match=f"context.{section}: there is no {section} 'none'"):
        read_access(written(tmp_path / "kubeconfig", context={section: "none"}))


def test_the_certificate_of_a_user_is_used(tmp_path: Path) -> None:
    pair = RehearsalAuthority.open(tmp_path, NOW).server("ada", ["localhost"], NOW)
    user = {"client-certificate": str(pair.certificate), "client-key-data": encoded(Path(pair.key).read_text())}
    assert access(tmp_path, user).tls().get_ca_certs() is not None


def test_a_certificate_that_is_none(tmp_path: Path) -> None:
    user = {"client-certificate-data": encoded("c"), "client-key-data": encoded("k")}
    with pytest.raises(AccessError, match="a certificate or key is not PEM"):
        access(tmp_path, user).tls()


def test_of_several_files_the_first_that_has_a_name_counts(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    first = written(tmp_path / "one" / "first", {"tokenFile": "token"}, name="a")
    second = written(tmp_path / "second", {"token": "of-b"}, name="b")
    again = written(tmp_path / "again", {"token": "not-used"}, name="a")
    (tmp_path / "one" / "token").write_text("of-a")
    files = kubeconfig_files({"KUBECONFIG": os.pathsep.join(map(str, (first, tmp_path / "none", second, again)))})
    assert files == (first, second, again)
    assert [read_access(files, context=name).token for name in ("", "a", "b")] == ["of-a", "of-a", "of-b"]


def test_kubectl_reads_the_file_at_home_where_kubeconfig_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".kube").mkdir()
    file = written(tmp_path / ".kube" / "config")
    assert kubeconfig_files({"KUBECONFIG": ""}) == kubeconfig_files({}) == (file,)


def test_without_any_file_there_is_no_context() -> None:
    with pytest.raises(AccessError, match="kubeconfig: has no current context; name one"):
        read_kubeconfig(()).context()


def plugin(folder: Path, status: Any, **more: Any) -> dict[str, Any]:
    """A user with a plugin that gives STATUS, and keeps what it is told."""
    script = folder / "plugin"
    credential = json.dumps({"apiVersion": PLUGIN, "kind": "ExecCredential", "status": status})
    script.write_text(
        f"#!/bin/sh\necho \"$KUBERNETES_EXEC_INFO $REGION\" > {folder}/told\ncat <<'E'\n{credential}\nE\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"command": "./plugin", "apiVersion": PLUGIN, "interactiveMode": "Never", **more}}


def test_a_plugin_may_give_a_certificate(tmp_path: Path) -> None:
    user = plugin(tmp_path, {"clientCertificateData": "C", "clientKeyData": "K"})
    assert get_access(written(tmp_path / "kubeconfig", user)).certificate == ("C", "K")


def test_what_a_plugin_gets_to_know(tmp_path: Path) -> None:
    more = {"provideClusterInfo": True, "env": [{"name": "REGION", "value": "eu"}]}
    cluster = {
        "certificate-authority-data": encoded("PEM"),
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}],
    }
    get_access(written(tmp_path / "kubeconfig", plugin(tmp_path, {"token": "t"}, **more), cluster))
    info, _, region = (tmp_path / "told").read_text().strip().rpartition(" ")
    told = {"server": "https://host/", "certificate-authority-data": encoded("PEM"), "config": {"audience": "a"}}
    assert (json.loads(info)["spec"], region) == ({"interactive": False, "cluster": told}, "eu")


def test_a_token_comes_before_a_plugin(tmp_path: Path) -> None:
    assert access(tmp_path, {"token": "t", **plugin(tmp_path, {"token": "of-plugin"})}).plugin is None


def test_the_page_makes_a_member_of_the_kubeconfig_of_a_rehearsal(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs/rehearse.md"
    [line] = [line for line in page.read_text().splitlines() if line.startswith("sed 's/^    token")]
    cluster = {"name": "c", "endpoint": "127.0.0.1", "caCertificate": encoded("PEM")}
    write_kubeconfig(tmp_path / "admin", rehearsal_kubeconfig([cluster], "t", "c"))
    subprocess.run(
        line, shell=True, check=True, cwd=tmp_path, env={**os.environ, "KUBECONFIG": str(tmp_path / "admin")}
    )
    assert read_access(tmp_path / "member.yaml").headers == (
        ("Impersonate-User", "ann@example.com"),
        ("Impersonate-Group", "vision@example.com"),
    )
