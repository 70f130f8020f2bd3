"""A server that is stopped, or killed, while it is asked: every charged answer is there afterwards, under its key."""

import json
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest

import hushcube as hc
from server.hospital_desk import give_tokens

QUESTIONS = ["sex", "age", "region", "season", "diagnosis", "admission", "ward", "outcome", "sex*age", "sex*region"]
RHO = "0.001"


class Running:
    """`hushcube serve` in a process of its own."""

    def __init__(self, folder, *more):
        command = ["-m", "hushcube", "serve", str(folder / "stays"), "--tokens", str(folder / "tokens.json"), *more]
        command += ["--audit", str(folder / "audit.jsonl"), "--port", "0", "--rate", "100000"]
        self.process = subprocess.Popen(
            [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.address = self.process.stdout.readline().strip()
        assert self.address, self.process.stderr.read()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        said = self.process.communicate(timeout=60)
        return self.process.returncode, *said

    def request(self, path, token, body=None, key=""):
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Idempotency-Key": key}
        sent = urllib.request.Request(
            self.address + path, headers=headers, data=None if body is None else json.dumps(body).encode()
        )
        with urllib.request.urlopen(sent, timeout=60) as response:
            return json.load(response)

    def ask(self, question, token):
        return self.request(
            "/sessions/stays/ask", token, {"question": question, "rho": float(RHO)}, question.replace("*", "-")
        )


def load(running, token, questions, enough):
    """Three clients at once, until the server is gone; what they were answered."""
    answered, some = {}, threading.Event()

    def client(own):
        for question in own:
            try:
                answered[question] = running.ask(question, token)
            except OSError:  # it is gone, or going
                return
            if len(answered) >= enough:
                some.set()

    clients = [threading.Thread(target=client, args=(questions[i::3],)) for i in range(3)]
    for one in clients:
        one.start()
    assert some.wait(60)
    return answered, clients


@pytest.mark.slow
def test_a_restart_during_load_loses_nothing(laid_out):
    """First it is asked to stop: what is under way is answered. Then it is killed: noise that was drawn and not yet
    published is lost, since it must not be drawn twice; nothing else is."""
    token, granted = give_tokens(laid_out)["owner"], {}
    for number in (signal.SIGTERM, signal.SIGKILL):
        running = Running(laid_out)
        left = [question for question in QUESTIONS if question not in granted]
        answered, clients = load(running, token, left, enough=3)
        code, _, said = running.stop(number)
        for one in clients:
            one.join(60)
        granted |= answered
        assert (code, "stopped" in said) == ((0, True) if number == signal.SIGTERM else (-9, False))

    running, lost = Running(laid_out), []
    for question in QUESTIONS:
        try:
            again = running.ask(question, token)
        except urllib.error.HTTPError as refused:
            assert refused.code == 409 and "lost" in json.load(refused)["problem"]
            lost.append(question)
        else:
            first = granted.get(question, again)["columns"]
            assert again["columns"]["std_error"][0] <= first["std_error"][0]
    code, *_ = running.stop()
    assert code == 0 and len(lost) <= 1 and not granted.keys() & set(lost)
    with hc.Ledger.open(laid_out / "ledger.db") as ledger:
        charges = ledger.charges("hospital")
        assert len(charges) == len(QUESTIONS) and len(ledger.unfinished()) == len(lost)
        assert ledger.account("hospital").spent == sum(one.spent for one in charges)
        assert {one.who for one in charges} == {"olga"}


class Wire:
    """The other end of a connection, as far as it is looked at."""

    def __init__(self):
        self.closed = False

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed

    def get_extra_info(self, name, default=None):
        return default


def test_a_head_that_is_slow_or_large_closes_the_connection(monkeypatch):
    """Whoever sends it needs no token, so that nothing else would stop them."""
    import asyncio

    import uvicorn
    from uvicorn.server import ServerState

    from hushcube.web import connection

    monkeypatch.setattr(connection, "SECONDS", 0.05)
    config = uvicorn.Config(lambda: None, http=connection.Connection, ws="none", log_config=None)

    async def main():
        found = [connection.Connection(config, ServerState(), {}) for _ in range(2)]
        wires = [Wire(), Wire()]
        for one, wire in zip(found, wires, strict=True):
            one.connection_made(wire)
        slow, large = found
        slow.data_received(b"GET /health HTTP/1.1\r\n")
        large.data_received(b"GET /health HTTP/1.1\r\nX: ")
        for _ in range(70):
            if not wires[1].closed:
                large.data_received(b"x" * 1024)
        assert [wire.closed for wire in wires] == [False, True]
        await asyncio.sleep(0.1)
        assert wires[0].closed

    asyncio.run(main())


def test_others_reach_it_only_with_tls_or_when_told(laid_out):
    give_tokens(laid_out)
    told = {"tokens": laid_out / "tokens.json", "audit": laid_out / "audit.jsonl", "port": 0}
    with pytest.raises(hc.ServerError, match="in the clear"):
        hc.serve([laid_out / "stays"], host="0.0.0.0", **told)
    with pytest.raises(hc.ServerError, match="belong together"):
        hc.serve([laid_out / "stays"], tls_cert="cert.pem", **told)
    with pytest.raises(hc.ServerError, match="cannot be read"):
        hc.serve([laid_out / "stays"], tls_cert=laid_out / "none.pem", tls_key=laid_out / "none.pem", **told)
    with pytest.raises(hc.ServerError, match="session"):
        hc.serve([], **told)
