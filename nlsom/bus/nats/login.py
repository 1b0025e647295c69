"""Logging in to NATS: by the URL, and by the environment variables of NATS's own command line."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from typing import Any

from nlsom.errors import UsageError


def login(url: str, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Options of `nats.connect` for one or more URLs, separated by commas.

    User and password, or a token, may stand in the URL (`nats://user:password@host:4222`,
    `nats://token@host`). `tls://` asks for TLS. The rest comes from the environment, as for the `nats`
    command: `NATS_USER` and `NATS_PASSWORD`, `NATS_TOKEN`, `NATS_CREDS` (a file), `NATS_NKEY` (a file),
    `NATS_CA`, `NATS_CERT` and `NATS_KEY` (files).

    Raises:
        UsageError: The URL is not one of NATS, or a file cannot be read.
    """
    servers = [one.strip() for one in url.split(",") if one.strip()]
    for server in servers:
        if server.partition("://")[0] not in ("nats", "tls", "ws", "wss"):
            raise UsageError(f"--bus {server}: write nats://HOST:4222 or tls://HOST:4222")
    if not servers:
        raise UsageError("--bus: write nats://HOST:4222 or tls://HOST:4222")
    options: dict[str, Any] = {"servers": servers}
    names = {
        "NATS_USER": "user",
        "NATS_PASSWORD": "password",
        "NATS_TOKEN": "token",
        "NATS_CREDS": "user_credentials",
        "NATS_NKEY": "nkeys_seed",
    }
    for variable, option in names.items():
        if value := environment.get(variable):
            if variable in ("NATS_CREDS", "NATS_NKEY") and not os.path.isfile(value):
                raise UsageError(f"{variable}: there is no file {value}")
            options[option] = value
    authority, certificate = environment.get("NATS_CA"), environment.get("NATS_CERT")
    if authority or certificate or any(server.startswith(("tls", "wss")) for server in servers):
        try:
            context = ssl.create_default_context(cafile=authority)
            if certificate:
                context.load_cert_chain(certificate, environment.get("NATS_KEY"))
        except OSError as error:
            raise UsageError(f"NATS_CA, NATS_CERT, NATS_KEY: cannot be read ({error})") from error
        options["tls"] = context
    return options
