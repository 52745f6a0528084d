"""BMCs of the tests: OpenIPMI's ipmi_sim for IPMI, sushy-tools' static emulator for Redfish."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import base64
import http.server
import json
import secrets
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.cluster.ports import free_port, listens
from tests.peers.peer import Peer

USER, PASSWORD = "reader", "correct-horse-17"
WATTS, VOLTS = 6, 4  # IPMI's codes of units


# ---- IPMI ----


def sensor_record(record: int, sensor: int, name: str, unit: int = WATTS, step: int = 2) -> str:
    """An SDR full sensor record (IPMI 2.0, 43.1) as ipmi_sim's command: unit = step * raw."""
    head = [0x20, 0, sensor, 7, record, 0x7F, 0x40, 0x0B, 1, *[0] * 6, 0, unit, 0, 0]
    factors = [step & 0xFF, step >> 8 << 6, 0, 0, 0, 0]
    body = [*head, *factors, 0, 0, 0, 0, 0xFF, *[0] * 12, 0xC0 | len(name), *name.encode()]
    words = [record & 0xFF, record >> 8, 0x51, 1, len(body), *body]
    return "main_sdr_add 0x20 " + " ".join(map(hex, words))


class Simulator(Peer):
    """One ipmi_sim: two watt sensors, one in volts; DCMI and Lenovo's XCC by our module."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.log_file = folder / "log"
        self.port = free_port()
        self._build_module()
        self._configure()
        self.set_raw(60)
        self.set_dcmi("321")

    def _build_module(self) -> None:
        source = Path(__file__).with_name("dcmi.c")
        words = ["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", source, "-o", self.folder / "dcmi.so"]
        subprocess.run(words, check=True)

    def _configure(self) -> None:
        auths = "none md2 md5 straight"
        levels = ("callback", "user", "operator", "admin")
        lan = [f"addr 127.0.0.1 {self.port}", "priv_limit admin"]
        lan += [f"allowed_auths_{level} {auths}" for level in levels]
        lan += ["guid a123456789abcdefa123456789abcdef"]
        users = [f'user 2 true "{USER}" "{PASSWORD}" admin 10 {auths}']
        module = f'loadlib "{self.folder}/dcmi.so" "{self.folder}/dcmi"'
        lines = ['name "sim"', "set_working_mc 0x20", "startlan 1", *lan, "endlan", *users, module]
        (self.folder / "lan.conf").write_text("\n".join(lines) + "\n")
        silent = "000000000000000"
        sensors = []
        for sensor in (1, 2, 3):
            sensors += [f'sensor_add 0x20 0 {sensor} 0x0b 1 poll 50 file "{self.folder}/raw"']
            events = f"enable scanning per-state {silent} {silent} {silent} {silent}"
            sensors += [f"sensor_set_event_support 0x20 0 {sensor} {events}"]
        records = [
            sensor_record(1, 1, "PS1 Input"),
            sensor_record(2, 2, "Rack Input", step=40),
            sensor_record(3, 3, "12V", unit=VOLTS),
        ]
        head = ["mc_setbmc 0x20", "mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02"]
        lines = [*head, "sel_enable 0x20 100 0x0a", *sensors, *records, "mc_enable 0x20"]
        (self.folder / "sim.emu").write_text("\n".join(lines) + "\n")

    def set_raw(self, raw: int) -> None:
        """All sensors' 8 bits; watts are raw times the step."""
        self._write("raw", str(raw))

    def set_dcmi(self, text: str) -> None:
        self._write("dcmi", text)

    def set_xcc(self, meter: int, answer: bytes) -> None:
        """What XCC answers to 3A 32 04 METER, behind a good completion code."""
        self._write(f"dcmi.{meter:02x}", (b"\0" + answer).hex(" "))

    def _write(self, name: str, text: str) -> None:
        (self.folder / "new").write_text(text + "\n")
        (self.folder / "new").rename(self.folder / name)

    def command(self) -> list[object]:
        state = self.folder / "state"
        state.mkdir(exist_ok=True)
        return ["ipmi_sim", "-c", "lan.conf", "-f", "sim.emu", "-s", state, "-n"]

    def ready(self) -> bool:
        lines = Path("/proc/net/udp").read_text().splitlines()[1:]
        return any(int(line.split()[1].rpartition(":")[2], 16) == self.port for line in lines)


# ---- Redfish ----

SESSIONS = "/redfish/v1/SessionService/Sessions"


def resource(folder: Path, path: str, content: dict | str) -> None:
    """Writes what the emulator answers at /redfish/v1/PATH; text goes out as it is."""
    place = folder / path / "index.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    place.with_name("new").write_text(text)
    place.with_name("new").rename(place)


def link(path: str) -> dict:
    return {"@odata.id": f"/redfish/v1/{path}"}


def collection(folder: Path, path: str, members: list[str]) -> None:
    content = {**link(path), "Members": [link(f"{path}/{member}") for member in members]}
    resource(folder, path, content)


def chassis(folder: Path, name: str, watts: float) -> None:
    """A chassis with all that power is read from: a bit more in each place, to tell them apart."""
    path = f"Chassis/{name}"
    parts = ("EnvironmentMetrics", "Power", "PowerSubsystem")
    resource(folder, path, {**link(path), **{part: link(f"{path}/{part}") for part in parts}})
    metrics = {
        "PowerWatts": {"Reading": watts},
        "EnergyJoules": {"Reading": 1e6},
        "EnergykWh": {"Reading": 3.5},
    }
    resource(folder, f"{path}/EnvironmentMetrics", metrics)
    control = [{"MemberId": "0", "PowerConsumedWatts": watts + 1}]
    resource(folder, f"{path}/Power", {"PowerControl": control})
    supplies = f"{path}/PowerSubsystem/PowerSupplies"
    resource(folder, f"{path}/PowerSubsystem", {"PowerSupplies": link(supplies)})
    collection(folder, supplies, ["Bay1", "Bay2", "Bay3"])
    for bay in ("Bay1", "Bay2"):
        resource(folder, f"{supplies}/{bay}", {"Metrics": link(f"{supplies}/{bay}/Metrics")})
        half = {"InputPowerWatts": {"Reading": watts / 2 + 1}}
        resource(folder, f"{supplies}/{bay}/Metrics", half)
    resource(folder, f"{supplies}/Bay3", {"Status": {"State": "Absent"}})


def service(folder: Path, watts: float = 300.0) -> Path:
    """The mock-up of a BMC with one chassis, `Self`; its folder."""
    resource(folder, "", {**link(""), "Links": {"Sessions": link("SessionService/Sessions")}})
    collection(folder, "Chassis", ["Self"])
    chassis(folder, "Self", watts)
    return folder


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request: object, address: object) -> None:
        """A client that hangs up, as a probe does that is killed or trusts us not, is no news."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, address)


class Redfish:
    """sushy-tools' static emulator behind TLS, and before it what it lacks: DSP0266's sessions."""

    def __init__(self, mockup: Path, authority: Path, name: str) -> None:
        """name: of its key and certificate, which lie in the authority's folder"""
        emulator = pytest.importorskip("sushy_tools.static.main")
        emulator.REDFISH_MOCKUP_FILES = str(mockup)
        self.mockup = mockup
        self.delay_s = 0.0
        self.sessions: dict[str, str] = {}  # token: path
        self.logins = self.refused = self.requests = 0
        self._handler = _with_sessions(emulator.RequestHandler, self)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(authority / f"{name}.crt", authority / f"{name}.key")
        self.port = free_port()
        self.server: _Server | None = None

    def start(self) -> Redfish:
        self.server = _Server(("127.0.0.1", self.port), self._handler)
        self.server.socket = self._context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def stop(self, *_: object) -> None:
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    __enter__, __exit__ = start, stop

    def knows(self, headers: http.client.HTTPMessage) -> bool:
        if headers.get("X-Auth-Token") in self.sessions:
            return True
        words = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        return headers.get("Authorization") == f"Basic {words}"


def _with_sessions(emulator: type, bmc: Redfish) -> type:
    class Handler(emulator):  # type: ignore[misc, valid-type]
        def log_message(self, *_: object) -> None:
            pass

        def _log_request(self, method: str) -> None:
            pass

        def _answer(self, status: int, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            bmc.requests += 1
            time.sleep(bmc.delay_s)
            if self.path.rstrip("/") == "/redfish/v1" or bmc.knows(self.headers):
                super().do_GET()
            else:
                bmc.refused += 1
                self._answer(401)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            bmc.logins += 1
            if self.path != SESSIONS or body != {"UserName": USER, "Password": PASSWORD}:
                bmc.refused += 1
                self._answer(401)
                return
            token, path = secrets.token_hex(16), f"{SESSIONS}/{bmc.logins}"
            bmc.sessions[token] = path
            self._answer(201, {"X-Auth-Token": token, "Location": f"https://localhost{path}"})

        def do_DELETE(self) -> None:
            token = self.headers.get("X-Auth-Token", "")
            known = bmc.sessions.get(token) == self.path
            if known:
                del bmc.sessions[token]
            self._answer(204 if known else 401)

    return Handler


class Sushy(Peer):
    """One of sushy-tools' own programs, as it is."""

    def __init__(self, name: str, folder: Path, *words: object) -> None:
        self.path = Path(sys.executable).with_name(name)
        if not self.path.exists():
            pytest.skip(f"{name} is not installed (Python: sushy-tools)")
        self.port, self.words, self.log_file = free_port(), words, folder / f"{name}.log"

    def command(self) -> list[object]:
        return [self.path, "-i", "127.0.0.1", "-p", self.port, *self.words]

    def ready(self) -> bool:
        return listens(self.port)
