# The site's MQTT broker: the `mqtt:` of joulemark.yaml, and a client of it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from joulemark import config as site
from joulemark import secret
from joulemark.errors import UsageError, module_missing

# Our programs' names at the broker, by site/mosquitto.acl; no node has one of them.
RECEIVER, GATEWAY, OPERATOR = PROGRAMS = (
    "joulemark-receive",
    "joulemark-gateway",
    "joulemark-top",
)


@dataclass(frozen=True)
class Broker:
    """The `mqtt:` section of joulemark.yaml; joulemarkd --check judges it as a whole."""

    host: str
    port: int
    topic: str
    user: str | None
    password_file: Path | str | None
    tls: bool
    ca_file: Path | None
    cert_file: Path | None
    key_file: Path | None

    @staticmethod
    def load(path: Path, name: str, user: str | None, password_file: str | None) -> Broker:
        """From the site's configuration; name: ours there, which %n in a file's path becomes.

        A user of our own goes before the nodes'.
        """
        section = site.broker(path)
        given = section.flag("tls")
        files = {
            key: _of(section.maybe_path(key), name)
            for key in ("password_file", "ca_file", "cert_file", "key_file")
        }
        tls = files["ca_file"] is not None if given is None else given
        named, secret = section.maybe("user", "our name at the broker"), files.pop("password_file")
        return Broker(
            host=section.maybe("host", "such as broker.example.org"),
            port=section.whole("port", 1, 65535) or (8883 if tls else 1883),
            topic=section.maybe("topic", "such as joulemark") or "joulemark",
            user=named if user is None else user,
            password_file=password_file or (secret if user is None else None),
            tls=tls,
            **files,
        )

    @property
    def is_open_to_us(self) -> bool:
        """We may read what it asks of us, if it asks for anything."""
        files = (self.password_file, self.cert_file, self.key_file)
        return all(os.access(file, os.R_OK) for file in files if file)

    def password(self) -> str | None:
        """From a file that only we may read."""
        return secret.read(Path(self.password_file)) if self.password_file else None

    def client(self, client_id: str):
        """A client of paho's that is not connected yet; MQTT 5, callbacks of paho's version 1."""
        try:
            import paho.mqtt.client as mqtt
        except ImportError:
            raise module_missing("transport: mqtt", "paho-mqtt", "mqtt") from None
        # paho 2 wants to be told which calls it shall make; 1.6 knows one way only
        newer = getattr(mqtt, "CallbackAPIVersion", None)
        words = [newer.VERSION1] if newer else []
        client = mqtt.Client(*words, client_id=client_id, protocol=mqtt.MQTTv5)
        if self.user is not None:
            client.username_pw_set(self.user, self.password())
        if self.tls:
            self._set_tls(client)
        client.reconnect_delay_set(1, 15)
        return client

    def _set_tls(self, client) -> None:
        files = (self.ca_file, self.cert_file, self.key_file)
        try:
            client.tls_set(*files)
        except (OSError, ValueError) as error:
            named = ", ".join(str(file) for file in files if file)
            raise UsageError(
                f"mqtt: TLS with {named or 'the system certificates'}: {error}: check ca_file, "
                "cert_file and key_file, and that we may read them"
            ) from None


def is_refusal(reason) -> bool:
    """Whether a broker's answer says no."""
    return reason.is_failure if hasattr(reason, "is_failure") else reason.value >= 128


def _of(path: Path | None, name: str) -> Path | None:
    """The path with %n as joulemarkd puts it in."""
    if path is None:
        return None
    return Path(re.sub("%[n%]", lambda found: name if found[0] == "%n" else "%", str(path)))
