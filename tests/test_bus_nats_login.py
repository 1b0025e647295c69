"""Every way to log in to NATS, against a server that requires it; without the secret, access is refused."""

from __future__ import annotations

import base64
import hashlib
import json
import os

import nkeys
import pytest
import trustme

from nlsom.bus.nats import NatsBus
from nlsom.bus.nats.login import login
from nlsom.errors import Unavailable, UsageError
from nlsom.testing.agents import Saying
from nlsom.testing.nats import NatsServer
from nlsom.testing.turns import make_turn

SECRET = "s3cret"


async def is_let_in(url, patience=10.0) -> bool:
    """Whether a bus gets in, and then carries turns."""
    told = ""
    try:
        async with NatsBus(url, patience=patience) as bus:
            await bus.host("ann", Saying())
            return (await bus.request(make_turn(), to="ann")).text == "yes"
    except Unavailable as error:
        told = str(error)
    assert "lets us in" in told
    assert SECRET not in told
    return False


async def test_a_token(monkeypatch):
    async with NatsServer("--auth", SECRET) as server:
        assert not await is_let_in(server.url, patience=1.0)
        assert not await is_let_in(server.url.replace("://", f"://not-{SECRET}@"), patience=1.0)
        assert await is_let_in(server.url.replace("://", f"://{SECRET}@"))
        monkeypatch.setenv("NATS_TOKEN", SECRET)
        assert await is_let_in(server.url)


async def test_a_user_and_a_password(monkeypatch):
    async with NatsServer("--user", "me", "--pass", SECRET) as server:
        assert not await is_let_in(server.url, patience=1.0)
        assert not await is_let_in(server.url.replace("://", f"://me:not-{SECRET}@"), patience=1.0)
        assert await is_let_in(server.url.replace("://", f"://me:{SECRET}@"))
        monkeypatch.setenv("NATS_USER", "me")
        monkeypatch.setenv("NATS_PASSWORD", SECRET)
        assert await is_let_in(server.url)


@pytest.fixture
def tls(tmp_path):
    """Options of a server with a certificate of its own; the authority that signed it."""
    authority = trustme.CA()
    issue(authority, tmp_path, "server", "127.0.0.1")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    cert, key = tmp_path / "server.pem", tmp_path / "server.key"
    return authority, ("--tls", "--tlscert", str(cert), "--tlskey", str(key))


def issue(authority, folder, name, host):
    made = authority.issue_cert(host)
    made.cert_chain_pems[0].write_to_path(folder / f"{name}.pem")
    made.private_key_pem.write_to_path(folder / f"{name}.key")


async def test_tls_is_spoken_and_an_unknown_certificate_refused(tmp_path, monkeypatch, tls):
    _, options = tls
    async with NatsServer(*options, scheme="tls") as server:
        assert not await is_let_in(server.url, patience=1.0)
        monkeypatch.setenv("NATS_CA", str(tmp_path / "ca.pem"))
        assert await is_let_in(server.url)


async def test_a_server_that_asks_for_a_certificate_gets_one(tmp_path, monkeypatch, tls):
    authority, options = tls
    ca = str(tmp_path / "ca.pem")
    issue(authority, tmp_path, "client", "client.example")
    monkeypatch.setenv("NATS_CA", ca)
    async with NatsServer(*options, "--tlsverify", "--tlscacert", ca, scheme="tls") as server:
        assert not await is_let_in(server.url, patience=1.0)
        monkeypatch.setenv("NATS_CERT", str(tmp_path / "client.pem"))
        monkeypatch.setenv("NATS_KEY", str(tmp_path / "client.key"))
        assert await is_let_in(server.url)


def new_key(prefix) -> tuple[nkeys.KeyPair, str, str]:
    """A key pair, its public key and its seed."""
    seed = nkeys.encode_seed(os.urandom(32), prefix)
    pair = nkeys.from_seed(bytearray(seed))
    return pair, pair.public_key.decode(), seed.decode()


async def test_an_nkey(tmp_path, monkeypatch):
    _, public, seed = new_key(nkeys.PREFIX_BYTE_USER)
    config, mine, other = tmp_path / "nats.conf", tmp_path / "user.nk", tmp_path / "other.nk"
    config.write_text(f"authorization {{ users: [ {{ nkey: {public} }} ] }}")
    mine.write_text(seed)
    other.write_text(new_key(nkeys.PREFIX_BYTE_USER)[2])
    async with NatsServer("-c", str(config)) as server:
        assert not await is_let_in(server.url, patience=1.0)
        monkeypatch.setenv("NATS_NKEY", str(other))
        assert not await is_let_in(server.url, patience=1.0)
        monkeypatch.setenv("NATS_NKEY", str(mine))
        assert await is_let_in(server.url)


def token(issuer: nkeys.KeyPair, subject: str, kind: str, **claims) -> str:
    """A JWT as NATS has them: signed by an nkey, the id a hash of the claims."""

    def coded(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    body = {"iss": issuer.public_key.decode(), "sub": subject, "iat": 1_700_000_000, "name": kind}
    body["nats"] = {"type": kind, "version": 2, **claims}
    digest = hashlib.new("sha512_256", json.dumps(body).encode()).digest()
    body["jti"] = base64.b32encode(digest).rstrip(b"=").decode()
    head = coded(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
    told = f"{head}.{coded(json.dumps(body).encode())}"
    return f"{told}.{coded(issuer.sign(told.encode()))}"


async def test_a_file_of_credentials(tmp_path, monkeypatch):
    operator, operator_id, _ = new_key(nkeys.PREFIX_BYTE_OPERATOR)
    account, account_id, _ = new_key(nkeys.PREFIX_BYTE_ACCOUNT)
    _, user_id, seed = new_key(nkeys.PREFIX_BYTE_USER)
    without_limit = dict.fromkeys(("subs", "conn", "leaf", "imports", "exports", "data", "payload"), -1)
    limits = {**without_limit, "wildcards": True}
    config = tmp_path / "nats.conf"
    config.write_text(
        f"operator: {token(operator, operator_id, 'operator')}\n"
        "resolver: MEMORY\n"
        f"resolver_preload: {{ {account_id}: {token(operator, account_id, 'account', limits=limits)} }}\n"
    )
    user = token(account, user_id, "user", subs=-1, data=-1, payload=-1)
    creds = tmp_path / "user.creds"
    creds.write_text(
        f"-----BEGIN NATS USER JWT-----\n{user}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
    async with NatsServer("-c", str(config), jetstream=False) as server:
        assert not await is_let_in(server.url, patience=1.0)
        monkeypatch.setenv("NATS_CREDS", str(creds))
        assert await is_let_in(server.url)


def test_logins_come_from_the_url_and_from_the_variables_of_nats(tmp_path):
    seed = tmp_path / "user.creds"
    seed.write_text("")
    told = login("nats://a:1, nats://b:2", {"NATS_CREDS": str(seed), "NATS_USER": "me", "NATS_PASSWORD": "p"})
    assert told == {
        "servers": ["nats://a:1", "nats://b:2"],
        "user_credentials": str(seed),
        "user": "me",
        "password": "p",
    }
    with pytest.raises(UsageError, match="NATS_CREDS: there is no file"):
        login("nats://a", {"NATS_CREDS": "none"})
    with pytest.raises(UsageError, match="NATS_CA"):
        login("nats://a", {"NATS_CA": str(tmp_path / "none")})
    for wrong in ("http://a", "a:4222", ""):
        with pytest.raises(UsageError, match="nats://HOST:4222"):
            login(wrong, {})
